"""`recollect run` and `recollect check`: a whole audit as one file plans it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from recollect.cli import console
from recollect.cli.exit_status import COULD_NOT, AuditStatus, determine_status, exit_with_status
from recollect.cli.shared_options import AsJson, BackendName, Junit, Named, RealNames, SharedWork

if TYPE_CHECKING:
    from recollect.pipeline.forecast import Forecast

PlanPath = Annotated[
    Path, typer.Argument(metavar="PLAN", help="A YAML file; paths in it are relative to it.", show_default=False)
]
Only = Annotated[
    list[str] | None, typer.Option("--only", metavar="AUDIT", help="Only this audit of the plan; may be repeated.")
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="SETTING=VALUE", help="Change the plan: --set audits.leakage.top_k=3."),
]


def run(
    plan: PlanPath,
    only: Only = None,
    changes: Changes = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The run folder. (default: the plan's, else PLAN-run)")
    ] = None,
    backend: BackendName = None,
    shared_work: SharedWork = False,
    real_names: RealNames = False,
    named: Named = None,
    json: AsJson = False,
    junit: Junit = None,
) -> None:
    """Run every audit that a plan names, into one run folder with one report.

    A run that was killed resumes when it is started again. Ends with status 1 if a limit of the plan was exceeded, and
    with 2 if something could not be done. An audit that fails does not stop the others.

    `recollect run audit.yaml --only leakage --set seed=1`
    """
    from recollect.cli.result_display import display_report_path, show_result, write_junit_file
    from recollect.session import Session

    with console.show_stages() as progress:
        session = Session(
            backend=backend, shared_work=shared_work, real_names=real_names, named=named or (), progress=progress
        )
        results = session.run(plan, out=out, set=changes or (), only=only or ())
    if json:
        console.print_json([each.result.model_dump(mode="json") for each in results])
    else:
        for each in results:
            if each.result.findings or not each.result.failed:
                show_result(each, out=each.folder, as_json=False)
    if results[0].folder is not None:
        display_report_path(results[0].folder)
    write_junit_file(results, junit)
    exit_with_status(determine_status(each.result) for each in results)


def check(
    plan: PlanPath,
    only: Only = None,
    changes: Changes = None,
    backend: BackendName = None,
    json: AsJson = False,
) -> None:
    """Estimate what a plan will train and score, and roughly how long it takes, before anything starts.

    The plan is read, its models and corpora are loaded, and each model that has something to compute scores a few
    records to see how fast it is. Models that were trained and records that were scored before are found in the work
    folder: they are counted, and cost no time. Nothing is written. A model behind a server is probed with at most 60
    requests, which count against its budget and are noted in the work folder; requests, tokens and cost of the run are
    printed. Ends with status 2 if an audit cannot be run, and says why.

    `recollect check audit.yaml`
    """
    from dataclasses import asdict

    from recollect.pipeline.forecast import Forecast
    from recollect.session import Session

    checked = Session(backend=backend).check(plan, set=changes or (), only=only or ())
    found = [each for each in checked if isinstance(each, Forecast)]
    if json:
        console.print_json([asdict(each) for each in found])
    elif found:
        _show_forecast(
            found, f"{plan.name} can be run" if len(found) == len(checked) else f"What can be run of {plan.name}"
        )
    exit_with_status(
        AuditStatus(
            audit=each.audit, status=COULD_NOT, message=f"cannot be run. {each.error.found} {each.error.do}".strip()
        )
        for each in checked
        if not isinstance(each, Forecast)
    )


def _show_forecast(found: Sequence[Forecast], title: str) -> None:
    """For `check`: the cost of the audits of a plan, as a table."""
    rows = [
        [
            each.audit,
            ", ".join(_describe_planned_training(each)) or "–",
            f"{each.records_scored:,}",
            f"{each.records_stored:,}",
            f"{each.queries:,}",
            _describe_duration(each),
        ]
        for each in found
    ]
    headings = ["audit", "models trained", "records scored by all models", "stored already", "of the target", "roughly"]
    console.print_table(title, headings, rows)
    sent = [
        [
            each.audit,
            role,
            server.host,
            f"{server.requests:,}",
            f"{server.tokens:,}",
            f"{server.cost:,.2f}" if server.cost else "–",
            f"{server.spent_requests:,}",
        ]
        for each in found
        for role, server in each.servers.items()
    ]
    if sent:
        headings = ["audit", "model", "server", "requests", "tokens", "cost", "requests sent so far"]
        console.print_table("Sent to servers, for what is not stored yet", headings, sent)
    for each in found:
        for role, server in each.servers.items():
            if server.excess is not None:
                console.say(
                    f"The budget of {server.excess} is too small for all that {each.audit} sends to the {role} model. "
                    "The run would stop there, and resume with a larger budget."
                )
            if server.search_steps:
                console.say(
                    f"{each.audit} also searches the {role} model in at most {server.search_steps:,} steps. Each costs "
                    f"a request to {server.host}, and one more for every token that matters and is not among those "
                    "shown, so that the sum is not known beforehand: --budget-requests limits it."
                )
    for placement in dict.fromkeys(each.placement for each in found):
        console.say(f"{placement}.")


def _describe_duration(found: Forecast) -> str:
    """How long an audit takes, in words."""
    roughly, most = _format_duration(found.seconds), _format_duration(found.seconds_at_most)
    roughly += " or more" if found.models_possibly_needed else ""
    return roughly if found.seconds_at_most <= 1.5 * found.seconds else f"{roughly}, with a long search up to {most}"


def _describe_planned_training(found: Forecast) -> list[str]:
    """For `check`: the models that a plan trains, and those that it may train."""
    sure = [f"{count} on the {role} corpus" for role, count in found.models_to_train.items()]
    return sure + [f"perhaps {count} ({role})" for role, count in found.models_possibly_needed.items()]


def _format_duration(seconds: float) -> str:
    """For `check`: the seconds that a plan takes, in words.

    >>> _format_duration(5), _format_duration(300), _format_duration(9000)
    ('10 seconds', '5 minutes', '2.5 hours')
    """
    if seconds < 90:
        return f"{max(10, round(seconds / 10) * 10)} seconds"
    return f"{round(seconds / 60)} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"
