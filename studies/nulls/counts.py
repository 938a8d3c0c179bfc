"""What an audit said in the worlds of a cell, counted by target: small enough to be kept, and to be added to later."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from worlds import Said

import recollect
from recollect.digests import digest

BLAMED = ("not_comparable", "explained_by_texts", "placebo_failed")
"""Codes of a guard: too little data is nobody's fault."""
_RULES = ("audits/common", "signals", "stats")
"""The packages that decide what any audit says, beside its own and the modules of `audits`."""


@dataclass(frozen=True, kw_only=True)
class Counts:
    """In how many worlds of one target an audit said what."""

    worlds: int = 0
    found: int = 0
    named: int = 0
    low_p: int = 0
    p_told: int = 0
    """In so many worlds the p-value of one person is told at all."""
    inconclusive: int = 0
    """Refusals included."""
    guarded: int = 0
    """Inconclusive because of the guard, the blind baseline or the placebo."""
    contradictory: int = 0
    """Somebody is named, and the outcome is not that something was found."""
    codes: Mapping[str, int] = field(default_factory=dict)
    """Why it was inconclusive, or refused."""
    intervals: Mapping[str, Sequence[int]] = field(default_factory=dict)
    """By finding, how many intervals are told and how many of them hold the true value."""

    def __add__(self, other: Counts) -> Counts:
        """The counts of both."""
        names = [name for name, value in asdict(self).items() if isinstance(value, int)]
        told = sorted({*self.intervals, *other.intervals})
        both = [(self.intervals.get(name, (0, 0)), other.intervals.get(name, (0, 0))) for name in told]
        return Counts(
            **{name: getattr(self, name) + getattr(other, name) for name in names},
            codes={
                code: self.codes.get(code, 0) + other.codes.get(code, 0) for code in sorted({*self.codes, *other.codes})
            },
            intervals={name: [one[0] + two[0], one[1] + two[1]] for name, (one, two) in zip(told, both, strict=True)},
        )


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """The worlds of one cell in one set: those with the numbers 0 to `worlds` − 1."""

    worlds: int
    rules: Mapping[str, int]
    """How many of them were drawn by which version of the audits, by digest."""
    targets: Mapping[str, Counts]

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Drawn:
        """As it was kept."""
        return cls(**{**document, "targets": {name: Counts(**each) for name, each in document["targets"].items()}})


def count_worlds(said: Sequence[Said]) -> Drawn:
    """The counts of some worlds of one cell in one set."""
    targets, rules = dict[str, Counts](), dict[str, int]()
    for each in said:
        target = str(each.target)
        targets[target] = targets.get(target, Counts()) + _count_world(each)
        rules[each.rules] = rules.get(each.rules, 0) + 1
    return Drawn(worlds=len(said), rules=rules, targets=dict(sorted(targets.items())))


def add_worlds(kept: Drawn | None, said: Sequence[Said]) -> Drawn | None:
    """Worlds that were kept, and those drawn since; worlds drawn from the first one on replace what was kept.

    Args:
        kept: Those that were counted before, if any.
        said: What the audit said, in ascending order of worlds.
    """
    if kept is None or (said and said[0].number == 0):
        return count_worlds(said) if said else None
    new = count_worlds([each for each in said if each.number >= kept.worlds])
    names = sorted({*kept.targets, *new.targets})
    return Drawn(
        worlds=kept.worlds + new.worlds,
        rules={name: kept.rules.get(name, 0) + new.rules.get(name, 0) for name in sorted({*kept.rules, *new.rules})},
        targets={name: kept.targets.get(name, Counts()) + new.targets.get(name, Counts()) for name in names},
    )


def _count_world(said: Said) -> Counts:
    """One world, counted."""
    return Counts(
        worlds=1,
        found=int(said.outcome == "found"),
        named=int(said.named),
        low_p=int(bool(said.low_p)),
        p_told=int(said.low_p is not None),
        inconclusive=int(said.outcome in ("inconclusive", "refused")),
        guarded=int(said.outcome == "inconclusive" and said.code in BLAMED),
        contradictory=int(said.named and said.outcome != "found"),
        codes={said.code: 1} if said.code else {},
        intervals={name: [1, int(held)] for name, held in (said.intervals or {}).items()},
    )


@lru_cache(maxsize=8)
def digest_rules(audit: str, root: Path = Path(recollect.__file__).parent) -> str:
    """The version of an audit: the digest of all code that decides what it says, whatever its comments and docs.

    Args:
        audit: The name of the audit.
        root: The folder of the package.
    """
    packages = (*_RULES, f"audits/{audit}")
    files = sorted(file for package in packages for file in (root / package).rglob("*.py"))
    files += sorted((root / "audits").glob("*.py"))
    return digest([_strip_docstrings(file.read_text(encoding="utf-8")) for file in files])[:8]


def _strip_docstrings(source: str) -> str:
    """A module's code without comments and strings that stand alone."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [each for each in body if not _is_string(each)]  # type: ignore[attr-defined]
    return ast.dump(tree)


def _is_string(node: ast.AST) -> bool:
    """Whether a statement is a string alone."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
