"""What a plan finds in its work folder already: models that were trained, and records that were scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from recollect.audits.audit import Needs
from recollect.corpora.corpus import Corpus
from recollect.models.answer_store.scoring import find_stored
from recollect.models.model import Model, Question
from recollect.pipeline.plans.plan import Plan
from recollect.pipeline.plans.refs import ModelRef
from recollect.recipes.fleet import Fleet, is_finished
from recollect.signals.evidence import TARGET, Evidence


def build_trained_ref(plan: Plan, question: Question | None, folder: Path) -> ModelRef:
    """How a model that was trained for an audit is loaded: scored as the target is."""
    target = plan.models.get(TARGET)
    device = target.device if isinstance(target, ModelRef) else None
    return ModelRef.from_question(str(folder), question, device=device)


def find_trained_models(
    plan: Plan, needs: Needs, corpora: Mapping[str, Corpus], given: Evidence
) -> dict[str, ModelRef]:
    """The models that an audit wants trained and that are trained already, by name."""
    found = dict[str, ModelRef]()
    question = given.models[TARGET].question if TARGET in given.models else None
    for role, cohorts in needs.train.items():
        recipe = plan.load_recipe()
        if recipe is None or all(name in given.models for name in cohorts.models):
            continue
        fleet = Fleet(recipe=recipe, corpus=corpora[role], cohorts=cohorts, seed=plan.seed)
        for name in cohorts.models:
            folder = fleet.get_folder(plan.work, name)
            if name not in given.models and is_finished(folder):
                found[name] = build_trained_ref(plan, question, folder)
    return found


def count_stored_records(
    plan: Plan,
    pairs: Iterable[tuple[str, str]],
    corpora: Mapping[str, Corpus],
    models: Mapping[str, Model],
    trained: Mapping[str, ModelRef],
) -> dict[tuple[str, str], int]:
    """How many records of each corpus each model scored before; trained models are loaded one by one."""
    by_model = dict[str, list[str]]()
    for name, role in pairs:
        by_model.setdefault(name, []).append(role)
    found = dict[tuple[str, str], int]()
    for name, roles in by_model.items():
        model = models.get(name) or (trained[name].load(plan.work) if name in trained else None)
        for role in roles:
            stored = 0 if model is None else int(find_stored(model, corpora[role], plan.work).sum())
            found[name, role] = stored
    return found
