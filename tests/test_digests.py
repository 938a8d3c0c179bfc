"""Files are digested piece by piece, and the pieces leave no trace."""

from __future__ import annotations

import pytest

from recollect.digests import digest_file, new_hasher, update_from_file


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (1 << 20) + 1, 3_000_000])
def test_a_file_has_the_digest_of_all_its_bytes(tmp_path, size):
    held = bytes(place % 251 for place in range(size))
    (tmp_path / "file").write_bytes(held)
    whole = new_hasher()
    whole.update(held)
    assert digest_file(tmp_path / "file") == whole.hexdigest()


def test_what_a_hasher_took_before_still_counts(tmp_path):
    (tmp_path / "file").write_bytes(b"after")
    state, whole = new_hasher(), new_hasher()
    state.update(b"before, ")
    update_from_file(state, tmp_path / "file")
    whole.update(b"before, after")
    assert state.hexdigest() == whole.hexdigest()
