"""Queries: whose texts, which of them, and within which budget. Fixed before any model scores anything.

Which words are rare is counted among the shadows' users, never in the target's data. Pieces of texts may be queried
besides the texts: the same words after less context. A target that shows one word seldom shows a word that its author
made it memorise. Each piece ranks the same words once more, and others come first in it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from recollect import labels
from recollect.audits.common.amounts import Piece, Unit
from recollect.audits.common.duplicates import Duplicates, find_duplicates
from recollect.audits.common.matching import match_units
from recollect.audits.provenance.reference_users import Reference
from recollect.audits.provenance.word_frequencies import Frequencies, read_shadow_texts
from recollect.corpora.corpus import Corpus
from recollect.corpora.messages import SEPARATOR
from recollect.corpora.record import Record
from recollect.corpora.times import Period, period_of
from recollect.errors import NotEnoughData, PlanError
from recollect.signals.evidence import AUDITED, Evidence
from recollect.stats.requirements import required_controls
from recollect.streams import derive_seed

if TYPE_CHECKING:
    from recollect.audits.provenance.audit import ProvenanceAudit


MIN_WORDS = 2
"""Words that a piece has at the least."""
_INK = re.compile(r"\S+")
PERSON = "the person"
"""Who owns the texts of a file that names no users."""


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
class QuerySelector:
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
                    (ranked, record), of_user.get(record.digest, (ranked, record)), key=_get_query_order
                )
        return {
            user: [record for _, record in sorted(found.values(), key=_get_query_order)]
            for user, found in texts.items()
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


def _get_query_order(ranked: tuple[tuple[float, str], Record]) -> tuple[float, str]:
    """By what texts are ordered as queries."""
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
        raise _refuse_too_few_calibration(audit, 0)
    known = read_shadow_texts(reference, audit.vocabulary)
    selector = QuerySelector(audit.select, known.frequencies, evidence.seed, known.digests)
    duplicates = find_unqueried_duplicates(evidence, reference)
    people = selector.rank_texts(text for text in evidence.corpora[AUDITED] if text.id not in duplicates.audited)
    calibration = selector.rank_texts(
        (text for text in reference.corpus if text.id not in duplicates.controls), frozenset(reference.calibration)
    )
    people, calibration = _match_query_periods(audit, people, calibration)
    people, calibration = _even_out_texts(audit, people, calibration, evidence.seed)
    most = _count_common_texts(audit, people, calibration)
    most = min(most, audit.queries or most)
    afforded = _choose_affordable_users(audit, people, calibration, most, evidence.seed)
    chosen = {
        QUERIES: build_queries(people, most, name="the chosen texts"),
        CALIBRATION: build_queries(afforded, most, name="the chosen texts of calibration users"),
    }
    if audit.pieces is not None:
        cut = {
            PIECES: build_piece_queries(people, most, audit.pieces, name="pieces of the chosen texts"),
            CALIBRATION_PIECES: build_piece_queries(
                afforded, most, audit.pieces, name="pieces of calibration users' texts"
            ),
        }
        chosen |= {role: corpus for role, corpus in cut.items() if len(corpus)}
    if audit.method == "histogram":
        free = QuerySelector(audit.select, known.frequencies, evidence.seed)
        training = free.rank_texts(reference.corpus, frozenset(reference.training))
        chosen[TRAINING] = build_queries(training, most, name="the chosen texts of the shadows' users")
    return chosen


def find_unqueried_duplicates(evidence: Evidence, reference: Reference) -> Duplicates:
    """Texts that two users wrote, exactly or nearly, and a user's own copies: they are not queried."""
    users = frozenset(reference.calibration)
    calibrating = (record for record in reference.corpus if find_owner(record) in users)
    return find_duplicates(evidence.corpora[AUDITED], calibrating, own=True)


def _match_query_periods(
    audit: ProvenanceAudit, people: dict[str, list[Record]], calibration: dict[str, list[Record]]
) -> tuple[dict[str, list[Record]], dict[str, list[Record]]]:
    """The texts of both sides that were written in periods of both; all where times are not known on both sides.

    Where too few calibration users wrote in periods of the audited people, all texts are compared if nobody wrote
    earlier or later than calibration users do: dates are scattered then, and not shifted.

    Raises:
        NotEnoughData: Too few calibration users wrote in the same periods, and dates differ.
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
    of_both, calibrating = ({user: texts for user, texts in side.items() if texts} for side in kept)
    needed = required_controls(audit.alpha)
    if len(calibrating) < needed or not of_both:
        if not match_units(*(_build_dated_units(side, audit.period) for side in sides), seed=0).cutter.timed.any():
            return people, calibration
        count = len(calibrating) if of_both else 0
        raise NotEnoughData(
            f"{count} calibration user{' has' if count == 1 else 's have'} texts of the same {audit.period} as the "
            f"audited people, and at least {needed} are needed: texts of different periods are not comparable.",
            do="Give controls with texts of the same period, or compare longer periods (--period quarter).",
            code="not_comparable",
            needed=needed,
        )
    return of_both, calibrating


def _build_dated_units(side: Mapping[str, Sequence[Record]], period: Period) -> list[Unit]:
    """The people of one side as units whose texts and dates a matching counts before anything is queried."""
    return [
        Unit(
            name=user,
            pieces=tuple(Piece(record=text.id, tokens=1, period=period_of(text, period)) for text in texts),
        )
        for user, texts in side.items()
    ]


def _even_out_texts(
    audit: ProvenanceAudit, people: dict[str, list[Record]], calibration: dict[str, list[Record]], seed: int
) -> tuple[dict[str, list[Record]], dict[str, list[Record]]]:
    """The texts that queries are chosen out of: where one side has more texts, of nobody more than the other side has.

    Queries chosen out of more texts are other texts, more surprising ones, and people would be unlike calibration users
    for that alone. What is left of somebody who has more is drawn at random.
    """
    sides = people, calibration
    compared = match_units(*(_build_dated_units(side, audit.period) for side in sides), seed=seed)
    if compared.equal and not compared.difference.atypical.all():
        return sides
    most = _count_common_texts(audit, people, calibration)

    def draw(text: Record) -> int:
        return derive_seed(seed, labels.STREAM_EVENED, text.id)

    def cut(texts: list[Record]) -> list[Record]:
        kept = {text.id for text in sorted(texts, key=draw)[:most]}
        return [text for text in texts if text.id in kept]

    ours, theirs = ({user: cut(texts) for user, texts in side.items()} for side in sides)
    return ours, theirs


def build_queries(texts: Texts, most: int, *, name: str) -> Corpus:
    """A corpus of queries: the first texts of each user, in the order in which they were chosen.

    Args:
        texts: The texts of each user, the best first.
        most: How many of each.
        name: What the corpus is called.
    """
    return Corpus.of([record for user in sorted(texts) for record in texts[user][:most]], name=name)


def _refuse_too_few_calibration(audit: ProvenanceAudit, found: int) -> NotEnoughData:
    """Why there are no queries and no p-value, and how many calibration users would do."""
    needed = required_controls(audit.alpha)
    users = int(np.ceil(needed / audit.calibration))
    return NotEnoughData(
        f"A p-value of {audit.alpha:g} needs at least {needed} calibration users, and there are {found}: reference "
        f"users on whom no shadow model is trained, a share of {audit.calibration:g} unless shadows are given.",
        do=f"Give controls with at least {users} users, or a larger --calibration.",
        code="too_few_controls",
        needed=users,
    )


def _count_common_texts(audit: ProvenanceAudit, people: Texts, calibration: Texts) -> int:
    """How many texts of a person can be queried: no more than enough calibration users have."""
    needed = required_controls(audit.alpha)
    if len(calibration) < needed:
        raise _refuse_too_few_calibration(audit, len(calibration))
    had = sorted((len(texts) for texts in calibration.values()), reverse=True)
    enough = had[max(needed, len(had) // 2) - 1]
    return min(max((len(texts) for texts in people.values()), default=1), enough)


def _choose_affordable_users(audit: ProvenanceAudit, people: Texts, calibration: Texts, most: int, seed: int) -> Texts:
    """The calibration users whose queries are within the budget, drawn at random."""
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


def cut_pieces(texts: Sequence[Record], width: int) -> list[Record]:
    """All pieces of one person's texts that are queried, those of the first text first; no query is repeated.

    A piece begins after every half of its width. The one at the start of a text would repeat what the text itself
    shows.

    Args:
        texts: The texts that are queried, in the order of choice.
        width: How many words a piece has.
    """
    queried = {record.digest for record in texts}
    found = []
    for number, record in enumerate(texts):
        text = record.scored_text
        words = [word.span() for word in _INK.finditer(text)]
        step = max(1, width // 2)
        for first in range(step, len(words) - MIN_WORDS + 1, step):
            begin, end = words[first][0], words[min(first + width, len(words)) - 1][1]
            name = f"{find_owner(record)}/{number}/{begin}"
            piece = replace(_cut_piece(record, text[begin:end]), id=name, user=find_owner(record), extra=None)
            if piece.digest not in queried:
                queried.add(piece.digest)
                found.append(piece)
    return found


def _cut_piece(record: Record, text: str) -> Record:
    """A piece that is queried by itself; of a pair or a conversation it is said in the same context, and first."""
    if record.messages is None:
        return replace(record, text=text, source=None, target=None)
    first = next(i for i, each in enumerate(record.messages) if each.scored)
    spoken = record.messages[first]._replace(content=text.replace(SEPARATOR, " "))
    return replace(record, messages=(*record.messages[:first], spoken))


def find_text_of_piece(piece: Record) -> int:
    """Which of its author's texts a queried piece is cut from, from 0."""
    return int(piece.id.rsplit("/", 2)[1])


def build_piece_queries(texts: Mapping[str, list[Record]], most: int, width: int, *, name: str) -> Corpus:
    """A corpus of queries: the pieces of each person's first texts.

    Args:
        texts: The texts of each user, the best first.
        most: How many of each are queried.
        width: How many words a piece has.
        name: What the corpus is called.
    """
    return Corpus.of([piece for user in sorted(texts) for piece in cut_pieces(texts[user][:most], width)], name=name)


def find_owner(record: Record) -> str:
    """Whose text is queried; a file without users is one person's."""
    return PERSON if record.user is None else record.user


def count_queried_pieces(evidence: Evidence, role: str) -> Mapping[str, int]:
    """How many pieces of whose texts were queried."""
    return Counter(find_owner(piece) for piece in evidence.corpora.get(role, ()))
