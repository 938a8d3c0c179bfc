"""Each signal against the same number worked out slowly and obviously."""

from __future__ import annotations

import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.models.model import Question
from recollect.signals.aggregation import average_lowest_tokens, average_tokens
from recollect.signals.ensemble import Ensemble, build_features
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, TARGET, Evidence
from recollect.signals.lira import Lira
from recollect.signals.lira_offline import LiraOffline
from recollect.signals.lowercase import Lowercase
from recollect.signals.min_k_plus_plus import standardise_logprobs
from recollect.signals.modified_entropy import compute_modified_entropy
from recollect.signals.ratio import Ratio, compute_log_ratio
from recollect.signals.recall import Recall
from recollect.signals.registry import make_signal
from recollect.signals.rmia import Rmia, compute_dominated_share
from recollect.signals.scores import Scores
from recollect.signals.shadow_scores import ShadowScores, compute_in_out_means, score_with_shadows
from recollect.signals.signal import compute_scores, derive_corpora
from recollect.testing.fakes import Null, Scripted
from recollect.testing.refusals import refused
from recollect.testing.world import World, WorldAnswers

TEXTS = [
    Record(id="a", user="ann", text="One two three four five six seven"),
    Record(id="b", user="bob", text="Eight"),
    Record(id="c", user="ann", text="Nine ten"),
]


def evidence(models, records=TEXTS, **corpora):
    held = {AUDITED: Corpus.of(records), **corpora}
    answers = {(name, part): WorldAnswers(model) for name, model in models.items() for part in held}
    return Evidence(models=models, corpora=held, answers=answers)


def masked(seed, **question):
    return Null(seed=seed, kind="masked", question=Question(patterns=5, masked=0.4, **question))


@pytest.mark.parametrize("per", ["token", "record"])
def test_the_ratio_of_masked_models_is_the_difference_of_energies(per):
    target, reference = masked(1), masked(2)
    scores = compute_scores(Ratio(per=per), evidence({TARGET: target, REFERENCE: reference}))
    for record in TEXTS:
        energies = []
        for model in (target, reference):
            answers = model.answer([record])
            by_pattern = [answers.logprob[answers.pattern == pattern].astype(float) for pattern in range(5)]
            energies.append(-np.mean([row.sum() if per == "record" else row.mean() for row in by_pattern]))
        assert scores[record.id] == pytest.approx(energies[1] - energies[0], abs=1e-6)


def test_the_ratio_sums_for_masked_models_and_averages_for_others():
    for kind, like in (("masked", "record"), ("causal", "token")):
        models = {TARGET: Null(seed=1, kind=kind), REFERENCE: Null(seed=2, kind=kind)}
        auto, told = compute_scores(Ratio(), evidence(models)), compute_scores(Ratio(per=like), evidence(models))
        assert auto.values == pytest.approx(told.values)


def test_several_references_are_averaged():
    models = {TARGET: Null(seed=1), "reference-0": Null(seed=2), "reference-1": Null(seed=3)}
    both = compute_scores(Ratio(), evidence(models))
    alone = [
        compute_scores(Ratio(), evidence({TARGET: models[TARGET], REFERENCE: models[f"reference-{i}"]})) for i in (0, 1)
    ]
    assert both.values == pytest.approx((alone[0].values + alone[1].values) / 2)


def test_the_ratio_needs_a_reference():
    with refused("missing_reference"):
        compute_scores(Ratio(), evidence({TARGET: Null()}))


def test_tokens_that_one_of_both_does_not_know_count_for_neither():
    target, reference = Null(seed=1).answer(TEXTS), Null(seed=2).answer(TEXTS)
    reference.known[0] = False
    found = compute_log_ratio(target, reference, summed=True)
    rows = slice(1, 7)
    by_hand = target.logprob[rows].astype(float).sum() - reference.logprob[rows].astype(float).sum()
    assert found[TEXTS[0].digest] == pytest.approx(by_hand, abs=1e-5)


def test_models_that_read_other_tokens_are_compared_by_their_own_likelihoods():
    target, other = Null(seed=1).answer(TEXTS), Null(seed=2).answer(TEXTS)
    fewer = replace(other, start=other.start.copy())
    fewer.start[0] += 1  # the first word is read as another piece
    fewer.known[1] = False
    found = compute_log_ratio(target, fewer, summed=False)
    mine = target.logprob[:7].astype(float).mean()
    theirs = other.logprob[[0, 2, 3, 4, 5, 6]].astype(float).mean()
    assert found[TEXTS[0].digest] == pytest.approx(mine - theirs, abs=1e-6)
    assert len(found) == 3


@given(seed=st.integers(0, 200), fraction=st.floats(0.05, 0.95), kind=st.sampled_from(["causal", "masked"]))
@settings(deadline=None, max_examples=30)
def test_the_lowest_tokens_are_those_that_sorting_each_record_finds(seed, fraction, kind):
    answers = Null(seed=seed, kind=kind, question=Question(patterns=4, masked=0.5)).answer(TEXTS)
    answers.known[:] = np.random.default_rng(seed).random(answers.rows) < 0.8
    found = average_lowest_tokens(answers, answers.logprob, fraction=fraction)
    for record in answers.records:
        rows = answers.get_rows(record)
        symbols: dict[int, list[float]] = {}
        for place, value, known in zip(answers.position[rows], answers.logprob[rows], answers.known[rows], strict=True):
            if known:
                symbols.setdefault(int(place), []).append(float(value))
        means = sorted(np.mean(values) for values in symbols.values())
        assert (record in found) == bool(means)
        if means:
            assert found[record] == pytest.approx(np.mean(means[: max(1, round(fraction * len(means)))]))


def test_the_mean_leaves_out_what_is_unknown():
    answers = Null().answer(TEXTS)
    answers.known[:7] = False
    assert set(average_tokens(answers, answers.logprob)) == {TEXTS[1].digest, TEXTS[2].digest}


def test_min_k_plus_plus_standardises_by_the_prediction_itself():
    probabilities = np.array([0.5, 0.3, 0.2])
    logs = np.log(probabilities)
    mean, deviation = probabilities @ logs, np.sqrt(probabilities @ (logs - probabilities @ logs) ** 2)
    answers = Null().answer(TEXTS[2:])
    answers = replace(
        answers,
        logprob=np.array([logs[1], -np.log(3)]),
        entropy=np.array([-mean, np.log(3)]),
        logprob_std=np.array([deviation, 0.0]),
    )
    assert standardise_logprobs(answers) == pytest.approx([(logs[1] - mean) / deviation, 0.0])


def test_modified_entropy_is_that_of_the_probabilities():
    arrays = [Record(id=str(i), array=np.full((2, 2), i, dtype=np.float32), label=i % 4) for i in range(6)]
    answers = Null(kind="classifier", vocabulary=4).answer(arrays)
    p = np.exp(answers.logits.astype(float))
    p /= p.sum(axis=1, keepdims=True)
    for row, record, found in zip(p, arrays, compute_modified_entropy(answers), strict=True):
        y = record.label
        by_hand = -(1 - row[y]) * np.log(row[y]) - sum(q * np.log(1 - q) for i, q in enumerate(row) if i != y)
        assert found == pytest.approx(by_hand, rel=1e-5)


def test_zlib_divides_by_the_compressed_text():
    scores = compute_scores(make_signal("zlib"), evidence({TARGET: Scripted({"b": [0.25]})}, TEXTS[1:2]))
    assert scores["b"] == pytest.approx(np.log(0.25) / len(zlib.compress(b"Eight")))


def with_derived(signal, given):
    more = derive_corpora(signal, given, list(given.corpora))
    asked = {(name, part): WorldAnswers(model) for name, model in given.models.items() for part in more}
    return replace(given, corpora={**given.corpora, **more}, answers={**given.answers, **asked})


def test_lowercase_compares_a_text_with_itself_in_lowercase():
    model = Null()
    scores = compute_scores(Lowercase(), with_derived(Lowercase(), evidence({TARGET: model})))
    for record in TEXTS:
        low = Record(id="low", text=record.text.lower())
        losses = [-model.answer([r]).logprob.astype(float).mean() for r in (record, low)]
        assert scores[record.id] == pytest.approx(losses[1] / losses[0], rel=1e-6)


def test_recall_counts_only_the_tokens_of_the_record_itself():
    controls = Corpus.of([Record(id=f"{i}", text=f"Control number {i}") for i in range(4)])
    signal, model = Recall(shots=2), Null()
    given = with_derived(signal, evidence({TARGET: model}, **{CONTROLS: controls}))
    scores = compute_scores(signal, given)
    prefix = "Control number 0 Control number 2"
    for record in TEXTS:
        after = model.answer([Record(id="x", text=f"{prefix} {record.text}")]).logprob.astype(float)[6:]
        alone = model.answer([record]).logprob.astype(float)
        assert scores[record.id] == pytest.approx(after.mean() / alone.mean(), rel=1e-6)
    own = {record.id: record.text for record in given.corpora["controls-recall"]}
    assert own["0"] == "Control number 1 Control number 3 Control number 0"
    assert own["1"] == f"{prefix} Control number 1"


def test_sides_that_are_missing_are_bridged_by_the_average_distance():
    values, seen = np.array([[5.0, 1.0], [2.0, 0.0], [7.0, 7.0]]), np.array([[1, 0], [1, 0], [1, 1]], dtype=bool)
    inside, outside = compute_in_out_means(values, seen)
    assert inside.tolist() == [5.0, 2.0, 7.0]
    assert outside.tolist() == [1.0, 0.0, 4.0]


def logit(answers):
    p = np.exp(answers.logprob.astype(float).mean())
    return np.log(p / (1 - p))


def test_lira_is_the_likelihood_ratio_of_two_normal_curves():
    world = World(members=6, others=6, controls=6)
    given = world.build_evidence(world.build_null())
    shadows = given.models_of_role("shadow")
    online, offline = compute_scores(Lira(), given), compute_scores(LiraOffline(), given)
    table = {}
    for part in (AUDITED, CONTROLS):
        for record in given.corpora[part]:
            cohorts = given.cohorts[AUDITED]
            saw = [part == AUDITED and record.owner in cohorts.members(name) for name in shadows]
            values = [logit(given.models[name].answer([record])) for name in shadows]
            table[record.id] = np.array(saw), np.array(values)
    gaps = [v[s].mean() - v[~s].mean() for s, v in table.values() if 0 < s.sum() < len(s)]
    spread = []
    for side in (True, False):
        kept = [v[s == side] for s, v in table.values() if (s == side).any()]
        squares, freedom = sum(((v - v.mean()) ** 2).sum() for v in kept), sum(len(v) - 1 for v in kept)
        spread.append(max(0.01, np.sqrt(squares / freedom)))
    for record in list(given.corpora[AUDITED])[:10]:
        saw, values = table[record.id]
        inside = values[saw].mean() if saw.any() else values.mean() + np.mean(gaps)
        outside = values[~saw].mean() if not saw.all() else values.mean() - np.mean(gaps)
        found = logit(given.models[TARGET].answer([record]))
        ratio = stats.norm.logpdf(found, inside, spread[0]) - stats.norm.logpdf(found, outside, spread[1])
        assert online[record.id] == pytest.approx(ratio, rel=1e-4)
        assert offline[record.id] == pytest.approx((found - outside) / spread[1], rel=1e-4)


@given(seed=st.integers(0, 500), gamma=st.floats(1, 4))
@settings(deadline=None, max_examples=50)
def test_rmia_by_sorting_is_the_table_of_all_pairs(seed, gamma):
    rng = np.random.default_rng(seed)
    ratios, population = rng.integers(1, 9, 30) / 4, rng.integers(1, 9, 20) / 4
    pairs = ratios[:, None] >= population[None] * gamma
    assert compute_dominated_share(ratios, population, gamma=gamma).tolist() == pairs.mean(axis=1).tolist()


@pytest.mark.parametrize("offline", [False, True])
def test_rmia_measures_each_record_against_what_its_shadows_expect(offline):
    world = World(members=6, others=6, controls=6)
    given, signal = world.build_evidence(world.build_memoriser()), Rmia(offline=offline, offline_a=0.4)
    found = score_with_shadows(given, AUDITED)
    inside, outside = compute_in_out_means(np.exp(found.shadows), found.trained_on)
    saw = ~found.trained_on.any(axis=1) | offline
    inside = np.where(saw, 0.4 * outside + 0.6, inside)
    ratios = np.exp(found.scores.values) / ((inside + outside) / 2)
    scores = compute_scores(signal, given)
    population = [r for r, name in zip(ratios, found.scores.records, strict=True) if name.startswith("controls")]
    for place, name in enumerate(found.scores.records):
        if name.startswith("audited"):
            share = np.mean([ratios[place] >= other for other in population])
            assert scores[name.partition("\x1f")[2]] == pytest.approx(share)


def test_rmia_expects_a_probability_of_records_that_all_shadows_saw():
    p = np.array([[0.9, 0.3], [0.8, 0.2], [0.05, 0.05], [0.6, 0.6]])
    seen = np.array([[1, 0], [1, 0], [1, 1], [0, 0]], dtype=bool)
    found = ShadowScores(
        Scores(("a", "b", "c", "d"), ("a", "b", "c", "d"), np.log(p[:, 0])), np.log(p), seen, (0, 1, 2, 3)
    )
    expected = Rmia(offline_a=0.4)._estimate_expected(found)
    fell = np.sqrt((0.9 / 0.3) * (0.8 / 0.2))  # by this factor a probability is lower where a record was not seen
    assert expected == pytest.approx([0.6, 0.5, (0.05 + 0.05 / fell) / 2, (0.4 * 0.6 + 0.6 + 0.6) / 2])


@pytest.mark.parametrize(("kind", "usual"), [("classifier", 2.0), ("causal", 1.0), ("masked", 1.0)])
def test_rmia_asks_twice_as_much_of_labels_as_the_paper_does_and_as_much_of_texts(kind, usual):
    world = World(kind=kind, members=6, others=6, controls=12)
    given = world.build_evidence(world.build_memoriser())
    default, plain, double = (compute_scores(Rmia(gamma=gamma), given).values.tolist() for gamma in (None, 1.0, 2.0))
    assert default == {1.0: plain, 2.0: double}[usual]
    assert plain != double


def test_the_ensemble_compares_with_shadows_that_did_not_see_the_record_and_learns_from_shadows_alone():
    rng = np.random.default_rng(3)
    own = [rng.normal(size=(5, 2)) for _ in range(4)]  # of the target and three shadows
    seen = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 0, 0], [0, 1, 0]], dtype=bool)
    for place in range(4):
        found = build_features(own, seen, place)
        for record in range(5):
            others = [i for i in (1, 2, 3) if i != place]
            unseen = [i for i in others if not seen[record, i - 1]] or others
            usual = np.mean([own[i][record] for i in unseen], axis=0)
            assert found[record] == pytest.approx(np.concatenate([own[place][record], own[place][record] - usual]))
    world = World(members=12, others=12, controls=12)
    given = world.build_evidence(world.build_memoriser())
    scores = compute_scores(Ensemble(), given)
    learnt = {record.id for record in world.member_records}
    assert min(scores[r] for r in learnt) > max(scores[r.id] for r in given.corpora[AUDITED] if r.id not in learnt)
    nobody = {
        AUDITED: given.cohorts[AUDITED].of(
            dict.fromkeys(given.cohorts[AUDITED].models, ()),
            units=given.cohorts[AUDITED].units,
            unit="user",
            corpus=given.corpora[AUDITED].digest,
            seed=0,
        )
    }
    with refused("shadows_all_alike"):
        compute_scores(Ensemble(), replace(given, cohorts=nobody))


def test_shadows_whose_training_nobody_knows_are_refused():
    world = World(members=4, others=4, controls=4)
    given = replace(world.build_evidence(world.build_null()), cohorts={})
    with refused("unknown_shadow_cohort"):
        compute_scores(Lira(), given)
    with refused("missing_shadows"):
        compute_scores(Lira(), replace(given, models={TARGET: world.build_null()}))
