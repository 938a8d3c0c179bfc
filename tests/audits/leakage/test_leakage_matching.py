"""Users with more text than the controls, or less: nobody is accused for the amount, and leaks are still found."""

from __future__ import annotations

from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import rankdata

from recollect.audits.common.matching import match_units
from recollect.audits.leakage.audit import LeakageAudit
from recollect.audits.leakage.comparison import Comparison, compute_van_elteren_p
from recollect.audits.leakage.decisions import bound_false_flags, decide
from recollect.audits.leakage.user_runs import RunRule, UserRuns, collect_user_runs
from recollect.audits.rounds import collect_evidence
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET, Evidence
from recollect.stats.significance import benjamini_hochberg, binomial_p, conformal_p
from recollect.stats.two_sample_tests import mann_whitney
from recollect.streams import stream
from recollect.testing.fakes import Null
from recollect.testing.world import WorldAnswers

ALPHA = 0.05


def draw_users(rng, name, users, records, *, words=(8, 16), shift=0.0, ties=False):
    """Users who are alike but for how much they wrote: a run in every twenty words, and a habit of their own."""
    each = np.full(users, records) if np.isscalar(records) else rng.choice(records, size=users)
    owner = np.repeat(np.arange(users), each)
    length = rng.integers(*words, size=len(owner))
    at = np.repeat(np.arange(len(owner)), rng.poisson(length / 20))
    first = rng.integers(0, length[at])
    habit = rng.gamma(2.0, size=users)
    value = shift + habit[owner[at]] * rng.exponential(size=len(at))
    return UserRuns(
        users=tuple(f"{name}{user:04}" for user in range(users)),
        records=tuple(f"{name}-{i}" for i in range(len(owner))),
        owner=owner,
        words=length,
        periods=(None,) * len(owner),
        at=at,
        first=first,
        end=np.minimum(first + rng.integers(1, 4, size=len(at)), length[at]),
        value=np.round(value) if ties else value,
    )


def decide_world(seed, audited, controls, **changes):
    """The decisions about users of whom the model has seen nobody (unless `shift` says so)."""
    rng = np.random.default_rng([seed, 18])
    null = {key: value for key, value in changes.items() if key == "ties"}
    ours, theirs = draw_users(rng, "a", *audited, **changes), draw_users(rng, "c", *controls, **null)
    matching = match_units(ours.build_units(), theirs.build_units(), seed=seed, alpha=ALPHA)
    return decide(Comparison(audited=ours, null=theirs, in_nats=True, matching=matching), alpha=ALPHA)


DESIGNS = {
    "more records": ((16, 12), (40, 6)),
    "many more records": ((16, 12), (40, 3)),
    "fewer records": ((16, 2), (40, 12)),
    "any number against fewer": ((12, [2, 4, 8, 16]), (40, [2, 3, 5])),
    "few": ((4, 12), (40, 6)),
    "equal": ((30, 6), (60, 6)),
    "few and equal": ((5, 5), (25, 5)),
    "longer texts": ((16, 6), (40, 6), {"words": (20, 40)}),
    "ties": ((16, 2), (40, 12), {"ties": True}),
}


@pytest.mark.parametrize("runs", [12, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
def test_users_who_were_not_seen_are_not_accused_for_how_much_they_wrote(design, runs):
    audited, controls, *changes = design
    decisions = [decide_world(seed, audited, controls, **dict(*changes)) for seed in range(runs)]
    found = sum(each.found for each in decisions)
    assert binomial_p(found, runs, ALPHA) > 0.001, f"{found} of {runs}"


def test_amounts_alone_would_accuse():
    """What the worlds above would be accused of without matching, so that the test above can fail."""
    found = 0
    for seed in range(10):
        comparison = decide_world(seed, (16, 12), (40, 3)).comparison
        found += mann_whitney(comparison.audited.score(), comparison.null.score()).p <= ALPHA
    assert found >= 8


@pytest.mark.parametrize("records", [6, 12])
def test_what_leaks_is_found_though_users_wrote_more(records):
    assert all(decide_world(seed, (16, records), (40, 6), shift=20.0).found for seed in range(5))


def test_equal_amounts_are_compared_as_they_are():
    decisions = decide_world(1, (30, 6), (60, 6))
    comparison = decisions.comparison
    scores, null = comparison.audited.score(), comparison.null.score()
    assert not len(comparison.matching.unmatched)
    assert all(stratum.counts is None for stratum in comparison.matching.strata)
    assert decisions.joint_p == mann_whitney(scores, null).p
    assert decisions.p_corrected.tolist() == benjamini_hochberg(conformal_p(scores, null)).tolist()


def test_a_score_counts_only_words_that_are_kept():
    runs = UserRuns(
        users=("ann", "bob"),
        records=("1", "2", "3"),
        owner=np.array([0, 0, 1]),
        words=np.array([10, 10, 10]),
        periods=(None,) * 3,
        at=np.array([0, 1, 2]),
        first=np.array([0, 4, 6]),
        end=np.array([2, 8, 10]),
        value=np.array([1.0, 4.0, 8.0]),
    )
    kept = np.array([10, 6, 8])
    assert runs.score().tolist() == [4.0, 8.0]
    assert runs.score(kept).tolist() == [1.0, 0.0], "only whole runs"
    assert runs.score(kept, clipped=True).tolist() == [2.0, 4.0], "the share before the cut"
    assert runs.score(np.array([10, 0, 0]), clipped=True).tolist() == [1.0, 0.0]


@pytest.mark.parametrize(("users", "controls"), [(2, 22), (5, 60), (10, 200), (3, 100)])
def test_no_more_is_flagged_by_chance_than_the_bound_says(users, controls):
    rng, level, draws = np.random.default_rng(0), 0.045, 1500
    flagged = 0
    for _ in range(draws):
        p = conformal_p(rng.random(users), rng.random(controls))
        flagged += bool((benjamini_hochberg(p) <= level).any())
    bound = bound_false_flags(users, controls, level)
    assert binomial_p(flagged, draws, bound) > 0.001
    assert bound <= level
    assert flagged >= draws * (bound - 0.02), "the bound is near what happens"


def test_one_stratum_is_a_rank_test_and_strata_do_not_mix_levels():
    rng = np.random.default_rng(3)
    low, high = rng.random((2, 30)), 100 + rng.random((2, 40))
    assert compute_van_elteren_p([(low[0], low[1])]) == mann_whitney(low[0], low[1]).p
    together = compute_van_elteren_p([(low[0][:5], low[1]), (high[0], high[1][:5])])
    assert together > 0.01, "users of the high stratum are above the controls of the low one, which says nothing"
    assert compute_van_elteren_p([(low[0] + 2, low[1]), (high[0] + 2, high[1])]) < 1e-9
    assert compute_van_elteren_p([(np.zeros(3), np.zeros(4)), (np.ones(3), np.ones(4))]) == 1.0


@pytest.mark.parametrize("leaking", [1, 3, 10])
def test_a_few_leaks_among_many_zeros_are_tested_by_permutation(leaking):
    """The normal approximation of a rank test takes one leak among 160 users for significant."""
    pooled = np.zeros(160)
    pooled[:leaking] = np.arange(1, leaking + 1)
    rng, found, draws = np.random.default_rng(leaking), 0, 60
    for _ in range(draws):
        mixed = rng.permutation(pooled)
        found += compute_van_elteren_p([(mixed[:40], mixed[40:])]) <= ALPHA
    assert binomial_p(found, draws, ALPHA) > 0.001
    all_of_them = np.r_[pooled[:leaking], np.zeros(40 - leaking)], np.zeros(120)
    assert compute_van_elteren_p([all_of_them]) == pytest.approx((40 / 160) ** leaking, rel=0.2, abs=0.02)


def test_tied_strata_are_permuted_independently_as_all_combinations_are():
    strata = [
        (np.array([3.0, 0.0]), np.array([0.0, 0.0, 1.0, 0.0])),
        (np.array([2.0, 2.0]), np.array([0.0, 0.0, 2.0, 0.0])),
    ]
    ranks = [rankdata(np.concatenate(both)) for both in strata]
    sums = [[sum(each[list(chosen)]) for chosen in combinations(range(6), 2)] for each in ranks]
    observed = sum(each[:2].sum() for each in ranks)
    exact = np.mean([one + other >= observed for one, other in product(*sums)])
    assert compute_van_elteren_p(strata) == pytest.approx(exact, abs=4 * (exact * (1 - exact) / 1999) ** 0.5)


@pytest.mark.parametrize(
    ("text", "words", "first", "end"),
    [
        ("one two three, four", 4, 1, 3),
        ("我爱你们 十二十二", 8, 4, 8),
        ("我爱 python 很好", 5, 2, 5),
        ("a, b - c", 4, 1, 3),
    ],
)
def test_runs_stand_where_their_words_do_and_without_spaces_where_their_characters_do(text, words, first, end):
    """A run from the second of the pieces between spaces on, two pieces long if there are so many."""
    pieces = len(text.split())
    fields = [("k", int), ("record", int), ("first", int), ("words", int), ("reference", float), ("nats", float)]
    row = (1, 0, 1, min(2, pieces - 1), 3.0, 1.0)
    read = SimpleNamespace(store=SimpleNamespace(select=lambda unique: np.array([row], dtype=fields)))
    corpus = Corpus.of([Record(id="r", user="ann", text=text)])
    runs = collect_user_runs(corpus, ("ann",), read, np.ones(1, dtype=bool), RunRule(k=1, in_nats=True))
    assert (runs.words.tolist(), runs.first.tolist(), runs.end.tolist()) == ([words], [first], [end])
    assert runs.score().tolist() == [2.0]
    assert runs.score(np.array([end])).tolist() == [2.0]
    assert runs.score(np.array([end - 1])).tolist() == [0.0]


@pytest.mark.parametrize(("characters", "others", "cut"), [(20, 20, False), (60, 20, True), (20, 60, True)])
def test_texts_without_spaces_are_cut_by_their_characters(characters, others, cut):
    """A Chinese sentence is one piece between spaces, however long it is."""
    rng = np.random.default_rng(0)

    def write(name, users, length):
        letters = rng.integers(0x4E00, 0x4F00, size=(users, 4, length))
        texts = [["".join(map(chr, record)) for record in each] for each in letters.tolist()]
        return Corpus.of(
            Record(id=f"{name}{user}-{i}", user=f"{name}{user}", text=f"{text} {text[::-1]}")
            for user, each in enumerate(texts)
            for i, text in enumerate(each)
        )

    corpora = {AUDITED: write("a", 12, characters), CONTROLS: write("c", 40, others)}
    given = Evidence(models={TARGET: Null(seed=0), "reference": Null(seed=1)}, corpora=corpora)
    audit = LeakageAudit()
    evidence = collect_evidence(audit, given, score=lambda model, texts: WorldAnswers(model), train=None)
    result = audit.run(evidence, stream(0, audit.name))
    assert ("amounts_matched" in result.note_codes) is cut
    assert result.outcome != "found"
