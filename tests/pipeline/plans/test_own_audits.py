"""An audit of one's own, registered in the program that uses it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import pytest
import yaml

import recollect
from recollect.audits.audit import Needs
from recollect.audits.common.result_builder import ResultBuilder
from recollect.audits.registry import AUDITS
from recollect.audits.verb import CANDIDATES, TARGET_MODEL, Verb
from recollect.audits.workspace import NO_WORKSPACE
from recollect.pipeline.plans.plan_file import read_plan
from recollect.report.report_writer import write_report
from recollect.session import Session
from recollect.signals.evidence import AUDITED, TARGET
from recollect.testing.fakes import Null
from recollect.testing.refusals import refused


@dataclass(frozen=True, kw_only=True)
class CountingAudit:
    """Counts records."""

    least: int = 1
    """From how many records on something is found."""
    name: ClassVar[str] = "counting"
    question: ClassVar[str] = "How many records are there?"
    paper: ClassVar[str] = "none"
    verb: ClassVar[Verb] = Verb(
        name="counting", summary="Count records.", roles={TARGET: TARGET_MODEL, AUDITED: CANDIDATES}
    )

    def needs(self, evidence):
        return Needs(given=frozenset({TARGET, AUDITED}))

    def run(self, evidence, rng, workspace=NO_WORKSPACE):
        count = len(evidence.corpora[AUDITED])
        outcome = "found" if count >= self.least else "not_found"
        return ResultBuilder(self).build(verdict=f"There are {count} records.", outcome=outcome)


@pytest.fixture(autouse=True)
def unregistered():
    """Whatever a test registers is forgotten after it."""
    yield
    AUDITS.registered.clear()


def test_an_audit_of_ones_own_runs_once_it_is_registered(tmp_path):
    with pytest.raises(AttributeError):
        recollect.counting  # noqa: B018
    assert recollect.register_audit(CountingAudit) is CountingAudit
    given = {"work": tmp_path / "work", "out": tmp_path / "run", "least": 3}
    result = recollect.counting(Null(), [{"text": "a b"}, {"text": "c d"}], **given)
    assert (result.outcome, result.verdict) == ("not_found", "There are 2 records.")
    assert yaml.safe_load((tmp_path / "run/plan.yaml").read_text())["audits"]["counting"]["least"] == 3
    assert "How many records are there?" in (tmp_path / "run/report.html").read_text()


def test_a_session_and_a_plan_know_a_registered_audit_and_refuse_a_wrong_setting(tmp_path):
    recollect.register_audit(CountingAudit)
    assert Session().plan("counting", Null(), [{"text": "a b"}], least=2).audit == CountingAudit(least=2)
    (tmp_path / "posts.jsonl").write_text('{"text": "a b"}\n')
    plan = tmp_path / "plan.yaml"
    plan.write_text("models: {target: m}\ncorpora: {audited: posts.jsonl}\naudits: {counting: {least: 2}}\n")
    assert [each.audit for each in read_plan(plan).plans] == [CountingAudit(least=2)]
    with refused("invalid_setting"):
        Session().plan("counting", Null(), [{"text": "a b"}], least="many")


def test_a_report_is_built_where_the_audit_is_not_registered(tmp_path):
    recollect.register_audit(CountingAudit)
    recollect.counting(Null(), [{"text": "a b"}], work=tmp_path / "work", out=tmp_path / "run")
    AUDITS.registered.clear()
    assert "There are 1 records." in write_report(tmp_path / "run", tmp_path / "again.html").read_text()


def test_what_is_no_audit_or_has_a_name_of_ours_is_refused():
    plain = type("Plain", (), {"name": "plain", "verb": CountingAudit.verb})
    silent = type("Silent", (CountingAudit,), {"verb": None})
    for wrong in (plain, silent, CountingAudit(), 7):
        with refused("invalid_audit"):
            recollect.register_audit(wrong)
    for taken in ("membership", "report"):
        with refused("plugin_name_taken"):
            recollect.register_audit(type("Ours", (CountingAudit,), {"name": taken}))
    assert not AUDITS.registered
