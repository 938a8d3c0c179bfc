"""The command starts quickly and loads nothing it does not need."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "transformers", "ray", "opacus", "datasets", "sklearn", "scipy", "pyarrow")


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        *((words, HEAVY) for words in (["--help"], ["--version"], ["score", "--help"], ["list"])),
        (["membership", "--help"], HEAVY[:6]),  # its options are those of the audit, which computes with SciPy
    ],
)
def test_help_loads_neither_torch_nor_transformers(words, heavy):
    script = (
        "import sys; sys.argv[1:] = "
        f"{words!r}\n"
        "from recollect.cli import main\n"
        "try: main()\n"
        "except SystemExit as stop: assert not stop.code, stop.code\n"
        f"heavy = [name for name in {heavy!r} if name in sys.modules]\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr


def test_importing_the_package_loads_nothing_heavy():
    script = f"import sys, recollect; assert not [name for name in {HEAVY!r} if name in sys.modules]"
    subprocess.run([sys.executable, "-c", script], check=True)  # noqa: S603


def test_reading_a_corpus_does_not_wait_for_torch(tmp_path):
    (tmp_path / "posts.jsonl").write_text('{"text": "see you at noon"}\n')
    script = (
        "import sys\n"
        "from recollect.cli.options import CorpusOptions\n"
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


@pytest.mark.parametrize("module", ["recollect.report.report_writer", "recollect.audits.membership.audit"])
def test_reports_and_options_of_audits_do_not_wait_for_scipy(module):
    script = f"import sys, {module}; assert 'scipy.stats' not in sys.modules and 'scipy.special' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)  # noqa: S603
