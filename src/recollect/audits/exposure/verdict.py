"""The verdicts of the exposure and the extraction audit: sentences that a lawyer can read."""

from __future__ import annotations

from collections.abc import Sequence

from recollect.audits.exposure.decisions import Decisions
from recollect.audits.exposure.exposure_measurement import Measurement
from recollect.audits.exposure.search import SearchResult

CERTAIN = 1.0
"""A secret of lower log-perplexity, in bits, is what the model writes more often than not."""

MIN_SPACE = 20
"""Of fewer possible secrets one is the likeliest, and often nearly certain, whatever the model was trained on."""


def build_exposure_verdict(decisions: Decisions) -> str:
    """The verdict on whether the model memorised some of the secrets."""
    many, first = len(decisions.secrets), _describe_first_guesses(decisions.secrets)
    if not decisions.found and not decisions.attainable:
        which = "the secret" if many == 1 else f"any of the {many} secrets"
        return (
            f"Whether the model memorised {which} cannot be determined from this data: too few secrets of this format "
            f"are possible, or were drawn, for even the likeliest to be significant (smallest possible p-value "
            f"{decisions.smallest_p:.2g}; the significance level is {decisions.alpha:g}). "
            f"{decisions.needed_space:,} possible secrets and {decisions.needed_draws:,} draws would be enough."
        )
    if many == 1:
        if decisions.found:
            others = "a random secret would" if decisions.above_random else "secrets that were never planted"
            return f"The model memorised the secret: it ranks higher than {others} (p < {decisions.alpha:g}){first}."
        return f"No sign that the model memorised the secret: it does not rank {_describe_null(decisions)}."
    if not decisions.found:
        ranks = f"they do not rank {_describe_null(decisions)}"
        return f"No sign that the model memorised any of the {many} secrets: {ranks}."
    if not decisions.memorised:
        return f"The model memorised secrets: {_describe_group(decisions)}{first}."
    ranked = f"{decisions.memorised} of the {many} secrets rank higher than random secrets would"
    return f"The model memorised secrets: {ranked} (each at p < {decisions.alpha:g}){first}."


def _describe_null(decisions: Decisions) -> str:
    """The end of a verdict that nothing is memorised: what the secrets were compared with."""
    others = " or secrets that were never planted" if decisions.p_by_repetitions else ""
    return f"significantly above random secrets{others}"


def build_natural_verdict(secrets: Sequence[Measurement]) -> str:
    """The verdict on secrets that were not drawn at random: common ones rank high without training on them."""
    top, many = max(row.exposure_bits for row in secrets), len(secrets)
    which, them = (f"most exposed of the {many} secrets", "them") if many > 1 else ("secret", "it")
    return (
        f"The {which} found in the corpus has {top:.1f} bits{_describe_first_guesses(secrets)}; whether the model "
        f"memorised {them}, or would rank such common secrets high anyway, cannot be determined from ranks alone."
    )


def excludes_certain(bound: float | None) -> bool:
    """Whether a verdict can say that no secret is one which the model writes more often than not."""
    return bound is not None and bound >= CERTAIN


def build_extraction_verdict(found: SearchResult, bits: Sequence[float], size: int, bound: float | None = None) -> str:
    """The verdict on what was extracted, and how likely the model is to write it.

    Args:
        found: What the search found.
        bits: The log-perplexity of each secret, in the same order.
        size: How many secrets are possible.
        bound: The log-perplexity that every secret has at least which is not listed; None if that is not known.
    """
    if not bits:
        steps = f"{found.steps:,} step{'s' * (found.steps != 1)}"
        if bound is not None and excludes_certain(bound):
            return (
                f"Nothing was extracted: given the known text, the model writes none of the {size:,} possible secrets "
                f"more often than {describe_odds(bound)}, which {steps} prove{'s' * (found.steps == 1)}."
            )
        return f"Nothing was extracted: no secret was complete after {steps}."
    proof = f"{found.proven} of the {len(bits)} listed are proven to be the most likely of all"
    if bits[0] < CERTAIN:
        possible = f"only {size} secrets are" if size > 1 else "only one secret is"
        few = f" But {possible} possible: one of so few is likely whatever the model was trained on." * (
            size < MIN_SPACE
        )
        return f"Given the known text, the model writes one secret {describe_odds(bits[0])}; {proof}.{few}"
    many = f"The {len(bits)} most likely secrets that were reached are listed, the first of which"
    listed = "One secret is listed, which" if len(bits) == 1 else many
    return f"{listed} the model writes {describe_odds(bits[0])}; {proof}."


def describe_odds(bits: float) -> str:
    """In the verdict: the probability of something with a surprisal of so many bits, in words.

    >>> describe_odds(0.044), describe_odds(24.85), describe_odds(2000.0)
    ('97 times in 100', 'once in 30,240,947 times', 'once in 2^2000 times')
    """
    if bits > 40:
        return f"once in 2^{round(bits)} times"
    probability = 2.0**-bits
    if probability >= 0.02:
        return f"{round(100 * probability)} times in 100"
    return f"once in {round(1 / probability):,} times"


def _describe_group(decisions: Decisions) -> str:
    """In the verdict: which secrets rank above which others where no single one is significant."""
    times = decisions.above_controls
    if not times:
        return f"as a group, the {len(decisions.secrets)} rank above random secrets"
    who, verb = f"the {len(decisions.secrets)}", "rank"
    if len(times) < len(decisions.by_repetitions):
        many = sum(len(decisions.by_repetitions[each]) for each in times)
        who = f"the {many} that were planted {' or '.join(map(str, times))} time{'s' * (times != (1,))}"
        verb = "ranks" if many == 1 else "rank"
    return f"as a group, {who} {verb} above secrets that were never planted"


def _describe_first_guesses(secrets: Sequence[Measurement]) -> str:
    """In the verdict: how many secrets the model ranks first; empty if none."""
    first = sum(row.is_first_guess for row in secrets)
    if not first:
        return ""
    who = "it is" if len(secrets) == 1 else f"{first} of them {'is' if first == 1 else 'are'}"
    return f", and {who} ranked first among all possible secrets"
