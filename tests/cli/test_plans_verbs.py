"""`recollect run` and `recollect check` as a user types them."""

import json

import pytest
from typer.testing import CliRunner

from recollect.cli.app import app
from recollect.corpora import synthetic
from recollect.testing.tiny import build_tiny_model, save_tiny

PLAN = """\
models: {target: gpt2}
corpora:
  audited: {corpus: mine.jsonl, user_column: author}
  controls: {corpus: others.jsonl, user_column: author}
workers: 1
threads: 1
audits:
  membership: {signal: loss, fpr: [0.1], by: user}
  leakage: {top_k: 3}
limits:
  membership: ["auc_against_controls>0.9999"]
"""


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plans")
    save_tiny(build_tiny_model("gpt2"), folder / "gpt2")
    save_tiny(build_tiny_model("gpt2", seed=1), folder / "base")
    people = synthetic.make_texts(people=40, per_person=3, seed=0)
    users = sorted({record.user for record in people})
    for name, chosen in (("mine", users[:12]), ("others", users[12:])):
        lines = [{"id": r.id, "author": r.user, "text": r.text[:60]} for r in people if r.user in chosen]
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    return folder


@pytest.fixture
def home(made):
    (made / "plan.yaml").write_text(PLAN)
    return made


def without_times(found):
    return {
        path.stem: {**(read := json.loads(path.read_text())), "provenance": {**read["provenance"], "seconds": 0}}
        for path in (found / "results").iterdir()
    }


def test_all_audits_of_a_plan_go_into_one_folder_with_one_report(home, tmp_path):
    found = call("run", home / "plan.yaml", "--out", tmp_path / "run")
    assert found.exit_code == 0, found.output
    results = without_times(tmp_path / "run")
    assert set(results) == {"membership", "leakage"}
    page = (tmp_path / "run" / "report.html").read_text()
    assert all(result["verdict"][:40].replace("'", "&#39;") in page for result in results.values())
    assert "audits:" in (tmp_path / "run" / "plan.yaml").read_text()
    again = call("run", home / "plan.yaml", "--out", tmp_path / "again")
    assert again.exit_code == 0
    assert without_times(tmp_path / "again") == results


def test_limits_and_failures_become_the_status(home, tmp_path):
    (home / "plan.yaml").write_text(PLAN.replace(">0.9999", ">=0"))
    found = call("run", home / "plan.yaml", "--out", tmp_path / "a", "--only", "membership", "--json")
    assert found.exit_code == 1, found.output
    assert "auc_against_controls" in found.stderr
    (membership,) = json.loads(found.stdout)
    assert membership["audit"] == "membership"
    assert [check["status"] for check in membership["limits"]] == ["exceeded"]
    (home / "bad.jsonl").write_text("no json\n")
    own = "leakage: {top_k: 3, with: {corpora: {audited: bad.jsonl}}}"
    (home / "plan.yaml").write_text(PLAN.replace("leakage: {top_k: 3}", own))
    found = call("run", home / "plan.yaml", "--out", tmp_path / "b")
    assert found.exit_code == 2
    results = without_times(tmp_path / "b")
    assert results["leakage"]["failed"]
    assert results["leakage"]["verdict"].startswith("Not tested")
    assert not results["membership"]["failed"]
    assert "leakage: could not be done." in found.stderr
    shown = [line for line in found.stdout.splitlines() if line.startswith(("Leakage: ", "Membership: ", "Exposure: "))]
    assert len(shown) == 1, "the audit that could be done is shown, and no empty table"


@pytest.mark.parametrize("shown", [[], ["--json"]])
def test_what_stops_all_audits_is_reported_once(home, tmp_path, shown):
    changed = ["--set", "models.target=absent", "--out", tmp_path / "run", *shown]
    found = call("run", home / "plan.yaml", *changed)
    assert found.exit_code == 2
    results = without_times(tmp_path / "run")
    (failed,) = results["membership"]["failed"]
    assert failed["code"] == "no_such_model"
    assert results["leakage"]["failed"] == [{**failed, "audit": "leakage"}]
    assert found.stderr.count("recollect: ") == found.stderr.count(failed["error"]) == 1
    assert "membership, leakage: could not be done. " in found.stderr
    if shown:  # a program reads each audit's result by itself
        assert [each["failed"][0]["code"] for each in json.loads(found.stdout)] == ["no_such_model"] * 2
    else:
        assert found.stdout == ""


def test_what_is_missing_is_said_before_anything_is_run(home, tmp_path, check_refusal):
    (home / "plan.yaml").write_text(PLAN + "  exposure: []\n")
    found = call("run", home / "plan.yaml", "--set", "audits.exposure={}", "--out", tmp_path / "run")
    check_refusal(found)
    assert "canaries" in found.stderr or "exposure" in found.stderr
    assert not (tmp_path / "run" / "results").exists()


def test_a_check_says_what_will_be_scored_and_trained_and_writes_nothing(home, tmp_path):
    recipe = "recipe: {recipe: causal-transformer, set: {training.epochs: 1, n_embd: 16, n_layer: 1, n_head: 2}}\n"
    plan = PLAN.replace("signal: loss", "signal: lira, shadows: 2").replace("top_k: 3", "top_k: 3, folds: 3")
    (home / "plan.yaml").write_text(plan + recipe)
    before = sorted(home.iterdir())
    found = call("check", home / "plan.yaml", "--json")
    assert found.exit_code == 0, found.output
    membership, leakage = json.loads(found.stdout)
    assert membership["models_to_train"] == {"pool": 2}
    assert membership["queries"] == 40 * 3
    assert membership["records_scored"] == 3 * 40 * 3
    assert leakage["models_possibly_needed"] == {"left-out": 3}
    given = call("check", home / "plan.yaml", "--only", "leakage", "--set", "models.reference=base", "--json")
    assert json.loads(given.stdout)[0]["models_possibly_needed"] == {}, "where a reference is given, none is trained"
    assert sorted(home.iterdir()) == before
    assert "can be run" in call("check", home / "plan.yaml", "--only", "leakage").stdout


def test_a_check_says_of_every_audit_that_cannot_be_run_why(home):
    (home / "bad.jsonl").write_text("no json\n")
    own = "with: {corpora: {audited: bad.jsonl}}"
    (home / "plan.yaml").write_text(
        PLAN.replace("top_k: 3", f"top_k: 3, {own}").replace("limits:", "  exposure:\nlimits:")
    )
    found = call("check", home / "plan.yaml")
    assert found.exit_code == 2
    assert found.stderr.count("recollect: ") == 1
    assert "leakage: cannot be run. " in found.stderr
    assert "exposure: cannot be run. " in found.stderr
    assert "What can be run of plan.yaml" in found.stdout
    assert "membership" in found.stdout
    assert [each["audit"] for each in json.loads(call("check", home / "plan.yaml", "--json").stdout)] == ["membership"]


def test_a_check_says_once_what_stops_all_audits(home):
    found = call("check", home / "plan.yaml", "--set", "models.target=absent")
    assert found.exit_code == 2
    assert found.stderr.count("'absent'") == found.stderr.count("recollect: ") == 1
    assert "membership, leakage: cannot be run. " in found.stderr
    assert found.stdout == ""
