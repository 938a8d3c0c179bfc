"""The verbs of audits, through one that a test makes up: options, plan, what is shown, and the status."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
import yaml
from typer.testing import CliRunner

from recollect.audits.audit import Needs
from recollect.audits.registry import AUDITS
from recollect.audits.verb import CANDIDATES, CONTROL_RECORDS, REFERENCES, TARGET_MODEL, Role, Verb
from recollect.audits.workspace import NO_WORKSPACE, Workspace
from recollect.cli import console
from recollect.cli.app import app
from recollect.cli.result_display import show_result
from recollect.corpora import Record
from recollect.corpora.corpus_writer import write_corpus
from recollect.corpora.members import read_members
from recollect.corpora.partitions import build_cohorts
from recollect.corpora.readers.corpus_reader import read_corpus
from recollect.errors import NotEnoughData
from recollect.pipeline.plans.plan import Plan
from recollect.pipeline.plans.refs import CorpusRef, ModelRef
from recollect.pipeline.run import FinishedRun
from recollect.report.presentations import find_presentation
from recollect.results.presentation import Presentation, TableView
from recollect.results.result import Finding, Outcome, Result, Skipped
from recollect.results.result_schema import parse_result
from recollect.session import AuditResult, Session
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, TARGET, Evidence
from recollect.signals.registry import make_signal
from recollect.signals.signal import compute_scores
from recollect.stats.auc import auc
from recollect.testing.contracts import check_audit
from recollect.testing.tiny import build_tiny_model, save_tiny


@dataclass(frozen=True, kw_only=True)
class TellingAudit:
    """Whether a signal tells the people who trained a model from others, where it is known who did."""

    signal: str = "loss"
    """Which signal."""

    name: ClassVar[str] = "telling"
    question: ClassVar[str] = (
        "Does the model predict the texts of the people it was trained on better than those of others?"
    )
    paper: ClassVar[str] = "Yeom et al. 2018, Privacy Risk in Machine Learning"
    verb: ClassVar[Verb] = Verb(
        name="telling",
        summary="Tell members from others.",
        guide="`recollect telling my-model posts.jsonl --members truth.json`",
        roles={
            TARGET: TARGET_MODEL,
            AUDITED: CANDIDATES,
            CONTROLS: CONTROL_RECORDS,
            REFERENCE: REFERENCES,
            "canaries": Role(kind="file", help="A file."),
        },
        members=True,
        trains=True,
    )
    presentation: ClassVar[Presentation] = Presentation(
        tables={"users": TableView(caption="Everybody, by score", first="score")}, listed="users"
    )

    def needs(self, evidence: Evidence) -> Needs:
        """The target's answers about everybody."""
        return Needs(
            access={TARGET: make_signal(self.signal).needs[TARGET]},
            given=frozenset({TARGET, AUDITED}),
            score=frozenset({(TARGET, AUDITED)}),
        )

    def run(self, evidence: Evidence, rng: np.random.Generator, workspace: Workspace = NO_WORKSPACE) -> Result:
        """What the scores say, where ground truth is known."""
        by_user, corpus = (
            compute_scores(make_signal(self.signal), evidence).average_by_user(),
            evidence.corpora[AUDITED],
        )
        truth = evidence.members or read_members(evidence.cohorts[AUDITED], corpus)
        members, others = by_user.select_users(truth.members), by_user.select_users(truth.non_members)
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
            users=by_user.to_table(trained_on=[user in set(members.users) for user in by_user.users])
        )

    def _result(self, outcome: Outcome, verdict: str, **more: Any) -> Result:
        """The result with what is always said."""
        limits = ("A tiny model.",)
        return Result(
            audit=self.name, question=self.question, verdict=verdict, outcome=outcome, untested=limits, **more
        )


@dataclass(frozen=True, kw_only=True)
class QuotingAudit:
    """Quotes a text, whether it may or not."""

    name: ClassVar[str] = "quoting"
    question: ClassVar[str] = "What does it say?"
    paper: ClassVar[str] = "a test"
    verb: ClassVar[Verb] = Verb(name="quoting", summary="Quote.", roles={AUDITED: CANDIDATES})
    presentation: ClassVar[Presentation] = Presentation()

    def needs(self, evidence: Evidence) -> Needs:
        """A corpus, and nothing of it."""
        return Needs(given=frozenset({AUDITED}))

    def run(self, evidence: Evidence, rng: np.random.Generator, workspace: Workspace = NO_WORKSPACE) -> Result:
        """A quotation."""
        result = Result(audit=self.name, question=self.question, verdict="It said so.", outcome="found")
        return result.with_tables(rows=pa.table({"text": [f"words of {self.name}"]}))


@dataclass(frozen=True, kw_only=True)
class ShowingAudit(QuotingAudit):
    """Quotes a text, as it was told to."""

    show_text: bool = True
    """Whether the text is shown."""

    name: ClassVar[str] = "showing"


@pytest.fixture(scope="module", autouse=True)
def registered():
    """The audits of these tests are in the registry, as those of a plug-in do."""
    made = {kind.name: f"{__name__}:{kind.__name__}" for kind in (TellingAudit, QuotingAudit, ShowingAudit)}
    AUDITS.table.update(made)
    yield
    for name in made:
        del AUDITS.table[name]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("auditing")
    save_tiny(build_tiny_model("gpt2"), folder / "model")
    records = [
        Record(id=f"{u}-{i}", user=f"u{u}", text=f"user {u} says word{i} {u * i} times")
        for u in range(12)
        for i in range(4)
    ]
    write_corpus(records, folder / "posts.jsonl")
    corpus = read_corpus(folder / "posts.jsonl")
    build_cohorts(corpus, {TARGET: [f"u{i}" for i in range(6)]}, unit="user", seed=0).save(folder / "truth.json")
    return folder


def run(folder, *words):
    given = [folder / "model", folder / "posts.jsonl", "--members", folder / "truth.json", "--work", folder / "work"]
    return CliRunner().invoke(app, ["telling", *map(str, [*given, *words])])


def test_the_audit_of_these_tests_keeps_the_contract():
    check_audit(TellingAudit())


def test_json_alone_is_on_standard_output_and_the_same_in_the_run_folder(folder, tmp_path):
    done = run(folder, "--json", "--out", tmp_path / "run")
    assert done.exit_code == 0, done.stderr
    result = parse_result(json.loads(done.stdout), source="stdout")
    assert result.model_dump(mode="json") == json.loads((tmp_path / "run/results/telling.json").read_text())
    assert result.provenance.queries == 48
    assert f"The report is in {tmp_path / 'run' / 'report.html'}" in done.stderr
    assert result.verdict in (tmp_path / "run/report.html").read_text()


def test_people_get_the_verdict_the_table_and_what_was_not_tested(folder):
    done = run(folder)
    assert done.exit_code == 0, done.stderr
    assert "AUC" in done.stdout
    assert "AUC  0." in done.stdout
    assert "Everybody, by score" in done.stdout, "the first rows of the table that the audit declares"
    assert "Not shown (--out DIR writes a report, --json prints all): 1 untested matter." in done.stderr
    assert "Give --out DIR to keep the result, its tables (users) and a report." in done.stderr


def test_a_terminal_shows_a_dozen_lines_and_few_columns_of_however_many_there_are(folder, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    findings = [
        Finding(
            name=f"number_{i}",
            value=i,
            interval=(0, 9),
            confidence=0.95,
            unit="users",
            n={"users": 9},
            method="a",
            reading="b " * 99,
        )
        for i in range(9)
    ]
    skipped = [Skipped(audit="telling", finding=f"tpr_{i}", code="too_few", reason="Too few.") for i in range(7)]
    result = Result(
        audit="telling",
        question="?",
        verdict="It is so.",
        outcome="found",
        findings=tuple(findings),
        skipped=tuple(skipped),
    ).with_tables(users=pa.table({"user": ["ann"] * 50, **{f"score_{i}": [0.5] * 50 for i in range(12)}}))
    finished = FinishedRun(plan=Plan(audit=TellingAudit()), result=result, cohorts={})
    show_result(AuditResult(finished_run=finished), out=Path("run"), as_json=False)
    shown = capsys.readouterr()
    lines = shown.out.splitlines() + shown.err.splitlines()
    assert len(lines) <= 12
    assert max(map(len, lines)) <= 80
    assert lines[0] == "Telling: Found. It is so."
    assert lines[1].split() == ["Number", "0", "0", "users", "(0–9)"]
    assert lines[6] == "Everybody, by score (2 of 50)"
    assert lines[7].split() == ["user", *(word for i in range(3) for word in ("score", str(i)))]
    assert lines[-1] == "In the report: 4 more numbers, 7 skipped numbers."


@pytest.mark.parametrize("audit", ["exposure", "extraction", "leakage", "membership", "provenance", "removal"])
def test_what_a_terminal_shows_is_declared_of_the_listed_table(audit):
    declared = find_presentation(audit)
    view = declared.tables[declared.listed]
    assert len(view.terminal) <= 5
    assert not view.columns or set(view.terminal) <= set(view.columns)
    assert len(view.terminal) > 0 or len(view.columns) <= 4


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
    ("words", "code"),
    [
        (["--fail-if", "acu>0.5"], None),
        (["--fail-if", "auc"], "not_a_limit"),
        (["--set", "units=3"], "changes_of_no_recipe"),
        (["--recipe", "word-lstmm"], "no_such_recipe"),
        (["--signal", "lots"], "unknown_signal"),
        (["--signal", ""], "unknown_signal"),
        (["--reference", "no/such"], "no_such_model"),
        (["--controls", "none.jsonl"], "missing_file"),
        (["--canaries", "none.json"], "no_such_file"),
        (["--window", "wide"], "invalid_setting"),
        (["--window", "1"], "invalid_setting"),
        (["--user-column", "author"], "missing_column"),
        (["--others", "nobody"], "usage"),
        (["--non-members", "no-such.txt"], "needless_non_members"),
    ],
)
def test_what_cannot_be_done_ends_with_status_2_and_one_message(folder, words, code, check_refusal):
    check_refusal(run(folder, *words), code)


def test_a_run_folder_that_cannot_be_written_is_refused_before_any_cost(folder, tmp_path):
    (tmp_path / "taken").touch()
    done = run(folder, "--out", tmp_path / "taken", "--work", tmp_path / "work")
    assert done.exit_code == 2
    assert not (tmp_path / "work").exists()


def test_the_plan_holds_what_a_call_says():
    plan = Session(seed=5, workers=2).plan(
        "telling",
        "m",
        "posts.jsonl",
        reference=["a", "b"],
        controls=None,
        canaries="c.json",
        user_column="author",
        split="windows",
        split_words=9,
        window=32,
        recipe="word-lstm",
        set={"units": 7},
        fail_if=["auc>0.6"],
        members=["u1", "u2"],
        about={"system": "shop-bot"},
    )
    assert list(plan.models) == [TARGET, "reference-0", "reference-1"]
    assert plan.models["reference-1"] == ModelRef(model="b", window=32)
    assert plan.corpora == {
        AUDITED: CorpusRef(corpus="posts.jsonl", user_column="author", split="windows", split_words=9)
    }
    assert plan.load_recipe().model.units == 7
    assert (plan.files, plan.workers, plan.seed) == ({"canaries": Path("c.json")}, 2, 5)
    assert [str(limit) for limit in plan.limits] == ["auc>0.6"]
    assert plan.members.members == ("u1", "u2")
    assert plan.about.system == "shop-bot"


def test_one_reference_has_the_role_and_several_have_numbers():
    for given, roles in ((["a"], ["reference"]), ("a", ["reference"]), (["a", "b"], ["reference-0", "reference-1"])):
        plan = Session().plan("telling", "m", "posts.jsonl", reference=given)
        assert list(plan.models) == [TARGET, *roles]


def test_the_plan_that_a_verb_leaves_holds_what_its_options_say(folder, tmp_path):
    options = ["--reference", folder / "model", "--reference", folder / "model", "--window", 32, "--workers", 1]
    options += ["--split", "windows", "--split-words", 3, "--recipe", "word-lstm", "--set", "units=7", "--seed", 5]
    options += ["--fail-if", "auc>2", "--shows-top-k", "none", "--canaries", folder / "posts.jsonl", "--signal", "zlib"]
    (tmp_path / "ids.txt").write_text("u1\nu2\n")
    done = run(
        folder, *options, "--members", tmp_path / "ids.txt", "--others", "non-members", "--out", tmp_path / "run"
    )
    assert done.exit_code == 0, done.stderr
    written = yaml.safe_load((tmp_path / "run" / "plan.yaml").read_text())
    model, corpus = str(folder / "model"), str(folder / "posts.jsonl")
    assert written == {
        "models": {
            TARGET: {"model": model, "window": 32},
            "reference-0": {"model": model, "window": 32},
            "reference-1": {"model": model, "window": 32},
        },
        "corpora": {AUDITED: {"corpus": corpus, "split": "windows", "split_words": 3}},
        "members": str(tmp_path / "ids.txt"),
        "others": "non-members",
        "files": {"canaries": corpus},
        "recipe": {"recipe": "word-lstm", "set": {"units": 7}},
        "audits": {"telling": {"signal": "zlib"}},
        "limits": {"telling": ["auc>2"]},
        "seed": 5,
        "work": str(folder / "work"),
        "out": str(tmp_path / "run"),
        "workers": 1,
    }


def test_what_an_audit_is_about_stands_in_its_result_as_it_was_written(folder):
    done = run(folder, "--json", "--about", "system=shop-bot", "--about", "version=1.10", "--about", "date=2026-01-31")
    assert done.exit_code == 0, done.stderr
    about = {name: value for name, value in json.loads(done.stdout)["about"].items() if value is not None}
    assert about == {"system": "shop-bot", "version": "1.10", "date": "2026-01-31"}


@pytest.mark.parametrize("about", ["shop-bot", "sytem=shop-bot"])
def test_what_an_audit_cannot_be_about_is_refused(folder, about, check_refusal):
    check_refusal(run(folder, "--about", about), "invalid_setting")


def test_what_was_not_found_out_is_said_beside_the_numbers(capsys):
    skipped = (Skipped(audit="telling", finding="tpr", code="too_few", reason="Too few."),)
    result = Result(
        audit="telling", question="?", verdict="!", outcome="inconclusive", outcome_code="too_few", skipped=skipped
    )
    finished = FinishedRun(plan=Plan(audit=TellingAudit()), result=result, cohorts={})
    show_result(AuditResult(finished_run=finished), out=None, as_json=False)
    assert "Skipped: tpr: Too few." in capsys.readouterr().err


@pytest.mark.parametrize("audits", ["{quoting: , showing: }", "{showing: , quoting: }"])
def test_the_report_of_several_audits_shows_the_text_of_those_that_were_to_show_it(folder, tmp_path, audits):
    (tmp_path / "plan.yaml").write_text(f"corpora: {{audited: {folder / 'posts.jsonl'}}}\naudits: {audits}\n")
    done = CliRunner().invoke(app, ["run", str(tmp_path / "plan.yaml"), "--out", str(tmp_path / "run")])
    assert done.exit_code == 0, done.stderr
    page = (tmp_path / "run" / "report.html").read_text()
    assert "words of showing" in page
    assert "words of quoting" not in page


def test_brackets_in_names_are_no_markup(monkeypatch, capsys):
    console.print_table("data[old]/model[/b]", ["what"], [["[red]" + 20 * "x"]])
    assert "data[old]/model[/b]" in capsys.readouterr().out
    monkeypatch.setattr(console, "SECONDS_BEFORE_BAR", 0)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    with console.show_progress("asking data[old]/model[/b]") as told:
        told(1, 2, "[/i]")
    assert "asking data[old]/model[/b]" in "".join(capsys.readouterr().err.split("\n")[:1])


def test_every_stage_of_a_long_run_is_reported_in_lines_where_there_is_no_terminal(monkeypatch, capsys):
    monkeypatch.setattr(console, "SECONDS_BEFORE_BAR", 0)
    monkeypatch.setattr(console, "SECONDS_BETWEEN_LINES", 0)
    with console.show_stages() as told:
        told("training 2 models", 1, 4)
        told("training 2 models", 4, 4)
        told("walking", 17, None)
    lines = [line.partition(",")[0] for line in capsys.readouterr().err.splitlines()]
    assert lines == ["training 2 models: 1 of 4 (25%)", "training 2 models: 4 of 4 (100%)", "walking: 17"]
