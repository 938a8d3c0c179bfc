"""Models that membership trains: shadow models on random halves of all users, a reference on half of the controls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from recollect import labels
from recollect.corpora.cohorts import Cohorts, Unit
from recollect.corpora.corpus import Corpus
from recollect.corpora.partitions import build_cohorts, draw_groups, draw_halves, list_units
from recollect.corpora.record import Record
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, SHADOW, Evidence

POOL = "pool"
"""The role of the corpus that trains shadows: candidates and controls together.

Controls are divided like candidates, because a threshold is valid only if both are scored in the same way."""
REFERENCE_HALF = "reference-half"
"""The half of the controls that trains the reference."""
POPULATION = "population"
"""The other half, which sets the thresholds: the reference must not be trained on it either."""


def build_shadow_cohorts(evidence: Evidence, shadows: int) -> tuple[Corpus, Cohorts]:
    """The pool, and the random half of it that trains each shadow; two shadows of a pair share no member."""
    pool = evidence.corpora.get(POOL) or Corpus("candidates and controls", _PooledCorpus(evidence.corpora))
    unit = _choose_trained_unit(pool)
    members = draw_halves(list_units(pool, unit), shadows, seed=evidence.seed, name=SHADOW)
    return pool, build_cohorts(pool, members, unit=unit, seed=evidence.seed)


def build_reference_cohorts(evidence: Evidence) -> tuple[dict[str, Corpus], Cohorts]:
    """The two halves of the controls by their roles, and that all of one trains the reference beside shadow models."""
    controls = evidence.corpora[CONTROLS]
    unit = _choose_trained_unit(controls)
    shares = {REFERENCE_HALF: 0.5, POPULATION: 0.5}
    divided = draw_groups(list_units(controls, unit), shares, seed=evidence.seed, name=labels.STREAM_MEMBERSHIP)
    of = controls.select_users if unit == "user" else controls.select_records
    halved = {role: of(chosen, name=f"{controls.name} ({role})") for role, chosen in divided.items()}
    members = {REFERENCE: list_units(halved[REFERENCE_HALF], unit)}
    return halved, build_cohorts(halved[REFERENCE_HALF], members, unit=unit, seed=evidence.seed)


def _choose_trained_unit(corpus: Corpus) -> Unit:
    """What is drawn to train shadow models: users where every record has one, else records."""
    return "user" if all(record.user is not None for record in corpus) else "record"


@dataclass(frozen=True)
class _PooledCorpus:
    """Opens candidates and controls, if any, one after the other; ids say which is which."""

    corpora: Mapping[str, Corpus]

    def __call__(self) -> Iterator[Record]:
        for role in (AUDITED, CONTROLS):
            for record in self.corpora.get(role, ()):
                yield replace(record, id=f"{role}/{record.id}")
