"""Which records are exposed: the paper's Table 7, on records whose exposure follows from their looks, or does not."""

from dataclasses import replace

import numpy as np
import pytest

from recollect.audits.membership.audit import MembershipAudit
from recollect.audits.membership.susceptibility import extract_features, predict_susceptibility
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.partitions import draw_groups
from recollect.corpora.record import Record
from recollect.errors import NotEnoughData, PlanError
from recollect.models.hugging_face.causal import Causal
from recollect.models.hugging_face.masked import Masked
from recollect.models.model import Question
from recollect.pipeline.plans.plan import Plan
from recollect.pipeline.run import run
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET, Evidence
from recollect.testing.fakes import Null
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model
from recollect.testing.world import World


def texts(count, *, seed):
    """Texts of which about half hold many tokens that are neither letters nor digits."""
    rng = np.random.default_rng(seed)
    words = ["see", "you", "at", "noon", "again", "to", "sign", "papers", "7", "12"]
    return [
        Record(
            id=f"{seed}-{i}",
            user=f"u{i // 2}",
            text=" ".join(rng.choice(words, 8)) + " *-#" * int(rng.integers(0, 2)) * int(rng.integers(1, 4)),
        )
        for i in range(count)
    ]


def marked(records):
    return np.array(["#" in record.text for record in records])


def predicted(detected, members, **more):
    settings = {"embedder": None, "seed": 0, "confidence": 0.95, **more}
    return predict_susceptibility(members, detected, texts(60, seed=2), **settings)


def test_features_count_what_they_are_named_after():
    records = [Record(id="1", text="Pay 12 € to ann-b, 7!"), Record(id="2", text="")]
    found = extract_features(records, [Record(id="3", text="to to ann-b, Pay")])
    assert found["digits"].tolist() == [[3], [0]]
    assert found["length"].tolist() == [[6], [0]]
    assert found["symbols"].tolist() == [[4], [0]]
    assert found["rarest"].tolist() == [[0, 0, 0], [0, 0, 0]]
    written = {"Pay": 5, "12": 2, "€": 9, "to": 3, "ann-b,": 7, "7!": 1}
    counted = [Record(id="4", text=" ".join(f"{word} " * often for word, often in written.items()))]
    assert extract_features(records[:1], counted)["rarest"].tolist() == [[1, 2, 3]]


def test_what_a_user_wrote_does_not_make_their_own_words_frequent():
    ann, bob = (Record(id=user, user=user, text="one two three") for user in ("ann", "bob"))
    again = Record(id="again", user="ann", text="one one")
    found = extract_features([ann, bob], [ann, again, bob])["rarest"].tolist()
    assert found == [[1, 1, 1], [1, 1, 3]]


def test_looks_that_decide_are_found_on_users_who_were_not_fitted_to():
    members = texts(400, seed=1)
    found = predicted(marked(members), members)
    rows = {row["features"]: row for row in found.table.to_pylist()}
    assert rows["symbols"]["test_precision"] == rows["symbols"]["test_recall"] == 1
    assert not rows["digits"]["test_recall"] or rows["digits"]["test_precision"] < 0.8
    assert found.precision.value == found.recall.value == 1
    assert found.precision.interval.low > 0.9
    others = marked(texts(60, seed=2))
    assert ((np.array(list(found.likely.values())) > 0.5) == others).all()


def test_where_looks_say_nothing_nothing_is_predicted_better_than_by_guessing():
    covered = 0
    for seed in range(20):
        members = texts(300, seed=10 + seed)
        detected = np.random.default_rng(seed).random(300) < 0.5
        found = predicted(detected, members, seed=seed)
        covered += 0.5 in found.precision.interval
        best = found.table.to_pylist()[-1]
        assert (found.precision.value, found.recall.value) == (best["test_precision"], best["test_recall"])
        assert best["test_precision"] != best["train_precision"]
    assert covered >= 16


def test_words_are_counted_in_the_half_that_is_fitted_to_and_nowhere_else():
    members = texts(400, seed=1)
    chosen = draw_groups(sorted({r.owner for r in members}), {"fitted": 0.5, "judged": 0.5}, seed=0, name="susceptible")
    said = {"judged": "papers noon again " * 40, "fitted": "papers noon again"}
    likely = {}
    for half, words in said.items():
        users = set(chosen[half])
        others = [replace(r, text=f"{r.text} {words}") if r.owner in users else r for r in members]
        likely[half] = predicted(marked(members), others).likely
    plain = predicted(marked(members), members).likely
    # what the judging half says must not move a prediction by anything; what the fitted half says may
    assert likely["judged"] == plain
    assert likely["fitted"] != plain


def test_an_embedding_has_one_row_per_record_whatever_the_batches():
    model = Masked(build_tiny_model("bert"), Question(patterns=2))
    members = texts(200, seed=1)
    points = model.embed(members[:7])
    assert points.shape == (7, build_tiny_model("bert").network.config.hidden_size)
    model.budget = 64
    assert model.embed(members[6::-1]) == pytest.approx(points[::-1], abs=1e-5)
    found = predicted(marked(members), members, embedder=model)
    assert found.features == "embedding"
    assert found.table["features"].to_pylist()[-1] == "embedding"


def test_too_few_records_are_refused_with_the_number_that_would_do():
    members = texts(60, seed=1)
    with refused("too_few_records", NotEnoughData) as refusal:
        predicted(marked(members), members)
    assert refusal.error.needed == 20


def audited(world, members):
    """The result of an audit that knows who the members are."""
    corpus = world.corpora[AUDITED]
    truth = Cohorts.of({TARGET: members}, units={r.owner for r in corpus}, unit="user", corpus=corpus.digest, seed=0)
    plan = Plan(
        audit=MembershipAudit(fpr=(0.1,)),
        models={TARGET: world.build_memoriser(), "reference": Null(seed=1)},
        corpora=world.corpora,
        cohorts={AUDITED: truth},
    )
    return run(plan)


def test_the_audit_says_what_it_can_where_the_truth_is_known():
    world = World(members=60, others=100, controls=60)
    learnt = {record.owner for record in world.member_records}
    unlearnt = sorted({record.owner for record in world.corpora[AUDITED]} - learnt)
    result = audited(world, learnt.union(unlearnt[:60]))  # as if a training had forgotten half of its people
    assert result.finding("susceptibility_precision").interval is not None
    assert result.tables_in_memory["susceptibility"].num_rows == 7
    rows = result.tables_in_memory["candidates"].to_pylist()
    assert all((row["likely_memorised"] is None) == row["trained"] for row in rows)
    # where everything is detected, nothing can be learnt about what is not
    result = audited(world, learnt)
    assert ("susceptibility_precision", "too_few_records") in {(each.finding, each.code) for each in result.skipped}
    assert "susceptibility" not in result.tables_in_memory


def test_only_masked_models_embed():
    causal = Causal(build_tiny_model("gpt2"), Question())
    world = World()
    corpora = {part: world.corpora[part] for part in (AUDITED, CONTROLS)}
    evidence = Evidence(models={TARGET: causal, "embedder": causal}, corpora=corpora)
    with refused("not_an_embedder", PlanError):
        MembershipAudit(signal="loss").needs(evidence)
