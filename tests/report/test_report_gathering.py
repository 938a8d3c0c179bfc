"""What a report says: the five questions, what was audited, what was not tested, and the annex."""

from __future__ import annotations

import sys

import pyarrow as pa
import pytest

from recollect.audits.registry import AUDITS
from recollect.report.annex import MATTERS
from recollect.report.presentations import find_presentation, load_function
from recollect.report.questions import FIVE, choose_light, get_five_questions
from recollect.report.report import build_report
from recollect.results import Failed, Result, RunFolder, Skipped
from recollect.results.advice import DEFAULT_ADVICE, STEPS
from recollect.testing.refusals import refused


def plugin(exposed, **changes):
    fields = {"audit": "fluency", "question": "Does it know them?", "verdict": "It does.", "outcome": "not_found"}
    made = Result(**fields | changes).with_tables(users=pa.table({"user": ["ann"], "text": ["hello world"]}))
    return made.with_provenance(exposed().provenance)


def test_all_five_questions_are_there_and_those_of_plug_ins_follow(folder, exposed):
    folder.write_result(plugin(exposed))
    report = build_report(folder)
    assert [each.question for each in report.questions] == [*get_five_questions().values(), "Does it know them?"]
    assert [len(each.answers) for each in report.questions] == [0, 1, 0, 0, 0, 1]
    assert [answer.result.audit for answer in report.answers] == ["exposure", "fluency"]


def test_extraction_helps_to_answer_the_question_of_exposure(folder, exposed):
    folder.write_result(plugin(exposed, audit="extraction"))
    report = build_report(folder)
    assert [answer.result.audit for answer in report.questions[1].answers] == ["exposure", "extraction"]
    assert len(report.questions) == 5


def test_the_five_questions_are_those_of_the_audits_that_support_no_other():
    assert {*FIVE} == {name for name in AUDITS.table if not find_presentation(name).supports}
    assert get_five_questions() == {name: AUDITS.load(name).question for name in FIVE}


@pytest.mark.parametrize("name", AUDITS.table)
def test_all_that_our_audits_declare_is_there(name):
    declared = find_presentation(name)
    assert declared is AUDITS.load(name).presentation
    assert all(map(callable, map(load_function, filter(None, [declared.figures]))))
    assert all(callable(load_function(place)) for _, place in declared.files.values())
    assert {*declared.annex} <= {matter.id for matter in MATTERS}
    assert declared.supports in ("", *FIVE)


def test_a_function_that_is_not_there_is_refused():
    for place in ("no_such_package:draw", "recollect.errors:draw", "nowhere", ""):
        with refused("presentation_broken"):
            load_function(place)


def test_an_audit_that_is_not_installed_is_shown_with_all_columns_and_no_figures(folder, exposed):
    folder.write_result(plugin(exposed))
    *_, answer = build_report(folder).answers
    assert answer.figures == ()
    assert [table.headings for table in answer.tables] == [("user", "text")]


def test_tables_that_are_drawn_are_not_listed(folder):
    (answer,) = build_report(folder).answers
    assert [table.name for table in answer.tables] == ["secrets"]
    assert len(answer.figures) == 3


@pytest.mark.parametrize(
    ("settings", "show_text", "words"),
    [
        ({"show_text": True}, False, "•••• (10–19 characters)"),
        ({"show_text": True}, True, "hello world"),
        ({"show_text": False}, False, "hello world"),  # the run has masked what it had to mask
        ({}, False, "•••• (10–19 characters)"),
    ],
)
def test_text_that_a_run_kept_is_masked_again_unless_requested(folder, exposed, settings, show_text, words):
    folder.write_result(plugin(exposed, settings=settings))
    *_, answer = build_report(folder, show_text=show_text).answers
    assert answer.tables[0].rows[0][1].words == words


def test_text_is_shown_of_those_audits_alone_that_were_to_show_it(folder, exposed):
    kept = {"show_text": True}
    for audit in ("fluency", "accent"):
        folder.write_result(plugin(exposed, audit=audit, settings=kept))
    shown = {
        answer.result.audit: answer.tables[0].rows[0][1].words
        for answer in build_report(folder, show_text=["accent"]).answers
        if answer.result.settings == kept
    }
    assert shown == {"accent": "hello world", "fluency": "•••• (10–19 characters)"}


def test_an_audit_that_failed_is_among_what_was_not_tested(folder, exposed):
    folder.write_result(plugin(exposed, failed=(Failed(audit="fluency", code="broke", error="It broke."),)))
    assert "Failed: the fluency audit." in build_report(folder).untested


def test_what_was_not_tested_is_reported_once_each(folder, exposed):
    skipped = (Skipped(audit="fluency", finding="auc", code="too_few", reason="Too few."),)
    folder.write_result(plugin(exposed, untested=("Other formats.",), skipped=skipped))
    untested = build_report(folder).untested
    assert untested[:2] == ("Other formats.", "Skipped: AUC. Too few.")
    assert [words for words in untested if words.startswith("Not tested")] == [
        f"Not tested: {question}" for audit, question in get_five_questions().items() if audit != "exposure"
    ]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"outcome": "found"}, "Found"),
        ({"outcome": "inconclusive", "outcome_code": "no_power"}, "Inconclusive"),
        ({"failed": (Failed(audit="fluency", code="broke", error="It broke."),)}, "Not done"),
        ({"skipped": (Skipped(audit="fluency", code="too_few", reason="No access."),)}, "Not done"),
        ({"skipped": (Skipped(audit="fluency", finding="auc", code="too_few", reason="Too few."),)}, "Not found"),
    ],
)
def test_the_light_says_what_is_known(exposed, changes, words):
    assert choose_light(plugin(exposed, **changes)).words == words


def test_what_failed_is_a_warning_at_the_top(folder, exposed):
    folder.write_result(plugin(exposed, failed=(Failed(audit="fluency", code="broke", error="It broke."),)))
    assert build_report(folder).warnings == ("fluency: It broke.",)


def test_results_of_different_models_are_not_passed_off_as_one(folder, exposed):
    assert [(each.name, each.digest) for each in build_report(folder).models] == [("model without a name", "ab12")]
    other = exposed().provenance.model_copy(update={"model": "ff99"})
    folder.write_result(plugin(exposed).with_provenance(other))
    report = build_report(folder)
    assert [(each.audits, each.digest) for each in report.models] == [(("exposure",), "ab12"), (("fluency",), "ff99")]
    assert {answer.origin["model"] for answer in report.answers} == {"ab12", "ff99"}
    plan = "audits: {fluency: {with: {models: {target: another}}}}\nmodels: {target: {model: shop-bot, window: 8}}\n"
    folder.plan.write_text(plan)
    named = build_report(folder)
    assert [(each.name, each.digest) for each in named.models] == [
        ("model without a name", "ab12"),
        ("another", "ff99"),
    ]
    folder.plan.write_text(plan.replace("audits: {", "audits: {exposure: {}, "))
    assert [each.name for each in build_report(folder).models] == ["shop-bot", "another"]


def test_the_plan_tells_the_names_and_a_report_can_do_without_it(folder):
    assert [each.name for each in build_report(folder).models] == ["model without a name"]
    folder.plan.write_text("models: {target: {ref: shop-bot}}\ncorpora: {audited: posts.jsonl}\n")
    (model,) = build_report(folder).models
    assert (model.name, model.corpora) == ("shop-bot", "posts.jsonl")
    for damaged in ("[", "- 1", "models: 3"):
        folder.plan.write_text(damaged)
        assert [each.name for each in build_report(folder).models] == ["model without a name"]


def test_each_model_and_corpus_is_named_once_and_shortly_however_many_audits_have_it(folder, exposed):
    for name in ("fluency", "leakage", "membership"):
        folder.write_result(exposed().replace(audit=name))
    own = "{with: {corpora: {audited: /home/ann/new/posts.jsonl}, models: {reference-0: /m/a, reference-1: hf:b}}}"
    folder.plan.write_text(
        "models: {target: {model: /home/ann/models/shop-bot+/home/ann/tuned, window: 8}}\n"
        f"audits: {{exposure: {own}, fluency: {own}, leakage: {own}, membership: {own.replace('new', 'old')}}}\n"
    )
    (model,) = build_report(folder).models
    assert (model.name, model.corpora) == ("shop-bot+tuned", "new/posts.jsonl, old/posts.jsonl")
    assert model.audits == ("exposure", "fluency", "leakage", "membership")
    folder.plan.write_text("models: {target: 'https://host/v1#bot'}")
    assert [each.name for each in build_report(folder).models] == ["https://host/v1#bot"]


def test_a_table_that_is_gone_is_said_to_be(folder):
    (folder.path / "tables/exposure/secrets.parquet").unlink()
    (answer,) = build_report(folder).answers
    assert "secrets.parquet" in answer.remarks[0].text
    assert answer.figures == ()


def test_a_folder_without_results_is_refused(tmp_path):
    (tmp_path / "results").mkdir()
    with refused("no_results"):
        build_report(RunFolder(tmp_path))


def test_the_annex_gives_each_question_the_answers_that_are_evidence_for_it(folder, exposed):
    for audit in ("extraction", "membership", "removal"):
        folder.write_result(plugin(exposed, audit=audit))
    found = {each.matter.id: [answer.result.audit for answer in each.answers] for each in build_report(folder).annex}
    assert found == {
        "extraction": ["exposure", "extraction"],
        "queries": ["extraction"],
        "inference": ["membership"],
        "erasure": ["removal"],
        "attributes": [],
        "documentation": [],
    }


def test_the_annex_names_the_audits_that_would_be_evidence(folder):
    would = {each.matter.id: each.audits for each in build_report(folder).annex}
    assert "erasure" not in would  # only removal audits speak of it
    assert would["inference"] == ("membership", "provenance")
    assert would["attributes"] == would["documentation"] == ()


THEIRS = """
from dataclasses import dataclass
from typing import ClassVar
from markupsafe import Markup
from recollect.report.figures.figure import Figure
from recollect.report.figures.panel import Panel
from recollect.report.figures.scale import Scale
from recollect.results.presentation import Presentation, TableView

@dataclass(frozen=True, kw_only=True)
class FluencyAudit:
    name: ClassVar = "fluency"
    question: ClassVar = "Does it know them?"
    paper: ClassVar = "none"
    presentation: ClassVar = Presentation(
        figures="theirs:draw",
        tables={"users": TableView(caption="Speakers", columns={"user": "Who"})},
        files={"more": ("more.txt", "theirs:read")},
        annex=("attributes", "weather"),
        supports="leakage",
        outcome_words={"not_found": "Dumb"},
    )

    def needs(self, evidence):
        raise NotImplementedError

    def run(self, evidence, rng, workspace=None):
        raise NotImplementedError

def draw(result, tables):
    scale = Scale(low=0.0, high=1.0, label="x")
    return [Figure(title=f"Drawn of {sorted(tables)}", reading="r", description="d", panels=(Panel(scale, scale),))]

def read(path):
    return path.read_text()
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a package whose audit is called fluency, as pip would."""

    def made(code):
        home = tmp_path / "site"
        (home / "theirs-1.0.dist-info").mkdir(parents=True)
        (home / "theirs-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
        (home / "theirs-1.0.dist-info" / "entry_points.txt").write_text(
            "[recollect.audits]\nfluency = theirs:FluencyAudit\n"
        )
        (home / "theirs.py").write_text(code)
        monkeypatch.syspath_prepend(home)
        monkeypatch.delitem(sys.modules, "theirs", raising=False)
        vars(AUDITS).pop("_plugins", None)

    yield made
    vars(AUDITS).pop("_plugins", None)
    sys.modules.pop("theirs", None)


def test_what_a_plug_in_declares_is_shown(folder, exposed, install):
    install(THEIRS)
    (folder.path / "more.txt").write_text("more")
    folder.write_result(plugin(exposed))
    report = build_report(folder)
    assert [[answer.result.audit for answer in each.answers] for each in report.questions] == [
        *([], ["exposure"], ["fluency"], [], [])
    ]
    answer = report.questions[2].answers[0]
    assert answer.light.words == "Dumb"
    assert [figure.title for figure in answer.figures] == ["Drawn of ['more', 'users']"]
    assert [(table.caption, table.headings) for table in answer.tables] == [("Speakers", ("Who",))]
    assert [each.matter.id for each in report.annex if answer in each.answers] == ["attributes"]
    assert "'weather'" in report.warnings[0]


@pytest.mark.parametrize(
    ("code", "tables"),
    [("import no_such_package", ("user", "text")), (THEIRS.replace("theirs:draw", "theirs:paint"), ("Who",))],
)
def test_what_a_broken_plug_in_cannot_show_is_reported(folder, exposed, install, code, tables):
    install(code)
    folder.write_result(plugin(exposed))
    *_, answer = build_report(folder).answers
    assert answer.figures == ()
    assert [table.headings for table in answer.tables] == [tables]
    (missing,) = [remark.text for remark in answer.remarks if remark.warning]
    assert "no_such_package" in missing or "theirs:paint" in missing


def test_support_of_an_audit_that_is_not_there_is_no_reason_to_vanish(folder, exposed, install):
    install(THEIRS.replace('supports="leakage"', 'supports="extraction"'))
    folder.write_result(plugin(exposed, audit="extraction"))
    folder.write_result(plugin(exposed))
    assert [answer.result.audit for answer in build_report(folder).answers] == ["exposure", "extraction", "fluency"]


def test_the_headline_counts_questions_in_plain_words(folder, exposed):
    found = "evidence of memorisation"
    missing = "Not examined: {} of the 5 built-in questions."
    assert build_report(folder).headline == f"1 of 1 question examined: {found}. {missing.format(4)}"
    folder.write_result(plugin(exposed, audit="leakage"))
    unknown = {"outcome": "inconclusive", "outcome_code": "no_power"}
    folder.write_result(plugin(exposed, audit="removal", **unknown))
    rest = "1 no evidence, 1 inconclusive"
    expected = f"1 of 3 questions examined: {found}. The others: {rest}. {missing.format(2)}"
    assert build_report(folder).headline == expected
    folder.write_result(exposed().replace(outcome="not_found"))
    expected = f"0 of 3 questions examined: {found}; 2 no evidence, 1 inconclusive. {missing.format(2)}"
    assert build_report(folder).headline == expected


def test_the_headline_counts_what_plugins_found(folder, exposed):
    folder.write_result(exposed().replace(outcome="not_found"))
    folder.write_result(plugin(exposed, outcome="found"))  # a question of its own
    start = "1 of 2 questions examined: evidence of memorisation. The others: 1 no evidence."
    assert build_report(folder).headline == f"{start} Not examined: 4 of the 5 built-in questions."
    broke = (Failed(audit="palmistry", code="broke", error="It broke."),)
    folder.write_result(plugin(exposed, audit="palmistry", failed=broke))
    end = "Not examined: 4 of the 5 built-in questions. Not done: 1 question of plug-ins."
    assert build_report(folder).headline == f"{start} {end}"


def test_a_plugin_that_declares_no_advice_has_the_default_in_the_report(folder, exposed):
    folder.write_result(plugin(exposed, outcome="found"))
    (answer,) = (each for each in build_report(folder).answers if each.result.audit == "fluency")
    assert answer.meaning == DEFAULT_ADVICE["found"].meaning
    assert answer.steps == ("hold-release", "notify")


def test_a_question_whose_only_audit_was_not_done_was_not_examined(folder, exposed):
    broke = (Failed(audit="leakage", code="broke", error="It broke."),)
    folder.write_result(plugin(exposed, audit="leakage", failed=broke))
    expected = "1 of 1 question examined: evidence of memorisation. Not examined: 4 of the 5 built-in questions."
    assert build_report(folder).headline == expected
    folder.write_result(
        plugin(exposed, audit="extraction", skipped=(Skipped(audit="extraction", code="too_few", reason="Cannot."),))
    )
    assert build_report(folder).headline == expected


def test_every_outcome_of_our_audits_has_a_meaning_and_a_step():
    for name in AUDITS.table:
        advice = find_presentation(name).advice
        # a search always lists something, and no list proves that nothing is memorised
        assert {*advice} >= {"found", "inconclusive" if name == "extraction" else "not_found"}, name
        for each in advice.values():
            assert each.meaning.endswith(".")
            assert {*each.steps} <= {*STEPS}
            assert each.steps


def test_what_to_do_is_listed_once_the_most_urgent_first(folder):
    assert [*build_report(folder).steps] == ["hold-release", "deduplicate", "private-training", "replace-secrets"]
    assert build_report(folder).answers[0].meaning.startswith("The model ranks secrets")
