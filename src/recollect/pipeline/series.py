"""Several audits, one after the other, into one run folder; one that fails does not stop the next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from recollect.audits.workspace import Progress, ignore_progress
from recollect.errors import RecollectError
from recollect.files import describe_fault, is_interruption, make_private_folder, write_text
from recollect.pipeline.limits import check_limits
from recollect.pipeline.plan import Plan, collect_masked_settings
from recollect.pipeline.plan_writer import write_plan
from recollect.pipeline.planfile import PlannedRun
from recollect.pipeline.run import FinishedRun, finish
from recollect.pipeline.sources import Sources
from recollect.results.folders import RunFolder
from recollect.results.result import Failed, Provenance, Result
from recollect.version import __version__


def run_all(
    planned: PlannedRun, *, sources: Sources | None = None, progress: Progress = ignore_progress
) -> Iterator[FinishedRun]:
    """Each audit as it is done. What was trained or scored before is not done again.

    Args:
        planned: The plans and their run folder.
        sources: Models and corpora that were loaded and read before; each is loaded and read once in any case.
        progress: Told now and then what is being done, and how far it is.

    Raises:
        PlanError: Something is missing from one of the plans; nothing was trained or scored.
    """
    first = [plan.refuse_incomplete() for plan in planned.plans]
    folder, known = RunFolder(planned.out), sources or Sources()
    for plan, needs in zip(planned.plans, first, strict=True):
        try:
            finished = finish(plan, planned.out, first=needs, sources=known, progress=progress)
        except BaseException as error:  # panics of native libraries are no Exception
            if is_interruption(error):
                raise
            fault = describe_fault(error, (make_private_folder(planned.out), Path()))
            finished = FinishedRun(plan=plan, result=_build_failed_result(plan, fault), cohorts={})
            folder.write_result(finished.result)
        yield finished
        # each audit leaves its own plan; what was requested is the whole
        write_text(folder.plan, write_plan(planned.plans, out=planned.out))


def _build_failed_result(plan: Plan, error: RecollectError) -> Result:
    """The result of an audit of a series that could not be done."""
    result = Result(
        audit=plan.audit.name,
        question=plan.audit.question,
        verdict=f"Not tested. {error.found}",
        outcome="inconclusive",
        outcome_code="failed",
        failed=(Failed(audit=plan.audit.name, code=error.code, error=f"{error.found} {error.do}".strip()),),
        settings=collect_masked_settings(plan.audit),
        about=plan.about,
    ).with_provenance(Provenance(recollect=__version__, seed=plan.seed, queries=0, seconds=0.0))
    return result.replace(limits=check_limits(plan.limits, result))
