"""What shadow models say: for each record, how sure the target is, and how sure models are that saw it or did not."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from recollect.errors import PlanError
from recollect.signals.evidence import AUDITED, CONTROLS, SHADOW, TARGET, Evidence
from recollect.signals.loss import mean_logprob
from recollect.signals.scores import Floats, Scores

Flags = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Believed:
    """The mean log-probability of each record under the target and under every shadow.

    Records that no shadow saw, or that all of them saw, borrow the missing side: the average distance of both sides
    over all other records is added to, or taken from, the side they have.
    """

    scores: Scores
    """Under the target, of all corpora that were asked about."""
    shadows: Floats
    """Under the shadows [records, shadows]."""
    seen: Flags
    """Whether a shadow was trained on a record of this content [records, shadows]."""
    wanted: tuple[int, ...]
    """The places of the records that were to be scored."""

    def answer(self, values: Floats) -> Scores:
        """The scores of the records that were to be scored, from a value for each of all records."""
        records = [self.scores.records[i] for i in self.wanted]
        users = [self.scores.users[i] for i in self.wanted]
        # ids carry the corpus in front of them, so that two corpora may use the same ones
        plain = tuple(record.partition("\x1f")[2] for record in records)
        return Scores(plain, tuple(users), values[list(self.wanted)])

    @cached_property
    def both(self) -> Flags:
        """Which records some shadow saw and some other did not [records]."""
        return np.asarray(self.seen.any(axis=1) & ~self.seen.all(axis=1))


def believed(evidence: Evidence, corpus: str) -> Believed:
    """What target and shadows say about a corpus, beside all else that they were asked about.

    Args:
        evidence: Has shadows, and cohorts that say what each of them was trained on.
        corpus: The part of the corpus that is scored.

    Raises:
        PlanError: There are no shadows, or nobody knows what they were trained on.
    """
    shadows = evidence.playing(SHADOW)
    trained = _trained_on(evidence, shadows)
    told = [part for part in (AUDITED, CONTROLS) if all(evidence.has_asked(m, part) for m in (TARGET, *shadows))]
    asked = dict.fromkeys((corpus, *told))
    ids, users, rows, seen, wanted = list[str](), list[str](), list[list[float]](), list[Flags](), list[int]()
    nobody = np.zeros(len(shadows), dtype=np.bool_)
    for part in asked:
        for records, answers in evidence.each(part, [TARGET, *shadows]):
            means = [mean_logprob(each) for each in answers]
            for record in records:
                if all(record.digest in found for found in means):
                    wanted += [len(ids)] * (part == corpus)
                    ids.append(f"{part}\x1f{record.id}")
                    users.append(record.owner)
                    rows.append([found[record.digest] for found in means])
                    seen.append(trained.get(record.digest, nobody))
    table = np.array(rows, dtype=np.float64).reshape(len(rows), 1 + len(shadows))
    flags = np.array(seen, dtype=np.bool_).reshape(len(rows), len(shadows))
    return Believed(Scores(tuple(ids), tuple(users), table[:, 0]), table[:, 1:], flags, tuple(wanted))


def side_means(values: Floats, seen: Flags) -> tuple[Floats, Floats]:
    """The mean of each record over the shadows that saw it, and over those that did not [records]; gaps are bridged.

    >>> inside, outside = side_means(np.array([[3.0, 1.0], [4.0, 2.0]]), np.array([[True, False], [False, False]]))
    >>> inside.tolist(), outside.tolist()
    ([3.0, 5.0], [1.0, 3.0])
    """
    counts = seen.sum(axis=1), (~seen).sum(axis=1)
    sums = (values * seen).sum(axis=1), (values * ~seen).sum(axis=1)
    inside, outside = (total / np.maximum(count, 1) for total, count in zip(sums, counts, strict=True))
    both = (counts[0] > 0) & (counts[1] > 0)
    gap = float((inside - outside)[both].mean()) if both.any() else 0.0
    return np.where(counts[0] > 0, inside, outside + gap), np.where(counts[1] > 0, outside, inside - gap)


def _trained_on(evidence: Evidence, shadows: tuple[str, ...]) -> dict[str, Flags]:
    """For each content that trained some shadow, which ones it trained [shadows]."""
    if not shadows:
        raise PlanError(
            "There are no shadow models to compare with.", do="Give shadow models, or a recipe.", code="missing_shadows"
        )
    known, trained = set[str](), dict[str, Flags]()
    for part, cohorts in evidence.cohorts.items():
        here = [name for name in shadows if name in cohorts.models]
        if not here or part not in evidence.corpora:
            continue
        known.update(here)
        columns = np.zeros((len(cohorts.units), len(shadows)), dtype=np.bool_)
        columns[:, [shadows.index(name) for name in here]] = np.array([cohorts.trained(name) for name in here]).T
        by_unit = dict(zip(cohorts.units, columns, strict=True))
        for record in evidence.corpora[part]:
            flags = by_unit.get(record.owner if cohorts.unit == "user" else record.id)
            if flags is not None:
                trained[record.digest] = trained[record.digest] | flags if record.digest in trained else flags
    if unknown := sorted(set(shadows) - known):
        raise PlanError(
            f"Nobody knows what the shadow model {unknown[0]!r} was trained on.",
            do="Give cohorts that name it.",
            code="unknown_shadow_cohort",
        )
    return trained
