"""What is typed every day, done without the parser of options, which takes longer to load than all of the rest.

A shortcut is taken only if it does exactly what the command would do. Whatever is wrong with a command is left to the
command itself.
"""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path

from recollect.errors import RecollectError
from recollect.files import write_text


def take_shortcut(words: Sequence[str]) -> bool:
    """Do what was typed if that is the help of a verb, a list, or a report as it is by default; whether it was done."""
    gc.disable()  # to look for garbage again and again takes a tenth of such a command, and finds next to none
    try:
        return _do_shortcut(words)
    finally:
        gc.freeze()  # what was loaded stays until the process ends, and need not be looked through then either
        gc.enable()


def _do_shortcut(words: Sequence[str]) -> bool:
    """Do what was typed if there is a shortcut for it; whether it was done."""
    match words:
        case [str(verb), "--help" | "-h"] if not verb.startswith("-"):
            return _show_help(verb)
        case ["list"] | ["list", "--json"]:
            return _list_components(as_json=len(words) == 2)
        case ["report", str(folder)] if not folder.startswith("-"):
            return _write_report(Path(folder))
        case ["report", str(folder), "--out", str(out)] if not folder.startswith("-") and not out.startswith("-"):
            return _write_report(Path(folder), Path(out))
    return False


def _show_help(verb: str) -> bool:
    """Print the help of a verb, if there is such a verb."""
    from recollect.cli.app import VERBS, build_command

    if verb not in VERBS:  # the help of an audit and of a plug-in's takes more than that
        return False
    build_command(verb)(args=["--help"], prog_name=f"recollect {verb}")
    return True


def _list_components(*, as_json: bool) -> bool:
    """Print what there is, unless a plug-in cannot be used."""
    from recollect.cli.components import show_components

    try:
        show_components(as_json=as_json)
    except BrokenPipeError:
        raise
    except (RecollectError, OSError):
        return False
    return True


def _write_report(folder: Path, out: Path | None = None) -> bool:
    """Say where the report of a run folder is, after building it unless it is up to date; it is copied to `out`."""
    from recollect.cli.console import say
    from recollect.report.currency import is_report_current

    try:
        if not is_report_current(folder):
            from recollect.report.report_writer import write_report

            say(f"The report is in {write_report(folder, out)}.")
        elif out is None:
            say(f"The report is in {folder / 'report.html'}, and up to date.")
        else:
            if out.suffix not in {".html", ".md"}:
                return False
            write_text(out, (folder / f"report{out.suffix}").read_bytes().decode())
            say(f"The report is in {out}.")
    except BrokenPipeError:
        raise
    except (RecollectError, OSError, ValueError):
        return False
    return True
