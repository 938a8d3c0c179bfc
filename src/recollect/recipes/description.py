"""What a recipe trains, in one line that is derived from its settings and therefore true of changed ones, too."""

from __future__ import annotations

from recollect.recipes.recipe import (
    Architecture,
    Convolutional,
    EncoderDecoder,
    Perceptron,
    Recipe,
    Recurrent,
    ResNet,
    Task,
    Transformer,
)

_TASKS: dict[Task, str] = {
    "causal": "causal language model",
    "masked": "masked language model",
    "seq2seq": "encoder–decoder",
    "classifier": "classifier",
}


def describe_recipe(recipe: Recipe) -> str:
    """One line on the model that a recipe trains.

    >>> from recollect.recipes.recipe_file import load_recipe
    >>> describe_recipe(load_recipe("char-lstm", ["units=50", "epochs=2"]))
    'LSTM language model, 2 × 50 units, characters, trained from scratch'
    """
    pieces = [_describe_architecture(recipe.model)]
    if recipe.model.start is None and recipe.tokenizer is not None:
        vocabulary = {
            "characters": "characters",
            "words": f"vocabulary of {recipe.tokenizer.size:,} words",
            "bpe": f"BPE vocabulary of {recipe.tokenizer.size:,}",
        }
        pieces.append(vocabulary[recipe.tokenizer.kind])
    pieces.append("trained from scratch" if recipe.model.start is None else f"fine-tuned from {recipe.model.start}")
    if recipe.private:
        pieces.append(f"with {recipe.privacy.unit}-level differential privacy")
    return ", ".join(pieces)


def _describe_architecture(model: Architecture) -> str:
    """The architecture of a recipe with its sizes; those of a transformer under the names of its configuration."""
    match model:
        case Recurrent():
            return f"{model.cell.upper()} language model, {model.layers} × {model.units} units"
        case Convolutional():
            form = "WaveNet" if model.form == "wavenet" else "CNN"
            return f"Causal {form} language model, {model.layers} × {model.units} units"
        case EncoderDecoder():
            attention = "with" if model.attention else "without"
            return f"{model.cell.upper()} encoder–decoder {attention} attention, {model.layers} × {model.units} units"
        case Perceptron():
            return f"Perceptron, hidden layers of {' and '.join(map(str, model.hidden))} units"
        case ResNet():
            return f"Residual network, depths {_join(model.depths)}, widths {_join(model.widths)}, {model.norm} norm"
        case Transformer():
            return _describe_transformer(model)


def _describe_transformer(model: Transformer) -> str:
    """The transformer of a recipe; a checkpoint brings its own architecture and sizes."""
    adapter = "" if model.adapter is None else f"LoRA adapter of rank {model.adapter.rank} of a "
    if model.start is not None:
        described = f"{adapter}{_TASKS[model.task]}"
        return described[:1].upper() + described[1:]
    sizes = ", ".join(f"{name} {value}" for name, value in model.config.items())
    return f"{adapter}{model.architecture} {_TASKS[model.task]}" + (f" ({sizes})" if sizes else "")


def _join(sizes: tuple[int, ...]) -> str:
    """Sizes of a recipe's layers between hyphens."""
    return "-".join(map(str, sizes))
