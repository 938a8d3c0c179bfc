"""Defaults that come from the model itself: an adapter's base as reference and start, and the claim of its card."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.audits.audit import Audit
from recollect.errors import PlanError
from recollect.files import read_json
from recollect.models.loading.adapter_bases import get_natural_reference, locate_base
from recollect.models.model import Model
from recollect.pipeline.plans.refs import ModelRef, RecipeRef
from recollect.recipes.recipe import Recipe
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


def add_natural_start(recipe: RecipeRef | Recipe | None, target: Any) -> RecipeRef | Recipe | None:
    """The recipe; one that adapts a model and names none starts from the base of the target's own adapter.

    Args:
        recipe: How models are trained.
        target: The audited model as it was given: its name, a reference, or an object.

    Raises:
        PlanError: The target is no adapter whose base is known.
    """
    if recipe is None:
        return None
    loaded = recipe.load() if isinstance(recipe, RecipeRef) else recipe
    if loaded.model.start is not None or getattr(loaded.model, "adapter", None) is None:
        return recipe
    base = _find_natural_base(target)
    if base is None:
        raise PlanError(
            f"Recipe {loaded.name!r} adapts a model, and the target is no adapter whose base is known.",
            do="Name the model to adapt: --set model.start=BASE (set={'model.start': 'BASE'}).",
            code="nothing_to_adapt",
        )
    if isinstance(recipe, RecipeRef) and recipe.inline is None:
        return recipe.model_copy(update={"set": {**recipe.set, "model.start": base}})
    started = loaded.model_copy(update={"model": loaded.model.model_copy(update={"start": base})})
    return RecipeRef.of(started) if isinstance(recipe, RecipeRef) else started


def _find_natural_base(target: Any) -> str | None:
    """How the base of an adapter, its natural reference, is named, if it is on this machine."""
    if isinstance(target, ModelRef):
        return get_natural_reference(target.model)
    if isinstance(target, str | Path):
        return get_natural_reference(str(target))
    adapters = getattr(target, "peft_config", None)
    if not isinstance(adapters, Mapping) or not adapters:
        return None
    stated = next(iter(adapters.values()))
    return locate_base(str(stated.base_model_name_or_path or ""), getattr(stated, "revision", None))


def add_card_claim(audit: Audit, target: Any) -> Audit:
    """The audit with a default from the model's card: the claim (ε, δ and unit) that it states."""
    settings: Any = audit
    if not hasattr(settings, "claimed_epsilon") or not isinstance(target, ModelRef):
        return audit
    try:
        stated = read_json(Path(target.model) / "card.json").get("privacy")
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
