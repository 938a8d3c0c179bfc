"""The `recollect` command and its verbs."""

from __future__ import annotations

from typing import Annotated

import typer

from recollect import __version__
from recollect.cli import (
    compare,
    demo,
    doctor,
    evaluate,
    exposure,
    extract,
    leakage,
    listing,
    membership,
    plans,
    plant,
    provenance,
    removal,
    report,
    sanitise,
    score,
    train,
)
from recollect.cli.verbs import verb

app = typer.Typer(
    epilog="Start with `recollect demo`. Every verb explains itself: `recollect score --help`.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        typer.echo(f"recollect {__version__}")
        raise typer.Exit


@app.callback()
def recollect(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Find out what a trained model remembers of its training data, whose data it is, and whether it can be got out."""


app.command("demo", rich_help_panel="Start here")(verb(demo.demo))
app.command("run", rich_help_panel="Start here")(verb(plans.run))
app.command("check", rich_help_panel="Start here")(verb(plans.check))
app.command("plant", rich_help_panel="Prepare")(verb(plant.plant))
app.command("sanitise", rich_help_panel="Prepare")(verb(sanitise.sanitise))
app.command("train", rich_help_panel="Prepare")(verb(train.train))
app.command("score", rich_help_panel="Prepare")(verb(score.score))
app.command("provenance", rich_help_panel="Audit")(verb(provenance.provenance))
app.command("exposure", rich_help_panel="Audit")(verb(exposure.exposure))
app.command("extract", rich_help_panel="Audit")(verb(extract.extract))
app.command("leakage", rich_help_panel="Audit")(verb(leakage.leakage))
app.command("membership", rich_help_panel="Audit")(verb(membership.membership))
app.command("removal", rich_help_panel="Audit")(verb(removal.removal))
app.command("report", rich_help_panel="Look")(verb(report.report))
app.command("compare", rich_help_panel="Look")(verb(compare.compare))
app.command("evaluate", rich_help_panel="Look")(verb(evaluate.evaluate))
app.command("list", rich_help_panel="Look")(verb(listing.list_parts))
app.command("doctor", rich_help_panel="Look")(verb(doctor.doctor))
