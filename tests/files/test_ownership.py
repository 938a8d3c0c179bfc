"""Work and run folders of others are refused, and those that everybody can write."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recollect.audits.registry import build_audit
from recollect.files import refuse_foreign_folder
from recollect.pipeline.plans.plan import Plan
from recollect.pipeline.preparation import TrainingOptions, train_model
from recollect.pipeline.run import run
from recollect.recipes.recipe_file import load_recipe
from recollect.session import Session
from recollect.testing.refusals import refused


@pytest.fixture
def foreign(monkeypatch):
    """What is there belongs to somebody else."""
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)


def test_ones_own_folder_and_one_that_is_not_there_are_fine(tmp_path):
    refuse_foreign_folder(tmp_path)
    refuse_foreign_folder(tmp_path / "absent")


def test_a_folder_of_somebody_else_is_refused_unless_it_is_said_to_be_shared(tmp_path, foreign):
    with refused("foreign_folder"):
        refuse_foreign_folder(tmp_path, shared=False)
    refuse_foreign_folder(tmp_path, shared=True)


@pytest.mark.parametrize("name", ["", "answers", "models", "results"])
def test_what_everybody_can_write_is_refused_shared_or_not(name, tmp_path):
    (tmp_path / name).mkdir(exist_ok=True)
    (tmp_path / name).chmod(0o777)
    for shared in (False, True):
        with refused("folder_open_to_all"):
            refuse_foreign_folder(tmp_path, shared=shared)


def test_a_link_is_looked_at_where_it_leads(tmp_path):
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "work").symlink_to(tmp_path / "open")
    with refused("folder_open_to_all"):
        refuse_foreign_folder(tmp_path / "work")


def test_every_way_to_a_work_or_run_folder_asks_whose_it_is(tmp_path, foreign):
    plan = Plan(
        audit=build_audit("membership"), models={"target": "x"}, corpora=dict.fromkeys(("audited", "controls"), "x")
    )
    with refused("foreign_folder"):
        run(plan, tmp_path)
    with refused("foreign_folder"):
        Session(work=tmp_path).score("absent", "absent")
    with refused("foreign_folder"):
        Session(work=tmp_path).membership("absent", "absent", controls="absent")
    with refused("foreign_folder"):
        train_model(load_recipe("word-lstm"), None, tmp_path, TrainingOptions())
    with refused("no_such_model"):
        Session(work=tmp_path, shared_work=True).score("absent", [{"text": "a"}])
    assert not any(Path(tmp_path).iterdir())
