"""How a run ends: a status that CI understands and, unless all went as planned, one clear message."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from recollect.cli.verbs import COULD_NOT, LIMIT_PASSED, complain

if TYPE_CHECKING:
    from recollect.results.result import Result


@dataclass(frozen=True, kw_only=True)
class Ending:
    """How one audit ended."""

    audit: str
    status: int = 0
    said: str = ""
    """What is to be said of it, where the status is not 0."""


def ending(result: Result) -> Ending:
    """Whether the limits were kept and all that was planned was done; if not, why."""
    causes = [failed.error for failed in result.failed]
    causes += [skipped.reason for skipped in result.skipped if skipped.finding is None]
    undone = Ending(audit=result.audit, status=COULD_NOT, said=f"could not be done. {' '.join(causes)}")
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
    unjudged = [check.reason or "" for check in result.limits if check.status == "not_judged"]
    if unjudged:
        return Ending(audit=result.audit, status=COULD_NOT, said=" ".join([*exceeded, unjudged[0]]))
    if exceeded:
        return Ending(audit=result.audit, status=LIMIT_PASSED, said="\n".join(exceeded))
    return undone if causes else Ending(audit=result.audit)


def end(endings: Iterable[Ending]) -> None:
    """End with the highest status of these, and say each cause once, with the audits that it concerns.

    Raises:
        typer.Exit: Something did not go as planned.
    """
    causes: dict[str, list[Ending]] = {}
    for each in endings:
        if each.status:
            causes.setdefault(each.said, []).append(each)
    if causes:
        told = [f"{', '.join(each.audit for each in alike)}: {said}" for said, alike in causes.items()]
        complain("\n".join(told).replace("\n", "\n  "))
        raise typer.Exit(max(each.status for alike in causes.values() for each in alike))
