"""The audit with models that a recipe really trains: nobody is accused whom a target never saw; members are found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from recollect.audits.provenance.audit import ProvenanceAudit
from recollect.corpora import synthetic
from recollect.corpora.corpus import Corpus
from recollect.corpora.partitions import build_cohorts, draw_halves
from recollect.pipeline.plans.plan import Plan
from recollect.pipeline.run import run
from recollect.recipes.fleet import Fleet, train_fleet
from recollect.recipes.layout_trial import WorkerLayout
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.trainer import train
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET
from recollect.stats.significance import binomial_p, superuniformity_p

SMALL = ["units=32", "embedding=16", "dropout=0.0", "learning_rate=0.01", "batch_size=16", "epochs=12"]
TRAININGS, MEMBERS, AUDITED_EACH, CALIBRATING, SHADOW_USERS, TEXTS = 24, 16, 10, 39, 40, 6


@pytest.fixture(scope="module")
def recipe():
    return load_recipe("word-lstm", [*SMALL, "tokenizer.size=500"])


@pytest.fixture(scope="module")
def people():
    """Synthetic people: those of the shadows, and for every training members, audited people and calibration users."""
    each = MEMBERS + AUDITED_EACH + CALIBRATING
    everybody = synthetic.make_texts(people=SHADOW_USERS + TRAININGS * each, per_person=TEXTS, seed=5)
    texts = {}
    for record in everybody:
        texts.setdefault(record.user, []).append(record)
    users = list(texts)

    def of(chosen, name):
        return Corpus.of((record for user in chosen for record in texts[user]), name=name)

    groups = []
    for first in range(SHADOW_USERS, len(users), each):
        group = users[first : first + each]
        groups.append((group[:MEMBERS], group[MEMBERS : MEMBERS + AUDITED_EACH], group[MEMBERS + AUDITED_EACH :]))
    return of, users[:SHADOW_USERS], groups


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    return tmp_path_factory.mktemp("provenance")


@pytest.fixture(scope="module")
def shadows(work, people, recipe):
    """Four shadows, and who trained which."""
    of, theirs, _ = people
    corpus, members = of(theirs, "shadow users"), draw_halves(theirs, 4, seed=0)
    fleet = Fleet(recipe=recipe, corpus=corpus, cohorts=build_cohorts(corpus, members, unit="user", seed=0))
    trained = train_fleet(fleet, work, layout=WorkerLayout(workers=1, threads=1))
    return {name: str(folder) for name, folder in trained.folders.items()}, members


@pytest.fixture(scope="module")
def judged(people, shadows, work):
    """Tells what an audit finds about some people, with calibration users of its own."""
    of, theirs, _ = people
    folders, members = shadows

    def result(audit, target, audited, calibrating):
        controls = of([*theirs, *calibrating], "controls")
        plan = Plan(
            audit=audit,
            models={TARGET: str(target), **folders},
            corpora={AUDITED: of(audited, "audited"), CONTROLS: controls},
            cohorts={CONTROLS: build_cohorts(controls, members, unit="user", seed=0)},
            work=work,
            workers=1,
            threads=1,
        )
        return run(plan)

    return result


def p_values(result):
    return [row["p_value"] for row in result.tables_in_memory["users"].to_pylist()]


@pytest.fixture(scope="module")
def targets(work, people, recipe):
    """Targets of different people, trained when they are first wanted."""
    of, _, groups = people

    def trained(number):
        folder = work / f"target-{number}"
        return train(recipe, of(groups[number][0], "members"), folder, seed=number, threads=1)

    return trained


def test_members_of_a_small_target_are_found_and_others_are_not(targets, people, judged):
    members, others, calibrating = people[2][0]
    audited = [*members[:10], *others]
    found = judged(ProvenanceAudit(shadows=4), targets(0), audited, calibrating)
    by_user = dict(zip(sorted(audited), p_values(found), strict=True))
    assert np.mean([by_user[user] for user in members[:10]]) < 0.1
    assert np.mean([by_user[user] for user in others]) > 0.2


def test_a_target_of_subwords_is_audited_with_shadows_of_words(people, judged, work):
    """What the target cuts up is put together again; words that a shadow does not know are left out, and counted."""
    of, _, groups = people
    members, others, calibrating = groups[1]
    pieces = ["n_embd=32", "n_layer=1", "n_head=2", "epochs=20", "learning_rate=0.01", "batch_size=16"]
    recipe = load_recipe("causal-transformer", [*pieces, "tokenizer.size=400"])
    target = train(recipe, of(members, "members"), work / "subwords", seed=0, threads=1)
    audited = [*members[:10], *others]
    found = judged(ProvenanceAudit(shadows=4), target, audited, calibrating)
    rows = {row["user"]: row for row in found.tables_in_memory["users"].to_pylist()}
    learnt, unseen = ([rows[user]["score"] for user in users] for users in (members[:10], others))
    assert np.mean(np.array(learnt)[:, None] > unseen) > 0.8
    assert sum(row["unknown_words"] for row in rows.values()) > 0
    assert "words_left_out" in found.note_codes


def test_dialogues_are_audited_by_the_words_of_the_reply(tmp_path):
    pairs = Corpus.of(synthetic.make_pairs(people=110, per_person=5, seed=2))
    users = list(dict.fromkeys(record.user for record in pairs))
    members, others, controls = users[:15], users[15:30], users[30:]
    small = ["units=32", "embedding=16", "dropout=0.0", "learning_rate=0.02", "batch_size=16", "epochs=15"]
    recipe = load_recipe("seq2seq", [*small, "tokenizer.size=500"])
    target = train(recipe, pairs.select_users(members), tmp_path / "target", seed=0, threads=1)
    plan = Plan(
        audit=ProvenanceAudit(shadows=2),
        models={TARGET: str(target)},
        corpora={AUDITED: pairs.select_users([*members, *others]), CONTROLS: pairs.select_users(controls)},
        recipe=recipe,
        work=tmp_path,
        workers=1,
        threads=1,
    )
    rows = {row["user"]: row for row in run(plan).tables_in_memory["users"].to_pylist()}
    valid = {user for user, row in rows.items() if row["unlike"] is None}
    assert len(valid.intersection(members)) > 10 < len(valid.intersection(others))
    assert np.mean([rows[user]["p_value"] for user in valid.intersection(members)]) < 0.1
    assert np.mean([rows[user]["p_value"] for user in valid.intersection(others)]) > 0.2
    written = {user: sum(len(r.target.split()) for r in pairs.select_users([user])) for user in members}
    assert all(rows[user]["words"] <= 2 * written[user] for user in members)  # of the replies alone, and their stops


@pytest.mark.slow
def test_nobody_is_flagged_by_targets_not_trained_on_them(targets, people, judged, record_property):
    """Every target has people and calibration users of its own: p-values of different targets are independent."""
    in_pieces = {"top_k": 1, "pieces": 8}
    audits = {"all words": {}, "top-1": {"top_k": 1}, "pieces": in_pieces, "histogram": {"method": "histogram"}}
    p, alarms = {name: [] for name in audits}, []
    for number, (_, audited, calibrating) in enumerate(people[2]):
        for name, settings in audits.items():
            found = judged(ProvenanceAudit(shadows=4, **settings), targets(number), audited, calibrating)
            p[name] += p_values(found)
            alarms += [each.value for each in found.findings if each.name == "svm_false_positive_rate"]
    record_property("SVM false alarms", float(np.mean(alarms)))  # it promises no rate
    for name, values in p.items():
        flagged = int(np.sum(np.array(values) <= 0.05))
        record_property(f"{name}: flagged of {len(values)}", flagged)
        record_property(f"{name}: mean, KS p", (float(np.mean(values)), float(stats.kstest(values, "uniform").pvalue)))
        assert len(values) == TRAININGS * AUDITED_EACH
        assert binomial_p(flagged, len(values), 0.05) > 0.001
        assert superuniformity_p(values) > 0.001
        assert np.mean(values) < 0.6  # and they are not useless
