"""The exposure audit at its edges: impossible, repeated and few secrets, wrong manifests, a curve without bounds."""

from dataclasses import replace

import numpy as np
import pytest

from recollect.audits.exposure.audit import ExposureAudit
from recollect.audits.exposure.extraction import ExtractionAudit
from recollect.audits.exposure.result import build_extraction_result
from recollect.audits.exposure.search import FoundSecret, SearchResult
from recollect.audits.exposure.view import CANARIES
from recollect.audits.rounds import collect_evidence
from recollect.corpora.canaries.formats import parse_format
from recollect.corpora.canaries.manifest import Canaries, Canary
from recollect.corpora.record import Record
from recollect.models.hugging_face.causal import Causal
from recollect.models.model import Question
from recollect.signals.evidence import TARGET, Evidence
from recollect.stats.significance import binomial_p
from recollect.streams import stream
from recollect.testing.fakes import Memoriser, Null
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model
from recollect.testing.world import WorldAnswers


def manifest(path, *, planted, controls, seed=0, written="my pin is {digits:4}"):
    """Different secrets of one format, planted once, and controls."""
    parsed, rng, texts = parse_format(written), np.random.default_rng(seed), {}
    while len(texts) < planted + controls:
        texts.setdefault(parsed.draw(rng))
    canaries = [
        Canary(id=f"canary-{i}", format=written, text=text, planted=int(i < planted)) for i, text in enumerate(texts)
    ]
    found = Canaries(corpus="0" * 32, seed=seed, canaries=tuple(canaries))
    found.save(path)
    return found


def judge(audit, model, *, seed=0, **given):
    """The result without a store: straight from the model."""
    evidence = Evidence(models={TARGET: model}, seed=seed, **given)
    complete = collect_evidence(
        audit, evidence, score=lambda asked, corpus: WorldAnswers(asked, block=4096), train=lambda *_: {}
    )
    return audit.run(complete, stream(seed, audit.name))


def rows(result):
    return {row["secret_id"]: row for row in result.tables_in_memory["secrets"].to_pylist()}


class Refusing(Null):
    """A model that holds all secrets but some to be impossible."""

    def answer(self, records):
        answers = super().answer(records)
        logprob = answers.logprob.copy()
        for record in records:
            if record.text not in self.name.split("|"):
                logprob[answers.get_rows(record.digest)] = -np.inf
        return replace(answers, logprob=logprob)


def test_secrets_that_a_model_holds_to_be_impossible_are_the_least_likely_and_not_unknown(tmp_path):
    found = manifest(tmp_path / "c.json", planted=4, controls=12)
    known = "|".join(canary.text for canary in found.planted)
    result = judge(ExposureAudit(draws=200), Refusing(name=known), files={CANARIES: tmp_path / "c.json"})
    assert result.outcome == "found"
    assert "unknown_secrets" not in result.note_codes
    assert {row["exposure_bits"] for row in rows(result).values() if not row["planted"]} == {0.0}
    nothing = judge(ExposureAudit(draws=200), Refusing(name=""), files={CANARIES: tmp_path / "c.json"})
    assert nothing.outcome == "not_found"


def test_one_secret_under_many_names_is_found_no_more_often_than_stated(tmp_path):
    """Five copies of one secret among controls were "found" in 21 % of such worlds."""
    audit, accused = ExposureAudit(draws=100), 0
    for seed in range(15):
        found = manifest(tmp_path / "c.json", planted=5, controls=20, seed=seed)
        same = [c.model_copy(update={"text": found.canaries[0].text}) if c.planted else c for c in found.canaries]
        found.model_copy(update={"canaries": tuple(same)}).save(tmp_path / "c.json")
        result = judge(audit, Null(seed=seed), seed=seed, files={CANARIES: tmp_path / "c.json"})
        assert "repeated_secrets" in result.note_codes
        accused += result.outcome == "found"
    assert binomial_p(accused, 15, audit.alpha) > 0.001


def test_bounds_of_exposures_are_within_the_space_and_what_is_expected_depends_on_it(tmp_path):
    manifest(tmp_path / "c.json", planted=1, controls=2, written="pin {digits:1}")
    result = judge(ExposureAudit(draws=200), Null(), files={CANARIES: tmp_path / "c.json"})
    controls = result.finding("exposure_bits_controls")
    assert controls.interval[1] == pytest.approx(np.log2(10))
    assert controls.reading.startswith("Secrets that were never planted; 1.14 bits are expected")


def test_manifests_without_planted_secrets_or_with_other_formats_are_refused(tmp_path):
    found = manifest(tmp_path / "c.json", planted=1, controls=2)
    for changed, code in (({"planted": 0}, "no_planted_secrets"), ({"text": "my pin is abcd"}, "secret_not_of_format")):
        first = found.canaries[0].model_copy(update=changed)
        found.model_copy(update={"canaries": (first, *found.canaries[1:])}).save(tmp_path / "d.json")
        with refused(code):
            judge(ExposureAudit(draws=200), Null(), files={CANARIES: tmp_path / "d.json"})


@pytest.mark.parametrize(("size", "outcome"), [(1, "inconclusive"), (2, "inconclusive"), (20, "found")])
def test_one_of_very_few_possible_secrets_is_not_said_to_be_extracted(size, outcome):
    """Whatever a model was trained on, it writes one of two possible fillings more often than not."""
    likeliest = SearchResult(secrets=(FoundSecret(0.3, "yes"),), floor=1.0, steps=1, completed=1)
    result = build_extraction_result(ExtractionAudit(format="{choice:yes|no}"), size, likeliest, [0.3])
    assert (result.outcome, result.outcome_code) == (outcome, None if outcome == "found" else "too_few_possible")
    assert ("possible: one of so few" in result.verdict) is (outcome == "inconclusive")


@pytest.mark.parametrize("bits", [1.0, 4.0, 9.0])
def test_a_search_for_likely_secrets_keeps_to_its_forecast_and_states_what_it_proves(bits):
    audit = ExtractionAudit(format="again {digits:3}", max_bits=bits)
    result = judge(audit, Causal(build_tiny_model("gpt2"), Question()))
    found = {finding.name: finding.value for finding in result.findings}
    assert found["steps"] <= audit.needs(Evidence()).most_steps < ExtractionAudit(format="{digits:9}").max_steps
    assert found["unlisted_bits"] >= bits - 1e-6
    assert result.outcome_code == "nothing_certain"
    with refused("unknown_choice"):
        ExtractionAudit(format="again {digits:3}", max_bits=bits, method="beam")


def test_the_order_of_a_manifest_moves_no_number(tmp_path):
    one, other = (
        manifest(tmp_path / f"{i}.json", planted=2, controls=3, written=written).canaries
        for i, written in enumerate(["pin {digits:4}", "code {digits:3}"])
    )
    every = [canary.model_copy(update={"id": f"{canary.format[:3]}-{canary.id}"}) for canary in (*one, *other)]
    found = []
    for canaries in (every, every[::-1]):
        Canaries(corpus="0" * 32, seed=0, canaries=tuple(canaries)).save(tmp_path / "both.json")
        result = judge(ExposureAudit(draws=200), Null(), files={CANARIES: tmp_path / "both.json"})
        found.append({name: {**row, "format": None} for name, row in rows(result).items()})
    assert found[0] == found[1]


def test_the_curve_gives_no_secret_more_bits_than_the_space_has(tmp_path):
    """Of a memorised secret it gave 10^13 bits, and a rank of 0."""
    found = manifest(tmp_path / "c.json", planted=6, controls=14)
    memoriser = Memoriser([Record(id=canary.id, text=canary.text) for canary in found.planted])
    audit = ExposureAudit(draws=200, method="skew-normal")
    result = judge(audit, memoriser, files={CANARIES: tmp_path / "c.json"})
    assert "skew_normal_beyond_space" in result.note_codes
    assert {round(row["rank"], 9) for row in rows(result).values() if row["planted"]} == {1.0}
    for name in ("highest_exposure_bits", "exposure_bits_planted_1", "exposure_bits_controls"):
        finding = result.finding(name)
        assert max([finding.value, *(finding.interval or ())]) <= np.log2(10_000)
