"""The results of the removal audit: findings, notes and tables of each method."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from recollect.audits.common.outcomes import EXPLAINED_BY_TEXTS, PLACEBO_FAILED
from recollect.audits.common.result_builder import ResultBuilder
from recollect.audits.removal.calibrated import SetEvidence, UserEvidence
from recollect.audits.removal.decisions import (
    DECISIONS,
    DIFFICULTY_DIFFERS,
    OUTCOMES,
    WITHHELD,
    Decision,
    decide_ema,
    decide_ks,
    decide_set,
    decide_users,
    decide_users_outcome,
    find_inconclusive_code,
    find_undecided_code,
)
from recollect.audits.removal.difficulty import DifficultyShift
from recollect.audits.removal.ema import Votes
from recollect.audits.removal.ks import Ratio
from recollect.audits.removal.mixture import Mixture, fits_no_share
from recollect.audits.removal.neighbours import Neighbours
from recollect.audits.removal.safeguards import (
    NO_PLACEBO_AS_PUBLISHED,
    NO_PLACEBO_OF_PEOPLE,
    add_guard_of_removal,
    state_power,
)
from recollect.audits.removal.verdict import (
    NEEDED,
    build_ema_verdict,
    build_ks_verdict,
    build_set_verdict,
    build_user_verdict,
)
from recollect.corpora.cohorts import Unit
from recollect.errors import NotEnoughData
from recollect.files.arrow_tables import build_array, build_table
from recollect.results.result import Finding, Placebo, Result
from recollect.stats.auc import auc
from recollect.stats.significance import holm

if TYPE_CHECKING:
    from recollect.audits.removal.audit import RemovalAudit


UNTESTED_MEMBERS: Final = (
    "Member scores are known from calibration models alone: the target is assumed to memorise its training set about "
    "as strongly. Had it been trained far less than the recipe says, a set that is still in could be called gone."
)
"""Where there are calibration models."""
UNTESTED: Final = (
    "Only the outputs were tested, not what the weights may contain beyond them.",
    "Controls are assumed to be non-members: a control that was in the training set makes the set look removed.",
)
UNTESTED_AS_PUBLISHED: Final = (
    "This is the published method, with its known limitations: EMA cannot reject for small sets and calls a set "
    "removed as soon as a few of its records are hard; KS measures how similar two models are. `calibrated` controls "
    "its error rates.",
)
NO_INTERVAL_OF_POWER: Final = "It is computed from the rates, whose intervals are given."
NO_INTERVAL_OF_COUNT: Final = "It is a count of decisions, each corrected for all others."
NO_INTERVAL_AS_PUBLISHED: Final = "The paper gives a score without an interval."
TARGET_DAMAGED: Final = (
    "The target is far less confident in non-members than calibration models are, or equally confident in all records: "
    "it was damaged as a whole, or trained differently. The set is not called gone."
)
NO_SHARE_FITS: Final = (
    "No share still in explains the target's confidence in the set: it is lower than in non-members, or higher than "
    "that of calibration models in their members. The share given is the nearest one; its interval has no width "
    "because every other share fits even worse, not because the estimate is precise."
)
READINGS: Final[Mapping[Decision, str]] = {
    "still there": "People whose records are still in the model; the probability that anybody is wrongly among them is "
    "at most {level}.",
    "gone": "People whose records are gone; the probability that anybody is wrongly among them is at most {level}.",
    "over-unlearned": "People in whose records the model is less confident than in non-members, which reveals that "
    "they were in the training set; the probability that anybody is wrongly among them is at most {level}.",
    "inconclusive": "People about whom no decision can be made from this data.",
}
"""The reading of a count of people, by the decision about them."""
_DAMAGED = NotEnoughData(
    "The target is damaged as a whole, and calibration models do not show how it would score its members.",
    do="Compare it with a model that was retrained.",
    code="target_damaged",
)


def build_set_result(audit: RemovalAudit, evidence: SetEvidence) -> Result:
    """The result of removal by the method `calibrated` for a whole set."""
    builder, decision = ResultBuilder(audit), decide_set(evidence)
    code = find_inconclusive_code(evidence) if decision == "inconclusive" else None
    _note_neighbours(builder, evidence.neighbours)
    _add_set_findings(builder, evidence, audit)
    builder.placebo = evidence.placebo
    add_guard_of_removal(builder, evidence.comparability, evidence.neighbours, withheld=WITHHELD)
    if evidence.target_damaged:
        builder.note("target_damaged", TARGET_DAMAGED)
    mixture = evidence.share_mixture
    if mixture is not None:
        builder.power = state_power(mixture)
        if fits_no_share(mixture, audit.confidence):
            builder.note("no_share_fits", NO_SHARE_FITS)
    builder.dropped |= evidence.scores.dropped
    builder.tables |= _build_set_tables(evidence)
    if code in (EXPLAINED_BY_TEXTS, PLACEBO_FAILED):
        builder.withhold(*WITHHELD, code=code, reason=_state_reason(NEEDED[code]))
    return builder.build(
        verdict=build_set_verdict(decision, evidence, confidence=audit.confidence),
        outcome=OUTCOMES[decision],
        code=code,
        untested=UNTESTED if evidence.mixture is None else (UNTESTED_MEMBERS, *UNTESTED),
        settings={**audit.settings, "decision": decision},
    )


def _state_reason(clause: str) -> str:
    """Why findings of a removal result are withheld: a clause of its verdict as a sentence."""
    return f"{clause[0].upper()}{clause[1:]}."


def build_user_result(audit: RemovalAudit, evidence: UserEvidence) -> Result:
    """The result of removal by the method `calibrated` for every person."""
    builder, scores, decisions = ResultBuilder(audit), evidence.scores, decide_users(evidence)
    damaged = scores.is_target_damaged()
    if damaged:
        builder.note(
            "target_damaged", "The target was damaged as a whole, or trained differently: nobody is called gone."
        )
    controls, people, needed = len(scores.controls), len(scores.audited), evidence.needed_controls
    if evidence.atypical.any():
        builder.note(
            "users_not_compared",
            f"{int(evidence.atypical.sum()):,} of {people:,} people have fewer, shorter or longer records than most "
            "control users, and are not decided about, because too few controls have as much; more of these would let "
            "them be.",
        )
    if controls < needed:
        nobody = "nobody" if people == 1 else f"none of {people:,} people"
        text = (
            f"With {controls:,} control users {nobody} can be called still "
            f"there at a significance level of {audit.level:g} after correction; {needed:,} would be enough."
        )
        builder.note("too_few_controls_to_identify", text)
    for decision in DECISIONS:
        builder.findings.append(
            Finding(
                name=f"users_{decision.replace(' ', '_').replace('-', '_')}",
                value=int((decisions == decision).sum()),
                why_no_interval=NO_INTERVAL_OF_COUNT,
                unit="users",
                n={"users": people, "control_users": controls},
                method="conformal p-values against control users and member users, Holm",
                reading=READINGS[decision].format(level=f"{audit.level:g}"),
            )
        )
    # at last, so that what means nothing is taken back
    counts = [finding.name for finding in builder.findings]
    add_guard_of_removal(builder, evidence.comparability, None, withheld=counts)
    builder.placebo = Placebo(status="not_run", reason=NO_PLACEBO_OF_PEOPLE)
    corrected = {f"{name}_corrected": holm(p) for name, p in evidence.p_values.items()}
    users = evidence.audited.to_table()
    for name, p in {**evidence.p_values, **corrected}.items():
        values = p.tolist() if evidence.comparable else [None] * people
        users = users.append_column(name, build_array(values, pa.float64()))
    builder.tables |= {
        "users": users.append_column("decision", build_array(decisions)),
        "controls": evidence.controls.to_table(),
    }
    builder.dropped |= scores.dropped
    outcome = decide_users_outcome(decisions)
    return builder.build(
        verdict=build_user_verdict(decisions, evidence.difference),
        outcome=outcome,
        code=None if outcome != "inconclusive" else find_undecided_code(evidence),
        untested=(UNTESTED_MEMBERS, *UNTESTED),
        settings=audit.settings,
    )


def build_ema_result(audit: RemovalAudit, votes: Votes, rho: float) -> Result:
    """The result of removal by the method `ema`."""
    builder, outcome = ResultBuilder(audit), decide_ema(rho, audit.level)
    memorised, size = votes.memorised, len(votes.records)
    n = {"audited": size, "members": votes.members, "others": votes.others}
    method = f"EMA, {audit.test}-test, {audit.thresholds} thresholds"
    reading = "The p-value of the votes being all ones; at most α is read as removed. It is no error rate."
    _add_published_score(builder, "rho_ema", rho, n=n, method=method, reading=reading)
    reading = "The share of the audited records that pass at least one threshold."
    share = float(memorised.mean())
    _add_published_score(
        builder, "memorised", share, n=n, method="any of three metrics passes its threshold", reading=reading
    )
    columns = {"record": build_array(votes.records, pa.string()), **votes.values}
    passed = {f"{name}_passed": flags for name, flags in votes.by_metric.items()}
    thresholds = [found.everyone for found in votes.thresholds.values()]
    builder.tables |= {
        "votes": build_table({**columns, **passed, "memorised": memorised}),
        "thresholds": build_table({"metric": list(votes.thresholds), "threshold": thresholds}),
    }
    builder.placebo = Placebo(status="not_run", reason=NO_PLACEBO_AS_PUBLISHED)
    verdict = build_ema_verdict(size, rho, outcome)
    return builder.build(verdict=verdict, outcome=outcome, untested=UNTESTED_AS_PUBLISHED, settings=audit.settings)


def build_ks_result(audit: RemovalAudit, ratio: Ratio) -> Result:
    """The result of removal by the method `ks`."""
    builder, outcome = ResultBuilder(audit), decide_ks(ratio.rho)
    method, reading = "ratio of Kolmogorov–Smirnov distances", "At least 1 is read as forgotten. It is no error rate."
    _add_published_score(builder, "rho_ks", ratio.rho, n={"audited": ratio.size}, method=method, reading=reading)
    builder.placebo = Placebo(status="not_run", reason=NO_PLACEBO_AS_PUBLISHED)
    verdict = build_ks_verdict(ratio.size, ratio.rho, outcome)
    return builder.build(verdict=verdict, outcome=outcome, untested=UNTESTED_AS_PUBLISHED, settings=audit.settings)


def _add_published_score(
    builder: ResultBuilder, name: str, value: float, *, n: Mapping[str, int], method: str, reading: str
) -> None:
    """The finding of the score of a published method, EMA or KS."""
    builder.findings.append(
        Finding(
            name=name,
            value=value,
            why_no_interval=NO_INTERVAL_AS_PUBLISHED,
            unit="score",
            n=dict(n),
            method=method,
            reading=reading,
        )
    )


def _note_neighbours(builder: ResultBuilder, neighbours: Neighbours | None) -> None:
    """Note in a removal result how many records have no neighbours."""
    if neighbours is None:
        return
    if far := int(neighbours.far.sum()):
        text = (
            f"{far:,} of {len(neighbours.far):,} audited records are unlike any control and are not compared with one."
        )
        builder.note("unlike_any_control", text)


def _add_set_findings(builder: ResultBuilder, evidence: SetEvidence, audit: RemovalAudit) -> None:
    """The findings of a set: how much is still in, p-values, power of both decisions, and the means behind them."""
    mixture, difficulty = evidence.mixture, evidence.difficulty
    if evidence.target_damaged:
        builder.refuse("fraction_still_in", _DAMAGED)
    elif difficulty is not None and difficulty.differs:
        builder.refuse("fraction_still_in", _refuse_difficulty(difficulty))
    elif (share_mixture := evidence.share_mixture) is not None:
        builder.try_estimate(
            "fraction_still_in",
            lambda: share_mixture.estimate_share(audit.confidence),
            unit="share",
            reading=f"The share of the audited {evidence.unit}s that the model still shows; 0 if all were removed.",
        )
    _add_removal_tests(builder, evidence)
    if mixture is not None:
        decides_gone = evidence.gone_mixture or mixture
        _add_mixture_findings(builder, mixture, decides_gone, unit=evidence.unit, confidence=audit.confidence)
    builder.try_estimate(
        "auc_against_controls",
        lambda: auc(evidence.audited, evidence.controls, confidence=audit.confidence),
        unit="probability",
        reading=f"How often an audited {evidence.unit} looks more like a member than a control does; 0.5 if both are "
        "comparable non-members, less if the model was trained to avoid the set.",
    )


def _refuse_difficulty(difficulty: DifficultyShift) -> NotEnoughData:
    """Why no share still in is estimated for records that are easier or harder than the controls like them."""
    how, what = (
        ("harder", "over-unlearned, and gone only by what members score")
        if difficulty.harder
        else ("easier", "still there")
    )
    return NotEnoughData(
        f"For models that were not trained on them, the audited records are {how} than the controls nearest to them "
        f"would be: they cannot be called {what}.",
        do="Give controls that are as hard as the audited records.",
        code=DIFFICULTY_DIFFERS,
    )


def _add_removal_tests(builder: ResultBuilder, evidence: SetEvidence) -> None:
    """The findings of the p-values of both ways to accuse a set; they share α."""
    if evidence.neighbours is not None and evidence.neighbours.far.all():
        return
    n = {"audited": len(evidence.audited), "controls": len(evidence.controls)}
    method = (
        "permutation of means" if evidence.neighbours is None else "t-test against the controls nearest to each record"
    )
    for name, value, looks in (
        ("p_still_there", evidence.p_still_there, "so well known"),
        ("p_over_unlearned", evidence.p_over_unlearned, "so unknown"),
    ):
        reading = (
            f"How often a set of non-members would look {looks}; corrected for the two directions that are tested."
        )
        builder.add_p_value(name, value, n=n, method=f"{method}, corrected for two directions", reading=reading)


def _add_mixture_findings(
    builder: ResultBuilder, mixture: Mixture, decides_gone: Mixture, *, unit: Unit, confidence: float
) -> None:
    """The findings from the means of member probabilities.

    Args:
        builder: Collects them.
        mixture: The means of the audited, of non-members like them, and of members.
        decides_gone: The mixture that decides "gone", whose p-values are told.
        unit: What is compared.
        confidence: The confidence level.
    """
    n = {"audited": mixture.size, "members": int(mixture.members.size), "non_members": int(mixture.unseen.size)}
    for name, value, truth in (
        ("p_gone", decides_gone.p_gone, f"of which {mixture.tolerance:.0%} or more is in"),
        ("p_all_in", decides_gone.p_all_in, "that is wholly in"),
    ):
        reading = f"How often a set {truth} would look so unknown."
        builder.add_p_value(name, value, n=n, method="mixture of means, MOVER of t-intervals", reading=reading)
    still, gone = mixture.compute_power()
    for name, value, truth in (("power_still_there", still, "still there"), ("power_gone", gone, "gone")):
        builder.findings.append(
            Finding(
                name=name,
                value=value,
                why_no_interval=NO_INTERVAL_OF_POWER,
                unit="probability",
                n=n,
                method="normal approximation",
                reading=f"How often a set of this size that is wholly {truth} would be called so.",
            )
        )
    for name, mean, whose in (
        ("member_probability_audited", mixture.audited, f"The target in the audited {unit}s"),
        ("member_probability_non_members", mixture.unseen, f"The target in similar {unit}s that it was not trained on"),
        ("member_probability_members", mixture.members, f"Calibration models in {unit}s that they were trained on"),
    ):
        builder.try_estimate(
            name,
            lambda mean=mean: mean.estimate(confidence, of=f"{unit}s"),  # type: ignore[misc]
            unit="probability",
            reading=f"{whose}: the mean probability of being a member, as learned from calibration models.",
        )


def _build_set_tables(evidence: SetEvidence) -> dict[str, pa.Table]:
    """The tables of a removal result: every audited unit, the scores compared with, the power by the size of a set."""
    scores, near = evidence.scores, evidence.neighbours
    far = np.zeros(len(evidence.audited), dtype=np.bool_) if near is None else near.far
    weights = np.ones(len(evidence.controls)) if near is None else near.nearest_weights > 0
    column = "member_probability" if scores.calibration is not None else "more_than_references"
    return {
        "audited": scores.audited.to_table(**{column: evidence.audited.values}, unlike_any_control=far),
        "controls": scores.controls.to_table(**{column: evidence.controls.values}, compared=weights.astype(np.bool_)),
        "members": scores.members.to_table(**{column: evidence.members.values}),
        "power": build_table({} if evidence.mixture is None else evidence.mixture.compute_power_curve()),
    }
