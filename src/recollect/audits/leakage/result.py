"""The result of the leakage audit: findings, tables, notes, and what is not tested."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recollect.audits.common.result_builder import ResultBuilder
from recollect.audits.leakage.comparison import MatchedUsers
from recollect.audits.leakage.decisions import Decisions
from recollect.audits.leakage.leakage_epsilon import Leak
from recollect.audits.leakage.occurrences import Occurrences
from recollect.audits.leakage.predicted_runs import PredictedRuns
from recollect.audits.leakage.result_tables import (
    build_length_table,
    build_null_table,
    build_sequences_table,
    build_times_table,
    build_top_k_table,
    build_users_table,
)
from recollect.audits.leakage.safeguards import add_safeguards, is_withheld
from recollect.audits.leakage.verdict import build_verdict
from recollect.results.result import Finding, Result
from recollect.stats.intervals import proportion

if TYPE_CHECKING:
    from recollect.audits.leakage.audit import LeakageAudit

COUNTED = "computed from every sequence that only one user wrote and the model reproduces verbatim; none is estimated"
MAXIMUM = "A maximum over sequences that were chosen because the model predicts them has no valid interval."
SELECTED = "The sequences were chosen because the model predicts them."
PER_WORD = "nats per word"
_UNTESTED = (
    "Only the training texts themselves were used as prompts; other prompts may extract more.",
    "A sequence that another user wrote too is not counted, though it may still be private.",
)
_INFINITE = (
    "The reference gives a word of a sequence probability zero, so that the ratio of the two models is infinite. Users "
    "are compared by ranks, in which such a sequence is the highest; give a reference that excludes no word."
)
_NULL_SILENT = (
    "No sequence of a single user is reproduced under the null hypothesis: all of ε_l is above what is expected "
    "without training on the users."
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Leaks:
    """The predicted runs, and those that leak."""

    by_k: Mapping[int, Mapping[int, Leak]]
    """The sequences of one user that the model predicts, by k, by their numbers."""
    read: PredictedRuns
    counts: Occurrences
    """In whose data each sequence occurs."""
    references: str
    """How the references came about, in sentences; empty if there are none."""
    no_reference: str
    """Why there is no leakage epsilon; empty if there is."""
    matched: MatchedUsers
    """Who was compared with whom."""
    seed: int
    """Of the run."""
    by_record: bool
    """Whether the corpus has no users, so that every record counts as one."""

    @property
    def users(self) -> int:
        """How many users the audited corpus has."""
        return len(self.counts.names)


def build_result(audit: LeakageAudit, leaks: Leaks, decisions: Decisions) -> Result:
    """The result of the leakage audit.

    Args:
        audit: The audit.
        leaks: What leaks.
        decisions: What the comparison of users amounts to.
    """
    builder, found = ResultBuilder(audit), leaks.by_k[audit.top_k]
    measured = {run: leak for run, leak in found.items() if not np.isnan(leak.gain)}
    _add_unique_sequences(builder, leaks, top_k=audit.top_k)
    if measured:
        _add_leakage_epsilons(builder, measured, leaks.counts)
        _add_deniable_users(builder, measured, decisions.comparison.users, deniable_at=audit.deniable_at)
    else:
        _skip_leakage_epsilon(builder, leaks, any_found=bool(found))
    if decisions.refusal is None:
        _add_leakage_tests(builder, decisions)
        _add_null_epsilons(builder, measured, decisions)
    else:
        builder.refuse("flagged_users", decisions.refusal)
    _add_leakage_notes(builder, leaks, decisions)
    conclusion = add_safeguards(builder, leaks.matched, decisions, seed=leaks.seed, silent=not found)
    builder.tables = {
        "sequences": build_sequences_table(found, leaks.counts, show_text=audit.show_text),
        "users": build_users_table(found, decisions, withheld=is_withheld(conclusion)),
        "by_length": build_length_table(found),
        "by_times": build_times_table(found, leaks.counts),
        "by_k": build_top_k_table(leaks.by_k),
        "null": build_null_table(decisions.comparison.null_leaks),
    }
    return builder.build(
        verdict=build_verdict(found, decisions, conclusion, leaks.matched),
        outcome=conclusion.outcome,
        code=conclusion.code,
        untested=_UNTESTED,
        settings=audit.settings,
    )


def _build_finding_without_interval(
    name: str, value: float, unit: str, n: Mapping[str, int], reading: str, why: str = MAXIMUM
) -> Finding | str:
    """A finding of a leakage result without an interval, a maximum or a count; its name where it is not finite."""
    if not math.isfinite(value):
        return name
    return Finding(name=name, value=value, why_no_interval=why, unit=unit, n=dict(n), method=COUNTED, reading=reading)


def _keep_finite_findings(builder: ResultBuilder, *found: Finding | str) -> None:
    """Keep findings of a leakage result, and of those that are not finite why."""
    for each in found:
        if isinstance(each, Finding):
            builder.findings.append(each)
        else:
            builder.skip(each, code="infinite_values", reason=_INFINITE)


def _add_unique_sequences(builder: ResultBuilder, leaks: Leaks, *, top_k: int) -> None:
    """The finding of how many sequences of one user the model reproduces."""
    n = {"users": leaks.users, "words": leaks.read.words, "sequences": leaks.read.sequences}
    reading = f"Different sequences that occur in one user's data only and are reproduced verbatim at top {top_k}."
    why = "It is a count of this corpus, not an estimate."
    count = len(leaks.by_k[top_k])
    _keep_finite_findings(
        builder, _build_finding_without_interval("unique_sequences", count, "sequences", n, reading, why)
    )


def _skip_leakage_epsilon(builder: ResultBuilder, leaks: Leaks, *, any_found: bool) -> None:
    """Skip the findings of leakage epsilon, with the reason."""
    if leaks.no_reference:
        builder.skip("leakage_epsilon", code="no_reference", reason=leaks.no_reference)
    elif not any_found:
        reason = "The model reproduces no sequence that only one user wrote."
        builder.skip("leakage_epsilon", code="no_unique_sequence", reason=reason)
    else:
        reason = "The reference did not score any of the sequences, or was trained on all of their users."
        builder.skip("leakage_epsilon", code="not_measured", reason=reason)


def _add_leakage_epsilons(builder: ResultBuilder, measured: Mapping[int, Leak], counts: Occurrences) -> None:
    """The findings of leakage epsilon: the largest, and the distribution over sequences."""
    values = np.array([leak.epsilon for leak in measured.values()])
    once = [leak.epsilon for run, leak in measured.items() if counts.times[run] == 1]
    with np.errstate(invalid="ignore"):  # between two infinite ones there is none
        high = float(np.quantile(values, 0.99))
    n = {"sequences": len(values), "users": len({leak.user for leak in measured.values()})}
    _keep_finite_findings(
        builder,
        _build_finding_without_interval(
            "leakage_epsilon",
            float(values.max()),
            PER_WORD,
            n,
            "ε_l: the largest log-ratio of perplexities, reference over model. Positive without any leak: compare it "
            "with the excess.",
        ),
        _build_finding_without_interval(
            "leakage_epsilon_sum",
            max(leak.gain for leak in measured.values()),
            "nats",
            n,
            "The same summed over the words of a sequence: comparable with an ε of differential privacy.",
        ),
        _build_finding_without_interval(
            "leakage_epsilon_median",
            float(np.median(values)),
            PER_WORD,
            n,
            "Half of the sequences have less.",
            SELECTED,
        ),
        _build_finding_without_interval(
            "leakage_epsilon_p99",
            high,
            PER_WORD,
            n,
            "One in a hundred sequences has more.",
            SELECTED,
        ),
    )
    if once:
        n, reading = {"sequences": len(once)}, "Over sequences written only once."
        _keep_finite_findings(
            builder, _build_finding_without_interval("leakage_epsilon_once", max(once), PER_WORD, n, reading)
        )


def _add_deniable_users(
    builder: ResultBuilder, measured: Mapping[int, Leak], users: tuple[str, ...], *, deniable_at: float
) -> None:
    """The finding of how many users have plausible deniability."""
    exposed = {leak.user for leak in measured.values() if leak.epsilon > deniable_at}
    share = proportion([user not in exposed for user in users], of="users")
    reading = f"Users none of whose sequences has an epsilon above {deniable_at:g}: they have plausible deniability."
    builder.findings.append(Finding.of(share, name="deniable_users", unit="share", reading=reading))


def _add_leakage_tests(builder: ResultBuilder, decisions: Decisions) -> None:
    """The findings of how much more leaks from the audited users, and whether that is significant."""
    comparison = decisions.comparison
    builder.try_estimate(
        "leakage_excess",
        comparison.estimate_excess,
        unit="nats" if comparison.in_nats else "words",
        reading="How much more leaks, in one sequence, from an average user than under the null hypothesis; an "
        "interval that contains 0 is no evidence.",
    )
    level, alpha = f"{decisions.joint_level:.2g}", f"{decisions.alpha:g}"
    rest = "" if level == alpha else f"; the rest of {alpha} is for users who are flagged"
    builder.add_p_value(
        "leakage_p",
        decisions.joint_p,
        n={"users": len(comparison.users), "null_users": len(comparison.null_users)},
        method=comparison.joint_method,
        reading="How often so much would leak from users whom the model was not trained on. Significant up to "
        f"{level}{rest}.",
    )
    builder.findings.append(
        Finding.of(
            proportion(decisions.flags.tolist(), of="users"),
            name="flagged_users",
            unit="share",
            reading="Users with a sequence that training on other people does not explain; of these, a share of at "
            f"most {decisions.level:g} is expected to be flagged wrongly (false discovery rate).",
        )
    )


def _add_null_epsilons(builder: ResultBuilder, measured: Mapping[int, Leak], decisions: Decisions) -> None:
    """The findings of leakage epsilon under the null hypothesis."""
    if not measured:
        return
    comparison = decisions.comparison
    values = [leak.epsilon for leak in comparison.null_leaks.values() if not np.isnan(leak.gain)]
    if not values:
        builder.skip("leakage_epsilon_null", code="no_sequence_under_null", reason=_NULL_SILENT)
        return
    n = {"sequences": len(values), "users": len(comparison.null_users)}
    excess = max(leak.epsilon for leak in measured.values()) - max(values)
    null, above = (
        "ε_l under the null hypothesis: no training on the users.",
        "ε_l minus its value under the null hypothesis.",
    )
    _keep_finite_findings(
        builder,
        _build_finding_without_interval("leakage_epsilon_null", max(values), PER_WORD, n, null),
        _build_finding_without_interval("leakage_epsilon_excess", excess, PER_WORD, n, above),
    )


def _add_leakage_notes(builder: ResultBuilder, leaks: Leaks, decisions: Decisions) -> None:
    """The notes of a leakage result."""
    comparison, read = decisions.comparison, leaks.read
    if seen := leaks.users - len(comparison.users):
        text = f"{seen} user{'s are' if seen > 1 else ' is'} left out: in the training set of a reference."
        builder.note("users_in_reference_training_set", text)
    if leaks.by_record:
        text = "The corpus has no users: every record counts as a user of its own (see --user-column)."
        builder.note("no_users", text)
    if leaks.references:
        builder.note("references", leaks.references)
    if read.unknown:
        text = (
            f"{read.unknown:,} of {read.words:,} words are unknown to the model (<unk>): it cannot predict them, "
            "and each ends a sequence."
        )
        builder.note("unknown_words", text)
    fewest = math.ceil(len(comparison.users) / max(1, (len(comparison.null_users) + 1) * decisions.level))
    if comparison.null_users and fewest > 1:
        text = (
            f"With {len(comparison.null_users)} users in the null distribution, users can be flagged only if at least "
            f"{fewest} of {len(comparison.users)} are flagged together; with more --controls fewer suffice."
        )
        builder.note("too_few_controls_to_identify", text)
