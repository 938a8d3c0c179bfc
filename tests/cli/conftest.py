"""What tests of all verbs share."""

from __future__ import annotations

import re

import pytest

from recollect.errors import RecollectError

MESSAGE = re.compile(r"^recollect: .|─ Error ─", re.MULTILINE)
"""How a message begins: one of ours, or one of the parser of options."""
USAGE = "usage"
"""Stands for the code of what the parser of options itself refuses."""


@pytest.fixture(scope="session")
def check_refusal():
    """Checks that a command was refused as it should be: status 2, exactly one message, and no traceback."""

    def checked(done, code=None):
        """Also checks the code of the error, where one is given."""
        told = f"{done.exit_code}: {done.output} {done.exception!r}"
        assert isinstance(done.exception, SystemExit), told
        assert done.exit_code == 2, told
        assert len(MESSAGE.findall(done.stderr)) == 1, told
        assert "Traceback" not in done.output, told
        assert code in (None, _code(done)), told

    return checked


def _code(done):
    """The code of the error that ended a command."""
    error = done.exception
    while error is not None and not isinstance(error, RecollectError):
        error = error.__context__
    if error is None:
        return USAGE if "─ Error ─" in done.stderr else None
    return error.code
