"""How runs end: the status, and one message that says each cause once."""

from __future__ import annotations

import pytest
import typer

from recollect.cli.exit_status import AuditStatus, determine_status, exit_with_status
from recollect.pipeline.plans.limits import Limit, check_limits
from recollect.results.result import Failed, Finding, Result, Skipped

AUC = Finding(
    name="auc", value=0.7, interval=(0.6, 0.8), confidence=0.95, unit="p", n={"users": 3}, method="m", reading="r"
)
BROKE = {"failed": (Failed(audit="toy", code="broke", error="It broke. Mend it."),)}
NOTHING = {"skipped": (Skipped(audit="toy", code="too_few", reason="Nothing to see."),)}


def ended(limits=(), **more):
    result = Result(audit="toy", question="?", verdict="!", outcome="inconclusive", outcome_code="failed", **more)
    found = determine_status(result.replace(limits=check_limits(map(Limit.parse, limits), result)))
    return found.status, found.message


def said(capsys, *endings):
    with pytest.raises(typer.Exit) as stopped:
        exit_with_status(endings)
    return stopped.value.exit_code, capsys.readouterr().err


@pytest.mark.parametrize(("more", "cause"), [(BROKE, "It broke. Mend it."), (NOTHING, "Nothing to see.")])
def test_what_was_not_done_is_the_cause_and_not_the_limit_that_cannot_be_checked_for_it(more, cause):
    assert ended(**more) == ended(["auc>0.5"], **more) == (2, f"could not be done. {cause}")


def test_an_audit_that_was_done_but_for_a_finding_ends_well():
    assert ended(skipped=(Skipped(audit="toy", finding="tpr", code="too_few", reason="Too few."),)) == (0, "")


def test_limits_are_tested_where_there_are_numbers():
    assert ended(["auc>0.9"], findings=(AUC,)) == (0, "")
    assert ended(["auc>0.5"], findings=(AUC,)) == (1, "auc is 0.7, which passes the limit 'auc>0.5'.")
    assert ended(["auc>0.5"], findings=(AUC,), **NOTHING)[0] == 1
    assert ended(["auc>0.9"], findings=(AUC,), **NOTHING) == (2, "could not be done. Nothing to see.")
    status, why = ended(["acu>0.5"], findings=(AUC,))
    assert status == 2
    assert "'auc'" in why, "the nearest name is suggested"


def test_a_limit_on_an_end_of_an_interval_names_that_end():
    assert ended(["auc.lower>=0.5"], findings=(AUC,)) == (
        1,
        "auc.lower is 0.6, which passes the limit 'auc.lower>=0.5'.",
    )
    assert ended(["auc.upper>1e-3"], findings=(AUC,)) == (
        1,
        "auc.upper is 0.8, which passes the limit 'auc.upper>0.001'.",
    )
    open_end = AUC.model_copy(update={"interval": (0.6, None)})
    assert ended(["auc.upper>0.5"], findings=(open_end,))[0] == 1


def test_a_limit_that_cannot_be_checked_does_not_hide_one_that_was_passed():
    status, why = ended(["acu>1", "auc>0.6"], findings=(AUC,))
    assert status == 2
    assert why.startswith("auc is 0.7, which passes the limit 'auc>0.6'. The limit 'acu>1' cannot be checked")


def test_a_cause_that_audits_share_is_reported_once_and_names_them(capsys):
    alike = [
        AuditStatus(audit=name, status=2, message="could not be done. No model.") for name in ("leakage", "removal")
    ]
    well = AuditStatus(audit="membership")
    assert said(capsys, alike[0], well, alike[1]) == (
        2,
        "recollect: leakage, removal: could not be done. No model.\n",
    )


def test_different_causes_are_listed_in_one_message_and_the_highest_status_counts(capsys):
    causes = [
        AuditStatus(audit="removal", status=2, message="could not be done. No file."),
        AuditStatus(audit="leakage", status=1, message="a passes.\nb passes."),
    ]
    status, told = said(capsys, *causes)
    assert status == 2
    assert told == "recollect: removal: could not be done. No file.\n  leakage: a passes.\n  b passes.\n"


def test_a_run_of_which_all_ended_well_says_nothing(capsys):
    exit_with_status([AuditStatus(audit="leakage"), AuditStatus(audit="removal")])
    assert capsys.readouterr().err == ""
