"""A server that lies with status 200 is refused, and never scored."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.corpora.record import Record
from recollect.testing.refusals import refused

pytestmark = pytest.mark.loopback
RECORDS = [Record(id=str(i), text=text) for i, text in enumerate(["the cat and the dog met on", "a ring of stones"])]


@pytest.mark.parametrize(
    ("shows", "fault", "code"),
    [
        ("prompt_logprobs", "off_by_one", "token_count"),
        ("prompt_logprobs", "no_start", "token_count"),
        ("prompt_logprobs", "sentinel", "sentinel_logprob"),
        ("prompt_logprobs", "constant", "constant_logprobs"),
        ("prompt_logprobs", "other_tokens", "other_tokens"),
        ("prompt_logprobs", "disagreeing", "prompt_scores_disagree"),
        ("echo", "off_by_one", "token_count"),
        ("echo", "no_start", "token_count"),
        ("echo", "sentinel", "sentinel_logprob"),
        ("echo", "constant", "constant_logprobs"),
        ("echo", "disagreeing", "prompt_scores_disagree"),
        ("forced", "sentinel", "sentinel_logprob"),
    ],
)
def test_a_server_that_invents_numbers_is_refused_by_the_probe(serve, load, shows, fault, code):
    with refused(code):
        load(serve(shows=shows, faults=frozenset({fault})))


@pytest.mark.parametrize(
    ("shows", "fault", "code"),
    [
        ("prompt_logprobs", "off_by_one", "token_count"),
        ("prompt_logprobs", "sentinel", "sentinel_logprob"),
        ("echo", "ignored_echo", "echo_missing"),
        ("echo", "no_start", "token_count"),
        ("forced", "other_tokens", "other_tokens"),
        ("forced", "sentinel", "sentinel_logprob"),
    ],
)
def test_a_fault_that_begins_after_the_probe_is_refused_too(serve, load, shows, fault, code):
    server = serve(shows=shows)
    model = load(server)
    server.behaviour.faults = frozenset({fault})
    with refused(code):
        model.answer(RECORDS)


def test_numbers_after_the_bias_are_not_taken_for_log_probabilities(serve, load):
    model = load(serve(faults=frozenset({"biased"})))
    assert model.access.logprob == "shown"  # what is shown when nothing is forced can still be used
    assert (model.answer(RECORDS).logprob[~np.isnan(model.answer(RECORDS).logprob)] < -1e-3).all()


def test_an_ignored_echo_is_found_by_its_shape_and_something_else_is_used(serve, load):
    server = serve(shows="echo", faults=frozenset({"ignored_echo"}))
    model = load(server)
    assert model.access.logprob == "any"
    answers = model.answer(RECORDS)
    expected = [row[0] for record in RECORDS for row in server.model.score(record.text)]
    assert np.allclose(answers.logprob, expected, atol=1e-6)


def test_the_noise_floor_is_measured_and_stated(serve, load):
    quiet, noisy = load(serve()), load(serve(noise=0.05))
    assert quiet.endpoint.noise_floor == 1e-2
    assert 0.03 < noisy.endpoint.noise_floor <= 0.15


def test_a_server_that_does_not_repeat_itself_is_refused(serve, load):
    with refused("noisy_answers"):
        load(serve(shows="prompt_logprobs", noise=5.0))


@pytest.mark.parametrize("shows", ["forced", "prompt_logprobs"])
def test_another_model_in_the_middle_ends_the_generation_and_nothing_is_mixed(serve, load, shows):
    server = serve(shows=shows)
    model = load(server)
    before = model.answer(RECORDS[:1])
    server.behaviour.drift_after = server.received + 3
    with refused("model_changed") as refusal:
        model.answer(RECORDS)
    assert "answers since the last probe" in refusal.error.do
    again = load(server)
    assert (model.endpoint.generation, again.endpoint.generation) == (0, 1)
    assert again.digest != model.digest
    server.model = server.choose_model(server.received + 1)
    expected = [row[0] for record in RECORDS for row in server.model.score(record.text)]
    assert np.allclose(again.answer(RECORDS).logprob, expected, atol=1e-6)
    assert not np.allclose(before.logprob, expected[: before.rows])


def test_another_model_after_a_restart_starts_a_new_generation(serve, load):
    server = serve()
    first = load(server)
    first.answer(RECORDS)
    same = load(server)
    assert (same.endpoint.generation, same.digest) == (0, first.digest)
    del same
    server.behaviour.drift_after = 0
    other = load(server)
    assert other.endpoint.generation == 1
    server.behaviour.drift_after = None
    assert load(server).endpoint.generation == 2  # what comes back is not known to be the same


def test_a_server_that_rounds_otherwise_now_and_then_is_the_same_model(serve, load):
    server = serve(shows="prompt_logprobs")
    model = load(server)
    server.behaviour.noise = 0.005
    assert model.answer(RECORDS).rows
    assert load(server).digest == model.digest


def test_answers_within_the_noise_are_of_the_same_model(serve, load):
    server = serve(noise=0.05)
    first = load(server)
    first.answer(RECORDS)
    assert load(server).digest == first.digest
