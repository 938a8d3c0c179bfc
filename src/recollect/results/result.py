"""A result: findings with interval, counts, method and reading. JSON is the product, all else a view of it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, PrivateAttr, field_validator, model_validator

from recollect.checks import NAME_PATTERN, describe_fields
from recollect.errors import NotEnoughData

if TYPE_CHECKING:
    import pyarrow as pa

    from recollect.stats.intervals import Estimate

SCHEMA_VERSION: Final = "2"
"""Raised when a reader of the old form would misread the new one."""

Name = Annotated[str, Field(pattern=NAME_PATTERN)]
"""A name for plans, options and files: lowercase letters, digits, `_`, `.` and `-`."""
Code = Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*(_[a-z0-9]+)*(\.[a-z0-9_]+)*$")]
"""A stable name of a reason or a count, in snake_case: what programs and tests rely on while wording may change."""
Sentence = Annotated[str, Field(min_length=1)]
TablePath = Annotated[str, Field(pattern=r"^tables/[a-z0-9][a-z0-9_.\-]*/[a-z0-9][a-z0-9_.\-]*\.parquet$")]
"""Relative to the run folder, and never out of it."""

Outcome = Literal["found", "not_found", "inconclusive"]
Severity = Literal["none", "low", "medium", "high"]


class _Frozen(BaseModel):
    """What all members of a result share: fixed once made, nothing unknown, no number that is none."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, json_schema_extra=describe_fields, defer_build=True
    )


class Mention(_Frozen):
    """A person or record inside a sentence: kept apart from its words, so that a view can show a pseudonym."""

    kind: Literal["user", "record"]
    id: str


Text = Annotated[str, Field(min_length=1)] | Annotated[tuple[str | Mention, ...], Field(min_length=1)]
"""A sentence; in pieces where it mentions a person or a record."""


def render_text(text: Text, name: Callable[[Mention], str] = lambda mention: mention.id) -> str:
    """A sentence of a result as one string, each mention under the name that `name` gives it.

    >>> render_text(("Nothing of ", Mention(kind="user", id="ann"), " was found."), lambda mention: "user 1")
    'Nothing of user 1 was found.'
    """
    return text if isinstance(text, str) else "".join(each if isinstance(each, str) else name(each) for each in text)


class Note(_Frozen):
    """What a reader ought to know."""

    code: Code
    text: Text


class Finding(_Frozen):
    """One number, with all that is needed to read it."""

    name: Name
    value: float
    interval: tuple[float | None, float | None] | None = None
    """Lower and upper limit; null where one side is open."""
    why_no_interval: Sentence | None = None
    """Given if, and only if, there is no interval."""
    confidence: Annotated[float, Field(gt=0, lt=1)] | None = None
    """The confidence level of the interval; given with it, and only then."""
    unit: Sentence
    n: Annotated[dict[Code, Annotated[int, Field(ge=0)]], Field(min_length=1)]
    """What was counted, by name: users, records, sequences …"""
    method: Sentence
    reading: Sentence
    """What this number means, and what it does not."""
    severity: Severity | None = None
    """How much a reader should worry; null where the number alone does not say."""
    next_step: Sentence | None = None
    """What to do about it, where there is something to do."""

    @model_validator(mode="after")
    def _check_interval_or_reason(self) -> Self:
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
                raise ValueError("the lower limit of an interval is above the upper one")
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
            raise NotEnoughData(
                f"{name} came out as {estimate.value}, which is not a number to report.", code="not_finite"
            )
        interval = estimate.interval
        return cls(
            name=name,
            value=float(estimate.value),
            interval=None if interval is None else (_to_closed_limit(interval.low), _to_closed_limit(interval.high)),
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
        from recollect.stats.intervals import Estimate, Interval

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
    code: Code
    reason: Sentence
    finding: Name | None = None
    """The one finding that is missing; null if the whole audit was skipped."""


class Withheld(_Frozen):
    """A finding that could be computed and would mislead, so it is not told."""

    finding: Name
    code: Code
    reason: Sentence


class Failed(_Frozen):
    """What was tried and went wrong."""

    audit: Name
    code: Code
    error: Sentence


class GuardCheck(_Frozen):
    """One respect in which the audited and the controls were compared before any score was."""

    name: Code
    """Records per user, length, date, vocabulary …"""
    p_value: Annotated[float, Field(ge=0, le=1)] | None = None
    effect: float | None = None
    comparable: bool
    text: Sentence
    """What differs and what controls would do; or that nothing does."""


class Guard(_Frozen):
    """Whether two sides are comparable, such as the audited and the controls, whatever a model says of them."""

    sides: tuple[str, str] = ("audited", "controls")
    """What was compared with what."""
    comparable: bool
    checks: tuple[GuardCheck, ...] = ()


class Placebo(_Frozen):
    """Controls in the place of the audited, through the same pipeline: how often the audit accuses them."""

    status: Literal["passed", "failed", "not_run"]
    reason: Sentence | None = None
    """Why it was not run, or what its failure means."""
    false_positive_rate: Annotated[float, Field(ge=0, le=1)] | None = None
    interval: tuple[float, float] | None = None
    runs: Annotated[int, Field(ge=0)] = 0


class Power(_Frozen):
    """What this design could have found at all."""

    smallest_p: Annotated[float, Field(ge=0, le=1)] | None = None
    """The smallest p-value that any outcome of this design could have given."""
    minimum_detectable_effect: float | None = None
    effect_unit: str | None = None
    needed: dict[Code, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    """How much data would do, by name: controls, records per user …"""


class LimitCheck(_Frozen):
    """A limit that was set on a finding, and whether it was kept."""

    limit: Sentence
    """As it was written: `auc.lower>0.6`."""
    status: Literal["kept", "exceeded", "not_checked"]
    value: float | None = None
    reason: Sentence | None = None
    """Why it could not be checked."""


class About(_Frozen):
    """What was audited, for whom and when."""

    system: str | None = None
    """The name of the audited system."""
    version: str | None = None
    who: str | None = None
    """Who ran the audit."""
    purpose: str | None = None
    date: str | None = None
    """ISO 8601."""


class EndpointFacts(_Frozen):
    """What is known of a model behind a server."""

    url: str
    served_name: str
    server: str | None = None
    generation: int = 0
    """Raised whenever a repeated probe answered otherwise."""
    noise_floor: float | None = None
    """By how many nats the same request may answer differently."""


class ModelFacts(_Frozen):
    """Which model it was."""

    name: str
    digest: str
    revision: str | None = None
    """The resolved commit of a hub model."""
    endpoint: EndpointFacts | None = None


class Provenance(_Frozen):
    """What the result came from: enough to do it again. All but `seconds` and `date` is the same each time."""

    recollect: str
    torch: str | None = None
    """Its version; null where no model ran, as when stored answers were read."""
    versions: dict[str, str] = Field(default_factory=dict)
    """Of other packages that may change a number."""
    model: str | None = None
    """Digest of the audited model."""
    corpus: str | None = None
    """Digest of the audited corpus."""
    digests: dict[str, str] = Field(default_factory=dict)
    """Of all else that was used, by its role: controls, references, cohorts …"""
    models: dict[str, ModelFacts] = Field(default_factory=dict)
    """Every model by its role, with its name and resolved revision."""
    seed: int
    queries: Annotated[int, Field(ge=0)]
    """How many records the audited model scored."""
    seconds: Annotated[float, Field(ge=0)]
    date: str | None = None
    """The day on which the run ended, in UTC, as ISO 8601."""


class Result(_Frozen):
    """What an audit found: the answer to its question."""

    schema_version: Literal["2"] = SCHEMA_VERSION
    audit: Name
    question: Sentence
    verdict: Text
    """One sentence that a lawyer can read."""
    outcome: Outcome
    """Whether what the question is after was found."""
    outcome_code: Code | None = None
    """Why the outcome is inconclusive; given then, and only then."""
    severity: Severity | None = None
    next_step: Sentence | None = None
    """What to do about it."""
    findings: tuple[Finding, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    """Findings that are not told because they would mislead, each with the reason."""
    guard: Guard | None = None
    """Whether the audited and the controls are comparable; null where the audit has no such check."""
    placebo: Placebo | None = None
    power: Power | None = None
    limits: tuple[LimitCheck, ...] = ()
    """The limits that the plan or `--fail-if` set on findings, and whether each was kept."""
    tables: dict[str, TablePath] = Field(default_factory=dict)
    """Longer tables, by name: where they are in the run folder, as Parquet."""
    untested: tuple[Sentence, ...] = ()
    """What this audit does not test."""
    notes: tuple[Note, ...] = ()
    """What a reader ought to know, such as a warning that the comparison may be unfair."""
    skipped: tuple[Skipped, ...] = ()
    failed: tuple[Failed, ...] = ()
    dropped: dict[Code, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    """How many records were left out, by reason; of a corpus that was given, after its role: `audited.empty_text`."""
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    """All settings of the audit, defaults included."""
    about: About | None = None
    provenance: Provenance | None = None
    """Null only until the run is over: a result without it cannot be saved."""

    _tables_in_memory: dict[str, pa.Table] = PrivateAttr(default_factory=dict)

    @field_validator("findings")
    @classmethod
    def _check_unique_names(cls, findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
        """Two findings of one name could not be distinguished by a limit on that name."""
        names = [finding.name for finding in findings]
        if len(set(names)) < len(names):
            raise ValueError("two findings have the same name")
        return findings

    @field_validator("settings")
    @classmethod
    def _check_numbers(cls, settings: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Settings are written as JSON, which knows neither NaN nor infinity."""
        json.dumps(settings, allow_nan=False)
        return settings

    @model_validator(mode="after")
    def _check_outcome_code(self) -> Self:
        """A code of the outcome is given if, and only if, it is inconclusive."""
        if (self.outcome == "inconclusive") != (self.outcome_code is not None):
            raise ValueError("an inconclusive outcome has a code, and no other outcome has one")
        return self

    def finding(self, name: str) -> Finding:
        """The finding of that name."""
        return {finding.name: finding for finding in self.findings}[name]

    def replace(self, **fields: Any) -> Self:
        """The result with other values of some fields, checked anew; its tables stay in memory."""
        made = type(self).model_validate({**dict(self), **fields})
        made._tables_in_memory.update(self._tables_in_memory)
        return made

    def with_tables(self, **tables: pa.Table) -> Self:
        """The result with longer tables, which are held in memory until the run folder writes them."""
        paths = {name: f"tables/{self.audit}/{name}.parquet" for name in tables}
        made = self.replace(tables={**self.tables, **paths})
        made._tables_in_memory.update(tables)
        return made

    def with_provenance(self, provenance: Provenance) -> Self:
        """The result once it is known what it came from and what it cost."""
        return self.model_copy(update={"provenance": provenance})

    @property
    def note_codes(self) -> tuple[str, ...]:
        """The codes of all notes, in their order."""
        return tuple(note.code for note in self.notes)

    @property
    def verdict_text(self) -> str:
        """The verdict as one string, people under their own ids."""
        return render_text(self.verdict)

    @property
    def tables_in_memory(self) -> Mapping[str, pa.Table]:
        """The tables that are still in memory."""
        return self._tables_in_memory


def _to_closed_limit(limit: float) -> float | None:
    """A limit of an interval as the JSON of a result has it: null for none."""
    return float(limit) if math.isfinite(limit) else None
