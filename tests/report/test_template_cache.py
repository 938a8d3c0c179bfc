"""Compiled templates are kept beside their sources, and used only as long as nothing they depend on has changed."""

from __future__ import annotations

import sys

import pytest
from jinja2 import DictLoader, Environment, FileSystemLoader

from recollect.report import template_cache
from recollect.report.template_cache import TemplateCache


@pytest.fixture(autouse=True)
def _python_writes_bytecode(monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)


def render(folder, text="<{{ name }}>"):
    (folder / "page.html").write_text(text)
    environment = Environment(loader=FileSystemLoader(folder), autoescape=True, bytecode_cache=TemplateCache())
    return environment.get_template("page.html").render(name="a&b")


def find_kept(folder):
    (path,) = (folder / "__pycache__").glob("page.html.*.pyc")
    return path


def test_a_kept_template_is_not_compiled_again_and_renders_the_same(tmp_path, monkeypatch):
    first = render(tmp_path)
    monkeypatch.setattr(Environment, "compile", lambda *_: pytest.fail("it was compiled"))
    assert render(tmp_path) == first == "<a&amp;b>"


@pytest.mark.parametrize("change", ["source", "engine", "ours", "bytes", "cut"])
def test_what_no_longer_fits_is_compiled_anew(tmp_path, monkeypatch, change):
    render(tmp_path)
    kept = find_kept(tmp_path)
    before = kept.read_bytes()
    if change == "engine":
        monkeypatch.setattr(template_cache, "__version__", "0")
    if change == "ours":
        monkeypatch.setattr(template_cache, "_DECIDING", ("html.py",))
    if change in {"bytes", "cut"}:
        kept.write_bytes(b"x" + before[1:] if change == "bytes" else before[:-20])
    assert render(tmp_path, "({{ name }})" if change == "source" else "<{{ name }}>")[1:-1] == "a&amp;b"
    assert (find_kept(tmp_path).read_bytes() == before) == (change in {"bytes", "cut"})


def test_without_a_place_to_keep_it_a_template_is_compiled_each_time(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    environment = Environment(loader=DictLoader({"page": "x"}), autoescape=True, bytecode_cache=TemplateCache())
    assert environment.get_template("page").render() == "x"
    assert not list(tmp_path.iterdir())


def test_nothing_is_kept_where_python_keeps_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert render(tmp_path) == "<a&amp;b>"
    assert not (tmp_path / "__pycache__").exists()
