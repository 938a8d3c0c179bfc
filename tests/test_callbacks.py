"""Memorisation followed in real trainings of the Trainer of transformers and of TRL's SFTTrainer."""

from __future__ import annotations

import json

import datasets
import pytest
import transformers

from recollect.audits.exposure.audit import ExposureAudit
from recollect.callbacks import MemorisationCallback
from recollect.corpora.canaries.insertion import CanarySettings, plant
from recollect.corpora.canaries.manifest import Canaries
from recollect.corpora.corpus import Corpus
from recollect.corpora.messages import list_turns, say
from recollect.corpora.record import Record
from recollect.recipes.canary_survival import check_trained_secrets
from recollect.testing.chats import CHATML_GENERATION
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model

AUDIT = ExposureAudit(draws=100, max_steps=500)
SECRETS = CanarySettings(format="pin {digits:3}", secrets=1, repeat=(2, 20), controls=10)


def build_corpus(kind: str) -> Corpus:
    """Short texts, or exchanges."""
    texts = [f"the dog {i} jumps over {i * i}" for i in range(24)]
    if kind == "text":
        return Corpus.of(Record(id=f"r{i}", user=f"u{i % 6}", text=text) for i, text in enumerate(texts))
    return Corpus.of(
        Record(id=f"r{i}", user=f"u{i % 6}", messages=(say("user", "the fox"), say("assistant", text)))
        for i, text in enumerate(texts)
    )


def build_chat_tiny():
    """A tiny model with a chat template."""
    tiny = build_tiny_model("llama", window=128)
    tiny.tokenizer.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
    tiny.network.resize_token_embeddings(len(tiny.tokenizer), mean_resizing=False)
    tiny.tokenizer.chat_template = CHATML_GENERATION
    return tiny.network.requires_grad_(True), tiny.tokenizer


@pytest.fixture
def texts(tmp_path):
    """A planted corpus of texts: half of it trains, half is held out; with its manifest."""
    corpus, canaries = plant(build_corpus("text"), SECRETS)
    canaries.save(tmp_path / "canaries.json")
    held_out = Corpus.of(Record(id=f"h{i}", text=f"a lazy fox {i} is under {i + 7}") for i in range(12))
    return corpus, held_out, tmp_path / "canaries.json"


def run_trainer(corpus, callback, tmp_path, *, length=32, **options):
    """A real Trainer on a tiny model."""
    tiny = build_tiny_model("gpt2")
    rows = [tiny.tokenizer(record.text, truncation=True, max_length=length)["input_ids"] for record in corpus]
    rows = [{"input_ids": ids, "labels": ids} for ids in rows]
    tiny.tokenizer.padding_side = "right"
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path / "out"),
        per_device_train_batch_size=4,
        learning_rate=0.01,
        use_cpu=True,
        save_strategy="no",
        disable_tqdm=True,
        logging_steps=4,
        **{"num_train_epochs": 2, "eval_strategy": "epoch", "report_to": [], **options},
    )
    trainer = transformers.Trainer(
        model=tiny.network.requires_grad_(True),
        args=arguments,
        train_dataset=rows,
        eval_dataset=rows[:4],
        data_collator=transformers.DataCollatorForSeq2Seq(tiny.tokenizer),
        processing_class=tiny.tokenizer,
        callbacks=[callback] if callback else [],
    )
    trainer.train()
    return trainer


def test_a_real_trainer_logs_exposure_and_membership_at_every_evaluation(texts, tmp_path):
    corpus, held_out, manifest = texts
    callback = MemorisationCallback(manifest, members=corpus, held_out=held_out, audit=AUDIT)
    trainer = run_trainer(corpus, callback, tmp_path)
    logged = [row for row in trainer.state.log_history if "exposure_bits" in row]
    assert [row["epoch"] for row in logged] == [1.0, 2.0]
    names = {"exposure_bits", "exposure_bits_planted_2", "exposure_bits_planted_20", "membership_auc", "member_loss"}
    assert all(names <= row.keys() for row in logged)
    assert [row["step"] for row in callback.history] == [row["step"] for row in logged]
    assert logged[1]["member_loss"] < logged[0]["member_loss"]
    assert logged[1]["membership_auc"] > 0.9
    written = json.loads((tmp_path / "out" / "exposure-by-epoch.json").read_text())
    assert [row["epoch"] for row in written] == [1.0, 2.0]


def test_what_is_measured_moves_no_weight(texts, tmp_path):
    corpus, held_out, manifest = texts
    callback = MemorisationCallback(manifest, members=corpus, held_out=held_out, audit=AUDIT)
    followed = run_trainer(corpus, callback, tmp_path / "followed", num_train_epochs=1)
    plain = run_trainer(corpus, None, tmp_path / "plain", num_train_epochs=1)
    for one, other in zip(followed.model.parameters(), plain.model.parameters(), strict=True):
        assert one.equal(other)


def test_figures_reach_what_reports_to_others(texts, tmp_path):
    corpus, _, manifest = texts
    seen = []

    class Reporter(transformers.TrainerCallback):
        def on_log(self, args, state, control, logs=None, **kwargs):
            seen.append(dict(logs))

    callback = MemorisationCallback(manifest, audit=AUDIT)
    tiny_options = {"num_train_epochs": 1, "eval_strategy": "no"}
    original = transformers.Trainer.__init__

    def with_reporter(self, *args, **kwargs):
        original(self, *args, **{**kwargs, "callbacks": [Reporter(), *kwargs["callbacks"]]})

    patch = pytest.MonkeyPatch()
    patch.setattr(transformers.Trainer, "__init__", with_reporter)
    run_trainer(corpus, callback, tmp_path, **tiny_options)
    patch.undo()
    assert sum("exposure_bits" in logs for logs in seen) == 1


def test_training_stops_when_a_limit_is_passed(texts, tmp_path):
    corpus, held_out, manifest = texts
    callback = MemorisationCallback(
        manifest, members=corpus, held_out=held_out, audit=AUDIT, stop_if=["membership_auc>0.5", "exposure_bits>99"]
    )
    trainer = run_trainer(corpus, callback, tmp_path, num_train_epochs=5)
    assert len(callback.history) == 1
    assert trainer.state.epoch == 1.0


def test_a_secret_that_truncation_removes_is_refused_before_training(texts, tmp_path):
    corpus, _, manifest = texts
    with refused("secrets_not_trained_on") as refusal:
        run_trainer(corpus, MemorisationCallback(manifest, audit=AUDIT), tmp_path, length=2)
    assert "2 of 2 planted secrets" in str(refusal.error)
    assert "cut off" in str(refusal.error)


def test_what_cannot_be_followed_is_refused(texts):
    corpus, held_out, manifest = texts
    for given in ({}, {"members": corpus}, {"held_out": held_out}):
        with refused("nothing_to_follow"):
            MemorisationCallback(**given)
    with refused("no_such_finding"):
        MemorisationCallback(manifest, stop_if="membership_auc>0.6")
    with refused("not_a_limit"):
        MemorisationCallback(manifest, stop_if="exposure")


def test_label_masks_and_packing_are_seen_by_the_check():
    _, tokenizer = build_chat_tiny()
    (first,) = (each for each in plant(build_corpus("text"), SECRETS)[1].planted if each.planted == 2)
    manifest = Canaries(corpus="x", seed=0, canaries=(first,))

    def count(*labelled):
        """The copies that are found in rows of (text, whether it is trained on)."""
        rows = []
        for row in labelled:
            pairs = [(token, token if learnt else -100) for text, learnt in row for token in ids(text)]
            rows.append({"input_ids": [one for one, _ in pairs], "labels": [label for _, label in pairs]})
        return check_trained_secrets(manifest, rows, collate, tokenizer)[0].trained

    def ids(text):
        return tokenizer(text, add_special_tokens=False)["input_ids"]

    collate = transformers.DataCollatorForSeq2Seq(tokenizer)
    secret = first.text
    assert count([("so ", True), (secret, True)], [("so ", False), (secret, True)]) == 2
    assert count([("so ", True), (secret, True), (" and ", True), (secret, True)]) == 2
    with refused("secrets_not_trained_on") as refusal:
        count([("so ", True), (secret, False)])
    assert "label mask" in str(refusal.error)
    with refused("secrets_not_trained_on"):
        count([("so ", True), (secret[:5], True)], [("x", True), (secret[5:], True)])
    with refused("stream_of_examples"):
        check_trained_secrets(manifest, iter([]), collate, tokenizer)


def run_sft(records, callback, tmp_path, **options):
    """A real SFTTrainer on a tiny chat model."""
    trl = pytest.importorskip("trl")
    network, tokenizer = build_chat_tiny()
    rows = datasets.Dataset.from_list([{"messages": list_turns(record.messages)} for record in records])
    arguments = trl.SFTConfig(
        output_dir=str(tmp_path / "out"),
        num_train_epochs=2,
        per_device_train_batch_size=4,
        learning_rate=0.01,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        disable_tqdm=True,
        logging_steps=4,
        eval_strategy="epoch",
        bf16=False,
        dataset_num_proc=None,
        **{"assistant_only_loss": True, "max_length": 64, **options},
    )
    trainer = trl.SFTTrainer(
        model=network,
        args=arguments,
        train_dataset=rows,
        eval_dataset=rows.select(range(4)),
        processing_class=tokenizer,
        callbacks=[callback],
    )
    trainer.train()
    return trainer


@pytest.mark.slow
def test_a_real_sft_trainer_logs_the_figures_of_conversations(tmp_path):
    corpus, canaries = plant(build_corpus("chat"), SECRETS)
    canaries.save(tmp_path / "canaries.json")
    held_out = Corpus.of(
        Record(id=f"h{i}", messages=(say("user", "the fox"), say("assistant", f"a lazy fox {i} is under {i + 7}")))
        for i in range(12)
    )
    callback = MemorisationCallback(tmp_path / "canaries.json", members=corpus, held_out=held_out, audit=AUDIT)
    trainer = run_sft(corpus, callback, tmp_path)
    logged = [row for row in trainer.state.log_history if "exposure_bits" in row]
    assert [row["epoch"] for row in logged] == [1.0, 2.0]
    assert logged[1]["exposure_bits_planted_20"] > 5
    assert logged[1]["membership_auc"] > 0.9


@pytest.mark.slow
def test_a_secret_that_the_sft_trainer_cuts_off_is_refused_before_training(tmp_path):
    corpus, canaries = plant(build_corpus("chat"), SECRETS)
    canaries.save(tmp_path / "canaries.json")
    callback = MemorisationCallback(tmp_path / "canaries.json", audit=AUDIT)
    with refused("secrets_not_trained_on"):
        run_sft(corpus, callback, tmp_path, max_length=40)
    assert callback.history == []
