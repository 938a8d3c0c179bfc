"""Answers of a server survive the process that got them, and those that no probe vouched for can be taken back."""

from __future__ import annotations

import pytest

from recollect.models.endpoint.kept_answers import KeptAnswers

KEYS = [f"{i:032x}" for i in range(4)]


@pytest.fixture
def reopen(tmp_path):
    """Opens the answers anew, as the next process does."""

    def opened(kept=None):
        if kept is not None:
            kept._close()
        return KeptAnswers(tmp_path / "answers.journal", "server")

    return opened


def test_answers_are_found_by_the_next_process_and_are_doubtful_until_a_probe_agrees(reopen):
    kept = reopen()
    kept.put(KEYS[0], [[-1.5, 2]])
    kept.confirm()
    kept.put(KEYS[1], {"any": "answer"})
    kept = reopen(kept)
    assert (kept.get(KEYS[0]), kept.get(KEYS[1]), kept.doubtful) == ([[-1.5, 2]], {"any": "answer"}, 1)
    assert KEYS[2] not in kept


def test_answers_since_the_last_agreement_are_gone_for_the_next_process_too(reopen):
    kept = reopen()
    kept.put(KEYS[0], 0)
    kept.confirm()
    for key in KEYS[1:3]:
        kept.put(key, 1)
    kept.drop_doubtful()
    kept.put(KEYS[3], 3)
    for _ in range(2):
        assert [key in kept for key in KEYS] == [True, False, False, True]
        assert kept.doubtful == 1
        kept = reopen(kept)
