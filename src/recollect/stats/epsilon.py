"""Lower bounds on ε that hold: how much privacy a model has certainly lost, at a stated confidence.

A bound of 0 means that nothing was shown, not that nothing is lost. Thresholds and numbers of guesses are fixed before
the scores that they are judged on are seen: taking the best of many makes a "5 %" bound fire in most leak-free runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from recollect.checks import check_at_least, check_between
from recollect.stats.groups import Floats, Group, ValuesLike, make_groups, require_one_value_per_user
from recollect.stats.intervals import Estimate, Interval
from recollect.stats.requirements import require_count
from recollect.stats.roc import roc_curve

MAX_EPSILON = 40.0
"""No bound is sought beyond this ε: exp(−40) is no longer told from 0."""


def epsilon_from_counts(
    *,
    true_positives: int,
    members: int,
    false_positives: int,
    non_members: int,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> Estimate:
    """The ε that an (ε, δ)-private model must exceed to give away so many members for so few false alarms.

    TPR ≤ exp(ε) FPR + δ, and the same for the complements, with Clopper–Pearson limits that hold together. The flags
    must come from a threshold chosen on other data, and the members and others from independent trainings; records of
    one model depend on each other, which `epsilon_from_one_run` allows for.

    >>> round(epsilon_from_counts(true_positives=90, members=100, false_positives=10, non_members=100).value, 2)
    1.54
    """
    _check_claim(delta, confidence)
    least = _compute_lower_bounds(
        np.array(true_positives), members, np.array(false_positives), non_members, delta, (1 - confidence) / 2
    )
    n = {
        "members": members,
        "others": non_members,
        "true_positives": true_positives,
        "false_positives": false_positives,
    }
    return _make_lower_bound(float(least), n, confidence, "Clopper–Pearson limits of both rates")


def epsilon_from_scores(
    members: ValuesLike,
    non_members: ValuesLike,
    *,
    rng: np.random.Generator,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> Estimate:
    """The same bound from scores: the threshold is chosen on one half of each side, and judged on the other.

    Each score must come from an independent training; every record has an owner of its own.

    >>> rng = np.random.default_rng(0)
    >>> estimate = epsilon_from_scores(rng.normal(3, 1, 200), rng.normal(0, 1, 200), rng=rng)
    >>> 1.5 < estimate.value < 4
    True
    """
    _check_claim(delta, confidence)
    tail = (1 - confidence) / 2
    # With fewer even a perfect separation would give no positive bound.
    needed = 2 * math.ceil(math.log(tail) / math.log(0.5))
    a, b = require_one_value_per_user(members, non_members, test="A lower bound on epsilon", least=needed)
    (selection_members, test_members), (selection_non_members, test_non_members) = (
        _split_in_half(a, rng),
        _split_in_half(b, rng),
    )
    threshold = _choose_threshold(selection_members, selection_non_members, delta, tail)
    return epsilon_from_counts(
        true_positives=int((test_members >= threshold).sum()),
        members=len(test_members),
        false_positives=int((test_non_members >= threshold).sum()),
        non_members=len(test_non_members),
        delta=delta,
        confidence=confidence,
    )


def epsilon_from_one_run(
    planted: ArrayLike,
    held_out: ArrayLike,
    *,
    guesses_per_side: int | None = None,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> Estimate:
    """The bound from canaries of one training, each of which was planted or left out by the toss of a fair coin.

    Steinke, Nasr & Jagielski 2023, "Privacy Auditing with One (1) Training Run": the highest scores are guessed to be
    planted, as many of the lowest to be left out; ties go against the auditor.

    >>> rng = np.random.default_rng(0)
    >>> 1 < epsilon_from_one_run(rng.normal(3, 1, 500), rng.normal(0, 1, 500)).value < 4
    True

    Args:
        planted: Scores of canaries that were planted; higher is more evidence of training.
        held_out: Scores of canaries that were drawn alike and left out.
        guesses_per_side: How many guesses of either kind, fixed beforehand; None for a tenth of the canaries.
        delta: The δ of the claim that is tested.
        confidence: How often the bound is right.
    """
    a, b = make_groups(planted, held_out)
    canaries = len(a) + len(b)
    guesses = canaries // 10 if guesses_per_side is None else guesses_per_side
    # With fewer even guesses that are all correct would give no positive bound.
    needed = math.ceil(math.log(1 - confidence) / math.log(0.5))
    require_count(2 * guesses, needed, of="guesses", purpose="A lower bound on epsilon", code="too_few_guesses")
    require_count(
        canaries, 2 * guesses, of="canaries", purpose=f"Guessing {2 * guesses} of them", code="too_few_canaries"
    )
    values, is_planted = np.concatenate([a.values, b.values]), np.arange(canaries) < len(a)
    highest = np.lexsort((is_planted, -values))[:guesses]
    lowest = np.lexsort((~is_planted, values))[:guesses]
    correct = int(is_planted[highest].sum() + (~is_planted[lowest]).sum())
    return epsilon_from_guesses(
        canaries=canaries, guesses=2 * guesses, correct=correct, delta=delta, confidence=confidence
    )


def epsilon_from_guesses(
    *, canaries: int, guesses: int, correct: int, delta: float = 0.0, confidence: float = 0.95
) -> Estimate:
    """The largest ε that so many correct guesses refute.

    >>> round(epsilon_from_guesses(canaries=1000, guesses=100, correct=75, delta=1e-4).value, 2)
    0.67
    """
    _check_claim(delta, confidence)
    least = _find_largest_refuted(
        lambda epsilon: (
            one_run_p(epsilon, canaries=canaries, guesses=guesses, correct=correct, delta=delta) <= 1 - confidence
        )
    )
    n = {"canaries": canaries, "guesses": guesses, "correct": correct}
    return _make_lower_bound(least, n, confidence, "one training run (Steinke et al. 2023)")


def one_run_p(epsilon: float, *, canaries: int, guesses: int, correct: int, delta: float = 0.0) -> float:
    """How likely so many correct guesses are, at most, if the training is (ε, δ)-private.

    Steinke et al. 2023, Corollary 5.4: P[B ≥ v] + 2 m δ max over i of P[v > B ≥ v − i] / i, where B counts successes in
    as many trials as there are guesses, each of probability 1 / (1 + exp(−ε)).

    >>> round(one_run_p(0.0, canaries=20, guesses=10, correct=8), 4)
    0.0547
    """
    steps = np.arange(correct + 1)
    reached = special.bdtrc(correct - steps - 1, guesses, special.expit(epsilon))
    reached = np.where(correct - steps <= 0, 1.0, reached)
    slack = np.max((reached[1:] - reached[0]) / steps[1:], initial=0.0)
    return float(min(1.0, reached[0] + 2 * canaries * delta * slack))


def _check_claim(delta: float, confidence: float) -> None:
    """Refuse settings that make no claim."""
    check_between(0, 1, confidence=confidence)
    check_at_least(0, delta=delta)


def _make_lower_bound(value: float, n: dict[str, int], confidence: float, method: str) -> Estimate:
    """A lower bound: an interval that is open above."""
    return Estimate(value=value, interval=Interval(value, math.inf, confidence), n=n, method=method)


def _compute_lower_bounds(
    true_positives: Floats, members: int, false_positives: Floats, non_members: int, delta: float, tail: float
) -> Floats:
    """The bound for each pair of counts, from limits that fail with probability `tail` each."""
    with np.errstate(divide="ignore", invalid="ignore"):
        true_positive_rate_low = np.where(
            true_positives > 0, special.betaincinv(true_positives, members - true_positives + 1, tail), 0.0
        )
        false_positive_rate_high = np.where(
            false_positives < non_members,
            special.betainccinv(false_positives + 1, non_members - false_positives, tail),
            1.0,
        )
        through_members = np.log(np.maximum(true_positive_rate_low - delta, 0) / false_positive_rate_high)
        through_others = np.log(np.maximum(1 - false_positive_rate_high - delta, 0) / (1 - true_positive_rate_low))
    return np.asarray(np.maximum(0, np.maximum(through_members, through_others)))


def _choose_threshold(members: Floats, non_members: Floats, delta: float, tail: float) -> float:
    """The threshold of the largest bound, put midway to the next score so that as good data pass it as well."""
    curve = roc_curve(members, non_members)
    true_positives, false_positives = np.rint(curve.tpr * len(members)), np.rint(curve.fpr * len(non_members))
    best = int(
        np.argmax(_compute_lower_bounds(true_positives, len(members), false_positives, len(non_members), delta, tail))
    )
    midway = float(curve.threshold[best : best + 2].mean())
    return midway if math.isfinite(midway) else float(curve.threshold[best])


def _split_in_half(group: Group, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The values of one side dealt into two halves."""
    dealt = rng.permutation(group.values)
    return dealt[: len(dealt) // 2], dealt[len(dealt) // 2 :]


def _find_largest_refuted(refuted: Callable[[float], bool]) -> float:
    """The largest ε that is refuted, by bisection from the safe side; 0 if none is."""
    low, high = 0.0, MAX_EPSILON
    if not refuted(low):
        return 0.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
