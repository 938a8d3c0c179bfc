"""What all tests share."""

from __future__ import annotations

from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public data sets beside the checkout; tests that read it are skipped where it is absent."""
    if not DATA.is_dir():
        pytest.skip(f"no public data sets at {DATA}")
    return DATA
