"""Every signal there is keeps the contract, and means what it says."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import AccessError
from recollect.models.access import Access
from recollect.models.answer_store.scoring import score_corpus
from recollect.models.limited import limited
from recollect.signals.evidence import AUDITED, TARGET, Evidence
from recollect.signals.loss import Loss, mean_logprob
from recollect.signals.registry import SIGNALS, make_signal
from recollect.signals.signal import compute_scores
from recollect.testing.contracts import check_signal
from recollect.testing.fakes import Null, Scripted

RECORDS = [Record(id="a", user="ann", text="one two"), Record(id="b", text="three"), Record(id="c", text="")]


@pytest.mark.xdist_group("every signal")  # one process: what a fake has answered is remembered there
@pytest.mark.parametrize("name", SIGNALS.table)
def test_every_signal_keeps_the_contract(name):
    check_signal(make_signal(name))


def evidence(model, records, tmp_path):
    corpus = Corpus.of(records)
    answers = {(TARGET, AUDITED): score_corpus(model, corpus, tmp_path)}
    return Evidence(models={TARGET: model}, corpora={AUDITED: corpus}, answers=answers)


def test_loss_is_the_mean_log_probability_of_each_record(tmp_path):
    model = Scripted({"a": [0.5, 0.125], "b": [0.9], "c": []})
    scores = compute_scores(Loss(), evidence(model, RECORDS, tmp_path))
    assert scores.records == ("a", "b")
    assert scores.users == ("ann", "b")
    assert scores.values == pytest.approx([np.log(0.25), np.log(0.9)])


def test_the_same_content_of_two_people_is_scored_for_both(tmp_path):
    twice = [*RECORDS, Record(id="d", user="dan", text="one two")]
    scores = compute_scores(Loss(), evidence(Null(), twice, tmp_path))
    assert scores["a"] == scores["d"]
    assert scores.users[scores.positions["d"]] == "dan"


def test_tokens_that_the_vocabulary_does_not_know_are_left_out():
    answers = Scripted({"a": [0.5, 0.125], "b": [0.9], "c": []}).answer(RECORDS)
    answers.known[:] = [False, True, False]
    assert mean_logprob(answers) == {RECORDS[0].digest: pytest.approx(np.log(0.125))}


def test_a_model_that_shows_too_little_is_refused(tmp_path):
    weak = limited(Null(name="shop-bot"), Access.RANKS)
    with pytest.raises(AccessError, match="signal 'loss' needs log-probabilities of any token; model 'shop-bot'"):
        compute_scores(Loss(), evidence(weak, RECORDS, tmp_path))
