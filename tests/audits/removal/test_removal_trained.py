"""Models of texts that were really trained: with and without twenty people, made to unlearn them, and classifiers."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from recollect.audits.removal.audit import RemovalAudit
from recollect.corpora import synthetic
from recollect.corpora.corpus import Corpus
from recollect.corpora.partitions import draw_groups, list_units
from recollect.corpora.record import Record
from recollect.pipeline.plans.plan import Plan
from recollect.pipeline.run import run
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.trainer import train
from recollect.results.result import Result
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, TARGET

pytestmark = pytest.mark.slow
RECIPE = load_recipe(
    "causal-transformer",
    [
        *("tokenizer.size=400", "training.epochs=25", "training.learning_rate=0.01", "training.batch_size=16"),
        *("n_embd=32", "n_layer=1", "n_head=2"),
    ],
)


@dataclass(frozen=True)
class Trained:
    """Twenty people, forty others, forty controls, and models of them."""

    folder: Path
    query: Corpus
    rest: Corpus
    controls: Corpus

    def model(self, name: str) -> Path:
        """A model with the people, without them, or made to unlearn them."""
        out = self.folder / name
        if name == "with":
            both = Corpus.of([*self.query, *self.rest], name="everybody")
            return train(RECIPE, both, out, threads=1)
        if name == "without":
            return train(RECIPE, self.rest, out, threads=1)
        return out if out.exists() else unlearnt(self.model("with"), out, self, ascend=name == "ascent")

    def result(self, name: str, audit: RemovalAudit, query: Corpus, **models: str) -> Result:
        """What the audit says of some people and a model."""
        plan = Plan(
            audit=audit,
            models={TARGET: str(self.model(name)), **models},
            corpora={AUDITED: query, CONTROLS: self.controls},
            recipe=RECIPE if audit.models else None,
            workers=1,
            work=self.folder / "work",
        )
        return run(plan)

    def verdict(self, name: str, audit: RemovalAudit, **models: str) -> str:
        """What the audit says of all of them."""
        return str(self.result(name, audit, self.query, **models).settings["decision"])


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    corpus = synthetic.make_texts(people=120, per_person=6, seed=1)
    parts = draw_groups(list_units(corpus, "user"), {"query": 20, "rest": 40, "controls": 60}, seed=0)
    return Trained(tmp_path_factory.mktemp("people"), *(corpus.select_users(chosen) for chosen in parts.values()))


def unlearnt(source: Path, out: Path, people: Trained, *, ascend: bool) -> Path:
    """The model after fine-tuning on the rest, or after gradient ascent on the people who are to go."""
    torch.manual_seed(0)
    shutil.copytree(source, out)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(source), AutoTokenizer.from_pretrained(source)
    texts = [str(record.text) for record in (people.query if ascend else people.rest)]
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(5 if ascend else 2):
        for first in range(0, len(texts), 16):
            ids = [torch.tensor(tokenizer(text)["input_ids"]) for text in texts[first : first + 16]]
            batch = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True)
            mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(each) for each in ids], batch_first=True)
            loss = model(input_ids=batch, attention_mask=mask, labels=batch.masked_fill(mask == 0, -100)).loss
            optimiser.zero_grad()
            (-loss if ascend else loss).backward()
            optimiser.step()
    model.save_pretrained(out)
    return out


@pytest.mark.parametrize(
    ("name", "verdict"),
    [("with", "still there"), ("without", "gone"), ("fine-tuned", "still there")],
)
def test_what_became_of_twenty_people_is_reported(people, name, verdict):
    assert people.verdict(name, RemovalAudit(models=4)) == verdict


def test_gradient_ascent_does_not_make_a_model_clean(people):
    # it spoils what the model says of everybody, and the twenty people stand out all the same
    assert people.verdict("ascent", RemovalAudit(models=4)) != "gone"


def test_a_retrained_model_shows_it_too(people):
    alone, retrained = RemovalAudit(models=0), str(people.model("without"))
    assert people.verdict("with", alone, **{REFERENCE: retrained}) == "still there"


def opinions(count, seed):
    """Short texts of three kinds, a third of which has a label that nothing but memory can know."""
    rng = np.random.default_rng(seed)
    words = [f"word{i}" for i in range(60)]
    for i in range(count):
        kind = int(rng.integers(3))
        label = int(rng.integers(3)) if rng.random() < 1 / 3 else kind
        yield Record(id=f"{seed}-{i:03d}", text=" ".join([f"kind{kind}", *rng.choice(words, 8)]), label=label)


@pytest.mark.parametrize(("seed", "verdict"), [(0, "still there"), (1, "gone")])
def test_a_text_classifier_is_tested_too(tmp_path_factory, seed, verdict):
    folder = tmp_path_factory.getbasetemp() / "classifier"
    recipe = load_recipe(
        "text-classifier",
        [
            *("hidden_size=32", "num_hidden_layers=1", "num_attention_heads=2", "intermediate_size=64"),
            *("training.epochs=40", "training.learning_rate=0.003"),
        ],
    )
    plan = Plan(
        audit=RemovalAudit(models=2),
        models={TARGET: str(train(recipe, Corpus.of(opinions(120, 0)), folder / "model", threads=1))},
        corpora={AUDITED: Corpus.of(opinions(120, seed)), CONTROLS: Corpus.of(opinions(160, 2))},
        recipe=recipe,
        workers=1,
        work=folder / "work",
    )
    assert run(plan).settings["decision"] == verdict
