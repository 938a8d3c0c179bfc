"""Candidates against controls of the same amount: a p-value for each of them, and one for all as a group."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from recollect import labels
from recollect.audits.common.amounts import Amounts, Ints, Piece, Unit
from recollect.audits.common.matching import Cut, Matching, Stratum, combine_draws, match_units
from recollect.audits.common.power import smallest_tied_rank_p
from recollect.audits.common.truncated_evidence import (
    can_truncate,
    count_truncatable_tokens,
    load_truncatable_evidence,
    truncate_evidence,
)
from recollect.audits.membership.candidate_scores import By
from recollect.errors import NotEnoughData
from recollect.signals.evidence import Evidence
from recollect.signals.scores import Floats, Scores
from recollect.signals.signal import Signal, compute_scores
from recollect.stats.groups import OwnedValues
from recollect.stats.significance import conformal_p
from recollect.stats.strata import DRAWS, EXACT_UNITS, compute_normal_p, van_elteren
from recollect.stats.tied_ranks import rank_sum_p
from recollect.stats.two_sample_tests import mann_whitney
from recollect.streams import stream

Periods = Callable[[str, str], str | None]
"""From a role and a record's id to the calendar period in which the record was written; None where it is unknown."""

FAR_BELOW = 0.001
"""Only p-values below this are told as coarsely as a test gives them: from here on what could be significant is counted
over all ways to deal the scores out."""
MAX_KEPT = 1 << 22
"""About how many scores of units in cuts are kept: 64 MB."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Side:
    """The records of one side of a comparison."""

    role: str
    """The role of the corpus that they are in."""
    scores: Scores
    """One score per record, of whole records."""


@dataclass(frozen=True, kw_only=True, eq=False)
class UnitTests:
    """A p-value for each candidate, against controls of the same amount."""

    p: Floats
    """In the order of the candidates."""
    controls: Ints
    """How many control users each was compared with."""
    records: Ints
    """How many of its records were compared."""
    draws: Ints
    """How many cuts its p-value combines."""
    matching: Matching

    @property
    def has_uncut(self) -> bool:
        """Whether anybody was compared with the controls as they are."""
        return any(stratum.counts is None for stratum in self.matching.strata)


@dataclass(frozen=True, kw_only=True)
class GroupTest:
    """The p-value of "one side scores like the other", by users."""

    p: float
    equal: bool
    """Whether both sides have the same amounts, so that nothing was cut."""
    method: str
    above: int
    """Users of the one side that take part."""
    below: int
    """Users of the other side."""
    smallest_p: float
    """The smallest p-value that these scores could have given, dealt out otherwise."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparer:
    """Scores units, whole or cut, and compares two sides at the same amounts."""

    signal: Signal
    evidence: Evidence
    find_period: Periods
    _tokens: dict[str, Mapping[str, int]] = field(default_factory=dict, repr=False)
    _matched: dict[tuple[str, tuple[str, ...], str, tuple[str, ...]], Matching] = field(
        default_factory=dict, repr=False
    )
    _scored: dict[tuple[int, int, int], tuple[Matching, tuple[Ints, Floats, Floats]]] = field(
        default_factory=dict, repr=False
    )
    _loaded: dict[tuple[str, ...], Evidence] = field(default_factory=dict, repr=False)

    def test_units(self, above: Side, below: Side, *, by: By) -> UnitTests:
        """A p-value for each unit of one side against the other: conformal, at the same amount.

        Args:
            above: The candidates' records.
            below: Those of the controls.
            by: Whether units are records or users.
        """
        matching = self.match_users(above, below) if by == "user" else self._match(above, below, by=by)
        order = {name: i for i, name in enumerate(matching.audited.units)}
        units = above.scores.records if by == "record" else tuple(dict.fromkeys(above.scores.users))
        p, controls = np.ones(len(order)), np.zeros(len(order), dtype=np.int64)
        records, draws = matching.audited.counts.copy(), np.ones(len(order), dtype=np.int64)
        for stratum in matching.strata:
            found, used = [], []
            for draw in range(stratum.draws):
                usable, mine, others = self.score_stratum(matching, stratum, draw, (above, below))
                owners = [matching.controls.owners[i] for i in usable]
                found.append(conformal_p(mine[stratum.members], OwnedValues(others[usable], owners)))
                used.append(len(set(owners)))
            p[stratum.members] = combine_draws(np.array(found))
            controls[stratum.members] = min(used)
            draws[stratum.members] = stratum.draws
            if stratum.records is not None:
                records[stratum.members] = stratum.records
        places = [order[name] for name in units]
        return UnitTests(
            p=p[places], controls=controls[places], records=records[places], draws=draws[places], matching=matching
        )

    def test_groups(self, above: Side, below: Side, *, within: Sequence[tuple[Floats, Floats]] = ()) -> GroupTest:
        """Whether users of one side score above those of the other, at the same amounts.

        Where amounts are alike and nobody is on both sides it is the Mann–Whitney test of users' means; else van
        Elteren's, with strata of users that are cut to the same amount, and of the records of each user who is on both
        sides.

        Args:
            above: The records of the side that is expected to score higher.
            below: Those of the other.
            within: The scores of both sides of each user who is on both.

        Raises:
            NotEnoughData: There are too few users.
        """
        users = [side.scores.average_by_user() for side in (above, below)]
        if not (within and min(map(len, users)) == 0):
            matching = self.match_users(above, below) if min(map(len, users)) else None
            if matching is None or (matching.equal and not within):
                p = mann_whitney(*users).p
                return GroupTest(
                    p=p,
                    equal=True,
                    method="Mann–Whitney of users' mean scores",
                    above=len(users[0]),
                    below=len(users[1]),
                    smallest_p=_find_smallest_group_p(users[0].values, users[1].values),
                )
            return self._test_strata(matching, above, below, within)
        test = van_elteren(within, rng=self._rng)
        smallest = _find_smallest_stratified_p(within)
        return GroupTest(
            p=test.p, equal=True, method=_WITHIN, above=len(within), below=len(within), smallest_p=smallest
        )

    def _test_strata(
        self, matching: Matching, above: Side, below: Side, within: Sequence[tuple[Floats, Floats]]
    ) -> GroupTest:
        """Van Elteren's test over strata of one amount, and of the records of users on both sides."""
        found, smallest = [], 1.0
        if matching.equal:
            everybody = [side.scores.average_by_user().values for side in (above, below)]
            strata = [(everybody[0], everybody[1]), *within]
            found.append(van_elteren(strata, rng=self._rng))
            smallest = _find_smallest_stratified_p(strata)
        else:
            for draw in range(max((stratum.draws for stratum in matching.strata), default=1)):
                strata = list(within)
                for stratum in matching.strata:
                    last = min(draw, stratum.draws - 1)
                    usable, mine, others = self.score_stratum(matching, stratum, last, (above, below))
                    strata.append((mine[stratum.members], others[np.intersect1d(stratum.own_controls, usable)]))
                found.append(van_elteren(strata, rng=self._rng))
                smallest = min(smallest, _find_smallest_stratified_p(strata))
        p = float(combine_draws(np.array([[test.p] for test in found]))[0])
        method = "van Elteren's test" + ("" if matching.equal else " of users at the same amounts")
        method += f", twice the median of {len(found)} cuts" if len(found) > 1 else ""
        method += ", and of records within users" if within else ""
        return GroupTest(
            p=p,
            equal=matching.equal,
            method=method,
            above=found[0].above,
            below=found[0].below,
            smallest_p=min(1.0, smallest * (2 if len(found) > 1 else 1)),
        )

    def match_users(self, above: Side, below: Side) -> Matching:
        """Which users of both sides are compared with whom."""
        key = (above.role, above.scores.records, below.role, below.scores.records)
        if key not in self._matched:
            self._matched[key] = self._match(above, below, by="user")
        return self._matched[key]

    def score_strata(self, matching: Matching, above: Side, below: Side) -> tuple[Scores, Scores]:
        """One score per user of both sides as they are compared: of controls, in the stratum that has them alone."""
        found = (dict[str, float](), dict[str, float]())
        for stratum in matching.strata:
            usable, mine, others = self.score_stratum(matching, stratum, 0, (above, below))
            own = np.intersect1d(stratum.own_controls, usable)
            found[0].update({matching.audited.units[i]: float(mine[i]) for i in stratum.members})
            found[1].update({matching.controls.units[i]: float(others[i]) for i in own})
        one, other = (Scores(tuple(each), tuple(each), np.array(list(each.values()))) for each in found)
        return one, other

    @property
    def _rng(self) -> np.random.Generator:
        """For dealing out labels anew."""
        return stream(self.evidence.seed, *labels.STREAM_MEMBERSHIP_STRATA)

    def _load(self, kept: Mapping[str, Mapping[str, int]]) -> Evidence:
        """The evidence with the answers about some corpora in memory."""
        roles = tuple(sorted(kept))
        if roles not in self._loaded:
            self._loaded[roles] = load_truncatable_evidence(self.evidence, roles)
        return self._loaded[roles]

    def _match(self, above: Side, below: Side, *, by: By) -> Matching:
        """Who is compared with whom."""
        units = [self._build_units(side, by=by) for side in (above, below)]
        truncate = can_truncate(self.signal, self.evidence)
        return match_units(units[0], units[1], seed=self.evidence.seed, truncate=truncate)

    def _build_units(self, side: Side, *, by: By) -> list[Unit]:
        """The amounts of the units of one side."""
        if side.role not in self._tokens:
            self._tokens[side.role] = count_truncatable_tokens(self.evidence, side.role)
        tokens, pieces = self._tokens[side.role], dict[str, list[Piece]]()
        owners = dict[str, str]()
        for record, user in zip(side.scores.records, side.scores.users, strict=True):
            unit = record if by == "record" else user
            piece = Piece(
                record=record, tokens=max(1, tokens.get(record, 1)), period=self.find_period(side.role, record)
            )
            pieces.setdefault(unit, []).append(piece)
            owners[unit] = user
        return [Unit(name=unit, pieces=tuple(each), owner=owners[unit]) for unit, each in pieces.items()]

    def score_stratum(
        self, matching: Matching, stratum: Stratum, draw: int, sides: tuple[Side, Side]
    ) -> tuple[Ints, Floats, Floats]:
        """The usable controls in a cut of a stratum, and the mean score of each unit of both sides in it.

        Kept, because units are tested by the same cuts as groups are; of many units only the first cut.
        """
        key = (id(matching), id(stratum), draw)
        if key in self._scored:
            return self._scored[key][1]
        cut = matching.cut(stratum, draw)
        found = (cut.usable, *self.score_cut(matching, cut, *sides))
        if draw == 0 or len(self._scored) * (len(matching.audited) + len(matching.controls)) < MAX_KEPT:
            self._scored[key] = (matching, found)  # with the matching, so that no other can have its id
        return found

    def score_cut(self, matching: Matching, cut: Cut, above: Side, below: Side) -> tuple[Floats, Floats]:
        """The mean score of each unit of both sides over what a cut keeps; 0 for who is not in it."""
        sides = ((matching.audited, cut.audited, above), (matching.controls, cut.controls, below))
        if all((kept[kept > 0] == amounts.tokens[kept > 0]).all() for amounts, kept, _ in sides):
            scored = [side.scores for _, _, side in sides]
        else:
            scored = self._score_prefixes(matching, cut, above, below)
        mine, others = (
            _average_kept_pieces(amounts, kept, scores)
            for (amounts, kept, _), scores in zip(sides, scored, strict=True)
        )
        return mine, others

    def _score_prefixes(self, matching: Matching, cut: Cut, above: Side, below: Side) -> list[Scores]:
        """The scores of the beginnings that a cut keeps."""
        kept = _list_kept_tokens(matching, cut, above, below)
        evidence = truncate_evidence(self._load(kept), kept)
        found = {role: compute_scores(self.signal, evidence, role) for role in kept}
        return [found[above.role], found[below.role]]


_WITHIN = "van Elteren's test of records within users"


def _divide_best(above: Floats, below: Floats) -> tuple[Floats, Floats]:
    """For the power of the comparison of two groups: the same scores, the highest of them on the one side."""
    ordered = np.sort(np.concatenate([above, below]))[::-1]
    return ordered[: len(above)], ordered[len(above) :]


def _find_smallest_group_p(above: Floats, below: Floats) -> float:
    """For the comparison of two groups: the smallest p-value that the rank test of their scores could have given."""
    counted = smallest_tied_rank_p(above, below)
    if counted >= FAR_BELOW:
        return counted
    return max(counted, min(FAR_BELOW, rank_sum_p(*_divide_best(above, below), "greater")))


def _find_smallest_stratified_p(strata: Sequence[tuple[Floats, Floats]]) -> float:
    """For the comparison of two groups in strata: the smallest p-value that their scores could have given.

    No smaller one than the test gives, whose null distribution is drawn, or normal where there are many users.
    """
    usable = [(above, below) for above, below in strata if len(above) and len(below)]
    counted = math.prod(smallest_tied_rank_p(above, below) for above, below in usable)
    if counted >= FAR_BELOW:
        return counted
    many = sum(len(above) + len(below) for above, below in usable) > EXACT_UNITS
    best = compute_normal_p([_divide_best(*each) for each in usable]) if many else 1 / (1 + DRAWS)
    return max(counted, min(FAR_BELOW, best))


def _list_kept_tokens(matching: Matching, cut: Cut, above: Side, below: Side) -> dict[str, dict[str, int]]:
    """How many tokens of each record a cut keeps for the comparison of candidates and controls, by role and id."""
    kept = dict[str, dict[str, int]]()
    for amounts, tokens, side in ((matching.audited, cut.audited, above), (matching.controls, cut.controls, below)):
        kept.setdefault(side.role, {}).update({amounts.pieces[i]: int(tokens[i]) for i in np.flatnonzero(tokens)})
    return kept


def _average_kept_pieces(amounts: Amounts, kept: Ints, scores: Scores) -> Floats:
    """The mean score of each unit over the pieces kept for comparison; the lowest for units of which nothing is."""
    places = np.array([scores.positions.get(amounts.pieces[i], -1) for i in np.flatnonzero(kept)], dtype=np.int64)
    chosen, values = np.flatnonzero(kept)[places >= 0], scores.values[places[places >= 0]]
    sums = np.bincount(amounts.unit_of[chosen], weights=values, minlength=len(amounts))
    counts = np.bincount(amounts.unit_of[chosen], minlength=len(amounts))
    # an empty prefix scores nothing: it counts as the lowest, and not as a zero in the midst of negative scores
    return np.asarray(np.where(counts > 0, sums / np.maximum(counts, 1), -np.inf))


def try_group_test(
    comparer: Comparer, above: Side, below: Side, within: Sequence[tuple[Floats, Floats]] = ()
) -> GroupTest | NotEnoughData:
    """The comparison of two groups by a test, or why there are too few."""
    try:
        return comparer.test_groups(above, below, within=within)
    except NotEnoughData as refusal:
        return refusal
