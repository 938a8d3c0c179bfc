"""The tree of the source: short modules, names that lead to one place, and the field's words."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

import recollect

HOME = Path(recollect.__file__).parent
HOME_MADE = {"symbol", "spread", "desk", "hands", "scribe", "crew", "hill", "unsure", "chance", "judged", "gathered"}
HOME_MADE |= {"asked", "told", "said", "beginnings", "walk"}
"""Words that the field has other terms for."""


@cache
def parse_modules():
    return {path.relative_to(HOME).as_posix(): ast.parse(path.read_bytes()) for path in sorted(HOME.rglob("*.py"))}


def test_no_module_is_longer_than_400_lines():
    lengths = {path.relative_to(HOME).as_posix(): len(path.read_bytes().splitlines()) for path in HOME.rglob("*.py")}
    assert {name: length for name, length in lengths.items() if length > 400} == {}


def test_a_private_helper_is_in_one_module():
    homes = defaultdict(set)
    for module, tree in parse_modules().items():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name.startswith("_"):
                homes[node.name].add(module)
    shared = {name: sorted(modules) for name, modules in homes.items() if len(modules) > 1}
    assert {name: modules for name, modules in shared.items() if not name.startswith("__")} == {}


def test_identifiers_are_the_words_of_the_field():
    found = set()
    for module, tree in parse_modules().items():
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                    pass
                case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                    pass
                case _:
                    continue
            if HOME_MADE & set(name.lower().split("_")):
                found.add((module, name))
    assert found == set()
