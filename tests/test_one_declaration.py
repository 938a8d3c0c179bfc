"""A setting is declared once: the same name and default on the command line, in plans and in Python."""

from __future__ import annotations

import dataclasses
import inspect
from collections import Counter

import pytest

import recollect
from recollect.audits.registry import AUDITS, VERBS, list_audits_by_verb
from recollect.checks import field_docs
from recollect.cli.app import VERBS as OTHER_VERBS
from recollect.cli.app import build_command
from recollect.cli.declared_fields import list_fields, parse_given
from recollect.errors import PlanError
from recollect.pipeline.plans import plan_schema
from recollect.pipeline.plans.plan import to_plain
from recollect.pipeline.plans.refs import CorpusRef, MembersRef, ModelRef
from recollect.pipeline.preparation import TrainingOptions
from recollect.recipes.recipe_file import load_recipe
from recollect.signals.evidence import AUDITED, TARGET
from recollect.testing.refusals import refused

SCHEMA = plan_schema.build_plan_schema()
EMPTY = inspect.Parameter.empty
SETTINGS = [
    pytest.param(verb, AUDITS.load(audit), setting, id=f"{verb}-{setting.name}")
    for verb, audit in list_audits_by_verb().items()
    for setting in dataclasses.fields(AUDITS.load(audit))
]
REFERENCES = [
    pytest.param(kind, name, id=f"{kind.__name__}-{name}")
    for kind in (ModelRef, CorpusRef, MembersRef)
    for name in kind.model_fields
    if name not in ("model", "corpus")
]
IN_PYTHON_ONLY = {"session", "tokenizer"}
"""Objects."""
ON_THE_COMMAND_LINE_ONLY = {"json", "junit", "system"}
"""How a result is shown, and the name of the system, which is a key of `about`."""


def default_of(setting):
    """What a setting is if nobody says."""
    if setting.default is not dataclasses.MISSING:
        return setting.default
    return EMPTY if setting.default_factory is dataclasses.MISSING else setting.default_factory()


def option_of(verb, name):
    """The option of a verb that is called like a setting."""
    (found,) = [each for each in build_command(verb).params if each.name == name]
    return found


def minimal(verb, kind):
    """As few words as a verb takes."""
    corpus = kind.verb.roles.get(AUDITED)
    words = ["model", *(["corpus"] if corpus is not None and corpus.required else [])]
    for setting in dataclasses.fields(kind):
        if default_of(setting) is EMPTY:
            words += [f"--{setting.name.replace('_', '-')}", "{digits:4}"]
    return words


@pytest.mark.parametrize(("verb", "kind", "setting"), SETTINGS)
def test_a_setting_has_the_same_name_and_default_everywhere(verb, kind, setting):
    default, name = default_of(setting), setting.name
    # in Python
    assert inspect.signature(getattr(recollect, verb)).parameters[name].default == default
    # in a plan
    described = SCHEMA["properties"]["audits"]["properties"][kind.name]["anyOf"][0]["properties"][name]
    assert described.get("default", EMPTY) == (EMPTY if default is EMPTY else to_plain(default))
    # on the command line, where what is not given is left to the declaration
    option = option_of(verb, name)
    assert option.opts == [f"--{name.replace('_', '-')}"]
    context = build_command(verb).make_context(verb, minimal(verb, kind))
    assert (name in parse_given(list_fields(kind), context.params)) is (default is EMPTY)
    assert option.required is (default is EMPTY)
    shown = ",".join(map(str, default)) if isinstance(default, tuple) else default
    assert (f"(default: {shown})" in option.help) is (default not in (EMPTY, None, False, (), {}))
    # and its help is the docstring beneath it
    assert field_docs(kind)[name]
    assert option.help.replace(r"\[", "[").startswith(field_docs(kind)[name])


@pytest.mark.parametrize(("kind", "name"), REFERENCES)
def test_how_models_and_corpora_are_read_has_the_same_name_and_default_everywhere(kind, name):
    declared = kind.model_fields[name]
    assert inspect.signature(recollect.membership).parameters[name].default == declared.default
    section = "Given" if kind is MembersRef else kind.__name__
    assert SCHEMA["$defs"][section]["properties"][name].get("default") == to_plain(declared.default)
    option = option_of("membership", name)
    assert option.opts == [f"--{name.replace('_', '-')}"]
    context = build_command("membership").make_context("membership", ["model", "corpus"])
    assert name not in parse_given(list_fields(kind, skip=frozenset({"model", "corpus"})), context.params)
    assert option.help.replace(r"\[", "[").startswith(field_docs(kind)[name])


@pytest.mark.parametrize(("verb", "audit"), list_audits_by_verb().items())
def test_a_verb_takes_the_same_on_the_command_line_and_in_python(verb, audit):
    options = {each.name for each in build_command(verb).params}
    arguments = set(inspect.signature(getattr(recollect, verb)).parameters)
    assert ("corpus" in arguments) is (AUDITED in AUDITS.load(audit).verb.roles)
    assert options - ON_THE_COMMAND_LINE_ONLY == arguments - IN_PYTHON_ONLY


@pytest.mark.parametrize(("verb", "audit"), list_audits_by_verb().items())
def test_no_role_setting_and_option_of_a_verb_have_one_name(verb, audit):
    kind = AUDITS.load(audit)
    names = Counter(setting.name for setting in dataclasses.fields(kind))
    names += Counter(role for role in kind.verb.roles if role not in (TARGET, AUDITED))
    names += Counter(name for ref in (ModelRef, CorpusRef, MembersRef) for name in ref.model_fields)
    names += Counter(["recipe", "set", "out", "work", "seed", "workers", "threads", "fail_if", "about", "json"])
    names += Counter([*IN_PYTHON_ONLY, "with", "object"])
    assert [name for name, count in names.items() if count > 1] == []
    written = Counter(name for each in build_command(verb).params for name in (*each.opts, *each.secondary_opts))
    assert [name for name, count in written.items() if count > 1] == []


def test_a_corpus_that_a_verb_does_not_read_is_refused():
    with refused("unknown_argument", PlanError):
        recollect.extract("model", "corpus.jsonl", format="pin {digits:4}")


def test_verbs_are_called_as_they_are_declared_and_by_one_name_each():
    for verb, audit in list_audits_by_verb().items():
        assert AUDITS.load(audit).verb.name == verb
    assert set(VERBS) <= set(list_audits_by_verb())
    assert not set(list_audits_by_verb()) & set(OTHER_VERBS)
    public = {name for name in dir(recollect) if callable(getattr(recollect, name))}
    assert public >= set(list_audits_by_verb()) | {
        "run",
        "check",
        "plant",
        "sanitise",
        "train",
        "score",
        "evaluate",
        "compare",
    }


def test_training_takes_the_same_on_the_command_line_and_in_python():
    options = {each.name for each in build_command("train").params} - set(CorpusRef.model_fields)
    fields = {each.name for each in dataclasses.fields(TrainingOptions)}
    assert options - {"recipe", "corpus", "out", "changes"} == fields, "the recipe is changed by `set` in Python"


@pytest.mark.parametrize(
    ("options", "changes"),
    [
        ({"dp_epsilon": 3.0}, ["privacy.epsilon=3.0", "privacy.noise=null", "privacy.unit=record"]),
        ({"dp_noise": 1.5, "dp_unit": "user"}, ["privacy.epsilon=null", "privacy.noise=1.5", "privacy.unit=user"]),
        ({}, []),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["word-gru", "char-lstm-dp"])
def test_privacy_that_is_requested_is_a_change_of_the_recipe(name, options, changes):
    kept = [change for change in changes if not (name.endswith("dp") and change == "privacy.unit=record")]
    private = TrainingOptions(**options).add_privacy(load_recipe(name))
    assert private.digest == load_recipe(name, kept).digest
    assert private == TrainingOptions(**options).add_privacy(private), "asked for twice it is the same"


def test_what_a_session_has_is_not_given_beside_it():
    for setting in ("work", "workers", "threads"):
        with refused("setting_of_the_session", PlanError):
            recollect.membership("model", "corpus", session=recollect.Session(), **{setting: 1})
