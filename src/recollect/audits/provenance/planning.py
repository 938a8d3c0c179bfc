"""What is going to be asked, fixed before any model is: whose texts, which of them, and within which budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from recollect import labels
from recollect.audits.provenance.pieces import in_pieces, pieces
from recollect.audits.provenance.queries import Chooser, asked
from recollect.audits.provenance.reference import Reference
from recollect.audits.provenance.taught import taught
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import NotEnoughData, PlanError
from recollect.signals.evidence import AUDITED, Evidence
from recollect.stats.support import controls_for_p
from recollect.streams import seed_of

if TYPE_CHECKING:
    from recollect.audits.provenance.audit import ProvenanceAudit

QUERIES, CALIBRATION, TRAINING = "queries", "calibration-queries", "shadow-queries"
"""The parts of the texts that are asked about: the audited people's, the calibration users', the shadows' users'."""
PIECES, CALIBRATION_PIECES = "pieces", "calibration-pieces"
"""The parts of the pieces of these texts, where they are asked about too."""
Texts = Mapping[str, list[Record]]


def chosen_queries(audit: ProvenanceAudit, evidence: Evidence, reference: Reference | None) -> dict[str, Corpus]:
    """The texts that are asked about, by their parts.

    Texts that a shadow may have seen are nobody's queries: they say nothing about how hard their words are. Of
    everybody equally many texts are asked about, as far as they have them: whoever has fewer is later compared with
    calibration users cut down to as many.

    Raises:
        NotEnoughData: Too few users calibrate for a p-value as small as the audit's alpha.
        PlanError: The budget does not reach.
    """
    if reference is None:
        raise _too_few(audit, 0)
    known = taught(reference, audit.vocabulary)
    chooser = Chooser(audit.select, known.frequencies, evidence.seed, known.texts)
    people = chooser.chosen(evidence.corpora[AUDITED])
    calibration = chooser.chosen(reference.corpus, frozenset(reference.calibration))
    most = _most(audit, people, calibration)
    afforded = _afforded(audit, people, calibration, most, evidence.seed)
    chosen = {
        QUERIES: asked(people, most, name="the chosen texts"),
        CALIBRATION: asked(afforded, most, name="the chosen texts of calibration users"),
    }
    if audit.pieces is not None:
        cut = {
            PIECES: in_pieces(people, most, audit.pieces, name="pieces of the chosen texts"),
            CALIBRATION_PIECES: in_pieces(afforded, most, audit.pieces, name="pieces of calibration users' texts"),
        }
        chosen |= {part: corpus for part, corpus in cut.items() if len(corpus)}
    if audit.method == "histogram":
        free = Chooser(audit.select, known.frequencies, evidence.seed)
        training = free.chosen(reference.corpus, frozenset(reference.training))
        chosen[TRAINING] = asked(training, most, name="the chosen texts of the shadows' users")
    return chosen


def _too_few(audit: ProvenanceAudit, found: int) -> NotEnoughData:
    """Why there is no p-value, and how many users would do."""
    needed = controls_for_p(audit.alpha)
    users = int(np.ceil(needed / audit.calibration))
    return NotEnoughData(
        f"A p-value of {audit.alpha:g} needs at least {needed} calibration users, and there are {found}: a share of "
        f"{audit.calibration:g} of the reference users, whom no shadow model may see.",
        do=f"Give controls with at least {users} users, or let a larger share calibrate.",
    )


def _most(audit: ProvenanceAudit, people: Texts, calibration: Texts) -> int:
    """How many texts of a person are asked about: no more than enough calibration users have."""
    needed = controls_for_p(audit.alpha)
    if len(calibration) < needed:
        raise _too_few(audit, len(calibration))
    had = sorted((len(texts) for texts in calibration.values()), reverse=True)
    enough = had[max(needed, len(had) // 2) - 1]
    longest = max((len(texts) for texts in people.values()), default=1)
    return min(longest, enough, audit.queries or longest)


def _afforded(audit: ProvenanceAudit, people: Texts, calibration: Texts, most: int, seed: int) -> Texts:
    """The calibration users whom the budget reaches, drawn at random."""
    if audit.budget is None:
        return calibration
    spent = least = sum(_cost(audit, texts[:most]) for texts in people.values())
    afforded: dict[str, list[Record]] = {}
    needed = controls_for_p(audit.alpha)
    for place, user in enumerate(sorted(calibration, key=lambda name: seed_of(seed, labels.STREAM_AFFORDED, name))):
        cost = _cost(audit, calibration[user][:most])
        least += cost if place < needed else 0
        spent += cost
        if spent <= audit.budget:
            afforded[user] = calibration[user]
    if len(afforded) < needed:
        also = "" if audit.pieces is None else ", with their pieces,"
        raise PlanError(
            f"A budget of {audit.budget:,} queries does not reach: {most} texts of each person and of {needed} "
            f"calibration users{also} are up to {least:,}.",
            do=f"Allow {least:,} queries, or ask about fewer texts of each.",
        )
    return afforded


def _cost(audit: ProvenanceAudit, texts: Sequence[Record]) -> int:
    """How many queries these texts of one person are."""
    return len(texts) + (0 if audit.pieces is None else len(pieces(texts, audit.pieces)))
