"""What looks like personal data."""

from __future__ import annotations

import pytest

from recollect.audits.leakage.personal_data import detect_personal_data


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("nothing of that kind in 2024", ()),
        ("on 12/11/2018 at 10:30 we sold 1,500 for 20.50", ()),
        ("mail Ann.Lee+x@mail.example.co.uk today", ("e-mail",)),
        ("4111-1111-1111-1111", ("card",)),
        ("4111-1111-1111-1112", ()),
        ("to DE89 3704 0044 0532 0130 00 please", ("iban",)),
        ("to DE88 3704 0044 0532 0130 00 please", ()),
        ("ring (030) 1234-5678", ("phone",)),
        ("call 713-853-5984 or so", ("phone",)),
        ("call +33 1 42 68 53 00 or so", ("phone",)),
        ("at 221b Baker Street you find him", ("address",)),
        ("in der Lindenstraße 12 wohnt sie", ("address",)),
        ("au 12 rue Monge", ("address",)),
        ("Houston, TX 77002", ("address",)),
        ("her house in SW1A 2AA", ("address",)),
        ("we met 12 times in the street", ()),
    ],
)
def test_kinds_are_recognised_by_what_they_look_like_and_by_their_check_digits(text, kinds):
    assert detect_personal_data(text) == kinds
