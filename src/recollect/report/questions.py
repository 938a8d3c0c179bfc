"""The five questions, and the light that each answer gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from typing import Final

from recollect.audits.registry import VIEWS
from recollect.results.presentation import GENERIC, Presentation
from recollect.results.result import Result

FIVE: Final = ("provenance", "exposure", "leakage", "membership", "removal")
"""The audits that answer the five questions, in the order of every report."""


@cache
def get_five_questions() -> Mapping[str, str]:
    """The five questions, by the audit that answers each."""
    return {name: str(import_module(VIEWS[name].partition(":")[0]).QUESTION) for name in FIVE}


@dataclass(frozen=True, kw_only=True)
class Light:
    """An answer at a glance: a colour, and the same in words."""

    colour: str
    words: str


LIGHTS: Final = {
    "found": Light(colour="red", words="Found"),
    "not_found": Light(colour="green", words="Not found"),
    "inconclusive": Light(colour="amber", words="Inconclusive"),
}
SEVERITIES: Final = {
    "high": Light(colour="red", words="High"),
    "medium": Light(colour="amber", words="Medium"),
    "low": Light(colour="amber", words="Low"),
    "none": Light(colour="green", words="None"),
}
"""How grave an answer is."""
NOT_DONE: Final = Light(colour="grey", words="Not done")
NOT_TESTED: Final = Light(colour="grey", words="Not tested")
NOT_EXAMINED: Final = "This run did not examine it."
"""What a report says of a question without an answer."""


def choose_light(result: Result, presentation: Presentation = GENERIC) -> Light:
    """The light of the answer to a question; what failed or was skipped as a whole is no answer."""
    undone = bool(result.failed) or any(skipped.finding is None for skipped in result.skipped)
    if undone and not result.findings:
        return NOT_DONE
    light = LIGHTS[result.outcome]
    return replace(light, words=presentation.outcome_words.get(result.outcome, light.words))
