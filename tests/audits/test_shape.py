"""Every audit folder has the same shape, so that who knows one finds their way in all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import recollect.audits

HOME = Path(recollect.audits.__file__).parent
FOLDERS = sorted(folder for folder in HOME.iterdir() if (folder / "audit.py").is_file())
EVERYWHERE = {"audit", "decisions", "result", "verdict", "view"}
OF_PEOPLE = {"safeguards"}
"""Audits of secrets have no people to compare."""


def test_there_are_five_folders():
    assert [folder.name for folder in FOLDERS] == ["exposure", "leakage", "membership", "provenance", "removal"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_audit_folder_has_the_same_shape(folder):
    modules = {path.stem for path in folder.glob("*.py")}
    assert EVERYWHERE | (set() if folder.name == "exposure" else OF_PEOPLE) <= modules


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_no_module_of_an_audit_is_longer_than_400_lines(folder):
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in folder.glob("*.py")}
    assert {name: length for name, length in lengths.items() if length > 400} == {}
