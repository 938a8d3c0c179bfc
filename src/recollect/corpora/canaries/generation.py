"""Drawing secrets: those that will be planted, and those that are held back as controls."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from recollect import labels
from recollect.checks import check_at_least, check_one_of
from recollect.corpora.canaries.automaton import FormatAutomaton
from recollect.corpora.canaries.formats import Format, parse_format
from recollect.corpora.canaries.manifest import Canary
from recollect.corpora.canaries.matcher import Matcher
from recollect.corpora.corpus import Corpus
from recollect.errors import NotEnoughData, PlanError
from recollect.streams import stream


@dataclass(frozen=True, kw_only=True)
class CanarySettings:
    """What is planted, and how."""

    format: str
    """The format of the secrets; for pairs, of the target."""
    source_format: str | None = None
    """For pairs: the format of the source. Its slots are filled like the target's."""
    user_turn: str = "Is there anything else I should know?"
    """For conversations: what the user says, to which the assistant replies with the secret."""
    secrets: int = 10
    """How many secrets for each number of repetitions."""
    repeat: tuple[int, ...] = (1,)
    """How many times each secret is planted."""
    controls: int = 100
    """How many secrets are drawn and never planted."""
    inside: bool = False
    """Put the secret between the words of an existing record; else it is a record of its own."""
    unique_prefix: int = 0
    """Number of random letters before each secret, different for each (section 6.5 of the paper)."""
    users: Literal["new", "existing"] = "new"
    """Whose records they become, if they are records of their own; each new user owns one secret."""
    name: str = "canary"
    """What ids of secrets and of planted records begin with; another one for each planting into the same corpus."""
    seed: int = 0

    def __post_init__(self) -> None:
        check_at_least(1, secrets=self.secrets, repeat=min(self.repeat, default=0))
        check_at_least(0, controls=self.controls, unique_prefix=self.unique_prefix)
        check_one_of(("new", "existing"), users=self.users)
        if not self.name.strip():
            raise PlanError(
                "The name of the canaries is empty.", do="Name them, such as 'canary'.", code="unnamed_canaries"
            )

    @cached_property
    def parsed_format(self) -> Format:
        """The format of the secrets."""
        return parse_format(self.format)


def draw_canaries(settings: CanarySettings, corpus: Corpus) -> list[Canary]:
    """Generate all canaries and controls, no two with the same filling, and none that is in the corpus already.

    A control that happens to occur would be no control, and a secret would occur more often than its manifest says.
    """
    repeats = [*np.repeat(settings.repeat, settings.secrets).tolist(), *[0] * settings.controls]
    texts = _draw_canary_texts(settings, corpus, len(repeats))
    turn = settings.user_turn if corpus.summary.kind == "conversation" else None
    prefixes = _draw_canary_prefixes(settings, len(repeats))
    return [
        _build_canary(settings, number, prefix, text, repeat).model_copy(update={"user_turn": turn})
        for number, (prefix, text, repeat) in enumerate(zip(prefixes, texts, repeats, strict=True))
    ]


def _draw_canary_texts(settings: CanarySettings, corpus: Corpus, count: int) -> Collection[str]:
    """Generate so many different fillings of the canaries' format that the corpus does not hold."""
    space, rng = settings.parsed_format, stream(settings.seed, *labels.STREAM_CANARY_SECRETS)
    texts, occurring = dict[str, None](), set[str]()
    while len(texts) < count:
        if space.size - len(occurring) < count:
            raise NotEnoughData(
                f"The format {settings.format!r} has {space.size} fillings, {len(occurring)} of those drawn already "
                f"occur in the corpus, and {count} were requested.",
                do="Use a format with a larger space, or fewer secrets and controls.",
                code="format_too_small",
            )
        while len(texts) < count:
            text = space.draw(rng)
            if text not in occurring:
                texts.setdefault(text)
        occurring_now = _find_fillings_to_avoid(corpus, space, texts)
        occurring |= occurring_now
        texts = {text: None for text in texts if text not in occurring_now}
    return texts


def _find_fillings_to_avoid(corpus: Corpus, space: Format, texts: Collection[str]) -> set[str]:
    """Which generated fillings already occur in the corpus."""
    matcher = Matcher(space)
    return {
        match.text
        for record in corpus
        for match in matcher.find_matches(record.scored_text, overlapping=True)
        if match.text in texts
    }


def _draw_canary_prefixes(settings: CanarySettings, count: int) -> Collection[str]:
    """Generate what precedes each canary: nothing, or letters that no other has."""
    length = settings.unique_prefix
    if not length:
        return [""] * count
    if 26**length < count:
        raise NotEnoughData(
            f"There are {26**length} prefixes of {length} letters, and {count} secrets and controls need one each.",
            do="Request longer prefixes.",
            code="too_few_prefixes",
        )
    rng, prefixes = stream(settings.seed, *labels.STREAM_CANARY_PREFIXES), dict[str, None]()
    while len(prefixes) < count:
        prefixes.setdefault("".join(chr(97 + letter) for letter in rng.integers(0, 26, length).tolist()) + " ")
    return prefixes


def _build_canary(settings: CanarySettings, number: int, prefix: str, text: str, repeat: int) -> Canary:
    """One generated canary, with its own prefix if requested."""
    canary = Canary(
        id=f"{settings.name}-{number}" if repeat else f"control-{number}",
        format=prefix + settings.format,
        text=prefix + text,
        planted=repeat,
    )
    if settings.source_format is None:
        return canary
    source = fill_format(settings.source_format, FormatAutomaton(settings.parsed_format).parse_values(text) or ())
    return canary.model_copy(update={"source": prefix + source, "source_format": prefix + settings.source_format})


def fill_format(format: str, values: Sequence[str]) -> str:
    """The format with its slots filled with these values, in order: the source that goes with a target.

    >>> fill_format("my code is {digits:2}!", ["42"])
    'my code is 42!'

    Raises:
        PlanError: The format has other slots.
    """
    parsed, remaining, seen = parse_format(format), list(values), set[int]()
    if parsed.slots != len(remaining):
        raise PlanError(
            f"The source format {format!r} has {parsed.slots} slots.",
            do=f"Give it {len(remaining)}.",
            code="different_slots",
        )
    text = ""
    for unit in parsed.units:
        if unit.slot is None:
            text += unit.alternatives[0]
        elif unit.slot not in seen:
            seen.add(unit.slot)
            text += remaining[unit.slot]
    if FormatAutomaton(parsed).parse_values(text) is None:
        raise PlanError(
            f"The source format {format!r} cannot be filled like the target's.",
            do="Use the same slots.",
            code="different_slots",
        )
    return text
