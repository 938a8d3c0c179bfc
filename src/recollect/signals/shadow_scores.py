"""Shadow scores: each record's confidence under the target, under shadows trained on it and under the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from recollect import labels
from recollect.errors import PlanError
from recollect.signals.evidence import AUDITED, CONTROLS, SHADOW, TARGET, Evidence
from recollect.signals.loss import mean_logprob
from recollect.signals.scores import Floats, Scores
from recollect.stats.tied_ranks import rank_sum_p
from recollect.streams import stream

BoolArray = NDArray[np.bool_]
UNEVEN = 0.05
"""In this share of designs, at most, shadows that were trained alike on both sides are called uneven."""


@dataclass(frozen=True, eq=False)
class ShadowScores:
    """The mean log-probability of each record under the target and under every shadow.

    Records that no shadow was trained on borrow the missing side: the average distance of both sides over all other
    records is added to the side they have. Records that every shadow was trained on get no score: how a model scores
    them that was not trained on them is unknown, and a borrowed distance is not theirs.
    """

    scores: Scores
    """Under the target, of all corpora that were scored."""
    shadows: Floats
    """Under the shadows [records, shadows]."""
    trained_on: BoolArray
    """Whether a shadow was trained on a record of this content [records, shadows]."""
    selected: tuple[int, ...]
    """The places of the records that were to be scored."""
    even: BoolArray | None = None
    """The shadows that count where as many are to count for every record, all not trained on it [records, shadows]."""

    def require_both_sides(self, signal: str) -> None:
        """Refuse shadows of which no record tells what being trained on it adds.

        Raises:
            PlanError: No record is in the training set of one shadow and not in that of another.
        """
        if not self.has_both_sides.any():
            raise PlanError(
                f"The signal {signal!r} compares shadows that were trained on a record with shadows that were not; "
                "there is no record of which some were and others were not.",
                do="Give shadows that were trained on different halves of the candidates, or use 'lira-offline'.",
                code="shadows_without_contrast",
            )

    def select_scores(self, values: Floats) -> Scores:
        """The scores of the records that were to be scored, from a value for each of all records."""
        records = [self.scores.records[i] for i in self.selected]
        users = [self.scores.users[i] for i in self.selected]
        # ids carry the corpus in front of them, so that two corpora may use the same ones
        plain = tuple(record.partition("\x1f")[2] for record in records)
        return Scores(plain, tuple(users), values[list(self.selected)])

    def compute_in_out_means(self, values: Floats) -> tuple[Floats, Floats]:
        """The mean of each record over shadows trained on it and over others, alike for all records if these are even.

        Args:
            values: Of the shadows, such as probabilities [records, shadows].
        """
        inside, outside = compute_in_out_means(values, self.trained_on)
        if self.even is None:
            return inside, outside
        gap = float((inside - outside)[self.has_both_sides].mean()) if self.has_both_sides.any() else 0.0
        means = (values * self.even).sum(axis=1) / np.maximum(self.even.sum(axis=1), 1)
        return means + gap, means

    @cached_property
    def has_both_sides(self) -> BoolArray:
        """Which records some shadow was trained on and some other was not [records]."""
        return np.asarray(self.trained_on.any(axis=1) & ~self.trained_on.all(axis=1))


def score_with_shadows(evidence: Evidence, corpus: str, *, even: bool = False) -> ShadowScores:
    """The scores of target and shadows on a corpus, beside all others that they scored.

    Args:
        evidence: Has shadows, and cohorts that say what each of them was trained on.
        corpus: The role of the corpus that is scored.
        even: Whether as many shadows count for every record, none of which was trained on it.

    Raises:
        PlanError: There are no shadows, or their training sets are unknown.
    """
    shadows = evidence.models_of_role(SHADOW)
    training_sets = _find_training_sets(evidence, shadows)
    shared_roles = [
        role for role in (AUDITED, CONTROLS) if all(evidence.has_answers(m, role) for m in (TARGET, *shadows))
    ]
    roles = dict.fromkeys((corpus, *shared_roles))
    ids, users, rows, trained_rows, selected = (
        list[str](),
        list[str](),
        list[list[float]](),
        list[BoolArray](),
        list[int](),
    )
    nobody = np.zeros(len(shadows), dtype=np.bool_)
    for role in roles:
        for records, answers in evidence.iter_blocks(role, [TARGET, *shadows]):
            means = [mean_logprob(each) for each in answers]
            for record in records:
                if all(np.isfinite(found.get(record.digest, np.nan)) for found in means):
                    trained = training_sets.get(record.digest, nobody)
                    selected += [len(ids)] * (role == corpus and not trained.all())
                    ids.append(f"{role}\x1f{record.id}")
                    users.append(record.owner)
                    rows.append([found[record.digest] for found in means])
                    trained_rows.append(trained)
    table = np.array(rows, dtype=np.float64).reshape(len(rows), 1 + len(shadows))
    flags = np.array(trained_rows, dtype=np.bool_).reshape(len(rows), len(shadows))
    chosen = _choose_even_shadows(flags, users, evidence.seed) if even else None
    return ShadowScores(Scores(tuple(ids), tuple(users), table[:, 0]), table[:, 1:], flags, tuple(selected), chosen)


def _choose_even_shadows(trained_on: BoolArray, users: Sequence[str], seed: int) -> BoolArray:
    """As many shadows for each record, none of which was trained on it, drawn once for each user [records, shadows]."""
    places = {user: i for i, user in enumerate(sorted(set(users)))}
    drawn = stream(seed, *labels.STREAM_EVEN_SHADOWS).random((len(places), trained_on.shape[1]))
    order = np.where(trained_on, np.inf, drawn[[places[user] for user in users]])
    count = int((~trained_on).sum(axis=1)[~trained_on.all(axis=1)].min(initial=trained_on.shape[1]))
    ranks = np.argsort(np.argsort(order, axis=1), axis=1)
    return np.asarray((ranks < count) & ~trained_on)


def are_shadows_uneven(evidence: Evidence) -> bool:
    """Whether shadows were trained more on the candidates than on the controls, or less.

    What being trained on adds is then known for one side and guessed for the other, and means are of more shadows on
    one of them: their scores differ whatever the target was trained on. Told from the number of shadows that were
    trained on each user's records (Mann–Whitney), or that no user of one side has as many as any of the other.
    """
    shadows = evidence.models_of_role(SHADOW)
    if not shadows or not all(role in evidence.corpora for role in (AUDITED, CONTROLS)):
        return False
    trained, nobody = _find_training_sets(evidence, shadows), np.zeros(len(shadows), dtype=np.bool_)
    sides = []
    for role in (AUDITED, CONTROLS):
        counts = dict[str, list[int]]()
        for record in evidence.corpora[role]:
            counts.setdefault(record.owner, []).append(int(trained.get(record.digest, nobody).sum()))
        sides.append(np.array([np.mean(each) for each in counts.values()]))
    ours, theirs = sides
    if not len(ours) or not len(theirs):
        return False
    apart = ours.min() > theirs.max() or ours.max() < theirs.min()
    return bool(apart or rank_sum_p(ours, theirs, "two-sided") <= UNEVEN)


def compute_in_out_means(values: Floats, trained_on: BoolArray) -> tuple[Floats, Floats]:
    """The mean of each record over the shadows trained on it, and over the others [records]; gaps are filled.

    >>> trained = np.array([[True, False], [False, False]])
    >>> inside, outside = compute_in_out_means(np.array([[3.0, 1.0], [4.0, 2.0]]), trained)
    >>> inside.tolist(), outside.tolist()
    ([3.0, 5.0], [1.0, 3.0])
    """
    counts = trained_on.sum(axis=1), (~trained_on).sum(axis=1)
    sums = (values * trained_on).sum(axis=1), (values * ~trained_on).sum(axis=1)
    inside, outside = (total / np.maximum(count, 1) for total, count in zip(sums, counts, strict=True))
    both = (counts[0] > 0) & (counts[1] > 0)
    gap = float((inside - outside)[both].mean()) if both.any() else 0.0
    return np.where(counts[0] > 0, inside, outside + gap), np.where(counts[1] > 0, outside, inside - gap)


def _find_training_sets(evidence: Evidence, shadows: tuple[str, ...]) -> dict[str, BoolArray]:
    """For each content that trained some shadow, which ones it trained [shadows]."""
    if not shadows:
        raise PlanError(
            "There are no shadow models to compare with.", do="Give shadow models, or a recipe.", code="missing_shadows"
        )
    refuse_unknown_training_sets(evidence)
    trained = dict[str, BoolArray]()
    for role, cohorts in evidence.cohorts.items():
        here = [name for name in shadows if name in cohorts.models]
        if not here or role not in evidence.corpora:
            continue
        columns = np.zeros((len(cohorts.units), len(shadows)), dtype=np.bool_)
        columns[:, [shadows.index(name) for name in here]] = np.array([cohorts.member_mask(name) for name in here]).T
        by_unit = dict(zip(cohorts.units, columns, strict=True))
        for record in evidence.corpora[role]:
            flags = by_unit.get(record.owner if cohorts.unit == "user" else record.id)
            if flags is not None:
                trained[record.digest] = trained[record.digest] | flags if record.digest in trained else flags
    return trained


def refuse_unknown_training_sets(evidence: Evidence) -> None:
    """Refuse shadows of which it is not known what they were trained on; costs nothing.

    Raises:
        PlanError: There is such a shadow.
    """
    known = {name for role, each in evidence.cohorts.items() if role in evidence.corpora for name in each.models}
    if unknown := sorted(set(evidence.models_of_role(SHADOW)) - known):
        raise PlanError(
            f"The training set of the shadow model {unknown[0]!r} is unknown.",
            do=f"Give a cohorts.json that lists the members of {unknown[0]!r} (--members cohorts.json, members=), or "
            "let shadows be trained (--recipe, recipe=).",
            code="unknown_shadow_cohort",
        )
