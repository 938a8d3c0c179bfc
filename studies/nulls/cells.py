"""Cells of the table: an audit with its settings, a design, and how many worlds are drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from designs import DESIGNS, Design
from people import IMAGES, SOURCES, TARGETS, TEXTS

from recollect.audits.audit import Audit
from recollect.audits.exposure.audit import ExposureAudit
from recollect.audits.leakage.audit import LeakageAudit
from recollect.audits.membership.audit import MembershipAudit
from recollect.audits.provenance.audit import ProvenanceAudit
from recollect.audits.removal.audit import RemovalAudit

MANY, FEW = 800, 200
"""Worlds of a cell that decides, and of any other."""
FEW_RECORDS = 10
"""Of each person, in cells that decide nothing."""
Models = Literal["alone", "cased", "reference", "fleet", "calibration", "removal", "folds", "secrets"]
"""Which models the audit is given: the target alone; one that reads capitals, alone; a reference; a fleet that saw half
of the audited and of the controls (LiRA, RMIA); a fleet that saw other controls (provenance); one that saw half of the
controls (removal); or models in place of those that a recipe would train without folds of the users (leakage).
"secrets": the target alone, asked about secrets (exposure)."""
SHADOW_SIGNALS = ("lira", "lira-offline", "rmia", "ensemble")
PLAIN_SIGNALS = ("loss", "ratio", "zlib", "lowest-tokens", "min-k-plus-plus", "entropy")
DERIVING_SIGNALS = ("lowercase", "recall", "neighbourhood")
"""They ask the target about records of their own making, so their worlds are small and few."""
LABEL_SIGNALS = ("confidence", "modified-entropy", "entropy", "loss", "lira", "rmia")
"""Of classifiers."""


@dataclass(frozen=True, kw_only=True)
class Method:
    """An audit with its settings, and which models it is given."""

    name: str
    build: Callable[..., Audit]
    settings: Mapping[str, Any] = field(default_factory=dict)
    models: Models = "alone"
    by_record: bool = False
    sets: tuple[str, ...] = TEXTS

    @property
    def audit(self) -> str:
        """The name of the audit."""
        return self.make().name

    def make(self) -> Audit:
        """The audit."""
        return self.build(**self.settings)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One row of the table."""

    method: Method
    design: Design
    worlds: int
    """In all sets together."""

    @property
    def sets(self) -> tuple[str, ...]:
        """The sets in which it can be drawn: made-up people write without times."""
        if self.design.period == "any" and not self.design.timed:
            return self.method.sets
        return tuple(name for name in self.method.sets if SOURCES[name].time)

    @property
    def most_records(self) -> int | None:
        """Of each person: fewer where nothing is decided, so that a full run is done in two hours."""
        return None if self.worlds == MANY else FEW_RECORDS

    @property
    def first_target(self) -> int:
        """From which number on targets take their turns: those of one period where periods differ."""
        return 0 if self.design.period == "any" else TARGETS

    @property
    def worlds_each(self) -> int:
        """In each set."""
        return -(-self.worlds // len(self.sets))

    @property
    def name(self) -> str:
        """Names its file and its random streams."""
        return f"{self.method.name}.{self.design.name}"


def _list_methods() -> dict[str, Method]:
    """Every audit with every signal."""
    methods = [
        Method(
            name=f"membership-{by}-{signal}",
            build=MembershipAudit,
            settings={"signal": signal, "by": by},
            models=_choose_models(signal),
            by_record=by == "record",
        )
        for signal in (*PLAIN_SIGNALS, *SHADOW_SIGNALS)
        for by in ("user", "record")
    ]
    methods += [
        Method(
            name=f"membership-user-{signal}",
            build=MembershipAudit,
            settings={"signal": signal, "by": "user"}
            | ({"signal_settings": {"count": 2}} if signal == "neighbourhood" else {}),
            models="cased" if signal == "lowercase" else "alone",
        )
        for signal in DERIVING_SIGNALS
    ]
    methods += [
        Method(
            name=f"digits-membership-user-{signal}",
            build=MembershipAudit,
            settings={"signal": signal, "by": "user"},
            models=_choose_models(signal),
            sets=IMAGES,
        )
        for signal in LABEL_SIGNALS
    ]
    methods += [
        Method(
            name=f"digits-removal-{by}",
            build=RemovalAudit,
            settings={"models": 10, "by": "user" if by == "user" else "set"},
            models="removal",
            by_record=by == "record",
            sets=IMAGES,
        )
        for by in ("set", "user", "record")
    ]
    methods += [
        Method(name="leakage", build=LeakageAudit, models="reference"),
        Method(name="leakage-top-10", build=LeakageAudit, settings={"top_k": 10}, models="reference"),
        Method(name="leakage-folds", build=LeakageAudit, models="folds"),
        Method(name="exposure", build=ExposureAudit, settings={"draws": 1024}, models="secrets"),
        Method(name="provenance", build=ProvenanceAudit, models="calibration"),
        Method(
            name="provenance-histogram", build=ProvenanceAudit, settings={"method": "histogram"}, models="calibration"
        ),
        Method(name="removal-set", build=RemovalAudit, settings={"models": 10}, models="removal"),
        Method(name="removal-record", build=RemovalAudit, settings={"models": 10}, models="removal", by_record=True),
        Method(name="removal-user", build=RemovalAudit, settings={"models": 10, "by": "user"}, models="removal"),
    ]
    return {method.name: method for method in methods}


def _choose_models(signal: str) -> Models:
    """What a signal compares the target with."""
    if signal in SHADOW_SIGNALS:
        return "fleet"
    return "reference" if signal == "ratio" else "alone"


METHODS = _list_methods()
_BY_USER = ("1-record", "2-records", "5-records", "one-1-record", "one-2-records", "one-5-records")
_DECIDING = {
    "membership-user-loss": ("equal", *_BY_USER),
    "membership-user-ratio": ("1-record", "one-1-record"),
    "membership-record-loss": ("short",),
    "membership-record-ratio": ("short",),
    "leakage": ("three",),
    "leakage-top-10": ("half-controls", "sixth-controls", "another-month"),
    "provenance": ("one-another-month", "one-another-month-unknown"),
    "removal-record": ("100-records",),
    "exposure": ("secrets-5",),
}
"""Cells that decide: in which 0.1.0 failed, an equal design beside them, and two in which one target stood out."""
_OTHERS = {
    "membership-user-loss": (
        "one",
        "three",
        "19-controls",
        "few-controls",
        "199-controls",
        "half-controls",
        "sixth-controls",
        "short",
        "equal-timed",
        "one-timed",
        "another-month",
        "another-month-unknown",
        "one-another-month",
        "one-another-month-unknown",
        "heavy-tails",
        "ties",
        "known",
    ),
    "membership-user-ratio": (
        "equal",
        "2-records",
        "5-records",
        "one-5-records",
        "sixth-controls",
        "another-month",
        "known",
    ),
    "membership-record-loss": (
        "equal",
        "one",
        "few-controls",
        "1000-controls",
        "another-month",
        "heavy-tails",
        "ties",
        "known",
    ),
    "membership-record-ratio": ("equal",),
    "exposure": ("secrets-1", "secrets-2", "secrets-20", "secrets-50"),
    "leakage": ("forty", "equal-timed", "5-records", "short", "half-controls", "another-month", "heavy-tails"),
    "leakage-top-10": ("forty", "another-month-unknown"),
    "leakage-folds": ("forty", "another-month"),
    "provenance": ("equal", "one", "three", "one-timed", "19-controls", "5-records", "half-controls", "short"),
    "provenance-histogram": ("equal", "one", "5-records"),
    "removal-set": (
        "equal",
        "one",
        "three",
        "equal-timed",
        "5-records",
        "half-controls",
        "short",
        "another-month",
        "half-in",
        "all-in",
    ),
    "removal-record": ("20-records", "short", "another-month", "half-in"),
    "removal-user": ("one", "three", "5-records", "half-controls", "another-month"),
}
_REST = ("equal", "1-record", "another-month")
"""Of every other signal, by user; by record only the first."""


def list_cells() -> list[Cell]:
    """All cells, those that decide first."""
    cells = [
        Cell(method=METHODS[method], design=DESIGNS[design], worlds=MANY)
        for method, designs in _DECIDING.items()
        for design in designs
    ]
    cells += [
        Cell(method=METHODS[method], design=DESIGNS[design], worlds=FEW)
        for method, designs in _OTHERS.items()
        for design in designs
    ]
    cells += [
        Cell(method=METHODS[f"membership-user-{signal}"], design=DESIGNS[design], worlds=FEW)
        for signal in DERIVING_SIGNALS
        for design in ("small", "small-1-record")
    ]
    cells += [
        Cell(method=method, design=DESIGNS[design], worlds=FEW)
        for name, method in METHODS.items()
        if name.startswith("digits-")
        for design in _list_image_designs(method)
    ]
    done = {cell.method.name for cell in cells}
    rest = [name for name in METHODS if name not in done]
    cells += [
        Cell(method=METHODS[name], design=DESIGNS[design], worlds=FEW)
        for name in rest
        for design in (_REST if "user" in name else _REST[:1])
    ]
    return cells


def _list_image_designs(method: Method) -> tuple[str, ...]:
    """The designs of an audit of a classifier."""
    if method.by_record:
        return ("100-records", "20-records")
    if method.name == "digits-removal-user":
        return ("one", "three", "5-records", "half-in")  # 80 controls are too few to identify any of 20
    if method.build is RemovalAudit:
        return ("100-people", "equal", "5-records", "half-in")  # 20 can be accused, but not cleared
    return ("equal", "1-record", "5-records")
