"""The safeguards of leakage: the guard (are users comparable), the power of the design, and a placebo of controls."""

from __future__ import annotations

from dataclasses import replace

from recollect.audits.common.guard import Comparability, add_guard, check_matched_maxima
from recollect.audits.common.matching import match_amounts
from recollect.audits.common.outcomes import NOT_COMPARABLE, PLACEBO_FAILED, Conclusion, conclude
from recollect.audits.common.placebo import PlaceboRun, run_placebo
from recollect.audits.common.power import minimum_detectable_auc, smallest_conformal_p, smallest_rank_p
from recollect.audits.common.result_builder import ResultBuilder
from recollect.audits.leakage.comparison import PERMUTATIONS, Comparison, MatchedUsers
from recollect.audits.leakage.decisions import JOINT_SHARE, Decisions, decide
from recollect.corpora.times import Period
from recollect.errors import NotEnoughData
from recollect.results.result import Placebo, Power
from recollect.signals.evidence import AUDITED, CONTROLS, Evidence
from recollect.stats.requirements import required_controls

PLACEBO_RUNS = 40
"""How many times controls play the audited users."""
TESTED = ("leakage_excess", "leakage_p", "flagged_users", "leakage_epsilon_null", "leakage_epsilon_excess")
"""The findings that mean nothing if the users are not comparable with the controls, or the placebo failed."""
_SPOILT = "The same tests also find leaks from controls in the place of the audited users, more often than stated."


def check_users(evidence: Evidence, matched: MatchedUsers, period: Period) -> Comparability | None:
    """Safeguard of leakage, the guard: are users like the controls in what is left of their texts; None with too few.

    Args:
        evidence: Contains the records.
        matched: Who is compared with whom.
        period: The calendar period by which dates are compared.
    """
    comparison, duplicates = matched.comparison, matched.duplicates
    if comparison.matching is None or not comparison.matching.strata:
        return None
    users, audited, controls = set(comparison.users), evidence.corpora[AUDITED], evidence.corpora[CONTROLS]
    try:
        return check_matched_maxima(
            comparison.matching,
            (record for record in audited if record.owner in users and record.id not in duplicates.audited),
            (record for record in controls if record.id not in duplicates.controls),
            seed=evidence.seed,
            period=period,
        )
    except NotEnoughData:
        return None  # `decide` refuses as well, and says why


def add_safeguards(
    builder: ResultBuilder, matched: MatchedUsers, decisions: Decisions, *, seed: int, silent: bool = False
) -> Conclusion:
    """Write the safeguards into a leakage result; what may be concluded after all of them.

    Args:
        builder: Of the result; its findings are complete.
        matched: Who was compared with whom.
        decisions: The decisions about them.
        seed: Of the run.
        silent: Whether the model reproduces no sequence at all: then nothing leaks, whoever it is compared with.
    """
    builder.dropped |= matched.duplicates.counts
    if decisions.refusal is not None:
        return conclude("inconclusive", code=decisions.refusal.code)
    power, attainable = state_power(decisions)
    builder.power = power
    if matched.comparability is not None:
        add_guard(builder, matched.comparability, withheld=() if silent else TESTED)
    _note_matching(builder, decisions.comparison)
    builder.placebo = play_placebo(decisions, seed=seed)
    if silent:
        return conclude("not_found")
    conclusion = conclude(
        "found" if decisions.found else "not_found", guard=builder.guard, placebo=builder.placebo, attainable=attainable
    )
    if conclusion.code == PLACEBO_FAILED:
        builder.withhold(*TESTED, code=PLACEBO_FAILED, reason=_SPOILT)
    return conclusion


def is_withheld(conclusion: Conclusion) -> bool:
    """Safeguard of leakage: whether p-values and flags of leakage are withheld, because they would mislead."""
    return conclusion.code in (NOT_COMPARABLE, PLACEBO_FAILED)


def state_power(decisions: Decisions) -> tuple[Power, bool]:
    """Safeguard of leakage, power: what it could have found, and whether any outcome could have been significant."""
    comparison, level = decisions.comparison, decisions.alpha * (1 - JOINT_SHARE)
    users, null = int(comparison.compared.sum()), max((each.controls for each in comparison.strata), default=0)
    draws = max((len(each.scores) for each in comparison.strata), default=1)
    alone = min(
        (smallest_conformal_p(each.controls, draws=len(each.scores)) for each in comparison.strata), default=1.0
    )
    factor = 2 if draws > 1 else 1
    if comparison.has_folds:  # models are what is tested, and no AUC of users says what is found
        together, detectable = 0.0, None
    else:
        least = 1 / (1 + PERMUTATIONS) if comparison.permuted else 0.0
        together = min(1.0, max(least, smallest_rank_p(users, null)) * factor)
        detectable = minimum_detectable_auc(users, null, alpha=decisions.joint_level / factor)
    power = Power(
        smallest_p=min(alone, together),
        minimum_detectable_effect=detectable,
        effect_unit=None if detectable is None else "AUC of users against held-out users",
        needed={"controls_to_flag_one_user": required_controls(level / factor, tests=max(1, users))},
    )
    return power, alone <= level or together <= decisions.joint_level


def play_placebo(decisions: Decisions, *, seed: int) -> Placebo:
    """Safeguard of leakage, the placebo: how often its tests accuse controls that are cut like the audited users.

    Args:
        decisions: About the audited users.
        seed: Of the run.
    """
    comparison = decisions.comparison
    if comparison.matching is None:
        return Placebo(
            status="not_run",
            reason="No controls are given who could take the place of the audited users: the null distribution comes "
            "from the same people, scored by other models.",
        )

    def accuse(run: PlaceboRun) -> bool:
        """Whether more is found to leak from the controls that play the audited users."""
        matching = match_amounts(run.audited, run.controls, seed=seed)
        played = replace(
            comparison,
            audited=comparison.null.select(run.audited),
            null=comparison.null.select(run.controls),
            matching=matching,
        )
        return decide(played, alpha=decisions.alpha).found

    return run_placebo(comparison.matching, accuse, seed=seed, alpha=decisions.alpha, runs=PLACEBO_RUNS)


def _note_matching(builder: ResultBuilder, comparison: Comparison) -> None:
    """Safeguard of leakage: note in a leakage result how amounts were made equal, and who could not be compared."""
    matching = comparison.matching
    if matching is not None and not comparison.uncut:
        builder.note(
            "amounts_matched",
            "The audited users wrote more or less than the controls, and the score is a maximum over what they wrote. "
            "So users and controls are compared from as many records and words: whoever has more is cut.",
        )
    if missing := len(comparison.users) - int(comparison.compared.sum()):
        builder.note(
            "users_not_compared",
            f"{missing} of {len(comparison.users)} users could not be compared: no control has as many records and "
            "words, in the same period where times are known.",
        )
