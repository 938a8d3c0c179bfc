"""Limited models: only ever weaker, by a pure function that needs no second pass over the model."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.corpora.record import Record
from recollect.errors import AccessError
from recollect.models.access import Access, require
from recollect.models.limited import limited, weaken
from recollect.testing.fakes import Null, Uniform
from recollect.testing.refusals import refused

RECORDS = [Record(id=str(i), text=f"who knows word {i} of the {i % 7} dwarfs") for i in range(30)]
MODEL = Null(vocabulary=200)
FULL = MODEL.answer(RECORDS)
SHOWN = Access(k=5, logprob="shown", distribution=False, steps=False)

accesses = st.builds(
    Access,
    k=st.none() | st.integers(1, 60),
    logprob=st.sampled_from(["none", "shown", "any"]),
    distribution=st.booleans(),
    steps=st.booleans(),
)


def same(one, other):
    """Whether two answers hold the same numbers."""
    columns = ("rank", "logprob", "entropy", "logprob_std")
    pairs = [(getattr(one, name), getattr(other, name)) for name in columns]
    return all((a is b) if a is None or b is None else np.array_equal(a, b, equal_nan=True) for a, b in pairs)


def one_by_one(access, least=None):
    """The obvious twin: rank and log-probability of every token, decided token by token."""
    ranks, logprobs = [], []
    for rank, logprob in zip(FULL.rank.tolist(), FULL.logprob.tolist(), strict=True):
        likely = least is None or np.exp(logprob) >= least
        shown = likely and (access.k is None or rank <= access.k)
        ranks.append(rank if shown else 0)
        visible = likely if access.logprob == "any" else shown and access.logprob == "shown"
        logprobs.append(logprob if visible else np.nan)
    return ranks, logprobs


@settings(deadline=None)
@given(access=accesses, least=st.none() | st.floats(0.001, 0.9))
def test_weakening_equals_deciding_token_by_token(access, least):
    weak = weaken(FULL, access, min_probability=least)
    ranks, logprobs = one_by_one(access, least)
    assert weak.rank.tolist() == ranks
    if access.logprob == "none":
        assert weak.logprob is None
    else:
        assert np.array_equal(weak.logprob, np.array(logprobs, np.float32), equal_nan=True)
    assert (weak.entropy is None) == (weak.logprob_std is None) == (not access.distribution)


@settings(deadline=None)
@given(first=accesses, second=accesses)
def test_weakening_twice_is_weakening_to_the_weaker_of_both(first, second):
    weaker = first.lower(second)
    assert same(weaken(weaken(FULL, first), weaker), weaken(FULL, weaker))


@settings(deadline=None)
@given(first=accesses, second=accesses)
def test_a_limit_can_only_lower_what_a_model_shows(first, second):
    model = limited(limited(MODEL, first), second)
    for access in (MODEL.access, first, second):
        assert access.lower(model.access) == model.access
    assert not model.access.steps
    assert same(model.answer(RECORDS), weaken(FULL, model.access))


def test_the_answers_that_were_given_stay_as_they_were():
    before = FULL.rank.copy()
    weaken(FULL, Access.LABEL)
    assert np.array_equal(FULL.rank, before)


def test_one_pass_serves_every_k():
    ranks = {k: weaken(FULL, Access.top(k)).rank for k in (1, 5, 200)}
    assert (ranks[1] > 0).sum() < (ranks[5] > 0).sum() < FULL.rows
    assert np.array_equal(ranks[200], FULL.rank)


def test_the_highest_of_several_least_probabilities_counts():
    model = limited(limited(MODEL, SHOWN, min_probability=0.2), SHOWN, min_probability=0.01)
    assert model.min_probability == 0.2
    assert np.nanmin(np.exp(model.answer(RECORDS).logprob)) >= 0.2


def test_logits_of_classes_are_shown_with_the_whole_distribution_only():
    classifier, record = Uniform(kind="classifier", vocabulary=4), Record(id="a", array=np.zeros(2), label=1)
    assert limited(classifier, Access.PROBABILITIES).answer([record]).logits is not None
    narrow = Access(k=None, logprob="any", distribution=False, steps=False)
    assert limited(classifier, narrow).answer([record]).logits is None


def test_a_least_probability_needs_probabilities():
    with refused("probabilities_unknown"):
        limited(limited(MODEL, Access.RANKS), Access.RANKS, min_probability=0.1)
    with refused("out_of_range"):
        limited(MODEL, Access.RANKS, min_probability=1)


def test_a_missing_fact_is_refused_with_audit_need_model_and_remedy():
    model = limited(Null(name="shop-bot"), Access.top(10))
    with refused("access_missing", AccessError) as refusal:
        require(Access.PROBABILITIES, model, audit="membership with signal 'loss'", instead="Use the provenance audit.")
    assert str(refusal.error) == (
        "membership with signal 'loss' needs the rank of every token and log-probabilities of any token and the "
        "whole predictive distribution (entropy, logprob_std); model 'shop-bot' outputs the top 10, no probabilities.\n"
        "  Use the provenance audit, or give a model that outputs the rank of every token and "
        "log-probabilities of any token and the whole predictive distribution (entropy, logprob_std)."
    )
    require(Access.LABEL, model, audit="provenance")
