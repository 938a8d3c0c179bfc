"""Part (b) of `scoring.py`: masked models, BERT-base-sized with random weights, ten patterns per text.

Three ways to the same texts and patterns, taken in turn so that a busy machine slows all of them:

- ours: `Masked.answer`, tokenising and drawing patterns included;
- loop: one text and one pattern at a time, full logits, the same four numbers, as such code is commonly written;
- bare: the encoder alone, without an output layer, on the very batches that ours reads.

Beside them, the matrix products of the encoder alone, on the same batches. Scoring in this precision does without none
of them but those of the last feed-forward layer (a twentieth), and does more besides: the loop's time divided by theirs
is about the most that can be reached on the machine at hand.
"""

from __future__ import annotations

import numpy as np
import torch
from _gpt2 import seconds
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from recollect.corpora.record import Record
from recollect.models.hugging_face.batches import plan_batches
from recollect.models.hugging_face.mask_patterns import draw_hidden
from recollect.models.hugging_face.masked import Masked
from recollect.models.loading.pretrained import Pretrained
from recollect.models.model import Question
from recollect.streams import stream

MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
QUESTION = Question(patterns=10)
LEAST = {16: 4.0, 128: 1.5}
"""How many times faster than the loop ours must be, by tokens in a text."""
LEAST_OF_BARE = 0.9


def bert_base() -> Pretrained:
    """BERT-base with weights drawn at random and a vocabulary of made-up words."""
    config = BertConfig()
    words = {word: i for i, word in enumerate([*MARKS, *(f"w{i}" for i in range(config.vocab_size - len(MARKS)))])}
    raw = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))  # noqa: S106
    raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, **dict(zip(names, MARKS, strict=True)))
    network = BertForMaskedLM(config).eval().requires_grad_(False)
    return Pretrained(name="bert-base", network=network, tokenizer=tokenizer, digest="0" * 32)


def made_up(tokens: int, texts: int) -> list[Record]:
    """Texts of so many ordinary tokens each."""
    draws = stream(0, "benchmark", tokens).integers(0, 30_000, (texts, tokens))
    return [Record(id=str(i), text=" ".join(f"w{word}" for word in row)) for i, row in enumerate(draws)]


@torch.no_grad()
def loop(pretrained: Pretrained, records: list[Record]) -> None:
    """One text, one pattern at a time."""
    tokenizer, network = pretrained.tokenizer, pretrained.network
    for record in records:
        whole = tokenizer(record.text, return_tensors="pt")["input_ids"]
        for pattern in range(QUESTION.patterns):
            places = torch.from_numpy(draw_hidden(record.digest, whole.shape[1] - 2, pattern, QUESTION)) + 1
            masked, symbols = whole.clone(), whole[0, places]
            masked[0, places] = tokenizer.mask_token_id
            logits = network(input_ids=masked).logits[0]
            logprobs = logits.log_softmax(-1)[places]
            true = logprobs.gather(1, symbols[:, None])
            entropy = -(logprobs.exp() * logprobs).sum(-1)
            spread = ((logprobs.exp() * logprobs**2).sum(-1) - entropy**2).sqrt()
            (logprobs >= true).sum(-1).tolist(), true.tolist(), entropy.tolist(), spread.tolist()


@torch.inference_mode()
def bare(pretrained: Pretrained, tokens: int, reads: int, budget: int) -> None:
    """The encoder alone, on batches of the same shapes."""
    for batch in plan_batches(np.full(reads, tokens + 2), budget):
        pretrained.network.base_model(input_ids=torch.full((len(batch), tokens + 2), 7))


@torch.inference_mode()
def products(pretrained: Pretrained, tokens: int, reads: int, budget: int) -> None:
    """The matrix products of the encoder's layers alone, on batches of the same shapes."""
    layers = [each for each in pretrained.network.base_model.encoder.modules() if isinstance(each, torch.nn.Linear)]
    for batch in plan_batches(np.full(reads, tokens + 2), budget):
        rows = {
            width: torch.full((len(batch) * (tokens + 2), width), 0.5)
            for width in {each.in_features for each in layers}
        }
        for layer in layers:
            layer(rows[layer.in_features])


def measure(*, texts: int, rounds: int) -> dict[str, float | bool]:
    """The figures at 16 and at 128 tokens a text, and whether they reach what they must."""
    pretrained, found = bert_base(), {"threads": torch.get_num_threads(), "reached": True}
    for tokens, least in LEAST.items():
        # texts of the longer kind cost eight times as much
        got = _in_turn(pretrained, tokens, max(2, texts * 16 // tokens), rounds)
        found["reached"] &= got["times_the_loop"] >= least and got["of_the_bare_encoder"] >= LEAST_OF_BARE
        found |= {f"{name}_at_{tokens}": value for name, value in got.items()}
    return found


def _in_turn(pretrained: Pretrained, tokens: int, texts: int, rounds: int) -> dict[str, float]:
    """How many times faster ours is than the loop, and its share of the bare encoder's speed: medians over rounds."""
    records, model = made_up(tokens, texts), Masked(pretrained, QUESTION)
    few = records[: max(1, texts // 4)]
    model.answer(few[:1])
    reads, found = texts * QUESTION.patterns, []
    for _ in range(rounds):
        alone = seconds(lambda: bare(pretrained, tokens, reads, model.budget))
        multiplied = seconds(lambda: products(pretrained, tokens, reads, model.budget))
        ours = seconds(lambda: model.answer(records))
        looped = seconds(lambda: loop(pretrained, few)) * len(records) / len(few)
        found.append((looped / ours, alone / ours, looped / multiplied, looped / alone, reads * (tokens + 2) / ours))
    over_loop, of_bare, most, bare_over_loop, speed = np.median(found, axis=0)
    return {
        "times_the_loop": float(over_loop),
        "of_the_bare_encoder": float(of_bare),
        "bare_times_the_loop": float(bare_over_loop),
        "products_times_the_loop": float(most),
        "tokens_per_second": float(speed),
    }
