"""The one place that prints: results on standard output, everything else on standard error.

What is printed may hold names that others chose; control characters are spelt out, and markup of Rich is plain text.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any, Protocol

from recollect.audits.workspace import NOTE_MARK
from recollect.printable import PrintableStream, escape_controls, escape_json, escape_line, escape_message

if TYPE_CHECKING:
    from rich.console import Console

SECONDS_BEFORE_BAR = 2.0
"""Seconds after which a reader wants to see progress."""
SECONDS_BETWEEN_LINES = 10.0
"""Seconds between two lines of progress where there is no terminal."""


class Progress(Protocol):
    """Called while something runs."""

    def __call__(self, done: int, total: int | None, note: str = "") -> None:
        """So much is done, of so much in all (None: not known yet)."""


def say(message: str = "") -> None:
    """Print a line on the console's standard error."""
    with suppress(OSError, ValueError):  # nobody listens any more, which is no reason to stop
        sys.stderr.write(escape_message(message) + "\n")


def print_error(message: str) -> None:
    """Say on standard error what went wrong."""
    say(f"recollect: {message}")


def say_waiting(what: str) -> None:
    """Say in a terminal what takes a few seconds before anything moves; a log needs no such line."""
    if _find_terminal().isatty():
        say(f"Loading {what} …")


def announce_torch() -> None:
    """Say in a terminal that PyTorch is being loaded, whichever verb needs it, once it is."""
    sys.meta_path.insert(0, _TorchFinder())


class _TorchFinder:
    """Finds PyTorch where Python finds it, and says that it waits for it when it is imported, not when looked for."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The module, if it is PyTorch; the other finders look for all else."""
        if name != "torch":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader.exec_module = partial(_wait_for_module, spec.loader.exec_module)  # type: ignore[method-assign]
        return spec


def _wait_for_module(execute: Callable[[Any], None], module: Any) -> None:
    """Import a module of which the console says that it waits for it."""
    say_waiting("PyTorch")
    execute(module)


def print_json(value: Any) -> None:
    """Print a result on the console's standard output, as JSON."""
    unicode = (sys.stdout.encoding or "utf-8").lower().replace("-", "") == "utf8"
    document = json.dumps(value, indent=2, ensure_ascii=not unicode, allow_nan=False)
    sys.stdout.write(escape_json(document) + "\n")


def print_text(text: str) -> None:
    """Print lines on the console's standard output as they are, such as those of a file of ours."""
    sys.stdout.write(escape_controls(text.rstrip("\n")) + "\n")


def _open_screen() -> Console:
    """The console's standard output; a reader who goes away is an error, not status 1, as with Rich alone."""
    from rich.console import Console

    class Screen(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Screen()


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table on the console's standard output. Text from corpora must be masked before it comes here."""
    from rich.table import Table

    table = Table(title=_build_printed_text(title, style="bold"), title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(_build_printed_text(column), overflow="fold", style="bold" if i == 0 else None)
    for row in rows:
        table.add_row(*map(_build_printed_text, row))
    _open_screen().print(table)


def print_grid(title: str, rows: Sequence[Sequence[str]], *, headings: Sequence[str] = ()) -> None:
    """Print a few rows under a title on the console's standard output. Text from corpora must be masked before."""
    from rich.table import Table

    screen = _open_screen()
    screen.print(_build_printed_text(title, style="bold"), soft_wrap=False)
    table = Table(box=None, show_header=bool(headings), pad_edge=False, padding=(0, 2, 0, 0))
    for heading in headings or [""] * max(map(len, rows), default=0):
        table.add_column(_build_printed_text(heading, style="dim"), overflow="fold")
    for row in rows:
        table.add_row(*map(_build_printed_text, row))
    if rows:
        screen.print(table)


def count_lines(text: str) -> int:
    """How many lines a text takes on the console.

    >>> count_lines("word " * 3)
    1
    """
    screen = _open_screen()
    return len(_build_printed_text(text).wrap(screen, screen.width))


def _build_printed_text(text: str, *, style: str = "") -> Any:
    """A text as Rich prints it: brackets and colons in a name are no markup, and control characters are spelt out."""
    from rich.text import Text

    return Text(escape_line(text), style=style)


@contextmanager
def show_progress(task: str) -> Iterator[Progress]:
    """A bar with the time left after two seconds; plain lines where standard error is no terminal."""
    bar = _make_progress_bar(task)
    try:
        yield bar
    finally:
        bar.close()


@contextmanager
def show_stages() -> Iterator[Stages]:
    """Progress of work in several stages: one bar after the other, because a terminal draws one at a time."""
    shown = Stages()
    try:
        yield shown
    finally:
        shown.close()


@dataclass
class Stages:
    """Called with the current stage and how far it is; a new stage ends the bar of the last."""

    task: str | None = None
    bar: _ProgressBar | _ProgressLines | None = None

    def __call__(self, what: str, done: int, total: int | None, /) -> None:
        """So much of this stage is done, of so much in all (None: not known yet)."""
        task, _, note = what.partition(NOTE_MARK)
        if self.bar is None or task != self.task:
            self.close()
            self.task, self.bar = task, _make_progress_bar(task)
        self.bar(done, total, note)

    def close(self) -> None:
        """Leave the last state of the bar on the screen."""
        if self.bar is not None:
            self.bar.close()


def _make_progress_bar(task: str) -> _ProgressBar | _ProgressLines:
    """A bar, or lines where standard error is no terminal."""
    return _ProgressBar(escape_line(task)) if _find_terminal().isatty() else _ProgressLines(task)


def _find_terminal() -> Any:
    """Standard error of the console itself, where libraries write through a stream that escapes what they write."""
    return sys.stderr.terminal if isinstance(sys.stderr, PrintableStream) else sys.stderr


@dataclass
class _ProgressLines:
    """Progress as plain lines: for logs."""

    task: str
    began: float = field(default_factory=time.monotonic)
    last: float = float("-inf")

    def __call__(self, done: int, total: int | None, note: str = "") -> None:
        now = time.monotonic()
        if now - self.began < SECONDS_BEFORE_BAR or now - self.last < SECONDS_BETWEEN_LINES:
            return
        self.last = now
        of = f" of {total:,} ({done / total:.0%})" if total else ""
        left = f", {_format_time_left((now - self.began) * (total - done) / done)} left" if total and done else ""
        say(f"{self.task}: {done:,}{of}{left}{', ' + note if note else ''}")

    def close(self) -> None:
        """Nothing is left on the screen."""


@dataclass
class _ProgressBar:
    """Progress as a bar: for people."""

    task: str
    began: float = field(default_factory=time.monotonic)
    drawn: Any = None
    number: Any = None

    def __call__(self, done: int, total: int | None, note: str = "") -> None:
        if self.drawn is None and time.monotonic() - self.began < SECONDS_BEFORE_BAR:
            return
        if self.drawn is None:
            self._draw()
        self.drawn.update(self.number, completed=done, total=total, note=escape_line(note))

    def _draw(self) -> None:
        """Put the bar on the screen."""
        from rich import progress as parts
        from rich.console import Console

        columns = [
            parts.TextColumn("{task.description}", markup=False),
            parts.BarColumn(),
            parts.MofNCompleteColumn(),
            parts.TimeElapsedColumn(),
            parts.TextColumn("left"),
            parts.TimeRemainingColumn(),
            parts.TextColumn("{task.fields[note]}", markup=False),
        ]
        self.drawn = parts.Progress(*columns, console=Console(file=_find_terminal()))
        self.number = self.drawn.add_task(self.task, note="")
        self.drawn.start()
        sys.stderr = PrintableStream(sys.stderr)  # Rich moves what is written meanwhile above the bar, as it is

    def close(self) -> None:
        """Leave the last state of the bar on the screen."""
        if self.drawn is not None:
            self.drawn.stop()


def _format_time_left(seconds: float) -> str:
    """The seconds left beside a progress bar of the console, in words.

    >>> _format_time_left(75), _format_time_left(4000)
    ('1:15', '1:06:40')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
