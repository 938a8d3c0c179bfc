"""The placebo: controls in the place of the audited, through the same pipeline; how often does the audit accuse them?

A plain division of the controls would always pass and prove nothing. So the controls that play the audited are first
cut to what the audited have: as many records, tokens and periods (`matching`). What then goes wrong with amounts, it
goes wrong here too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from recollect import labels
from recollect.audits.common.amounts import Amounts, Bools, Ints
from recollect.audits.common.guard_wording import AUDITED_AND_CONTROLS, Sides
from recollect.audits.common.matching import Matching
from recollect.results.result import Placebo
from recollect.stats.intervals import clopper_pearson
from recollect.stats.requirements import required_controls
from recollect.streams import stream

RUNS = 100
QUANTILE = 0.999
"""More alarms than this quantile of their null distribution, and the placebo fails."""
SIMULATIONS = 4000
"""Of the null distribution: many enough for its 99.9 % quantile."""
_CHUNK = 100
MIN_RUNS = 20
"""Fewer would prove nothing."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PlaceboRun:
    """Some controls in the place of the audited, and the other controls."""

    audited: Amounts
    """Of controls, cut to what the audited units have: of a piece the first `tokens` tokens."""
    controls: Amounts
    """All others, as they are."""


Decide = Callable[[PlaceboRun], bool]
"""Whether the audit would report "found" for the `audited` of a run: by the same matching, scores and tests."""
DecideAll = Callable[[Ints], Bools]
"""The same for all runs at once, from the stratum whose amounts each control is cut to, −1 if it does not play
[runs, controls]."""


def run_placebo(matching: Matching, decide: Decide, *, seed: int, alpha: float, runs: int = RUNS) -> Placebo:
    """How often the audit accuses controls that are cut to what the audited have, one run after another.

    Args:
        matching: Of the audited with the controls.
        decide: What the audit would say of one run; called `runs` times.
        seed: Of the run.
        alpha: The significance level of the audit.
        runs: How many times controls play the audited.
    """

    def decide_all(places: Ints) -> Bools:
        return np.array([decide(run) for run in build_placebo_runs(matching, places)], dtype=np.bool_)

    return run_placebos(matching, decide_all, seed=seed, alpha=alpha, runs=runs)


def run_placebos(
    matching: Matching,
    decide: DecideAll,
    *,
    seed: int,
    alpha: float,
    runs: int = RUNS,
    sides: Sides = AUDITED_AND_CONTROLS,
) -> Placebo:
    """How often the audit accuses controls that are cut to what the audited have.

    Runs share controls, so that their alarms are not independent; the null distribution of their number is simulated
    for the very same draws, with scores that are exchangeable.

    Args:
        matching: Of the audited with the controls.
        decide: What the audit would say of all runs.
        seed: Of the run.
        alpha: The significance level of the audit.
        runs: How many times controls play the audited.
        sides: What the audited and the controls are called.
    """
    refusal = _explain_too_few_players(matching, alpha, sides)
    if refusal is not None:
        return Placebo(status="not_run", reason=refusal)
    places = _draw_players(matching, seed, runs)
    if len(places) < MIN_RUNS:
        return Placebo(
            status="not_run",
            reason=f"Only {len(places)} draws of {sides[1]} could be cut to what the {sides[0]} have; {MIN_RUNS} are "
            f"needed. Give {sides[1]} with as many records, of the same lengths and periods.",
        )
    return judge_alarms(decide(places), places >= 0, seed=seed, alpha=alpha)


def judge_alarms(alarms: Bools, played: Bools, *, seed: int, alpha: float) -> Placebo:
    """Whether so many alarms of the placebo are more than a test of level α would give in these runs.

    The null distribution is that of the larger of two tests, of which every audit here has one or both: of the whole
    group, and of single units, corrected for their number.

    Args:
        alarms: Whether each run accused somebody.
        played: Which controls played the audited in each run [runs, controls].
        seed: Of the simulation.
        alpha: The significance level of a run.
    """
    counts = _simulate_alarms(played, seed=seed, alpha=alpha)
    limit = max(int(np.quantile(each, QUANTILE, method="higher")) for each in counts)
    # as many independent runs as would scatter as much
    scatter = max(float(np.var(each)) for each in counts)
    effective = float(np.clip(len(alarms) ** 2 * alpha * (1 - alpha) / max(scatter, 1e-9), 1, len(alarms)))
    rate = float(alarms.mean())
    interval = clopper_pearson(rate * effective, effective)
    failed = int(alarms.sum()) > limit
    reason = (
        f"At the significance level {alpha:g}, more than {limit / len(alarms):.1%} happens less than once in 1,000 "
        "times if the audit is right: on this data its false positives exceed the stated rate."
    )
    shared = f"Runs share controls, so that the interval counts them as {effective:.0f} independent ones."
    return Placebo(
        status="failed" if failed else "passed",
        reason=reason if failed else shared if effective < len(alarms) - 0.5 else None,
        false_positive_rate=rate,
        interval=(interval.low, interval.high),
        runs=len(alarms),
    )


def _explain_too_few_players(matching: Matching, alpha: float, sides: Sides) -> str | None:
    """Why there are too few controls for a placebo; None if there are enough."""
    controls, needed = len(matching.controls), required_controls(alpha) + 1
    if not matching.strata:
        return f"None of the {sides[1]} can be cut to what the {sides[0]} have."
    if controls >= needed + 1:
        return None
    return (
        f"With {controls:,} {sides[1]}, one of which plays the {sides[0]}, no p-value can reach {alpha:g}; at least "
        f"{needed + 1:,} are needed."
    )


def _draw_players(matching: Matching, seed: int, runs: int) -> Ints:
    """The stratum whose amounts each control of a placebo is cut to, −1 if it does not play [runs, controls].

    Runs in which nobody could play are left out.
    """
    rng = stream(seed, labels.STREAM_PLACEBO)
    usable = [matching.cut(stratum).usable for stratum in matching.strata]
    places = np.concatenate([np.full(len(stratum.members), i) for i, stratum in enumerate(matching.strata)])
    most = min(len(places), len(matching.controls) // 2)
    found = np.full((runs, len(matching.controls)), -1, dtype=np.int64)
    for row in found:
        wanted = np.bincount(rng.permutation(places)[:most], minlength=len(usable))
        _draw_players_of_run(rng, usable, wanted, row)
    return found[(found >= 0).any(axis=1)]


def _draw_players_of_run(rng: np.random.Generator, usable: Sequence[Ints], wanted: Ints, row: Ints) -> None:
    """Draw the controls of one run of a placebo for every stratum, nobody twice."""
    for i in sorted(range(len(usable)), key=lambda i: len(usable[i])):
        if wanted[i]:
            fitting = usable[i][row[usable[i]] < 0]
            row[rng.permutation(fitting)[: wanted[i]]] = i


def build_placebo_runs(matching: Matching, places: Ints) -> Iterator[PlaceboRun]:
    """The runs, one after another.

    Args:
        matching: Of the audited with the controls.
        places: The stratum whose amounts each control is cut to in each run, −1 if it does not play.
    """
    controls = matching.controls
    cuts = np.stack([matching.cut(stratum).controls for stratum in matching.strata])
    for row in places:
        place = row[controls.unit_of]
        playing = np.where(place >= 0, cuts[place, np.arange(len(place))], 0)
        yield PlaceboRun(
            audited=controls.select(playing), controls=controls.select(np.where(place < 0, controls.tokens, 0))
        )


def _simulate_alarms(played: Bools, *, seed: int, alpha: float) -> tuple[Ints, Ints]:
    """How many placebo runs would accuse somebody if scores were exchangeable: by group test, by single units.

    Only ranks matter to either test, so that any distribution of scores serves.
    """
    rng = stream(seed, labels.STREAM_PLACEBO, 1)
    controls, size = played.shape[1], played.sum(axis=1)
    weights = (played / size[:, None] - ~played / (controls - size)[:, None]).astype(np.float32)
    limits = -scipy.special.ndtri(alpha) * np.sqrt(1 / size + 1 / (controls - size))
    # a playing unit is named if no more than so many of all are before it
    places = np.floor(alpha * (1 + controls - size) / size).astype(np.int64)
    group, single = list[Ints](), list[Ints]()
    for _ in range(SIMULATIONS // _CHUNK):
        scores = rng.standard_normal((_CHUNK, controls), dtype=np.float32)
        group.append(np.count_nonzero(scores @ weights.T > limits, axis=1))
        single.append(_count_naming_runs(scores, played, places))
    return np.concatenate(group), np.concatenate(single)


def _count_naming_runs(scores: NDArray[np.float32], played: Bools, places: Ints) -> Ints:
    """In how many placebo runs a playing unit is among the best of all, for each draw of scores [draws].

    Args:
        scores: Of all controls, drawn several times [draws, controls].
        played: Which controls played the audited in each run [runs, controls].
        places: How many of the best count in each run; 0 where nobody can be named.
    """
    found = np.zeros(len(scores), dtype=np.int64)
    for place in np.unique(places[places > 0]).tolist():
        best = scores >= -np.partition(-scores, place - 1, axis=1)[:, place - 1 : place]
        playing = best.astype(np.float32) @ played[places == place].T.astype(np.float32)
        found += np.count_nonzero(playing, axis=1)
    return found
