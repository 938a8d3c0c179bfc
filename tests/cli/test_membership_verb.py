"""`recollect membership` as a user types it."""

import json
import random
import shutil

import pytest
from typer.testing import CliRunner

import recollect
from recollect.cli.app import app
from recollect.corpora.partitions import build_cohorts
from recollect.corpora.readers.corpus_reader import read_corpus
from recollect.testing.tiny import build_tiny_model, save_tiny

WORDS = ["red", "blue", "old", "new", "big", "small", "fast", "slow", "warm", "cold", "wild", "tame", "loud", "calm"]


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def written(path, name, people, each=2):
    """What people wrote: all alike but for chance, so that only a model could tell them apart."""
    rng = random.Random(name)
    lines = [
        {
            "id": f"{name}-{i}-{j}",
            "user": f"{name}-{i}",
            "text": f"the quick {' '.join(rng.choices(WORDS, k=5))} fox jumps again",
        }
        for i in range(people)
        for j in range(each)
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("membership")
    for name in ("bert", "gpt2"):
        save_tiny(build_tiny_model(name), made / name)
    save_tiny(build_tiny_model("bert", seed=1), made / "base")
    candidates = written(made / "candidates.jsonl", "ann", 12)
    written(made / "controls.jsonl", "bob", 30)
    corpus = read_corpus(str(candidates))
    members = sorted({record.user for record in corpus})[:6]
    build_cohorts(corpus, {"target": members}, unit="user", seed=0).save(made / "cohorts.json")
    return made


def test_a_masked_model_is_audited_with_a_reference_and_the_truth(folder, tmp_path):
    found = call(
        *("membership", folder / "bert", folder / "candidates.jsonl", "--reference", folder / "base"),
        *("--controls", folder / "controls.jsonl", "--members", folder / "cohorts.json", "--fpr", "0.1,0.25"),
        *("--patterns", 2, "--work", tmp_path / "work", "--out", tmp_path / "run", "--by", "user"),
    )
    assert found.exit_code == 0, found.output
    result = json.loads((tmp_path / "run" / "results" / "membership.json").read_text())
    names = {finding["name"] for finding in result["findings"]}
    assert {"auc", "precision_at_fpr_0.25", "recall_at_fpr_0.1", "loss_auc", "loss_recall_at_mean"} <= names | {
        each["finding"] for each in result["skipped"]
    }
    assert result["settings"]["signal"] == "ratio"
    assert result["outcome"] == "not_found"  # both models are one and the same: every score is 0
    assert {path.stem for path in (tmp_path / "run" / "tables" / "membership").iterdir()} == {
        "candidates",
        "controls",
        "roc",
        "thresholds",
    }


def test_without_a_reference_the_loss_is_the_signal_and_json_goes_to_standard_output(folder, tmp_path):
    found = call(
        *("membership", folder / "gpt2", folder / "candidates.jsonl", "--controls", folder / "controls.jsonl"),
        *("--fpr", "0.1", "--work", tmp_path, "--json", "--claimed-epsilon", 4, "--delta", 1e-5),
    )
    assert found.exit_code == 0, found.output
    result = json.loads(found.stdout)
    assert result["settings"]["signal"] == "loss"
    assert result["settings"]["claimed_epsilon"] == 4
    assert {finding["name"] for finding in result["findings"]} >= {"flagged_at_fpr_0.1", "identified", "training_p"}


def test_settings_of_a_signal_are_set_by_name(folder, tmp_path):
    options = ("--controls", folder / "controls.jsonl", "--work", tmp_path, "--json", "--signal", "lowest-tokens")
    found = call(
        "membership", folder / "gpt2", folder / "candidates.jsonl", *options, "--signal-settings", "fraction=0.5"
    )
    assert found.exit_code == 0, found.output
    assert json.loads(found.stdout)["settings"]["signal_settings"] == {"fraction": 0.5}


def test_shadows_may_be_given_with_who_trained_them(folder, tmp_path, check_refusal):
    corpus = read_corpus(str(folder / "candidates.jsonl"))
    users = sorted({record.user for record in corpus})
    members = {"target": users[:6], "shadow-0": users[::2], "shadow-1": users[1::2]}
    build_cohorts(corpus, members, unit="user", seed=0).save(tmp_path / "cohorts.json")
    shadows = [folder / "gpt2", tmp_path / "other"]
    save_tiny(build_tiny_model("gpt2", seed=1), shadows[1])
    options = ("--controls", folder / "controls.jsonl", "--work", tmp_path, "--json", "--signal", "lira")
    given = [word for shadow in shadows for word in ("--shadow", shadow)]
    call_it = ("membership", folder / "gpt2", folder / "candidates.jsonl", *options, *given)
    found = call(*call_it, "--members", tmp_path / "cohorts.json")
    assert found.exit_code == 0, found.output
    assert "shadows_trained_on_candidates_only" in [note["code"] for note in json.loads(found.stdout)["notes"]]
    check_refusal(call(*call_it), "unknown_shadow_cohort")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--signal", "ratios"), "unknown_signal"),
        (("--signal", "ratio"), "missing_recipe"),
        (("--signal", "lira"), "missing_recipe"),
        (("--fpr", "ten"), "invalid_setting"),
        (("--fpr", "1.5"), "out_of_range"),
        (("--signal-settings", "fraction"), "override_without_value"),
        (("--signal-settings", "fraction=["), "not_yaml"),
        (("--signal", "modified-entropy"), "unsupported_kind"),
        (("--reference", "BERT"), "different_kinds"),
    ],
)
def test_rubbish_gets_one_clear_message(folder, tmp_path, words, code, check_refusal):
    given = [folder / "bert" if word == "BERT" else word for word in words]
    options = ("--controls", folder / "controls.jsonl", "--work", tmp_path)
    found = call("membership", folder / "gpt2", folder / "candidates.jsonl", *options, *given)
    check_refusal(found, code)


def test_controls_have_to_be_given(folder, tmp_path, check_refusal):
    found = call("membership", folder / "gpt2", folder / "candidates.jsonl", "--work", tmp_path)
    check_refusal(found, "missing_controls")
    assert "--controls" in found.stderr


def test_known_members_and_non_members_do_without(folder, tmp_path):
    given = ("membership", folder / "gpt2", folder / "candidates.jsonl", "--work", tmp_path)
    found = call(*given, "--members", folder / "cohorts.json", "--json")
    assert found.exit_code == 0, found.output
    result = json.loads(found.stdout)
    assert "auc" in [finding["name"] for finding in result["findings"]]
    assert "nobody_identified" in [note["code"] for note in result["notes"]]
    assert call(*given, "--members", folder / "cohorts.json").exit_code == 0


def test_members_may_be_listed_in_a_file_a_column_or_python_and_the_result_is_the_same(folder, tmp_path):
    rows = [json.loads(line) for line in (folder / "candidates.jsonl").read_text().splitlines()]
    users = sorted({row["user"] for row in rows})
    inside, outside = users[:6], users[6:]
    told = [json.dumps({**row, "trained": row["user"] in inside}) for row in rows]
    (tmp_path / "told.jsonl").write_text("\n".join(told))
    for name, ids in (("in", inside), ("out", outside)):
        (tmp_path / f"{name}.txt").write_text("\n".join(ids))
    forms = [
        ("--members", folder / "cohorts.json"),
        ("--members", tmp_path / "in.txt", "--non-members", tmp_path / "out.txt"),
        ("--members", tmp_path / "in.txt", "--others", "non-members"),
        ("--members", "column:trained"),
    ]
    options = ("--work", tmp_path / "work", "--by", "user", "--json")
    found = []
    for form in forms:
        corpus = tmp_path / "told.jsonl" if "column:trained" in form else folder / "candidates.jsonl"
        done = call("membership", folder / "gpt2", corpus, *form, *options)
        assert done.exit_code == 0, done.output
        found.append(json.loads(done.stdout)["findings"])
    known = {"members": set(inside), "non_members": outside, "by": "user", "work": tmp_path / "work"}
    result = recollect.membership(folder / "gpt2", rows, **known)
    found.append([finding.model_dump(mode="json") for finding in result.findings])
    assert all(each == found[0] for each in found)
    assert "auc" in [finding["name"] for finding in found[0]]


def test_ids_that_do_not_occur_are_refused(folder, tmp_path, check_refusal):
    (tmp_path / "in.txt").write_text("ann-0\nzoe")
    given = ("membership", folder / "gpt2", folder / "candidates.jsonl", "--work", tmp_path)
    check_refusal(call(*given, "--members", tmp_path / "in.txt"), "unknown_member")
    check_refusal(call(*given, "--others", "non-members"), "others_of_nobody")
    check_refusal(call(*given, "--members", folder / "cohorts.json", "--others", "non-members"), "needless_non_members")


def test_the_claim_of_the_card_is_what_is_audited(folder, tmp_path):
    shutil.copytree(folder / "gpt2", tmp_path / "model")
    (tmp_path / "model" / "card.json").write_text('{"privacy": {"epsilon": 3.9, "delta": 1e-4, "unit": "user"}}')
    options = ("--controls", folder / "controls.jsonl", "--work", tmp_path, "--json")
    found = call("membership", tmp_path / "model", folder / "candidates.jsonl", *options)
    assert found.exit_code == 0, found.output
    settings = json.loads(found.stdout)["settings"]
    assert (settings["claimed_epsilon"], settings["delta"], settings["claimed_unit"]) == (3.9, 1e-4, "user")


@pytest.mark.parametrize(
    ("card", "code"), [("[1", "settings_unreadable"), ("[1]", "model_damaged"), ("\x00", "settings_unreadable")]
)
def test_a_card_that_is_none_is_reported(folder, tmp_path, card, code, check_refusal):
    shutil.copytree(folder / "gpt2", tmp_path / "model")
    (tmp_path / "model" / "card.json").write_text(card)
    options = ("--controls", folder / "controls.jsonl", "--work", tmp_path)
    found = call("membership", tmp_path / "model", folder / "candidates.jsonl", *options)
    check_refusal(found, code)
