"""A plan: an audit, and all that is given to it. It does no work, and it can be written down and read again."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

from pydantic import BaseModel

from recollect.audits.audit import Audit, Needs
from recollect.audits.registry import AUDITS
from recollect.audits.rounds import refuse_missing
from recollect.checks import check_at_least, check_names, read_setting, suggest_name
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.corpora.members import Members, read_members
from recollect.digests import digest
from recollect.errors import CorpusError, PlanError
from recollect.execution.backend import Backend
from recollect.models.model import Model
from recollect.pipeline.plans.backends import BackendRef
from recollect.pipeline.plans.limits import Limit
from recollect.pipeline.plans.refs import (
    CorpusRef,
    MembersRef,
    ModelRef,
    RecipeRef,
    use_precision_in_ref,
    use_template_in_ref,
)
from recollect.pipeline.sources import Sources
from recollect.recipes.recipe import Recipe
from recollect.results.result import About
from recollect.results.text_masks import mask_settings
from recollect.signals.evidence import AUDITED, REFERENCE, SHADOW, TARGET, Evidence

OWN = "with"
"""The setting of an audit under which a plan names models, corpora and files for it alone."""
OBJECT = "object"
"""The key under which a written plan names what was in memory only."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """What is to be run. The work folder serves all plans; what another one trained or scored is not done again."""

    audit: Audit
    models: Mapping[str, Model | ModelRef | str] = field(default_factory=dict)
    """By their roles: "target", "reference", "shadow-0" …"""
    corpora: Mapping[str, Corpus | CorpusRef | str] = field(default_factory=dict)
    """By their roles: "audited", "controls" …"""
    cohorts: Mapping[str, Cohorts | Path] = field(default_factory=dict)
    """Which users or records each model was trained on, where it is known, by the role of the corpus."""
    members: MembersRef | Members | None = None
    """Whose data in the audited corpus is known to be in the target's training set, and whose is known not to be."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Other files that the audit reads, by their roles: "canaries" …"""
    recipe: RecipeRef | Recipe | None = None
    """How models that are needed and not given are trained."""
    seed: int = 0
    work: Path = Path(".recollect")
    workers: int | None = None
    """Processes at once; by default one scores, and as many train as a short trial finds best."""
    threads: int | None = None
    """Threads of each; by default the cores are divided among them."""
    backend: BackendRef = field(default_factory=BackendRef)
    """Where models are trained and records are scored: this machine, or a cluster."""
    work_limit_gb: float | None = None
    """How many gigabytes the work folder may hold; nothing is begun in one that has reached that."""
    shared_work: bool = False
    """Whether the work folder may belong to somebody else, whose scores and models are then trusted."""
    limits: tuple[Limit, ...] = ()
    """What no finding may exceed."""
    about: About | None = None
    """Which system is audited, for whom and why."""

    def __post_init__(self) -> None:
        check_names("role", [*self.models, *self.corpora, *self.cohorts, *self.files])
        check_at_least(1, **{name: n for name in ("workers", "threads") if (n := getattr(self, name)) is not None})
        if self.work_limit_gb is not None:
            check_at_least(0, work_limit_gb=self.work_limit_gb)

    @property
    def roles(self) -> frozenset[str]:
        """All roles that something is given for."""
        return frozenset({*self.models, *self.corpora, *self.files})

    def refuse_incomplete(self) -> Needs:
        """What round 0 needs; a plan that lacks something of it is refused before anything is loaded.

        Raises:
            PlanError: Something is missing that the audit needs, or a recipe for what would have to be trained.
        """
        trainable, members = self.recipe is not None, AUDITED in self.cohorts or self.members is not None
        needs = refuse_missing(self.audit, self.roles, files=self.files, trainable=trainable, members=members)
        given = Evidence(models=dict.fromkeys(self.models))  # type: ignore[arg-type]
        untrained = {
            role: count
            for role, count in needs.fleet.items()
            if not given.models_of_role(role) and not given.models_of_role(needs.instead.get(role, role))
        }
        if untrained and self.recipe is None:
            wanted = " and ".join(f"{count} {role} model{'s' * (count > 1)}" for role, count in untrained.items())
            raise PlanError(
                f"The {self.audit.name} audit needs {wanted}, and none is given.",
                do="Give the models, or a recipe to train them with (--recipe, recipe=).",
                code="missing_recipe",
            )
        return needs

    def load_evidence(self, sources: Sources | None = None) -> Evidence:
        """What is given, read and loaded; what is quickly refused comes first.

        Args:
            sources: What was loaded and read before; None to begin anew.
        """
        known = sources or Sources()
        for path in self.files.values():
            if not path.is_file():
                raise PlanError(f"There is no file {str(path)!r}.", do="Check the path.", code="no_such_file")
        corpora = {role: known.read_corpus(source) for role, source in self.corpora.items()}
        cohorts = {role: _load_cohorts(source, role, corpora) for role, source in self.cohorts.items()}
        members = self._read_members(corpora)
        models = self._load_models(known)
        return Evidence(
            models=models,
            corpora=corpora,
            cohorts=cohorts,
            members=members,
            trainable=self.recipe is not None,
            files=self.files,
            seed=self.seed,
        )

    def _load_models(self, known: Sources) -> dict[str, Model]:
        """The models; others render conversations as the target does, and those compared with it compute as it does.

        Raises:
            PlanError: A reference or shadow model was given another precision than the target has.
        """
        loaded = {TARGET: known.load_model(self.models[TARGET], self.work)} if TARGET in self.models else {}
        question = loaded[TARGET].question if loaded else None
        for role, source in self.models.items():
            if role in loaded:
                continue
            named = source if question is None else use_template_in_ref(source, question.chat_template)
            if question is None or not role.startswith((REFERENCE, SHADOW)):
                loaded[role] = known.load_model(named, self.work)
            else:
                loaded[role] = known.load_model(use_precision_in_ref(named, question.precision), self.work)
                _refuse_other_precision(role, loaded[role], question.precision)
        return {role: loaded[role] for role in self.models}

    def open_backend(self) -> Backend:
        """Where the work is done; nothing is started."""
        return self.backend.open(self.work, workers=self.workers, threads=self.threads)

    def load_recipe(self) -> Recipe | None:
        """The recipe itself."""
        return self.recipe.load() if isinstance(self.recipe, RecipeRef) else self.recipe

    def _read_members(self, corpora: Mapping[str, Corpus]) -> Members | None:
        """Who is known to be a member, checked against the audited corpus."""
        given = self.members
        if given is None or isinstance(given, Members):
            return given
        if AUDITED not in corpora:
            raise PlanError(
                "Members are given, but no audited corpus.", do="Give the corpus too.", code="members_of_nothing"
            )
        return read_members(given.members, corpora[AUDITED], non_members=given.non_members, others=given.others)


def _refuse_other_precision(role: str, model: Model, precision: str) -> None:
    """Refuse a plan in which a model has another precision than the target that it is compared with."""
    if model.question.precision != precision:
        raise PlanError(
            f"The {role} computes in {model.question.precision} and the target in {precision}: their scores would "
            "differ by rounding alone.",
            do="Give both the same precision (--precision, precision=), or leave it out.",
            code="other_precision",
        )


def make_planned_audit(name: str, settings: Mapping[str, Any]) -> Audit:
    """The audit that a plan names; its settings as YAML, a command line or Python give them.

    Raises:
        PlanError: It has no such setting, or a value is not of its type.
    """
    kind = AUDITS.load(name)
    given = {key: read_planned_setting(name, key, value) for key, value in settings.items()}
    needed = [
        each.name
        for each in dataclasses.fields(kind)
        if each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
    ]
    if missing := [setting for setting in needed if setting not in given]:
        raise PlanError(f"the {name} audit needs {missing[0]!r}.", do=f"Give {missing[0]}.", code="missing_setting")
    made: Audit = kind(**given)
    return made


def read_planned_setting(audit: str, name: str, value: Any) -> Any:
    """A setting of an audit in a plan as its type has it: YAML knows no tuples.

    Raises:
        PlanError: The audit has no such setting, or the value is not of its type.
    """
    kind = AUDITS.load(audit)
    known = [each.name for each in dataclasses.fields(kind)]
    if name not in known:
        raise PlanError(
            f"the {audit} audit has no setting {name!r}.",
            do=f"{suggest_name(str(name), [*known, OWN])}It has: {', '.join(known)}.",
            code="unknown_setting",
        )
    return read_setting(kind, name, value)


def collect_settings(audit: Audit) -> dict[str, Any]:
    """All settings of a planned audit, defaults included; documents, which may hold secrets, by their digest."""
    if not dataclasses.is_dataclass(audit):
        return {}
    settings: dict[str, Any] = to_plain({each.name: getattr(audit, each.name) for each in dataclasses.fields(audit)})
    return settings


def collect_masked_settings(audit: Audit) -> dict[str, Any]:
    """All settings of a planned audit as its result tells them: private text is masked unless it is to be shown."""
    settings = collect_settings(audit)
    return mask_settings(settings, show_text=settings.get("show_text") is not False)


def to_plain(value: Any) -> Any:
    """A value of a plan as JSON and YAML have it.

    >>> to_plain({"file": Path("a.jsonl"), "fpr": (0.01, 0.1)})
    {'file': 'a.jsonl', 'fpr': [0.01, 0.1]}
    """
    return json.loads(json.dumps(value, default=_encode_plain))


def _encode_plain(value: Any) -> Any:
    """What JSON does not know of the values of a plan, in its words."""
    if isinstance(value, PurePath):
        return str(value)
    if isinstance(value, BaseModel):
        return f"digest {digest(value.model_dump(mode='json'))}"
    if dataclasses.is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    if isinstance(value, frozenset | set):
        return sorted(value)
    raise PlanError(
        f"A {type(value).__name__} cannot be written down.", do="Use plain values in the settings.", code="not_plain"
    )


def digest_cohorts(cohorts: Cohorts) -> str:
    """The address of the cohorts of a plan: which units each model was trained on."""
    members = {model: list(cohorts.members(model)) for model in cohorts.models}
    return digest(cohorts.corpus, cohorts.unit, list(cohorts.units), members)


def _load_cohorts(source: Cohorts | Path, role: str, corpora: Mapping[str, Corpus]) -> Cohorts:
    """The cohorts that a plan names, of the very corpus that is given."""
    cohorts = source if isinstance(source, Cohorts) else Cohorts.load(source)
    if role not in corpora:
        raise CorpusError(
            f"Cohorts are given of the corpus {role!r}, but no such corpus.",
            do="Give the corpus too.",
            code="cohorts_of_nothing",
        )
    cohorts.check_corpus(corpora[role])
    return cohorts
