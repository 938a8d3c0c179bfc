"""Finished batches survive a kill: they are not scored again, and the shard has the same bytes."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.execution.local import LocalBackend
from recollect.models.answer_store.batch_journal import flatten_arrays, rebuild_arrays
from recollect.models.answer_store.scoring import score_corpus
from recollect.models.answer_store.shards import read_threads
from recollect.models.hugging_face.causal import Causal
from recollect.models.hugging_face.masked import Masked
from recollect.models.hugging_face.token_scores import TokenScores
from recollect.models.model import Question
from recollect.testing.tiny import TEXTS, build_tiny_model

CORPUS = Corpus.of(Record(id=str(i), text=f"{TEXTS[i % len(TEXTS)]} {i}") for i in range(24))
ONE = LocalBackend(threads=1)


class Killed(BaseException):
    """What stands for a kill."""


def build(kind: str):
    model = {"gpt2": Causal, "bert": Masked}[kind](build_tiny_model(kind), Question(patterns=2))
    model.budget = 64
    return model


def count_batches(model, *, until: int | None = None) -> list[int]:
    """Count the batches that a model computes; the one after the last allowed kills the run."""
    name = "_reader"
    owner = model._passes if hasattr(model, "_passes") else model
    scorer, computed = getattr(owner, name), []

    class Counting:
        vocabulary = scorer.vocabulary
        skips_full_logits = scorer.skips_full_logits

        def score(self, inputs, rows, token_ids):
            if until is not None and len(computed) == until:
                raise KeyboardInterrupt
            computed.append(len(token_ids))
            return scorer.score(inputs, rows, token_ids)

    setattr(owner, name, Counting())
    return computed


@pytest.mark.parametrize("kind", ["gpt2", "bert"])
def test_a_killed_run_repeats_no_finished_batch_and_ends_with_the_same_bytes(tmp_path, kind):
    whole = build(kind)
    everything = count_batches(whole)
    expected = score_corpus(whole, CORPUS, tmp_path / "whole", backend=ONE)
    assert len(everything) > 6
    killed = build(kind)
    before = count_batches(killed, until=4)
    with pytest.raises(KeyboardInterrupt):
        score_corpus(killed, CORPUS, tmp_path / "killed", backend=ONE)
    again = build(kind)
    after = count_batches(again)
    found = score_corpus(again, CORPUS, tmp_path / "killed", backend=ONE)
    assert before + after == everything
    for path in expected.folder.iterdir():
        assert (found.folder / path.name).read_bytes() == path.read_bytes()
    assert not list(found.folder.glob("*.journal"))


@pytest.mark.parametrize("batches", [0, 1])
def test_a_journal_stays_after_a_failure_if_it_holds_a_batch(tmp_path, batches):
    failing = build("gpt2")
    count_batches(failing, until=batches)
    with pytest.raises(KeyboardInterrupt):
        score_corpus(failing, CORPUS, tmp_path, backend=ONE)
    assert len(list(tmp_path.rglob("*.journal"))) == batches


@pytest.mark.parametrize(("first", "journals"), [(12, 0), (24, 1)])
def test_a_journal_goes_once_its_block_cannot_be_asked_for_again(tmp_path, first, journals):
    """Others may ask for some of its records first; those who ask for other records leave it."""
    failing = build("gpt2")
    count_batches(failing, until=3)
    with pytest.raises(KeyboardInterrupt):
        score_corpus(failing, CORPUS, tmp_path, backend=ONE)
    other = Corpus.of(Record(id=str(i), text=f"{TEXTS[i % len(TEXTS)]} {i}") for i in range(first, first + 24))
    score_corpus(build("gpt2"), other, tmp_path, backend=ONE)
    assert len(list(tmp_path.rglob("*.journal"))) == journals
    score_corpus(build("gpt2"), CORPUS, tmp_path, backend=ONE)
    assert not list(tmp_path.rglob("*.journal"))


def test_scoring_leaves_alone_what_is_no_journal_of_its_own(tmp_path):
    folder = score_corpus(build("gpt2"), CORPUS, tmp_path / "work", backend=ONE).folder
    (tmp_path / "elsewhere").write_text("not a journal")
    (folder / "0.journal").symlink_to(tmp_path / "elsewhere")
    (folder / "1.journal").write_text("not a journal either")
    score_corpus(build("gpt2"), CORPUS, tmp_path / "work", backend=ONE)
    assert (tmp_path / "elsewhere").read_text() == "not a journal"
    assert {path.name for path in folder.glob("*.journal")} == {"0.journal", "1.journal"}


def test_a_shard_notes_all_numbers_of_threads_that_it_was_computed_with(tmp_path):
    killed = build("gpt2")
    count_batches(killed, until=3)
    with pytest.raises(KeyboardInterrupt):
        score_corpus(killed, CORPUS, tmp_path, backend=LocalBackend(threads=2))
    store = score_corpus(build("gpt2"), CORPUS, tmp_path, backend=ONE)
    assert [read_threads(path) for path in store.folder.glob("*.parquet")] == [(1, 2)]


def test_progress_moves_with_every_batch_and_tells_tokens_per_second(tmp_path):
    told = []
    score_corpus(build("gpt2"), CORPUS, tmp_path, backend=ONE, progress=lambda *each: told.append(each))
    assert told[0][:2] == (0, 24)
    assert told[-1][:2] == (24, 24)
    assert len({done for done, _, _ in told}) > 6
    assert all("tokens/s" in note for _, _, note in told[1:])


def test_what_a_batch_gave_is_put_together_again():
    scores = TokenScores.allocate(3, double=False)
    positions = np.arange(3)
    found = rebuild_arrays(flatten_arrays((positions, scores)), (None, TokenScores))
    assert found[0] is positions
    assert vars(found[1]) == vars(scores)
