"""Models that were really trained: on some of the candidates, with a reference that the audit has trained by itself."""

from __future__ import annotations

import pytest

from recollect.audits.membership.audit import MembershipAudit
from recollect.corpora import synthetic
from recollect.corpora.partitions import build_cohorts, draw_groups, list_units
from recollect.pipeline.plans.plan import Plan
from recollect.pipeline.run import run
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.trainer import train
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET

SMALL = [
    *("tokenizer.size=400", "training.epochs=40", "training.learning_rate=0.01", "training.batch_size=16"),
]
SIZES = {
    "masked-transformer": ["hidden_size=32", "num_hidden_layers=1", "num_attention_heads=2", "intermediate_size=64"],
    "causal-transformer": ["n_embd=32", "n_layer=1", "n_head=2", "training.epochs=8"],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SIZES)
def test_the_ratio_tells_what_a_model_was_trained_on(name, tmp_path):
    corpus = synthetic.make_texts(people=60, per_person=6, seed=1)
    parts = draw_groups(list_units(corpus, "user"), {"members": 20, "others": 20, CONTROLS: 20}, seed=0)
    audited = corpus.select_users({*parts["members"], *parts["others"]})
    truth = build_cohorts(audited, {TARGET: parts["members"]}, unit="user", seed=0)
    recipe = load_recipe(name, [*SMALL, *SIZES[name]])
    model = train(recipe, audited, tmp_path / "model", cohort=(truth, TARGET), threads=1)
    plan = Plan(
        audit=MembershipAudit(signal="ratio", fpr=(0.2,), by="user"),
        models={TARGET: str(model)},
        corpora={AUDITED: audited, CONTROLS: corpus.select_users(parts[CONTROLS])},
        cohorts={AUDITED: truth},
        recipe=recipe,
        workers=1,
        work=tmp_path / "work",
    )
    result = run(plan)
    assert result.outcome == "found", result.verdict
    assert result.finding("auc").value > 0.9
    if name == "masked-transformer":  # the loss of the causal one tells these few people apart perfectly, too
        assert result.finding("auc").value > result.finding("loss_auc").value
    assert run(plan).tables_in_memory["candidates"].equals(result.tables_in_memory["candidates"])
