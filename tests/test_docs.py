"""Every Python block of the documentation runs, page by page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from recollect.cli.app import command_of
from recollect.pipeline.planfile import read_plan

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
SHELL = re.compile(r"^```bash\n(.*?)^```", re.MULTILINE | re.DOTALL)
WRITTEN = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
PAGES = [page for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))] if BLOCK.search(page.read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_code_of_a_page_runs_from_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        exec(compile(block, str(page), "exec", dont_inherit=True), names)  # noqa: S102 - our own documentation


@pytest.mark.parametrize("page", [page for page in WRITTEN if SHELL.search(page.read_text())], ids=str)
def test_every_command_of_a_page_is_one_that_recollect_understands(page):
    lines = [line for block in SHELL.findall(page.read_text(encoding="utf-8")) for line in block.splitlines()]
    calls = [shlex.split(line, comments=True) for line in lines if "recollect " in line.partition("#")[0]]
    for program, verb, *words in calls:
        assert Path(program).name == "recollect"
        command_of(verb).make_context(verb, words)  # raises a UsageError otherwise


def test_every_plan_of_a_page_is_one(tmp_path):
    page = (ROOT / "docs" / "plans.md").read_text(encoding="utf-8")
    plan = re.search(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)[1]
    (tmp_path / "audit.yaml").write_text(plan)
    assert len(read_plan(tmp_path / "audit.yaml").plans) == 3


def test_every_page_of_the_docs_is_in_the_navigation():
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page.name for page in (ROOT / "docs").glob("*.md") if page.name not in listed] == []
