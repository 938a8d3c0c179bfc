"""The guard: are the audited like the controls in all that can be seen without the model?

If they are not, a score may differ because the data do, and no test of scores means anything. One permutation test over
all covariates together (Westfall & Young 1993, single-step max-T): exact for any number of audited users, one included,
because left-out controls in the place of the audited give the null distribution.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from recollect import labels
from recollect.audits.common.amounts import compare_dated_shares
from recollect.audits.common.blind_baseline import compare_aucs, fit_blind
from recollect.audits.common.covariates import Covariates, Unit, measure_covariates, standardise
from recollect.audits.common.guard_wording import (
    AUDITED_AND_CONTROLS,
    MEMBERS_AND_NON_MEMBERS,
    Sides,
    describe_check,
    explain_missing_times,
    summarise_guard,
)
from recollect.audits.common.matched_records import MatchedUnits, cut_matched_records
from recollect.audits.common.matching import Matching
from recollect.audits.common.outcomes import NOT_COMPARABLE
from recollect.audits.common.result_builder import ResultBuilder
from recollect.corpora.record import Record
from recollect.corpora.times import Period
from recollect.errors import NotEnoughData
from recollect.results.result import Guard, GuardCheck
from recollect.signals.scores import Floats, Scores
from recollect.stats.intervals import Estimate
from recollect.stats.requirements import require_count
from recollect.streams import stream

ALPHA = 0.05
"""How often a comparable pair of sides is called not comparable, over all covariates together."""
DRAWS = 999
MAX_UNITS = 1000
"""Of each side: enough to see any difference that matters."""
_MATCHED = ("records", "length")
_OF_MAXIMA = ("repetition",)
"""Covariates that matter only to a score that is a maximum over what a unit wrote."""
_CHECKS = {"period": "date"}
"""Covariates that are told under the name of another."""
By = Literal["record", "user"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparability:
    """How the audited compare with the controls, before and without any score of a model."""

    guard: Guard
    blind_auc: Estimate | NotEnoughData
    """How well a classifier that never saw the model separates them, on held-out units; or why that is not known."""
    blind_p: float
    """The p-value of "it separates them no better than any other division of the same units"."""
    blind: Mapping[tuple[bool, str], float]
    """The held-out score of each unit, by whether it is audited and by name; empty where there is none."""
    smallest_p: float
    """The smallest p-value that any difference could have given."""
    dated: tuple[float, float]
    """The share of the records of each side that have a time."""
    periods_compared: bool
    """Whether times are known alike on both sides; where mostly one side lacks them, only those known are compared."""
    datable: bool = True
    """Whether the records could have times; arrays, such as images, have none."""
    sides: Sides = AUDITED_AND_CONTROLS
    """What the two sides are called."""

    @property
    def comparable(self) -> bool:
        """Whether nothing speaks against the comparison."""
        return self.guard.comparable

    @cached_property
    def reason(self) -> str:
        """In which respects they differ, and what controls would do; one or two sentences."""
        return summarise_guard(self.guard, self.sides)


def check_comparable(
    audited: Iterable[Record],
    controls: Iterable[Record],
    *,
    by: By,
    seed: int,
    period: Period = "month",
    sides: Sides = AUDITED_AND_CONTROLS,
) -> Comparability:
    """The guard: are the audited like the controls in records per user, length, dates, words, vocabulary, style?

    The units are users (in a corpus without users, and where a user has records on both sides: records). Where the two
    sides are exchangeable, they are called not comparable in at most 5 % of runs, whatever the number of users, the
    scatter of their amounts, and however many covariates there are.

    Args:
        audited: Records of one side; where amounts are matched, as they are compared.
        controls: Records of the other side, likewise.
        by: What is audited; the number of records per user matters only if users are.
        seed: For the draws of the permutation test.
        period: The calendar period by which dates are compared, where both sides have times.
        sides: What the two sides are called in sentences, such as "members" and "non-members".
    """
    listed = list(audited), list(controls)
    owners = [{record.owner for record in side} for side in listed]
    by_record = bool(owners[0] & owners[1])
    one, other = (_group_guarded_records(side, by_record=by_record) for side in listed)
    skipped = ("records", *_OF_MAXIMA) if by == "record" else _OF_MAXIMA
    plan = _Plan(period=period, skipped=skipped, sides=sides)
    return _check_strata([MatchedUnits(audited=one, controls=other)], seed, plan)


def check_matched(
    matching: Matching,
    audited: Iterable[Record],
    controls: Iterable[Record],
    *,
    seed: int,
    period: Period = "month",
    sides: Sides = AUDITED_AND_CONTROLS,
) -> Comparability:
    """The guard after matching: what is compared are the records as the matching cuts them, in strata.

    Numbers of records and lengths are matched, so only dates, words, writing and labels are tested. A control that
    is in several strata is used in one of them, so that the test stays exact.

    Args:
        matching: Who is compared with whom.
        audited: The audited records.
        controls: The controls.
        seed: For the draws and for the choice of strata.
        period: The calendar period by which dates are compared, where both sides have times.
        sides: What the two sides are called in sentences.
    """
    strata = cut_matched_records(matching, audited, controls)
    return _check_strata(strata, seed, _Plan(period=period, skipped=(*_MATCHED, *_OF_MAXIMA), sides=sides))


def check_matched_maxima(
    matching: Matching, audited: Iterable[Record], controls: Iterable[Record], *, seed: int, period: Period = "month"
) -> Comparability:
    """The guard after matching where a score is a maximum over what a unit wrote: how much it repeats counts as well.

    The largest of eight variants of one text is hardly larger than one of them; of eight different texts it is.

    Args:
        matching: Who is compared with whom.
        audited: The audited records.
        controls: The controls.
        seed: For the draws and for the choice of strata.
        period: The calendar period by which dates are compared, where both sides have times.
    """
    strata = cut_matched_records(matching, audited, controls)
    return _check_strata(strata, seed, _Plan(period=period, skipped=_MATCHED, sides=AUDITED_AND_CONTROLS))


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """What is compared, and how it is called."""

    period: Period
    skipped: Sequence[str]
    """Covariates that are not tested."""
    sides: Sides


def _check_strata(strata: Sequence[MatchedUnits], seed: int, plan: _Plan) -> Comparability:
    """All checks of the guard, of units that are compared within strata."""
    units = _choose_guarded_units(strata, seed)
    _require_guarded_units(units)
    shares = [
        np.array([_measure_dated_share(each) for each in units if each.audited is side]) for side in (True, False)
    ]
    timed = all(each.any() for each in shares)
    covariates = measure_covariates(units, period=plan.period if timed else None)
    labelled = _draw_guard_labels(units, seed)
    blind = fit_blind(covariates, units, labelled)
    return Comparability(
        guard=_test_guard_covariates(covariates, units, labelled, blind.aucs, plan),
        blind_auc=blind.auc,
        blind_p=float(np.mean(blind.aucs >= blind.aucs[0] - 1e-12)),
        blind=blind.scores,
        smallest_p=1 / len(labelled),
        dated=(float(shares[0].mean()), float(shares[1].mean())),
        periods_compared=timed and compare_dated_shares(shares[0], shares[1]),
        datable=any(record.array is None for unit in units for record in unit.records),
        sides=plan.sides,
    )


def explains_scores(found: Comparability, audited: Scores, controls: Scores, *, alpha: float = ALPHA) -> bool:
    """The guard's last check: do the texts alone explain as much as the scores? Then these are no evidence.

    They do if the blind baseline separates the two sides significantly, and the scores do not separate the same units
    significantly better (paired test of the two AUCs, DeLong et al. 1988). Both are measured on held-out units.

    Args:
        found: What the guard found.
        audited: The model's scores of the audited.
        controls: Those of the controls.
        alpha: The significance level of both tests.
    """
    if not found.blind or found.blind_p > alpha:
        return False
    means = {side: _average_guarded_scores(scores, found) for side, scores in ((True, audited), (False, controls))}
    known = [(side, name) for side, name in found.blind if name in means[side]]
    values = np.array([means[side][name] for side, name in known])
    blind = np.array([found.blind[key] for key in known])
    return compare_aucs(values, blind, [side for side, _ in known]) > alpha


def add_guard(builder: ResultBuilder, found: Comparability, *, withheld: Iterable[str] = ()) -> None:
    """Write the guard into a result: its checks, `blind_auc`, a note on periods; and withhold what means nothing.

    Args:
        builder: Of the result.
        found: What the guard found.
        withheld: Findings that mean nothing if the two sides are not comparable, such as p-values.
    """
    builder.guard = found.guard
    if isinstance(found.blind_auc, NotEnoughData):
        builder.refuse("blind_auc", found.blind_auc)
    else:
        estimate = replace(found.blind_auc, n=_name_counts(found.blind_auc.n, found.sides))
        builder.try_estimate(
            "blind_auc",
            lambda: estimate,
            unit="probability",
            reading=f"How well a classifier that never saw the model separates the {found.sides[0]} from the "
            f"{found.sides[1]} by their content alone (p = {found.blind_p:.2g}). About 0.5 or less if they are "
            "comparable: on users whom it was not fitted to, a classifier with nothing to learn often does worse than "
            "guessing.",
        )
    if found.datable and not found.periods_compared:
        builder.note("periods_not_compared", explain_missing_times(found.dated, found.sides))
    if not found.comparable:
        builder.withhold(*withheld, code=NOT_COMPARABLE, reason=found.reason)


def _name_counts(counts: Mapping[str, int], sides: Sides) -> dict[str, int]:
    """What the guard's blind baseline counted, in the words of the two sides."""
    names = {"audited_users": "member_users", "control_users": "non_member_users"}
    return {names[name] if sides == MEMBERS_AND_NON_MEMBERS else name: n for name, n in counts.items()}


def _measure_dated_share(unit: Unit) -> float:
    """The share of the records of a unit that the guard compares that have a time."""
    return sum(record.time is not None for record in unit.records) / len(unit.records)


def _group_guarded_records(records: Iterable[Record], *, by_record: bool) -> dict[str, list[Record]]:
    """The records of each unit that the guard compares."""
    grouped = dict[str, list[Record]]()
    for record in records:
        grouped.setdefault(record.id if by_record else record.owner, []).append(record)
    return grouped


def _choose_guarded_units(strata: Sequence[MatchedUnits], seed: int) -> list[Unit]:
    """The units that the guard compares, each in one stratum: controls where they are scarce; at most `MAX_UNITS`."""
    rng = stream(seed, *labels.STREAM_GUARD_UNITS)
    sizes = [len(each.audited) for each in strata]
    audited = [(name, i) for i, each in enumerate(strata) for name in sorted(each.audited)]
    places = dict[str, list[int]]()
    for i, each in enumerate(strata):
        for name in each.controls:
            places.setdefault(name, []).append(i)
    wanted = [len(places) * size / max(1, sum(sizes)) for size in sizes]
    names, taken, controls = sorted(places), np.zeros(len(strata)), list[tuple[str, int]]()
    for name in (names[i] for i in rng.permutation(len(names))):
        # where it loses least: short texts are unlike the beginnings of long ones; but some in every stratum
        chosen = min(places[name], key=lambda i: 1 - strata[i].kept.get(name, 1.0) + taken[i] / max(1, wanted[i]))
        taken[chosen] += 1
        controls.append((name, chosen))
    kept = [audited[i] for i in sorted(rng.permutation(len(audited))[:MAX_UNITS])]
    return [
        *(Unit(name=name, records=_sort_records(strata[i].audited[name]), audited=True, stratum=i) for name, i in kept),
        *(
            Unit(name=name, records=_sort_records(strata[i].controls[name]), audited=False, stratum=i)
            for name, i in sorted(controls[:MAX_UNITS])
        ),
    ]


def _sort_records(records: Iterable[Record]) -> list[Record]:
    """The records of a unit that the guard compares in one order, so that sums have the same last digits."""
    return sorted(records, key=lambda record: record.id)


def _require_guarded_units(units: Sequence[Unit]) -> None:
    """Refuse units that the guard cannot compare at all."""
    audited = sum(unit.audited for unit in units)
    require_count(audited, 1, of="audited", purpose="The check of comparability", code="too_few_records")
    require_count(len(units) - audited, 2, of="controls", purpose="The check of comparability", code="too_few_controls")


def _draw_guard_labels(units: Sequence[Unit], seed: int) -> Floats:
    """Who is audited for the guard, first as it is and then dealt out anew within strata [rows, units].

    One audited unit changes places with each control in turn, which is all that can happen.
    """
    audited = np.array([unit.audited for unit in units])
    strata = np.array([unit.stratum for unit in units])
    if audited.sum() == 1:
        places = np.flatnonzero(strata == strata[audited][0])
        rows = np.zeros((len(places), len(units)))
        rows[np.arange(len(places)), np.concatenate([np.flatnonzero(audited), places[~audited[places]]])] = 1
        return rows
    rng = stream(seed, *labels.STREAM_GUARD_LABELS)
    rows = np.tile(audited.astype(np.float64), (DRAWS + 1, 1))
    for stratum in np.unique(strata):
        inside = np.flatnonzero(strata == stratum)
        rows[1:, inside] = rng.permuted(rows[1:, inside], axis=1)
    return rows


def _weigh_guarded_units(labelled: Floats, units: Sequence[Unit]) -> Floats:
    """The weights by which the guard's units enter the difference audited − controls, by labels [rows, units]."""
    weights = labelled / labelled.sum(axis=1, keepdims=True)
    strata = np.array([unit.stratum for unit in units])
    for stratum in np.unique(strata):
        inside = strata == stratum
        here = labelled[:, inside]
        controls = (1 - here).sum(axis=1, keepdims=True)
        share = weights[:, inside].sum(axis=1, keepdims=True)
        weights[:, inside] -= (1 - here) * share / np.maximum(1, controls)
        # without controls in its stratum a unit says nothing
        weights[:, inside] *= controls > 0
    return np.asarray(weights)


def _test_guard_covariates(
    covariates: Covariates, units: Sequence[Unit], labelled: Floats, aucs: Floats, plan: _Plan
) -> Guard:
    """The guard's test of all covariates at once: the largest standardised difference against those of other labels."""
    weights = _weigh_guarded_units(labelled, units)
    standard = {
        **{name: standardise(np.abs(weights @ values), values) for name, values in covariates.scalars.items()},
        **{
            name: standardise(np.einsum("ij,ij->i", weights @ kernel, weights), np.diag(kernel))
            for name, kernel in covariates.kernels.items()
        },
        "separability": standardise(aucs, aucs),
    }
    checks = dict[str, Floats]()
    for name, values in standard.items():
        if name in plan.skipped or (name == "separability" and aucs.std() == 0):
            continue
        shared = _CHECKS.get(name, name)
        checks[shared] = np.maximum(checks[shared], values) if shared in checks else values
    largest = np.max(list(checks.values()), axis=0)
    audited = labelled[0] > 0
    shown = {**covariates.scalars, **covariates.shown}
    means = {name: (float(each[audited].mean()), float(each[~audited].mean())) for name, each in shown.items()}
    built = [_build_guard_check(name, values, largest, means.get(name), plan.sides) for name, values in checks.items()]
    return Guard(sides=plan.sides, comparable=all(check.comparable for check in built), checks=tuple(built))


def _build_guard_check(
    name: str, values: Floats, largest: Floats, means: tuple[float, float] | None, sides: Sides
) -> GuardCheck:
    """One check of the guard, of one covariate; its p-value is corrected for all of them."""
    p = float(np.mean(largest >= values[0] - 1e-9))
    comparable = p > ALPHA
    return GuardCheck(
        name=name,
        p_value=p,
        effect=float(values[0]),
        comparable=comparable,
        text=describe_check(name, means, sides, comparable=comparable),
    )


def _average_guarded_scores(scores: Scores, found: Comparability) -> dict[str, float]:
    """The mean score of each unit that the guard compares."""
    names = {name for _, name in found.blind}
    chosen = scores if names.intersection(scores.records) else scores.average_by_user()
    return dict(zip(chosen.records, chosen.values.tolist(), strict=True))
