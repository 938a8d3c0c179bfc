"""From the arguments of a call, on the command line or in Python, to a plan."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.audits.registry import AUDITS, find_verb
from recollect.checks import quote_value, suggest_name
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.members import Members, collect_member_ids
from recollect.documents import parse_overrides
from recollect.errors import PlanError
from recollect.pipeline.plans.limits import Limit
from recollect.pipeline.plans.natural_defaults import add_card_claim, add_natural_reference, add_natural_start
from recollect.pipeline.plans.plan import Plan, make_planned_audit
from recollect.pipeline.plans.refs import CorpusRef, MembersRef, ModelRef, RecipeRef
from recollect.pipeline.sources import ObjectSources, build_object_reference, find_origin
from recollect.recipes.recipe import Recipe
from recollect.results.result import About
from recollect.signals.evidence import AUDITED, REFERENCE, TARGET
from recollect.signals.registry import name_signal

if TYPE_CHECKING:
    from recollect.audits.verb import Role, Verb

MODEL_OPTIONS = frozenset(ModelRef.model_fields) - {"model"}
"""How every model is scored, as keyword arguments of every function that takes a model."""
CORPUS_OPTIONS = frozenset(CorpusRef.model_fields) - {"corpus"}
"""How every corpus is read, likewise."""
MEMBERS_OPTIONS = frozenset(MembersRef.model_fields)
RUN_OPTIONS = frozenset({"tokenizer", "fail_if", "about"})
SHARED_ARGUMENTS = (
    MODEL_OPTIONS
    | CORPUS_OPTIONS
    | MEMBERS_OPTIONS
    | RUN_OPTIONS
    | frozenset(
        [
            "model",
            "corpus",
            "recipe",
            "set",
            "out",
            "seed",
            "work",
            "shared_work",
            "work_limit_gb",
            "real_names",
            "named",
            "workers",
            "threads",
            "backend",
            "session",
            "json",
        ]
    )
)
"""What the functions and verbs of all audits take, so that no role or setting of an audit can have these names."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call of an audit: what was given, by the names that its verb and its settings declare."""

    audit: str
    model: Any
    corpus: Any = None
    given: Mapping[str, Any] = field(default_factory=dict)
    """Roles, settings, and options of models, corpora and members; None is not given."""

    @property
    def verb(self) -> Verb:
        """How the audit is called."""
        return find_verb(self.audit)

    @property
    def settings(self) -> frozenset[str]:
        """The names of its settings."""
        return frozenset(each.name for each in dataclasses.fields(AUDITS.load(self.audit)))

    def build_plan(self, objects: ObjectSources, **running: Any) -> Plan:
        """The plan that the call amounts to; nothing is loaded but objects in memory.

        Args:
            objects: Turns objects into models and corpora.
            running: Seed, work folder, workers and threads of the plan.
        """
        refuse_unknown_call_arguments(
            {**self.given, **({} if self.corpus is None else {"corpus": self.corpus})}, self._list_arguments()
        )
        model_options, corpus_options, run_options = (
            self._pick(MODEL_OPTIONS),
            self._pick(CORPUS_OPTIONS),
            self._pick(RUN_OPTIONS),
        )
        tokenizer = run_options.get("tokenizer")
        models = {TARGET: objects.model(self.model, model_options, tokenizer)}
        corpora = {} if self.corpus is None else {AUDITED: objects.corpus(self.corpus, corpus_options)}
        files = dict[str, Path]()
        for role, kind, value in self._list_roles():
            if kind == "model":
                models[role] = objects.model(value, model_options, tokenizer)
            elif kind == "corpus":
                corpora[role] = objects.corpus(value, corpus_options)
            else:
                files[role] = parse_call_path(role, value)
        if tokenizer is not None and all(isinstance(model, ModelRef) for model in models.values()):
            raise PlanError(
                "A tokenizer is given, and every model is named by a string and has its own.",
                do="Leave tokenizer= out; it is for a model in memory.",
                code="tokenizer_not_wanted",
            )
        settings = _name_call_signal({name: self.given[name] for name in self.settings if name in self.given})
        known, recipe = _build_call_members(self._pick(MEMBERS_OPTIONS)), self.given.get("recipe")
        return Plan(
            audit=add_card_claim(make_planned_audit(self.audit, settings), self._described(models[TARGET])),
            models=add_natural_reference(models, self.verb, lambda: objects.base(self.model, model_options, tokenizer)),
            corpora=corpora,
            cohorts={AUDITED: known} if isinstance(known, Path | Cohorts) else {},
            members=None if isinstance(known, Path | Cohorts) else known,
            files=files,
            recipe=add_natural_start(
                recipe if isinstance(recipe, Recipe) else name_call_recipe(recipe, self.given.get("set")), self.model
            ),
            limits=_parse_call_limits(run_options.get("fail_if")),
            about=_build_call_about(run_options.get("about")),
            **running,
        )

    def _described(self, target: Any) -> Any:
        """The target, or where it says that it was loaded from."""
        folder = None if isinstance(target, ModelRef) else find_origin(self.model)
        return target if folder is None else ModelRef(model=folder)

    def _pick(self, names: Iterable[str]) -> dict[str, Any]:
        """Those of the given arguments that have these names."""
        return {name: self.given[name] for name in names if self.given.get(name) is not None}

    def _list_roles(self) -> list[tuple[str, str, Any]]:
        """What plays which role, with the kind of each: one as it is, several with numbers."""
        return [
            (name, declared.kind, each)
            for role, declared in self.verb.roles.items()
            if role not in (TARGET, AUDITED) and self.given.get(role) is not None
            for name, each in _number_call_models(role, declared, self.given[role])
        ]

    def _list_arguments(self) -> frozenset[str]:
        """The names of all arguments."""
        roles = frozenset(self.verb.roles) - {TARGET, AUDITED}
        reads = any(role.kind == "corpus" for role in self.verb.roles.values())
        known = roles | self.settings | MODEL_OPTIONS | RUN_OPTIONS | (CORPUS_OPTIONS if reads else frozenset())
        known |= frozenset({"recipe", "set"} if self.verb.trains else ())
        known |= frozenset({"corpus"} if AUDITED in self.verb.roles else ())
        return known | (MEMBERS_OPTIONS if self.verb.members else frozenset())


def _name_call_signal(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a call; a signal that is given as an object by its name and settings, which a plan can hold."""
    signal = settings.get("signal")
    if signal is None or isinstance(signal, str):
        return settings
    name, own = name_signal(signal)
    return {**settings, "signal": name, "signal_settings": {**own, **settings.get("signal_settings", {})}}


def _number_call_models(role: str, declared: Role, value: Any) -> list[tuple[str, Any]]:
    """The models that a call gives for one role: one as it is, several with numbers."""
    many = list(value) if declared.many and isinstance(value, list | tuple) else [value]
    if role == REFERENCE and len(many) == 1:
        return [(role, many[0])]
    return [(f"{role}-{i}", each) for i, each in enumerate(many)] if declared.many else [(role, value)]


def divide_call_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options of a call divided: how a model is scored, and how a corpus is read."""
    refuse_unknown_call_arguments(options, MODEL_OPTIONS | CORPUS_OPTIONS)
    chosen = {name: value for name, value in options.items() if value is not None}
    scored = {name: value for name, value in chosen.items() if name in MODEL_OPTIONS}
    return scored, {name: value for name, value in chosen.items() if name in CORPUS_OPTIONS}


def refuse_unknown_call_arguments(given: Mapping[str, Any], known: Iterable[str]) -> None:
    """Refuse arguments of a call that mean nothing."""
    names = sorted(known)
    for name in given:
        if name not in names:
            raise PlanError(
                f"There is no argument {name!r}.",
                do=f"{suggest_name(name, names)}Known: {', '.join(names)}.",
                code="unknown_argument",
            )


def _build_call_members(chosen: Mapping[str, Any]) -> MembersRef | Members | Path | Cohorts | None:
    """Who a call says is in the training set; of cohorts, where they are, or themselves."""
    stated_members = next((each for each in chosen.values() if isinstance(each, Members | Cohorts)), None)
    if stated_members is not None:
        if len(chosen) > 1 or "members" not in chosen:
            raise PlanError(
                f"{type(stated_members).__name__} contain members and non-members, and non-members are given besides.",
                do="Give them as members= and nothing else.",
                code="needless_non_members",
            )
        return stated_members
    listed = build_object_reference(
        MembersRef, {name: _normalise_call_ids(name, value) for name, value in chosen.items()}
    )
    if listed.members is None and listed.non_members is None:
        return None
    return listed if listed.cohorts is None else listed.cohorts


def _normalise_call_ids(name: str, value: Any) -> Any:
    """Ids of members in a call as a plan keeps them: a path, or themselves in a fixed order."""
    if name == "others" or isinstance(value, str | Path):
        return str(value)
    return tuple(sorted(collect_member_ids(value)))


def name_call_recipe(recipe: str | Path | None, changed: Any) -> RecipeRef | None:
    """The recipe that a call names, with its changes.

    Raises:
        PlanError: Changes are given, and no recipe; or there is no such recipe or setting.
    """
    settings = dict(parse_overrides(changed or {}))
    if recipe is None and settings:
        raise PlanError(
            "--set (set=) changes a recipe, and none is given.",
            do="Give --recipe (recipe=), or leave it out.",
            code="changes_of_no_recipe",
        )
    if recipe is None:
        return None
    named = RecipeRef(recipe=str(recipe), set=settings)
    named.load()  # refused at once, and not when something is to be trained
    return named


def parse_call_path(name: str, value: Any) -> Path:
    """A path that an argument of a call gives."""
    if not isinstance(value, str | PathLike):
        raise _build_wrong_type_error(name, value, "a path")
    return Path(value)


def parse_call_seed(value: Any) -> int:
    """A seed that an argument of a call gives."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise _build_wrong_type_error("seed", value, "a whole number")
    return int(value)


def _parse_call_limits(value: Any) -> tuple[Limit, ...]:
    """The limits that a call gives: one or several."""
    written = [value] if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else value
    if written is None:
        return ()
    if not isinstance(written, list) or not all(isinstance(each, str) for each in written):
        raise _build_wrong_type_error("fail_if", value, "a text such as 'auc.lower>0.6', or several")
    return tuple(map(Limit.parse, written))


def _build_call_about(value: Any) -> About | None:
    """What the audit of a call is about."""
    if value is None or isinstance(value, About):
        return value
    if not isinstance(value, Mapping):
        raise _build_wrong_type_error("about", value, "a mapping such as {'system': 'shop-bot'}")
    return build_object_reference(About, value)


def _build_wrong_type_error(name: str, value: Any, wanted: str) -> PlanError:
    """What to say of an argument of a call that has a wrong type."""
    return PlanError(f"{name} is {quote_value(value)}.", do=f"Give {wanted}.", code="invalid_setting")
