"""YAML documents that people write: no key is twice, and every complaint names the file and the line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.constructor import SafeConstructor

from recollect.errors import PlanError

Overrides = Mapping[str, Any] | Iterable[str]
"""Settings to change: a mapping, or strings of the form "a.b=c"."""


MAX_CHARACTERS = 4_000_000
"""Of a document: a plan with a list of 100,000 ids has fewer."""
MAX_NODES = 1_000_000
"""Values and keys in a document, aliases written out."""
MAX_DEPTH = 50
"""How deep sections may be inside each other, through aliases, too."""


@dataclass(frozen=True)
class Document:
    """What a YAML file says, and where."""

    name: str
    settings: dict[str, Any]
    node: yaml.Node | None = None
    """None for settings that were not written down."""

    @classmethod
    def read(cls, text: str, *, name: str, do: str) -> Document:
        """The settings in a text, which must be a mapping without repeated keys.

        Args:
            text: YAML.
            name: Of the file, for messages.
            do: What to do if this is no such file.

        Raises:
            PlanError: It is not.
        """
        try:
            node, settings = compose_yaml(text, name=name), yaml.safe_load(text)
            repeated = next(_find_repeated_keys(node), None)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise PlanError(f"{name} is not YAML: {error}", do=do, code="not_yaml") from error
        if not isinstance(settings, dict):
            raise PlanError(f"{name} does not contain settings.", do=do, code="not_a_mapping")
        if repeated is not None:
            line = repeated.start_mark.line + 1
            raise PlanError(
                f"{name} line {line}: {repeated.value!r} is given twice.", do="Keep one of them.", code="repeated_key"
            )
        return cls(name, settings, node)

    def locate(self, path: Sequence[str]) -> str:
        """The file and the line of a setting, or of the deepest section on the way to it."""
        line, node = None, self.node
        for step in path:
            if isinstance(node, yaml.MappingNode):
                for key, value in node.value:
                    if key.value == step:
                        line, node = key.start_mark.line + 1, value
            elif isinstance(node, yaml.SequenceNode) and step.isdecimal() and int(step) < len(node.value):
                node = node.value[int(step)]
                line = node.start_mark.line + 1
        return self.name if line is None else f"{self.name} line {line}"


def load_yaml(text: str, *, name: str) -> Any:
    """The values of a YAML document: plain values only, and no more than a person would write.

    Raises:
        PlanError: It expands to too much.
        yaml.YAMLError, ValueError, RecursionError: It is no YAML.
    """
    node = compose_yaml(text, name=name)
    return None if node is None else SafeConstructor().construct_document(node)


def compose_yaml(text: str, *, name: str) -> yaml.Node | None:
    """The nodes of a YAML document, none of which is looked at before it is known how much they expand to.

    A few lines of aliases of aliases, or of merged mappings, expand to more than a machine can hold.

    Raises:
        PlanError: It is too long, expands to too much, or contains itself.
    """
    node = yaml.compose(text, Loader=yaml.SafeLoader) if len(text) <= MAX_CHARACTERS else None
    if len(text) > MAX_CHARACTERS or _count_nodes(node, {}, 0) > MAX_NODES:
        raise PlanError(
            f"{name} is too large: it has {len(text):,} characters, and aliases and merges (&, *, <<) count in full.",
            do=f"Write at most {MAX_CHARACTERS:,} characters and {MAX_NODES:,} values; longer lists go into files.",
            code="document_too_large",
        )
    return node


def _count_nodes(node: yaml.Node | None, known: dict[int, float], depth: int) -> float:
    """How many nodes a YAML document has once every alias is written out; infinitely many if it contains itself."""
    if node is None or depth > MAX_DEPTH:
        return 0 if node is None else math.inf
    if id(node) not in known:
        known[id(node)] = math.inf  # until it is counted: whoever meets it on the way down is inside of it
        pairs = isinstance(node, yaml.MappingNode)
        inner = [each for pair in node.value for each in pair] if pairs else node.value
        children = inner if isinstance(node, yaml.CollectionNode) else []
        known[id(node)] = 1 + sum(_count_nodes(child, known, depth + 1) for child in children)
    return known[id(node)]


def parse_overrides(overrides: Overrides) -> Iterator[tuple[str, Any]]:
    """Each setting of a document to override with its value; strings are read as YAML.

    >>> list(parse_overrides(["training.epochs=2"]))
    [('training.epochs', 2)]
    """
    if isinstance(overrides, Mapping):
        yield from overrides.items()
        return
    for item in overrides:
        key, equals, value = item.partition("=")
        if not equals or not key.strip():
            raise PlanError(
                f"{item!r} does not set anything.",
                do="Write it as setting=value, such as training.epochs=3.",
                code="override_without_value",
            )
        try:
            yield key.strip(), load_yaml(value, name=f"The value of {key.strip()}")
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise PlanError(f"The value in {item!r} is not YAML.", do="Put it in quotes.", code="not_yaml") from error


def set_at_path(settings: dict[str, Any], path: Sequence[str], value: Any) -> None:
    """Put a value into a document where the path leads, making sections on the way.

    >>> settings = {"seed": 1}
    >>> set_at_path(settings, ["audits", "leakage", "top_k"], 3)
    >>> settings
    {'seed': 1, 'audits': {'leakage': {'top_k': 3}}}
    """
    *sections, last = path
    for name in sections:
        if not isinstance(settings.get(name), dict):
            settings[name] = {}
        settings = settings[name]
    settings[last] = value


def _find_repeated_keys(node: yaml.Node | None) -> Iterator[yaml.ScalarNode]:
    """Keys that occur more than once in one mapping of a YAML document; YAML would silently take the last."""
    if isinstance(node, yaml.SequenceNode):
        for each in node.value:
            yield from _find_repeated_keys(each)
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if isinstance(key.value, str) and key.value in seen:
                yield key
            seen.add(str(key.value))
            yield from _find_repeated_keys(value)
