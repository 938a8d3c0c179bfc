"""What every backend promises: ordered, lazy, never losing an item, whatever happens to a worker."""

from __future__ import annotations

import os
import pickle

import pytest
from workloads import NeedsTheKey, dies_at_first, slow_first, surroundings, troubled, who

from recollect.errors import ModelError, RecollectError
from recollect.execution.backend import Done, Failure
from recollect.execution.local import LocalBackend
from recollect.execution.pool import PREFETCH
from recollect.testing.refusals import refused

RAY = pytest.param("ray", marks=[pytest.mark.ray, pytest.mark.slow])
EVERY = pytest.mark.parametrize("backend", ["alone", "processes", RAY], indirect=True)
SEVERAL = pytest.mark.parametrize("backend", ["processes", RAY], indirect=True)
"""Backends whose workers are other processes."""


@pytest.fixture
def backend(request, tmp_path):
    if request.param == "ray":
        from recollect.execution.on_ray import RayBackend

        cluster = request.getfixturevalue("ray_cluster")
        return RayBackend(address=cluster.address, workers=2, work_folder=request.getfixturevalue("shared_folder"))
    return LocalBackend(workers=1 if request.param == "alone" else 2)


@EVERY
def test_outcomes_come_in_the_order_of_the_items_even_if_the_first_is_slowest(backend):
    assert list(backend.map(slow_first, range(8))) == [Done(item) for item in range(8)]


@EVERY
def test_no_items_give_no_outcomes(backend):
    assert list(backend.map(troubled, [])) == []


@EVERY
def test_an_error_is_a_value_and_the_others_continue(backend):
    first, second, third = backend.map(troubled, ["a", "refuses", "b"])
    assert (first, third) == (Done("a!"), Done("b!"))
    assert isinstance(second, Failure)
    assert isinstance(second.error, ModelError)
    assert (second.error.code, second.error.do) == ("refused", "Take another.")
    assert "in troubled" in second.traceback


@SEVERAL
def test_a_worker_that_dies_is_a_failure_that_says_so_and_the_others_continue(backend):
    items = ["a", "dies", "b", "ends", "d"]
    outcomes = list(backend.map(troubled, items))
    assert [type(outcome) for outcome in outcomes] == [Done, Failure, Done, Failure, Done]
    assert outcomes[1].error.code == "worker_died"
    assert "while it worked on item 1" in str(outcomes[1].error)
    assert isinstance(outcomes[3].error, EOFError)
    assert outcomes[-1] == Done("d!")


@SEVERAL
def test_an_item_whose_worker_died_is_tried_once_more(backend, tmp_path):
    marks = [str(tmp_path / name) for name in "abcde"]
    assert [outcome.value for outcome in backend.map(dies_at_first, marks)] == marks


@SEVERAL
def test_what_cannot_travel_between_processes_is_a_failure_in_words(backend):
    confused, hoarded, unsendable, fine = backend.map(troubled, ["confuses", "hoards", lambda: None, "a"])
    assert str(confused.error) == "UnportableError: 1 and 2"
    assert "Can't pickle" in str(hoarded.error)
    assert isinstance(unsendable.error, (pickle.PicklingError, AttributeError))
    assert fine == Done("a!")


@SEVERAL
def test_work_that_a_worker_cannot_load_fails_every_item_with_the_reason(backend):
    outcomes = list(backend.map(NeedsTheKey(), [1, 2, 3]))
    assert [outcome.error.code for outcome in outcomes] == ["no_key"] * 3


@EVERY
def test_items_are_taken_as_they_are_needed(backend):
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield taken

    outcomes = backend.map(who, endless())
    for seen in range(1, 20):
        next(outcomes)
        assert taken <= seen + PREFETCH * backend.workers
    outcomes.close()


@SEVERAL
def test_several_workers_are_other_processes_that_stay(backend):
    pids = {outcome.value for outcome in backend.map(who, range(20))}
    assert os.getpid() not in pids
    assert len(pids) <= 2


@SEVERAL
def test_abandoning_the_outcomes_while_workers_work_ends_these(backend):
    outcomes = backend.map(slow_first, iter([1, 0, 0, 0]))
    assert next(outcomes) == Done(1)
    outcomes.close()
    assert list(backend.map(slow_first, [2, 3])) == [Done(2), Done(3)]


@SEVERAL
def test_workers_have_their_threads_before_torch_is_loaded(backend):
    threads = min(2, len(os.sched_getaffinity(0)))
    (outcome,) = backend.map(surroundings, [0], threads=threads)
    assert outcome.value == (str(threads), threads, str(threads > 1).lower())


@EVERY
def test_an_error_in_the_items_themselves_is_the_callers(backend):
    def items():
        yield "a"
        raise RecollectError("The file is cut off.", code="cut_off")

    with refused("cut_off"):
        list(backend.map(troubled, items()))
