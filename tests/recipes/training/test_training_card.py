"""The model card: what was trained, as it was trained, for people and for programs."""

from __future__ import annotations

import pytest

from recollect.recipes.builtin_recipes import list_builtin_recipes
from recollect.recipes.description import describe_recipe
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.training_card import Card

ROW = {"epoch": 2, "steps": 7, "training_loss": 4.911153641155131, "validation_loss": None, "seconds": 1.0}


def card(*changes: str, **last) -> Card:
    """The card of a small transformer after two epochs."""
    return Card(
        recipe=load_recipe("causal-transformer", changes),
        seed=0,
        threads=1,
        corpus={"size": 10, "users": 2},
        validation=None,
        cohort=None,
        curve=[{**ROW, **last}],
        privacy=None,
        reading={},
    )


def test_a_card_describes_the_settings_that_were_changed_and_not_those_of_the_file():
    found = card("n_layer=2", "n_embd=64", "tokenizer.size=500")
    line = (
        "gpt2 causal language model (n_embd 64, n_layer 2, n_head 4, n_positions 512), BPE vocabulary of 500, "
        "trained from scratch"
    )
    assert f"\n\n{line}.\n\n" in found.to_markdown()
    assert found.to_dict()["recipe"]["summary"] == line
    assert "4 layers of 256" not in found.to_markdown()


def test_losses_of_a_card_are_written_for_people_and_absent_ones_are_left_out():
    page = card().to_markdown()
    assert "| Training loss | 4.911 nats per token |" in page
    assert "Validation loss" not in page
    assert "None" not in page.replace("None: nothing bounds", "")
    assert card().to_dict()["curve"] == {"epochs": 2, "steps": 7, "training_loss": 4.9112, "seconds": 1.0}
    assert "| Validation loss | 3.000 nats per token |" in card(validation_loss=3.0).to_markdown()


@pytest.mark.parametrize("name", list_builtin_recipes())
def test_the_description_of_every_recipe_names_its_sizes_and_its_privacy(name):
    recipe = load_recipe(name)
    said = describe_recipe(recipe)
    units = getattr(recipe.model, "units", None)
    assert units is None or f"{recipe.model.layers} × {units} units" in said
    assert ("differential privacy" in said) == recipe.private


@pytest.mark.parametrize(
    ("recipe", "changes", "said"),
    [
        (
            "lora",
            ["model.start=hf:gpt2", "rank=4"],
            "LoRA adapter of rank 4 of a causal language model, fine-tuned from",
        ),
        ("mlp", ["hidden=[8, 4]"], "Perceptron, hidden layers of 8 and 4 units, trained from scratch"),
        ("seq2seq-attention", ["cell=gru"], "GRU encoder–decoder with attention, 1 × 128 units, vocabulary of"),
    ],
)
def test_a_description_follows_what_is_set(recipe, changes, said):
    assert describe_recipe(load_recipe(recipe, changes)).startswith(said)
