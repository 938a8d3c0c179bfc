"""The Python API: one function per verb. The command line calls these same functions.

import recollect as rc

result = rc.membership(model, table, tokenizer=tokenizer, controls=population, reference="base/")
result.verdict, result["auc"].interval
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.audits.registry import AUDITS, find_verb, list_audits_by_verb
from recollect.checks import field_docs
from recollect.errors import PlanError
from recollect.pipeline.plans.calls import name_call_recipe, refuse_unknown_call_arguments
from recollect.pipeline.plans.refs import CorpusRef, MembersRef, ModelRef
from recollect.session import AuditResult, Session
from recollect.signals.evidence import AUDITED, TARGET

if TYPE_CHECKING:
    from recollect.audits.verb import Verb
    from recollect.audits.workspace import Progress
    from recollect.corpora.sanitisation import Sanitisation
    from recollect.models.answer_store.store import AnswerStore
    from recollect.pipeline.forecast import Forecast, ImpossibleAudit
    from recollect.pipeline.preparation import PlantedCorpus, SanitiseBy
    from recollect.pipeline.work_folder.cleanup import Cleanup
    from recollect.pipeline.work_folder.erasure import Erasure
    from recollect.pipeline.work_folder.verification import Verification
    from recollect.recipes.recipe import Recipe
    from recollect.recipes.training.loop import TrainingProgress
    from recollect.results.comparison import Comparison
    from recollect.results.result import Result
    from recollect.stats.intervals import Estimate

_OF_SESSIONS = ("work", "shared_work", "work_limit_gb", "real_names", "named", "workers", "threads", "backend")
"""The settings of a session that every verb takes."""


def build_verb_function(verb: str) -> Callable[..., AuditResult]:
    """The function of an audit's verb, with the signature and the documentation that its settings declare."""
    name = list_audits_by_verb()[verb]
    find_verb(name)  # refuses an audit that cannot be called
    kind = AUDITS.load(name)

    def function(model: Any, corpus: Any = None, *, session: Session | None = None, **given: Any) -> AuditResult:
        return _choose_session(session, given, _OF_SESSIONS).audit(name, model, corpus, **given)

    function.__name__ = function.__qualname__ = verb
    function.__doc__ = _build_verb_documentation(kind)
    function.__signature__ = _build_verb_signature(kind)  # type: ignore[attr-defined]
    return function


_Argument = tuple[str, Any, str]
"""Name, default, and what it is."""


def _list_verb_arguments(kind: Any) -> list[_Argument]:
    """Every argument of a verb besides model and corpus: name, default, and what it is."""
    declared: Verb = kind.verb
    found: list[_Argument] = [
        (role, None, each.help) for role, each in declared.roles.items() if role not in (TARGET, AUDITED)
    ]
    if declared.members:
        docs = field_docs(MembersRef)
        found += [("members", None, docs["members"]), ("non_members", None, docs["non_members"])]
        found += [("others", "unknown", docs["others"])]
    if declared.trains:
        found += [("recipe", None, "Trains what is missing: a built-in recipe, a YAML file or a Recipe.")]
        found += [("set", None, "Changes of the recipe: {'training.epochs': 2}.")]
    docs = field_docs(kind)
    found += [(each.name, _get_verb_default(each), docs.get(each.name, "")) for each in dataclasses.fields(kind)]
    found += [("tokenizer", None, "Of a model that is given as an object.")]
    found += [("out", None, "A run folder to write."), ("fail_if", None, "Limits: 'auc.lower>0.6'.")]
    found += [("about", None, "The audited system, and for whom: {'system': 'shop-bot'}."), ("seed", 0, "Of the run.")]
    reads = any(each.kind == "corpus" for each in declared.roles.values())
    for reference, skipped in ((ModelRef, "model"), (CorpusRef, "corpus"))[: 1 + reads]:
        docs = field_docs(reference)
        found += [
            (name, each.default, docs.get(name, "")) for name, each in reference.model_fields.items() if name != skipped
        ]
    found += [
        ("session", None, "Shares what it loaded with other calls, and has work folder, workers, threads and backend.")
    ]
    docs = field_docs(Session)
    return found + [(name, None, docs[name]) for name in _OF_SESSIONS]


def _get_verb_default(setting: dataclasses.Field[Any]) -> Any:
    """The default of a setting, to be shown in the signature of a verb's function."""
    if setting.default is not dataclasses.MISSING:
        return setting.default
    return setting.default_factory() if setting.default_factory is not dataclasses.MISSING else inspect.Parameter.empty


def _build_verb_signature(kind: Any) -> inspect.Signature:
    """The signature of a verb's function."""
    corpus = kind.verb.roles.get(AUDITED)
    positional = [inspect.Parameter("model", inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    if corpus is not None:
        default = inspect.Parameter.empty if corpus.required else None
        positional.append(inspect.Parameter("corpus", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default))
    named = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default)
        for name, default, _ in _list_verb_arguments(kind)
    ]
    return inspect.Signature([*positional, *named])


def _build_verb_documentation(kind: Any) -> str:
    """The documentation of a verb's function."""
    declared: Verb = kind.verb
    arguments = [f"    {name}: {help}" for name, _, help in _list_verb_arguments(kind)]
    head = [
        f"    model: {declared.roles[TARGET].help} A string, or an object with tokenizer=.",
        *([f"    corpus: {declared.roles[AUDITED].help}"] if AUDITED in declared.roles else []),
    ]
    return "\n".join([declared.summary, "", declared.guide, "", "Args:", *head, *arguments])


def score(model: Any, corpus: Any, *, session: Session | None = None, **options: Any) -> AnswerStore:
    """Score every token of a corpus once, and give the store that keeps the scores; see `Session.score`."""
    return _choose_session(session, options).score(model, corpus, **options)


def evaluate(model: Any, corpus: Any, *, session: Session | None = None, **options: Any) -> dict[str, Estimate]:
    """How well a model predicts a corpus; see `Session.evaluate`."""
    return _choose_session(session, options).evaluate(model, corpus, **options)


def run(plan: str | Path, *, session: Session | None = None, **options: Any) -> list[AuditResult]:
    """Run every audit that a plan file names, into one run folder with one report; see `Session.run`."""
    return _choose_session(session, options).run(plan, **options)


def check(plan: str | Path, *, session: Session | None = None, **options: Any) -> list[Forecast | ImpossibleAudit]:
    """What a plan will train and score, and roughly how long; see `Session.check`."""
    return _choose_session(session, options).check(plan, **options)


def _choose_session(
    session: Session | None,
    options: dict[str, Any],
    names: Sequence[str] = (*_OF_SESSIONS, "seed", "progress"),
) -> Session:
    """The session that a function of the API is given, or one with the session settings among its options."""
    own = {name: value for name in names if (value := options.pop(name, None)) is not None}
    if session is not None and own:
        raise PlanError(
            f"{next(iter(own))}= is given beside a session, which has its own.",
            do="Leave it out, or make the session with it.",
            code="setting_of_the_session",
        )
    return session or Session(**own)


def plant(
    corpus: Any,
    *,
    out: str | Path | None = None,
    recipe: str | Recipe | None = None,
    set: Any = None,
    reading: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **planting: Any,
) -> PlantedCorpus:
    """Plant canaries in a corpus, to measure after training how strongly the model memorises them.

    Args:
        corpus: A path or an object.
        out: A `.jsonl` or `.jsonl.gz` to write, with its manifest beside it.
        recipe: Also check what training by this recipe would make of each secret.
        set: Changes of the recipe.
        reading: How the corpus is read: {"text_column": "body"}.
        progress: Called now and then with the current stage and how far it is.
        planting: What is planted: `format="my pin is {digits:6}"`, secrets=, repeat=, controls=, seed= …
    """
    from recollect.corpora.canaries.generation import CanarySettings
    from recollect.pipeline.preparation import plant_secrets, refuse_output

    refuse_unknown_call_arguments(planting, [each.name for each in dataclasses.fields(CanarySettings)])
    settings, checked = CanarySettings(**planting), _load_given_recipe(recipe, set)
    if out is not None:
        refuse_output(Path(out), corpus, (reading or {}).get("file_format"))
    planted = plant_secrets(Session().read(corpus, **(reading or {})), settings, recipe=checked)
    if out is not None:
        planted.save(Path(out), progress=progress)
    return planted


def sanitise(
    corpus: Any,
    *,
    by: SanitiseBy,
    out: str | Path | None = None,
    work: str | Path = ".recollect",
    reading: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Sanitisation:
    """Remove from a corpus what a model would memorise; no method guarantees that nothing is left.

    Args:
        corpus: A path or an object.
        by: "format", "duplicates" or "difference".
        out: A `.jsonl` or `.jsonl.gz` to write; beside it, which records were changed and why.
        work: Where the two models of `by="difference"` are kept.
        reading: How the corpus is read: {"text_column": "body"}.
        progress: Called now and then with the current stage and how far it is.
        settings: format= and mask=; passage=; recipe=, set=, share=, per= and seed=.
    """
    from recollect.pipeline.preparation import refuse_other_sanitising, refuse_output, sanitise_corpus, save_sanitised

    refuse_other_sanitising(by, settings)
    recipe = _load_given_recipe(settings.pop("recipe", None), settings.pop("set", None))
    if out is not None:
        refuse_output(Path(out), corpus, (reading or {}).get("file_format"))
    texts = Session().read(corpus, **(reading or {}))
    found = sanitise_corpus(texts, by=by, work=Path(work), recipe=recipe, progress=progress, **settings)
    if out is not None:
        save_sanitised(found, Path(out), size=len(texts), progress=progress)
    return found


def train(
    recipe: str | Recipe,
    corpus: Any,
    out: str | Path,
    *,
    set: Any = None,
    reading: Mapping[str, Any] | None = None,
    progress: Callable[[TrainingProgress], None] | None = None,
    **how: Any,
) -> Path:
    """Train a model by a recipe into a folder; the same call again resumes a stopped training.

    Args:
        recipe: A built-in recipe, a YAML file or a Recipe.
        corpus: A path or an object.
        out: Where the model goes.
        set: Changes of the recipe: {"training.epochs": 2}.
        reading: How the corpus is read: {"text_column": "body"}.
        progress: Called now and then with how far it is.
        how: validation=, canaries=, follow_exposure=, cohorts=, cohort=, dp_epsilon=, dp_noise=, dp_unit=, seed=,
            threads=.
    """
    from recollect.pipeline.preparation import TrainingOptions, train_model

    refuse_unknown_call_arguments(how, [each.name for each in dataclasses.fields(TrainingOptions)])
    chosen, session = _load_given_recipe(recipe, set), Session()
    assert chosen is not None  # noqa: S101 - a recipe is given
    if how.get("validation") is not None:
        how["validation"] = session.read(how["validation"], **(reading or {}))
    for name in ("canaries", "cohorts"):
        how |= {name: Path(how[name])} if how.get(name) is not None else {}
    texts = session.read(corpus, **(reading or {}))
    return train_model(chosen, texts, Path(out), TrainingOptions(**how), progress=progress)


def compare(before: Any, after: Any) -> Comparison:
    """Two runs side by side: every finding that both have, with an interval of the difference where both have one.

    Args:
        before: A run folder, a result, or several results.
        after: Likewise.
    """
    from recollect.results.comparison import compare_runs

    return compare_runs(_collect_results(before), _collect_results(after))


def verify(folder: str | Path) -> Verification:
    """Check every file of a run folder or a work folder against its checksum; nothing is changed.

    Args:
        folder: A run folder, a work folder, an answer store or a trained model.
    """
    from recollect.pipeline.work_folder.verification import verify_folder

    return verify_folder(Path(folder))


def clean(work: str | Path = ".recollect", *, delete: bool = False) -> Cleanup:
    """What no run needs any more of a work folder, with sizes.

    Args:
        work: The work folder.
        delete: Delete it; otherwise nothing is changed.
    """
    from recollect.pipeline.work_folder.cleanup import clean_work

    return clean_work(Path(work), delete_items=delete)


def forget(
    user: str,
    *,
    work: str | Path = ".recollect",
    corpus: Any = None,
    reading: Mapping[str, Any] | None = None,
    delete: bool = False,
) -> Erasure:
    """What was made from a person's records in a work folder: answers, models and unfinished work.

    Args:
        user: The person, as the corpora name them.
        work: The work folder.
        corpus: A path or an object with the person's records. With it only their rows leave answer stores; without it
            everything goes of which it cannot be told.
        reading: How the corpus is read: {"user_column": "author"}.
        delete: Delete it; otherwise nothing is changed.
    """
    from recollect.pipeline.work_folder.erasure import forget_user

    texts = None if corpus is None else Session().read(corpus, **(reading or {}))
    return forget_user(user, Path(work), corpus=texts, delete_items=delete)


def to_mlflow(source: Any, *, run_id: str | None = None, step: int | None = None) -> str:
    """Log every finding, with its interval, outcome and severity, to an MLflow run; tells the id of the run.

    Args:
        source: A run folder, a result, or several results.
        run_id: An existing run; None for the active one or, if there is none, a new one.
        step: The training step that the model is of.
    """
    from recollect.report.tracking import log_to_mlflow

    return log_to_mlflow(_collect_results(source).values(), run_id=run_id, step=step)


def to_wandb(source: Any, *, run: Any = None, step: int | None = None) -> None:
    """Log every finding, with its interval, outcome and severity, to a run of Weights & Biases.

    Args:
        source: A run folder, a result, or several results.
        run: What `wandb.init` gave; None for the current one.
        step: The training step that the model is of.
    """
    from recollect.report.tracking import log_to_wandb

    log_to_wandb(_collect_results(source).values(), run=run, step=step)


def to_tensorboard(source: Any, folder: str | Path, *, step: int = 0) -> Path:
    """Write every finding, with its interval, outcome and severity, as an event file for TensorBoard.

    Args:
        source: A run folder, a result, or several results.
        folder: The log folder.
        step: The training step that the model is of.
    """
    from recollect.report.tracking import log_to_tensorboard

    return log_to_tensorboard(_collect_results(source).values(), folder, step=step)


def to_model_card(source: Any, file: str | Path, *, name: str | None = None) -> Path:
    """Put outcome, severity and key numbers into a model card, as a section and as `model-index`: aggregates only.

    Args:
        source: A run folder, a result, or several results.
        file: The card, `README.md`; what else is in it stays.
        name: The name of the model; that of the card's folder by default.
    """
    from recollect.report.model_card_section import update_model_card

    return update_model_card(_collect_results(source).values(), Path(file), name=name)


def _collect_results(source: Any) -> dict[str, Result]:
    """The results of a run, by audit, that a function such as `compare` is given."""
    from recollect.results.run_folder import RunFolder

    if isinstance(source, str | Path):
        return RunFolder(Path(source)).read_results()
    many = source if isinstance(source, list | tuple) else [source]
    found = [each.result if isinstance(each, AuditResult) else each for each in many]
    return {result.audit: result for result in found}


def _load_given_recipe(recipe: Any, changes: Any) -> Recipe | None:
    """The recipe itself that a function such as `train` is given."""
    from recollect.recipes.recipe import Recipe

    if isinstance(recipe, Recipe):
        return recipe
    named = name_call_recipe(recipe, changes)
    return None if named is None else named.load()
