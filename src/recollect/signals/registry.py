"""The signals by name: a table one can read, and the plug-ins of others."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.checks import check_names, read_setting, suggest_name
from recollect.errors import PlanError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

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
    own_hint: str = ""
    """How users make one of their own known, for messages about unknown names."""
    required: tuple[str, ...] = ()
    """The attributes that every class must have."""
    registered: dict[str, type] = field(default_factory=dict)
    """Those of this process, by `register`."""

    @cached_property
    def _plugins(self) -> dict[str, EntryPoint]:
        """Others', from the entry-point group `recollect.signals` or `recollect.audits`."""
        from importlib.metadata import entry_points  # a report of our own audits does without it

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
        return (*self.table, *sorted({*self._plugins, *self.registered}))

    @property
    def plugins(self) -> tuple[str, ...]:
        """The names of those that other packages offer."""
        return tuple(sorted(self._plugins))

    def register(self, kind: Any) -> None:
        """Make a class known under its `name` in this process; one of that name that was registered before is replaced.

        Args:
            kind: A dataclass, whose fields are its settings.

        Raises:
            PlanError: It is no dataclass, lacks something, or its name is taken.
        """
        if lack := self._find_lack(kind):
            raise PlanError(
                f"{getattr(kind, '__name__', repr(kind))} is no {self.noun}: {lack}.",
                do=self._build_class_hint(),
                code=f"invalid_{self.noun}",
            )
        name = str(getattr(kind, "name"))  # noqa: B009 - it has one
        check_names(self.noun, [name])
        if name in self.table or name in self._plugins or name in self.reserved:
            raise PlanError(
                f"There is a {self.noun} {name!r} already.", do="Choose another name.", code="plugin_name_taken"
            )
        self.registered[name] = kind

    def _find_lack(self, kind: Any) -> str:
        """What keeps a class from being one of these; nothing, if it is one."""
        if not isinstance(kind, type):
            return "it is no class"
        settings = {each.name for each in fields(kind)} if is_dataclass(kind) else set()
        missing = [each for each in self.required if not hasattr(kind, each) and each not in settings]
        if missing:
            return f"it has no {', '.join(missing)}"
        return "" if is_dataclass(kind) else "it is no dataclass"

    def _build_class_hint(self) -> str:
        """What a class has to be, for messages."""
        has = f" that has {', '.join(self.required)}" if self.required else ""
        article = "an" if self.noun == "audit" else "a"
        return (
            f"Follow the page *Add {article} {self.noun}* (docs/how-to/add-{article}-{self.noun}.md): a class with "
            f"@dataclass(frozen=True, kw_only=True){has}."
        )

    def locate(self, name: str) -> str:
        """Where the class of that name is: "module:class".

        Raises:
            PlanError: There is none; the nearest name is suggested.
        """
        if name not in self.names:
            known = f"Known: {', '.join(self.names)}." if self.names else "There is none yet."
            raise PlanError(
                f"There is no {self.noun} {name!r}.",
                do=f"{suggest_name(name, self.names)}{known} {self.own_hint}".strip(),
                code=f"unknown_{self.noun}",
            )
        if name in self.registered:
            return f"{self.registered[name].__module__}:{self.registered[name].__qualname__}"
        return self.table[name] if name in self.table else self._plugins[name].value

    def load(self, name: str) -> Any:
        """The class of that name.

        Raises:
            PlanError: There is none, or the plug-in that offers it cannot be imported.
        """
        if name in self.registered:
            return self.registered[name]
        module, _, attribute = self.locate(name).partition(":")
        if name in self.table:
            return getattr(import_module(module), attribute)
        try:
            kind = getattr(import_module(module), attribute)
        except Exception as error:  # whatever the code of others raises
            raise self._build_broken_error(name, f"cannot be loaded: {type(error).__name__}: {error}") from error
        if lack := self._find_lack(kind):
            raise self._build_broken_error(name, f"cannot be used: {lack}", self._build_class_hint())
        return kind

    def _build_broken_error(self, name: str, fault: str, hint: str = "") -> PlanError:
        """What is wrong with a plug-in, and what to do."""
        return PlanError(
            f"The {self.noun} {name!r} of a plug-in {fault.rstrip('.')}.",
            do=f"Repair or remove the package that offers {self.locate(name)}. {hint}".strip(),
            code="plugin_broken",
        )

    def find_fault(self, name: str) -> str:
        """Why a plug-in cannot be used, by importing it; nothing, if it can."""
        try:
            self.load(name)
        except PlanError as error:
            return error.found
        return ""

    def make(self, name: str, settings: Mapping[str, Any]) -> Any:
        """An instance of the class of that name with these settings.

        Raises:
            PlanError: There is no such class, it has no such setting, or a value is not of the setting's type.
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
        return self._construct(name, kind, settings)

    def _construct(self, name: str, kind: Any, settings: Mapping[str, Any]) -> Any:
        """The instance; what the class of a plug-in raises about its settings refuses them."""
        owner = f"{self.noun} {name!r}"
        given = {setting: read_setting(kind, setting, value, owner=owner) for setting, value in settings.items()}
        try:
            return kind(**given)
        except (TypeError, ValueError) as error:
            if name in self.table:
                raise
            raise PlanError(
                f"The {self.noun} {name!r} refuses its settings: {error}",
                do="Change them, or leave them out for the defaults.",
                code="invalid_setting",
            ) from error

    def describe(self, name: str) -> str:
        """What the class of that name is, in one line, read from its file without importing it."""
        if name in self.registered:
            return (self.registered[name].__doc__ or "").strip().partition("\n")[0]
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
    required=("name", "paper", "kinds", "needs", "score"),
    own_hint="One of your own has to be installed as a plug-in, or registered in the same program "
    "(recollect.register_signal).",
)
"""Every signal, by the name that plans and options use."""


def make_signal(name: str, **settings: Any) -> Signal:
    """The signal that is registered under that name, with these settings.

    Raises:
        PlanError: There is no such signal or setting; the nearest is suggested.
    """
    made: Signal = SIGNALS.make(name, settings)
    return made


def register_signal(kind: type) -> type:
    """Make a signal of your own known to membership audits of this process, by its `name`; also as a decorator.

    Commands and plans that are run elsewhere know it only once a package that offers it is installed.

    Args:
        kind: The class of the signal: a dataclass with `name`, `paper`, `kinds`, `needs` and `score`, whose fields are
            its settings. See the page *Add a signal*.

    Raises:
        PlanError: It is no signal, or there is another one of its name.
    """
    SIGNALS.register(kind)
    return kind


def name_signal(signal: Any) -> tuple[str, dict[str, Any]]:
    """The name and the settings of a signal that was given as an object or a class, which is registered.

    Raises:
        PlanError: It is no signal.
    """
    kind = signal if isinstance(signal, type) else type(signal)
    name = getattr(kind, "name", None)
    if not isinstance(name, str) or name not in SIGNALS.names or SIGNALS.load(name) is not kind:
        register_signal(kind)
    given = {} if kind is signal else {each.name: getattr(signal, each.name) for each in fields(signal)}
    return str(name), given
