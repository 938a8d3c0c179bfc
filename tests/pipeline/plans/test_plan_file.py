"""Plan files: what they mean, and what is said about those that mean nothing."""

import contextlib
import json
from pathlib import Path

import jsonschema
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.audits.registry import AUDITS, build_audit
from recollect.errors import PlanError, RecollectError
from recollect.pipeline.plans import plan_schema
from recollect.pipeline.plans.plan import Plan
from recollect.pipeline.plans.plan_file import NEW_NAMES, read_plan
from recollect.pipeline.plans.refs import CorpusRef, ModelRef, resolve_ref_name
from recollect.results.run_folder import RunFolder
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model, save_tiny

PLAN = """\
models:
  target: model
  reference: {model: gpt2, window: 64}
corpora:
  audited: {corpus: mine.jsonl, user_column: author, split: windows, split_words: 20}
  controls: others.jsonl
cohorts: {audited: cohorts.json}
recipe: {recipe: word-lstm, set: {training.epochs: 2}}
audits:
  membership: {signal: loss, fpr: [0.1, 0.2]}
  leakage:
    top_k: 3
    with:
      models: {reference: elsewhere}
      corpora: {audited: mine.jsonl}
limits:
  membership: ["auc.lower>0.6"]
seed: 7
"""


@pytest.fixture
def home(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "mine.jsonl").touch()
    (tmp_path / "plan.yaml").write_text(PLAN)
    return tmp_path


def changed(home, old, new):
    assert old in PLAN
    (home / "plan.yaml").write_text(PLAN.replace(old, new))
    return home / "plan.yaml"


def test_a_plan_file_means_one_plan_per_audit(home):
    planned = read_plan(home / "plan.yaml")
    membership, leakage = planned.plans
    assert (membership.audit.name, membership.audit.fpr, membership.audit.signal) == ("membership", (0.1, 0.2), "loss")
    assert membership.models["target"] == ModelRef(model=str(home / "model"))
    assert membership.models["reference"] == ModelRef(model="gpt2", window=64)
    assert membership.models["reference"].question.window == 64
    corpus = membership.corpora["audited"]
    cut = {"split": "windows", "split_words": 20}
    assert corpus == CorpusRef(corpus=str(home / "mine.jsonl"), user_column="author", **cut)
    assert (corpus.options["columns"].user, corpus.options["split"].words) == ("author", 20)
    assert (membership.load_recipe().training.epochs, membership.seed) == (2, 7)
    assert [str(limit) for limit in membership.limits] == ["auc.lower>0.6"]
    assert not leakage.limits
    assert planned.out == home / "plan-run"
    assert membership.work == home / ".recollect"


def test_what_is_given_to_one_audit_alone_does_not_reach_the_others(home):
    membership, leakage = read_plan(home / "plan.yaml").plans
    assert leakage.audit.top_k == 3
    assert leakage.models["reference"].model == "elsewhere"
    assert leakage.models["target"] == membership.models["target"]
    assert leakage.corpora["audited"].split is None
    assert membership.corpora["audited"].split is not None


def test_settings_are_changed_and_audits_chosen_from_outside(home):
    (leakage,) = read_plan(home / "plan.yaml", ["audits.leakage.top_k=5", "seed=1"], only=["leakage"]).plans
    assert (leakage.audit.top_k, leakage.seed) == (5, 1)
    with refused("audit_not_planned", PlanError):
        read_plan(home / "plan.yaml", only=["exposure"])


@pytest.mark.parametrize(
    ("old", "new", "line", "code", "hint"),
    [
        ("top_k: 3", "topk: 3", 12, "unknown_setting", "'top_k'"),
        ("  leakage:", "  leakge:", 11, "unknown_audit", "'leakage'"),
        ("  leakage:", "  extract:", 11, "unknown_audit", "write extraction"),
        ("  leakage:", "  palmistry:", 11, "unknown_audit", "once its package is installed"),
        ("user_column: author", "usr_column: author", 5, "unknown_setting", "'user_column'"),
        ("split_words: 20", "split_word: 20", 5, "unknown_setting", "'split_words'"),
        ("fpr: [0.1, 0.2]", "fpr: often", 10, "invalid_setting", "'often'"),
        ("fpr: [0.1, 0.2]", "fpr: [2]", 10, "out_of_range", "between 0 and 1"),
        ("{model: gpt2, window: 64}", "{window: 64}", 3, "missing_setting", "models.reference.model"),
        ("limits:", "limts:", 16, "unknown_setting", "'limits'"),
        ("auc.lower>0.6", "auc=0.6", 17, "not_a_limit", "'auc=0.6'"),
        ("  membership: [", "  membrship: [", 17, "limits_of_nothing", "'membership'"),
        ("corpora: {audited", "corpra: {audited", 15, "unknown_setting", "'corpora'"),
        ("seed: 7", "seed: 7\nseed: 8", 19, "repeated_key", "'seed'"),
        ("seed: 7", "seed: soon", 18, "invalid_setting", "'soon'"),
        ("seed: 7", "workers: 0", 18, "invalid_setting", "workers"),
        ("cohorts: {audited: cohorts.json}", "others: nobody", 7, "invalid_setting", "'nobody'"),
        ("reference: {model: gpt2", "refrence: {model: gpt2", 3, "unknown_role", "'reference'"),
        ("reference: {model: gpt2", "refrence-0: {model: gpt2", 3, "unknown_role", "'reference'"),
        ("reference: {model: gpt2", "target-0: {model: gpt2", 3, "unknown_role", "'target'"),
        ("controls: others.jsonl", "control: others.jsonl", 6, "unknown_role", "'controls'"),
        ("cohorts: {audited: cohorts.json}", "cohorts: {audted: cohorts.json}", 7, "unknown_role", "'audited'"),
        ("cohorts: {audited: cohorts.json}", "files: {canarys: c.json}", 7, "unknown_role", "'canaries'"),
        ("models: {reference: elsewhere}", "models: {refrence: elsewhere}", 14, "unknown_role", "'reference'"),
        ("corpora: {audited: mine.jsonl}", "files: {canaries: c.json}", 15, "unknown_role", "leakage audit"),
        ("recipe: word-lstm,", "recpe: word-lstm,", 8, "unknown_setting", "'recipe'"),
        ("training.epochs: 2", "training.epocs: 2", 8, "unknown_setting", "'training.epochs'"),
        ("recipe: word-lstm, set", "set", 8, "missing_recipe", "`recipe: word-lstm`"),
        ("recipe: word-lstm, set: {training.epochs: 2}", "inline: {nme: mine}", 8, "invalid_setting", "inline"),
        (
            "signal: loss",
            "signal: lowest-tokens, signal_settings: {fractoin: 0.5}",
            10,
            "unknown_setting",
            "'fraction'",
        ),
        ("seed: 7", "about: {sytem: shop-bot}", 18, "unknown_setting", "'system'"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_file_and_line(home, old, new, line, code, hint):
    with refused(code, PlanError) as refusal:
        read_plan(changed(home, old, new))
    assert f"plan.yaml line {line}:" in str(refusal.error)
    assert hint in str(refusal.error), "what was found, or the nearest name"


def test_models_that_audits_would_train_and_several_of_one_role_may_be_given(home):
    more = "{model: gpt2, window: 64}\n  shadow-0: model\n  shadow-11: model\n  left-out-0: model\n  reference-3: model"
    assert "left-out-0" in read_plan(changed(home, "{model: gpt2, window: 64}", more)).plans[0].models


def test_roles_of_an_audit_that_is_not_wanted_need_not_be_known(home):
    path = changed(home, "  leakage:\n    top_k: 3", "  elsewhere:\n    top_k: 3")
    path.write_text(path.read_text().replace("reference: {model: gpt2", "elsewheres: {model: gpt2"))
    assert "elsewheres" in read_plan(path, only=["membership"]).plans[0].models


OLD_ENTRIES = {
    ("corpora", "format"): ("user_column: author", "format: csv"),
    ("models", "top_k"): ("window: 64", "top_k: 3"),
    **{
        ("corpora", name): ("user_column: author", f"{name}: author")
        for name in ("user", "text", "source", "target", "label", "id")
    },
    **{
        ("split", name): ("split: windows", f"split: {{{name}: {value}}}")
        for name, value in (("by", "windows"), ("words", 20), ("minimum", 3))
    },
}


@pytest.mark.parametrize(("section", "key"), NEW_NAMES)
def test_what_plans_of_0_1_called_otherwise_is_refused_by_its_new_name(home, section, key):
    with refused("renamed_setting", PlanError) as refusal:
        read_plan(changed(home, *OLD_ENTRIES[section, key]))
    assert repr(NEW_NAMES[section, key]) in str(refusal.error)
    assert "plan.yaml line " in str(refusal.error)


@pytest.mark.parametrize("text", ["", "3", "- a", "{", "audits: {}", "\0", "a: &a [*a]", "audits: {membership: 3}"])
def test_files_that_are_no_plans_are_refused(tmp_path, text):
    (tmp_path / "plan.yaml").write_text(text)
    with pytest.raises(PlanError):
        read_plan(tmp_path / "plan.yaml")


def test_files_that_cannot_be_read_are_refused(tmp_path):
    (tmp_path / "plan.yaml").write_bytes(b"\xff\xfe\x00")
    for name in ("plan.yaml", "absent.yaml", "."):
        with pytest.raises(PlanError):
            read_plan(tmp_path / name)


KEYS = st.sampled_from(
    ["models", "corpora", "audits", "limits", "seed", "recipe", "files", "out", "membership", "with"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=5) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(settings=st.dictionaries(KEYS, VALUES, max_size=5))
def test_rubbish_gets_one_clear_error_or_means_something(home, settings):
    (home / "plan.yaml").write_text(yaml.safe_dump({"audits": {"membership": None}, **settings}))
    with contextlib.suppress(RecollectError):
        read_plan(home / "plan.yaml")


def test_paths_are_those_beside_the_plan_and_all_else_stays(home):
    for ref, found in {
        "model": str(home / "model"),
        "recorded:model": f"recorded:{home / 'model'}",
        "model+model": f"{home / 'model'}+{home / 'model'}",
        "gpt2": "gpt2",
        "hf:wikitext:train": "hf:wikitext:train",
        "python:a.b:c": "python:a.b:c",
        "*.jsonl": str(home / "*.jsonl"),
        "/tmp": "/tmp",  # noqa: S108 - not used
    }.items():
        assert resolve_ref_name(ref, home) == found


def test_the_published_schema_is_the_generated_one_and_names_every_audit():
    published = json.loads(plan_schema.SCHEMA_PATH.read_text())
    assert published == plan_schema.build_plan_schema(), (
        "run recollect.pipeline.plans.plan_schema.publish_plan_schema()"
    )
    assert set(published["properties"]["audits"]["properties"]) == set(AUDITS.table)


def test_the_schema_accepts_what_the_reader_accepts():
    jsonschema.validate(yaml.safe_load(PLAN), plan_schema.build_plan_schema())
    for old, new in (("top_k: 3", "topk: 3"), ("limits:", "limts:"), ("seed: 7", "seed: soon")):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(yaml.safe_load(PLAN.replace(old, new)), plan_schema.build_plan_schema())
    assert Path(plan_schema.SCHEMA_PATH).suffix == ".json"


def test_cohorts_are_those_of_the_corpus_that_they_divide(home):
    membership, leakage = read_plan(home / "plan.yaml").plans
    assert set(membership.cohorts) == {"audited"}
    assert not leakage.cohorts  # it has an audited corpus of its own
    own = "corpora: {audited: mine.jsonl}\n      cohorts: {audited: theirs.json}"
    leakage = read_plan(changed(home, "corpora: {audited: mine.jsonl}", own)).plans[1]
    assert leakage.cohorts["audited"].name == "theirs.json"


def test_a_checkpoint_may_lie_beside_the_plan_and_is_the_same_from_everywhere(home, monkeypatch):
    start = "{recipe: word-lstm, set: {model.start: model}}"
    path = changed(home, "{recipe: word-lstm, set: {training.epochs: 2}}", start)
    recipe = read_plan(path).plans[0].load_recipe()
    assert recipe.model.start == str((home / "model").resolve())
    monkeypatch.chdir(home)
    assert read_plan(Path("plan.yaml")).plans[0].load_recipe().digest == recipe.digest


def test_a_model_may_show_no_more_than_a_deployment_does(home):
    save_tiny(build_tiny_model("gpt2"), home / "gpt")
    (target,) = (
        plan.models["target"]
        for plan in read_plan(
            changed(home, "target: model", "target: {model: gpt, shows_top_k: 5}"), only=["membership"]
        ).plans
    )
    assert (target.load().access.k, target.load().access.logprob) == (5, "none")
    with refused("invalid_setting", PlanError):
        read_plan(changed(home, "target: model", "target: {model: gpt, shows_top_k: 0}"))


def test_a_message_quotes_no_more_than_the_beginning_of_a_long_value(home):
    (home / "plan.yaml").write_text("models: {target: model}\naudits:\n" + "  - membership: {}\n" * 100)
    with refused("invalid_setting", PlanError) as refusal:
        read_plan(home / "plan.yaml")
    assert len(str(refusal.error)) < 1000


def test_signs_that_no_file_name_can_have_are_refused(home):
    with refused("nul_in_plan", PlanError):
        read_plan(changed(home, "controls: others.jsonl", 'controls: "a\\0b"'))


ESCAPE = "../../../outside"


@pytest.mark.parametrize("section", ["models", "corpora", "cohorts", "files"])
def test_no_name_in_a_plan_leads_out_of_the_run_folder(section, tmp_path):
    with refused("bad_name"):
        Plan(audit=build_audit("membership"), **{section: {ESCAPE: tmp_path}})
    (tmp_path / "plan.yaml").write_text(
        f"audits: {{membership: {{}}, absent-plugin: {{}}}}\n{section}: {{{ESCAPE!r}: x}}\n"
    )
    with refused("bad_name"):  # roles of audits that are not installed are not known, and yet are no paths
        read_plan(tmp_path / "plan.yaml", only=["membership"])


def test_no_name_of_an_audit_or_role_leads_out_of_the_run_folder(tmp_path):
    for name in (ESCAPE, "/etc/x", "a/b", "..", "", "a\n"):
        with refused("bad_name"):
            RunFolder(tmp_path).get_cohorts_path(name)
        with refused("bad_name"):
            RunFolder(tmp_path).get_result_path(name)
