"""What units look like without any model: amounts, dates, words, writing, labels. The guard compares these.

A unit is a user with all records that are compared or, without users, one record. Nothing here depends on which side a
unit is on, so that tests which deal the sides out anew are exact.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.audits.common.unicode_words import list_shapes, list_terms, list_words
from recollect.corpora.record import Record
from recollect.corpora.times import Period, period_of
from recollect.signals.scores import Floats

MAX_WORDS = 20_000
"""Of each unit: enough to know its vocabulary."""
_BUCKETS = 2**20
_MAX_PIXELS = 4096


@dataclass(frozen=True, kw_only=True, eq=False)
class Unit:
    """One user, or one record of a corpus without users, with what is compared of it."""

    name: str
    records: Sequence[Record]
    audited: bool
    stratum: int = 0
    """Units are compared within a stratum only, such as of like amounts."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Covariates:
    """Of all units, in their order."""

    scalars: Mapping[str, Floats]
    """One number of each unit, by name [units]."""
    kernels: Mapping[str, Floats]
    """How alike every two units are, by name [units, units]; of equal length, so that distance is unlikeness."""
    shown: Mapping[str, Floats] = field(default_factory=dict)
    """What a reader is told of a scalar, where that is not the scalar itself."""


def measure_covariates(units: Sequence[Unit], *, period: Period | None = None) -> Covariates:
    """What units look like; a covariate that no unit has, or in which all are alike, is left out.

    Args:
        units: Of both sides.
        period: The calendar period by which dates are compared; None where no time is known.
    """
    scalars, kernels, shown = dict[str, Floats](), dict[str, Floats](), dict[str, Floats]()
    scalars["records"] = np.log([len(unit.records) for unit in units])
    shown["records"] = np.exp(scalars["records"])
    if _hold_arrays(units):
        kernels["content"] = _compare_arrays(units)
    else:
        _measure_text_covariates(units, scalars, kernels, shown)
    if any(record.label is not None for unit in units for record in unit.records):
        kernels["labels"] = _compare_compositions(
            [Counter(str(record.label) for record in unit.records) for unit in units]
        )
    if period is not None:
        _measure_date_covariates(units, period, scalars, kernels, shown)
    return Covariates(scalars=scalars, kernels=kernels, shown=shown)


def _measure_text_covariates(
    units: Sequence[Unit], scalars: dict[str, Floats], kernels: dict[str, Floats], shown: dict[str, Floats]
) -> None:
    """Lengths, words nobody else uses, how much a unit repeats itself, vocabulary and writing."""
    counted = [_count_terms_of_unit(unit.records) for unit in units]
    lengths = [np.array([each.words for each in unit], dtype=np.float64) for unit in counted]
    scalars["length"] = np.array([np.log1p(each).mean() for each in lengths])
    shown["length"] = np.array([each.mean() for each in lengths])
    words = _build_term_matrix([[each.terms for each in _select_counted_texts(unit)] for unit in counted])
    style = _build_term_matrix([[each.shapes for each in _select_counted_texts(unit)] for unit in counted])
    totals = np.maximum(1, np.asarray(words.sum(axis=1)).ravel())
    alone = np.asarray((words > 0).sum(axis=0)).ravel() == 1
    scalars["unknown_words"] = np.asarray(words @ alone.astype(np.float64)).ravel() / totals
    scalars["repetition"] = 1 - np.asarray((words > 0).sum(axis=1)).ravel() / totals
    kernels["vocabulary"], kernels["style"] = _compare_term_counts(words), _compare_term_counts(style)


@dataclass(frozen=True)
class _TermCounts:
    """What one text holds."""

    words: int
    terms: NDArray[np.int64]
    """The hash of every term, as often as it occurs."""
    shapes: NDArray[np.int64]


def _count_terms_of_unit(records: Sequence[Record]) -> list[_TermCounts]:
    """The covariates of each record of a unit: its counted terms and shapes."""
    return [_count_terms_of_text(_join_record_text(record)) for record in records]


@lru_cache(maxsize=2**16)
def _count_terms_of_text(text: str) -> _TermCounts:
    """The covariates of a text: its hashed terms and shapes; kept, because one text is compared many times."""
    words = list_words(text)
    return _TermCounts(len(words), _hash_terms(list_terms(words)), _hash_terms(list_shapes(text)))


def _hash_terms(terms: Iterable[str]) -> NDArray[np.int64]:
    """The hash of each term of a text's covariates."""
    return np.fromiter(map(_hash_term, terms), dtype=np.int64)


@lru_cache(maxsize=2**16)
def _hash_term(term: str) -> int:
    """The hash of one term of a text's covariates; kept, because most terms are frequent ones."""
    return zlib.crc32(term.encode("utf-8", "surrogatepass")) % _BUCKETS


def _select_counted_texts(counted: Sequence[_TermCounts]) -> Sequence[_TermCounts]:
    """The texts of a unit whose covariates are counted: up to the one with which it has `MAX_WORDS`."""
    total = np.cumsum([each.words for each in counted])
    return counted[: 1 + int(np.searchsorted(total, MAX_WORDS))]


def _join_record_text(record: Record) -> str:
    """All that a record says, of which covariates are measured."""
    return f"{record.context_text} {record.scored_text}" if record.context_text else record.scored_text


def _build_term_matrix(units: Sequence[Sequence[NDArray[np.int64]]]) -> Any:
    """The covariates of units as a sparse matrix: how often each has each term that occurs."""
    from scipy.sparse import csr_array

    terms = np.concatenate([np.zeros(0, dtype=np.int64), *(text for texts in units for text in texts)])
    sizes = [sum(map(len, texts)) for texts in units]
    keys, counts = np.unique(np.repeat(np.arange(len(units)), sizes) * _BUCKETS + terms, return_counts=True)
    known, columns = np.unique(keys % _BUCKETS, return_inverse=True)
    starts = np.searchsorted(keys, np.arange(len(units) + 1) * _BUCKETS)
    return csr_array((counts.astype(np.float64), columns, starts), shape=(len(units), max(1, len(known))))


def _compare_term_counts(counts: Any) -> Floats:
    """The similarity of every two units in their covariates: logarithmic counts, rare terms weighted up (tf-idf)."""
    from scipy.sparse import csr_array, diags_array

    weighted = csr_array(counts, copy=True)
    weighted.data = 1 + np.log(weighted.data)
    seen = np.asarray((counts > 0).sum(axis=0)).ravel()
    weighted = weighted @ diags_array(1 + np.log((1 + counts.shape[0]) / (1 + seen)))
    return _compare_sparse_rows(weighted)


def _compare_sparse_rows(rows: Any) -> Floats:
    """The similarity of every two sparse rows of covariates; an empty row is like itself alone."""
    from scipy.sparse import diags_array

    length = np.sqrt(np.asarray((rows * rows).sum(axis=1)).ravel())
    scaled = diags_array(1 / np.where(length > 0, length, 1)) @ rows
    kernel = np.asarray((scaled @ scaled.T).toarray())
    np.fill_diagonal(kernel, 1.0)
    return kernel


def _compare_compositions(bags: Sequence[Counter[str]]) -> Floats:
    """The covariate of how alike the compositions of every two units are, such as of labels or months.

    Of whom nothing is known counts as the average of all others.
    """
    names = {name: i for i, name in enumerate(sorted(set().union(*bags)))}
    shares = np.zeros((len(bags), len(names)))
    for row, bag in zip(shares, bags, strict=True):
        for name, count in bag.items():
            row[names[name]] = count / bag.total()
    empty = np.array([not bag for bag in bags])
    shares[empty] = shares[~empty].mean(axis=0) if not empty.all() else 0.0
    pooled = np.maximum(shares.mean(axis=0), 1e-12)
    scaled = shares / np.sqrt(pooled)
    return np.asarray(scaled @ scaled.T)


def _hold_arrays(units: Sequence[Unit]) -> bool:
    """Whether the covariates are of arrays; all records are or none is."""
    return any(record.array is not None for unit in units[:1] for record in unit.records)


def _compare_arrays(units: Sequence[Unit]) -> Floats:
    """The covariate of how alike every two units' mean arrays are."""
    width = min(np.asarray(record.array).size for unit in units for record in unit.records)
    step = -(-width // _MAX_PIXELS)
    rows = np.stack(
        [np.mean([_flatten_array(record, width, step) for record in unit.records], axis=0) for unit in units]
    )
    scatter = rows.std(axis=0)
    rows = (rows - rows.mean(axis=0)) / np.where(scatter > 0, scatter, 1)
    return np.asarray(rows @ rows.T / rows.shape[1])


def _flatten_array(record: Record, width: int, step: int) -> NDArray[np.float64]:
    """The values of an array as one row of covariates, thinned out if they are many."""
    return np.ravel(np.asarray(record.array, dtype=np.float64))[:width:step]


def _measure_date_covariates(
    units: Sequence[Unit],
    period: Period,
    scalars: dict[str, Floats],
    kernels: dict[str, Floats],
    shown: dict[str, Floats],
) -> None:
    """The covariates of dates: mean and composition of periods of each unit; records without a time do not count.

    A unit without any time counts as the average of all: it is not of another period for that.
    """
    times = [np.array([r.time.timestamp() for r in unit.records if r.time is not None]) / 86400 for unit in units]
    known = np.array([each.mean() if each.size else np.nan for each in times])
    scalars["date"] = np.where(np.isnan(known), np.nanmean(known), known)
    shown["date"] = scalars["date"]
    names = ((period_of(record, period) for record in unit.records) for unit in units)
    kernels["period"] = _compare_compositions([Counter(name for name in each if name is not None) for each in names])


def standardise(values: Floats, scale: Floats) -> Floats:
    """A covariate in standard deviations of all values; zero where nothing varies but by rounding.

    Args:
        values: What is standardised.
        scale: How large the numbers are that they were computed from.
    """
    scatter = values.std()
    if scatter <= 1e-9 * float(np.abs(scale).max(initial=0)):
        return np.zeros(len(values))
    return np.asarray((values - values.mean()) / scatter)
