"""The verdict of the leakage audit: sentences that a lawyer can read."""

from __future__ import annotations

from collections.abc import Mapping

from recollect.audits.common.outcomes import NOT_COMPARABLE, PLACEBO_FAILED, Conclusion
from recollect.audits.leakage.comparison import MatchedUsers
from recollect.audits.leakage.decisions import Decisions
from recollect.audits.leakage.leakage_epsilon import Leak
from recollect.results.summary_rows import state_p

_OTHERS = "users whom the model was not trained on"


def build_verdict(
    leaks: Mapping[int, Leak], decisions: Decisions, conclusion: Conclusion, matched: MatchedUsers
) -> str:
    """The verdict on leakage: how much more leaks than from held-out users, how certain that is, and what leaks.

    Args:
        leaks: The sequences of one user that the model predicts.
        decisions: The decisions about them.
        conclusion: What may be concluded after all checks.
        matched: Who was compared with whom.
    """
    counted = _describe_sequences(leaks)
    if not leaks:
        untested = "" if decisions.refusal is None else f"; this could not be tested. {decisions.refusal.found}"
        return f"{counted}{untested or '.'}"
    explained = "whether training on " + ("those users" if len({x.user for x in leaks.values()}) > 1 else "that user")
    if decisions.refusal is not None:
        return f"{counted}; {explained} explains this could not be tested. {decisions.refusal.found}"
    if conclusion.outcome == "inconclusive":
        reason = _explain_inconclusive_leakage(str(conclusion.code), matched)
        return f"{counted}; {explained} explains this {reason}"
    flagged = len(decisions.flagged)
    users = len(decisions.comparison.users)
    if not decisions.found:
        return (
            f"No evidence that more leaks from the audited users than from {_OTHERS} ({_describe_joint_p(decisions)}). "
            f"{counted}."
        )
    only = "have sequences that training on other people does not explain"
    if not decisions.found_jointly:
        return (
            f"{flagged:,} of {users:,} users {only} (corrected {state_p(float(decisions.p_corrected.min()))}). "
            f"Over all users together there is no evidence that more leaks than from {_OTHERS} "
            f"({_describe_joint_p(decisions)}). {counted}."
        )
    who = f"{flagged:,} of {users:,} users {only}" if flagged else "no single user can be identified"
    return f"More leaks from the audited users than from {_OTHERS} ({_describe_joint_p(decisions)}); {who}. {counted}."


def _explain_inconclusive_leakage(code: str, matched: MatchedUsers) -> str:
    """Why the verdict on leakage is inconclusive: the end of a sentence that says so."""
    unknown = "cannot be determined from this data"
    if code == NOT_COMPARABLE and matched.comparability is not None:
        return f"{unknown}. {matched.comparability.reason}"
    if code == PLACEBO_FAILED:
        return f"{unknown}: the same tests also find leaks from controls in the place of the audited users."
    return f"{unknown}: no outcome of so small a comparison would be significant. More --controls would change that."


def _describe_joint_p(decisions: Decisions) -> str:
    """In the verdict on leakage: the p-value of the comparison of all users; its level, where that decides."""
    p = float(decisions.joint_p)
    if decisions.joint_level < p <= decisions.alpha:
        return f"{state_p(p)}, above the {decisions.joint_level:.2g} that this comparison may use"
    return state_p(p)


def _describe_sequences(leaks: Mapping[int, Leak]) -> str:
    """In the verdict: how many sequences are reproduced, and from how many users."""
    count, people = len(leaks), len({leak.user for leak in leaks.values()})
    if not count:
        return "The model reproduces no sequence that only one user wrote"
    return (
        f"The model reproduces {count:,} sequence{'s' * (count > 1)} that only one user wrote, from {people:,} "
        f"user{'s' * (people > 1)}"
    )
