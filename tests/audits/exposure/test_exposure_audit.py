"""The exposure audit: models that cannot have seen the secrets, one that has, and what it refuses."""

import itertools
import json

import numpy as np
import pytest

from recollect.audits.exposure.audit import ExposureAudit
from recollect.audits.exposure.extraction import ExtractionAudit
from recollect.audits.rounds import collect_evidence
from recollect.corpora import Record, synthetic
from recollect.corpora.canaries.insertion import CanarySettings, plant
from recollect.corpora.canaries.manifest import Canaries, Canary
from recollect.corpora.corpus import Corpus
from recollect.errors import AccessError, ModelError, NotEnoughData, PlanError
from recollect.models.access import Access
from recollect.models.hugging_face.masked import Masked
from recollect.models.hugging_face.seq2seq import Seq2Seq
from recollect.models.limited import limited
from recollect.models.loading.loader import load_model
from recollect.models.model import Question
from recollect.pipeline.plans.plan import Plan
from recollect.pipeline.run import run
from recollect.recipes.data.vocabulary import add_canaries_to_vocabulary
from recollect.recipes.recipe_file import load_recipe
from recollect.recipes.training.trainer import train
from recollect.results.result_schema import parse_result
from recollect.signals.evidence import AUDITED, TARGET, Evidence
from recollect.signals.roles import CANARIES
from recollect.stats.significance import binomial_p
from recollect.streams import stream
from recollect.testing.fakes import Memoriser, Null
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model
from recollect.testing.world import WorldAnswers

QUICK = ["units=48", "embedding=16", "training.epochs=30", "training.learning_rate=0.01", "training.batch_size=16"]
FORMAT = "my pin is {digits:4}"


def manifest(path, *, planted, controls, seed=0, written=FORMAT):
    """A manifest as planting writes one, without a corpus: secrets planted once, and controls."""
    from recollect.corpora.canaries.formats import parse_format

    rng, texts = np.random.default_rng(seed), {}
    while len(texts) < planted + controls:
        texts.setdefault(parse_format(written).draw(rng))
    canaries = [
        Canary(id=f"canary-{i}" if i < planted else f"control-{i}", format=written, text=text, planted=int(i < planted))
        for i, text in enumerate(texts)
    ]
    found = Canaries(corpus="0" * 32, seed=seed, canaries=tuple(canaries))
    found.save(path)
    return found


def judge(audit, model, *, seed=0, **given):
    """The result without a store: straight from the model."""
    evidence = collect_evidence(
        audit,
        Evidence(models={TARGET: model}, seed=seed, **given),
        score=lambda asked, corpus: WorldAnswers(asked, block=4096),  # a secret that is drawn again is asked once
        train=lambda *_: {},
    )
    return audit.run(evidence, stream(seed, audit.name))


def rows(result):
    return {row["secret_id"]: row for row in result.tables_in_memory["secrets"].to_pylist()}


@pytest.mark.parametrize("models", [10, pytest.param(60, marks=pytest.mark.slow)])
def test_a_model_trained_on_nothing_is_seldom_flagged(models, tmp_path):
    audit, accused = ExposureAudit(draws=200), 0
    for seed in range(models):
        manifest(tmp_path / f"{seed}.json", planted=5, controls=20, seed=seed)
        result = judge(audit, Null(seed=seed), seed=seed, files={CANARIES: tmp_path / f"{seed}.json"})
        accused += result.outcome == "found"
    assert binomial_p(accused, models, audit.alpha) > 0.001


def test_where_single_secrets_and_groups_are_tested_each_has_half_of_alpha(tmp_path):
    manifest(tmp_path / "c.json", planted=5, controls=20)

    def outcome(alpha, seed):
        return judge(ExposureAudit(draws=200, alpha=alpha), Null(seed=seed), files={CANARIES: tmp_path / "c.json"})

    def least(result):
        single = [row["p_corrected"] for row in rows(result).values() if row["p_corrected"] is not None]
        return min([result.finding("memorisation_p_planted_1").value, *single])

    seed, p = min(((seed, least(outcome(0.05, seed))) for seed in range(8)), key=lambda found: found[1])
    assert p < 0.4
    assert outcome(1.5 * p, seed).outcome == "not_found"
    assert outcome(2.5 * p, seed).outcome == "found"


@pytest.mark.parametrize("planted", [2, 3, 8])
def test_one_control_is_too_few_to_tell_several_secrets_from_it(tmp_path, planted):
    manifest(tmp_path / "c.json", planted=planted, controls=1)
    result = judge(ExposureAudit(draws=200), Null(), files={CANARIES: tmp_path / "c.json"})
    assert result.finding("memorisation_p_planted_1").value == 1
    assert result.outcome == "not_found"


def test_a_format_of_few_possible_secrets_is_inconclusive_even_for_the_likeliest():
    audit = ExposureAudit(format="my pin is {digits:1}", secrets=("4",), draws=200, method="sampled")
    secret = Record(id="s", text="my pin is 4")
    result = judge(audit, Memoriser([secret], otherwise=Null(seed=0, kind="causal", vocabulary=500)))
    assert (result.outcome, result.outcome_code) == ("inconclusive", "no_power")
    assert result.power.smallest_p == pytest.approx(0.1)
    assert "cannot be determined" in str(result.verdict)


def test_controls_have_the_exposure_of_random_secrets(tmp_path):
    manifest(tmp_path / "c.json", planted=2, controls=400)
    result = judge(ExposureAudit(draws=2000, method="sampled"), Null(), files={CANARIES: tmp_path / "c.json"})
    finding = result.finding("exposure_bits_controls")
    assert finding.interval[0] < 1.4427 < finding.interval[1]


def test_memorised_secrets_are_found(tmp_path):
    known = manifest(tmp_path / "c.json", planted=4, controls=30)
    model = Memoriser([Record(id=each.id, text=each.text) for each in known.planted])
    result = judge(ExposureAudit(), model, files={CANARIES: tmp_path / "c.json"})
    assert result.outcome == "found"
    assert result.finding("memorisation_p_planted_1").value < 0.01
    assert all(row["exposure_bits"] > 9 for name, row in rows(result).items() if name.startswith("canary"))


def test_values_come_back_keyed_by_secret_whatever_the_order(tmp_path):
    known = manifest(tmp_path / "c.json", planted=6, controls=10)
    turned = known.model_copy(update={"canaries": known.canaries[::-1]})
    turned.save(tmp_path / "turned.json")
    one, other = (
        rows(judge(ExposureAudit(), Null(), files={CANARIES: tmp_path / name})) for name in ("c.json", "turned.json")
    )
    assert one.keys() == other.keys() == {each.id for each in known.canaries}
    for name, row in one.items():
        assert row["log_perplexity_bits"] == other[name]["log_perplexity_bits"]
        assert row["exposure_bits"] == other[name]["exposure_bits"]


def test_secrets_are_masked_unless_requested(tmp_path):
    known = manifest(tmp_path / "c.json", planted=2, controls=3)
    for show in (False, True):
        result = judge(ExposureAudit(show_text=show), Null(), files={CANARIES: tmp_path / "c.json"})
        said = json.dumps([result.model_dump(mode="json"), result.tables_in_memory["secrets"].to_pylist()])
        assert (known.canaries[0].text in said) is show


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A small model that was trained on a corpus with secrets in it, and their manifest."""
    folder = tmp_path_factory.mktemp("trained")
    corpus = synthetic.make_texts(people=4, per_person=15, seed=0)
    planted, canaries = plant(corpus, CanarySettings(format=FORMAT, secrets=1, repeat=(8,), controls=40))
    canaries.save(folder / "canaries.json")
    recipe = add_canaries_to_vocabulary(load_recipe("char-lstm", QUICK), canaries)
    train(recipe, planted, folder / "model", threads=1)
    return folder, canaries


def test_a_real_model_gives_its_secret_away(trained, tmp_path):
    folder, canaries = trained
    plan = Plan(
        audit=ExposureAudit(),
        models={TARGET: str(folder / "model")},
        files={CANARIES: folder / "canaries.json"},
        work=tmp_path / "work",
    )
    result = run(plan, tmp_path / "run")
    secret = rows(result)[canaries.planted[0].id]
    assert (secret["rank"], secret["method"], secret["planted"]) == (1, "exact", 8)
    assert secret["exposure_bits"] == pytest.approx(np.log2(10_000))
    assert secret["space"] == 10_000
    assert result.finding("first_guess").value == 1
    written = json.loads((tmp_path / "run" / "results" / "exposure.json").read_text())
    assert parse_result(written, source="exposure.json").verdict == result.verdict
    drawn = run(
        Plan(audit=ExtractionAudit(format=FORMAT, show_text=True, top=3), models=plan.models, work=tmp_path / "work")
    )
    assert drawn.tables_in_memory["secrets"].to_pylist()[0]["secret"] == canaries.planted[0].text
    assert drawn.finding("proven").value == 3


def test_sampled_intervals_hold_the_exact_exposure(trained):
    folder, _ = trained
    model = load_model(str(folder / "model"))
    given = {"files": {CANARIES: folder / "canaries.json"}}
    exact = rows(judge(ExposureAudit(method="exact", draws=100), model, **given))
    sampled = rows(judge(ExposureAudit(method="sampled", draws=1000), model, **given))
    assert exact.keys() == sampled.keys()
    outside = [name for name, row in exact.items() if not _within(row["exposure_bits"], sampled[name])]
    assert binomial_p(len(outside), len(exact), 0.05) > 0.001
    for name, row in exact.items():
        assert row["log_perplexity_bits"] == pytest.approx(sampled[name]["log_perplexity_bits"], abs=1e-3)


def _within(bits, row):
    return row["lower"] - 1e-6 <= bits <= row["upper"] + 1e-6


def test_counted_ranks_are_kept_and_read_again(trained, tmp_path):
    folder, _ = trained
    plan = Plan(
        audit=ExposureAudit(method="exact", draws=100),
        models={TARGET: str(folder / "model")},
        files={CANARIES: folder / "canaries.json"},
        work=tmp_path,
    )
    first = run(plan)
    again = run(plan)
    assert first.tables_in_memory["secrets"].equals(again.tables_in_memory["secrets"])
    assert list(tmp_path.glob("audits/exposure-*/*.json"))


def test_what_a_model_does_not_show_is_refused_or_done_without(trained):
    folder, _ = trained
    model = load_model(str(folder / "model"))
    given = {"files": {CANARIES: folder / "canaries.json"}}
    with pytest.raises(AccessError):
        judge(ExposureAudit(method="exact"), limited(model, Access.PROBABILITIES), **given)
    with pytest.raises(AccessError):
        judge(ExposureAudit(), limited(model, Access.RANKS), **given)
    with pytest.raises(AccessError):
        judge(ExtractionAudit(format=FORMAT), limited(model, Access.PROBABILITIES))
    result = judge(ExposureAudit(), limited(model, Access.PROBABILITIES), **given)
    assert result.outcome == "found"
    assert "not_counted_exactly" in result.note_codes


def test_given_secrets_may_be_whole_texts_or_fillings(trained):
    folder, canaries = trained
    model, text = load_model(str(folder / "model")), canaries.planted[0].text
    for secret in (text, text.removeprefix("my pin is ")):
        result = judge(ExposureAudit(format=FORMAT, secrets=(secret, "0000")), model)
        assert rows(result)["secret-0"]["rank"] == 1
        assert rows(result)["secret-0"]["planted"] is None
    with refused("secret_not_of_format", PlanError):
        judge(ExposureAudit(format=FORMAT, secrets=("12",)), model)
    with refused("secrets_without_format", PlanError):
        ExposureAudit(secrets=("1234",))


def test_secrets_that_stand_in_a_corpus_are_found_with_what_stands_before_them(trained):
    _, canaries = trained
    texts = ["call {me}: " + canaries.planted[0].text, "nothing here", "my pin is 1234 my pin is 1234"]
    corpus = Corpus.of(Record(id=str(i), text=text) for i, text in enumerate(texts))
    audit = ExposureAudit(format="my pin is {digits:4}", context=6, draws=100, show_text=True)
    result = judge(audit, Null(), corpora={AUDITED: corpus})
    found = rows(result)
    assert [(row["planted"], row["secret"]) for row in found.values()] == [
        (1, "{me}: " + canaries.planted[0].text),
        (2, "my pin is 1234"),
    ]
    assert (result.outcome, result.outcome_code) == ("inconclusive", "natural_secrets")
    assert "secrets_in_corpus" in result.note_codes
    assert all(row["p_corrected"] is None for row in found.values())
    with refused("no_secret_in_corpus", NotEnoughData):
        judge(ExposureAudit(format="{digits:9}"), Null(), corpora={AUDITED: corpus})


def test_masked_and_seq2seq_models_are_measured_by_sampling(tmp_path):
    manifest(tmp_path / "c.json", planted=2, controls=4)
    masked = Masked(build_tiny_model("bert"), Question(patterns=4))
    result = judge(ExposureAudit(draws=100), masked, files={CANARIES: tmp_path / "c.json"})
    assert {row["method"] for row in rows(result).values()} == {"sampled"}
    with refused("not_left_to_right", ModelError):
        ExtractionAudit(format=FORMAT).run(Evidence(models={TARGET: masked}), stream(0))
    pairs = Corpus.of([Record(id="1", source="hello", target="bonjour"), Record(id="2", source="you", target="vous")])
    _, canaries = plant(
        pairs, CanarySettings(format="le code {digits:3}", source_format="the code {digits:3}", controls=4)
    )
    canaries.save(tmp_path / "pairs.json")
    result = judge(
        ExposureAudit(draws=100), Seq2Seq(build_tiny_model("t5"), Question()), files={CANARIES: tmp_path / "pairs.json"}
    )
    assert len(rows(result)) == len(canaries.canaries)


def test_secrets_with_different_sources_are_each_counted_after_their_own(tmp_path):
    model, written = Seq2Seq(build_tiny_model("t5"), Question()), "le code {digits:2}"
    texts = [f"le code {number:02}" for number in range(100)]
    sources = {"one": "the code", "two": "my other number"}
    canaries = [
        Canary(id=name, format=written, text="le code 37", source=source, planted=1) for name, source in sources.items()
    ]
    Canaries(corpus="0" * 32, seed=0, canaries=tuple(canaries)).save(tmp_path / "pairs.json")
    exact, drawn = (
        rows(judge(ExposureAudit(method=method, draws=4000), model, files={CANARIES: tmp_path / "pairs.json"}))
        for method in ("exact", "sampled")
    )
    for name, source in sources.items():
        answers = model.answer([Record(id=text, source=source, target=text) for text in texts])
        surprise = np.array([-answers.logprob[slice(*ends)].sum() for ends in itertools.pairwise(answers.offsets)])
        assert exact[name]["rank"] == (surprise <= surprise[37] + 1e-4).sum()
        # " 1" is one token and " 3" is two: both are counted from the space
        assert drawn[name]["lower"] <= exact[name]["exposure_bits"] <= drawn[name]["upper"]
    assert exact["one"]["rank"] != exact["two"]["rank"]


def test_secrets_that_are_unknown_to_the_vocabulary_are_refused(tmp_path):
    corpus = synthetic.make_texts(people=3, per_person=5, seed=0)
    train(load_recipe("char-lstm", [*QUICK, "training.epochs=1"]), corpus, tmp_path / "model", threads=1)
    written = "☃ {choice:☃☃|☃☂|☂☃|☂☂}"
    manifest(tmp_path / "c.json", planted=1, controls=2, written=written)
    with refused("secrets_not_in_vocabulary", NotEnoughData):
        judge(ExposureAudit(draws=100), load_model(str(tmp_path / "model")), files={CANARIES: tmp_path / "c.json"})


def test_a_curve_that_disagrees_is_noted(trained):
    folder, canaries = trained
    result = judge(
        ExposureAudit(draws=2000), load_model(str(folder / "model")), files={CANARIES: folder / "canaries.json"}
    )
    secret = rows(result)[canaries.planted[0].id]
    disagrees = abs(secret["skew_normal_bits"] - secret["exposure_bits"]) > 1
    assert disagrees == ("skew_normal_misleads" in result.note_codes)
