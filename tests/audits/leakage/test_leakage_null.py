"""Models that never saw the audited users: no more of them is accused than stated, and the excess covers 0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from recollect.audits.leakage.audit import LeakageAudit
from recollect.audits.rounds import collect_evidence
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.pipeline.plans.plan import Plan
from recollect.pipeline.run import run
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.trainer import train
from recollect.signals.evidence import AUDITED, TARGET, Evidence
from recollect.stats.significance import binomial_p
from recollect.streams import stream
from recollect.testing.fakes import Memoriser, Null
from recollect.testing.world import World

ALPHA = 0.05


@dataclass(frozen=True, kw_only=True)
class Hesitant(Null):
    """A model that seldom finds the true word most likely, so that few users have sequences."""

    name: str = "hesitant"

    def score_words(self, record, words):
        chance = stream(self.seed, "hesitant", record.digest).standard_normal(len(words))
        ease = stream(0, "ease", record.digest).standard_normal(len(words))
        return self.score_with_probability(record, 1 / (1 + np.exp(4.2 - 0.8 * ease - 1.2 * chance)))


def judged(world, target, audit, *, kind, controls):
    """The result where references are trained: models that know those by heart on whom they were trained."""

    def trained(cohorts, corpus):
        return {
            name: Memoriser(tuple(cohorts.select_corpus(corpus, name)), otherwise=kind(seed=1000 + i), name=name)
            for i, name in enumerate(cohorts.models)
        }

    corpora = world.corpora if controls else {AUDITED: world.corpora[AUDITED]}
    given = Evidence(models={TARGET: target}, corpora=corpora, seed=world.seed, trainable=True)
    evidence = collect_evidence(audit, given, score=world.score, train=trained)
    return audit.run(evidence, stream(0, audit.name)), evidence


def refuse_too_many(results):
    """No more accusations, flags and intervals beside 0 than stated."""
    accused = sum(result.outcome == "found" for result in results)
    told = [result for result in results if result.outcome != "inconclusive"]
    assert binomial_p(len(results) - len(told), len(results), 0.1) > 0.001, "too often not comparable"
    intervals = [result.finding("leakage_excess").interval for result in told]
    missed = sum(not low <= 0 <= high for low, high in filter(None, intervals))
    assert binomial_p(accused, len(results), ALPHA) > 0.001, f"{accused} of {len(results)} accused"
    assert binomial_p(missed, len(results), ALPHA) > 0.001, f"{missed} of {len(results)} intervals miss 0"
    return accused, missed


@pytest.mark.parametrize(
    ("folds", "controls", "seeds"),
    [
        (4, False, 12),
        (4, True, 12),
        pytest.param(8, False, 100, marks=pytest.mark.slow),
        pytest.param(8, True, 100, marks=pytest.mark.slow),
    ],
)
def test_against_folds_a_model_trained_on_nobody_is_not_flagged(folds, controls, seeds):
    results = []
    for seed in range(seeds):
        world = World(members=0, others=24, controls=24 if controls else 0, seed=seed)
        result, evidence = judged(world, Null(seed=seed), LeakageAudit(folds=folds), kind=Null, controls=controls)
        assert len(evidence.models_of_role("left-out")) == folds
        results.append(result)
    refuse_too_many(results)


@pytest.mark.parametrize(
    ("controls", "seeds"),
    [(False, 6), (True, 6), *(pytest.param(c, 100, marks=pytest.mark.slow) for c in (False, True))],
)
def test_against_a_retrained_reference_a_model_trained_on_nobody_is_not_flagged(controls, seeds):
    """The users of its sequences were chosen because it says them; that alone must accuse nobody."""
    results = []
    for seed in range(seeds):
        world = World(members=0, others=90, controls=30 if controls else 0, seed=seed)
        audit = LeakageAudit(folds=8, min_length=2, removable=0.5)
        result, evidence = judged(world, Hesitant(seed=seed), audit, kind=Hesitant, controls=controls)
        assert evidence.models_of_role("retrained")
        assert result.finding("unique_sequences").value > 0
        results.append(result)
    refuse_too_many(results)


VOCABULARY = 150
_FOLLOWS = np.random.default_rng(99).integers(VOCABULARY, size=(VOCABULARY, 2))


def people(users, name, *, seed):
    """People who share a language: most words follow from the word before."""
    rng = np.random.default_rng([seed, *name.encode()])
    records = []
    for user in range(users):
        for number in range(4):
            words = [int(VOCABULARY ** rng.random())]
            while len(words) < 10:
                drawn = rng.choice(3, p=[0.65, 0.1, 0.25])
                words.append(int(_FOLLOWS[words[-1], drawn]) if drawn < 2 else int(VOCABULARY ** rng.random()))
            text = " ".join(f"w{word}" for word in words)
            records.append(Record(id=f"{name}{user}-{number}", user=f"{name}{user}", text=text))
    return Corpus.of(records, name=name)


@pytest.mark.slow
def test_really_trained_models_that_saw_other_people_are_not_flagged(tmp_path):
    """Targets trained on as many other people as the references are; with controls, and without."""
    small = ["units=32", "embedding=16", "batch_size=16", "learning_rate=0.02", "epochs=8", "tokenizer.size=200"]
    recipe = load_recipe("word-gru", small)
    found = {True: [], False: []}
    for seed in range(10):
        folder, audited = tmp_path / str(seed), people(60, "a", seed=seed)
        train(recipe, people(45, "b", seed=seed), folder / "target", threads=1, seed=seed)
        for controls, results in found.items():
            corpora = {AUDITED: audited} | ({"controls": people(40, "c", seed=seed)} if controls else {})
            plan = Plan(
                audit=LeakageAudit(folds=8, removable=0),
                models={TARGET: str(folder / "target")},
                corpora=corpora,
                recipe=recipe,
                work=folder / "work",
                workers=1,
                threads=1,
                seed=seed,
            )
            result = run(plan)
            assert result.finding("unique_sequences").value > 0
            results.append(result)
    for results in found.values():
        refuse_too_many(results)
        assert all(result.finding("flagged_users").value == 0 for result in results if result.outcome != "inconclusive")
