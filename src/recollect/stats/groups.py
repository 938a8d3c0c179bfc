"""Numbers and the users who own them: what every statistic here takes.

Records of one user are not independent, so every interval and test here counts users. A plain array means that each
number has an owner of its own.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recollect.errors import NotEnoughData
from recollect.stats.requirements import require_count

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


@runtime_checkable
class HasOwners(Protocol):
    """Anything that holds one number per record and says whose record it is, such as `Scores`."""

    @property
    def values(self) -> NDArray[Any]:
        """One number per record."""

    @property
    def users(self) -> Sequence[Hashable] | NDArray[Any]:
        """The owner of each record, in the same order."""


@dataclass(frozen=True, eq=False)
class OwnedValues:
    """Numbers with their owners.

    >>> OwnedValues(np.array([0.5, 0.7, 0.1]), ["ann", "ann", "bob"]).users
    ['ann', 'ann', 'bob']
    """

    values: NDArray[Any]
    users: Sequence[Hashable] | NDArray[Any]


ValuesLike = HasOwners | ArrayLike
"""What the functions here take: numbers with owners, or plain numbers that each have an owner of their own."""


@dataclass(frozen=True, eq=False)
class Group:
    """Numbers whose owners are small integers, counted over all sides that are compared."""

    values: Floats
    users: Codes
    """Who owns each value: 0 … population − 1."""
    population: int
    """How many users there are on all sides together; those of this side may be fewer."""

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def sizes(self) -> Floats:
        """How many values each user of the population has on this side [population]."""
        return self.per_user(np.ones(len(self)))

    @property
    def user_count(self) -> int:
        """How many users have a value on this side."""
        return int(np.count_nonzero(self.sizes))

    @property
    def is_clustered(self) -> bool:
        """Whether some user has more than one value here."""
        return self.user_count < len(self)

    def per_user(self, values: NDArray[Any]) -> Floats:
        """The sum of `values`, one per record of this side, over each user's records [population]."""
        sums: Floats = np.bincount(self.users, weights=values, minlength=self.population).astype(np.float64)
        return sums


def make_group(given: ValuesLike, *, name: str = "values") -> Group:
    """One group of numbers, checked.

    >>> make_group(OwnedValues(np.array([1, 2, 3]), ["ann", "bob", "ann"])).per_user(np.ones(3)).tolist()
    [2.0, 1.0]
    """
    return _encode_groups({name: given})[0]


def make_groups(members: ValuesLike, non_members: ValuesLike) -> tuple[Group, Group]:
    """Two groups of numbers, checked; a user who is on both sides is recognised as one user.

    >>> a, b = make_groups(OwnedValues(np.array([1, 2]), ["ann", "bob"]), OwnedValues(np.array([3]), ["ann"]))
    >>> a.population, a.user_count, b.user_count
    (2, 2, 1)
    """
    first, second = _encode_groups({"members": members, "others": non_members})
    return first, second


def require_one_value_per_user(
    members: ValuesLike, non_members: ValuesLike, *, test: str, least: int = 2
) -> tuple[Group, Group]:
    """Both groups, if every user has one value; for tests that know nothing of users with several.

    >>> len(require_one_value_per_user([1, 2], [3, 4], test="Mann–Whitney")[0])
    2
    """
    a, b = make_groups(members, non_members)
    require_count(len(a), least, of="members", purpose=test, code="too_few_members")
    require_count(len(b), least, of="non-members", purpose=test, code="too_few_non_members")
    if a.population < len(a) + len(b):
        raise NotEnoughData(
            f"{test} needs one value per user; {a.population} users have {len(a) + len(b)} values.",
            do="Average each user's values first, or use a test that keeps users together.",
            code="several_values_per_user",
        )
    return a, b


def require_users(members: Group, non_members: Group, *, purpose: str) -> None:
    """Refuse groups of fewer than two users each: one user shows no scatter."""
    require_count(members.user_count, 2, of="users who are members", purpose=purpose, code="too_few_members")
    require_count(
        non_members.user_count, 2, of="users who are not members", purpose=purpose, code="too_few_non_members"
    )


def require_finite(group: Group, *, purpose: str) -> Group:
    """The group, refused if a value is infinite: ranks can live with that, sums cannot.

    >>> len(require_finite(make_group([1.0, 2.0]), purpose="A mean"))
    2
    """
    infinite = int(np.isinf(group.values).sum())
    if infinite:
        raise NotEnoughData(
            f"{purpose} needs finite values; {infinite} of {len(group)} are infinite.",
            do="Compare ranks (AUC) instead, or leave those records out and count them.",
            code="infinite_values",
        )
    return group


def count_groups(members: Group, non_members: Group) -> dict[str, int]:
    """What a comparison of members with others counted.

    >>> count_groups(*make_groups([1, 2], [3]))
    {'members': 2, 'others': 1, 'member_users': 2, 'other_users': 1}
    """
    return {
        "members": len(members),
        "others": len(non_members),
        "member_users": members.user_count,
        "other_users": non_members.user_count,
    }


def _encode_groups(given: dict[str, ValuesLike]) -> list[Group]:
    """Sides with owners coded over all of them."""
    codes: dict[Hashable, int] = {}
    population, coded = 0, []
    for name, numbers in given.items():
        # most are arrays, and to ask whether one has all attributes of a protocol takes longer than the rest
        if not isinstance(numbers, np.ndarray) and isinstance(numbers, HasOwners):
            values = _check_group_values(numbers.values, name)
            users = _encode_group_users(numbers.users, codes, population - len(codes))
            if len(users) != len(values):
                raise ValueError(f"{len(values)} {name} but {len(users)} owners")
        else:
            values = _check_group_values(numbers, name)
            users = np.arange(population, population + len(values))
        population = max(population, int(users.max(initial=-1)) + 1)
        coded.append((values, users))
    return [Group(values, users, population) for values, users in coded]


def _check_group_values(given: Any, name: str) -> Floats:
    """The values as a vector of floats without gaps."""
    values = np.asarray(given, dtype=np.float64).ravel()
    missing = int(np.isnan(values).sum())
    if missing:
        raise NotEnoughData(
            f"The values of {missing:,} of {len(values):,} {name} are not numbers (NaN), first that of number "
            f"{1 + int(np.argmax(np.isnan(values))):,}.",
            do="Leave such values out, and say how many there were.",
            code="missing_values",
        )
    return values


def _encode_group_users(users: Sequence[Hashable] | NDArray[Any], codes: dict[Hashable, int], unnamed: int) -> Codes:
    """The owners as integers; `codes` grows by those not yet seen, after so many who have no name."""
    named: Sequence[Hashable] = users.tolist() if isinstance(users, np.ndarray) else users
    numbers = (codes.setdefault(user, unnamed + len(codes)) for user in named)
    return np.fromiter(numbers, dtype=np.int64, count=len(named))
