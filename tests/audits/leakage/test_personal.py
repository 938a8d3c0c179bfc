"""What looks like personal data."""

from __future__ import annotations

import pytest

from recollect.audits.leakage.personal import personal


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("nothing of that kind in 2024", ()),
        ("mail Ann.Lee+x@mail.example.co.uk today", ("e-mail",)),
        ("4111-1111-1111-1111", ("card",)),
        ("4111-1111-1111-1112", ()),
        ("to DE89 3704 0044 0532 0130 00 please", ("iban",)),
        ("to DE88 3704 0044 0532 0130 00 please", ()),
        ("ring (030) 1234-5678", ("phone",)),
    ],
)
def test_kinds_are_told_by_what_they_look_like_and_by_their_check_digits(text, kinds):
    assert personal(text) == kinds
