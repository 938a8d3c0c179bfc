"""Matched records: what is left of records after matching, the texts that are compared, for the guard to look at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from recollect.audits.common.amounts import Amounts, Ints
from recollect.audits.common.matching import Matching, Stratum
from recollect.audits.common.unicode_words import truncate_words
from recollect.corpora.record import Record


@dataclass(frozen=True, kw_only=True, eq=False)
class MatchedUnits:
    """Audited users and controls of like amounts, all cut to the same; a control may be in several of these."""

    audited: Mapping[str, Sequence[Record]]
    """The records of each unit, as they are compared: chosen and truncated."""
    controls: Mapping[str, Sequence[Record]]
    kept: Mapping[str, float] = field(default_factory=dict)
    """What share of the tokens of its chosen records is kept of each control; all of it, where nothing is said."""


def cut_matched_records(
    matching: Matching, audited: Iterable[Record], controls: Iterable[Record]
) -> list[MatchedUnits]:
    """The matched records of all strata as they are compared, in the first cut of each.

    The units are owners, also where records are audited: records of one user are not independent. So an owner of
    audited records is in the stratum that has most of them, with a power of two of its records, among controls with
    as many there.

    Args:
        matching: Who is compared with whom.
        audited: The audited records.
        controls: The controls.
    """
    texts = {record.id: record for record in audited}, {record.id: record for record in controls}
    found = [_cut_stratum(matching, stratum, texts) for stratum in matching.strata]
    if matching.audited.owners == matching.audited.units and matching.controls.owners == matching.controls.units:
        return [MatchedUnits(audited=one, controls=other, kept=kept) for one, other, kept in found]
    most = dict[str, int]()
    for i, (one, _, _) in enumerate(found):
        for owner, records in one.items():
            if owner not in most or len(records) > len(found[most[owner]][0][owner]):
                most[owner] = i
    return [
        each
        for i, sides in enumerate(found)
        for each in _divide_owners_by_count(*sides, {o for o in most if most[o] == i})
    ]


def _cut_stratum(
    matching: Matching, stratum: Stratum, texts: tuple[Mapping[str, Record], Mapping[str, Record]]
) -> tuple[dict[str, list[Record]], dict[str, list[Record]], dict[str, float]]:
    """The matched records of each owner on either side in one stratum, and the share kept of each control's."""
    cut = matching.cut(stratum)
    usable = np.isin(matching.controls.unit_of, cut.usable)
    sides = (matching.audited, cut.audited), (matching.controls, np.where(usable, cut.controls, 0))
    one, other = (_collect_kept_records(*side, records) for side, records in zip(sides, texts, strict=True))
    return one, other, _measure_kept_share(*sides[1])


def _measure_kept_share(side: Amounts, kept: Ints) -> dict[str, float]:
    """The share of the tokens of an owner's matched records that is kept."""
    chosen, total = dict[str, int](), dict[str, int]()
    for i in np.flatnonzero(kept).tolist():
        owner = side.owners[side.unit_of[i]]
        chosen[owner] = chosen.get(owner, 0) + int(kept[i])
        total[owner] = total.get(owner, 0) + int(side.tokens[i])
    return {owner: count / total[owner] for owner, count in chosen.items()}


def _collect_kept_records(side: Amounts, kept: Ints, texts: Mapping[str, Record]) -> dict[str, list[Record]]:
    """What matching keeps of each owner's records."""
    grouped = dict[str, list[Record]]()
    for i in np.flatnonzero(kept).tolist():
        record = texts[side.pieces[i]]
        if kept[i] < side.tokens[i]:
            record = truncate_matched_record(record, float(kept[i] / side.tokens[i]))
        grouped.setdefault(side.owners[side.unit_of[i]], []).append(record)
    return grouped


def truncate_matched_record(record: Record, share: float) -> Record:
    """A matched record of which the first words are left: that share of them, and at least one.

    >>> truncate_matched_record(Record(id="1", text="one two, three four"), 0.5).text
    'one two'
    """
    text = record.scored_text
    return record.with_scored_text(truncate_words(text, share)) if text else record


def _divide_owners_by_count(
    audited: Mapping[str, Sequence[Record]],
    controls: Mapping[str, Sequence[Record]],
    kept: Mapping[str, float],
    wanted: set[str],
) -> list[MatchedUnits]:
    """The owners of a stratum by how many matched records they have in it, each cut to a power of two."""
    level = {owner: len(records).bit_length() - 1 for owner, records in audited.items() if owner in wanted}
    return [
        MatchedUnits(
            audited={owner: audited[owner][: 2**size] for owner in level if level[owner] == size},
            controls={owner: records[: 2**size] for owner, records in controls.items() if len(records) >= 2**size},
            kept=kept,
        )
        for size in sorted(set(level.values()))
    ]
