"""Recipes are read from files, changed on the way, and refused with a hint."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import PlanError
from recollect.recipes.recipe_file import list_builtin_recipes, load_recipe
from recollect.testing.refusals import refused

RECIPE = """\
summary: "A test"
model:
  kind: recurrent
  units: 7
training:
  epochs: 3
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(RECIPE)
    return path


def test_every_built_in_recipe_is_whole_and_says_where_its_settings_come_from():
    recipes = list_builtin_recipes()
    assert {"char-lstm", "word-lstm", "word-gru", "seq2seq", "seq2seq-attention", "mlp", "resnet18"} <= set(recipes)
    for name, line in recipes.items():
        recipe = load_recipe(name)
        assert recipe.name == name
        assert recipe.summary == line
        assert "our choice" in recipe.source or "Carlini" in recipe.source or "Song" in recipe.source
        assert len(line) <= 110


def test_listing_recipes_loads_neither_torch_nor_transformers():
    code = "from recollect.recipes.recipe_file import list_builtin_recipes, load_recipe; "
    code += "list_builtin_recipes(); load_recipe('mlp'); "
    code += "import sys; sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0  # noqa: S603 - our own code


def test_a_file_is_read_and_named_after_itself(file):
    recipe = load_recipe(file)
    assert (recipe.name, recipe.model.units, recipe.training.epochs) == ("mine", 7, 3)


@pytest.mark.parametrize(
    "overrides",
    [
        ["units=9", "training.learning_rate=1e-2"],
        {"units": 9, "learning_rate": 0.01},
        {"model.units": 9, "training.learning_rate": "1e-2"},
    ],
)
def test_settings_are_changed_by_short_or_full_name(file, overrides):
    recipe = load_recipe(file, overrides)
    assert (recipe.model.units, recipe.training.learning_rate) == (9, 0.01)
    assert recipe.training.epochs == 3


def test_a_section_that_the_file_left_out_can_be_changed(file):
    assert load_recipe(file, ["masked=0.3"]).sequences.masked == 0.3
    assert load_recipe("causal-transformer", ["model.config.n_inner=64", "n_layer=2"]).model.config["n_inner"] == 64


def test_a_name_with_several_meanings_is_refused(file):
    with refused("ambiguous_setting") as refusal:
        load_recipe(file, ["clip=1"])
    for named in ("training.clip", "privacy.clip"):
        assert named in refusal.error.found


@pytest.mark.parametrize(
    ("change", "code", "named"),
    [
        (["layerz=9"], "unknown_setting", "'layers'"),
        (["units"], "override_without_value", "'units'"),
        (["units=many"], "invalid_setting", "model.units"),
        (["epochs=0"], "invalid_setting", "training.epochs"),
        (["model.width=3"], "unknown_setting", "'model.width'"),
    ],
)
def test_a_bad_change_is_refused_with_a_hint(file, change, code, named):
    with refused(code, PlanError) as refusal:
        load_recipe(file, change)
    assert named in str(refusal.error)


@pytest.mark.parametrize(
    ("text", "code", "named"),
    [
        (RECIPE.replace("units", "unitz"), "unknown_setting", ("line 4:", "'model.unitz'", "'units'")),
        (RECIPE.replace("training", "trainig"), "unknown_setting", ("line 5:", "'trainig'", "'training'")),
        (RECIPE.replace("epochs: 3", "epochs: many"), "invalid_setting", ("line 6:", "training.epochs")),
        (RECIPE.replace("kind: recurrent", "kind: recurent"), "invalid_setting", ("line 2:", "model")),
        (RECIPE + "training:\n  epochs: 4\n", "repeated_key", ("line 7:", "'training'")),
        ("- a\n", "not_a_mapping", ()),
        ("a: [", "not_yaml", ()),
        ("summary: !!python/object/apply:os.getcwd []\n", "not_yaml", ()),
    ],
)
def test_a_bad_file_is_refused_by_line(tmp_path, text, code, named):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with refused(code, PlanError) as refusal:
        load_recipe(path)
    for part in ("mine.yaml", *named):
        assert part in str(refusal.error)


def test_an_unknown_recipe_is_refused_with_the_nearest():
    with refused("no_such_recipe") as refusal:
        load_recipe("char-lstn")
    assert "Did you mean 'char-lstm'?" in refusal.error.do
    with refused("no_such_recipe_file"):
        load_recipe("missing/char-lstm.yaml")


def test_the_digest_is_of_the_settings_alone(file, tmp_path):
    renamed = tmp_path / "other.yaml"
    renamed.write_text(RECIPE.replace("A test", "Another"))
    assert load_recipe(file).digest == load_recipe(renamed).digest
    assert load_recipe(file).digest != load_recipe(file, ["units=8"]).digest


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("recipe") / "any.yaml"
    path.write_text(text, encoding="utf-8", errors="replace")
    with suppress(PlanError):
        assert load_recipe(path).name == "any"
