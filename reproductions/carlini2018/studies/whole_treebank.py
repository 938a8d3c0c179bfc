"""Sections 4, 6.6 and 7.1 in the paper's core setting: the whole treebank with one secret of nine digits, planted once.

The recipe is `char-lstm` unchanged: two layers of 200 units, RMSprop, batches of 128, a learning rate of 0.001 that is
reduced on a plateau. Each seed has a secret, a place and first weights of its own. After each epoch the model is kept
and its secret is ranked, so that a run that was killed goes on, and progress can be read in the log.
`whole_treebank_constant` is the same with a constant learning rate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any

from common.outcomes import Figure, Outcome
from laboratory import NUMBER, ONE_SECRET, Laboratory, Row, numbers, secret_of, snapshot_folder, spelling

from recollect.audits.exposure.audit import ExposureAudit
from recollect.audits.exposure.extraction import ExtractionAudit
from recollect.recipes.recipe_file import load_recipe

SEEDS = (0, 1, 2)
EPOCHS = 20
"""Those of the recipe; the paper's number cannot be read in our copy."""
WHOLE = {"train": 42_068, "valid": 3_370, "test": 3_761}
"""The lines of each part."""
AUDIT = ExposureAudit(draws=4096, max_steps=300_000)
SEARCH = ExtractionAudit(format=NUMBER, top=1, max_steps=300_000, show_text=True)
TWENTY = replace(SEARCH, top=20)
TABLE9 = {"first": 14.63, "second": 18.56}
BEAMS = (1, 10, 100, 1000)


@dataclass(frozen=True, kw_only=True)
class Core:
    """The core setting with one schedule of the learning rate."""

    study: str
    title: str
    learning_rate: str
    """In words."""
    changes: tuple[str, ...] = ()
    """Of the recipe."""
    seeds: tuple[int, ...] = SEEDS

    @property
    def made_of(self) -> list[Any]:
        """All that a kept figure depends on."""
        return [1, EPOCHS, str(AUDIT), str(SEARCH), list(BEAMS), *([list(self.changes)] if self.changes else [])]


PLATEAU = Core(
    study="whole_treebank",
    title="The whole treebank with one secret, planted once",
    learning_rate="the paper's network and learning rate",
)


def study(lab: Laboratory) -> Iterator[Outcome]:
    yield from outcomes(lab, PLATEAU)


def outcomes(lab: Laboratory, core: Core) -> Iterator[Outcome]:
    """What there is after each seed."""
    rows: list[Row] = []
    for seed in core.seeds:
        rows.append(lab.keep(core.study, f"seed-{seed}", core.made_of, partial(memorised, lab, core, seed)))
        yield outcome(core, rows)


def outcome(core: Core, rows: list[Row]) -> Outcome:
    """What there is after some seeds."""
    figures = [figure for row in rows for figure in of_seed(row)]
    return Outcome(
        title=core.title,
        scale=f"None: all {WHOLE['train']:,} lines, {core.learning_rate}, {EPOCHS} epochs (our "
        f"choice); {len(rows)} of {len(core.seeds)} models, each with a secret of its own. Measured after the epoch of "
        "the lowest validation loss.",
        figures=[
            Figure("mean test loss, nats", 1.16, fmean(row["test_loss"] for row in rows)),
            Figure("share of models in which the secret is the likeliest", 0.8, share(rows, lambda r: rank(r) == 1)),
            Figure("share in which it is among the likeliest ten", 1.0, share(rows, lambda r: rank(r) <= 10)),
            Figure("share in which shortest path extracts it, with proof", None, share(rows, lambda r: r["proven"])),
            *figures,
        ],
    )


def memorised(lab: Laboratory, core: Core, seed: int) -> Row:
    """What one model memorised, epoch by epoch, and what can be extracted from it."""
    corpus, manifests = lab.planted(lab.treebank("train", WHOLE["train"]), (replace(ONE_SECRET, seed=seed),))
    recipe = spelling(load_recipe("char-lstm", [f"training.epochs={EPOCHS}", *core.changes]), manifests)
    measure = measuring(lab, core, manifests[0], seed)
    trained = lab.model(recipe, corpus, lab.treebank("valid", WHOLE["valid"]), manifests, seed, then=measure)
    epochs = [{**measure(snapshot_folder(trained.folder, row["epoch"])), **losses(row)} for row in trained.curve]
    best = snapshot_folder(trained.folder, trained.best_epoch)
    secret = secret_of(manifests[0])
    path = searched(lab, best, SEARCH, secret)
    beams = {width: searched(lab, best, replace(SEARCH, method="beam", width=width), secret) for width in BEAMS}
    return {
        "seed": seed,
        "best_epoch": trained.best_epoch,
        "test_loss": lab.test_loss(best, WHOLE["test"]),
        "epochs": epochs,
        "steps": path["steps"],
        "proven": path["found"] and path["proven"] >= 1,
        "beam": min((width for width in BEAMS if beams[width]["found"]), default="none"),
        "likeliest_bits": [each["log_perplexity_bits"] for each in searched(lab, best, TWENTY, secret)["rows"]],
        "sampling": searched(lab, best, replace(SEARCH, method="sampling"), secret)["found"],
    }


def of_seed(row: Row) -> list[Figure]:
    """The figures of one model."""
    best, name = at_best(row), f"seed {row['seed']}"
    first = [each["epoch"] for each in row["epochs"] if each["rank"] == 1]
    return [
        Figure(f"{name}: epoch of the lowest validation loss", None, row["best_epoch"]),
        Figure(f"{name}: test loss, nats", 1.16, row["test_loss"]),
        Figure(f"{name}: exposure after one epoch, bits", "3 (on 5 %)", row["epochs"][0]["exposure_bits"]),
        Figure(f"{name}: exposure, bits (29.9 is all there is)", "29.9 (rank 1, section 4.2)", best["exposure_bits"]),
        Figure(f"{name}: estimated exposure, bits", "35, 32.5, 31.0 (Tables 1, 2, 7)", best["skew_normal_bits"]),
        Figure(f"{name}: rank of 10⁹", 1, best["rank"]),
        Figure(f"{name}: rank counted or drawn", "brute force", best["method"]),
        Figure(f"{name}: first epoch in which the secret is the likeliest", None, min(first) if first else "none"),
        Figure(f"{name}: steps of shortest path", 1e5, row["steps"]),
        Figure(f"{name}: extracted by shortest path, with proof (1 = yes)", 1, int(row["proven"])),
        *(
            Figure(f"{name}: bits of the {place} of the likeliest twenty", paper, bits)
            for (place, paper), bits in zip(TABLE9.items(), row["likeliest_bits"], strict=False)
        ),
        Figure(f"{name}: narrowest beam that extracts it", "rarely found at 10⁴", row["beam"]),
        Figure(f"{name}: sampling extracts it (1 = yes)", "90 % in 10⁷ draws", int(row["sampling"])),
        *(figure for epoch in row["epochs"] for figure in of_epoch(name, epoch)),
    ]


def of_epoch(name: str, epoch: Row) -> list[Figure]:
    """The figures of one model after one epoch."""
    when = f"{name}, epoch {epoch['epoch']}"
    return [
        Figure(f"{when}: exposure, bits", None, epoch["exposure_bits"]),
        Figure(f"{when}: learning rate", None, epoch["learning_rate"]),
        Figure(f"{when}: validation loss, nats", None, epoch["validation_loss"]),
    ]


def measuring(lab: Laboratory, core: Core, canaries: Path, seed: int) -> Callable[[Path], Row]:
    """How the secret is ranked in a model that is kept in a folder; each epoch is kept among the results at once."""

    def measure(folder: Path) -> Row:
        epoch = folder.name.rpartition("-")[2]

        def rank_it() -> Row:
            row = numbers(lab.exposure(folder, AUDIT, canaries))
            found = f"{row['exposure_bits']:.2f} bits, rank {row['rank']} ({row['method']})"
            lab.say(f"  seed {seed}, epoch {epoch}: {found}")
            return {"epoch": int(epoch), **row}

        kept: Row = lab.keep(core.study, f"seed-{seed}-epoch-{epoch}", core.made_of, rank_it)
        return kept

    return measure


def losses(row: Row) -> Row:
    """What the learning curve says of an epoch."""
    return {name: row[name] for name in ("training_loss", "validation_loss", "learning_rate")}


def at_best(row: Row) -> Row:
    """The epoch of the lowest validation loss."""
    best: Row = row["epochs"][row["best_epoch"] - 1]
    return best


def rank(row: Row) -> float:
    """The rank at the lowest validation loss; beyond all if it is not known."""
    found = at_best(row)["rank"]
    return float("inf") if found is None else float(found)


def share(rows: list[Row], holds: Callable[[Row], bool]) -> float:
    """The share of models of which something holds."""
    return fmean(map(holds, rows))


def searched(lab: Laboratory, folder: Path, audit: ExtractionAudit, secret: str) -> Row:
    """What a search found, and whether the planted secret is first."""
    result = lab.measure(folder, audit)
    return {**result, "found": bool(result["rows"]) and result["rows"][0]["secret"] == secret}
