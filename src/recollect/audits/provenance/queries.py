"""Queries: whose texts, which of them, and within which budget. Fixed before any model scores anything.

Which words are rare is counted among the shadows' users, never in the target's data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from recollect import labels
from recollect.audits.common.duplicates import Duplicates, find_duplicates
from recollect.audits.provenance.frequencies import Frequencies, read_shadow_texts
from recollect.audits.provenance.pieces import build_pieces, cut_pieces
from recollect.audits.provenance.reference import Reference
from recollect.audits.provenance.words import find_owner
from recollect.corpora.corpus import Corpus
from recollect.corpora.periods import period_of
from recollect.corpora.record import Record
from recollect.errors import NotEnoughData, PlanError
from recollect.signals.evidence import AUDITED, Evidence
from recollect.stats.requirements import required_controls
from recollect.streams import derive_seed

if TYPE_CHECKING:
    from recollect.audits.provenance.audit import ProvenanceAudit

Select = Literal["surprise", "rarest", "rarest-ranks", "random"]
"""`surprise`: the most information in the different words of a text that a model would know. `rarest`: the smallest
sum of word counts, as the paper prints it, which favours short texts. `rarest-ranks`: the largest sum of the words'
positions in the list of frequent words, as the authors' code has it, which favours long ones."""
QUERIES, CALIBRATION, TRAINING = "queries", "calibration-queries", "shadow-queries"
"""The roles of the texts that are queried: the audited people's, the calibration users', the shadows' users'."""
PIECES, CALIBRATION_PIECES = "pieces", "calibration-pieces"
"""The roles of the pieces of these texts, where they are queried too."""
Texts = Mapping[str, list[Record]]


@dataclass(frozen=True)
class Selector:
    """Ranks texts by how much they would reveal, independently of the order of the corpus."""

    rule: Select
    frequencies: Frequencies
    seed: int
    excluded: Collection[str] = field(default=frozenset(), repr=False)
    """Digests of texts that are not queried: a shadow may have been trained on them."""

    def rank_texts(self, corpus: Iterable[Record], users: Collection[str] | None = None) -> dict[str, list[Record]]:
        """All texts of each user that may be queried, the best first.

        Args:
            corpus: The texts.
            users: Whose texts; None for all users.
        """
        texts: dict[str, dict[str, tuple[tuple[float, str], Record]]] = {}
        for record in corpus:
            user = find_owner(record)
            if (users is None or user in users) and record.digest not in self.excluded and record.scored_text.strip():
                of_user, ranked = texts.setdefault(user, {}), (self._rank(record), record.id)
                # the same text twice is one query
                of_user[record.digest] = min(
                    (ranked, record), of_user.get(record.digest, (ranked, record)), key=_get_sort_key
                )
        return {
            user: [record for _, record in sorted(found.values(), key=_get_sort_key)] for user, found in texts.items()
        }

    def _rank(self, record: Record) -> float:
        """Where the text is among those of its user; the smallest comes first."""
        if self.rule == "random":
            return derive_seed(self.seed, labels.STREAM_QUERY, record.id)
        if self.rule == "rarest":
            return self.frequencies.sum_counts(record.scored_text)
        if self.rule == "surprise":
            return -self.frequencies.sum_information(record.scored_text)
        return -self.frequencies.sum_positions(record.scored_text)


def _get_sort_key(ranked: tuple[tuple[float, str], Record]) -> tuple[float, str]:
    """By what texts are ordered."""
    return ranked[0]


def choose_queries(audit: ProvenanceAudit, evidence: Evidence, reference: Reference | None) -> dict[str, Corpus]:
    """The texts that are queried, by their roles.

    Texts that a shadow may have been trained on are never queries: they do not show how hard their words are.
    Equally many texts of each person are queried, as far as there are any: a person with fewer is later compared with
    calibration users cut down to as many.

    Raises:
        NotEnoughData: Too few users calibrate for a p-value as small as the audit's alpha.
        PlanError: The budget does not reach.
    """
    if reference is None:
        raise _build_refusal(audit, 0)
    known = read_shadow_texts(reference, audit.vocabulary)
    selector = Selector(audit.select, known.frequencies, evidence.seed, known.digests)
    duplicates = find_shared_texts(evidence, reference)
    people = selector.rank_texts(_leave_out(evidence.corpora[AUDITED], duplicates.audited))
    calibration = selector.rank_texts(
        _leave_out(reference.corpus, duplicates.controls), frozenset(reference.calibration)
    )
    people, calibration = _match_periods(audit, people, calibration)
    most = _count_texts(audit, people, calibration)
    afforded = _choose_afforded(audit, people, calibration, most, evidence.seed)
    chosen = {
        QUERIES: build_queries(people, most, name="the chosen texts"),
        CALIBRATION: build_queries(afforded, most, name="the chosen texts of calibration users"),
    }
    if audit.pieces is not None:
        cut = {
            PIECES: build_pieces(people, most, audit.pieces, name="pieces of the chosen texts"),
            CALIBRATION_PIECES: build_pieces(afforded, most, audit.pieces, name="pieces of calibration users' texts"),
        }
        chosen |= {role: corpus for role, corpus in cut.items() if len(corpus)}
    if audit.method == "histogram":
        free = Selector(audit.select, known.frequencies, evidence.seed)
        training = free.rank_texts(reference.corpus, frozenset(reference.training))
        chosen[TRAINING] = build_queries(training, most, name="the chosen texts of the shadows' users")
    return chosen


def find_shared_texts(evidence: Evidence, reference: Reference) -> Duplicates:
    """Texts that two users wrote, exactly or nearly: they tell nothing about either, and are not queried."""
    users = frozenset(reference.calibration)
    calibrating = (record for record in reference.corpus if find_owner(record) in users)
    return find_duplicates(evidence.corpora[AUDITED], calibrating)


def _leave_out(corpus: Iterable[Record], dropped: Collection[str]) -> Iterable[Record]:
    """The texts but for some."""
    return (record for record in corpus if record.id not in dropped)


def _match_periods(
    audit: ProvenanceAudit, people: dict[str, list[Record]], calibration: dict[str, list[Record]]
) -> tuple[dict[str, list[Record]], dict[str, list[Record]]]:
    """The texts of both sides that were written in periods of both; all where times are not known on both sides.

    Raises:
        NotEnoughData: Too few calibration users wrote in the same periods.
    """
    sides = people, calibration
    ours, theirs = (
        {period_of(record, audit.period) for texts in side.values() for record in texts} - {None} for side in sides
    )
    if not ours or not theirs:
        return people, calibration
    common = (ours & theirs) | {None}
    kept = [
        {user: [text for text in texts if period_of(text, audit.period) in common] for user, texts in side.items()}
        for side in sides
    ]
    people, calibration = ({user: texts for user, texts in side.items() if texts} for side in kept)
    needed = required_controls(audit.alpha)
    if len(calibration) < needed or not people:
        raise NotEnoughData(
            f"{len(calibration) if people else 0} calibration users have texts of the same {audit.period} as the "
            f"audited people, and at least {needed} are needed: texts of different periods are not comparable.",
            do="Give controls with texts of the same period, or compare longer periods (--period quarter).",
            code="not_comparable",
            needed=needed,
        )
    return people, calibration


def build_queries(texts: Texts, most: int, *, name: str) -> Corpus:
    """A corpus of the first texts of each user; a user's texts are in the order in which they were chosen.

    Args:
        texts: The texts of each user, the best first.
        most: How many of each.
        name: What the corpus is called.
    """
    return Corpus.of([record for user in sorted(texts) for record in texts[user][:most]], name=name)


def _build_refusal(audit: ProvenanceAudit, found: int) -> NotEnoughData:
    """Why there is no p-value, and how many users would do."""
    needed = required_controls(audit.alpha)
    users = int(np.ceil(needed / audit.calibration))
    return NotEnoughData(
        f"A p-value of {audit.alpha:g} needs at least {needed} calibration users, and there are {found}: a share of "
        f"{audit.calibration:g} of the reference users, on whom no shadow model may be trained.",
        do=f"Give controls with at least {users} users, or a larger calibration share.",
        code="too_few_controls",
        needed=users,
    )


def _count_texts(audit: ProvenanceAudit, people: Texts, calibration: Texts) -> int:
    """How many texts of a person are queried: no more than enough calibration users have."""
    needed = required_controls(audit.alpha)
    if len(calibration) < needed:
        raise _build_refusal(audit, len(calibration))
    had = sorted((len(texts) for texts in calibration.values()), reverse=True)
    enough = had[max(needed, len(had) // 2) - 1]
    longest = max((len(texts) for texts in people.values()), default=1)
    return min(longest, enough, audit.queries or longest)


def _choose_afforded(audit: ProvenanceAudit, people: Texts, calibration: Texts, most: int, seed: int) -> Texts:
    """The calibration users within the budget, drawn at random."""
    if audit.budget is None:
        return calibration
    spent = least = sum(_count_queries(audit, texts[:most]) for texts in people.values())
    afforded: dict[str, list[Record]] = {}
    needed = required_controls(audit.alpha)
    for drawn, user in enumerate(sorted(calibration, key=lambda name: derive_seed(seed, labels.STREAM_AFFORDED, name))):
        cost = _count_queries(audit, calibration[user][:most])
        least += cost if drawn < needed else 0
        spent += cost
        if spent <= audit.budget:
            afforded[user] = calibration[user]
    if len(afforded) < needed:
        also = "" if audit.pieces is None else ", with their pieces,"
        raise PlanError(
            f"A budget of {audit.budget:,} queries does not reach: {most} texts of each person and of {needed} "
            f"calibration users{also} are up to {least:,}.",
            do=f"Allow {least:,} queries, or query fewer texts of each.",
            code="budget_too_small",
        )
    return afforded


def _count_queries(audit: ProvenanceAudit, texts: Sequence[Record]) -> int:
    """How many queries these texts of one person are."""
    return len(texts) + (0 if audit.pieces is None else len(cut_pieces(texts, audit.pieces)))
