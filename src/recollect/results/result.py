"""A result: findings with interval, counts, method and reading. JSON is the product, all else a view of it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, JsonValue, PrivateAttr, field_validator, model_validator

from recollect.errors import NotEnoughData
from recollect.stats.intervals import Estimate, Interval

SCHEMA_VERSION: Final = "1"
"""Raised when a reader of the old form would misread the new one."""

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.\-]*$")]
"""A name for plans, options and files: small letters, digits, `_`, `.` and `-`."""
Sentence = Annotated[str, Field(min_length=1)]
TablePath = Annotated[str, Field(pattern=r"^tables/[a-z0-9][a-z0-9_.\-]*/[a-z0-9][a-z0-9_.\-]*\.parquet$")]
"""Relative to the run folder, and never out of it."""

Outcome = Literal["found", "not found", "cannot tell"]


class _Frozen(BaseModel):
    """What all parts of a result share: fixed once made, nothing unknown, no number that is none."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


class Finding(_Frozen):
    """One number, with all that is needed to read it."""

    name: Name
    value: float
    interval: tuple[float | None, float | None] | None = None
    """Lower and upper limit; null where one side is open."""
    why_no_interval: Sentence | None = None
    """Given if, and only if, there is no interval."""
    confidence: Annotated[float, Field(gt=0, lt=1)] | None = None
    """How often such intervals are right; given with the interval."""
    unit: Sentence
    n: Annotated[dict[str, Annotated[int, Field(ge=0)]], Field(min_length=1)]
    """What was counted, by name: users, records, sequences …"""
    method: Sentence
    reading: Sentence
    """What this number means, and what it does not."""

    @model_validator(mode="after")
    def _interval_or_reason(self) -> Self:
        """No interval without confidence, and no gap without a reason."""
        if (self.interval is None) != (self.why_no_interval is not None):
            raise ValueError("either an interval or why_no_interval must be given, not both")
        if (self.interval is None) != (self.confidence is None):
            raise ValueError("confidence is given with an interval, and only then")
        if self.interval is not None:
            low, high = self.interval
            if low is None and high is None:
                raise ValueError("an interval that is open on both sides says nothing")
            if low is not None and high is not None and low > high:
                raise ValueError("the lower limit of an interval lies above the upper one")
        return self

    @classmethod
    def of(cls, estimate: Estimate, *, name: str, unit: str, reading: str) -> Self:
        """A finding from what `stats` gave: value, interval, counts and method travel together.

        >>> from recollect.stats import proportion
        >>> finding = Finding.of(proportion([1, 1, 0, 1]), name="recall", unit="share", reading="Members found.")
        >>> finding.value, finding.n, finding.confidence
        (0.75, {'records': 4, 'users': 4}, 0.95)

        Raises:
            NotEnoughData: The value is no finite number; report it as skipped, with the reason.
        """
        if not math.isfinite(estimate.value):
            raise NotEnoughData(f"{name} came out as {estimate.value}, which is not a number to report.")
        interval = estimate.interval
        return cls(
            name=name,
            value=float(estimate.value),
            interval=None if interval is None else (_closed(interval.low), _closed(interval.high)),
            why_no_interval=estimate.why_no_interval or None,
            confidence=None if interval is None else interval.confidence,
            unit=unit,
            n={key: int(count) for key, count in estimate.n.items()},
            method=estimate.method,
            reading=reading,
        )

    @property
    def estimate(self) -> Estimate:
        """The finding as `stats` takes it, such as for a difference of two runs."""
        interval = None
        if self.interval is not None and self.confidence is not None:
            low, high = self.interval
            interval = Interval(
                -math.inf if low is None else low, math.inf if high is None else high, confidence=self.confidence
            )
        why = self.why_no_interval or ""
        return Estimate(value=self.value, interval=interval, n=self.n, method=self.method, why_no_interval=why)


class Skipped(_Frozen):
    """What was not done, and why; nothing vanishes."""

    audit: Name
    reason: Sentence
    finding: Name | None = None
    """The one finding that is missing; null if the whole audit was skipped."""


class Failed(_Frozen):
    """What was tried and went wrong."""

    audit: Name
    error: Sentence


class Provenance(_Frozen):
    """What the result came from: enough to do it again. All but `seconds` is the same each time."""

    recollect: str
    torch: str | None = None
    """Its version; null where no model ran, as when stored answers were read."""
    versions: dict[str, str] = Field(default_factory=dict)
    """Of other packages that may move a number."""
    model: str | None = None
    """Digest of the audited model."""
    corpus: str | None = None
    """Digest of the audited corpus."""
    digests: dict[str, str] = Field(default_factory=dict)
    """Of all else that was used, by its part: controls, references, cohorts …"""
    seed: int
    queries: Annotated[int, Field(ge=0)]
    """How many records the audited model was asked about."""
    seconds: Annotated[float, Field(ge=0)]


class Result(_Frozen):
    """What an audit found: the answer to its question."""

    schema_version: Literal["1"] = SCHEMA_VERSION
    audit: Name
    question: Sentence
    verdict: Sentence
    """One sentence that a lawyer can read."""
    outcome: Outcome
    """Whether what the question is after was found."""
    findings: tuple[Finding, ...] = ()
    tables: dict[str, TablePath] = Field(default_factory=dict)
    """Longer tables, by name: where they lie in the run folder, as Parquet."""
    limits: tuple[str, ...] = ()
    """What was not tested."""
    notes: tuple[str, ...] = ()
    """What a reader ought to know, such as a warning that the comparison may be unfair."""
    skipped: tuple[Skipped, ...] = ()
    failed: tuple[Failed, ...] = ()
    dropped: dict[str, int] = Field(default_factory=dict)
    """How many bad records were left out, by reason."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """All settings of the audit, defaults included."""
    provenance: Provenance | None = None
    """Null only until the run is over: a result without it cannot be saved."""

    _held: dict[str, pa.Table] = PrivateAttr(default_factory=dict)

    @field_validator("findings")
    @classmethod
    def _named_once(cls, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Two findings of one name could not be told apart by a limit on that name."""
        names = [finding.name for finding in findings]
        if len(set(names)) < len(names):
            raise ValueError("two findings have the same name")
        return findings

    @field_validator("settings")
    @classmethod
    def _numbers_only(cls, settings: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Settings are written as JSON, which knows neither NaN nor infinity."""
        json.dumps(settings, allow_nan=False)
        return settings

    def finding(self, name: str) -> Finding:
        """The finding of that name."""
        return {finding.name: finding for finding in self.findings}[name]

    def with_tables(self, **tables: pa.Table) -> Self:
        """The result with longer tables, which are held in memory until the run folder writes them."""
        paths = {name: f"tables/{self.audit}/{name}.parquet" for name in tables}
        made = type(self).model_validate({**dict(self), "tables": {**self.tables, **paths}})
        made._held.update(self._held | tables)
        return made

    def with_provenance(self, provenance: Provenance) -> Self:
        """The result once it is known what it came from and what it cost."""
        return self.model_copy(update={"provenance": provenance})

    @property
    def held(self) -> Mapping[str, pa.Table]:
        """The tables that are still in memory."""
        return self._held


def _closed(limit: float) -> float | None:
    """A limit as JSON has it: null for none."""
    return float(limit) if math.isfinite(limit) else None
