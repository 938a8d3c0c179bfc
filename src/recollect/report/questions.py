"""The five questions, and the light that each answer gets."""

from __future__ import annotations

from dataclasses import dataclass, replace

from recollect.results.result import Result

QUESTIONS = {
    "provenance": "Were this person’s texts used to train this model?",
    "exposure": "Does the model memorise secrets of a known format, and can they be drawn out?",
    "leakage": "Which sequences of which user come out of the model when it is prompted with their context?",
    "membership": "Was this record, or this person’s set of records, in the training data?",
    "removal": "Has this data set really been removed from the model?",
}
"""By the audit that answers it."""
PARTS = {"extraction": "exposure"}
"""Audits that help to answer the question of another."""


@dataclass(frozen=True, kw_only=True)
class Light:
    """An answer at a glance: a colour, and the same in words."""

    colour: str
    words: str


LIGHTS = {
    "found": Light(colour="red", words="Found"),
    "not_found": Light(colour="green", words="Not found"),
    "inconclusive": Light(colour="amber", words="Inconclusive"),
}
OWN_WORDS = {("removal", "found"): "Not gone", ("removal", "not_found"): "No sign of it"}
"""Where “found” would be no answer to the question."""
NOT_DONE = Light(colour="grey", words="Not done")
NOT_ASKED = Light(colour="grey", words="Not asked")


def light_of(result: Result) -> Light:
    """The light of a result; what failed or was skipped as a whole is no answer, whatever its outcome says."""
    undone = bool(result.failed) or any(skipped.finding is None for skipped in result.skipped)
    if undone and not result.findings:
        return NOT_DONE
    light = LIGHTS[result.outcome]
    return replace(light, words=OWN_WORDS.get((result.audit, result.outcome), light.words))
