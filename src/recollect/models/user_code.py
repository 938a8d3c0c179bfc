"""`python:package.module:factory`: a model that the user's own code makes. Loading it runs that code."""

from __future__ import annotations

import importlib
from typing import Any

from recollect.checks import suggest_name
from recollect.errors import ModelError, RecollectError
from recollect.models.model import Model
from recollect.models.refs import CodeRef

_PROTOCOL = ("name", "kind", "digest", "question", "access", "answer")


def load_from_code(name: CodeRef) -> Model:
    """What the factory returns when it is called without arguments.

    Raises:
        ModelError: The code cannot be found, fails, or returns something that is not a model.
    """
    model = _call_factory(str(name), _import_factory(name))
    if not isinstance(model, Model):
        raise build_not_a_model_error(model, origin=f" that {name} returned")
    return model


def build_not_a_model_error(candidate: object, *, origin: str = "") -> ModelError:
    """Why something is no model, and what would be one."""
    missing = [piece for piece in _PROTOCOL if not hasattr(candidate, piece)]
    return ModelError(
        f"The {type(candidate).__name__}{origin} is no model: it has no {', '.join(missing)}.",
        do="Give a model string, a Hugging Face model with its tokenizer, a pipeline, a PEFT model, or something of "
        "your own that has what the protocol recollect.models.Model lists.",
        code="not_a_model",
    )


def _import_factory(name: CodeRef) -> Any:
    """The function of the user's code that makes the model."""
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
            do=suggest_name(name.factory, known).strip(),
            code="no_such_factory",
        )
    return factory


def _call_factory(ref: str, factory: Any) -> Any:
    """What the factory makes; a fault in it is told as such, with the way to it."""
    try:
        return factory()
    except (RecollectError, MemoryError):
        raise  # that memory ran out is said as everywhere
    except Exception as error:
        raise ModelError(
            f"{ref} failed with {type(error).__name__}: {error}",
            do="Call it in Python to see where.",
            code="factory_failed",
        ) from error
