"""Models that the audit has trained: shadows on random halves of everybody, a reference on half of the population."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from recollect import labels
from recollect.corpora.cohorts import Cohorts, Unit
from recollect.corpora.corpus import Corpus
from recollect.corpora.dividing import cohorts_of, groups, halves, units_of
from recollect.corpora.record import Record
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, SHADOW, Evidence

POOL = "pool"
"""The part of the corpus that trains shadows: candidates and controls together.

Controls are divided like candidates, because a threshold holds only if both are scored alike."""
REFERENCE_HALF = "reference-half"
"""The half of the population that trains the reference."""
POPULATION = "population"
"""The other half, which gives the thresholds: the reference must not have seen it either."""


def shadow_cohorts(evidence: Evidence, shadows: int) -> tuple[Corpus, Cohorts]:
    """The pool, and the random half of it that trains each shadow; two shadows of a pair share nobody."""
    pool = evidence.corpora.get(POOL) or Corpus("candidates and controls", _Pooled(evidence.corpora))
    unit = _unit(pool)
    members = halves(units_of(pool, unit), shadows, seed=evidence.seed, name=SHADOW)
    return pool, cohorts_of(pool, members, unit=unit, seed=evidence.seed)


def reference_cohorts(evidence: Evidence) -> tuple[dict[str, Corpus], Cohorts]:
    """The two halves of the population by the parts they play, and that all of one trains the reference."""
    controls = evidence.corpora[CONTROLS]
    unit = _unit(controls)
    shares = {REFERENCE_HALF: 0.5, POPULATION: 0.5}
    parted = groups(units_of(controls, unit), shares, seed=evidence.seed, name=labels.STREAM_MEMBERSHIP)
    of = controls.of_users if unit == "user" else controls.of_records
    parts = {part: of(chosen, name=f"{controls.name} ({part})") for part, chosen in parted.items()}
    members = {REFERENCE: units_of(parts[REFERENCE_HALF], unit)}
    return parts, cohorts_of(parts[REFERENCE_HALF], members, unit=unit, seed=evidence.seed)


def _unit(corpus: Corpus) -> Unit:
    """Users where every record has one, else records."""
    return "user" if all(record.user is not None for record in corpus) else "record"


@dataclass(frozen=True)
class _Pooled:
    """Opens candidates and controls one after the other; ids say which is which."""

    corpora: Mapping[str, Corpus]

    def __call__(self) -> Iterator[Record]:
        for part in (AUDITED, CONTROLS):
            for record in self.corpora[part]:
                yield replace(record, id=f"{part}/{record.id}")
