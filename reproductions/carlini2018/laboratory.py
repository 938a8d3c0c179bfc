"""What the studies share: the treebank, secrets planted in it, models trained on it, and what is measured of them.

A study is a list of settings, each of which becomes one model (or several, as it was after some epochs), and a few
measurements. Everything is kept in the work folder under an address of all that it depends on, so that a run that was
killed goes on, and two studies that want the same model train it once.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from common.bench import Bench

from recollect.audits.audit import Audit
from recollect.audits.exposure.audit import ExposureAudit
from recollect.audits.exposure.view import CANARIES
from recollect.corpora import read_corpus
from recollect.corpora.canaries.insertion import CanarySettings, plant
from recollect.corpora.canaries.manifest import Canaries
from recollect.corpora.corpus import Corpus
from recollect.digests import digest
from recollect.files import make_private_folder, read_json, write_json
from recollect.models.answer_store.scoring import score_corpus
from recollect.pipeline.evaluation import evaluate
from recollect.pipeline.plans.plan import Plan, collect_settings
from recollect.pipeline.run import run
from recollect.recipes.data.vocabulary import add_canaries_to_vocabulary
from recollect.recipes.recipe import Recipe
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.loop import EpochSummary
from recollect.recipes.training.trainer import train
from recollect.signals.evidence import AUDITED, TARGET

Row = dict[str, Any]
NUMBER = "the random number is {digits:9}"
"""The paper's format; the treebank has no capital letters."""
ONE_SECRET = CanarySettings(format=NUMBER, secrets=1, controls=0)
FIVE_PERCENT, TWO_PERCENT = 2103, 841
"""Lines of the treebank's 42,068: the paper's own sample, and the one of most studies here."""
EPOCHS = 15
"""How long the models of most studies are trained."""
TEN = 10
"""After how many epochs settings are compared: secrets are deep in by then, and not yet at the bottom."""
SEEDS = (0, 1, 2)
"""Of studies that train several models of each setting, each with a secret of its own."""
REVISION = 1
"""Raised when something is measured otherwise; what was kept before is then made anew."""
BASE_MODELS = 4
"""How many models there are of the one setting from which the studies depart."""
COUNTED = ExposureAudit(draws=2048, max_steps=100_000)
"""Drawn, and counted where draws cannot see; the paper's estimate comes with it."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One model: how it is trained, on what, and which secrets stand in that."""

    recipe: str = "char-lstm"
    changes: tuple[str, ...] = ()
    """Of the recipe, as `--set` has them."""
    plantings: tuple[CanarySettings, ...] = (ONE_SECRET,)
    lines: int = TWO_PERCENT
    """How many of the treebank's first lines are trained on."""
    seed: int = 0
    """Of the weights; the secrets have the seed of their planting."""


@dataclass(frozen=True, kw_only=True)
class Trained:
    """A model, and what stands in its training data."""

    folder: Path
    canaries: tuple[Path, ...]
    """The manifest of each planting."""
    curve: list[Row]
    """One row per epoch."""

    def after(self, epoch: int) -> Path:
        """The model as it was after this epoch."""
        return self.folder if epoch == len(self.curve) else snapshot_folder(self.folder, epoch)

    @property
    def best_epoch(self) -> int:
        """The epoch with the lowest validation loss."""
        return int(min(self.curve, key=lambda row: row["validation_loss"])["epoch"])


class Laboratory(Bench):
    """The treebank, models of it, and what is measured of them."""

    def treebank(self, part: str, lines: int) -> Corpus:
        """The first so many lines of a part of the Penn Treebank: train, valid or test."""
        return first(read_corpus(self.file(f"ptb/ptb.{part}.txt.gz")), lines)

    def planted(self, corpus: Corpus, plantings: tuple[CanarySettings, ...]) -> tuple[Corpus, tuple[Path, ...]]:
        """The corpus with secrets planted in it, and the manifest of each planting."""
        manifests = []
        for planting in plantings:
            file = self.work / "canaries" / f"{digest(corpus.digest, asdict(planting))}.canaries.json"
            corpus, manifest = plant(corpus, planting)
            manifest.save(file)
            manifests.append(file)
        return corpus, tuple(manifests)

    def trained(self, setting: Setting) -> Trained:
        """The model of a setting, trained on the treebank."""
        corpus, manifests = self.planted(self.treebank("train", setting.lines), setting.plantings)
        recipe = spelling(load_recipe(setting.recipe, list(setting.changes)), manifests)
        return self.model(recipe, corpus, self.treebank("valid", 300), manifests, setting.seed)

    def model(
        self,
        recipe: Recipe,
        corpus: Corpus,
        validation: Corpus | None,
        manifests: tuple[Path, ...],
        seed: int,
        *,
        then: Callable[[Path], object] = lambda folder: None,
    ) -> Trained:
        """A model of any corpus, kept after every epoch; `then` is given the folder in which it was kept."""
        watched = None if validation is None else validation.digest
        address = digest(recipe.digest, corpus.digest, watched, seed, self.threads)
        folder = self.work / "models" / address
        if (folder / "card.json").exists():
            return Trained(folder=folder, canaries=manifests, curve=read_json(folder / "curve.json"))
        began = time.monotonic()
        kept = Snapshots(folder=folder, then=then)
        train(recipe, corpus, folder, validation=validation, seed=seed, threads=self.threads, on_epoch=[kept])
        curve = read_json(folder / "curve.json")
        last, seconds = curve[-1], time.monotonic() - began
        losses = f"training loss {last['training_loss']:.3f}, validation loss {last['validation_loss'] or 0:.3f}"
        self.say(f"  trained {recipe.name} on {len(corpus):,} records, {len(curve)} epochs, {seconds:.0f} s: {losses}")
        return Trained(folder=folder, canaries=manifests, curve=curve)

    def exposures(self, model: Path, audit: ExposureAudit, canaries: Path | None = None) -> list[Row]:
        """The row of each secret, by `recollect exposure`; those of a manifest, or those that the audit names."""
        rows: list[Row] = self.measure(model, audit, canaries)["rows"]
        return rows

    def exposure(self, model: Path, audit: ExposureAudit, canaries: Path | None = None) -> Row:
        """The row of the one secret there is."""
        (row,) = self.exposures(model, audit, canaries)
        return row

    def draws(self, model: Path, audit: ExposureAudit, canaries: Path) -> list[float]:
        """The log-perplexities of the random secrets."""
        result = run(self._plan(audit, model, canaries))
        found: list[float] = result.tables_in_memory["draws"]["log_perplexity_bits"].to_pylist()
        return found

    def test_loss(self, model: Path, lines: int = 500) -> float:
        """Nats per symbol on the first lines of the treebank's test part."""
        corpus = self.treebank("test", lines)
        store = score_corpus(str(model), corpus, self.work, backend=self.cluster)
        return evaluate(store, corpus)["nats_per_token"].value

    def measure(self, model: Path, audit: Audit, canaries: Path | None = None, *, audited: Corpus | None = None) -> Row:
        """What an audit finds: its findings by name, its table, and the seconds it took; from the work folder if kept.

        The address of a model is the name of its folder.
        """
        secrets = None if canaries is None else read_json(canaries)
        address = digest(audit.name, collect_settings(audit), model.name, secrets, audited and audited.digest)
        file = self.work / "measured" / f"{address}.json"
        if not file.exists():
            result = run(self._plan(audit, model, canaries, audited))
            found: Row = {finding.name: finding.value for finding in result.findings}
            seconds = result.provenance.seconds if result.provenance else None
            rows = result.tables_in_memory["secrets"].to_pylist()
            write_json(file, {**found, "seconds": seconds, "notes": [note.text for note in result.notes], "rows": rows})
        kept: Row = read_json(file)
        return kept

    def _plan(self, audit: Audit, model: Path, canaries: Path | None, audited: Corpus | None = None) -> Plan:
        return Plan(
            audit=audit,
            models={TARGET: str(model)},
            corpora={} if audited is None else {AUDITED: audited},
            files={} if canaries is None else {CANARIES: canaries},
            work=self.work,
            threads=self.threads,
            backend=self.backend,
        )


@dataclass(frozen=True, kw_only=True)
class Snapshots:
    """A hook that keeps the model as it is after every epoch."""

    folder: Path
    then: Callable[[Path], object] = lambda folder: None
    """What is done with the folder in which it was kept."""

    def __call__(self, end: EpochSummary) -> None:
        """Write it down, with what its card must say of how it is read."""
        out = make_private_folder(snapshot_folder(self.folder, end.epoch))
        end.model.save_pretrained(out)
        end.tokenizer.save_pretrained(out)
        write_json(out / "card.json", dict(end.card_entries))
        self.then(out)


def snapshot_folder(folder: Path, epoch: int) -> Path:
    """Where a model lies as it was after an epoch."""
    return folder.with_name(f"{folder.name}-epoch-{epoch}")


def spelling(recipe: Recipe, manifests: tuple[Path, ...]) -> Recipe:
    """The recipe with a vocabulary that can spell the planted secrets."""
    for manifest in manifests:
        recipe = add_canaries_to_vocabulary(recipe, Canaries.load(manifest))
    return recipe


def first(corpus: Corpus, count: int) -> Corpus:
    """The first so many records of a corpus."""
    return Corpus.of(
        itertools.islice(iter(corpus), count), name=f"the first {count} of {corpus.name.rpartition('/')[2]}"
    )


def small(*changes: str, seed: int = 0, epochs: int = EPOCHS, **more: Any) -> Setting:
    """A setting of 2 % of the treebank with the learning rate of section 6.1, and smaller batches for more steps."""
    pace = ("training.learning_rate=0.01", "training.schedule.kind=constant", "training.batch_size=32")
    plantings = more.pop("plantings", (replace(ONE_SECRET, seed=seed),))
    return Setting(changes=(*pace, f"training.epochs={epochs}", *changes), plantings=plantings, seed=seed, **more)


def after_ten(lab: Laboratory, *changes: str, **more: Any) -> tuple[Path, Path]:
    """The model of a small setting after ten epochs, and its canaries; unchanged it is the first base model."""
    if not changes and not more:
        base = lab.trained(small())
        return base.after(TEN), base.canaries[0]
    model = lab.trained(small(*changes, epochs=TEN, **more))
    return model.folder, model.canaries[0]


def over_seeds(lab: Laboratory, study: str, name: str, *changes: str, **more: Any) -> list[Row]:
    """Exposure and test loss of several models of a small setting after ten epochs, each kept at once."""
    return [kept(lab, study, f"{name}, seed {s}", small(*changes, seed=s, epochs=TEN, **more), told) for s in SEEDS]


def kept(lab: Laboratory, study: str, name: str, setting: Setting, measure: Callable[..., Any]) -> Any:
    """What `measure(lab, model)` says of the model of a setting, made once and kept among the paper's results."""
    return lab.keep(study, name, [REVISION, asdict(setting)], lambda: measure(lab, lab.trained(setting)))


def told(lab: Laboratory, model: Trained) -> Row:
    """Exposure and test loss of a model as it is at its end."""
    return at_end(lab, model.folder, model.canaries[0])


def at_end(lab: Laboratory, folder: Path, canaries: Path) -> Row:
    """Exposure of the one secret, and test loss."""
    return {**numbers(lab.exposure(folder, COUNTED, canaries)), "test_loss": lab.test_loss(folder)}


def numbers(row: Row) -> Row:
    """What is kept of a secret's row: not the secret."""
    return {name: row[name] for name in ("exposure_bits", "skew_normal_bits", "rank", "method")}


def base_models(lab: Laboratory) -> list[Trained]:
    """Several models of the one setting from which the studies depart, each with a secret of its own."""
    return [lab.trained(small(seed=seed)) for seed in range(BASE_MODELS)]


def secret_of(manifest: Path) -> str:
    """The text of the one secret that was planted."""
    (canary,) = Canaries.load(manifest).planted
    return canary.text
