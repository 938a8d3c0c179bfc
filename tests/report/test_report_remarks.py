"""What is said beside the numbers: limits, comparability, placebo, power, what is withheld, in every view."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from recollect.pipeline.plans.limits import Limit, check_limits
from recollect.report.audit_answer import build_answer
from recollect.report.html import render_html
from recollect.report.markdown import render_markdown
from recollect.report.notebook import render_notebook_html
from recollect.report.remarks import build_listings, build_remarks
from recollect.report.report import build_report
from recollect.results import Result
from recollect.results.result import (
    About,
    EndpointFacts,
    Guard,
    GuardCheck,
    ModelFacts,
    Placebo,
)

SAID = (
    "Pass",
    "Fail",
    "Not checked",
    "There is no finding auc.",
    "records per user",
    "They wrote more.",
    "Not comparable.",
    "Placebo test failed.",
    "25 % (10–40 %) of 40 runs",
    "It accuses anybody.",
    "The audit accuses held-out controls as well.",
    "igh",  # how grave it is
    "Give controls of the same kind.",
    "It would mislead.",
    "smallest p-value that this design can give is 0.02",
    "1.5 bits",
    "1,200 control users",
    "Of ann nothing can be determined.",
    "Look at r-7.",
)


def rendered(text):
    """The words of a Markdown page as its readers see them."""
    return MarkdownIt("commonmark").enable("table").render(text)


@pytest.mark.parametrize("words", SAID)
def test_every_view_shows_all_that_a_result_says(full, exposed, everything_said, words):
    report = build_report(full)
    result = exposed().replace(**everything_said)
    for view in (
        render_html(report),
        rendered(render_markdown(report)),
        render_notebook_html(result, result.tables_in_memory),
    ):
        assert words in view


def test_what_was_audited_stands_at_the_top(full):
    report = build_report(full)
    subject = report.subject
    assert list(subject)[:5] == ["date", "system", "version of the system", "audited by", "purpose"]
    assert (subject["system"], subject["date"]) == ("shop-bot", "2026-01-31")
    for view in (render_html(report), render_markdown(report)):
        assert "R. Roe" in view


def test_systems_that_differ_are_all_named(full, exposed):
    fields = {"audit": "leakage", "question": "Does it?", "verdict": "It does.", "outcome": "found"}
    other = Result(**fields, about=About(system="other-bot", who="R. Roe"))
    full.write_result(other.with_provenance(exposed().provenance))
    assert build_report(full).subject["system"] == "shop-bot; other-bot"
    assert build_report(full).subject["audited by"] == "R. Roe"


def test_limits_that_were_not_kept_are_warnings_at_the_top(full):
    first, second = build_report(full).warnings
    assert "exposure_bits_planted_9.upper>7 was exceeded: 7.25" in first
    assert "auc>0.6 could not be checked: There is no finding auc." in second


def test_the_reason_why_a_limit_was_not_checked_names_the_limit_once(full, exposed):
    result = exposed()
    checked = check_limits([Limit.parse("acu>0.6"), Limit.parse("auc>0.6")], result)
    full.write_result(result.replace(limits=checked))
    for warning, limit in zip(build_report(full).warnings, ("acu>0.6", "auc>0.6"), strict=True):
        assert warning.count(limit) == 1
        assert warning.count("checked") == 1


def test_a_version_that_is_not_stated_beside_a_system_is_no_gap(full, exposed):
    full.write_result(exposed().replace(about=About(system="shop-bot 2.1")))
    subject = build_report(full).subject
    assert subject["system"] == "shop-bot 2.1"
    assert "version of the system" not in subject
    full.write_result(exposed().replace(about=None))
    assert build_report(full).subject["version of the system"] == "not stated"


def test_what_is_withheld_was_not_tested(full):
    assert "Withheld: auc. It would mislead." in build_report(full).untested


def test_a_result_without_any_of_it_says_nothing_of_it(exposed):
    bare = exposed(notes=())
    assert build_remarks(bare) == build_listings(bare) == ()


def test_what_is_well_is_no_warning(exposed):
    well = exposed().replace(guard=Guard(comparable=True), placebo=Placebo(status="passed"), notes=())
    assert [(each.title, each.warning) for each in build_remarks(well)] == [
        ("Comparable.", False),
        ("Placebo test passed.", False),
    ]


@pytest.mark.parametrize(
    ("code", "words"), [("no_power", "The data are too few"), ("too_few_shadows", "Too few shadows.")]
)
def test_the_reason_of_an_outcome_is_in_words(exposed, code, words):
    unknown = exposed().replace(outcome="inconclusive", outcome_code=code)
    assert build_remarks(unknown)[0].text.startswith(words)


def test_people_are_named_as_the_view_names_them(full):
    report = build_report(full, naming=lambda mention: f"{mention.kind} 1")
    for view in (render_html(report), rendered(render_markdown(report))):
        assert "Of user 1 nothing can be determined." in view
        assert "Look at record 1." in view
        assert "ann" not in view.replace("annex", "")


def test_each_number_says_what_to_do_about_it(folder, exposed):
    (finding,) = exposed().findings
    advised = finding.model_copy(update={"severity": "medium", "next_step": "Remove duplicates."})
    folder.write_result(exposed().replace(findings=(advised,)))
    report = build_report(folder)
    for view in (render_html(report), rendered(render_markdown(report))):
        assert "Mean exposure. Severity: medium. What to do: Remove duplicates." in view


def test_each_model_is_traced_to_its_revision(exposed):
    endpoint = EndpointFacts(url="http://localhost:8000/v1", served_name="bot")
    facts = {"target": ModelFacts(name="hf:bot", digest="ab12", revision="c0ffee", endpoint=endpoint)}
    trace = exposed().provenance.model_copy(update={"models": facts})
    origin = build_answer(exposed().with_provenance(trace), {}).origin
    assert (origin["name of target"], origin["revision of target"]) == ("hf:bot", "c0ffee")
    assert "localhost:8000" in origin["endpoint of target"]


def test_models_are_named_without_the_folders_they_lie_in(exposed):
    paths = {"target": "/home/ann/acme/bot", "reference": "/home/ann/acme/base", "shadow-0": "hf:shop/bot"}
    facts = {role: ModelFacts(name=path, digest="ab12") for role, path in paths.items()}
    trace = exposed().provenance.model_copy(update={"models": facts})
    origin = build_answer(exposed().with_provenance(trace), {}).origin
    assert [origin[f"name of {role}"] for role in paths] == ["bot", "base", "hf:shop/bot"]


def test_the_guard_is_headed_by_the_sides_that_it_compared(exposed):
    guard = Guard(
        sides=("members", "non-members"),
        comparable=True,
        checks=(GuardCheck(name="length", comparable=True, text="No significant difference in length."),),
    )
    result = exposed().replace(guard=guard, notes=())
    assert "No check distinguishes the members from the non-members." in [each.text for each in build_remarks(result)]
    assert "The members beside the non-members" in [listing.caption for listing in build_listings(result)]
