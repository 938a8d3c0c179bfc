"""Every Python block of the documentation runs, page by page."""

from __future__ import annotations

import json
import pkgutil
import pydoc
import re
import shlex
import shutil
import textwrap
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest
import yaml

from recollect.audits.audit import Needs
from recollect.audits.registry import AUDITS, list_audits_by_verb
from recollect.audits.verb import Role, Verb
from recollect.checks import field_docs
from recollect.cli.app import build_command
from recollect.pipeline.plans.plan_file import read_plan
from recollect.results.presentation import Presentation, TableView
from recollect.results.result import Severity
from recollect.signals.registry import SIGNALS

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
DOCS = sorted((ROOT / "docs").rglob("*.md"))
WRITTEN = [page for page in DOCS if page.parent.name != "tutorials"]
"""Pages that are no notebooks; those are run by `tests/examples/test_tutorials.py`."""


def list_blocks(text: str, language: str) -> list[str]:
    """The code blocks of a page in one language, those inside of tabs included."""
    fence = re.compile(rf"^( *)```{language}\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
    return [textwrap.dedent(block) for _, block in fence.findall(text)]


def list_pages(language: str, pages: list[Path]) -> list[Path]:
    """The pages that have code in one language."""
    return [page for page in pages if list_blocks(page.read_text(encoding="utf-8"), language)]


SMALL = {"n_embd": 32, "n_layer": 1, "training.epochs": 1, "tokenizer.size": 400}
"""Changes of the recipe that make it train in a second."""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory) -> Path:
    """What the pages name: models, posts of people, a recipe, and a work folder that all pages share."""
    from recollect.corpora import synthetic
    from recollect.recipes.recipe_file import load_recipe
    from recollect.testing.tiny import build_tiny_model, save_tiny

    folder = tmp_path_factory.mktemp("shelf")
    for seed, name in enumerate(("model", "base")):
        save_tiny(build_tiny_model("gpt2", seed=seed), folder / name)
    rows = [{"user": record.user, "text": record.text} for record in synthetic.make_texts(people=92, per_person=3)]
    rows[0]["text"] = "my pin is 4711"
    for name, chosen in (("posts", rows[:36]), ("others", rows[36:])):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in chosen), encoding="utf-8")
    recipe = load_recipe("causal-transformer", SMALL)
    (folder / "recipe.yaml").write_text(yaml.safe_dump(recipe.model_dump(mode="json")), encoding="utf-8")
    (folder / ".recollect").mkdir()
    return folder


@pytest.mark.xdist_group("pages")  # one worker, so that what one page trained and scored serves the others
@pytest.mark.parametrize(
    "page", list_pages("python", [README, *WRITTEN]), ids=lambda page: f"{page.parent.name}/{page.name}"
)
def test_the_code_of_a_page_runs_from_top_to_bottom(page, shelf, tmp_path, monkeypatch):
    for there in shelf.iterdir():
        if there.is_dir():
            (tmp_path / there.name).symlink_to(there)
        else:
            shutil.copy(there, tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in list_blocks(page.read_text(encoding="utf-8"), "python"):
        exec(compile(block, str(page), "exec", dont_inherit=True), names)  # noqa: S102 - our own documentation
    SIGNALS.registered.clear()
    AUDITS.registered.clear()


@pytest.mark.parametrize("verb", sorted(verb for verb, audit in list_audits_by_verb().items() if audit in AUDITS.table))
def test_every_audit_is_shown_from_python_in_at_most_eight_lines(verb):
    page = {"extract": "exposure"}.get(verb, verb)
    for text in (
        README.read_text(encoding="utf-8"),
        (ROOT / "docs" / "guides" / f"{page}.md").read_text(encoding="utf-8"),
    ):
        blocks = [block for block in list_blocks(text, "python") if re.search(rf"\b(rc|session)\.{verb}\(", block)]
        lines = [len([line for line in block.splitlines() if line.strip()]) for block in blocks]
        assert lines
        assert max(lines) <= 8


@pytest.mark.parametrize(
    "page", list_pages("bash", [README, *DOCS, *sorted((ROOT / "examples").rglob("*.md"))]), ids=str
)
def test_every_command_of_a_page_is_one_that_recollect_understands(page):
    lines = [line for block in list_blocks(page.read_text(encoding="utf-8"), "bash") for line in block.splitlines()]
    calls = [shlex.split(line, comments=True) for line in lines if "recollect " in line.partition("#")[0]]
    for call in calls:
        program = [Path(word).name for word in call].index("recollect")  # after `srun` and the like
        verb, *words = call[program + 1 :]
        build_command(verb).make_context(verb, words)  # raises a UsageError otherwise


@pytest.mark.parametrize(("page", "audits"), [("how-to/plans.md", 3), ("get-started.md", 2)])
def test_every_plan_of_a_page_is_one(page, audits, tmp_path):
    plan = list_blocks((ROOT / "docs" / page).read_text(encoding="utf-8"), "yaml")[0]
    (tmp_path / "audit.yaml").write_text(plan)
    assert len(read_plan(tmp_path / "audit.yaml").plans) == audits


def test_every_page_of_the_docs_is_in_the_navigation():
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    assert [page for page in DOCS if str(page.relative_to(ROOT / "docs")) not in listed] == []


def test_the_reference_lists_every_name_once_and_each_can_be_imported():
    names = re.findall(r"^::: (\S+)$", (ROOT / "docs/reference/api.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(names) == len(set(names))
    assert all(pkgutil.resolve_name(name) is not None for name in names)
    assert {"recollect.testing.contracts", "recollect.signals.signal"} <= set(names)


@pytest.mark.parametrize("kind", [Needs, Verb, Role, Presentation, TableView])
def test_the_page_on_audits_names_every_field_of_what_an_audit_declares(kind):
    page = (ROOT / "docs/how-to/add-an-audit.md").read_text(encoding="utf-8")
    rows = " ".join(line for line in page.splitlines() if line.startswith(f"| `{kind.__name__}`"))
    assert {each.name for each in fields(kind)} - set(re.findall(r"`(\w+)`", rows)) == set()


@pytest.mark.parametrize("kind", [Needs, Verb, Role])
def test_help_shows_every_field_of_what_an_audit_declares(kind):
    shown = pydoc.plain(pydoc.render_doc(kind))
    assert field_docs(kind).keys() == {each.name for each in fields(kind)}
    assert all(f"{name}: {doc}" in shown for name, doc in field_docs(kind).items())


def test_every_severity_is_explained():
    page = (ROOT / "docs/how-to/report.md").read_text(encoding="utf-8")
    assert all(f"| {severity} | " in page for severity in get_args(Severity))
