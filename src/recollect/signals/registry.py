"""The signals by name: a table one can read, and the plug-ins of others."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.checks import suggest_name
from recollect.errors import PlanError

if TYPE_CHECKING:
    from recollect.signals.signal import Signal


@dataclass(frozen=True)
class Registry:
    """Classes by name: ours from a literal table, others' by entry points. Nothing is imported before it is used."""

    noun: str
    """What the classes are, for messages: "signal"."""
    table: Mapping[str, str]
    """Ours: name → "module:class"."""
    reserved: frozenset[str] = frozenset()
    """Further names that no plug-in can have, because users call something else by them."""

    @cached_property
    def _plugins(self) -> dict[str, EntryPoint]:
        """Others', from the entry-point group `recollect.signals` or `recollect.audits`."""
        found = {entry.name: entry for entry in entry_points(group=f"recollect.{self.noun}s")}
        if taken := sorted(found.keys() & (self.table.keys() | self.reserved)):
            raise PlanError(
                f"An installed plug-in ({found[taken[0]].value}) calls its {self.noun} {taken[0]!r}, a name of ours.",
                do="Remove that package, or have it choose another name.",
                code="plugin_name_taken",
            )
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """All names, ours first."""
        return (*self.table, *sorted(self._plugins))

    def locate(self, name: str) -> str:
        """Where the class of that name is: "module:class".

        Raises:
            PlanError: There is none; the nearest name is suggested.
        """
        if name not in self.names:
            known = f"Known: {', '.join(self.names)}." if self.names else "There is none yet."
            raise PlanError(
                f"There is no {self.noun} {name!r}.",
                do=f"{suggest_name(name, self.names)}{known}",
                code=f"unknown_{self.noun}",
            )
        return self.table[name] if name in self.table else self._plugins[name].value

    def load(self, name: str) -> Any:
        """The class of that name.

        Raises:
            PlanError: There is none, or the plug-in that offers it cannot be imported.
        """
        module, _, attribute = self.locate(name).partition(":")
        try:
            return getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            if name in self.table:
                raise
            raise PlanError(
                f"The {self.noun} {name!r} of a plug-in cannot be loaded: {error}",
                do=f"Repair or remove the package that offers {self.locate(name)}.",
                code="plugin_broken",
            ) from error

    def make(self, name: str, settings: Mapping[str, Any]) -> Any:
        """An instance of the class of that name with these settings.

        Raises:
            PlanError: There is no such class, or it has no such setting.
        """
        kind = self.load(name)
        known = [setting.name for setting in fields(kind)]
        for setting in settings:
            if setting not in known:
                offered = f"It has: {', '.join(known)}." if known else "It has none."
                raise PlanError(
                    f"The {self.noun} {name!r} has no setting {setting!r}.",
                    do=f"{suggest_name(setting, known)}{offered}",
                    code="unknown_setting",
                )
        required = [each.name for each in fields(kind) if each.default is MISSING and each.default_factory is MISSING]
        missing = [name for name in required if name not in settings]
        if missing:
            raise PlanError(
                f"The {self.noun} {name!r} needs {missing[0]!r}.",
                do=f"Give {', '.join(missing)}.",
                code="missing_setting",
            )
        return kind(**settings)

    def describe(self, name: str) -> str:
        """What the class of that name is, in one line, read from its file without importing it."""
        module, _, attribute = self.locate(name).partition(":")
        try:
            spec = find_spec(module)
        except ImportError:  # a plug-in that is broken: `load` says so, and lists continue
            return ""
        source = Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else ""
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef) and node.name == attribute:
                return (ast.get_docstring(node) or "").partition("\n")[0]
        return ""


SIGNALS = Registry(
    "signal",
    {
        "loss": "recollect.signals.loss:Loss",
        "ratio": "recollect.signals.ratio:Ratio",
        "zlib": "recollect.signals.zlib_ratio:Zlib",
        "lowest-tokens": "recollect.signals.lowest_tokens:LowestTokens",
        "min-k-plus-plus": "recollect.signals.min_k_plus_plus:MinKPlusPlus",
        "lowercase": "recollect.signals.lowercase:Lowercase",
        "recall": "recollect.signals.recall:Recall",
        "neighbourhood": "recollect.signals.neighbourhood:Neighbourhood",
        "confidence": "recollect.signals.confidence:Confidence",
        "entropy": "recollect.signals.entropy:Entropy",
        "modified-entropy": "recollect.signals.modified_entropy:ModifiedEntropy",
        "lira": "recollect.signals.lira:Lira",
        "lira-offline": "recollect.signals.lira_offline:LiraOffline",
        "rmia": "recollect.signals.rmia:Rmia",
        "ensemble": "recollect.signals.ensemble:Ensemble",
    },
)
"""Every signal, by the name that plans and options use."""


def make_signal(name: str, **settings: Any) -> Signal:
    """The signal that is registered under that name, with these settings.

    Raises:
        PlanError: There is no such signal or setting; the nearest is suggested.
    """
    made: Signal = SIGNALS.make(name, settings)
    return made
