"""`recollect compare` as a user types it."""

import json

import pytest
from typer.testing import CliRunner

from recollect.audits.membership.audit import MembershipAudit
from recollect.cli.app import app
from recollect.pipeline.plans.plan import Plan
from recollect.pipeline.run import run
from recollect.testing.fakes import Null
from recollect.testing.world import World


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The runs of a model that learnt people by heart, and of one that did not."""
    folder, world = tmp_path_factory.mktemp("runs"), World(controls=40)
    for name, target in (("before", world.build_memoriser()), ("after", world.build_null())):
        models = {"target": target, "reference": Null(seed=1)}
        audit = MembershipAudit(fpr=(0.1,), by="user")
        run(Plan(audit=audit, models=models, corpora=world.corpora, work=folder / "work"), folder / name)
    return folder


def test_what_differs_is_shown_as_a_table_as_json_and_as_a_page(runs, tmp_path):
    found = call("compare", runs / "before", runs / "after", "--out", tmp_path / "compared.html")
    assert found.exit_code == 0, found.output
    assert "differ significantly" in " ".join(found.stdout.split())
    page = (tmp_path / "compared.html").read_text()
    assert "auc against controls" in page
    assert "yes (p" in page
    assert "Content-Security-Policy" in page
    told = json.loads(call("compare", runs / "before", runs / "after", "--json").stdout)
    auc = {each["name"]: each for each in told["differences"]}["auc_against_controls"]
    assert auc["difference"] < 0
    assert auc["differs"] is True
    same = json.loads(call("compare", runs / "after", runs / "after", "--json").stdout)
    assert not any(each["differs"] for each in same["differences"])


def test_folders_that_hold_no_run_are_refused(runs, tmp_path, check_refusal):
    check_refusal(call("compare", runs / "before", tmp_path))
