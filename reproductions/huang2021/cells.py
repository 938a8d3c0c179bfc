"""One cell of a table: a query set, a calibration set and a target, judged by the three methods.

What models say is asked once for all images of a training and held in memory; cells take their records from that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from laboratory import Drawn, Laboratory, joined

from recollect.audits.removal.audit import RemovalAudit
from recollect.audits.removal.ks import CALIBRATION_MODEL, QUERY_MODEL
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.models.access import Access
from recollect.models.answers import Answers
from recollect.models.loading.loader import load_model
from recollect.models.model import Model
from recollect.recipes.recipe import Recipe
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET, Evidence
from recollect.streams import stream

Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True, eq=False)
class Held:
    """Answers in memory."""

    whole: Answers
    access: Access

    def get_answers(self, records: Iterable[Record]) -> Answers:
        """The answers to these records."""
        return self.whole.select(list(dict.fromkeys(record.digest for record in records)))

    def iter_blocks(self, records: Iterable[Record]) -> Iterator[tuple[list[Record], Answers]]:
        """All of them at once."""
        held = list(records)
        yield held, self.get_answers(held)


@dataclass(frozen=True, kw_only=True, eq=False)
class Bench:
    """A target, a calibration set with its models, and what all of them say of all images."""

    evidence: Evidence

    def row(self, audit: RemovalAudit, query: Corpus) -> Row:
        """What the audit says of a query set."""
        evidence = Evidence(
            models=self.evidence.models,
            corpora={AUDITED: query, CONTROLS: self.evidence.corpora[CONTROLS]},
            answers=self.evidence.answers,
            cohorts=self.evidence.cohorts,
        )
        result = audit.run(evidence, stream(0, audit.name))
        found: Row = {finding.name: finding.value for finding in result.findings}
        share = next((each for each in result.findings if each.name == "fraction_still_in"), None)
        said = result.settings.get("decision", result.outcome)
        return {
            **found,
            "outcome": result.outcome,
            "said": said,
            "share": share and [share.value, *(share.interval or ())],
        }


def bench(lab: Laboratory, target: str, calibration: Corpus, images: Corpus, fleet: tuple[Recipe, int]) -> Bench:
    """All that cells of one target and one calibration set share.

    Args:
        lab: Where models are kept.
        target: The folder of the target.
        calibration: The calibration set.
        images: All images that query sets are made of.
        fleet: What trains calibration models, and how many.
    """
    folders, cohorts = lab.calibrated(fleet[0], calibration, fleet[1])
    models: dict[str, Model] = {name: load_model(str(folder)) for name, folder in {TARGET: target, **folders}.items()}
    answers = {
        (name, part): held(model, corpus)
        for name, model in models.items()
        for part, corpus in ((AUDITED, images), (CONTROLS, calibration))
    }
    return Bench(
        evidence=Evidence(models=models, corpora={CONTROLS: calibration}, answers=answers, cohorts={CONTROLS: cohorts})
    )


def ks_row(lab: Laboratory, recipe: Recipe, target: str, calibration: Corpus, query: Corpus) -> Row:
    """What `ks` says of a query set; it trains a model on it, and one on the whole calibration set.

    Args:
        lab: Where models are kept.
        recipe: What trains them.
        target: The folder of the target.
        calibration: The calibration set.
        query: The query set.
    """
    folders = {
        TARGET: target,
        QUERY_MODEL: str(lab.trained(recipe, query, 0)),
        CALIBRATION_MODEL: str(lab.trained(recipe, calibration, 0)),
    }
    answers = {(name, AUDITED): held(load_model(folder), query) for name, folder in folders.items()}
    evidence = Evidence(models={}, corpora={CONTROLS: calibration}, answers=answers)
    return Bench(evidence=evidence).row(RemovalAudit(method="ks"), query)


def held(model: Model, corpus: Corpus) -> Held:
    """What a model says of a corpus; asking so small a model anew costs less than keeping what it said."""
    return Held(whole=model.answer(list(corpus)), access=model.access)


def everything(drawn: Drawn, far: Corpus) -> Corpus:
    """All images of which query sets are made."""
    return joined((drawn.training, drawn.fresh, far), "all images")


def part_of(corpus: Corpus, count: int, *names: str | int) -> Corpus:
    """So many records of a corpus at random, the same each time."""
    records = list(corpus)
    order = stream(0, "part", *names).permutation(len(records))[:count]
    return Corpus.of((records[i] for i in order), name=f"{count} of {corpus.name}")
