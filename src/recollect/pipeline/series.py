"""Several audits, one after the other, into one run folder; one that fails does not stop the next."""

from __future__ import annotations

from collections.abc import Iterator

import yaml

from recollect import __version__
from recollect.audits.desk import Progress, tell_nobody
from recollect.errors import RecollectError
from recollect.files import write_text
from recollect.pipeline.plan import Plan, plain, told_settings
from recollect.pipeline.planning import Planned
from recollect.pipeline.run import run
from recollect.results.folders import RunFolder
from recollect.results.result import Failed, Provenance, Result


def run_all(planned: Planned, *, progress: Progress = tell_nobody) -> Iterator[Result]:
    """The result of each audit as it is done. What was trained or asked before is not done again.

    Raises:
        PlanError: Something is missing from one of the plans; nothing was trained or asked.
    """
    for plan in planned.plans:
        plan.refuse_incomplete()
    folder = RunFolder(planned.out)
    for plan in planned.plans:
        try:
            yield run(plan, planned.out, progress=progress)
        except RecollectError as error:
            failed = _failed(plan, error)
            folder.write_result(failed)
            yield failed
        # each audit leaves its own plan; what was asked for is the whole
        write_text(folder.plan, yaml.safe_dump(plain(planned.settings), sort_keys=False, allow_unicode=True))


def _failed(plan: Plan, error: RecollectError) -> Result:
    """The result of an audit that could not be done."""
    return Result(
        audit=plan.audit.name,
        question=plan.audit.question,
        verdict=f"Not tested: {error.found}",
        outcome="inconclusive",
        outcome_code="failed",
        failed=(Failed(audit=plan.audit.name, code=error.code, error=f"{error.found} {error.do}".strip()),),
        settings=told_settings(plan.audit),
    ).with_provenance(Provenance(recollect=__version__, seed=plan.seed, queries=0, seconds=0.0))
