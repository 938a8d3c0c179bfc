"""What is done before an audit: secrets are planted, a corpus is sanitised, models are trained."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from recollect.checks import check_at_least, check_between, check_one_of
from recollect.corpora.canaries.formats import parse_format
from recollect.corpora.canaries.insertion import CanarySettings
from recollect.corpora.canaries.insertion import plant as plant_in
from recollect.corpora.canaries.manifest import Canaries
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.corpora.corpus_writer import check_corpus_name, write_corpus
from recollect.corpora.record import Record
from recollect.corpora.sanitisation import Sanitisation, sanitise_by_duplicates, sanitise_by_format
from recollect.errors import PlanError
from recollect.files import refuse_foreign_folder, use_folder, write_json
from recollect.pipeline.plans.calls import refuse_unknown_call_arguments

if TYPE_CHECKING:
    from recollect.recipes.canary_survival import SurvivalCheck
    from recollect.recipes.recipe import Recipe
    from recollect.recipes.training.loop import Hook, TrainingProgress

SanitiseBy = Literal["format", "duplicates", "difference"]
Progress = Callable[[str, int, int | None], None]
_SETTINGS_BY_METHOD: dict[str, tuple[str, ...]] = {
    "format": ("format", "mask"),
    "duplicates": ("passage",),
    "difference": ("recipe", "set", "share", "per"),
}
"""The settings of each way to sanitise."""


@dataclass(frozen=True, kw_only=True)
class PlantedCorpus:
    """A corpus with secrets in it."""

    corpus: Corpus
    canaries: Canaries
    """Which secrets were planted how often, and which were held back as controls."""
    records: int
    """How many records the corpus has now."""
    check: SurvivalCheck | None = None
    """What training by a recipe would make of each secret, if requested."""

    @property
    def plantings(self) -> int:
        """How often a secret was planted in the prepared corpus, in all."""
        return sum(canary.planted for canary in self.canaries.planted)

    def save(self, out: Path, *, progress: Progress | None = None) -> Path:
        """Write the prepared corpus and its manifest (OUT.canaries.json), readable by their owner only; its path."""
        write_corpus(_report_writing_progress(self.corpus, self.records, progress), out)
        self.canaries.save(get_sibling_path(out, "canaries.json"))
        return get_sibling_path(out, "canaries.json")


def plant_secrets(corpus: Corpus, planting: CanarySettings, *, recipe: Recipe | None = None) -> PlantedCorpus:
    """Prepare a corpus with canaries, to measure after training how strongly they are memorised.

    Args:
        corpus: Where they go.
        planting: Which secrets, how many and how often.
        recipe: Also check what training by this recipe would make of each secret.
    """
    planted, manifest = plant_in(corpus, planting)
    check = None
    if recipe is not None:
        from recollect.recipes.canary_survival import check_canary_survival

        check = check_canary_survival(recipe, planted, manifest, seed=planting.seed)
    inside = 0 if planting.inside else sum(canary.planted for canary in manifest.planted)
    return PlantedCorpus(corpus=planted, canaries=manifest, records=len(corpus) + inside, check=check)


def sanitise_corpus(
    corpus: Corpus, *, by: SanitiseBy, work: Path, seed: int = 0, progress: Progress | None = None, **settings: Any
) -> Sanitisation:
    """Prepare a corpus without what a model would memorise; no method gives a guarantee.

    Args:
        corpus: The corpus.
        by: `format`: records that hold a filled-in format. `duplicates`: all copies but the first. `difference`: the
            records whose likelihood differs most between two models, each trained on one half.
        work: The work folder, in which the two models are kept.
        seed: Of their training.
        progress: Called regularly with the progress.
        settings: format= (one or several) and mask= of `format`; passage= of `duplicates`; recipe=, share= and per= of
            `difference`.
    """
    refuse_other_sanitising(by, settings)
    if by == "format":
        formats = [parse_format(pattern) for pattern in _list_sanitising_values(settings["format"])]
        return sanitise_by_format(corpus, formats, mask=bool(settings.get("mask")))
    if by == "duplicates":
        return sanitise_by_duplicates(corpus, passage=settings.get("passage"))
    from recollect.pipeline.difference_sanitisation import DifferenceSanitiser

    refuse_foreign_folder(work)
    chosen = {name: settings[name] for name in ("share", "per") if settings.get(name) is not None}
    sanitiser = DifferenceSanitiser(recipe=settings["recipe"], seed=seed, **chosen)
    with use_folder(work):
        return sanitiser(corpus, work, progress=progress)


def refuse_other_sanitising(by: SanitiseBy, settings: Mapping[str, Any]) -> None:
    """Refuse settings of another sanitising method, missing and wrong ones, before a corpus is prepared.

    Raises:
        PlanError: There are some.
    """
    check_one_of(_SETTINGS_BY_METHOD, by=by)
    refuse_unknown_call_arguments(
        settings, [*(name for names in _SETTINGS_BY_METHOD.values() for name in names), "seed"]
    )
    for way, names in _SETTINGS_BY_METHOD.items():
        for name in names:
            if way != by and settings.get(name):
                raise PlanError(
                    f"--{name} ({name}=) is a setting of --by {way}.",
                    do=f"Leave it out, or sanitise by {way}.",
                    code="setting_of_another_way",
                )
    if by == "format" and not settings.get("format"):
        raise PlanError(
            "Sanitising by format needs a format.",
            do="Say what secrets look like: --format 'pin {digits:4}'.",
            code="missing_format",
        )
    if by == "difference" and not settings.get("recipe"):
        raise PlanError(
            "Sanitising by difference trains two models.",
            do="Name a recipe: --recipe char-lstm.",
            code="missing_recipe",
        )
    _check_sanitising_values(settings)


def _check_sanitising_values(settings: Mapping[str, Any]) -> None:
    """Refuse sanitising settings with impossible values before a corpus is prepared."""
    for pattern in _list_sanitising_values(settings.get("format")):
        parse_format(pattern)
    if settings.get("passage") is not None:
        check_at_least(2, passage=settings["passage"])
    if settings.get("share") is not None:
        check_between(0, 1, share=settings["share"])


def _list_sanitising_values(value: str | Sequence[str] | None) -> list[str]:
    """One or several values of a sanitising setting as a list."""
    return [value] if isinstance(value, str) else list(value or ())


def save_sanitised(found: Sanitisation, out: Path, *, size: int, progress: Progress | None = None) -> Path:
    """Write a prepared, sanitised corpus and, as OUT.changes.json, which records were changed and why."""
    write_corpus(_report_writing_progress(found.corpus, size - found.removed, progress), out)
    write_json(get_sibling_path(out, "changes.json"), [dataclasses.asdict(change) for change in found.changes])
    return get_sibling_path(out, "changes.json")


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How a model is trained besides its recipe."""

    validation: Corpus | None = None
    """Validation data for the loss."""
    canaries: Path | None = None
    """The .canaries.json of the corpus; its tokens are added to the vocabulary."""
    follow_exposure: bool = False
    """Measure the exposure of the canaries after each epoch, beside the losses."""
    cohorts: Path | None = None
    """A cohorts.json that says which users train which model."""
    cohort: str = "target"
    """Which of its models to train."""
    dp_epsilon: float | None = None
    """Train with differential privacy and this ε."""
    dp_noise: float | None = None
    """Train with differential privacy and this noise, in multiples of the clipping norm."""
    dp_unit: Literal["record", "user"] | None = None
    """Privacy unit; by default that of the recipe, or a record if it has none."""
    seed: int = 0
    """Seed of all random numbers."""
    threads: int | None = None
    """Number of threads; all cores by default."""

    def add_privacy(self, recipe: Recipe) -> Recipe:
        """The recipe with the privacy that is wanted of the prepared model; ε and noise replace each other."""
        from recollect.recipes.recipe_file import build_recipe

        wanted: dict[str, Any] = {}
        if self.dp_epsilon is not None or self.dp_noise is not None:
            wanted = {"epsilon": self.dp_epsilon, "noise": self.dp_noise}
        unit = self.dp_unit or ("record" if wanted and not recipe.private else None)
        wanted |= {} if unit is None else {"unit": unit}
        if not wanted:
            return recipe
        settings = recipe.model_dump(mode="json")
        return build_recipe({**settings, "privacy": {**settings["privacy"], **wanted}}, lambda path: recipe.name)

    def build_hooks(self, out: Path) -> list[Hook]:
        """What is called after each epoch.

        Raises:
            PlanError: Canaries are to be followed, and none are given.
        """
        if not self.follow_exposure:
            return []
        if self.canaries is None:
            raise PlanError(
                "--follow-exposure (follow_exposure=) measures canaries, and none are given.",
                do="Give --canaries FILE (canaries=).",
                code="missing_canaries",
            )
        from recollect.pipeline.training_tracking import ExposureTracker
        from recollect.results.run_folder import EXPOSURE_HISTORY

        return [ExposureTracker(self.canaries, out / EXPOSURE_HISTORY)]


def train_model(
    recipe: Recipe,
    corpus: Corpus,
    out: Path,
    how: TrainingOptions,
    *,
    progress: Callable[[TrainingProgress], None] | None = None,
) -> Path:
    """Prepare a model: train it by a recipe into a folder; the same call again resumes a stopped training.

    Args:
        recipe: Tokenizer, architecture, training, privacy.
        corpus: What it is trained on.
        out: Where the model goes.
        how: What else is given.
        progress: Called regularly with the progress.
    """
    from recollect.recipes.data.vocabulary import add_canaries_to_vocabulary
    from recollect.recipes.training import trainer

    refuse_foreign_folder(out)
    chosen = how.add_privacy(recipe)
    chosen = chosen if how.canaries is None else add_canaries_to_vocabulary(chosen, Canaries.load(how.canaries))
    trainer.train(
        chosen,
        corpus,
        out,
        validation=how.validation,
        cohort=None if how.cohorts is None else (Cohorts.load(how.cohorts), how.cohort),
        seed=how.seed,
        threads=how.threads,
        on_epoch=how.build_hooks(out),
        progress=progress or (lambda moment: None),
    )
    return out


def refuse_output(out: Path, source: Any, file_format: str | None = None) -> None:
    """Refuse, before preparing, a file that cannot be written or that would change the corpus it is made from.

    Raises:
        PlanError: It is such a file.
    """
    from recollect.corpora.readers.corpus_shards import find_shards
    from recollect.corpora.readers.hub import SCHEME

    check_corpus_name(out)
    if not isinstance(source, str | Path) or str(source).startswith(SCHEME):
        return
    inputs = {Path(shard.path).resolve() for shard in find_shards(str(source), format=file_format)}
    if out.resolve() in inputs:
        raise PlanError(f"{out} is the corpus itself.", do="Write to another file.", code="output_is_input")
    if Path(source).is_dir() and out.resolve().parent == Path(source).resolve():
        raise PlanError(
            f"{out} would be inside the corpus folder {source}, and be read with it the next time.",
            do="Write to another folder.",
            code="output_inside_input",
        )


def get_sibling_path(out: Path, ending: str) -> Path:
    """The file that is written beside a prepared corpus.

    >>> str(get_sibling_path(Path("data/planted.jsonl.gz"), "canaries.json"))
    'data/planted.canaries.json'
    """
    name = out.name.removesuffix(".gz").removesuffix(".jsonl")
    return out.with_name(f"{name}.{ending}")


def _report_writing_progress(records: Iterable[Record], total: int, progress: Progress | None) -> Iterator[Record]:
    """The records of a prepared corpus, telling how many have been written."""
    for done, record in enumerate(records, start=1):
        yield record
        if progress is not None and done % 1000 == 0:
            progress("writing", done, total)
