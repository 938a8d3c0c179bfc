"""The removal audit as a whole: with models whose truth is known."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from recollect.audits.removal.audit import RemovalAudit
from recollect.audits.removal.calibrated import Case
from recollect.audits.removal.judging import Judged
from recollect.audits.removal.lines import ALL_BUT_SURE, of_members
from recollect.audits.removal.rates import Near, Rate
from recollect.audits.removal.reporting import said_plainly
from recollect.audits.removal.units import Standing
from recollect.audits.rounds import gathered
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import CorpusError, PlanError
from recollect.models.asking import ask
from recollect.models.recorded import replay
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, TARGET, Evidence
from recollect.signals.scores import Scores
from recollect.streams import stream
from recollect.testing.fakes import Memoriser, Null
from recollect.testing.world import World

FEW_MODELS = RemovalAudit(models=2)


def images(count, seed, name):
    """Pictures that are all alike but for chance."""
    rng = np.random.default_rng([7, seed])
    return [
        Record(id=f"{name}-{i:03d}", array=rng.random((4, 4), dtype=np.float32), label=int(rng.integers(10)))
        for i in range(count)
    ]


def known_by_heart(records, seed=0, certainty=0.99):
    return Memoriser(tuple(records), otherwise=Null(seed=seed, kind="classifier", vocabulary=10), certainty=certainty)


def judged(audit, target, query, controls, **models):
    """The result of the audit of a set of pictures."""
    corpora = {AUDITED: Corpus.of(query), CONTROLS: Corpus.of(controls)}
    given = Evidence(models={TARGET: target, **models}, corpora=corpora)
    world = World(kind="classifier")
    return audit.run(gathered(audit, given, ask=world.ask, train=world.train), stream(0, "removal"))


QUERY, CONTROL = images(120, 1, "query"), images(200, 2, "control")


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_the_share_that_is_still_in_is_found(share):
    learnt = QUERY[: round(share * len(QUERY))]
    result = judged(FEW_MODELS, known_by_heart(learnt), QUERY, CONTROL)
    found = result.finding("fraction_still_in")
    assert found.interval[0] <= share <= found.interval[1]
    assert found.value == pytest.approx(share, abs=0.1)
    assert result.outcome == ("not_found" if share == 0 else "found")


def test_a_model_that_never_saw_the_set_is_hardly_ever_accused():
    verdicts = []
    for seed in range(40):
        query, controls = images(40, 100 + seed, "query"), images(60, 200 + seed, "control")
        result = judged(FEW_MODELS, known_by_heart([], seed=seed), query, controls)
        verdicts.append(result.settings["said"])
    assert verdicts.count("still there") + verdicts.count("over-unlearned") <= 6
    assert verdicts.count("gone") >= 30


def test_a_model_that_was_pushed_below_is_not_called_clean():
    result = judged(FEW_MODELS, known_by_heart(QUERY, certainty=0.0001), QUERY, CONTROL)
    assert result.settings["said"] == "over-unlearned"
    assert result.outcome == "found"
    assert "gives away" in result.verdict


def test_few_records_cannot_be_told_and_it_says_how_many_would_do():
    result = judged(FEW_MODELS, known_by_heart([]), QUERY[:2], CONTROL)
    assert result.outcome == "inconclusive"
    assert "would do" in result.verdict


@pytest.mark.parametrize("method", ["ema", "ks"])
def test_the_published_methods_find_what_was_learnt_by_heart(method):
    found = judged(RemovalAudit(method=method), known_by_heart(QUERY), QUERY, CONTROL)
    assert found.outcome == "found"
    assert "no error rate" in found.finding(f"rho_{method}").reading


def test_ema_rejects_what_was_never_seen():
    found = judged(RemovalAudit(method="ema", thresholds="per-class", test="ks"), known_by_heart([]), QUERY, CONTROL)
    assert found.outcome == "not_found"
    assert found.finding("rho_ema").value < 0.1


def test_neither_order_nor_blocks_move_a_finding():
    target = known_by_heart(QUERY[:60])
    plain = judged(FEW_MODELS, target, QUERY, CONTROL)
    turned = judged(FEW_MODELS, target, QUERY[::-1], CONTROL[::-1])
    assert plain.findings == turned.findings


def test_controls_among_the_query_set_are_refused_before_anything_is_asked():
    with pytest.raises(CorpusError, match="also in the query set, such as 'control-000'"):
        judged(FEW_MODELS, known_by_heart([]), [*QUERY, replace(CONTROL[0], id="x")], CONTROL)


def test_people_on_both_sides_are_refused():
    with pytest.raises(CorpusError, match="users are both"):
        judged(
            FEW_MODELS,
            known_by_heart([]),
            [replace(r, user="ann") for r in QUERY],
            [replace(r, user="ann") for r in CONTROL],
        )


def test_an_empty_query_set_is_refused():
    with pytest.raises(CorpusError, match="query set is empty"):
        judged(FEW_MODELS, known_by_heart([]), [], CONTROL)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": "emma"}, "Did you mean 'ema'"),
        ({"models": 3}, "pairs"),
        ({"by": "user", "method": "ema"}, "judges whole sets"),
        ({"tolerance": 1.5}, "tolerance is 1.5"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(PlanError, match=message):
        RemovalAudit(**settings)


def test_ks_reads_classifiers_only():
    world = World()
    with pytest.raises(PlanError, match="compares class probabilities"):
        gathered(RemovalAudit(method="ks"), world.given(world.null()), ask=world.ask, train=world.train)


def test_a_far_set_that_the_model_knows_nothing_of_is_gone():
    far = [replace(r, array=r.array + np.float32(5), id=f"far-{i}") for i, r in enumerate(QUERY)]
    unsure = Memoriser(tuple(far), otherwise=Null(kind="classifier", vocabulary=10), certainty=0.001)
    result = judged(FEW_MODELS, unsure, far, CONTROL)
    assert result.settings["said"] == "gone"
    assert "unlike_any_control" in result.note_codes


def test_a_far_set_is_gone_also_if_the_few_that_are_near_tell_nothing():
    told_nothing = Case(unsure=0, size=3, members=Rate(value=0.0, size=100), never=Rate(value=0.0, size=9))
    whole = Case(unsure=95, size=100, members=Rate(value=0.0, size=100), never=ALL_BUT_SURE)
    found = SimpleNamespace(case=told_nothing, whole=whole, damaged=False, found=SimpleNamespace(audited=range(100)))
    assert said_plainly("gone", found, FEW_MODELS).startswith("Gone: no sign of the 100 audited records; at most")


def test_a_model_that_was_damaged_as_a_whole_is_not_called_clean():
    everything = [*QUERY, *CONTROL]
    result = judged(FEW_MODELS, known_by_heart(everything, certainty=1e-6), QUERY, CONTROL)
    assert result.settings["said"] == "cannot tell"
    assert "target_damaged" in result.note_codes
    assert "fraction_still_in" not in {finding.name for finding in result.findings}


def test_a_healthy_model_is_not_called_damaged_for_controls_that_are_noisy():
    # calibration models learnt noisy pictures too, which the target never met
    rng = np.random.default_rng(0)
    names = tuple(f"c{i:03d}" for i in range(200))
    noisy = np.arange(200) >= 80

    def scored(values, name=""):
        return Scores(tuple(name + each for each in names), names, values + rng.normal(0, 0.1, 200))

    found = Standing(
        audited=scored(np.zeros(200)),
        controls=scored(np.where(noisy, -5.0, 0.0)),
        members=scored(np.ones(200), "m/"),
        others=scored(np.zeros(200), "o/"),
        dropped={},
    )
    spoilt = replace(found, controls=scored(np.full(200, -5.0)))
    places = np.arange(200)[:, None]
    near = Near(audited=places % 80, controls=places, distances=(np.zeros(200), np.ones(200)))

    def damaged(standing, near):
        parts = {"case": None, "low": None, "whole": None, "line": 0.0, "p_below": 1.0, "p_above": 1.0}
        return Judged(found=standing, near=near, shifted=False, level=0.05, **parts).damaged

    # the audited records have clean controls for neighbours
    assert damaged(found, None)
    assert not damaged(found, near)
    assert damaged(spoilt, near)


def test_how_firmly_members_are_held_is_told_of_each_model():
    names = ("m0/a", "m0/b", "m1/a", "m1/c")
    members = Scores(names, tuple(name[3:] for name in names), np.array([0.0, 2.0, 2.0, 2.0]))
    nobody = Scores((), (), np.empty(0))
    rate = of_members(Standing(audited=nobody, controls=nobody, members=members, others=nobody, dropped={}), 1.0)
    assert (rate.value, rate.size, rate.models) == (0.25, 3, (0.5, 0.0))


def language(learnt, **given):
    """The audit of a language model in the world of people."""
    world = World(members=20, others=0, controls=80, **given)
    target = Memoriser(tuple(world.learnt if learnt else ()), otherwise=Null(seed=0))
    return world, target


@pytest.mark.parametrize("learnt", [True, False])
def test_a_language_model_is_judged_by_people(learnt):
    world, target = language(learnt)
    evidence = gathered(FEW_MODELS, world.given(target), ask=world.ask, train=world.train)
    result = FEW_MODELS.run(evidence, stream(0, "removal"))
    assert result.settings["said"] == ("still there" if learnt else "gone")
    assert result.finding("p_still_there").n["audited"] == 20


@pytest.mark.parametrize("learnt", [True, False])
def test_without_a_recipe_a_retrained_model_is_compared_with(learnt):
    audit = RemovalAudit(models=0)
    world, target = language(learnt)
    given = world.given(target)
    evidence = gathered(audit, given, ask=world.ask, train=world.train)
    result = audit.run(evidence, stream(0, "removal"))
    assert REFERENCE in audit.needs(Evidence()).given
    assert result.settings["said"] == ("still there" if learnt else "cannot tell")


def test_everybody_is_judged_alone_and_corrected_for_many():
    audit = RemovalAudit(by="user", models=2)
    world = World(members=3, others=3, controls=200)
    evidence = gathered(audit, world.given(world.memoriser()), ask=world.ask, train=world.train)
    result = audit.run(evidence, stream(0, "removal"))
    rows = {row["user"]: row["said"] for row in result.held["users"].to_pylist()}
    assert {user for user, said in rows.items() if said == "still there"} == {f"member-{i}" for i in range(3)}
    assert all(said in {"gone", "cannot tell"} for user, said in rows.items() if user.startswith("other"))
    assert result.finding("users_still_there").value == 3
    assert result.outcome == "found"


def test_too_few_controls_to_name_anybody_are_said():
    audit = RemovalAudit(by="user", models=2)
    world = World(members=3, others=3, controls=30)
    evidence = gathered(audit, world.given(world.memoriser()), ask=world.ask, train=world.train)
    result = audit.run(evidence, stream(0, "removal"))
    assert result.finding("users_still_there").value == 0
    assert any(note.code == "too_few_controls_to_name" and "119" in note.text for note in result.notes)


def test_recorded_answers_do_as_well_as_the_model(tmp_path):
    target = known_by_heart(QUERY[:60])
    store = ask(target, Corpus.of([*QUERY, *CONTROL]), tmp_path)
    ours, theirs = judged(FEW_MODELS, target, QUERY, CONTROL), judged(FEW_MODELS, replay(store.folder), QUERY, CONTROL)
    assert [f.value for f in ours.findings] == pytest.approx([f.value for f in theirs.findings], rel=1e-5)
