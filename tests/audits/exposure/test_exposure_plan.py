"""Which secrets a plan means, and what of a model's training its run folder keeps."""

import json

import pytest

from recollect.audits.exposure.audit import ExposureAudit
from recollect.audits.exposure.view import CANARIES
from recollect.corpora.canaries.insertion import CanarySettings, plant
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.models.loading import local_models
from recollect.pipeline.plans.plan import Plan
from recollect.pipeline.run import run
from recollect.report.report_writer import write_report
from recollect.results.run_folder import EXPOSURE_HISTORY
from recollect.results.run_manifest import RUN_MANIFEST
from recollect.signals.evidence import AUDITED, TARGET
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model, save_tiny

FORMAT = "again {digits:2}"
EPOCHS = [
    {"epoch": epoch, "training_loss": 3.0 / epoch, "secrets": [{"planted": 1, "exposure_bits": float(epoch)}]}
    for epoch in (1, 2)
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("planned")
    save_tiny(build_tiny_model("gpt2"), made / "model")
    (made / "model" / EXPOSURE_HISTORY).write_text(json.dumps(EPOCHS))
    _, canaries = plant(corpus(), CanarySettings(format=FORMAT, secrets=2, controls=4))
    canaries.save(made / "canaries.json")
    return made


def corpus():
    texts = ["the quick fox", "jumps over again 42 and", "the lazy dog again 17"]
    return Corpus.of(Record(id=str(i), text=text) for i, text in enumerate(texts))


def plan_of(folder, tmp_path, *, planted=False, searched=False, **settings):
    return Plan(
        audit=ExposureAudit(**{"draws": 100, "method": "sampled", "show_text": True, **settings}),
        models={TARGET: str(folder / "model")},
        corpora={AUDITED: corpus()} if searched else {},
        files={CANARIES: folder / "canaries.json"} if planted else {},
        work=tmp_path / "work",
    )


def secrets(result):
    return {row["secret"] for row in result.tables_in_memory["secrets"].to_pylist()}


def test_secrets_come_from_the_manifest_from_the_settings_or_from_the_audited_corpus(folder, tmp_path):
    planted = {each["text"] for each in json.loads((folder / "canaries.json").read_text())["canaries"]}
    # other audits of a plan file may read the audited corpus
    assert secrets(run(plan_of(folder, tmp_path, planted=True, searched=True))) == planted
    assert secrets(run(plan_of(folder, tmp_path, searched=True, format=FORMAT, secrets=("99",)))) == {"again 99"}
    found = run(plan_of(folder, tmp_path, searched=True, format=FORMAT, context=0))
    assert secrets(found) == {"again 42", "again 17"}


def test_ranks_that_were_counted_before_are_read_again_without_the_model(folder, tmp_path, monkeypatch):
    plan = plan_of(folder, tmp_path, planted=True, method="exact")
    first = run(plan)
    assert all(first.tables_in_memory["secrets"]["steps"].to_pylist())
    monkeypatch.setattr(local_models, "load_local", lambda *_: pytest.fail("it was loaded"))
    again = run(plan)
    assert again.tables_in_memory["secrets"].equals(first.tables_in_memory["secrets"])
    assert (again.findings, again.verdict) == (first.findings, first.verdict)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({}, "missing_canaries"),
        ({"searched": True}, "missing_canaries"),
        ({"format": FORMAT}, "missing_audited"),
        ({"format": FORMAT, "planted": True}, "unclear_secrets"),
        ({"format": FORMAT, "secrets": ("42",), "planted": True}, "unclear_secrets"),
        ({"format": FORMAT, "searched": True, "planted": True}, "unclear_secrets"),
        ({"secrets": ("42",)}, "secrets_without_format"),
    ],
)
def test_a_plan_that_does_not_say_which_secrets_are_meant_is_refused_before_anything_is_loaded(tmp_path, given, code):
    with refused(code):
        plan_of(tmp_path / "nowhere", tmp_path, **given).refuse_incomplete()


def test_exposure_by_epoch_is_brought_from_the_model_into_the_run_folder_and_drawn(folder, tmp_path):
    run(plan_of(folder, tmp_path, planted=True), tmp_path / "run")
    assert json.loads((tmp_path / "run" / EXPOSURE_HISTORY).read_text()) == EPOCHS
    assert (tmp_path / "run" / EXPOSURE_HISTORY).stat().st_mode & 0o077 == 0
    drawn = write_report(tmp_path / "run").read_text()
    for name in (EXPOSURE_HISTORY, RUN_MANIFEST):  # a run folder without its manifest is read as it is
        (tmp_path / "run" / name).unlink()
    assert drawn.count("<figure") == write_report(tmp_path / "run").read_text().count("<figure") + 1
