"""Members: which users or records are known to be in the training set, and which are known not to be."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from recollect import labels
from recollect.checks import check_one_of, suggest_name
from recollect.corpora.cohorts import Cohorts, Unit
from recollect.corpora.corpus import Corpus
from recollect.corpora.readers.corpus_shards import build_unreadable_error
from recollect.corpora.readers.faults import FaultError, describe_type, quote_excerpt
from recollect.corpora.readers.memory import to_plain
from recollect.corpora.readers.row_parser import parse_key
from recollect.corpora.record import Record
from recollect.digests import digest
from recollect.errors import CorpusError

Others = Literal["unknown", "non-members"]
COLUMN = "column:"
_TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False, "": None}
_ACCEPTED = f"Give a list of ids, a text file with one id per line, {COLUMN}NAME, or a cohorts.json."


@dataclass(frozen=True, kw_only=True)
class Members:
    """Who is known to be in the training set and who is known not to be; of all others it is unknown.

    >>> users = ["ann", "bob", "ann", "cid"]
    >>> corpus = Corpus.of(Record(id=str(i), user=user, text="x") for i, user in enumerate(users))
    >>> known = read_members(["ann"], corpus, non_members=["cid"])
    >>> known.truth_by_user(corpus), known.truth_by_record(corpus)
    ({'ann': True, 'cid': False}, {'0': True, '2': True, '3': False})
    """

    unit: Unit
    """Whether users or records are known."""
    members: frozenset[str]
    """Those in the training set."""
    non_members: frozenset[str] = frozenset()
    """Those not in it."""

    def __post_init__(self) -> None:
        check_one_of(("user", "record"), unit=self.unit)
        both = sorted(self.members & self.non_members)
        if both:
            raise CorpusError(
                f"The {self.unit} {quote_excerpt(both[0])} is given as a member and as a non-member"
                + (f", and so are {len(both) - 1:,} more." if len(both) > 1 else "."),
                do="Take it out of one of the two.",
                code="member_and_non_member",
            )

    @cached_property
    def digest(self) -> str:
        """The address of who is known: the same for the same units, however they were given."""
        return digest(self.unit, sorted(self.members), sorted(self.non_members))

    def is_member(self, record: Record) -> bool | None:
        """Whether a record is in the training set; None if that is unknown."""
        name = record.owner if self.unit == "user" else record.id
        return True if name in self.members else False if name in self.non_members else None

    def truth_by_record(self, corpus: Corpus) -> dict[str, bool]:
        """Whether each record is in the training set, by id; records of which it is unknown are left out."""
        found = ((record.id, self.is_member(record)) for record in corpus)
        return {name: truth for name, truth in found if truth is not None}

    def truth_by_user(self, corpus: Corpus, dropped: Counter[str] | None = None) -> dict[str, bool]:
        """Whether each user (without users: each record) is in the training set, with all of their records.

        Users of whom nothing is known are left out, and so are users whose records differ: of whom only some are
        members, or only some are known.

        Args:
            corpus: The corpus.
            dropped: Where users whose records differ are counted, as `partial_users`.
        """
        truth, differ = _group_truth_by_owner((record, self.is_member(record)) for record in corpus)
        if dropped is not None and differ:
            dropped["partial_users"] += len(differ)
        return {user: value for user, value in truth.items() if value is not None and user not in differ}

    def to_records(self, corpus: Corpus) -> Members:
        """The same knowledge about the records of a corpus one by one."""
        truth = self.truth_by_record(corpus)
        members = frozenset(name for name, value in truth.items() if value)
        return Members(unit="record", members=members, non_members=frozenset(truth) - members)


MembersSource = str | Path | Iterable[Any] | Cohorts | Members
"""How members or non-members may be given."""


def read_members(
    members: MembersSource | None,
    corpus: Corpus,
    *,
    non_members: MembersSource | None = None,
    others: Others = "unknown",
    model: str = labels.ROLE_TARGET,
) -> Members:
    """Who is known to be in the training set, checked against the corpus.

    Ids are users' where the corpus has users, else records'. Those not listed are unknown. Forms:

    - a list, set or tuple of ids;
    - a text file with one id per line (`users.txt`);
    - `column:NAME`, a column of the corpus with true, false (1 and 0, yes and no) or null for unknown, by user where
      all records of each user agree, else by record. As members its false values are non-members;
    - a saved `cohorts.json`, or `Cohorts`, in which everybody who is not a member is a non-member.

    Args:
        members: Those in the training set; None if only non-members are known.
        corpus: The corpus whose users or records they are.
        non_members: Those not in it, in the same forms, but for cohorts, which contain both.
        others: Whether everybody who is not listed is unknown or a non-member.
        model: Whose training set: the name of the model in the cohorts.

    Raises:
        CorpusError: An id does not occur in the corpus or is in both lists, or a list is empty.
    """
    check_one_of(("unknown", "non-members"), others=others)
    inside = None if members is None else _read_known(members, corpus, model, "members")
    outside = None if non_members is None else _read_non_members(non_members, corpus, model)
    known = _join_members(inside, outside, corpus)
    if others == "non-members":
        rest = {record.owner if known.unit == "user" else record.id for record in corpus}
        known = replace(known, non_members=frozenset(rest - known.members))
    return known


def _read_non_members(given: MembersSource, corpus: Corpus, model: str) -> Members:
    """Those who are listed as non-members; what a column says of everybody else is no part of it."""
    if isinstance(given, Cohorts | Members) or _is_cohorts_file(given):
        raise CorpusError(
            "Non-members were given in a form that contains members and non-members at once.",
            do="Give it as the members: everybody else in it is a non-member.",
            code="needless_non_members",
        )
    listed = _read_known(given, corpus, model, "non-members")
    return Members(unit=listed.unit, members=frozenset(), non_members=listed.members)


def _join_members(inside: Members | None, outside: Members | None, corpus: Corpus) -> Members:
    """Known members and known non-members as one; by record as soon as one of them is."""
    if inside is None or outside is None:
        known = inside or outside
        if known is None:
            raise CorpusError("Neither members nor non-members are given.", do=_ACCEPTED, code="empty_members")
        return known
    if inside.unit != outside.unit:
        inside, outside = inside.to_records(corpus), outside.to_records(corpus)
    return replace(inside, non_members=inside.non_members | outside.non_members)


def _read_known(given: MembersSource, corpus: Corpus, model: str, what: str) -> Members:
    """What one list, file, column or cohorts says of members; it must name somebody."""
    if isinstance(given, str) and given.startswith(COLUMN):
        found = _read_members_column(given.removeprefix(COLUMN), corpus)
    elif isinstance(given, Cohorts) or _is_cohorts_file(given):
        found = _read_cohorts_members(
            given if isinstance(given, Cohorts) else Cohorts.load(Path(str(given))), corpus, model
        )
    elif isinstance(given, Members):
        found = given
        _refuse_unknown_members(found.members | found.non_members, found.unit, corpus)
    else:
        unit: Unit = "user" if corpus.summary.users else "record"
        found = Members(unit=unit, members=collect_member_ids(given))
        _refuse_unknown_members(found.members, unit, corpus)
    if not found.members:
        code = "empty_members" if what == "members" else "empty_non_members"
        raise CorpusError(f"What was given names no {what}.", do=_ACCEPTED, code=code)
    return found


def _is_cohorts_file(given: MembersSource) -> bool:
    """Whether the members are given as a saved cohorts.json."""
    return isinstance(given, str | Path) and str(given).endswith(".json")


def _read_cohorts_members(cohorts: Cohorts, corpus: Corpus, model: str) -> Members:
    """The members and non-members that cohorts define for this model, all units."""
    cohorts.check_corpus(corpus)
    members, others = frozenset(cohorts.members(model)), frozenset(cohorts.non_members(model))
    return Members(unit=cohorts.unit, members=members, non_members=others)


def _read_members_column(name: str, corpus: Corpus) -> Members:
    """What a column says of members: by user where all records of each user agree, else by record."""
    by_record: dict[str, bool | None] = {}

    def read() -> Iterator[tuple[Record, bool | None]]:
        for record in corpus.with_column(name):
            by_record[record.id] = _parse_membership(record, name, corpus)
            yield record, by_record[record.id]

    by_user, differ = _group_truth_by_owner(read())
    unit: Unit = "user" if corpus.summary.users and not differ else "record"
    truth = (by_user if unit == "user" else by_record).items()
    members = frozenset(name for name, value in truth if value)
    return Members(unit=unit, members=members, non_members=frozenset(name for name, value in truth if value is False))


def _group_truth_by_owner(found: Iterable[tuple[Record, bool | None]]) -> tuple[dict[str, bool | None], set[str]]:
    """Whether the first record of each owner is a member, and the owners of whom another record differs."""
    first: dict[str, bool | None] = {}
    differ = {record.owner for record, value in found if first.setdefault(record.owner, value) is not value}
    return first, differ


def _parse_membership(record: Record, column: str, corpus: Corpus) -> bool | None:
    """Whether the column calls a record a member; None for unknown."""
    value = record.extra
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    if isinstance(value, str) and value.strip().casefold() in _TRUTH:
        return _TRUTH[value.strip().casefold()]
    raise CorpusError(
        f"The column {column!r} of record {quote_excerpt(record.id)} in {corpus.name} is {describe_type(value)} "
        "that is neither true nor false.",
        do="Write true or false (1 or 0, yes or no), and nothing where it is unknown.",
        code="not_a_boolean",
    )


def collect_member_ids(given: MembersSource) -> frozenset[str]:
    """The ids of members in a list or in a file with one per line; numbers become their digits, as in a corpus.

    Raises:
        CorpusError: There are no ids in it.
    """
    if isinstance(given, str | Path):
        return _read_member_ids(Path(given))
    if not isinstance(given, Iterable) or isinstance(given, Mapping | bytes):
        kind = type(given).__name__
        raise CorpusError(f"Members cannot be read from a {kind}.", do=_ACCEPTED, code="unsupported_source")
    try:
        return frozenset(parse_key(to_plain(value), "id", "no_id") for value in given)
    except FaultError as error:
        found, code = error.fault.found.removeprefix("'id' "), error.fault.reason
        raise CorpusError(f"An id of those given {found}", do="Give ids as strings or numbers.", code=code) from error


def _read_member_ids(path: Path) -> frozenset[str]:
    """The ids of members in a text file: its lines that are not blank."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except FileNotFoundError as error:
        raise CorpusError(f"There is no file {path}.", do=_ACCEPTED, code="missing_file") from error
    except OSError as error:
        raise build_unreadable_error(path, error) from error
    except UnicodeDecodeError as error:
        raise CorpusError(f"{path} is not UTF-8.", do="Convert it to UTF-8.", code="not_utf8") from error
    return frozenset(line.strip() for line in lines if line.strip())


def _refuse_unknown_members(ids: frozenset[str], unit: Unit, corpus: Corpus) -> None:
    """Refuse ids of members that do not occur in the corpus."""
    present = {record.owner if unit == "user" else record.id for record in corpus}
    unknown = sorted(ids - present)
    if not unknown:
        return
    name, do = unknown[0], suggest_name(unknown[0], present)
    if unit == "user" and any(record.id == name for record in corpus):
        do += "There is a record of that id, but ids are users' where the corpus has users. "
    if unit == "record" and all(record.user is None for record in corpus):
        do += "No user is known in this corpus: if these are users, name their column (--user-column, user_column=). "
    raise CorpusError(
        f"There is no {unit} {quote_excerpt(name)} in {corpus.name}"
        + (f", nor are there {len(unknown) - 1:,} others of those given." if len(unknown) > 1 else "."),
        do=f"{do}Give {unit}s of this corpus.",
        code="unknown_member",
    )
