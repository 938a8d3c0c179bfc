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
    ref = str(name)
    made = _called(ref, _factory(name))
    if missing := [part for part in _PARTS if not hasattr(made, part)]:
        raise ModelError(
            f"{ref} returned a {type(made).__name__}, which is no model: it has no {', '.join(missing)}.",
            do="A model has what the protocol recollect.models.Model lists.",
            code="not_a_model",
        )
    return made  # type: ignore[no-any-return]


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
