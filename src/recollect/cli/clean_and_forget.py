"""`recollect clean` and `recollect forget`: what may leave a work folder, and what must."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.cli import console
from recollect.cli.shared_options import CORPUS_HELP, AsJson, CorpusOptions, Work

if TYPE_CHECKING:
    from recollect.pipeline.work_folder.work_entries import WorkItem

Delete = Annotated[bool, typer.Option("--delete", help="Delete what is listed; without it nothing is changed.")]


def clean(work: Work = Path(".recollect"), delete: Delete = False, json: AsJson = False) -> None:
    """List what no run needs any more, with sizes; --delete deletes it.

    Everything that an existing run folder is based on is needed. Listed are scores and models of runs without --out,
    those of run folders that were deleted or moved, and remains of killed runs. Nothing is deleted while a run uses
    the work folder.

    `recollect clean --work .recollect`
    """
    from recollect.api import clean as clean_folder
    from recollect.pipeline.work_folder.work_entries import format_size

    found = clean_folder(work, delete=delete)
    if json:
        console.print_json(
            {"work": str(work), "deleted": delete, "size": found.size, "items": _cleaned_items_to_json(found.items)}
        )
    else:
        _show_cleaned_items(f"What no run needs any more of '{work}'", found.items)
    done = "deleted" if delete else "would be deleted (--delete deletes it)"
    console.say(f"{len(found.items):,} items, {format_size(found.size)}: {done}. Kept for runs: {found.kept:,}.")


def forget(
    user: Annotated[str, typer.Argument(metavar="USER", help="The person, as the corpora name them.")],
    reading: CorpusOptions,
    work: Work = Path(".recollect"),
    corpus: Annotated[
        str | None, typer.Option(metavar="CORPUS", help=f"A corpus with the person's records: {CORPUS_HELP}")
    ] = None,
    delete: Delete = False,
    json: AsJson = False,
) -> None:
    """List what was made from a person's records in a work folder, with the reasons; --delete deletes it.

    That is: scores of their records, models that were trained on them, all scores by these models, and unfinished work
    of audits. With --corpus, only the person's rows are taken out of stored scores; without it, whatever may contain
    them is deleted as a whole. Your own corpora and models are not touched. Files of run folders that name the person
    are listed, but kept.

    `recollect forget alice --corpus posts.jsonl --delete`
    """
    from recollect.api import forget as forget_person

    texts = None if corpus is None else reading.read(corpus)
    found = forget_person(user, work=work, corpus=texts, delete=delete)
    if json:
        named = [str(path) for path in found.still_named]
        items = _cleaned_items_to_json(found.items)
        console.print_json({"user": user, "work": str(work), "deleted": delete, "items": items, "still_named": named})
    else:
        _show_cleaned_items(f"What rests on the user's records in '{work}'", found.items)
    console.say(f"{len(found.items):,} items: {'deleted' if delete else 'would be deleted (--delete deletes them)'}.")
    for path in found.still_named:
        console.say(f"Still names the user, and stays: {path}")


def _show_cleaned_items(title: str, items: Sequence[WorkItem]) -> None:
    """Print what `clean` or `forget` takes out of a work folder as a table."""
    from recollect.pipeline.work_folder.work_entries import format_size

    rows = [[format_size(x.size), str(x.path), x.reason + (" (in use: left alone)" if x.in_use else "")] for x in items]
    console.print_table(title, ["size", "path", "why"], rows)


def _cleaned_items_to_json(items: Sequence[WorkItem]) -> list[dict[str, Any]]:
    """What `clean` or `forget` takes out of a work folder, as JSON."""
    return [{"path": str(x.path), "reason": x.reason, "size": x.size, "in_use": x.in_use} for x in items]
