"""From a plan file to plans that can be run, one per audit; every complaint names the file and the line."""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from recollect.audits.audit import Audit
from recollect.audits.registry import AUDITS
from recollect.corpora.columns import Columns
from recollect.corpora.splitting import Split
from recollect.documents import Document, Overrides, changes, put
from recollect.errors import PlanError
from recollect.models.model import Question
from recollect.pipeline.limits import Limit
from recollect.pipeline.plan import Plan
from recollect.pipeline.planfile import (
    OWN,
    SECTIONS,
    CorpusEntry,
    Given,
    ModelEntry,
    PlanFile,
    RecipeEntry,
    resolved,
)
from recollect.pipeline.sources import NamedCorpus, NamedModel
from recollect.recipes.reading import load_recipe
from recollect.recipes.recipe import Recipe
from recollect.settings import did_you_mean

Section = TypeVar("Section", bound=BaseModel)
_HINT = "Write `models:`, `corpora:` and `audits:`; examples/ has plans for the common cases."


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What a plan file asks for."""

    plans: tuple[Plan, ...]
    """One per audit, in the order of the file."""
    out: Path
    """The run folder."""
    settings: dict[str, Any]
    """The file as it was read, changes included."""


def read_plan(path: Path, overrides: Overrides = (), *, only: Collection[str] = ()) -> Planned:
    """The plans in a file.

    Args:
        path: A YAML file; paths in it are relative to its folder.
        overrides: Settings to change, as a mapping or as "a.b=c" strings.
        only: The audits that are wanted; all if empty.

    Raises:
        PlanError: The file is not there, or says something that cannot be done; the line is named.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise PlanError(f"{path.name} is not text.", do=_HINT) from error
    except OSError as error:
        raise PlanError(f"The plan {str(path)!r} cannot be read: {error.strerror}.", do="Check the path.") from error
    written = Document.read(text, name=path.name, do=_HINT)
    for key, value in changes(overrides):
        put(written.settings, key.split("."), value)
    if any("\0" in word for word in _words(written.settings)):
        raise PlanError(f"{path.name} holds a NUL sign, which no name of a file can have.", do="Take it out.")
    return _Reader(document=written, home=path.parent).planned(path, frozenset(only))


def _words(settings: Any) -> Iterator[str]:
    """All names and texts in settings."""
    if isinstance(settings, str):
        yield settings
    elif isinstance(settings, dict | list):
        for each in settings.items() if isinstance(settings, dict) else settings:
            yield from _words(list(each) if isinstance(each, tuple) else each)


@dataclass(frozen=True, kw_only=True)
class _Reader:
    """Turns what a document says into what it means."""

    document: Document
    home: Path
    """The folder that paths are relative to."""

    def planned(self, path: Path, only: frozenset[str]) -> Planned:
        """All plans."""
        file = self._checked(PlanFile, self.document.settings, ())
        self._refuse_unknown(only or file.audits)
        wanted = {name: settings for name, settings in file.audits.items() if not only or name in only}
        if missing := sorted(only.difference(file.audits)):
            raise PlanError(
                f"{self.document.name} plans no {missing[0]} audit.", do=f"It plans: {', '.join(file.audits)}."
            )
        if strange := sorted(file.limits.keys() - file.audits.keys()):
            raise PlanError(
                f"{self.document.place(['limits', strange[0]])}: limits are set for an audit that is not planned.",
                do=f"{did_you_mean(strange[0], file.audits)}Planned: {', '.join(file.audits)}.",
            )
        plans = tuple(self._plan(file, name, settings or {}) for name, settings in wanted.items())
        out = self.home / file.out if file.out is not None else path.with_name(f"{path.stem}-run")
        return Planned(plans=plans, out=out, settings=self.document.settings)

    def _plan(self, file: PlanFile, name: str, settings: dict[str, Any]) -> Plan:
        """The plan of one audit."""
        own = self._checked(Given, settings.get(OWN) or {}, ("audits", name, OWN))
        rest = {key: value for key, value in settings.items() if key != OWN}
        recipe = own.recipe or file.recipe
        # who trained what is known of one corpus, and not of another that plays the same part in this audit
        cohorts = {part: ref for part, ref in file.cohorts.items() if part not in own.corpora} | own.cohorts
        return Plan(
            audit=self._audit(name, rest),
            models={part: self._model(entry) for part, entry in {**file.models, **own.models}.items()},
            corpora={part: self._corpus(entry) for part, entry in {**file.corpora, **own.corpora}.items()},
            cohorts={part: Path(resolved(ref, self.home)) for part, ref in cohorts.items()},
            files={part: Path(resolved(ref, self.home)) for part, ref in {**file.files, **own.files}.items()},
            recipe=None if recipe is None else self._recipe(recipe),
            seed=file.seed,
            work=self.home / file.work,
            workers=file.workers,
            threads=file.threads,
            limits=tuple(self._limits(file.limits.get(name, ()), name)),
        )

    def _audit(self, name: str, settings: dict[str, Any]) -> Audit:
        """The audit with its settings."""
        kind = AUDITS.load(name)
        known = [each.name for each in dataclasses.fields(kind)]
        for setting in settings:
            if setting not in known:
                raise PlanError(
                    f"{self.document.place(['audits', name, setting])}: the {name} audit has no setting {setting!r}.",
                    do=f"{did_you_mean(setting, [*known, OWN])}It has: {', '.join(known)}.",
                )
        hints = typing.get_type_hints(kind)
        given = {key: self._value(hints[key], value, ("audits", name, key)) for key, value in settings.items()}
        try:
            made: Audit = kind(**given)
        except PlanError as error:
            place = self.document.place(["audits", name])
            raise PlanError(f"{place}: {error.found}", do=error.do) from error
        return made

    def _value(self, hint: Any, value: Any, path: tuple[str, ...]) -> Any:
        """A setting as its type has it: YAML knows no tuples."""
        try:
            return TypeAdapter(hint).validate_python(value)
        except ValidationError as error:
            first = error.errors()[0]
            place, name = self.document.place(path), ".".join(path[2:])
            raise PlanError(
                f"{place}: {name} is {value!r}. {first['msg']}.", do="Change it, or leave it out for the default."
            ) from None

    def _limits(self, limits: Sequence[str], audit: str) -> list[Limit]:
        """The limits of an audit."""
        found = []
        for place, limit in enumerate(limits):
            try:
                found.append(Limit.parse(limit))
            except PlanError as error:
                at = self.document.place(["limits", audit, str(place)])
                raise PlanError(f"{at}: {error.found}", do=error.do) from error
        return found

    def _model(self, entry: ModelEntry) -> NamedModel:
        """A model by its name."""
        asked = {"patterns": entry.patterns} if entry.patterns is not None else {}
        question = Question(
            window=entry.window,
            one_by_one=entry.one_by_one,
            mask_seed=entry.mask_seed,
            precision=entry.precision,
            **asked,
        )
        ref = resolved(entry.model, self.home)
        return NamedModel(ref=ref, question=question, kind=entry.kind, device=entry.device, top_k=entry.top_k)

    def _corpus(self, entry: CorpusEntry) -> NamedCorpus:
        """A corpus by its name."""
        names = {name: getattr(entry, name) for name in ("user", "text", "source", "target", "label", "id")}
        return NamedCorpus(
            ref=resolved(entry.corpus, self.home),
            columns=Columns(**{name: column for name, column in names.items() if column is not None}),
            format=entry.format,
            split=None if entry.split is None else Split(**entry.split.model_dump()),
            skip_bad=entry.skip_bad,
            running_text=entry.running_text,
        )

    def _recipe(self, entry: RecipeEntry) -> Recipe:
        """The recipe; a file, if it is one. A checkpoint that it goes on from may lie beside the plan, too."""
        recipe = load_recipe(resolved(entry.recipe, self.home), entry.set)
        start = recipe.model.start
        if start is None or not (self.home / start).exists():
            return recipe
        # models are found again by their recipe, so from wherever the plan is run its paths are the same
        begun = recipe.model.model_copy(update={"start": str((self.home / start).resolve())})
        return recipe.model_copy(update={"model": begun})

    def _refuse_unknown(self, audits: Collection[str]) -> None:
        """Refuse audits that there are not."""
        for name in audits:
            if name not in AUDITS.names:
                raise PlanError(
                    f"{self.document.place(['audits', name])}: there is no audit {name!r}.",
                    do=f"{did_you_mean(name, AUDITS.names)}Known: {', '.join(AUDITS.names)}.",
                )

    def _checked(self, kind: type[Section], settings: Any, above: tuple[str, ...]) -> Section:
        """A section of the file, or what is wrong with it."""
        try:
            return kind.model_validate(settings)
        except ValidationError as error:
            first = error.errors()[0]
            path = [*above, *(str(part) for part in first["loc"])]
            found, do = _explained(first, path, kind)
            raise PlanError(f"{self.document.place(path)}: {found}", do=do) from None


def _explained(error: ErrorDetails, path: Sequence[str], kind: type[BaseModel]) -> tuple[str, str]:
    """One pydantic error in our words: what was found, and what to do."""
    name = ".".join(path)
    if error["type"] != "extra_forbidden":
        said = "is missing" if error["type"] == "missing" else f"is {error['input']!r}. {error['msg']}"
        return f"{name} {said}.", "See the examples, or `recollect check --help`."
    within = [SECTIONS[part] for part in path[:-1] if part in SECTIONS]
    known = list((within[-1] if within else kind).model_fields)
    return f"there is no setting {name!r}.", f"{did_you_mean(path[-1], known)}Known here: {', '.join(known)}."
