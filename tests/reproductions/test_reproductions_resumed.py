"""Long studies of the reproductions: what was finished is kept at once, and never made again."""

from __future__ import annotations

from types import SimpleNamespace

import pytest


@pytest.fixture
def bench(load, tmp_path):
    """A laboratory of any paper that can do what it is given, and counts what it did."""

    def made(paper, **skills):
        base, calls = load(paper, "common.bench").Bench, []

        def counted(name, skill):
            def do(self, *args, **settings):
                calls.append(name)
                return skill(*args, **settings)

            return do

        stub = type("Stub", (base,), {name: counted(name, skill) for name, skill in skills.items()})
        lab = stub(data=tmp_path, work=tmp_path / "work", results=tmp_path / "results", say=lambda line: None)
        return lab, calls

    return made


def again(study, lab, calls):
    """The figures of a study that is run twice, the second time without anything that it can do."""
    first = [*study(lab)]
    calls.clear()
    second = [*study(lab)]
    assert not calls
    assert second[-1].figures == first[-1].figures
    return first


def test_noise_of_pairs_is_audited_once_for_each_share(load, bench):
    study = load("song2019", "studies.figure4_pairs")
    scene = load("song2019", "laboratory").Scene(people=None, target=None, shadows={}, taught=None)
    study.trained = lambda corpus, noise: noise
    lab, calls = bench(
        "song2019",
        pair=lambda name: SimpleNamespace(recipe=None, people=SimpleNamespace(members=name)),
        scene=lambda task: scene,
        model=lambda recipe, corpus: f"model of {corpus}",
        audit=lambda scene, **settings: {"auc": 0.9, "svm_recall": 0.1234567, "notes": ["a name"], "seconds": 1},
    )
    type(lab).pairs_scale = "Small."
    outcomes = again(study.study, lab, calls)
    assert len(outcomes) == 9
    found = {figure.what: figure.ours for figure in outcomes[-1].figures}
    assert found["translation, 50% noise: histogram, recall of the SVM"] == 0.123457
    kept = (lab.results / "parts" / "figure4_pairs" / "translation-50-noise.json").read_text()
    assert "a name" not in kept


def test_every_training_of_the_retrained_reference_is_kept_and_means_are_of_what_there_is(load, bench):
    study = load("inan2021", "studies.retrained")
    sequences = [
        {"user": "u1", "times": 1, "words": 1, "epsilon": 4.0, "epsilon_sum": 4.0},
        {"user": "u2", "times": 9, "words": 12, "epsilon": 17.0, "epsilon_sum": 90.0},
    ]

    def audited(setting, **settings):
        found = {"leakage_epsilon": {"value": 17.0 + setting.seed}, "leakage_epsilon_once": {"value": 4.0}}
        return {"findings": found, "sequences": sequences, "notes": []}

    lab, calls = bench(
        "inan2021",
        trained=lambda setting: setting,
        good=lambda model, group: {"perplexity": 100.0, "accuracy": 0.2},
        retrained=audited,
    )
    outcomes = again(study.study, lab, calls)
    assert len(outcomes) == 12
    found = {figure.what: figure.ours for figure in outcomes[-1].figures}
    assert found["3 epochs: mean ε_l"] == 18.0
    assert found["10 epochs, seed 2, controls: ε_l"] == 19.0
    assert found["3 epochs, seed 0, controls: sequences of 10 or more words"] == 1
    early = {figure.what: figure.ours for figure in outcomes[0].figures}
    assert (early["3 epochs: mean ε_l"], early["10 epochs: mean ε_l"]) == (17.0, None)
    assert not any("u1" in file.read_text() for file in lab.results.rglob("*.json"))


def test_models_of_several_seeds_are_kept_one_by_one_and_made_anew_if_the_setting_changes(load, bench):
    laboratory = load("carlini2018", "laboratory")
    lab, calls = bench(
        "carlini2018",
        trained=lambda setting: SimpleNamespace(folder=setting.seed, canaries=(None,)),
        exposure=lambda folder, audit, canaries: {
            "exposure_bits": 20.0 + folder,
            "skew_normal_bits": 30.0,
            "rank": 1,
            "method": "exact",
            "secret": "the random number is 123456789",
        },
        test_loss=lambda folder: 1.5,
    )
    for _ in range(2):
        rows = laboratory.over_seeds(lab, "table2_cells", "batch 16, 50 units", "model.units=50")
    assert [row["exposure_bits"] for row in rows] == [20.0, 21.0, 22.0]
    assert calls.count("trained") == 3
    laboratory.over_seeds(lab, "table2_cells", "batch 16, 50 units", "model.units=51")
    assert calls.count("trained") == 6
    assert not any("123456789" in file.read_text() for file in lab.results.rglob("*.json"))


def test_notes_of_each_training_are_averaged_over_what_there_is(load, bench, monkeypatch):
    study = load("mireshghallah2022", "studies.more_notes")
    lab, calls = bench("mireshghallah2022")
    (loss, ratio), names = list(study.FINDINGS.items())[:2], []

    def attacked(lab, words, by):
        calls.append("attacked")
        names.append((lab.seed, words, by))
        return [{"findings": {loss[1]: [0.7 + lab.seed / 10], ratio[1]: [0.9]}}]

    def seeded(lab, **new):
        return SimpleNamespace(**new, keep=lab.keep, keep_figures=lab.keep_figures)

    monkeypatch.setattr(study, "replace", seeded)
    monkeypatch.setattr(study, "attacked", attacked)
    monkeypatch.setattr(study, "looks", lambda lab: [])
    outcomes = again(study.study, lab, calls)
    assert len(outcomes) == len(study.SEEDS) * 7
    assert len(set(names)) == len(names) == len(study.SEEDS) * 6
    found = [{figure.what: figure.ours for figure in outcome.figures} for outcome in (outcomes[0], outcomes[-1])]
    means = [each[f"by record, other notes: {loss[0]}"] for each in found]
    assert means == pytest.approx([0.7, 0.8])
