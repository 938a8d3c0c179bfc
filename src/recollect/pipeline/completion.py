"""Defaults that come from the model itself: an adapter's base, and the privacy claim of its card."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.audits.audit import Audit
from recollect.models.model import Model
from recollect.models.refs import get_natural_reference
from recollect.pipeline.refs import ModelRef
from recollect.signals.evidence import REFERENCE, TARGET

if TYPE_CHECKING:
    from recollect.audits.verb import Verb


def add_natural_reference(
    models: Mapping[str, Any], verb: Verb, find_base: Callable[[], Model | None] = lambda: None
) -> dict[str, Any]:
    """The models; an adapter's own base is its reference where the audit compares with one and none is given.

    Args:
        models: By their roles.
        verb: Of the audit.
        find_base: Finds the base of a target that is an object.
    """
    target = models[TARGET]
    given = any(role == REFERENCE or role.startswith(f"{REFERENCE}-") for role in models)
    if given or not verb.natural_reference:
        return dict(models)
    if not isinstance(target, ModelRef):
        base = find_base()
        return dict(models) if base is None else {**models, REFERENCE: base}
    name = get_natural_reference(target.model)
    return dict(models) if name is None else {**models, REFERENCE: target.model_copy(update={"model": name})}


def add_card_claim(audit: Audit, target: Any) -> Audit:
    """The audit; what it compares with and is not given of a claim (ε, δ and unit) is what the model's card states."""
    settings: Any = audit
    if not hasattr(settings, "claimed_epsilon") or not isinstance(target, ModelRef):
        return audit
    try:
        stated = json.loads((Path(target.model) / "card.json").read_text(encoding="utf-8")).get("privacy")
    except (OSError, ValueError, AttributeError):
        return audit  # no card, or one that says nothing: loading the model complains of a damaged one
    if not isinstance(stated, dict) or not isinstance(stated.get("epsilon"), int | float):
        return audit
    claim = {"delta": settings.delta or stated.get("delta", 0.0)}
    if settings.claimed_epsilon is None:
        unit = {"claimed_unit": stated["unit"]} if stated.get("unit") in ("record", "user") else {}
        claim |= {"claimed_epsilon": stated["epsilon"], **unit}
    made: Audit = dataclasses.replace(settings, **claim)
    return made
