"""Lower bounds on ε that hold: how much privacy a model has certainly lost, at a stated confidence.

A bound of 0 means that nothing was shown, not that nothing is lost. Thresholds and numbers of guesses are fixed before
the scores that they are judged on are seen: taking the best of many makes a "5 %" bound fire in most leak-free runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import scipy
from numpy.typing import ArrayLike

from recollect.checks import check_at_least, check_between
from recollect.stats.groups import Floats, Group, ValuesLike, make_groups, require_one_value_per_user
from recollect.stats.intervals import Estimate, Interval, lower_limit
from recollect.stats.requirements import require_count
from recollect.stats.roc import roc_curve

MAX_EPSILON = 40.0
"""No bound is sought beyond this ε: exp(−40) is no longer distinguished from 0."""
_GUESSED_SHARES = (0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5)
"""Shares of the canaries that may be guessed to be planted, and as many to be left out."""
_EM_STEPS = 60


def epsilon_from_counts(
    *,
    true_positives: int,
    members: int,
    false_positives: int,
    non_members: int,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> Estimate:
    """The ε that an (ε, δ)-private model must exceed to reveal so many members at so few false positives.

    TPR ≤ exp(ε) FPR + δ, and the same for the complements, with Clopper–Pearson limits that hold together. The flags
    must come from a threshold chosen on other data, and the members and others from independent trainings; records of
    one model depend on each other, which `epsilon_from_one_run` allows for.

    >>> round(epsilon_from_counts(true_positives=90, members=100, false_positives=10, non_members=100).value, 2)
    1.54
    """
    _check_epsilon_claim(delta, confidence)
    least = _compute_epsilon_bounds(
        np.array(true_positives), members, np.array(false_positives), non_members, delta, (1 - confidence) / 2
    )
    n = {
        "members": members,
        "others": non_members,
        "true_positives": true_positives,
        "false_positives": false_positives,
    }
    return _make_epsilon_bound(float(least), n, confidence, "Clopper–Pearson limits of both rates")


def epsilon_from_rates(
    counts: Sequence[tuple[int, int]],
    *,
    members: int,
    non_members: int,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> Estimate:
    """The largest of the bounds at several thresholds, each at a confidence level that pays for their number.

    Which threshold shows most is not known beforehand: at one false positive rate alone, up to 40 % of the bound is
    lost. The thresholds must be fixed on other data, as those of `epsilon_from_counts`.

    >>> one = epsilon_from_counts(true_positives=900, members=1000, false_positives=100, non_members=1000).value
    >>> several = epsilon_from_rates([(900, 100), (400, 1)], members=1000, non_members=1000)
    >>> one < several.value, several.n["thresholds"]
    (True, 2)

    Args:
        counts: True and false positives at each threshold.
        members: How many members were tested.
        non_members: How many non-members.
        delta: The δ of the claim that is tested.
        confidence: How often the bound is right.
    """
    _check_epsilon_claim(delta, confidence)
    require_count(len(counts), 1, of="thresholds", purpose="A lower bound on epsilon", code="too_few_thresholds")
    tail = (1 - confidence) / 2 / len(counts)
    true_positives, false_positives = np.array(counts).T
    bounds = _compute_epsilon_bounds(true_positives, members, false_positives, non_members, delta, tail)
    best = int(np.argmax(bounds))
    n = {"members": members, "others": non_members, "found": counts[best][0], "alarms": counts[best][1]}
    paid = f", Bonferroni over {len(counts)} thresholds" if len(counts) > 1 else ""
    method = f"Clopper–Pearson limits of both rates{paid}"
    return _make_epsilon_bound(float(bounds[best]), {**n, "thresholds": len(counts)}, confidence, method)


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
    _check_epsilon_claim(delta, confidence)
    tail = (1 - confidence) / 2
    # With fewer even a perfect separation would give no positive bound.
    needed = 2 * math.ceil(math.log(tail) / math.log(0.5))
    a, b = require_one_value_per_user(members, non_members, test="A lower bound on epsilon", least=needed)
    (selection_members, test_members), (selection_non_members, test_non_members) = (
        _split_scores_in_half(a, rng),
        _split_scores_in_half(b, rng),
    )
    threshold = _choose_epsilon_threshold(selection_members, selection_non_members, delta, tail)
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
    planted, as many of the lowest to be left out; ties go against the auditor. How many guesses pay is read off the
    scores alone, without looking at which canaries were planted: the bound holds for any guesses that are made from
    what the training gave out (their Theorem 5.2).

    >>> rng = np.random.default_rng(0)
    >>> 4 < epsilon_from_one_run(rng.normal(3, 1, 500), rng.normal(0, 1, 500)).value < 5
    True

    Args:
        planted: Scores of canaries that were planted; higher is more evidence of training.
        held_out: Scores of canaries that were drawn alike and left out.
        guesses_per_side: How many guesses of either kind, fixed beforehand; None for as many as the scores suggest.
        delta: The δ of the claim that is tested.
        confidence: How often the bound is right.
    """
    a, b = make_groups(planted, held_out)
    canaries = len(a) + len(b)
    # With fewer even guesses that are all correct would give no positive bound.
    needed = math.ceil(math.log(1 - confidence) / math.log(0.5))
    guesses = guesses_per_side
    if guesses is None:
        guesses = _choose_guesses(np.concatenate([a.values, b.values]), needed, confidence)
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
    _check_epsilon_claim(delta, confidence)
    least = _find_largest_refuted(
        lambda epsilon: (
            one_run_p(epsilon, canaries=canaries, guesses=guesses, correct=correct, delta=delta) <= 1 - confidence
        )
    )
    n = {"canaries": canaries, "guesses": guesses, "correct": correct}
    return _make_epsilon_bound(least, n, confidence, "one training run (Steinke et al. 2023)")


def one_run_p(epsilon: float, *, canaries: int, guesses: int, correct: int, delta: float = 0.0) -> float:
    """The probability of so many correct guesses, at most, if the training is (ε, δ)-private: for a bound on epsilon.

    Steinke et al. 2023, Corollary 5.4: P[B ≥ v] + 2 m δ max over i of P[v > B ≥ v − i] / i, where B counts successes in
    as many trials as there are guesses, each of probability 1 / (1 + exp(−ε)).

    >>> round(one_run_p(0.0, canaries=20, guesses=10, correct=8), 4)
    0.0547
    """
    steps = np.arange(correct + 1)
    reached = scipy.special.bdtrc(correct - steps - 1, guesses, scipy.special.expit(epsilon))
    reached = np.where(correct - steps <= 0, 1.0, reached)
    slack = np.max((reached[1:] - reached[0]) / steps[1:], initial=0.0)
    return float(min(1.0, reached[0] + 2 * canaries * delta * slack))


def _choose_guesses(values: Floats, needed: int, confidence: float) -> int:
    """How many guesses per side promise the largest bound on epsilon, from the scores of all canaries alone.

    The scores are taken for a mixture of two normal distributions of equal weight, as a fair coin makes it. If they
    are no such mixture, the number is not the best, and the bound holds all the same.
    """
    canaries = len(values)
    least, likely = math.ceil(needed / 2), np.concatenate([[0.0], np.cumsum(_estimate_membership(np.sort(values)))])
    best, most = max(least, canaries // 10), 0.5
    for share in _GUESSED_SHARES:
        guesses = max(least, round(share * canaries))
        if 2 * guesses > canaries:
            continue
        correct = (likely[-1] - likely[canaries - guesses]) + guesses - likely[guesses]
        promised = lower_limit(correct, 2 * guesses, tail=1 - confidence)
        if promised > most:
            best, most = guesses, promised
    return best


def _estimate_membership(values: Floats) -> Floats:
    """For a bound on epsilon: each canary's probability of being a member, from a mixture of two normals, by EM."""
    scale = float(values.std()) if len(values) else 0.0
    if not scale > 0:
        return np.full(len(values), 0.5)
    centre, width = np.quantile(values, [0.25, 0.75]), np.full(2, scale)
    for _ in range(_EM_STEPS):
        log_odds = np.diff(-np.square((values[:, None] - centre) / width) / 2 - np.log(width), axis=1)[:, 0]
        higher = scipy.special.expit(log_odds)
        weights = np.stack([1 - higher, higher], axis=1)
        total = np.maximum(weights.sum(axis=0), 1e-9)
        centre = weights.T @ values / total
        variance = (weights * np.square(values[:, None] - centre)).sum(axis=0) / total
        width = np.sqrt(variance) + 1e-3 * scale
    return np.asarray(higher)


def _check_epsilon_claim(delta: float, confidence: float) -> None:
    """Refuse settings that make no claim on ε."""
    check_between(0, 1, confidence=confidence)
    check_at_least(0, delta=delta)


def _make_epsilon_bound(value: float, n: dict[str, int], confidence: float, method: str) -> Estimate:
    """A lower bound on ε: an interval that is open above."""
    return Estimate(value=value, interval=Interval(value, math.inf, confidence), n=n, method=method)


def _compute_epsilon_bounds(
    true_positives: Floats, members: int, false_positives: Floats, non_members: int, delta: float, tail: float
) -> Floats:
    """The bound on ε for each pair of counts, from limits that fail with probability `tail` each."""
    with np.errstate(divide="ignore", invalid="ignore"):
        true_positive_rate_low = np.where(
            true_positives > 0, scipy.special.betaincinv(true_positives, members - true_positives + 1, tail), 0.0
        )
        false_positive_rate_high = np.where(
            false_positives < non_members,
            scipy.special.betainccinv(false_positives + 1, non_members - false_positives, tail),
            1.0,
        )
        through_members = np.log(np.maximum(true_positive_rate_low - delta, 0) / false_positive_rate_high)
        through_others = np.log(np.maximum(1 - false_positive_rate_high - delta, 0) / (1 - true_positive_rate_low))
    return np.asarray(np.maximum(0, np.maximum(through_members, through_others)))


def _choose_epsilon_threshold(members: Floats, non_members: Floats, delta: float, tail: float) -> float:
    """The threshold of the largest bound on ε, put midway to the next score so that as good data pass it as well."""
    curve = roc_curve(members, non_members)
    true_positives, false_positives = np.rint(curve.tpr * len(members)), np.rint(curve.fpr * len(non_members))
    best = int(
        np.argmax(_compute_epsilon_bounds(true_positives, len(members), false_positives, len(non_members), delta, tail))
    )
    midway = float(curve.threshold[best : best + 2].mean())
    return midway if math.isfinite(midway) else float(curve.threshold[best])


def _split_scores_in_half(group: Group, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The scores of one side dealt into two halves: one chooses the threshold of a bound on ε, one judges it."""
    dealt = rng.permutation(group.values)
    return dealt[: len(dealt) // 2], dealt[len(dealt) // 2 :]


def _find_largest_refuted(refuted: Callable[[float], bool]) -> float:
    """The largest epsilon that is refuted, by bisection from the safe side; 0 if none is."""
    low, high = 0.0, MAX_EPSILON
    if not refuted(low):
        return 0.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
