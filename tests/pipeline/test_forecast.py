"""What `check` promises: answers that several audits share are counted once, and what cannot be loaded is refused."""

from __future__ import annotations

import shutil

import pytest

import recollect
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.models.answer_store.scoring import score_corpus
from recollect.pipeline import forecast
from recollect.pipeline.forecast import Forecast, ImpossibleAudit, forecast_all
from recollect.pipeline.sources import Sources
from recollect.testing.tiny import build_tiny_model, save_tiny

PEOPLE = [{"user": f"u{i}", "text": f"the cat number {i} sat on mat {j}"} for i in range(12) for j in range(3)]
OTHERS = [{"user": f"v{i}", "text": f"a dog with {i} hats ran over {j}"} for i in range(40) for j in range(3)]


def build_corpus(rows):
    return Corpus.of(Record(id=str(number), **row) for number, row in enumerate(rows))


@pytest.fixture
def base(tmp_path):
    return save_tiny(build_tiny_model("gpt2"), tmp_path / "base")


def test_answers_that_audits_share_are_counted_once(base, tmp_path):
    session = recollect.Session(work=tmp_path / "work")
    plans = [
        session.plan("membership", str(base), PEOPLE, controls=OTHERS, signal=signal) for signal in ("loss", "zlib")
    ]
    first, second = forecast_all(plans, Sources())
    assert isinstance(first, Forecast)
    assert isinstance(second, Forecast)
    assert first.records_scored == len(PEOPLE) + len(OTHERS)
    assert second.records_scored == 0
    alone = forecast_all(plans[1:], Sources())[0]
    assert alone.records_scored == first.records_scored


def test_what_is_stored_already_is_counted_and_costs_no_time(base, tmp_path):
    session = recollect.Session(work=tmp_path / "work")
    plan = session.plan("membership", str(base), PEOPLE, controls=OTHERS, signal="loss")
    (before,) = forecast_all([plan], Sources())
    assert isinstance(before, Forecast)
    assert (before.records_scored, before.records_stored) == (len(PEOPLE) + len(OTHERS), 0)
    assert before.seconds > 0
    score_corpus(str(base), build_corpus(PEOPLE[:30]), tmp_path / "work")
    (half,) = forecast_all([plan], Sources())
    assert isinstance(half, Forecast)
    assert (half.records_scored, half.records_stored) == (before.records_scored, 30)
    session.membership(str(base), PEOPLE, controls=OTHERS, signal="loss")
    (after,) = forecast_all([plan], Sources())
    assert isinstance(after, Forecast)
    assert after.records_stored == after.records_scored == before.records_scored
    assert after.seconds == 0


def test_models_that_are_trained_already_are_not_trained_again(base, tmp_path):
    session = recollect.Session(work=tmp_path / "work")
    shadows = {"signal": "lira", "shadows": 2, "recipe": "char-gru", "set": {"training.epochs": 1}}
    plan = session.plan("membership", str(base), PEOPLE, controls=OTHERS, **shadows)
    (before,) = forecast_all([plan], Sources())
    assert isinstance(before, Forecast)
    assert sum(before.models_to_train.values()) == 2
    session.membership(str(base), PEOPLE, controls=OTHERS, **shadows)
    (after,) = forecast_all([plan], Sources())
    assert isinstance(after, Forecast)
    assert after.models_to_train == {}
    assert after.records_stored == after.records_scored == before.records_scored
    assert after.seconds == 0


def test_what_a_model_takes_to_start_is_not_taken_for_its_speed(monkeypatch):
    class Starting:
        """A model that takes half a minute to load, and then a hundredth of a second for a record."""

        now, started = 0.0, False

        def answer(self, records):
            self.now += 0.01 * len(records) + (0.0 if self.started else 30.0)
            self.started = True

    model = Starting()
    monkeypatch.setattr(forecast.time, "monotonic", lambda: model.now)
    assert forecast._measure_seconds_per_record(model, build_corpus(PEOPLE)) == pytest.approx(0.01)


def test_an_adapter_whose_base_is_gone_is_no_promise(base, tmp_path):
    peft, transformers = pytest.importorskip("peft"), pytest.importorskip("transformers")
    network = transformers.AutoModelForCausalLM.from_pretrained(base)
    peft.get_peft_model(network, peft.LoraConfig(r=2, task_type="CAUSAL_LM")).save_pretrained(tmp_path / "lora")
    session = recollect.Session(work=tmp_path / "work")
    plan = session.plan("membership", str(tmp_path / "lora"), PEOPLE, controls=OTHERS)
    assert isinstance(forecast_all([plan], Sources())[0], Forecast)
    shutil.rmtree(base)
    (found,) = forecast_all([plan], Sources())
    assert isinstance(found, ImpossibleAudit)
    assert found.error.code == "adapter_without_base"


def test_a_recipe_with_an_adapter_is_tried_before_it_is_promised(base, tmp_path):
    pytest.importorskip("peft")
    session = recollect.Session(work=tmp_path / "work")
    changed = {"model.start": str(base), "model.adapter.targets": ["no_such_layer"]}
    plan = session.plan(
        "membership", str(base), PEOPLE, controls=OTHERS, signal="lira", shadows=2, recipe="lora", set=changed
    )
    (found,) = forecast_all([plan], Sources())
    assert isinstance(found, ImpossibleAudit)
    assert found.error.code == "adapter_refused"


def test_what_exact_counts_and_searches_may_take_is_forecast(base, tmp_path):
    session = recollect.Session(work=tmp_path / "work")
    secrets = {"format": "pin {digits:4}", "secrets": ("pin 1234", "pin 9876")}
    plans = [
        session.plan("exposure", str(base), **secrets, draws=100, max_steps=500),
        session.plan("exposure", str(base), **secrets, draws=100, method="sampled"),
        session.plan("extraction", str(base), format="pin {digits:4}", max_steps=10**6),
    ]
    counted, sampled, searched = forecast_all(plans, Sources())
    assert isinstance(counted, Forecast)
    assert isinstance(sampled, Forecast)
    assert isinstance(searched, Forecast)
    assert sampled.seconds_at_most == sampled.seconds
    assert searched.seconds == 0
    # 500 steps for each of two secrets; no more than 20,000 nodes for a format of 10,000, whatever is allowed
    assert searched.seconds_at_most > counted.seconds_at_most - counted.seconds > 0
