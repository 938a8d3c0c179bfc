"""How an audit is shown: what it declares, found through the registry, and the functions that it names."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from recollect.audits.registry import AUDITS, VIEWS
from recollect.errors import PlanError
from recollect.results.presentation import GENERIC, Presentation


def find_presentation(audit: str) -> Presentation:
    """How the results of an audit are shown; `GENERIC` if it is not installed any more, or declares nothing.

    >>> find_presentation("extraction").supports, find_presentation("palmistry") is GENERIC
    ('exposure', True)

    Raises:
        PlanError: It is a plug-in's, and the plug-in cannot be loaded.
    """
    declared: object = None
    if audit in VIEWS:
        declared = load_function(VIEWS[audit])
    elif audit in AUDITS.names:
        declared = getattr(AUDITS.load(audit), "presentation", None)
    return declared if isinstance(declared, Presentation) else GENERIC


def load_function(location: str) -> Callable[..., Any]:
    """The function at "package.module:function", which a presentation names.

    Raises:
        PlanError: There is none.
    """
    module, _, name = location.partition(":")
    try:
        found: Callable[..., Any] = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise PlanError(
            f"The function {location!r}, which a report needs, cannot be loaded: {error}",
            do="Repair or remove the package whose audit declares it.",
            code="presentation_broken",
        ) from error
    return found
