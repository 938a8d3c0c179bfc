"""`recollect list` prints a recipe, so that one's own can begin with it."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from recollect.cli.app import app
from recollect.recipes.builtin_recipes import get_builtin_folder
from recollect.recipes.recipe_file import load_recipe


def list_with(*words: str):
    """What `recollect list` does with these words."""
    return CliRunner().invoke(app, ["list", *words])


def test_a_recipe_is_printed_as_its_file_has_it_and_can_be_used_as_a_file(tmp_path):
    printed = list_with("char-lstm").stdout
    assert printed == (get_builtin_folder() / "char-lstm.yaml").read_text(encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(printed, encoding="utf-8")
    assert load_recipe(tmp_path / "mine.yaml").digest == load_recipe("char-lstm").digest
    assert json.loads(list_with("char-lstm", "--json").stdout)["model"]["units"] == 200


def test_a_recipe_that_is_not_there_is_refused_with_those_that_are(check_refusal):
    check_refusal(list_with("char-lst"), "no_such_recipe")
