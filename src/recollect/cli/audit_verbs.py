"""The verbs of all audits, plug-ins included: built from what each audit declares."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.audits.registry import AUDITS, find_verb
from recollect.cli import console
from recollect.cli.declared_fields import DeclaredField, list_fields, parse_given
from recollect.cli.exit_status import determine_status, exit_with_status
from recollect.cli.shared_options import (
    CORPUS_HELP,
    MODEL_HELP,
    RUN_PANEL,
    AsJson,
    BackendName,
    CorpusOptions,
    Junit,
    ModelOptions,
    Named,
    RealNames,
    Seed,
    SharedWork,
    Threads,
    Work,
    Workers,
    WorkLimitGb,
)
from recollect.cli.verb_wrapper import list_verb_folders, run_with_status, unwrap_help

if TYPE_CHECKING:
    from recollect.audits.verb import Role, Verb

_GIVEN, _SETTINGS = "Other inputs", "Settings of the audit"


def build_audit_command(audit: str) -> Callable[..., None]:
    """The verb of an audit as typer takes it, with an option for every role and setting that the audit declares."""
    kind = AUDITS.load(audit)
    declared = find_verb(audit)
    own, shared = [*_build_role_fields(declared), *list_fields(kind, panel=_SETTINGS)], ModelOptions.list_fields()
    if any(role.kind == "corpus" for role in declared.roles.values()):
        shared = [*shared, *CorpusOptions.list_fields()]
    fields = [*own, *shared]

    def command(**options: Any) -> None:
        run_with_status(partial(_run_audit_verb, audit, fields, options), list_verb_folders(options))

    command.__doc__ = unwrap_help(f"{declared.summary}\n\n{declared.guide}")
    parameters = [
        *_build_audit_arguments(declared),
        *(each.build_parameter() for each in own),
        *_build_run_parameters(),
    ]
    parameters += [each.build_parameter() for each in shared]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return command


def _run_audit_verb(audit: str, fields: list[DeclaredField], options: Mapping[str, Any]) -> None:
    """Run the audit of a verb, show how far it is and what was found, and end with the status that CI needs.

    Status 1: a limit was exceeded. Status 2: something of the audit failed, or a limit cannot be checked. The result is
    shown and kept in either case.
    """
    from recollect.session import Session

    out, as_json = options["out"], options["json"]
    given = parse_given(fields, options)
    with console.show_stages() as progress:
        running = {
            name: options[name]
            for name in ("work", "shared_work", "work_limit_gb", "real_names", "seed", "workers", "threads", "backend")
        }
        session = Session(**running, named=options["named"] or (), progress=progress)
        about = _parse_about(
            [*(options["about"] or []), *([f"system={system}"] if (system := options["system"]) else [])]
        )
        given |= {"fail_if": options["fail_if"] or [], "about": about}
        result = session.audit(audit, options["model"], options.get("corpus"), out=out, **given)
    from recollect.cli.result_display import display_report_path, show_result, write_junit_file

    show_result(result, out=out, as_json=as_json)
    if out is not None:
        display_report_path(out)
    write_junit_file([result], options["junit"])
    exit_with_status([determine_status(result.result)])


def _parse_about(written: Sequence[str] | None) -> dict[str, str] | None:
    """What the audit is about (--about), by field; values are texts, whatever they look like.

    >>> _parse_about(["system=shop-bot", "version=1.10"])
    {'system': 'shop-bot', 'version': '1.10'}

    Raises:
        PlanError: One of them is no FIELD=TEXT.
    """
    from recollect.errors import PlanError

    for each in written or ():
        if "=" not in each:
            raise PlanError(
                f"--about is {each!r}.", do="Write a field and a text: --about system=shop-bot.", code="invalid_setting"
            )
    return dict(each.split("=", 1) for each in written) if written else None


def _build_audit_arguments(verb: Verb) -> list[inspect.Parameter]:
    """MODEL and, if the audit reads one, CORPUS: the arguments of its verb."""
    from recollect.signals.evidence import AUDITED

    model = Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP, show_default=False)]
    found = [inspect.Parameter("model", inspect.Parameter.KEYWORD_ONLY, annotation=model)]
    corpus = verb.roles.get(AUDITED)
    if corpus is not None:
        argument = typer.Argument(metavar="CORPUS", help=f"{corpus.help} {CORPUS_HELP}", show_default=False)
        kind: Any = str if corpus.required else str | None
        default = inspect.Parameter.empty if corpus.required else None
        found.append(
            inspect.Parameter(
                "corpus", inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, argument], default=default
            )
        )
    return found


def _build_role_fields(verb: Verb) -> list[DeclaredField]:
    """An option for every role besides the target and the audited corpus, for members, and for a recipe."""
    from recollect.pipeline.plans.refs import MembersRef
    from recollect.signals.evidence import AUDITED, TARGET

    found = [
        DeclaredField(
            name=role,
            hint=_get_role_hint(declared),
            default=None,
            help=_build_role_help(declared),
            panel=_GIVEN,
            metavar=declared.kind.upper(),
        )
        for role, declared in verb.roles.items()
        if role not in (TARGET, AUDITED)
    ]
    if verb.members:
        found += [_narrow_ids_to_path(each) for each in list_fields(MembersRef, panel=_GIVEN)]
    if verb.trains:
        text = "Trains what is missing: a built-in recipe or a YAML file."
        found.append(DeclaredField(name="recipe", hint=str, default=None, help=text, panel=_GIVEN))
        text = "Change a setting of the recipe: --set training.epochs=3."
        found.append(DeclaredField(name="set", hint=Mapping[str, Any], default=None, help=text, panel=_GIVEN))
    return found


def _narrow_ids_to_path(declared: DeclaredField) -> DeclaredField:
    """The option of an audit's verb for ids: on a command line they are named by a path."""
    if declared.name == "others":
        return declared
    return DeclaredField(name=declared.name, hint=str, default=None, help=declared.help, panel=declared.panel)


def _get_role_hint(role: Role) -> Any:
    """The type of what plays a role of an audit."""
    return tuple[str, ...] if role.many else str


def _build_role_help(role: Role) -> str:
    """What plays a role, as the help of the option of an audit's verb; several may."""
    return f"{role.help} May be repeated." if role.many else role.help


def _build_run_parameters() -> list[inspect.Parameter]:
    """The parameters that every audit's verb has: folders, limits, and how results are shown."""

    def run(
        out: Annotated[
            Path | None,
            typer.Option(
                metavar="DIR",
                help="The run folder: keeps result, tables, plan and report. Without it the result is only shown.",
                rich_help_panel=RUN_PANEL,
            ),
        ] = None,
        fail_if: Annotated[
            list[str] | None,
            typer.Option(
                "--fail-if",
                metavar="LIMIT",
                help="End with status 1 if a finding exceeds this: 'auc>0.6', 'auc.lower>0.6'. May be repeated.",
                rich_help_panel=RUN_PANEL,
            ),
        ] = None,
        system: Annotated[
            str | None,
            typer.Option(
                metavar="TEXT",
                help="Name and version of the audited system, for the report: 'shop-bot 2.1'.",
                rich_help_panel=RUN_PANEL,
            ),
        ] = None,
        about: Annotated[
            list[str] | None,
            typer.Option(
                "--about",
                metavar="FIELD=TEXT",
                help="What the report says of the audit: system=shop-bot, version=, who=, purpose= or date=. "
                "May be repeated.",
                rich_help_panel=RUN_PANEL,
            ),
        ] = None,
        real_names: RealNames = False,
        named: Named = None,
        json: AsJson = False,
        junit: Junit = None,
        work: Work = Path(".recollect"),
        shared_work: SharedWork = False,
        work_limit_gb: WorkLimitGb = None,
        seed: Seed = 0,
        workers: Workers = None,
        threads: Threads = None,
        backend: BackendName = None,
    ) -> None:
        """What every audit's verb shares."""

    signature = inspect.signature(run, eval_str=True)
    return [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in signature.parameters.values()]
