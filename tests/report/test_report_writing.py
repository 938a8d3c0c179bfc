"""Reports on disk: owner-only, both views, wherever they are wanted."""

from __future__ import annotations

import os
import stat

from recollect.report import write_report
from recollect.testing.refusals import refused


def test_the_report_lies_in_the_run_folder_for_its_owner_only(folder):
    page = write_report(folder.path)
    assert page == folder.report
    if os.name == "posix":
        assert {stat.S_IMODE(f.stat().st_mode) for f in (page, page.with_suffix(".md"))} == {0o600}


def test_it_can_go_elsewhere(folder, tmp_path):
    page = write_report(folder.path, tmp_path / "for-legal" / "shop-bot.html")
    assert page.is_file()
    assert not folder.report.exists()
    note = write_report(folder.path, tmp_path / "note.md")
    assert note.read_text().startswith("# What this model remembers")
    assert {path.name for path in tmp_path.glob("*/*.*")} == {"shop-bot.html"}


def test_other_files_are_refused(folder, tmp_path):
    with refused("unknown_report_format"):
        write_report(folder.path, tmp_path / "results.json")
