"""The figures of a README, filled in from results files: no number is written by hand.

A paper's folder has `results/<study>.json` (what its studies found), `results/earlier/<study>.json` (figures of earlier
runs, as they were printed; each file says of which), `results/settings.json` (how the studies were done, beside the
paper) and `README.template.md`, of which `reproductions/fill_readme.py` makes `README.md`. In a template

- `{{study: what}}` is our figure of that name, `{{study: what @paper}}` the paper's; a name that ends with `…` stands
  for the one figure that begins so. Formats: `@.3f` and the like, `@%` (a share in percent), `@of` ("3 of 90", if the
  name ends with "of 90"), `@both` (the paper's, if it has one, and ours), `@ours` (ours as it is; `{row}` alone would
  be the label). A study is named `earlier/study` if an earlier run is meant.
- a fenced block of the language `figures STUDY` is a table: the line `rows: label=key; key`, in which a label may be
  left out, and then one line for each column, `header | name of the figure`; `{row}` stands for the row's key. With
  `rows so far:` those are left out of which the study has no figures yet.
- `{{table: study}}` is the whole table of a study, and `{{again: study}}` the same with a heading if the study has been
  run since the figures of an earlier run were printed, and nothing if not.
- `{{scale: study}}` says how a study was done, `{{origin: study}}` where its figures come from, if not from the study
  as it is now. `{{state: study | words}}` is what a list says of a study: the words, if
  it has been run, with a remark if only an earlier run has; otherwise that it has not.
- `<!-- if study -->`, `<!-- else -->` and `<!-- end -->`, each on a line of its own, choose between two texts: the
  first if there is a results file of the study.

A page of the documentation has no template. There a figure stands between two marks, and is written anew:
`<!-- paper/study: what @format -->0.52<!-- / -->`. So does a table, between `<!-- figures paper/study`, with the lines
of a block before its `-->`, and `<!-- end of figures -->`. `<!-- paper: in one sentence -->…<!-- / -->` is what the
paper's README says so.
"""

from __future__ import annotations

import re
from functools import cached_property
from pathlib import Path

from common.outcomes import Figure, Outcome, shown

TEMPLATE, README = "README.template.md", "README.md"
INLINE = re.compile(r"\{\{(.+?)\}\}")
BLOCK = re.compile(r"^```figures ([\w/]+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MARKED = re.compile(r"(<!-- (\w+)/([\w/]+): (.+?) -->)(.*?)(<!-- / -->)", re.DOTALL)
MARKED_SENTENCE = re.compile(r"(<!-- (\w+): in one sentence -->)(.*?)(<!-- / -->)", re.DOTALL)
MARKED_TABLE = re.compile(r"(<!-- figures (\w+)/([\w/]+)\n(.*?)\n-->\n\n)(.*?)(\n\n<!-- end of figures -->)", re.DOTALL)
CHOICE = re.compile(r"^<!-- if (\w+) -->\n(.*?)^<!-- else -->\n(.*?)^<!-- end -->\n", re.DOTALL | re.MULTILINE)
EMPTY = re.compile(r"\n{3,}")
ONE_SENTENCE = re.compile(r"^\*\*In one sentence:\*\* (.+?)\n\n", re.DOTALL | re.MULTILINE)
SEPARATOR = re.compile(r"(?<! )=(?! )")
"""Between the label and the key of a row: "k = 100" is one key."""
SO_FAR = "rows so far"
HEADER = 2
"""The lines of a table above its rows; one that has no rows yet is left out."""
EARLIER = "earlier"
NOT_DONE = "**not done yet** (the study is written)"


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
        files = [*sorted(self._folder.glob("*.json")), *sorted(self._folder.glob(f"{EARLIER}/*.json"))]
        names = [file.relative_to(self._folder).with_suffix("").as_posix() for file in files]
        return {name: Outcome.load(file) for name, file in zip(names, files, strict=True)}

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
        if form == "both":
            both = [shown(each) for each in (figure.paper, figure.ours) if each is not None or figure.paper is not None]
            return " \\| ".join(both) or shown(None)
        return shown(figure.paper) if form == "paper" else _formatted(figure, form)


def filled(template: str, results: Results) -> str:
    """The template with every figure in its place.

    Raises:
        MissingFigureError: It names a figure that there is not.
    """
    chosen = CHOICE.sub(lambda match: match[2] if match[1] in results.studies else match[3], template)
    blocks = BLOCK.sub(lambda match: _table(match[1], match[2], results), chosen)
    return EMPTY.sub("\n\n", INLINE.sub(lambda match: _inline(match[1], results), blocks)).rstrip() + "\n"


def marked(page: str, reproductions: Path) -> str:
    """A page with every marked figure as the results files of the reproductions have it.

    Raises:
        MissingFigureError: A mark names a figure that there is not.
    """

    def figure(match: re.Match[str]) -> str:
        opening, paper, study, spec, _, closing = match.groups()
        return f"{opening}{Results(reproductions / paper / 'results').text(study, spec)}{closing}"

    def table(match: re.Match[str]) -> str:
        opening, paper, study, body, _, closing = match.groups()
        return f"{opening}{_table(study, body, Results(reproductions / paper / 'results'))}{closing}"

    def sentence(match: re.Match[str]) -> str:
        opening, paper, _, closing = match.groups()
        readme = (reproductions / paper / README).read_text(encoding="utf-8")
        found = ONE_SENTENCE.search(readme)
        if found is None:
            raise MissingFigureError(f"The README of {paper} has no sentence that sums it up.")
        return f"{opening}{' '.join(found[1].split())}{closing}"

    return MARKED_SENTENCE.sub(sentence, MARKED_TABLE.sub(table, MARKED.sub(figure, page)))


def _named(name: str, wanted: str) -> bool:
    """Whether a figure is meant."""
    return name.startswith(wanted[:-1]) if wanted.endswith("…") else name == wanted


def _formatted(figure: Figure, form: str) -> str:
    """Our figure in a format."""
    ours = figure.ours
    if form == "of":
        return f"{shown(ours)} of {figure.what.rpartition('of ')[2]}"
    if form in ("", "ours") or ours is None or isinstance(ours, str):
        return shown(ours)
    return f"{ours:.0%}" if form == "%" else format(ours, form)


def _inline(spec: str, results: Results) -> str:
    """One figure, or the whole table of a study."""
    study, _, what = (part.strip() for part in spec.partition(":"))
    if study == "table":
        return results.study(what).table().partition("\n\n")[2].strip()
    if study == "again":
        return results.study(what).table().strip() if what in results.studies else ""
    if study in ("scale", "origin"):
        return str(getattr(results.study(what), study))
    if study == "state":
        return _state(what, results)
    return results.text(study, what)


def _state(spec: str, results: Results) -> str:
    """Whether a study has been run, and what is to be said of it then."""
    study, _, words = (part.strip() for part in spec.partition("|"))
    if study in results.studies:
        return words
    return f"{words} ({EARLIER} run)" if f"{EARLIER}/{study}" in results.studies else NOT_DONE


def _table(study: str, body: str, results: Results) -> str:
    """A block of a template as a table."""
    first, *lines = [line for line in body.splitlines() if line.strip()]
    kind, _, named = first.partition(":")
    rows = [part.strip() for part in named.split(";")]
    columns = [[cell.strip() for cell in line.split(" | ", 1)] for line in lines]
    made = [[header for header, _ in columns], ["---"] * len(columns)]
    for row in rows:
        *before, key = SEPARATOR.split(row)
        label = "=".join(before) or key
        try:
            made.append([_cell(what, label.strip(), key.strip(), study, results) for _, what in columns])
        except MissingFigureError:
            if kind != SO_FAR:
                raise
    if len(made) == HEADER:
        return ""
    return "\n".join(f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in made)


def _cell(what: str, label: str, key: str, study: str, results: Results) -> str:
    """One cell of a table; `{row}` alone is the row's label, and "–" an empty one."""
    if what == "{row}":
        return label
    return "–" if what == "–" else results.text(study, what.replace("{row}", key))
