"""The secrets of an audit: planted ones from a manifest, ones that the user gives, ones found in a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from recollect.corpora.canaries.automaton import FormatAutomaton
from recollect.corpora.canaries.formats import Format, parse_format
from recollect.corpora.canaries.manifest import Canaries
from recollect.corpora.canaries.matcher import Matcher
from recollect.corpora.corpus import Corpus
from recollect.errors import NotEnoughData, PlanError

SecretKind = tuple[str, str | None]
"""What secrets share that are compared with the same draws: their format, and the source or user turn before it."""


@dataclass(frozen=True, kw_only=True)
class Secret:
    """A filled-in format whose exposure is measured."""

    id: str
    parsed: Format = field(repr=False)
    """Its format, with all known text before the secret: two secrets of one format follow the same text. Secrets of
    one format share it: there may be many."""
    text: str
    """The format filled in."""
    planted: int | None
    """How often it was in the training data; 0 for a control, None if that is not known."""
    source: str | None = None
    """For pairs: the source text."""
    source_format: str | None = None
    user_turn: str | None = None
    """For conversations: what the user says before the assistant says the secret."""

    @property
    def format(self) -> str:
        """Its format as it is written."""
        return self.parsed.pattern

    @property
    def is_control(self) -> bool:
        """Whether it was certainly never planted."""
        return self.planted == 0

    @property
    def kind(self) -> SecretKind:
        """The key that it shares with all secrets that are compared with the same draws."""
        before = self.source if self.user_turn is None else self.user_turn
        return self.format, before if self.source_format is None else self.source_format


def read_planted(manifest: Path) -> list[Secret]:
    """The secrets of a manifest: canaries and their controls.

    Raises:
        NotEnoughData: All are controls.
        PlanError: One is not of its format.
    """
    canaries = Canaries.load(manifest).canaries
    if not any(canary.planted for canary in canaries):
        raise NotEnoughData(
            f"{manifest} names no planted secret, only {len(canaries)} controls.",
            do="Give the .canaries.json of a corpus into which secrets were planted.",
            code="no_planted_secrets",
        )
    parsed = {pattern: parse_format(pattern) for pattern in {canary.format for canary in canaries}}
    automata = {pattern: FormatAutomaton(format) for pattern, format in parsed.items()}
    for canary in canaries:
        if automata[canary.format].parse_values(canary.text) is None:
            raise PlanError(
                f"The secret {canary.id!r} of the manifest is not of its format {canary.format!r}.",
                do="Give the .canaries.json as `recollect plant` wrote it.",
                code="secret_not_of_format",
            )
    return [
        Secret(
            id=canary.id,
            parsed=parsed[canary.format],
            text=canary.text,
            planted=canary.planted,
            source=canary.source,
            source_format=canary.source_format,
            user_turn=canary.user_turn,
        )
        for canary in canaries
    ]


def parse_given(format: str, secrets: Sequence[str]) -> list[Secret]:
    """Secrets that the user gives: whole texts of the format, or what its one slot is filled with.

    Raises:
        PlanError: One is not of the format.
    """
    parsed = parse_format(format)
    return [
        Secret(id=f"secret-{i}", parsed=parsed, text=_fill_in_secret(parsed, secret), planted=None)
        for i, secret in enumerate(secrets)
    ]


def find_secrets(format: str, corpus: Corpus, *, context: int, most: int) -> tuple[list[Secret], int]:
    """Secrets that occur in a corpus, in the order found, each where it occurs for the first time.

    Args:
        format: What to look for.
        corpus: Where.
        context: How many characters before each are assumed to be known.
        most: How many different ones are kept.

    Returns:
        The secrets, and how many different ones there are.

    Raises:
        NotEnoughData: There is none.
    """
    matcher = Matcher(parse_format(format))
    times, first = dict[str, int](), dict[str, str]()
    for record in corpus:
        for found in matcher.find_matches(record.scored_text):
            times[found.text] = times.get(found.text, 0) + 1
            before = record.scored_text[max(0, found.start - context) : found.start]
            first.setdefault(found.text, before)
    if not times:
        raise NotEnoughData(
            f"Nothing of the format {format!r} occurs in {corpus.name}.",
            do="Check the format: {digits:3} is 3 digits.",
            code="no_secret_in_corpus",
        )
    kept = list(times)[:most]
    return [
        Secret(
            id=f"found-{i}",
            parsed=parse_format(_escape_secret(first[text]) + format),
            text=first[text] + text,
            planted=times[text],
        )
        for i, text in enumerate(kept)
    ], len(times)


def merge_repeated_secrets(secrets: Iterable[Secret]) -> list[Secret]:
    """Every secret once, planted as often as all its entries together; so none that was planted is a control.

    Copies of one secret have one rank: each would count as further evidence of it.
    """
    merged = dict[tuple[str, str | None, str | None], Secret]()
    for secret in secrets:
        key = secret.text, secret.source, secret.user_turn
        known = merged.setdefault(key, secret)
        if known is not secret and known.planted is not None and secret.planted is not None:
            first = secret if known.is_control else known
            merged[key] = replace(first, planted=known.planted + secret.planted)
    return list(merged.values())


def pick_examples(secrets: Iterable[Secret]) -> list[Secret]:
    """One secret of each kind (format and source), in order."""
    return list({secret.kind: secret for secret in reversed(list(secrets))}.values())[::-1]


def _escape_secret(text: str) -> str:
    """The text of a secret as a format writes it."""
    return text.replace("{", "{{").replace("}", "}}")


def _fill_in_secret(format: Format, secret: str) -> str:
    """The whole text of a secret that the user gives: the format, filled in with it."""
    automaton = FormatAutomaton(format)
    if automaton.parse_values(secret) is not None:
        return secret
    if format.slots == 1:
        ends = [i for i, unit in enumerate(format.units) if unit.slot is not None]
        after = "".join(unit.alternatives[0] for unit in format.units[ends[-1] + 1 :])
        if automaton.parse_values(filled := format.known_prefix + secret + after) is not None:
            return filled
    raise PlanError(
        f"A secret that was given is not of the format {format.pattern!r}.",
        do="Write the whole text with the secret filled in; for a format with one slot, what fills it will do.",
        code="secret_not_of_format",
    )
