"""The plan file: one YAML document that defines what is audited, with what, and which limits apply.

Every complaint names the file and the line. What a run folder keeps as `plan.yaml` (see `plan_writer`) can be read
again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from recollect import labels
from recollect.audits.audit import Audit
from recollect.audits.registry import AUDITS, VERBS, find_verb
from recollect.checks import describe_fields, quote_value, suggest_name
from recollect.documents import Document, Overrides, parse_overrides, set_at_path
from recollect.errors import PlanError
from recollect.pipeline.plans.backends import BackendName, RayRef
from recollect.pipeline.plans.limits import Limit
from recollect.pipeline.plans.natural_defaults import add_card_claim, add_natural_reference, add_natural_start
from recollect.pipeline.plans.plan import OBJECT, OWN, Plan, make_planned_audit, read_planned_setting
from recollect.pipeline.plans.refs import (
    CorpusName,
    CorpusRef,
    Ids,
    MembersRef,
    ModelName,
    ModelRef,
    RecipeName,
    RecipeRef,
    resolve_ref_name,
)
from recollect.recipes.recipe import Recipe
from recollect.results.result import About
from recollect.signals.evidence import AUDITED, SHADOW, TARGET

Section = TypeVar("Section", bound=BaseModel)
_HINT = "Write `models:`, `corpora:` and `audits:`; examples/ has plans for the common cases."
NEW_NAMES = {
    **{("corpora", name): f"{name}_column" for name in ("user", "text", "source", "target", "label", "id")},
    ("corpora", "format"): "file_format",
    ("models", "top_k"): "shows_top_k",
    ("split", "by"): "split",
    ("split", "words"): "split_words",
    ("split", "minimum"): "split_minimum",
}
"""What plans of 0.1 called otherwise, by section and key."""


class Given(BaseModel):
    """What is given to all audits, or to one."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, json_schema_extra=describe_fields)

    models: dict[str, ModelName] = Field(default_factory=dict)
    """By the role of each: target, reference (or reference-0, reference-1 …), shadow-0 …"""
    corpora: dict[str, CorpusName] = Field(default_factory=dict)
    """By the role of each: audited, controls …"""
    cohorts: dict[str, str] = Field(default_factory=dict)
    """Which users or records each model was trained on: a cohorts.json, by the role of the corpus."""
    members: Ids | None = None
    """Ids of the audited corpus known to be in the training set: a list, a file with one per line, or column:NAME."""
    non_members: Ids | None = None
    """Ids known not to be in the training set, likewise."""
    others: Literal["unknown", "non-members"] = "unknown"
    """What users or records that are not listed count as."""
    files: dict[str, str] = Field(default_factory=dict)
    """Other files that audits read: canaries …"""
    recipe: RecipeName | None = None
    """How models are trained that are needed and not given."""


class PlanFile(Given):
    """A whole plan."""

    audits: dict[str, dict[str, Any] | None] = Field(min_length=1)
    """Which audits, each with its settings; under `with` what is given to it alone."""
    limits: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """What no finding may exceed, by audit: `membership: [auc.lower>0.6]`."""
    seed: int = 0
    """Seed of all random numbers."""
    work: str = ".recollect"
    """Where scores per token and trained models are kept, for all runs."""
    work_limit_gb: float | None = Field(default=None, ge=0)
    """How many gigabytes the work folder may hold; nothing is begun in one that has reached that."""
    out: str | None = None
    """The run folder; a folder named after the plan, if it is not given."""
    workers: int | None = Field(default=None, ge=1)
    """Processes at once."""
    threads: int | None = Field(default=None, ge=1)
    """Threads of each."""
    backend: BackendName
    """Where models are trained and records are scored: local, ray, ray:HOST:6379, or `{ray: {cpus: 4, gpus: 1}}`."""
    about: About | None = None
    """Which system is audited, for whom and why."""


SECTIONS: dict[str, type[BaseModel]] = {
    "models": ModelRef,
    "corpora": CorpusRef,
    "recipe": RecipeRef,
    "about": About,
    "ray": RayRef,
}
"""What is in which section, for messages."""
ROLE_KINDS = {"models": "model", "corpora": "corpus", "cohorts": "corpus", "files": "file"}
"""What has the roles that are the keys of a section."""
TRAINED_ROLES = (SHADOW, labels.ROLE_LEFT_OUT, labels.ROLE_RETRAINED)
"""The roles of models that audits train by a recipe, and that may be given instead."""


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """The content of a plan file."""

    plans: tuple[Plan, ...]
    """One per audit, in the order of the file."""
    out: Path
    """The run folder."""


def read_plan(path: Path, overrides: Overrides = (), *, only: Collection[str] = ()) -> PlannedRun:
    """The plans in a plan file.

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
        raise PlanError(f"{path.name} is not text.", do=_HINT, code="not_text") from error
    except OSError as error:
        raise PlanError(
            f"The plan {str(path)!r} cannot be read: {error.strerror}.", do="Check the path.", code="no_such_plan"
        ) from error
    written = Document.read(text, name=path.name, do=_HINT)
    for key, value in parse_overrides(overrides):
        set_at_path(written.settings, key.split("."), value)
    if any("\0" in word for word in _iter_plan_words(written.settings)):
        raise PlanError(
            f"{path.name} holds a NUL sign, which no name of a file can have.", do="Take it out.", code="nul_in_plan"
        )
    return _PlanReader(document=written, home=path.parent).read_plans(path, frozenset(only))


def _iter_plan_words(settings: Any) -> Iterator[str]:
    """All names and texts in the settings of a plan file."""
    if isinstance(settings, str):
        yield settings
    elif isinstance(settings, dict | list):
        for each in settings.items() if isinstance(settings, dict) else settings:
            yield from _iter_plan_words(list(each) if isinstance(each, tuple) else each)


@dataclass(frozen=True, kw_only=True)
class _PlanReader:
    """Turns what a document says into what it means."""

    document: Document
    home: Path
    """The folder that paths are relative to."""

    def read_plans(self, path: Path, only: frozenset[str]) -> PlannedRun:
        """All plans."""
        self._refuse_objects(self.document.settings, ())
        file = self._validate(PlanFile, self.document.settings, ())
        self._refuse_unknown(only or file.audits)
        wanted = {name: settings for name, settings in file.audits.items() if not only or name in only}
        if missing := sorted(only.difference(file.audits)):
            raise PlanError(
                f"{self.document.name} plans no {missing[0]} audit.",
                do=f"It plans: {', '.join(file.audits)}.",
                code="audit_not_planned",
            )
        if strange := sorted(file.limits.keys() - file.audits.keys()):
            raise PlanError(
                f"{self.document.locate(['limits', strange[0]])}: limits are set for an audit that is not planned.",
                do=f"{suggest_name(strange[0], file.audits)}Planned: {', '.join(file.audits)}.",
                code="limits_of_nothing",
            )
        self._refuse_unknown_roles(file, file.audits, ())
        plans = tuple(self._build_plan(file, name, settings or {}) for name, settings in wanted.items())
        out = self.home / file.out if file.out is not None else path.with_name(f"{path.stem}-run")
        return PlannedRun(plans=plans, out=out)

    def _build_plan(self, file: PlanFile, name: str, settings: dict[str, Any]) -> Plan:
        """The plan of one audit."""
        own = self._validate(Given, settings.get(OWN) or {}, ("audits", name, OWN))
        self._refuse_unknown_roles(own, [name], ("audits", name, OWN))
        rest = {key: value for key, value in settings.items() if key != OWN}
        with self._locate_errors(*(() if own.recipe is None else ("audits", name, OWN)), "recipe"):
            recipe = own.recipe or file.recipe
            recipe = None if recipe is None else recipe.resolve_paths(self.home)
        # whose data is in the training set is known of one corpus, and not of another that has its role in this audit
        has_own_corpus = AUDITED in own.corpora
        cohorts = {role: ref for role, ref in file.cohorts.items() if role not in own.corpora} | own.cohorts
        states_members = own.members is not None or own.non_members is not None or own.others != "unknown"
        known = own if states_members or has_own_corpus else file
        members = MembersRef(members=known.members, non_members=known.non_members, others=known.others)
        members = members.resolve_paths(self.home)
        if members.cohorts is not None:
            cohorts[AUDITED] = str(members.cohorts)
        stated = members.cohorts is None and (members.members is not None or members.non_members is not None)
        models = {role: ref.resolve_paths(self.home) for role, ref in {**file.models, **own.models}.items()}
        audit = self._build_audit(name, rest)
        if TARGET in models:
            audit = add_card_claim(audit, models[TARGET])
            models = add_natural_reference(models, find_verb(name))
        return Plan(
            audit=audit,
            models=models,
            corpora={role: ref.resolve_paths(self.home) for role, ref in {**file.corpora, **own.corpora}.items()},
            cohorts={role: Path(resolve_ref_name(ref, self.home)) for role, ref in cohorts.items()},
            members=members if stated else None,
            files={role: Path(resolve_ref_name(ref, self.home)) for role, ref in {**file.files, **own.files}.items()},
            recipe=self._complete_recipe(recipe, models.get(TARGET), name),
            seed=file.seed,
            work=self.home / file.work,
            work_limit_gb=file.work_limit_gb,
            workers=file.workers,
            threads=file.threads,
            backend=file.backend,
            limits=tuple(self._parse_limits(file.limits.get(name, ()), name)),
            about=file.about,
        )

    def _complete_recipe(
        self, recipe: RecipeRef | None, target: ModelRef | None, name: str
    ) -> RecipeRef | Recipe | None:
        """The recipe of an audit that trains; where it starts may follow from the target."""
        if target is None or not find_verb(name).trains:
            return recipe
        with self._locate_errors("recipe"):
            return add_natural_start(recipe, target)

    def _build_audit(self, name: str, settings: dict[str, Any]) -> Audit:
        """The audit with its settings."""
        for key, value in settings.items():
            with self._locate_errors("audits", name, str(key)):
                read_planned_setting(name, key, value)
        with self._locate_errors("audits", name):
            return make_planned_audit(name, settings)

    def _parse_limits(self, limits: Sequence[str], audit: str) -> list[Limit]:
        """The limits of an audit."""
        found = []
        for index, limit in enumerate(limits):
            with self._locate_errors("limits", audit, str(index)):
                found.append(Limit.parse(limit))
        return found

    @contextmanager
    def _locate_errors(self, *path: str) -> Iterator[None]:
        """Whatever is refused inside is reported at this place of the file."""
        try:
            yield
        except PlanError as error:
            raise PlanError(f"{self.document.locate(path)}: {error.found}", do=error.do, code=error.code) from error

    def _refuse_objects(self, settings: Any, path: tuple[str, ...]) -> None:
        """Refuse a plan that was written of objects in memory: their contents are not in it."""
        if isinstance(settings, Mapping):
            if OBJECT in settings and "digest" in settings:
                raise PlanError(
                    f"{self.document.locate(path)}: {'.'.join(path)} was an object in memory "
                    f"({settings[OBJECT]!r}), and a file cannot bring it back.",
                    do="Save it to a file or folder and name that here, or run the audit from Python again.",
                    code="plan_with_objects",
                )
            for key, value in settings.items():
                self._refuse_objects(value, (*path, str(key)))

    def _refuse_unknown(self, audits: Collection[str]) -> None:
        """Refuse audits that there are not."""
        for name in audits:
            if name not in AUDITS.names:
                raise PlanError(
                    f"{self.document.locate(['audits', name])}: there is no audit {name!r}.",
                    do=_suggest_audit(name),
                    code="unknown_audit",
                )

    def _refuse_unknown_roles(self, given: Given, audits: Collection[str], above: tuple[str, ...]) -> None:
        """Refuse a model, corpus or file in a role that none of these audits knows: it would be ignored."""
        if not set(AUDITS.names).issuperset(audits):
            return  # where only some audits are wanted, others need not be installed, and their roles are not known
        for section, kind in ROLE_KINDS.items():
            known = _collect_plan_roles(audits, kind)
            for role in getattr(given, section):
                name, _, number = role.rpartition("-")
                if role in known or (number.isdecimal() and known.get(name)):
                    continue
                whose = "the audits of this plan know" if len(audits) > 1 else f"the {next(iter(audits))} audit knows"
                roles = ", ".join(f"{each} (or {each}-0, {each}-1 …)" if many else each for each, many in known.items())
                raise PlanError(
                    f"{self.document.locate([*above, section, role])}: {whose} no {kind} {role!r}.",
                    do=f"{suggest_name(name if number.isdecimal() else role, known)}Known here: {roles or 'none'}.",
                    code="unknown_role",
                )

    def _validate(self, kind: type[Section], settings: Any, above: tuple[str, ...]) -> Section:
        """A section of the file, or what is wrong with it."""
        try:
            return kind.model_validate(settings)
        except ValidationError as error:
            first = error.errors()[0]
            path = [*above, *(str(step) for step in first["loc"])]
            found, do, code = _explain_plan_error(first, path, kind)
            raise PlanError(f"{self.document.locate(path)}: {found}", do=do, code=code) from None


def _collect_plan_roles(audits: Collection[str], kind: str) -> dict[str, bool]:
    """The roles of a kind that these audits know, and whether several may have it, with numbers."""
    known = dict[str, bool]()
    for verb in map(find_verb, audits):
        for role, declared in verb.roles.items():
            if declared.kind == kind:
                known[role] = declared.many or known.get(role, False)
        if verb.trains and kind == "model":
            known |= dict.fromkeys(TRAINED_ROLES, True)
    return known


def _explain_plan_error(error: ErrorDetails, path: Sequence[str], kind: type[BaseModel]) -> tuple[str, str, str]:
    """One pydantic error in our words: what was found, what to do, and its code."""
    name = ".".join(path)
    if error["type"] == "literal_error" and isinstance(error["input"], Mapping):
        old = [str(key) for key in error["input"] if (path[-1], key) in NEW_NAMES]
        if old:
            return _explain_renamed_plan_key(
                [f"{name}.{key}" for key in old], [NEW_NAMES[path[-1], key] for key in old]
            )
    if error["type"] != "extra_forbidden":
        problem = "is missing" if error["type"] == "missing" else f"is {quote_value(error['input'])}. {error['msg']}"
        code = "missing_setting" if error["type"] == "missing" else "invalid_setting"
        return f"{name} {problem}.", "See the examples, or `recollect check --help`.", code
    sections = [step for step in path[:-1] if step in SECTIONS]
    new = NEW_NAMES.get((sections[-1], path[-1])) if sections else None
    if new is not None:
        return _explain_renamed_plan_key([name], [new])
    known = list((SECTIONS[sections[-1]] if sections else kind).model_fields)
    do = f"{suggest_name(path[-1], known)}Known here: {', '.join(known)}."
    return f"there is no setting {name!r}.", do, "unknown_setting"


def _explain_renamed_plan_key(old: Sequence[str], new: Sequence[str]) -> tuple[str, str, str]:
    """What a plan file of 0.1 called otherwise."""
    called = " and ".join(f"{before!r} is called {after!r}" for before, after in zip(old, new, strict=True))
    return f"{old[0]!r} is a setting of 0.1.", f"Since 0.2.0, {called}.", "renamed_setting"


def _suggest_audit(name: str) -> str:
    """What to do about an audit in a plan that there is not."""
    if name in VERBS:
        return f"The command {name} runs the audit {VERBS[name]!r}: write {VERBS[name]}."
    known = f"{suggest_name(name, AUDITS.names)}Known: {', '.join(AUDITS.names)}."
    return f"{known} One of a plug-in is known once its package is installed here: pip install it, then recollect list."
