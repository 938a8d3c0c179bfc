"""The verdict: one sentence for a lawyer."""

from __future__ import annotations

import numpy as np

from recollect.audits.provenance.judging import Decisions
from recollect.results.result import Outcome
from recollect.stats.support import controls_for_p


def verdict(found: Decisions, *, alpha: float, least: int) -> tuple[str, Outcome, str | None]:
    """One sentence that a lawyer can read, what it comes to and, if that is inconclusive, why.

    Args:
        found: What was decided about each person.
        alpha: The share of findings that may be false.
        least: How many words a person must have.
    """
    flagged, sound, highest = int(found.flagged.sum()), int(found.sound.sum()), _highest(found)
    if not sound:
        if found.judged.any():
            return _unlike(found), "inconclusive", "not_comparable"
        code = "too_little_text" if int(found.words.max(initial=0)) < least else "too_few_controls"
        return _no_saying(found, alpha, least), "inconclusive", code
    if flagged:
        said = _found_one(found) if sound == 1 else _found(flagged, sound, alpha)
        return said, "found", None
    if highest:
        return _undecided(found, highest, alpha), "inconclusive", "no_power"
    return (_no_sign_of_one(found) if sound == 1 else _no_sign(sound)), "not_found", None


def _highest(found: Decisions) -> int:
    """How many people score above every calibration user they were compared with."""
    return int((found.p[found.sound] * (1 + found.compared[found.sound]) < 1.5).sum())


def _found(flagged: int, sound: int, alpha: float) -> str:
    """Some of many were found."""
    return (
        f"The texts of {flagged} of {sound} people were used to train this model: it predicts their words better "
        f"than chance allows. At most {alpha:.0%} of these {flagged} findings are expected to be false."
    )


def _no_sign(sound: int) -> str:
    """None of many was found."""
    return (
        f"No sign that the texts of any of the {sound} people were used to train this model: it predicts "
        "their words no better than those of people who are known not to be in its training data."
    )


def _one(found: Decisions) -> tuple[float, int, int]:
    """The p-value of a single person, how many calibration users score as high, and how many there are."""
    (place,) = np.flatnonzero(found.sound)
    p, others = float(found.p[place]), int(found.compared[place])
    return p, round(p * (others + 1)) - 1, others


def _found_one(found: Decisions) -> str:
    """The single person was found."""
    p, above, others = _one(found)
    rarely = "none" if not above else f"only {above}"
    return (
        f"This person's texts were used to train this model, as far as its answers tell: {rarely} of {others} "
        f"people who are known not to be in its training data are predicted as well (p = {p:.3g})."
    )


def _no_sign_of_one(found: Decisions) -> str:
    """The single person was not found."""
    p, above, others = _one(found)
    return (
        f"No sign that this person's texts were used to train this model: {above} of {others} people who are known "
        f"not to be in its training data are predicted as well or better (p = {p:.2g})."
    )


def _undecided(found: Decisions, highest: int, alpha: float) -> str:
    """Too few users calibrate for so many people."""
    sound = int(found.sound.sum())
    needed = controls_for_p(alpha * highest / sound)
    return (
        f"There is no saying: {highest} of {sound} people are predicted better than all of the "
        f"{int(found.compared.max())} calibration users, but among so many people that may be chance. "
        f"With at least {needed} calibration users it could be told."
    )


def _unlike(found: Decisions) -> str:
    """Nobody is like the calibration users."""
    reasons = sorted({reason for each in found.unlike for reason in each.split(", ") if reason})
    who = "this person writes" if found.judged.sum() == 1 else f"these {int(found.judged.sum())} people write"
    return (
        f"There is no saying: {who} unlike all of the {int(found.compared.max())} calibration users "
        f"({', '.join(reasons)}), so what they score says nothing about chance. Give controls who write alike."
    )


def _no_saying(found: Decisions, alpha: float, least: int) -> str:
    """Why nobody could be judged, and what would be needed."""
    if int(found.words.max(initial=0)) < least:
        return (
            f"There is no saying: nobody has enough text. At least {least} words that all models know are needed "
            f"from a person; the most that anybody has are {int(found.words.max(initial=0))}."
        )
    return (
        f"There is no saying: at most {int(found.compared.max())} calibration users have as many texts as a person "
        f"here and at least {least} words that all models know, and {controls_for_p(alpha)} are needed: give more "
        "controls, or ask about more texts."
    )
