"""`recollect verify`: what is damaged, missing or extra in run folders and work folders."""

from __future__ import annotations

import hashlib
import json
import os
import shutil

import pytest
import torch
from typer.testing import CliRunner

import recollect
from recollect.cli.app import app
from recollect.files import Journal, write_checked_json
from recollect.report.report_writer import write_report
from recollect.signals.evidence import AUDITED, CONTROLS
from recollect.testing.refusals import refused
from recollect.testing.world import World


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run folder and its work folder, with one file of every kind."""
    home, world = tmp_path_factory.mktemp("made"), World(members=8, others=8, controls=12)
    recollect.membership(
        world.build_memoriser(),
        world.corpora[AUDITED],
        controls=world.corpora[CONTROLS],
        by="user",
        out=home / "run",
        work=home / "work",
    )
    with Journal.open(home / "work" / "audits" / "extraction-1" / "search.journal", owner="a") as journal:
        for number in range(3):
            journal.append(bytes([number]) * 40)
    write_checked_json(home / "work" / "audits" / "exposure-1" / "r.json", {"low": 1.5})
    write_checked_json(home / "work" / "fleets" / "f.json", {"workers": 1, "threads": 1})
    return home


@pytest.fixture
def folders(made, tmp_path):
    return shutil.copytree(made, tmp_path / "copy")


def list_faults(folder):
    return {(each.path.relative_to(folder).as_posix(), each.problem) for each in recollect.verify(folder).faults}


def flip(path):
    """Flip one bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


def test_what_was_written_is_whole(folders):
    run, work = recollect.verify(folders / "run"), recollect.verify(folders / "work")
    assert (run.kind, run.faults, run.unchecked) == ("run folder", (), ())
    assert (work.kind, work.faults, work.unchecked) == ("work folder", (), ())
    assert run.checked == len([path for path in (folders / "run").rglob("[!.]*") if path.is_file()])
    assert run.manifest_sha256 == hashlib.sha256((folders / "run" / "manifest.json").read_bytes()).hexdigest()
    assert work.checked >= 5


def test_a_flipped_bit_is_found_in_every_file(folders):
    for folder in (folders / "run", folders / "work"):
        for path in [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]:
            kept = path.read_bytes()
            flip(path)
            assert (path.relative_to(folder).as_posix(), "damaged") in list_faults(folder), path
            path.write_bytes(kept)


def test_missing_and_extra_files_are_told_apart(folders):
    (folders / "run" / "report.html").unlink()
    (folders / "run" / "results" / "leakage.json").write_text("{}")
    assert list_faults(folders / "run") == {("report.html", "missing"), ("results/leakage.json", "extra")}
    (folders / "work" / "notes.txt").touch()
    (folders / "work" / "fleets" / ".f.json.0a0a0a0a.part").touch()
    (folders / "work" / "traceback-1.txt").touch()
    expected = {("notes.txt", "extra"), ("fleets/.f.json.0a0a0a0a.part", "extra")}
    assert list_faults(folders / "work") == expected


def test_a_manifest_vouches_for_what_the_run_wrote_alone(folders):
    """`--out .` in a project: its own files may change, and the report is still built."""
    (folders / "run" / "notes.txt").write_text("mine")
    (folders / "run" / "src").mkdir()
    (folders / "run" / "src" / "code.py").write_text("1")
    write_report(folders / "run")
    (folders / "run" / "notes.txt").write_text("changed")
    write_report(folders / "run")
    found = recollect.verify(folders / "run")
    assert found.is_whole
    assert {path.name for path in found.unchecked} == {"notes.txt", "code.py"}


def test_links_and_pipes_are_never_read_though_a_manifest_lists_them(folders):
    run = folders / "run"
    files = json.loads((run / "manifest.json").read_text())
    del files["checksum"]
    (run / "plan.yaml").unlink()
    (run / "plan.yaml").symlink_to("/dev/zero")
    os.mkfifo(run / "results" / "pipe.json")
    for name in ("plan.yaml", "results/pipe.json"):
        files["files"][name] = {"bytes": 0, "sha256": hashlib.sha256(b"").hexdigest()}
    write_checked_json(run / "manifest.json", files)
    assert list_faults(run) == {("plan.yaml", "damaged"), ("results/pipe.json", "damaged")}
    with refused("run_folder_changed"):
        write_report(run)


def test_a_run_folder_without_a_manifest_is_not_finished(folders):
    (folders / "run" / "manifest.json").unlink()
    assert list_faults(folders / "run") == {(".", "unfinished")}


def test_the_verb_ends_with_2_and_one_message_where_something_is_wrong(folders):
    fine = CliRunner().invoke(app, ["verify", str(folders / "run")])
    assert fine.exit_code == 0, fine.output
    assert "SHA-256 of manifest.json" in fine.stderr
    flip(folders / "run" / "plan.yaml")
    wrong = CliRunner().invoke(app, ["verify", str(folders / "run"), "--json"])
    assert wrong.exit_code == 2
    assert wrong.stderr.count("recollect: ") == 1
    assert [each["problem"] for each in json.loads(wrong.stdout)["faults"]] == ["damaged"]


def test_a_folder_of_something_else_is_refused(tmp_path):
    with refused("nothing_to_verify"):
        recollect.verify(tmp_path)


def test_neither_report_nor_compare_reads_a_changed_result(folders):
    path = folders / "run" / "results" / "membership.json"
    path.write_text(path.read_text().replace('"outcome": "', '"outcome":  "'))
    with refused("run_folder_changed"):
        recollect.compare(folders / "run", folders / "run")
    done = CliRunner().invoke(app, ["report", str(folders / "run")])
    assert done.exit_code == 2
    assert not recollect.verify(folders / "run").is_whole


def test_a_report_that_is_built_anew_keeps_the_folder_whole(folders):
    (folders / "run" / "report.html").write_text("something else")
    assert CliRunner().invoke(app, ["report", str(folders / "run")]).exit_code == 0
    assert recollect.verify(folders / "run").is_whole


def test_a_training_that_was_begun_is_checked_too(tmp_path):
    from recollect.recipes.training.checkpoints import write_checkpoint

    work = tmp_path / "work"
    write_checked_json(work / "models" / "a" / "training.json", {"seed": 1, "threads": 1})
    write_checkpoint(work / "models" / "a" / "working" / "checkpoint.safetensors", {"w": torch.ones(64)}, {"step": 3})
    assert (recollect.verify(work).checked, list_faults(work)) == (2, set())
    flip(work / "models" / "a" / "working" / "checkpoint.safetensors")
    flip(work / "models" / "a" / "training.json")
    assert {problem for _, problem in list_faults(work)} == {"damaged"}
    assert len(list_faults(work)) == 2
