"""What is printed: no character that a terminal obeys, and one place that prints."""

from __future__ import annotations

import ast
import io
import json
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import recollect
from recollect.printable import PrintableStream, escape_controls, escape_json, escape_line, escape_message

SOURCE = Path(recollect.__file__).parent
PRINTING = {"cli/console.py", "cli/__init__.py", "cli/output_streams.py", "execution/local.py", "errors.py"}
PRINTING |= {"testing/llama_server.py"}  # a program of its own, which tells its address to the test that started it
"""Modules that may name standard output or standard error: the one that prints, and those that set it up."""
ANY_TEXT = st.text(st.characters(codec=None))


def is_plain(text):
    """Whether a terminal prints all of it, and does nothing else."""
    return all(character == "\n" or character.isprintable() or character.isspace() for character in text) and not set(
        text
    ) & set("\t\r\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029")


@given(ANY_TEXT)
def test_nothing_printed_moves_a_terminal(text):
    assert is_plain(escape_controls(text))
    assert is_plain(escape_message(text))
    assert "\n" not in escape_line(text)
    escape_controls(text).encode()  # lone surrogates of file names are spelt out, too


@given(ANY_TEXT)
def test_json_says_the_same_after_escaping(text):
    document = escape_json(json.dumps({text: [text]}, ensure_ascii=False, indent=2))
    assert is_plain(document)
    assert json.loads(document) == {text: [text]}


def test_what_libraries_write_is_escaped_and_progress_bars_become_lines():
    terminal = io.StringIO()
    stream = PrintableStream(terminal)
    print("\r50 %\r100 %\x1b[A owned", file=stream)
    assert terminal.getvalue() == "\n50 %\n100 %\\x1b[A owned\n"
    assert not stream.isatty()


def test_one_place_prints():
    found = set()
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if not any(word in text for word in ("print", "stdout", "stderr")):
            continue
        for node in ast.walk(ast.parse(text)):
            prints = isinstance(node, ast.Name) and node.id == "print"
            streams = isinstance(node, ast.Attribute) and node.attr in ("stdout", "stderr")
            if prints or (streams and isinstance(node.value, ast.Name) and node.value.id == sys.__name__):
                found.add(path.relative_to(SOURCE).as_posix())
    assert found <= PRINTING
