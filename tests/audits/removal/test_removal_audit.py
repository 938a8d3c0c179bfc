"""The removal audit as a whole: with models whose truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from recollect.audits.removal.audit import RemovalAudit
from recollect.audits.removal.confidence_scores import UnitScores
from recollect.audits.rounds import collect_evidence
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.models.answer_store.recorded_model import load_recording
from recollect.models.answer_store.scoring import score_corpus
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, TARGET, Evidence
from recollect.signals.scores import Scores
from recollect.streams import stream
from recollect.testing.fakes import Memoriser, Null, Uniform
from recollect.testing.refusals import refused
from recollect.testing.world import World

FEW_MODELS = RemovalAudit(models=2)


def images(count, seed, name):
    """Pictures that are all alike but for chance."""
    rng = np.random.default_rng([7, seed])
    return [
        Record(id=f"{name}-{i:03d}", array=rng.random((4, 4), dtype=np.float32), label=int(rng.integers(10)))
        for i in range(count)
    ]


def memoriser(records, seed=0, certainty=0.99):
    return Memoriser(tuple(records), otherwise=Null(seed=seed, kind="classifier", vocabulary=10), certainty=certainty)


def run(audit, target, query, controls, **models):
    """The result of the audit of a set of pictures."""
    corpora = {AUDITED: Corpus.of(query), CONTROLS: Corpus.of(controls)}
    given = Evidence(models={TARGET: target, **models}, corpora=corpora)
    world = World(kind="classifier")
    return audit.run(collect_evidence(audit, given, score=world.score, train=world.train), stream(0, "removal"))


QUERY, CONTROL = images(120, 1, "query"), images(200, 2, "control")


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_the_share_that_is_still_in_is_found(share):
    learnt = QUERY[: round(share * len(QUERY))]
    result = run(FEW_MODELS, memoriser(learnt), QUERY, CONTROL)
    found = result.finding("fraction_still_in")
    assert found.interval[0] <= share <= found.interval[1]
    assert found.value == pytest.approx(share, abs=0.1)
    assert result.outcome == ("not_found" if share == 0 else "found")


@pytest.mark.parametrize(("worlds", "accused", "gone"), [(20, 3, 15), pytest.param(40, 6, 30, marks=pytest.mark.slow)])
def test_a_model_not_trained_on_the_set_is_hardly_ever_flagged(worlds, accused, gone):
    decisions = []
    for seed in range(worlds):
        query, controls = images(40, 100 + seed, "query"), images(60, 200 + seed, "control")
        result = run(FEW_MODELS, memoriser([], seed=seed), query, controls)
        decisions.append(result.settings["decision"])
    assert decisions.count("still there") + decisions.count("over-unlearned") <= accused
    assert decisions.count("gone") >= gone


def test_a_model_that_was_pushed_below_is_not_called_clean():
    result = run(FEW_MODELS, memoriser(QUERY, certainty=0.0001), QUERY, CONTROL)
    assert result.settings["decision"] == "over-unlearned"
    assert result.outcome == "found"


def test_two_records_are_too_few_to_decide():
    result = run(FEW_MODELS, memoriser([]), QUERY[:2], CONTROL)
    assert (result.outcome, result.outcome_code) == ("inconclusive", "no_power")


def test_a_calibration_set_that_cannot_be_halved_is_refused():
    for method in ("calibrated", "ema"):
        result = run(RemovalAudit(method=method, models=2), memoriser([]), QUERY, CONTROL[:3])
        assert result.outcome_code == "too_few_controls"
        assert [(each.finding, each.code) for each in result.skipped] == [("fraction_still_in", "too_few_controls")]


@pytest.mark.parametrize("method", ["ema", "ks"])
def test_the_published_methods_find_what_was_memorised(method):
    found = run(RemovalAudit(method=method), memoriser(QUERY), QUERY, CONTROL)
    assert found.outcome == "found"
    assert found.finding(f"rho_{method}").interval is None


def test_ema_rejects_what_was_never_seen():
    found = run(RemovalAudit(method="ema", thresholds="per-class", test="ks"), memoriser([]), QUERY, CONTROL)
    assert found.outcome == "not_found"
    assert found.finding("rho_ema").value < 0.1


def test_neither_order_nor_blocks_move_a_finding():
    target = memoriser(QUERY[:60])
    plain = run(FEW_MODELS, target, QUERY, CONTROL)
    turned = run(FEW_MODELS, target, QUERY[::-1], CONTROL[::-1])
    assert plain.findings == turned.findings


def test_records_on_both_sides_are_left_out_and_counted():
    shared = [replace(record, id=f"x{i}") for i, record in enumerate(CONTROL[:3])]
    alone, both = (run(FEW_MODELS, memoriser(QUERY), query, CONTROL) for query in (QUERY, [*QUERY, *shared]))
    assert both.dropped == {"audited.near_duplicate": 3, "controls.near_duplicate": 3}
    assert both.finding("p_still_there").n == {"audited": 120, "controls": 197}
    assert alone.outcome == both.outcome == "found"


def test_copies_of_a_record_count_once():
    copies = [replace(record, id=record.id + "-again" * i) for record in QUERY[:20] for i in range(8)]
    alone, copied = (run(FEW_MODELS, memoriser([]), query, CONTROL) for query in (QUERY[:20], copies))
    assert copied.dropped == {"audited.near_duplicate": 140}
    assert [each.n for each in copied.findings] == [each.n for each in alone.findings]
    assert copied.finding("p_still_there").value == alone.finding("p_still_there").value


def test_copies_in_the_calibration_set_train_the_same_models_as_their_first():
    copies = [replace(record, id=f"{record.id}-{i}") for record in CONTROL[:60] for i in range(8)]
    result = run(RemovalAudit(models=8), memoriser([]), QUERY, copies)
    assert result.dropped == {"controls.near_duplicate": 420}
    assert result.outcome == "not_found"


def test_a_set_of_which_nothing_is_left_is_inconclusive():
    copies = [replace(record, id=f"x{i}") for i, record in enumerate(CONTROL[:5])]
    result = run(FEW_MODELS, memoriser([]), copies, CONTROL)
    assert (result.outcome, result.outcome_code) == ("inconclusive", "no_audited_left")


def test_people_on_both_sides_are_refused():
    with refused("users_in_both_sets"):
        run(
            FEW_MODELS,
            memoriser([]),
            [replace(r, user="ann") for r in QUERY],
            [replace(r, user="ann") for r in CONTROL],
        )


def test_an_empty_query_set_is_refused():
    with refused("empty_query_set"):
        run(FEW_MODELS, memoriser([]), [], CONTROL)


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"method": "emma"}, "unknown_choice"),
        ({"models": 3}, "models_not_paired"),
        ({"by": "user", "method": "ema"}, "method_for_sets_only"),
        ({"tolerance": 1.5}, "out_of_range"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, code):
    with refused(code):
        RemovalAudit(**settings)


def test_ks_reads_classifiers_only():
    world = World()
    with refused("not_a_classifier"):
        collect_evidence(
            RemovalAudit(method="ks"), world.build_given(world.build_null()), score=world.score, train=world.train
        )


def test_a_far_set_that_the_model_knows_nothing_of_is_gone():
    far = [replace(r, array=r.array + np.float32(5), id=f"far-{i}") for i, r in enumerate(QUERY)]
    uncertain = Memoriser(tuple(far), otherwise=Null(kind="classifier", vocabulary=10), certainty=0.001)
    result = run(FEW_MODELS, uncertain, far, CONTROL)
    assert result.settings["decision"] == "gone"
    assert "unlike_any_control" in result.note_codes


def scored(values, prefix=""):
    """Scores under these names."""
    names = tuple(f"{prefix}{place:03d}" for place in range(len(values)))
    return Scores(names, tuple(name.rpartition("/")[2] for name in names), np.asarray(values, dtype=np.float64))


def test_a_model_that_was_damaged_as_a_whole_is_not_called_clean():
    everything = [*QUERY, *CONTROL]
    result = run(FEW_MODELS, memoriser(everything, certainty=1e-6), QUERY, CONTROL)
    assert result.settings["decision"] == "inconclusive"
    assert result.outcome_code == "target_damaged"
    assert "target_damaged" in result.note_codes
    assert ("fraction_still_in", "target_damaged") in [(each.finding, each.code) for each in result.skipped]
    assert "fraction_still_in" not in {finding.name for finding in result.findings}


def test_an_undamaged_model_is_not_called_damaged_for_controls_that_are_noisy():
    # calibration models learnt noisy pictures too, which the target never met
    rng = np.random.default_rng(0)
    noisy = np.arange(200) >= 80

    def around(values, prefix=""):
        return scored(values + rng.normal(0, 0.1, 200), prefix)

    clean = UnitScores(
        audited=around(np.zeros(200)),
        controls=around(np.where(noisy, -5.0, 0.0)),
        members=around(np.ones(200), "m/"),
        non_members=around(np.zeros(200), "o/"),
        difficulty={},
        calibration=None,
        dropped={},
    )
    spoilt = replace(clean, controls=around(np.full(200, -5.0)))
    # the audited records have clean controls for neighbours
    assert clean.is_target_damaged()
    assert not clean.is_target_damaged(~noisy)
    assert spoilt.is_target_damaged(~noisy)


def test_a_set_like_no_control_is_not_comparable():
    far = [replace(r, array=r.array + np.float32(5), id=f"far-{i}") for i, r in enumerate(QUERY)]
    result = run(FEW_MODELS, memoriser(far), far, CONTROL)
    assert result.outcome_code == "not_comparable"


def test_records_without_a_score_are_counted():
    world = World(members=6, others=6, controls=24)
    empty = Record(id="nothing", user="nobody", text="")
    corpora = {AUDITED: Corpus.of([*world.corpora[AUDITED], empty]), CONTROLS: world.corpora[CONTROLS]}
    given = replace(world.build_given(world.build_null()), corpora=corpora, cohorts={})
    evidence = collect_evidence(FEW_MODELS, given, score=world.score, train=world.train)
    result = FEW_MODELS.run(evidence, stream(0, "removal"))
    assert result.dropped == {"audited.not_scored": 1}
    assert result.finding("p_still_there").n == {"audited": 12, "controls": 24}


def language(learnt, **given):
    """The audit of a language model in the world of people."""
    world = World(members=20, others=0, controls=80, **given)
    target = Memoriser(tuple(world.member_records if learnt else ()), otherwise=Null(seed=0))
    return world, target


@pytest.mark.parametrize("learnt", [True, False])
def test_a_language_model_is_compared_by_people(learnt):
    world, target = language(learnt)
    evidence = collect_evidence(FEW_MODELS, world.build_given(target), score=world.score, train=world.train)
    result = FEW_MODELS.run(evidence, stream(0, "removal"))
    assert result.settings["decision"] == ("still there" if learnt else "gone")
    assert result.finding("p_still_there").n["audited"] == 20


@pytest.mark.parametrize("learnt", [True, False])
def test_without_a_recipe_a_retrained_model_is_compared_with(learnt):
    audit = RemovalAudit(models=0)
    world, target = language(learnt)
    given = world.build_given(target)
    evidence = collect_evidence(audit, given, score=world.score, train=world.train)
    result = audit.run(evidence, stream(0, "removal"))
    assert REFERENCE in audit.needs(Evidence()).given
    assert result.settings["decision"] == ("still there" if learnt else "inconclusive")
    assert result.outcome_code == (None if learnt else "no_calibration_models")


def test_everybody_is_decided_about_individually_and_corrected_for_many():
    audit = RemovalAudit(by="user", models=2)
    world = World(members=3, others=3, controls=200)
    evidence = collect_evidence(audit, world.build_given(world.build_memoriser()), score=world.score, train=world.train)
    result = audit.run(evidence, stream(0, "removal"))
    rows = {row["user"]: row["decision"] for row in result.tables_in_memory["users"].to_pylist()}
    assert {user for user, said in rows.items() if said == "still there"} == {f"member-{i}" for i in range(3)}
    assert all(said in {"gone", "inconclusive"} for user, said in rows.items() if user.startswith("other"))
    assert result.finding("users_still_there").value == 3
    assert result.outcome == "found"


def test_too_few_controls_to_identify_anybody_are_said():
    audit = RemovalAudit(by="user", models=2)
    world = World(members=3, others=3, controls=30)
    evidence = collect_evidence(audit, world.build_given(world.build_memoriser()), score=world.score, train=world.train)
    result = audit.run(evidence, stream(0, "removal"))
    assert result.finding("users_still_there").value == 0
    assert "too_few_controls_to_identify" in result.note_codes


def test_recorded_answers_do_as_well_as_the_model(tmp_path):
    target = memoriser(QUERY[:60])
    store = score_corpus(target, Corpus.of([*QUERY, *CONTROL]), tmp_path)
    ours, theirs = (
        run(FEW_MODELS, target, QUERY, CONTROL),
        run(FEW_MODELS, load_recording(store.folder), QUERY, CONTROL),
    )
    assert [f.value for f in ours.findings] == pytest.approx([f.value for f in theirs.findings], rel=1e-5)


def test_a_target_that_is_equally_confident_in_all_records_is_not_called_clear_of_them():
    result = run(FEW_MODELS, Uniform(kind="classifier", vocabulary=10), QUERY, CONTROL)
    assert (result.outcome, result.outcome_code) == ("inconclusive", "target_damaged")


def test_one_record_is_too_few_and_the_sentence_calls_it_audited():
    result = run(FEW_MODELS, memoriser([]), QUERY[:1], CONTROL)
    assert (result.outcome, result.outcome_code) == ("inconclusive", "too_few_records")
    assert "at least 2 audited records; there is 1" in result.verdict
