"""An extension package, really installed: its audit and its signal have all that ours have."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PACKAGE = HERE / "recollect-fluency"


def run_python(*words: str, path: Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What Python does where the packages of a folder are installed."""
    paths = [str(path), *filter(None, [os.environ.get("PYTHONPATH")])]
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "120", "NO_COLOR": "1"}
    return subprocess.run(  # noqa: S603
        [sys.executable, *words], cwd=folder, env=surroundings, capture_output=True, text=True, check=False
    )


def install(source: Path, target: Path) -> None:
    """Have pip build and install a package into a folder, as users do; nothing is fetched."""
    words = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--no-compile", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "install", *words, str(source)], check=True)  # noqa: S603


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder into which the package is installed."""
    source, target = tmp_path_factory.mktemp("source") / PACKAGE.name, tmp_path_factory.mktemp("installed")
    shutil.copytree(PACKAGE, source)  # a build leaves files beside what it builds
    install(source, target)
    return target


@pytest.mark.parametrize(
    ("page", "kind", "name", "about"),
    [
        ("add-a-signal.md", "signals", "top-share", "The share of a record's tokens that are among the model's top k."),
        ("add-an-audit.md", "audits", "fluency", "Whether a model predicts the words of the audited people better"),
    ],
)
def test_the_package_of_a_page_can_be_installed_and_used(tmp_path, page, kind, name, about):
    text = (HERE.parents[1] / "docs" / "how-to" / page).read_text(encoding="utf-8")
    project, code = (re.search(rf"```{each}\n(.*?)```", text, re.DOTALL)[1] for each in ("toml", "python"))
    module, _, _ = tomllib.loads(project)["project"]["entry-points"][f"recollect.{kind}"][name].partition(":")
    source, target = tmp_path / "source", tmp_path / "installed"
    file = source / "src" / f"{module.replace('.', '/')}.py"
    assert f"`{file.relative_to(source)}`" in text
    file.parent.mkdir(parents=True)
    (source / "pyproject.toml").write_text(project, encoding="utf-8")
    (file.parent / "__init__.py").touch()
    file.write_text(code, encoding="utf-8")
    install(source, target)
    listed = run_python("-m", "recollect", "list", "--json", path=target)
    assert json.loads(listed.stdout)[kind][name].startswith(about)


@pytest.fixture(scope="module")
def seen(installed, tmp_path_factory):
    """What `use_plugin.py` saw in a process in which the package is installed, and the folder in which it worked."""
    folder = tmp_path_factory.mktemp("work")
    done = run_python(str(HERE / "use_plugin.py"), path=installed, folder=folder)
    assert done.returncode == 0, done.stderr
    return {**json.loads(done.stdout), "folder": folder}


def text_of(shown: str) -> str:
    """What a page of help says, without its boxes and line breaks."""
    return " ".join(re.sub(r"[│╭╮╰╯─]", " ", shown).split())


def read_result(folder: Path, audit: str = "fluency") -> dict:
    """The result that a run folder keeps."""
    return json.loads((folder / "results" / f"{audit}.json").read_text(encoding="utf-8"))


def test_its_audit_and_its_signal_are_listed_with_the_first_line_of_their_docstrings(seen):
    about = "Whether a model predicts the words of the audited people more often than those of controls."
    assert seen["list"]["audits"]["fluency"] == about
    assert seen["list"]["signals"]["top-share"].startswith("The share of a record's tokens")
    assert f"fluency {about}" in text_of(seen["verbs"])


def test_its_verb_has_an_option_for_every_role_and_setting_with_its_docstring_and_default(seen):
    shown = text_of(seen["help"])
    assert "Usage: recollect fluency [OPTIONS] {MODEL} {CORPUS}" in shown
    assert "--controls CORPUS Held-out records known not to be in the training set" in shown
    assert "--members" in shown
    assert "--top-k INTEGER A token counts as predicted if it is among the model's top k." in shown
    assert "--confidence NUMBER The confidence level of all intervals. (default: 0.95)" in shown
    assert "--recipe" not in shown  # it trains nothing


def test_a_plan_names_it_by_its_key(seen):
    (forecast,) = json.loads(seen["check"])
    assert (forecast["audit"], forecast["queries"]) == ("fluency", 216)
    result = read_result(seen["folder"] / "planned")
    assert result["outcome"] == "found"
    assert result["settings"] == {"top_k": 2, "confidence": 0.95}
    assert (result["severity"], result["next_step"]) == ("medium", "Hold the release; inform those responsible.")
    assert [limit["status"] for limit in result["limits"]] == ["kept"]


def test_its_verb_finds_what_the_plan_finds_and_leaves_a_plan_that_can_be_run_again(seen):
    planned = read_result(seen["folder"] / "planned")
    again = read_result(seen["folder"] / "called")  # run a second time, by the plan that the verb left
    for result in (seen["verb"], again):
        assert result["findings"] == planned["findings"]
        assert result["provenance"]["digests"] == planned["provenance"]["digests"]
    assert "Person" in seen["listed"]
    assert "user-" in seen["listed"], "people have pseudonyms in a terminal"
    assert "member-" not in seen["listed"]


def test_the_report_has_its_section_with_figure_table_and_row_of_the_annex(seen):
    page = (seen["folder"] / "planned" / "report.html").read_text(encoding="utf-8")
    assert "Does the model predict what these people write?" in page
    assert "Histograms of share of tokens predicted" in page
    assert "People, those whose words are predicted most often first" in page
    assert "1 of 1 question examined: evidence of memorisation." in page
    assert page.count("<dt>What it means</dt>") == page.count("<dt>What to do next</dt>") == 1
    _, _, annex = page.rpartition("Likelihood of inference")
    row, _, _ = annex.partition("</tr>")
    assert "fluency" in row.lower()


def test_it_is_a_function_in_python_that_takes_objects_and_says_what_it_takes(seen):
    called = seen["python"]
    auc = next(each["value"] for each in seen["verb"]["findings"])
    assert called["findings"]["auc"] == auc
    assert called["findings"]["members_auc"] > 0.9
    assert called["people"] == 48
    assert "top_k: A token counts as predicted" in called["doc"]
    assert {"fluency", "membership", "Session"} <= set(seen["dir"])
    assert "<svg" in called["html"]


def test_audits_of_ours_take_its_signal(seen):
    assert seen["signal"]["outcome"] == "found"
    assert seen["signal"]["settings"]["signal"] == "top-share"


def test_it_keeps_the_contracts(seen):
    assert seen["contracts"] == ["fluency", "top-share"]


def test_none_of_it_needed_torch(seen):
    assert seen["torch"] is False


def offer_lost_audit(folder: Path, name: str) -> None:
    """Install the metadata of a package whose audit cannot be imported."""
    about = folder / "lost-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: lost\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[recollect.audits]\n{name} = no_such_package.audit:Lost\n")


def test_a_broken_plugin_is_listed_as_broken_and_the_doctor_names_it(tmp_path):
    offer_lost_audit(tmp_path, "lost")
    listed, doctor = (run_python("-m", "recollect", verb, "--json", path=tmp_path) for verb in ("list", "doctor"))
    message = "The audit 'lost' of a plug-in cannot be loaded: ModuleNotFoundError: No module named 'no_such_package'."
    assert json.loads(listed.stdout)["audits"]["lost"] == f"BROKEN: {message}"
    assert re.search(r"^cpu, 1 thread$|^cpu, \d+ threads$|^(?!cpu)", json.loads(doctor.stdout)["device"])
    assert json.loads(doctor.stdout)["broken_plugins"] == {"audit lost": message}
    shown = run_python("-m", "recollect", "doctor", path=tmp_path)
    assert "plug-in: audit lost" in text_of(shown.stdout)


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("extract", ["--help"], "calls its audit 'extract', a name of ours"),
        ("lost", ["lost", "--help"], "The audit 'lost' of a plug-in cannot be loaded"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_named_in_one_message(tmp_path, name, words, message):
    offer_lost_audit(tmp_path, name)
    done = run_python("-m", "recollect", *words, path=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith("recollect: ")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
