"""`python:package.module:factory`: a model that the user's own code makes. Loading it runs that code."""

from __future__ import annotations

import importlib
from typing import Any

from recollect.errors import ModelError, RecollectError
from recollect.models.model import Model
from recollect.models.refs import OwnCode
from recollect.settings import did_you_mean

_PARTS = ("name", "kind", "digest", "question", "access", "answer")


def model_from_code(name: OwnCode) -> Model:
    """What the factory returns when it is called without arguments.

    Raises:
        ModelError: The code cannot be found, fails, or returns something that is not a model.
    """
    made = _called(str(name), _factory(name))
    if not isinstance(made, Model):
        raise not_a_model(made, origin=f" that {name} returned")
    return made


def not_a_model(made: object, *, origin: str = "") -> ModelError:
    """Why something is no model, and what would be one."""
    missing = [part for part in _PARTS if not hasattr(made, part)]
    return ModelError(
        f"The {type(made).__name__}{origin} is no model: it has no {', '.join(missing)}.",
        do="Give a model string, a Hugging Face model with its tokenizer, a pipeline, a PEFT model, or something of "
        "your own that has what the protocol recollect.models.Model lists.",
        code="not_a_model",
    )


def _factory(name: OwnCode) -> Any:
    """The function that makes the model."""
    try:
        module = importlib.import_module(name.module)
    except ModuleNotFoundError as error:
        raise ModelError(
            f"{name}: there is no module {error.name!r}.",
            do="Install its package, or put its folder on PYTHONPATH.",
            code="no_such_module",
        ) from error
    if not callable(factory := getattr(module, name.factory, None)):
        known = [known for known, value in vars(module).items() if callable(value)]
        raise ModelError(
            f"{name}: the module {name.module!r} has no function {name.factory!r}.",
            do=did_you_mean(name.factory, known).strip(),
            code="no_such_factory",
        )
    return factory


def _called(ref: str, factory: Any) -> Any:
    """What the factory makes; a fault in it is told as such, with the way to it."""
    try:
        return factory()
    except RecollectError:
        raise
    except Exception as error:
        raise ModelError(
            f"{ref} failed with {type(error).__name__}: {error}",
            do="Call it in Python to see where.",
            code="factory_failed",
        ) from error
