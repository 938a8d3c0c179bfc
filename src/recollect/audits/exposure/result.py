"""The results of the exposure and the extraction audit: findings, tables, notes, and what is not tested."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from recollect.audits.common.outcomes import conclude
from recollect.audits.common.result_builder import ResultBuilder
from recollect.audits.exposure.decisions import Decisions
from recollect.audits.exposure.exposure_measurement import GOOD_FIT, Measurement, Measurements
from recollect.audits.exposure.log_perplexity import LogPerplexities
from recollect.audits.exposure.search import SearchResult
from recollect.audits.exposure.verdict import (
    CERTAIN,
    MIN_SPACE,
    build_exposure_verdict,
    build_extraction_verdict,
    build_natural_verdict,
    describe_odds,
    excludes_certain,
)
from recollect.errors import NotEnoughData
from recollect.files.arrow_tables import build_array, build_table
from recollect.results.result import Finding, Placebo, Power, Result
from recollect.results.text_masks import mask_unless_shown
from recollect.stats.bounded_means import bounded_mean, exponential_mean
from recollect.stats.exposure import expected_exposure
from recollect.stats.intervals import Estimate, proportion

if TYPE_CHECKING:
    from recollect.audits.exposure.audit import ExposureAudit
    from recollect.audits.exposure.extraction import ExtractionAudit

_UNTESTED = (
    "Only secrets of these formats, after this known text, were looked for; other data may be memorised too.",
    "A low exposure means that this search is no shortcut to the secret, not that none exists.",
)
_NATURAL = (
    "Secrets found in a corpus are not drawn at random: a model that knows which fillings are common (an area code) "
    "ranks them high without having memorised any. Compare with a model that was not trained on them."
)
_GIVEN = (
    "Ranks are compared with those of secrets drawn at random: if those that were given were chosen otherwise (a year "
    "of birth, a word), a model can rank them high without having been trained on them."
)
_NO_PLACEBO = (
    "Planted secrets, controls and random draws are drawn alike from a format: a placebo would be a plain division of "
    "the controls, which always passes and proves nothing."
)
_UNVERIFIED = (
    "Whether the secrets found are real is not known here: the most likely filling may not occur in the training data. "
    "Compare with known secrets (`recollect exposure`)."
)


def build_result(
    audit: ExposureAudit, decisions: Decisions, measured: Measurements, *, occurring: int, repeated: int
) -> Result:
    """The result of the exposure audit.

    Args:
        audit: The audit.
        decisions: What the exposures amount to.
        measured: All secrets that were measured, controls included.
        occurring: How many different secrets occur in the corpus; 0 if it was not searched.
        repeated: How many entries name a secret that another one names.
    """
    builder, natural = ResultBuilder(audit), audit.searches_corpus
    _add_overall(builder, decisions.secrets)
    _add_repetitions(builder, decisions, natural=natural)
    if len(decisions.controls) > 1:
        _add_controls(builder, decisions.controls)
    if repeated:
        builder.note(
            "repeated_secrets",
            f"{repeated} entries name a secret that another one names. Each secret counts once, as often as it was "
            "planted in all: copies of one secret are no further evidence, and one that was planted is no control.",
        )
    if natural:
        many = len(measured.rows) + measured.unknown
        builder.note("secrets_in_corpus", f"{occurring} different secrets occur in the corpus; {many} were measured.")
    _add_exposure_notes(builder, measured)
    builder.tables["secrets"] = _build_secrets_table(audit, measured, decisions)
    builder.tables["draws"] = _build_draws_table(measured.scores)
    if not natural:
        needed = {"possible_secrets": decisions.needed_space, "draws": decisions.needed_draws}
        builder.power = Power(smallest_p=decisions.smallest_p, needed={} if decisions.attainable else needed)
        builder.placebo = Placebo(status="not_run", reason=_NO_PLACEBO)
    concluded = conclude(
        "inconclusive" if natural else "found" if decisions.found else "not_found",
        code="natural_secrets" if natural else None,
        attainable=decisions.attainable,
    )
    return builder.build(
        verdict=build_natural_verdict(decisions.secrets) if natural else build_exposure_verdict(decisions),
        outcome=concluded.outcome,
        code=concluded.code,
        untested=(*_UNTESTED, *((_NATURAL,) if natural else (_GIVEN,) if audit.secrets else ())),
        settings=audit.settings,
    )


def _add_controls(builder: ResultBuilder, controls: Sequence[Measurement]) -> None:
    """The finding of the mean exposure of secrets that were never planted."""
    sizes = [row.secret.parsed.size for row in controls]
    expected = float(np.mean([expected_exposure(size) for size in sizes]))
    reading = (
        f"Secrets that were never planted; {expected:.2f} bits are expected whatever the model, or fewer if it finds "
        "many secrets equally likely."
    )
    high = max([math.log2(max(sizes)), *(row.exposure_bits for row in controls)])
    estimate = exponential_mean([row.exposure_bits for row in controls], high=high, of="controls")
    builder.findings.append(Finding.of(estimate, name="exposure_bits_controls", unit="bits", reading=reading))


def _add_repetitions(builder: ResultBuilder, decisions: Decisions, *, natural: bool) -> None:
    """The findings of mean exposure by how often secrets were planted, and their tests against the controls."""
    for times, group in decisions.by_repetitions.items():
        if len(group) > 1:
            reading = (
                f"Mean exposure of the secrets that {'occur' if natural else 'were planted'} {times} "
                f"time{'s' * (times > 1)}; those whose rank sampling could only bound count with their lower estimate."
            )
            name = f"exposure_bits_planted_{times}"
            builder.findings.append(Finding.of(_average_exposure(group), name=name, unit="bits", reading=reading))
    if decisions.any_p is not None and len(decisions.secrets) > 1:
        builder.add_p_value(
            "any_memorised_p",
            decisions.any_p,
            n={"secrets": len(decisions.secrets)},
            method="each secret's rank among random draws, Simes",
            reading="How often some of so many secrets would rank so high in a model trained on none of them.",
        )
    if decisions.by_repetitions and not decisions.controls and not natural:
        reason = "The manifest has no controls, so planted secrets can be compared with random draws only."
        builder.skip("memorisation_p", code="no_controls", reason=reason)
    for times, p in decisions.p_by_repetitions.items():
        controls, strata = decisions.compared_controls[times]
        test = "van Elteren over formats, against" if strata > 1 else "Mann–Whitney against"
        single = "" if strata > 1 else " (a single secret: its rank among them)"
        builder.add_p_value(
            f"memorisation_p_planted_{times}",
            p,
            n={"secrets": len(decisions.by_repetitions[times]), "controls": controls},
            method=f"{test} never-planted controls{single}, Holm",
            reading="How often a model trained on none of them would rank planted secrets so far above the controls.",
        )
    formats = {row.secret.format for row in decisions.controls}
    alone = sum(row.secret.format not in formats for row in decisions.secrets)
    if decisions.controls and decisions.by_repetitions and alone:
        builder.note(
            "controls_of_other_formats",
            f"{alone:,} of {len(decisions.secrets):,} secrets have no control of their format: they are compared with "
            "random draws only, since exposures of other formats are not alike.",
        )


def _add_exposure_notes(builder: ResultBuilder, measured: Measurements) -> None:
    """The notes of an exposure result: what was not measured, and where the paper's curve does not fit or disagrees."""
    if measured.unknown:
        text = f"{measured.unknown} secrets have tokens outside of the model's vocabulary and are left out."
        builder.note("unknown_secrets", text)
    for reason in measured.uncountable:
        builder.note("not_counted_exactly", f"Could not be counted exactly: {reason}")
    rejected = [
        curve.goodness_of_fit_p for curve in measured.curves if curve is not None and curve.goodness_of_fit_p < GOOD_FIT
    ]
    if rejected:
        builder.note(
            "skew_normal_rejected",
            "The skew-normal curve of the paper does not fit the log-perplexities of random secrets (Kolmogorov–"
            f"Smirnov, p = {min(rejected):.1g}): `skew_normal_bits` is unreliable.",
        )
    beyond = sum(
        row.method == "skew-normal" and (row.skew_normal_bits or 0.0) > math.log2(row.secret.parsed.size) + 0.5
        for row in measured.rows
    )
    if beyond:
        builder.note(
            "skew_normal_beyond_space",
            f"For {beyond} of {len(measured.rows)} secrets the skew-normal curve gives more bits than the space has "
            "(`skew_normal_bits`): they count with as many as it has.",
        )
    misled = [row for row in measured.rows if row.curve_disagrees and row.method != "skew-normal"]
    if misled:
        row = max(misled, key=lambda each: abs((each.skew_normal_bits or 0) - each.exposure_bits))
        curve = row.skew_normal_bits or 0.0
        builder.note(
            "skew_normal_misleads",
            f"For {len(misled)} of {len(measured.rows)} secrets the skew-normal curve disagrees with what was counted "
            f"or drawn; most for {row.secret.id}: {f'{curve:.1f}' if curve < 1000 else 'over 1,000'} bits against "
            f"{row.exposure_bits:.1f} ({row.lower:.1f} to {row.upper:.1f}, {row.method}).",
        )


def _add_overall(builder: ResultBuilder, secrets: Sequence[Measurement]) -> None:
    """The findings of exposure that hold for all secrets together."""
    top = max(secrets, key=lambda row: row.exposure_bits)
    size = top.secret.parsed.size
    builder.findings.append(
        Finding(
            name="highest_exposure_bits",
            value=top.exposure_bits,
            why_no_interval=f"It is the largest of {len(secrets)}; each secret's own bounds are in the table.",
            unit="bits",
            n={"secrets": len(secrets)},
            method=top.method,
            reading="The search for the most exposed secret is shorter by so many bits; the whole space has "
            f"{math.log2(size):.1f} bits (|R| = {size:,}), and a secret that was never planted has "
            f"{expected_exposure(size):.2f} on average.",
        )
    )
    reading = "Secrets that the model ranks first: proven to be the most likely of all fillings of their format."
    first = proportion([row.is_first_guess for row in secrets], of="secrets")
    builder.findings.append(Finding.of(first, name="first_guess", unit="share", reading=reading))


def _average_exposure(rows: Sequence[Measurement]) -> Estimate:
    """The mean exposure of secrets; without an interval where they are too few for one."""
    bits = [row.exposure_bits for row in rows]
    largest = max(*bits, *(math.log2(row.secret.parsed.size) for row in rows))
    try:
        return bounded_mean(bits, low=0.0, high=largest, of="secrets")
    except NotEnoughData as refusal:
        n, why = {"secrets": len(bits)}, f"{refusal.found} {refusal.do}"
        return Estimate(value=float(np.mean(bits)), interval=None, n=n, method="mean", why_no_interval=why)


def _build_secrets_table(audit: ExposureAudit, measured: Measurements, decisions: Decisions) -> pa.Table:
    """The table of an exposure result: one row per secret; its format is numbered as in the table of draws."""
    rows, formats = measured.rows, {kind: index for index, kind in enumerate(measured.scores.draws)}
    corrected = iter([] if decisions.p_corrected is None else decisions.p_corrected.tolist())
    p = [None if row.secret.is_control else next(corrected, None) for row in rows]
    texts = [mask_unless_shown(row.secret.text, show_text=audit.show_text) for row in rows]
    return build_table(
        {
            "secret_id": build_array([row.secret.id for row in rows], pa.string()),
            "secret": build_array(texts, pa.string()),
            "format": build_array([formats[row.secret.kind] for row in rows], pa.int32()),
            "planted": build_array([row.secret.planted for row in rows], pa.int64()),
            "exposure_bits": [row.exposure_bits for row in rows],
            "lower": [row.lower for row in rows],
            "upper": [row.upper for row in rows],
            "rank": [float(row.rank) for row in rows],
            "space": [float(row.secret.parsed.size) for row in rows],
            "log_perplexity_bits": [row.log_perplexity_bits for row in rows],
            "method": build_array([row.method for row in rows], pa.string()),
            "steps": build_array([row.steps for row in rows], pa.int64()),
            "p_value": [row.p_value for row in rows],
            "p_corrected": build_array(p, pa.float64()),
            "skew_normal_bits": build_array([row.skew_normal_bits for row in rows], pa.float64()),
        }
    )


def _build_draws_table(scores: LogPerplexities) -> pa.Table:
    """The table of log-perplexities of the random secrets, for figures of their distribution."""
    sizes = [len(bits) for bits in scores.draws.values()]
    return build_table(
        {
            "format": build_array(np.repeat(np.arange(len(sizes)), sizes), pa.int32()),
            "log_perplexity_bits": np.concatenate(list(scores.draws.values())),
        }
    )


def build_extraction_result(
    audit: ExtractionAudit, size: int, found: SearchResult, bits: Sequence[float], bound: float | None = None
) -> Result:
    """The result of the extraction audit.

    Args:
        audit: The audit.
        size: How many secrets the format has.
        found: What the search found.
        bits: The log-perplexity of each secret, in the same order.
        bound: The log-perplexity that every secret has at least which is not listed; None if that is not known.
    """
    builder, listed = ResultBuilder(audit), len(found.secrets)
    for name, value, unit, reading in _list_search_findings(size, found, bits, bound):
        builder.findings.append(
            Finding(
                name=name,
                value=value,
                unit=unit,
                n={"secrets": listed},
                method=audit.method,
                reading=reading,
                why_no_interval="It is counted, not estimated.",
            )
        )
    texts = [mask_unless_shown(secret.text, show_text=audit.show_text) for secret in found.secrets]
    builder.tables["secrets"] = build_table(
        {
            "place": build_array(range(1, listed + 1), pa.int64()),
            "secret": build_array(texts, pa.string()),
            "log_perplexity_bits": build_array(bits, pa.float64()),
            "proven": build_array([index < found.proven for index in range(listed)], pa.bool_()),
        }
    )
    certain, few = bool(bits) and bits[0] < CERTAIN, size < MIN_SPACE
    why = (
        "too_few_possible"
        if certain
        else "nothing_certain"
        if bits or excludes_certain(bound)
        else "no_complete_secret"
    )
    return builder.build(
        verdict=build_extraction_verdict(found, bits, size, bound),
        outcome="found" if certain and not few else "inconclusive",
        code=None if certain and not few else why,
        untested=(_UNVERIFIED,),
        settings=audit.settings,
    )


def _list_search_findings(
    size: int, found: SearchResult, bits: Sequence[float], bound: float | None
) -> Iterator[tuple[str, float, str, str]]:
    """The findings of a search in an extraction result: name, value, unit, reading."""
    proven = (
        "Secrets of the list, from the top, for which it is proven that none of the format is more likely; 0 for "
        "methods that prove nothing."
    )
    yield "proven", found.proven, "secrets", proven
    yield "steps", found.steps, "steps", "How many prefixes the model scored."
    searched = f"Different complete secrets that the search reached, at least, as a share of all |R| = {size:,}."
    yield "share_searched", found.completed / size, "share", searched
    if bound is not None and bound > 0:
        least = (
            "Proven: every secret of the format that is not listed has at least this log-perplexity, so that the model "
            f"writes none of them more often than {describe_odds(bound)}."
        )
        yield "unlisted_bits", bound, "bits", least
    if bits:
        best = (
            "Log-perplexity of the most likely secret: after the known text, the model writes it "
            f"{describe_odds(bits[0])}. A space of this size has {math.log2(size):.1f} bits."
        )
        yield "best_bits", bits[0], "bits", best
