"""The verbs of audits, through one that a test makes up: options, plan, what is shown, and the status."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
import typer
from typer.testing import CliRunner

from recollect.audits.audit import Needs
from recollect.audits.desk import BARE_DESK, Desk
from recollect.cli import console
from recollect.cli.auditing import (
    Controls,
    Members,
    References,
    RunOptions,
    TrainingOptions,
    numbered,
    planned,
    report_run,
    run_audit,
    show_result,
)
from recollect.cli.options import CorpusName, CorpusOptions, ModelName, QuestionOptions
from recollect.cli.verbs import verb
from recollect.corpora import Record
from recollect.corpora.dividing import cohorts_of
from recollect.corpora.validating import read_corpus
from recollect.corpora.writing import write_corpus
from recollect.errors import NotEnoughData
from recollect.results.folders import RunFolder
from recollect.results.result import Finding, Outcome, Provenance, Result, Skipped
from recollect.results.schema import parsed
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET, Evidence
from recollect.signals.registry import signal_named
from recollect.signals.signal import scored
from recollect.stats.auc import auc
from recollect.testing.contracts import check_audit
from recollect.testing.tiny import save_tiny, tiny_model


@dataclass(frozen=True, kw_only=True)
class TellingAudit:
    """Whether a signal tells the people who trained a model from others, where it is known who did."""

    signal: str = "loss"
    name: ClassVar[str] = "telling"
    question: ClassVar[str] = (
        "Does the model predict the texts of the people it was trained on better than those of others?"
    )
    paper: ClassVar[str] = "Yeom et al. 2018, Privacy Risk in Machine Learning"

    def needs(self, evidence: Evidence) -> Needs:
        """The target's answers about everybody."""
        return Needs(
            access={TARGET: signal_named(self.signal).needs[TARGET]},
            given=frozenset({TARGET, AUDITED}),
            ask=frozenset({(TARGET, AUDITED)}),
        )

    def run(self, evidence: Evidence, rng: np.random.Generator, desk: Desk = BARE_DESK) -> Result:
        """What the scores say, where the truth is known."""
        by_user, truth = scored(signal_named(self.signal), evidence).by_user(), evidence.cohorts[AUDITED]
        members, others = by_user.of_users(truth.members(TARGET)), by_user.of_users(truth.others(TARGET))
        try:
            found = auc(members, others)
        except NotEnoughData as refusal:
            skipped = Skipped(audit=self.name, finding="auc", code=refusal.code, reason=refusal.found)
            return self._result("inconclusive", refusal.found, outcome_code=refusal.code, skipped=(skipped,))
        seen = found.interval is not None and found.interval.low > 0.5
        finding = Finding.of(
            found,
            name="auc",
            unit="probability",
            reading="How often someone the model was trained on scores above someone it was not; 0.5 is chance. "
            "It says nothing about what could be drawn out of the model.",
        )
        verdict = f"Its loss {'tells' if seen else 'does not tell'} members from others (AUC {found.value:.2f})."
        result = self._result("found" if seen else "not_found", verdict, findings=(finding,))
        return result.with_tables(
            users=by_user.table(trained_on=[user in set(members.users) for user in by_user.users])
        )

    def _result(self, outcome: Outcome, verdict: str, **more: Any) -> Result:
        """The result with what is always said."""
        limits = ("A tiny model.",)
        return Result(
            audit=self.name, question=self.question, verdict=verdict, outcome=outcome, untested=limits, **more
        )


def tell(  # noqa: PLR0917 - the parameters of a verb are its options
    model: ModelName,
    corpus: CorpusName,
    reading: CorpusOptions,
    asking: QuestionOptions,
    training: TrainingOptions,
    running: RunOptions,
    reference: References = None,
    controls: Controls = None,
    members: Members = None,
    signal: Annotated[str, typer.Option(help="Which signal.")] = "loss",
) -> None:
    """Tell members from others."""
    plan = planned(
        TellingAudit(signal=signal),
        models={TARGET: model, **numbered("reference", reference)},
        corpora={AUDITED: corpus, CONTROLS: controls},
        members=members,
        reading=reading,
        asking=asking,
        training=training,
        running=running,
    )
    run_audit(plan, running, more=lambda result: typer.echo(f"more of {result.audit}"))


app = typer.Typer()
app.command("tell")(verb(tell))
app.callback()(lambda: None)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("auditing")
    save_tiny(tiny_model("gpt2"), folder / "model")
    records = [
        Record(id=f"{u}-{i}", user=f"u{u}", text=f"user {u} says word{i} {u * i} times")
        for u in range(12)
        for i in range(4)
    ]
    write_corpus(records, folder / "posts.jsonl")
    corpus = read_corpus(folder / "posts.jsonl")
    cohorts_of(corpus, {TARGET: [f"u{i}" for i in range(6)]}, unit="user", seed=0).save(folder / "truth.json")
    return folder


def run(folder, *words):
    given = [folder / "model", folder / "posts.jsonl", "--members", folder / "truth.json", "--work", folder / "work"]
    return CliRunner().invoke(app, ["tell", *map(str, [*given, *words])])


def test_the_audit_of_these_tests_keeps_the_contract():
    check_audit(TellingAudit())


def test_json_alone_is_on_standard_output_and_the_same_in_the_run_folder(folder, tmp_path):
    done = run(folder, "--json", "--out", tmp_path / "run")
    assert done.exit_code == 0, done.stderr
    result = parsed(json.loads(done.stdout), source="stdout")
    assert result.model_dump(mode="json") == json.loads((tmp_path / "run/results/telling.json").read_text())
    assert result.provenance.queries == 48
    assert f"The report is in {tmp_path / 'run' / 'report.html'}" in done.stderr
    assert result.verdict in (tmp_path / "run/report.html").read_text()


def test_people_get_the_verdict_the_table_and_what_was_not_tested(folder):
    done = run(folder)
    assert done.exit_code == 0, done.stderr
    assert "AUC" in done.stdout
    assert "auc" in done.stdout
    assert "more of telling" in done.stdout
    assert "Not tested: A tiny model" in done.stderr
    assert "Give --out DIR to keep the result and its tables (users)" in done.stderr


def test_a_limit_that_is_passed_ends_with_status_1_and_says_by_what(folder, tmp_path):
    done = run(folder, "--fail-if", "auc>2", "--fail-if", "auc.upper >= 0", "--out", tmp_path / "run", "--json")
    assert done.exit_code == 1
    assert "which passes the limit 'auc.upper>=0'" in done.stderr
    assert "'auc>2'" not in done.stderr
    assert json.loads(done.stdout)["audit"] == "telling"
    assert (tmp_path / "run/results/telling.json").exists()


def test_a_limit_that_is_kept_ends_with_status_0(folder):
    assert run(folder, "--fail-if", "auc>2").exit_code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--fail-if", "acu>0.5"], "Did you mean 'auc'? There are: auc."),
        (["--fail-if", "auc"], "is no limit"),
        (["--set", "units=3"], "--set changes a recipe, and none is given"),
        (["--recipe", "word-lstmm"], "Did you mean 'word-lstm'"),
        (["--signal", "lots"], "There is no signal 'lots'"),
        (["--reference", "no/such"], "no/such"),
        (["--controls", "none.jsonl"], "none.jsonl"),
    ],
)
def test_what_cannot_be_done_ends_with_status_2_and_one_message(folder, words, said):
    done = run(folder, *words)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_the_plan_holds_what_the_options_say(folder):
    plan = planned(
        TellingAudit(),
        models={TARGET: "m", **numbered("reference", ["a", "b"])},
        corpora={AUDITED: "posts.jsonl", CONTROLS: None},
        reading=CorpusOptions(user_column="author", split="windows", split_words=9),
        asking=QuestionOptions(window=32, workers=2),
        files={"canaries": Path("c.json"), "words": None},
        training=TrainingOptions(recipe="word-lstm", changes=["units=7"]),
        running=RunOptions(seed=5, fail_if=["auc>0.6"]),
    )
    assert list(plan.models) == [TARGET, "reference-0", "reference-1"]
    assert plan.models["reference-1"].question.window == 32
    assert list(plan.corpora) == [AUDITED]
    written = plan.written()
    assert written["corpora"][AUDITED]["columns"]["user"] == "author"
    assert written["corpora"][AUDITED]["split"] == {"by": "windows", "words": 9, "minimum": 1}
    assert written["recipe"]["model"]["units"] == 7
    assert (written["files"], written["workers"], written["seed"]) == ({"canaries": "c.json"}, 2, 5)
    assert written["limits"] == ["auc>0.6"]


def test_what_was_not_found_out_is_said_beside_the_numbers(capsys):
    skipped = (Skipped(audit="telling", finding="tpr", code="too_few", reason="Too few."),)
    show_result(
        Result(
            audit="telling", question="?", verdict="!", outcome="inconclusive", outcome_code="too_few", skipped=skipped
        ),
        RunOptions(),
    )
    assert "Skipped: tpr: Too few." in capsys.readouterr().err


@pytest.mark.parametrize("first", [0, 1])
def test_the_report_of_several_audits_shows_the_text_of_those_that_were_to_show_it(tmp_path, first):
    trace = Provenance(recollect="1", seed=0, queries=1, seconds=0.0)
    results = [
        Result(audit=audit, question="?", verdict="!", outcome="found", settings=settings)
        .with_tables(rows=pa.table({"text": [f"words of {audit}"]}))
        .with_provenance(trace)
        for audit, settings in (("telling", {}), ("showing", {"show_text": True}))
    ]
    for result in results:
        RunFolder(tmp_path).write_result(result)
    report_run(tmp_path, [results[first], results[1 - first]])
    page = (tmp_path / "report.html").read_text()
    assert "words of showing" in page
    assert "words of telling" not in page


def test_brackets_in_names_are_no_markup(monkeypatch, capsys):
    console.print_table("data[old]/model[/b]", ["what"], [["[red]" + 20 * "x"]])
    assert "data[old]/model[/b]" in capsys.readouterr().out
    monkeypatch.setattr(console, "PATIENCE", 0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with console.progress("asking data[old]/model[/b]") as told:
        told(1, 2, "[/i]")
    assert "asking data[old]/model[/b]" in "".join(capsys.readouterr().err.split("\n")[:1])


def test_every_stage_of_a_long_run_is_told_in_lines_where_there_is_no_terminal(monkeypatch, capsys):
    monkeypatch.setattr(console, "PATIENCE", 0)
    monkeypatch.setattr(console, "PLAIN_EVERY", 0)
    with console.stages() as told:
        told("training 2 models", 1, 4)
        told("training 2 models", 4, 4)
        told("walking", 17, None)
    lines = [line.partition(",")[0] for line in capsys.readouterr().err.splitlines()]
    assert lines == ["training 2 models: 1 of 4 (25%)", "training 2 models: 4 of 4 (100%)", "walking: 17"]
