"""How a run ends: a status that CI understands and, unless all went as planned, one clear message."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from recollect.cli.console import print_error

if TYPE_CHECKING:
    from recollect.results.result import Result

LIMIT_PASSED = 1
COULD_NOT = 2
INTERRUPTED = 130


@dataclass(frozen=True, kw_only=True)
class AuditStatus:
    """How one audit ended."""

    audit: str
    status: int = 0
    message: str = ""
    """What is to be said of it, where the status is not 0."""


def determine_status(result: Result) -> AuditStatus:
    """Whether the limits were kept and all that was planned was done; if not, why."""
    causes = [failed.error for failed in result.failed]
    causes += [skipped.reason for skipped in result.skipped if skipped.finding is None]
    undone = AuditStatus(audit=result.audit, status=COULD_NOT, message=f"could not be done. {' '.join(causes)}")
    if causes and not result.findings:
        return undone  # limits cannot be judged either, but that is no cause
    exceeded = [
        f"{check.limit.rstrip('0123456789.-+e').rstrip('<>=')} is {check.value:.6g}, which passes the limit "
        f"{check.limit!r}."
        if check.value is not None
        else f"The limit {check.limit!r} was passed."
        for check in result.limits
        if check.status == "exceeded"
    ]
    unjudged = [
        f"The limit {check.limit!r} cannot be checked: {check.reason or 'no reason is given.'}"
        for check in result.limits
        if check.status == "not_checked"
    ]
    if unjudged:
        return AuditStatus(audit=result.audit, status=COULD_NOT, message=" ".join([*exceeded, unjudged[0]]))
    if exceeded:
        return AuditStatus(audit=result.audit, status=LIMIT_PASSED, message="\n".join(exceeded))
    return undone if causes else AuditStatus(audit=result.audit)


def exit_with_status(statuses: Iterable[AuditStatus]) -> None:
    """End with the highest status of these, and say each cause once, with the audits that it concerns.

    Raises:
        typer.Exit: Something did not go as planned.
    """
    import typer

    causes: dict[str, list[AuditStatus]] = {}
    for each in statuses:
        if each.status:
            causes.setdefault(each.message, []).append(each)
    if causes:
        lines = [f"{', '.join(each.audit for each in alike)}: {message}" for message, alike in causes.items()]
        print_error("\n".join(lines).replace("\n", "\n  "))
        raise typer.Exit(max(each.status for alike in causes.values() for each in alike))
