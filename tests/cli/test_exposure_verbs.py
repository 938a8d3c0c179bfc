"""`recollect exposure` and `recollect extract` as a user types them."""

import json
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from recollect.cli.app import app
from recollect.corpora.canaries.insertion import CanarySettings, plant
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.testing.tiny import build_tiny_model, save_tiny

FORMAT = "again {digits:2}"


def call(*words):
    return CliRunner(env={"COLUMNS": "200"}).invoke(app, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("verbs")
    save_tiny(build_tiny_model("gpt2"), made / "model")
    save_tiny(build_tiny_model("t5"), made / "t5")
    texts = ["the quick fox", "jumps over again 42 and", "the lazy dog"]
    corpus = Corpus.of(Record(id=str(i), text=text) for i, text in enumerate(texts))
    _, canaries = plant(corpus, CanarySettings(format=FORMAT, secrets=2, controls=10))
    canaries.save(made / "c.json")
    (made / "texts.txt").write_text("\n".join(texts))
    return made


def test_planted_secrets_are_measured_kept_and_masked(folder, tmp_path):
    found = call(
        *("exposure", folder / "model", "--canaries", folder / "c.json", "--draws", 100, "--work", tmp_path / "work"),
        *("--out", tmp_path / "run"),
    )
    assert found.exit_code == 0, found.output
    assert "••••" in found.output
    assert (tmp_path / "run" / "results" / "exposure.json").exists()
    assert (tmp_path / "run" / "tables" / "exposure" / "secrets.parquet").exists()
    secrets = [each["text"] for each in json.loads((folder / "c.json").read_text())["canaries"]]
    assert not any(secret in found.output for secret in secrets)


def test_json_on_standard_output_and_a_limit_for_ci(folder, tmp_path):
    options = ("--canaries", folder / "c.json", "--draws", 100, "--work", tmp_path, "--json")
    junit = tmp_path / "junit.xml"
    found = call("exposure", folder / "model", *options, "--fail-if", "highest_exposure_bits>0", "--junit", junit)
    assert found.exit_code == 1
    (failure,) = ElementTree.parse(junit).iter("failure")  # noqa: S314 - our own
    assert "highest_exposure_bits>0 was exceeded" in failure.get("message")
    result = json.loads(found.stdout)
    assert result["audit"] == "exposure"
    assert {each["name"] for each in result["findings"]} >= {"highest_exposure_bits", "first_guess"}


def test_secrets_may_be_given_or_found(folder, tmp_path):
    options = ("--format", FORMAT, "--draws", 100, "--work", tmp_path, "--show-text")
    given = call("exposure", folder / "model", *options, "--secrets", "17")
    assert given.exit_code == 0, given.output
    assert "again 17" in given.output
    found = call("exposure", folder / "model", folder / "texts.txt", *options, "--context", 5)
    assert found.exit_code == 0, found.output
    assert "over again 42" in found.output


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), "missing_canaries"),
        (("--format", FORMAT), "missing_audited"),
        (("--format", FORMAT, "--canaries", "canaries.json"), "unclear_secrets"),
        (("--format", "again {digit:2}", "--secrets", "1"), "unknown_slot"),
        (("--format", FORMAT, "--secrets", "123"), "secret_not_of_format"),
        (("--canaries", "nowhere.json"), "no_such_file"),
    ],
)
def test_rubbish_gets_one_clear_message(folder, tmp_path, words, code, check_refusal):
    check_refusal(call("exposure", folder / "model", *words, "--work", tmp_path), code)


def test_the_most_likely_are_drawn_out(folder, tmp_path):
    found = call("extract", folder / "model", "--format", FORMAT, "--top", 3, "--show-text", "--work", tmp_path)
    assert found.exit_code == 0, found.output
    assert found.output.count("again ") >= 3
    masked = call("extract", folder / "model", "--format", FORMAT, "--top", 3, "--work", tmp_path, "--method", "beam")
    assert masked.exit_code == 0
    assert "again " not in masked.output.replace("Compare", "")


@pytest.mark.parametrize(("words", "visible"), [((), False), (("--show-text",), True)])
def test_the_source_of_an_extraction_is_private_text(folder, tmp_path, words, visible):
    source, out = "fox jumps", tmp_path / "run"
    options = ("--format", FORMAT, "--source", source, "--top", 1, "--json", "--out", out, "--work", tmp_path, *words)
    found = call("extract", folder / "t5", *options)
    assert found.exit_code == 0, found.output
    written = [found.output, *((out / name).read_text() for name in ("results/extraction.json", "report.html"))]
    assert [source in each for each in written] == [visible] * 3
    assert json.loads(found.stdout)["settings"]["source"] == (source if visible else "•••• (5–9 characters)")
    assert call("report", out).exit_code == 0
    assert source not in (out / "report.html").read_text()


def test_the_source_of_an_extraction_that_fails_is_private_text(folder, tmp_path, check_refusal):
    plan = (
        f"models: {{target: {folder / 'model'}}}\naudits: {{extraction: {{format: '{FORMAT}', source: fox jumps}}}}\n"
    )
    (tmp_path / "plan.yaml").write_text(plan)
    found = call("run", tmp_path / "plan.yaml", "--json", "--out", tmp_path / "run")
    check_refusal(found)
    assert json.loads(found.stdout)[0]["settings"]["source"] == "•••• (5–9 characters)"
    assert "fox jumps" not in (tmp_path / "run" / "report.html").read_text()


def test_exposure_followed_during_training_is_in_the_report(folder, tmp_path, check_refusal):
    quick = ["units=16", "embedding=8", "training.epochs=2", "training.batch_size=4"]
    settings = [word for change in quick for word in ("--set", change)]
    options = ("--canaries", folder / "c.json", "--follow-exposure", "--threads", 1, *settings)
    trained = call("train", "char-lstm", folder / "texts.txt", "--out", tmp_path / "model", *options)
    assert trained.exit_code == 0, trained.output
    assert [row["epoch"] for row in json.loads((tmp_path / "model" / "exposure-by-epoch.json").read_text())] == [1, 2]
    found = call(
        *("exposure", tmp_path / "model", "--canaries", folder / "c.json", "--draws", 100, "--work", tmp_path / "work"),
        *("--out", tmp_path / "run"),
    )
    assert found.exit_code == 0, found.output
    assert "epoch" in (tmp_path / "run" / "report.html").read_text()
    (tmp_path / "model" / "exposure-by-epoch.json").write_text("[1")
    again = call(
        *("exposure", tmp_path / "model", "--canaries", folder / "c.json", "--draws", 100, "--work", tmp_path / "work"),
        *("--out", tmp_path / "run"),
    )
    check_refusal(again, "model_damaged")
    refused = call("train", "char-lstm", folder / "texts.txt", "--out", tmp_path / "other", "--follow-exposure")
    check_refusal(refused, "missing_canaries")
