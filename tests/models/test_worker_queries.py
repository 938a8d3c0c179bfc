"""Frontiers and neighbours that workers compute, against the model in this process."""

from functools import partial
from typing import ClassVar

import numpy as np
import pytest

from recollect.audits.exposure.extraction import ExtractionAudit
from recollect.audits.workspace import Workspace
from recollect.execution.local import LocalBackend
from recollect.models import worker_queries
from recollect.models.loading.loader import load_model
from recollect.models.model import Frontier, Perturber, Steppable, reply_to
from recollect.models.worker_queries import WorkerPerturber, WorkerStepper
from recollect.signals.evidence import TARGET, Evidence
from recollect.streams import stream
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model, save_tiny


class Counted(LocalBackend):
    """This process, which notes how many chunks it was given."""

    chunks: ClassVar[list] = []

    def map(self, work, items, *, threads=None):
        items = list(items)
        self.chunks.append(len(items))
        return super().map(work, items, threads=threads)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return {family: str(save_tiny(build_tiny_model(family), folder / family)) for family in ("gpt2", "t5", "bert")}


@pytest.fixture
def both(folders):
    """A function: the stepper of this process and the one of workers."""

    def build(family, backend=None):
        source = partial(load_model, folders[family])
        model = source()
        assert isinstance(model, Steppable)
        return model.stepper(), WorkerStepper(model.stepper(), source, backend or LocalBackend(threads=1))

    return build


def walk(stepper, source, among):
    """What may follow nodes of three depths and two prefixes, in one frontier, parents and children mixed."""
    given = {} if source is None else {"source": source}
    first, second = stepper.start([5, 6], **given), stepper.start([7], **given)
    roots = Frontier.concatenate([second, first])
    children, near = stepper.step(roots, [0, 1, 1, 0, 1], [20, 21, 22, 23, 24], among=among)
    below, _ = stepper.step(children, [4, 0, 4, 1], [30, 31, 32, 33], among=among)
    everything = Frontier.concatenate([below, roots, children])
    shuffled = everything.take(np.array([3, 10, 0, 7, 5, 1, 9, 2, 8, 4, 6]))
    return near, stepper.score_next(shuffled, among=among)


@pytest.mark.parametrize("family", ["gpt2", "t5"])
@pytest.mark.parametrize("among", [None, [40, 41, 42]])
def test_workers_read_a_frontier_as_this_process_does_in_its_order(both, monkeypatch, family, among):
    monkeypatch.setattr(worker_queries, "MAX_NODES", 3)
    backend = Counted(threads=1)
    here, there = both(family, backend)
    source = "the quick brown fox" if family == "t5" else None
    expected, found = walk(here, source, among), walk(there, source, among)
    for one, other in zip(expected, found, strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(other, one, atol=1e-5)
    assert max(backend.chunks) >= 4, "nodes of two prefixes, three at a time"


def test_a_frontier_is_cut_so_that_what_comes_back_stays_small(both, monkeypatch):
    backend = Counted(threads=1)
    _, stepper = both("gpt2", backend)
    monkeypatch.setattr(worker_queries, "MAX_NUMBERS", 4 * len(stepper.spelling.tokens))
    root = stepper.start([5])
    backend.chunks.clear()
    _, found = stepper.step(root, [0] * 10, range(10))
    assert (len(found), backend.chunks) == (10, [3])


def test_what_a_worker_refuses_is_raised_here(both):
    _, stepper = both("gpt2")
    with refused("text_too_long"):
        stepper.score_next(stepper.start([5] * 500))
    with refused("empty_prefix"):
        stepper.score_next(stepper.start([]))
    with refused("no_chat_template"):
        reply_to(stepper, "hello")


def test_an_extraction_by_workers_finds_the_same(folders):
    model = load_model(folders["gpt2"])
    audit = ExtractionAudit(format="pin {digits:3}", top=5, max_steps=400)
    evidence = Evidence(models={TARGET: model})
    workers = LocalBackend(threads=1)
    workspace = Workspace(
        open_stepper=lambda given: WorkerStepper(given.stepper(), partial(load_model, folders["gpt2"]), workers)
    )
    alone, shared = (audit.run(evidence, stream(0), each) for each in (Workspace(), workspace))
    assert alone.outcome == shared.outcome
    for one, other in zip(alone.findings, shared.findings, strict=True):
        assert one.name == other.name
        assert other.value == pytest.approx(one.value, rel=1e-5, abs=1e-4)


def test_neighbours_by_workers_are_the_same_for_every_text_in_order(folders, monkeypatch):
    monkeypatch.setattr(worker_queries, "MAX_TEXTS", 2)
    source = partial(load_model, folders["bert"])
    model, backend = source(), Counted(threads=1)
    backend.chunks.clear()
    placed = WorkerPerturber(model=model, source=source, backend=backend)
    texts = ["The quick brown fox jumps", "over the lazy dog", "again and again", "one", "two words"]
    assert isinstance(placed, Perturber)
    assert placed.neighbours(texts, 3) == model.neighbours(texts, 3)
    assert backend.chunks == [3]
    assert (placed.name, placed.digest, placed.kind) == (model.name, model.digest, "masked")
