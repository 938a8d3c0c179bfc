"""The contract that every audit keeps, ours and yours."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from recollect.audits.audit import Audit
from recollect.audits.registry import AUDITS
from recollect.audits.rounds import collect_evidence, refuse_impossible
from recollect.audits.verb import Verb
from recollect.audits.workspace import NO_WORKSPACE, Workspace
from recollect.errors import AccessError
from recollect.models.model import Model
from recollect.pipeline.plans.calls import SHARED_ARGUMENTS
from recollect.report.annex import MATTERS
from recollect.report.figures.figure import Figure
from recollect.report.presentations import load_function
from recollect.results.presentation import Presentation
from recollect.results.result import Finding, Result
from recollect.signals.evidence import AUDITED, TARGET, Evidence
from recollect.streams import stream
from recollect.testing.promises import iter_weaker, promise, promise_success, report_broken, require_attributes
from recollect.testing.world import World


def check_audit(audit: Audit, world: World | None = None) -> None:
    """Check that an audit keeps the contract, in a small world with fake models in which ground truth is known.

    A target that has memorised the members is found out; targets trained on nobody's data are not accused; the
    access that the audit names is enough, and less is refused before anything is trained or scored; the same seed
    gives the same JSON; neither the order of records nor how many are scored at once changes a finding (so sort by id
    before you draw); nor does a workspace, or resuming from what is in it; what the data cannot support is
    skipped, with the reason; and what the audit declares of its verb and of reports can be used.

    Args:
        audit: The audit, with settings that fit a small world.
        world: A `recollect.testing.world.World`, where the plain one does not fit: `World(kind="masked")`,
            `World(others=0)`.

    Raises:
        BrokenContract: It lacks something, or breaks a promise; the message says what was promised and what was found.
    """
    world = world or World()
    require_attributes(audit, "audit", AUDITS.required)
    _check_round_0(audit)
    result = _run_checked_audit(audit, world, world.build_memoriser())
    _check_naming(audit, result)
    _check_verb(audit)
    _check_presentation(audit, result)
    promise(
        result.outcome == "found",
        f"{audit.name}: a target that has memorised is found out",
        found=f"{result.outcome}, {result.verdict_text}",
    )
    for target in (world.build_null(), world.build_uniform()):
        other_result = _run_checked_audit(audit, world, target)
        promise(
            other_result.outcome != "found",
            f"{audit.name}: a {target.name} target is not accused",
            found=f"{other_result.outcome}, {other_result.verdict_text}",
        )
    _check_workspace(audit, world, result)
    _check_audit_repeatable(audit, world, result)
    _check_audit_access(audit, world)
    _check_refusal(audit, world)


def _run_checked_audit(audit: Audit, world: World, target: Model) -> Result:
    """The result of the whole audit of this target."""
    return _run_on_evidence(audit, world, world.build_given(target))


def _run_on_evidence(audit: Audit, world: World, given: Evidence, workspace: Workspace = NO_WORKSPACE) -> Result:
    """The result of an audit under the contract: evidence gathered in rounds, then decided."""
    return audit.run(
        collect_evidence(audit, given, score=world.score, train=world.train), stream(0, audit.name), workspace
    )


def _check_round_0(audit: Audit) -> None:
    """Without evidence an audit says what it needs of its target, and says the same each time."""
    first, second = audit.needs(Evidence()), audit.needs(Evidence())
    promise(TARGET in first.access, f"{audit.name}: what the target must show is said before anything costs anything")
    stated = [(needs.access, needs.given, needs.fleet, needs.later) for needs in (first, second)]
    promise(stated[0] == stated[1], f"{audit.name}: `needs` depends on the settings and the evidence alone")


def _check_naming(audit: Audit, result: Result) -> None:
    """The contract of an audit: its result says whose it is."""
    promise(bool(audit.name and audit.question and audit.paper), "an audit has a name, a question and a paper")
    named = (result.audit, result.question) == (audit.name, audit.question)
    promise(named, f"{audit.name}: the result carries the audit's name and question")


def _check_verb(audit: Audit) -> None:
    """The contract of an audit's verb: all that it needs can be given, and no two arguments have the same name."""
    verb = getattr(audit, "verb", None)
    if not isinstance(verb, Verb):
        return
    wanted = {TARGET, *audit.needs(Evidence()).given}
    promise(
        wanted <= verb.roles.keys(),
        f"{audit.name}: its verb has a role for all that has to be given",
        found=f"no role {', '.join(sorted(wanted - verb.roles.keys()))}",
    )
    settings: Any = audit
    names = [each.name for each in fields(settings)]
    names += [role for role in verb.roles if role not in (TARGET, AUDITED)]
    twice = sorted({name for name in names if names.count(name) > 1} | SHARED_ARGUMENTS.intersection(names))
    promise(not twice, f"{audit.name}: its roles and settings have names of their own", found=", ".join(twice))


def _check_presentation(audit: Audit, result: Result) -> None:
    """The contract of an audit's presentation: its figures can be drawn, and the annex has its questions."""
    shown = getattr(audit, "presentation", None)
    if not isinstance(shown, Presentation):
        return
    unknown = {*shown.annex} - {matter.id for matter in MATTERS}
    known = ", ".join(matter.id for matter in MATTERS)
    promise(
        not unknown,
        f"{audit.name}: the annex has the questions that it names ({known})",
        found=", ".join(sorted(unknown)),
    )
    if shown.figures:
        with promise_success(f"{audit.name}: its figures can be drawn"):
            drawn = load_function(shown.figures)(result, result.tables_in_memory)
            promise(all(isinstance(each, Figure) for each in drawn), "each is a `Figure`")


def _check_audit_repeatable(audit: Audit, world: World, result: Result) -> None:
    """The contract of an audit: neither the order of records nor the block size moves a finding."""
    backwards = not world.backwards
    if _keeps_findings(audit, replace(world, backwards=backwards, block=5), result):
        return
    # only what fails is run again, to say why
    order = _keeps_findings(audit, replace(world, backwards=backwards), result)
    promise(order, f"{audit.name}: the order of records does not move a finding")
    raise report_broken(f"{audit.name}: the number of records scored at once does not move a finding")


def _keeps_findings(audit: Audit, world: World, result: Result) -> bool:
    """The contract of an audit: whether it finds the same in a world that tells the same otherwise."""
    found = _run_checked_audit(audit, world, world.build_memoriser())
    return found.outcome == result.outcome and _are_alike(found.findings, result.findings)


def _check_workspace(audit: Audit, world: World, result: Result) -> None:
    """The same seed gives the same JSON, with progress reports, in a folder, and resuming from what it contains."""
    reported: list[tuple[int, int | None]] = []
    with TemporaryDirectory() as folder:
        workspace = Workspace(folder=Path(folder), progress=lambda what, done, total: reported.append((done, total)))
        for again in ("with a workspace", "resuming from its workspace"):
            found = _run_on_evidence(audit, world, world.build_given(world.build_memoriser()), workspace)
            same = found.model_dump_json() == result.model_dump_json()
            if not same:  # only what fails is run again, to say why
                plain = _run_checked_audit(audit, world, world.build_memoriser()).model_dump_json()
                promise(plain == result.model_dump_json(), f"{audit.name}: the same seed gives the same JSON")
            promise(same, f"{audit.name}: {again} it finds the same")
    sensible = all(done >= 0 and (total is None or done <= total) for done, total in reported)
    promise(sensible, f"{audit.name}: no more is done than there is to do")


def _check_audit_access(audit: Audit, world: World) -> None:
    """What the audit says it needs is enough, and less is refused before any cost."""
    needed = audit.needs(Evidence()).access
    given = world.build_given(world.build_memoriser())
    with promise_success(f"{audit.name}: the access that it needs is enough"):
        result = _run_on_evidence(audit, world, world.limit_access(given, needed))
    promise(result.outcome == "found", f"{audit.name}: the access that it needs is enough", found=result.verdict_text)
    for role, access in needed.items():
        for less in iter_weaker(access) if given.models_of_role(role) else ():
            _expect_audit_refusal(audit, world.limit_access(given, {role: less}), f"the {role} shows only {less}")


def _expect_audit_refusal(audit: Audit, evidence: Evidence, why: str) -> None:
    """The audit does not accept this evidence."""
    try:
        refuse_impossible(audit, evidence)
    except AccessError:
        return
    raise report_broken(f"{audit.name}: it refuses with an AccessError when {why}", "no refusal")


def _check_refusal(audit: Audit, world: World) -> None:
    """The contract of an audit: what so few people cannot support is skipped, and nobody is accused."""
    few = replace(world, members=min(1, world.members), others=min(1, world.others), controls=1)
    with promise_success(f"{audit.name}: what one person's data cannot support is skipped, not raised"):
        result = _run_checked_audit(audit, few, few.build_null())
    reasons = [skipped.reason for skipped in result.skipped]
    promise(bool(reasons), f"{audit.name}: what one person's data cannot support is skipped, with a reason")
    promise(
        result.outcome != "found", f"{audit.name}: nobody is accused on one person's data", found=result.verdict_text
    )


def _are_alike(first_findings: Iterable[Finding], second_findings: Iterable[Finding]) -> bool:
    """Whether findings of an audit are the same but for rounding."""
    first, second = ({finding.name: finding for finding in findings} for findings in (first_findings, second_findings))
    return first.keys() == second.keys() and all(
        math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9)
        for name in first
        for a, b in zip(_list_numbers(first[name]), _list_numbers(second[name]), strict=True)
    )


def _list_numbers(finding: Finding) -> list[float]:
    """The value and both limits of an audit's finding; an open limit is no number and the same as any other."""
    limits = finding.interval or (None, None)
    return [finding.value, *(0.0 if limit is None else limit for limit in limits)]
