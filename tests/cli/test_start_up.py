"""The command starts quickly and loads nothing it does not need."""

from __future__ import annotations

import subprocess
import sys

import pytest

from recollect.report.report_writer import write_report
from recollect.results.result import Provenance, Result
from recollect.results.run_folder import RunFolder

HEAVY = ("torch", "transformers", "ray", "opacus", "datasets", "sklearn", "scipy", "pyarrow", "numpy")
PARSER = ("typer", "pydantic", "jinja2", *HEAVY)
"""What a command that is typed every day does not wait for either."""
RESULT = Result(audit="removal", question="Is it gone?", verdict="It is.", outcome="not_found")


@pytest.fixture
def folder(tmp_path):
    """A run folder with a report."""
    made_of = Provenance(recollect="0.2.0", seed=0, queries=1, seconds=1.0)
    RunFolder(tmp_path).write_result(RESULT.with_provenance(made_of))
    write_report(tmp_path)
    return tmp_path


def check_modules(words, heavy):
    """Run a command in a process of its own; it must end well and have imported none of these. What it said."""
    script = (
        f"import sys; sys.argv[1:] = {[*map(str, words)]!r}\n"
        "from recollect.cli import main\n"
        "try: main()\n"
        "except SystemExit as stop: assert not stop.code, stop.code\n"
        f"heavy = [name for name in {heavy!r} if name in sys.modules]\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        (["list"], ("rich.markdown", *PARSER)),
        (["list", "--json"], ("rich", *PARSER)),
        (["check", "--help"], ("pydantic", "rich.markdown", *HEAVY)),
        *((words, HEAVY) for words in (["--help"], ["--version"])),
        (["score", "--help"], HEAVY[:-1]),  # the kinds of a model's settings are NumPy's neighbours
        (["membership", "--help"], HEAVY[:6]),  # its options are those of the audit, which computes with SciPy
    ],
    ids=lambda given: "-".join(given) if isinstance(given, list) else "",
)
def test_help_and_lists_load_nothing_heavy(words, heavy):
    check_modules(words, heavy)


def test_a_report_that_is_up_to_date_is_not_built_again(folder):
    before = (folder / "report.html").stat().st_mtime_ns
    assert "up to date" in check_modules(["report", folder], PARSER)
    assert (folder / "report.html").stat().st_mtime_ns == before


@pytest.mark.parametrize("ending", ["html", "md"])
def test_a_report_that_is_up_to_date_is_copied_as_it_would_be_built(folder, tmp_path_factory, ending):
    copied, built = (tmp_path_factory.mktemp("elsewhere") / f"{name}.{ending}" for name in ("copied", "built"))
    check_modules(["report", folder, "--out", copied], PARSER)
    assert copied.read_bytes() == write_report(folder, built).read_bytes()
    assert copied.stat().st_mode & 0o077 == 0


def test_a_report_of_another_kind_is_refused_whether_or_not_it_is_up_to_date(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("elsewhere") / "report.pdf"
    command = [sys.executable, "-m", "recollect", "report", str(folder), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 2
    assert "neither HTML nor Markdown" in done.stderr


def test_a_report_is_built_without_the_audits_and_what_they_compute_with(folder):
    (folder / "report.html").unlink()
    slow = ("scipy", "pandas", "pyarrow.compute", "recollect.models", "recollect.audits.leakage.audit", "typer")
    check_modules(["report", folder], (*HEAVY[:6], *slow, "phonenumbers"))
    assert (folder / "report.html").is_file()


def test_importing_the_package_loads_nothing_heavy():
    script = f"import sys, recollect; assert not [name for name in {HEAVY!r} if name in sys.modules]"
    subprocess.run([sys.executable, "-c", script], check=True)  # noqa: S603


def test_reading_a_corpus_does_not_wait_for_torch(tmp_path):
    (tmp_path / "posts.jsonl").write_text('{"text": "see you at noon"}\n')
    script = (
        "import sys\n"
        "from recollect.cli.shared_options import CorpusOptions\n"
        f"assert len(CorpusOptions().read({str(tmp_path / 'posts.jsonl')!r})) == 1\n"
        "assert not {'torch', 'transformers'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)  # noqa: S603


def test_a_terminal_is_told_what_it_waits_for_and_a_log_is_not(capsys, monkeypatch):
    from recollect.cli import console

    console.say_waiting("PyTorch")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    console.say_waiting("PyTorch")
    assert capsys.readouterr().err == "Loading PyTorch …\n"


@pytest.mark.parametrize(
    ("statement", "said"), [("import torch", "Loading PyTorch …\n"), ("importlib.util.find_spec('torch')", "")]
)
def test_a_terminal_waits_for_torch_once_it_is_imported_and_not_where_it_is_looked_for(tmp_path, statement, said):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("loaded = True\n")
    script = (
        "import importlib.util, sys\n"
        "from recollect.cli import console\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\n"
        "sys.stderr.isatty = lambda: True\n"
        "console.announce_torch()\n"
        f"{statement}\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stderr == said


@pytest.mark.parametrize("module", ["recollect.report.report_writer", "recollect.audits.membership.audit"])
def test_reports_and_options_of_audits_do_not_wait_for_scipy(module):
    script = f"import sys, {module}; assert 'scipy.stats' not in sys.modules and 'scipy.special' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)  # noqa: S603


def test_a_module_of_ours_is_imported_without_looking_for_plugins():
    script = "import sys; from recollect import labels; assert 'importlib.metadata' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr


def test_a_shortcut_leaves_garbage_collection_on(folder):
    script = (
        "import gc; from recollect.cli.shortcuts import take_shortcut\n"
        f"assert take_shortcut(['report', {str(folder)!r}]) and gc.isenabled()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
