"""A plan: an audit, and all that is given to it. It does no work, and it can be written down."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from pydantic import BaseModel

from recollect.audits.audit import Audit
from recollect.audits.rounds import refuse_missing
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.digests import digest
from recollect.errors import CorpusError, PlanError
from recollect.models.model import Model
from recollect.pipeline.limits import Limit
from recollect.pipeline.sources import NamedCorpus, NamedModel
from recollect.recipes.recipe import Recipe
from recollect.results.masking import shown_settings
from recollect.settings import at_least
from recollect.signals.evidence import AUDITED, Evidence


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """What is to be run. The work folder serves all plans; what another one trained or asked is not done again."""

    audit: Audit
    models: Mapping[str, Model | NamedModel | str] = field(default_factory=dict)
    """By their parts: "target", "reference", "shadow-0" …"""
    corpora: Mapping[str, Corpus | NamedCorpus | str] = field(default_factory=dict)
    """By their parts: "audited", "controls" …"""
    cohorts: Mapping[str, Cohorts | Path] = field(default_factory=dict)
    """Who trained which model, where it is known, by the part of the corpus that was divided."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Other files that the audit reads, by their parts: "canaries" …"""
    recipe: Recipe | None = None
    """How models that are needed and not given are trained."""
    seed: int = 0
    work: Path = Path(".recollect")
    workers: int | None = None
    """Processes at once; None for one that asks and, to train, as many as a short trial finds best."""
    threads: int | None = None
    """Threads of each; None to divide the cores."""
    limits: tuple[Limit, ...] = ()
    """What no finding may pass."""

    def __post_init__(self) -> None:
        at_least(1, **{name: n for name in ("workers", "threads") if (n := getattr(self, name)) is not None})

    def refuse_incomplete(self) -> None:
        """Refuse a plan that lacks something, before anything is loaded.

        Raises:
            PlanError: A part is missing that the audit needs, or a recipe for what would have to be trained.
        """
        roles, trainable = {*self.models, *self.corpora, *self.files}, self.recipe is not None
        members = AUDITED in self.cohorts
        needs = refuse_missing(self.audit, roles, files=self.files, trainable=trainable, members=members)
        given = Evidence(models=dict.fromkeys(self.models))  # type: ignore[arg-type]
        untrained = {part: count for part, count in needs.fleet.items() if not given.playing(part)}
        if untrained and self.recipe is None:
            wanted = " and ".join(f"{count} {part} model{'s' * (count > 1)}" for part, count in untrained.items())
            raise PlanError(
                f"The {self.audit.name} audit needs {wanted}, and none is given.",
                do="Give the models, or a recipe to train them with.",
            )

    def evidence(self) -> Evidence:
        """What is given, read and loaded; what is quickly refused comes first."""
        for path in self.files.values():
            if not path.is_file():
                raise PlanError(f"There is no file {str(path)!r}.", do="Check the path.")
        corpora = {part: _read(source) for part, source in self.corpora.items()}
        cohorts = {part: _checked(source, part, corpora) for part, source in self.cohorts.items()}
        models = {part: _loaded(source) for part, source in self.models.items()}
        return Evidence(
            models=models,
            corpora=corpora,
            cohorts=cohorts,
            files=self.files,
            seed=self.seed,
            trainable=self.recipe is not None,
        )

    def written(self) -> dict[str, Any]:
        """The plan as it is written down: names and settings, defaults included."""
        described: dict[str, Any] = plain(
            {
                "audits": {self.audit.name: settings_of(self.audit)},
                "models": {part: _named(source) for part, source in self.models.items()},
                "corpora": {part: _named(source) for part, source in self.corpora.items()},
                "cohorts": {part: _named(source) for part, source in self.cohorts.items()},
                "files": dict(self.files),
                "recipe": None if self.recipe is None else self.recipe.model_dump(mode="json"),
                "seed": self.seed,
                "work": self.work,
                "workers": self.workers,
                "threads": self.threads,
                "limits": [str(limit) for limit in self.limits],
            }
        )
        return described


def settings_of(audit: Audit) -> dict[str, Any]:
    """All settings of an audit, defaults included; documents among them, which may hold secrets, by their digest."""
    if not dataclasses.is_dataclass(audit):
        return {}
    settings: dict[str, Any] = plain({each.name: getattr(audit, each.name) for each in dataclasses.fields(audit)})
    return settings


def told_settings(audit: Audit) -> dict[str, Any]:
    """All settings of an audit as its result tells them: private text is masked if the audit is not to show text."""
    settings = settings_of(audit)
    return shown_settings(settings, show_text=settings.get("show_text") is not False)


def plain(value: Any) -> Any:
    """A value as JSON and YAML have it.

    >>> plain({"file": Path("a.jsonl"), "fpr": (0.01, 0.1)})
    {'file': 'a.jsonl', 'fpr': [0.01, 0.1]}
    """
    return json.loads(json.dumps(value, default=_plain))


def _plain(value: Any) -> Any:
    """What JSON does not know, in its words."""
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, BaseModel):
        return f"digest {digest(value.model_dump(mode='json'))}"
    if dataclasses.is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    if isinstance(value, frozenset | set):
        return sorted(value)
    raise PlanError(f"A {type(value).__name__} cannot be written down.", do="Use plain values in the settings.")


def _named(source: Model | NamedModel | Corpus | NamedCorpus | Cohorts | Path | str) -> Any:
    """A model, corpus or cohorts as a plan names them; an object that was never named, by its digest."""
    if isinstance(source, Corpus | Model):
        return {"object": source.name, "digest": source.digest}
    return {"object": "cohorts", "digest": digest_of(source)} if isinstance(source, Cohorts) else source


def digest_of(cohorts: Cohorts) -> str:
    """The address of who trained what."""
    members = {model: list(cohorts.members(model)) for model in cohorts.models}
    return digest(cohorts.corpus, cohorts.unit, list(cohorts.units), members)


def _read(source: Corpus | NamedCorpus | str) -> Corpus:
    """The corpus itself."""
    if isinstance(source, str):
        source = NamedCorpus(ref=source)
    return source if isinstance(source, Corpus) else source.read()


def _loaded(source: Model | NamedModel | str) -> Model:
    """The model itself."""
    if isinstance(source, str):
        source = NamedModel(ref=source)
    return source.load() if isinstance(source, NamedModel) else source


def _checked(source: Cohorts | Path, part: str, corpora: Mapping[str, Corpus]) -> Cohorts:
    """The cohorts themselves, of the very corpus that is given."""
    cohorts = source if isinstance(source, Cohorts) else Cohorts.load(source)
    if part not in corpora:
        raise CorpusError(f"Cohorts are given of the corpus {part!r}, but no such corpus.", do="Give the corpus too.")
    cohorts.check(corpora[part])
    return cohorts
