"""The figures of a README, filled in from results files: no number is written by hand.

A paper's folder has `results/<study>.json` (what its studies found) and `README.template.md`, of which
`reproductions/fill_readme.py` makes `README.md`. In a template

- `{{study: what}}` is our figure of that name, `{{study: what @paper}}` the paper's; a name that ends with `…` stands
  for the one figure that begins so. Formats: `@.3f` and the like, `@%` (a share in percent), `@of` ("3 of 90", if the
  name ends with "of 90").
- a fenced block of the language `figures STUDY` is a table: the line `rows: label=key; key`, in which a label may be
  left out, and then one line for each column, `header | name of the figure`; `{row}` stands for the row's key.
- `{{table: study}}` is the whole table of a study.
- `<!-- if study -->`, `<!-- else -->` and `<!-- end -->`, each on a line of its own, choose between two texts: the
  first if there is a results file of the study.

A page of the documentation has no template. There a figure stands between two marks, and is written anew:
`<!-- paper/study: what @format -->0.52<!-- / -->`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from common.outcomes import Figure, Number, Outcome, shown

TEMPLATE, README = "README.template.md", "README.md"
INLINE = re.compile(r"\{\{(.+?)\}\}")
BLOCK = re.compile(r"^```figures (\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MARKED = re.compile(r"(<!-- (\w+)/(\w+): (.+?) -->)(.*?)(<!-- / -->)", re.DOTALL)
CHOICE = re.compile(r"^<!-- if (\w+) -->\n(.*?)^<!-- else -->\n(.*?)^<!-- end -->\n", re.DOTALL | re.MULTILINE)
DIGITS = 6
"""Significant digits that are kept of a figure: more would differ from machine to machine."""


class MissingFigureError(LookupError):
    """A template names a figure that no results file has."""


class Results:
    """What the studies of a paper found, as its folder has it."""

    def __init__(self, folder: Path) -> None:
        """The results of one paper's folder."""
        self._folder = folder

    @cached_property
    def studies(self) -> dict[str, Outcome]:
        """What each study found."""
        return {file.stem: Outcome.load(file) for file in sorted(self._folder.glob("*.json"))}

    def study(self, name: str) -> Outcome:
        """What one study found."""
        if name not in self.studies:
            raise MissingFigureError(f"There is no results file of the study {name}.")
        return self.studies[name]

    def figure(self, study: str, what: str) -> Figure:
        """The one figure of that name, or that begins so."""
        found = [each for each in self.study(study).figures if _named(each.what, what)]
        if len(found) != 1:
            raise MissingFigureError(f"{len(found)} figures of the study {study} are called {what!r}.")
        return found[0]

    def text(self, study: str, spec: str) -> str:
        """A figure as the template wants it."""
        what, _, form = (part.strip() for part in spec.partition("@"))
        figure = self.figure(study, what)
        return shown(figure.paper) if form == "paper" else _formatted(figure, form)


def filled(template: str, results: Results) -> str:
    """The template with every figure in its place.

    Raises:
        MissingFigureError: It names a figure that there is not.
    """
    chosen = CHOICE.sub(lambda match: match[2] if match[1] in results.studies else match[3], template)
    blocks = BLOCK.sub(lambda match: _table(match[1], match[2], results), chosen)
    return INLINE.sub(lambda match: _inline(match[1], results), blocks)


def marked(page: str, reproductions: Path) -> str:
    """A page with every marked figure as the results files of the reproductions have it.

    Raises:
        MissingFigureError: A mark names a figure that there is not.
    """

    def figure(match: re.Match[str]) -> str:
        opening, paper, study, spec, _, closing = match.groups()
        return f"{opening}{Results(reproductions / paper / 'results').text(study, spec)}{closing}"

    return MARKED.sub(figure, page)


def take_over(work: Path, folder: Path) -> None:
    """Copy the figures of a work folder's results, without what they were made of, into a paper's folder."""
    for file in sorted((work / "results").glob("*.json")):
        outcome = Outcome.load(file)
        figures = [Figure(each.what, each.paper, _rounded(each.ours)) for each in outcome.figures]
        replace(outcome, figures=figures, details={}).save(folder / file.name)


def _named(name: str, wanted: str) -> bool:
    """Whether a figure is meant."""
    return name.startswith(wanted[:-1]) if wanted.endswith("…") else name == wanted


def _formatted(figure: Figure, form: str) -> str:
    """Our figure in a format."""
    ours = figure.ours
    if form == "of":
        return f"{shown(ours)} of {figure.what.rpartition('of ')[2]}"
    if not form or ours is None or isinstance(ours, str):
        return shown(ours)
    return f"{ours:.0%}" if form == "%" else format(ours, form)


def _inline(spec: str, results: Results) -> str:
    """One figure, or the whole table of a study."""
    study, _, what = (part.strip() for part in spec.partition(":"))
    if study == "table":
        return results.study(what).table().partition("\n\n")[2].strip()
    return results.text(study, what)


def _table(study: str, body: str, results: Results) -> str:
    """A block of a template as a table."""
    first, *lines = [line for line in body.splitlines() if line.strip()]
    rows = [part.strip() for part in first.removeprefix("rows:").split(";")]
    columns = [[cell.strip() for cell in line.split(" | ", 1)] for line in lines]
    made = [[header for header, _ in columns], ["---"] * len(columns)]
    for row in rows:
        label, _, key = row.rpartition("=")
        made.append([_cell(what, (label or key).strip(), key.strip(), study, results) for _, what in columns])
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in made)


def _cell(what: str, label: str, key: str, study: str, results: Results) -> str:
    """One cell of a table; `{row}` alone is the row's label, and "–" an empty one."""
    if what == "{row}":
        return label
    return "–" if what == "–" else results.text(study, what.replace("{row}", key))


def _rounded(value: Number) -> Number:
    """A number with as many digits as are kept."""
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
