"""What parts (a) and (d) of `scoring.py` are measured on: GPT-2-small-sized random weights and ragged texts."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from recollect.corpora import synthetic
from recollect.corpora.record import Record
from recollect.models.loading.pretrained import Pretrained
from recollect.streams import stream

START = "<|endoftext|>"
SHORTEST, LONGEST = 8, 256


def gpt2_small() -> Pretrained:
    """GPT-2 small with weights drawn at random; its tokenizer knows the words of made-up people."""
    words = Tokenizer(models.BPE())
    words.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    words.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=GPT2Config().vocab_size,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=[START],
        show_progress=False,
    )
    words.train_from_iterator((record.text for record in synthetic.make_texts(people=200, seed=1)), trainer)
    names = dict.fromkeys(("bos_token", "eos_token"), START)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, model_max_length=1024, **names)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = GPT2LMHeadModel(GPT2Config(bos_token_id=0, eos_token_id=0)).eval().requires_grad_(False)
    card = {"start_symbol": START}
    return Pretrained(name="gpt2-small", network=network, tokenizer=tokenizer, digest="0" * 32, card=card)


def ragged_texts(pretrained: Pretrained, count: int) -> list[Record]:
    """Texts of made-up people, cut to any length from 8 to 256 tokens."""
    lengths = stream(0, "benchmark", "lengths").integers(SHORTEST, LONGEST + 1, count)
    running = " ".join(record.text or "" for record in synthetic.make_texts(people=20 + count, seed=2))
    ids, found, begin = pretrained.tokenizer(running, verbose=False)["input_ids"], list[Record](), 0
    for i, length in enumerate(lengths.tolist()):
        found.append(Record(id=str(i), text=pretrained.tokenizer.decode(ids[begin : begin + length])))
        begin += length
    return found


def seconds(task: Callable[[], object]) -> float:
    """How long it takes; with one thread in processor time, which other programs lengthen less."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    begun = clock()
    task()
    return clock() - begun
