"""Per-record gradients: all records at once, one by one, Opacus' hooks and torch's vmap, beside a plain backward pass.

Seconds are processor seconds on one thread, so that a busy machine does not change them much.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator

import torch
from opacus.grad_sample import GradSampleModule
from opacus.layers import DPLSTM
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from transformers import GPT2Config, GPT2LMHeadModel

from recollect.models.architectures import RecurrentConfig, RecurrentLM
from recollect.recipes.private.per_record_gradients import (
    compute_all_at_once,
    compute_one_by_one,
    get_trained_parameters,
)
from recollect.recipes.training.update import compute_token_losses


def lstm() -> tuple[nn.Module, nn.Module, Tensor]:
    """The character LSTM of 2 × 200 units, the same with Opacus' layers, and 32 texts of 100 characters."""
    config = RecurrentConfig(vocab_size=54, embedding=149, units=200, layers=2)
    model, hooked = RecurrentLM(config), RecurrentLM(config)
    hooked.rnn = DPLSTM(149, 200, 2, batch_first=True)
    return model, hooked, torch.randint(0, 54, (32, 101))


def gpt2() -> tuple[nn.Module, nn.Module, Tensor]:
    """A GPT-2 of two layers, and 16 texts of 64 words."""
    sizes = {"n_embd": 128, "n_layer": 2, "n_head": 4, "n_positions": 128, "tie_word_embeddings": False}
    still = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "bos_token_id": 0, "eos_token_id": 0}
    config = GPT2Config(vocab_size=1000, use_cache=False, **sizes, **still)
    return GPT2LMHeadModel(config), GPT2LMHeadModel(config), torch.randint(0, 1000, (16, 65))


def losses(model: Callable[..., object], texts: Tensor) -> Tensor:
    """The mean loss of each text."""
    return compute_token_losses(model(input_ids=texts[:, :-1]).logits, texts[:, 1:]).mean(1)


def ways(model: nn.Module, hooked: nn.Module, texts: Tensor) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each way by name."""
    weights = {name: value.detach() for name, value in model.named_parameters()}
    opacus = GradSampleModule(hooked.train(), loss_reduction="sum", strict=False)

    def alone(values: dict[str, Tensor], text: Tensor) -> Tensor:
        return losses(lambda **inputs: functional_call(model, values, (), inputs), text[None])[0]

    def hooks() -> None:
        opacus.zero_grad(set_to_none=True)
        losses(opacus, texts).sum().backward()

    yield "plain backward pass", lambda: torch.autograd.grad(losses(model, texts).sum(), get_trained_parameters(model))
    yield "all at once", lambda: compute_all_at_once(model, lambda: losses(model, texts), records=len(texts))
    yield "one by one", lambda: compute_one_by_one(model, (losses(model, text[None])[0] for text in texts))
    yield "Opacus' hooks", hooks
    yield "vmap", lambda: vmap(grad(alone), in_dims=(None, 0), randomness="different")(weights, texts)


def seconds(work: Callable[[], object], rounds: int = 3) -> float:
    work()
    spent = []
    for _ in range(rounds):
        begun = time.process_time()
        work()
        spent.append(time.process_time() - begun)
    return sorted(spent)[rounds // 2]


def main() -> None:
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    for name, build in (("character LSTM, 2 × 200", lstm), ("GPT-2, 2 layers of 128", gpt2)):
        model, hooked, texts = build()
        found = {way: seconds(work) for way, work in ways(model.train(), hooked, texts)}
        print(f"{name}, {len(texts)} records of {texts.shape[1] - 1} symbols")
        for way, spent in found.items():
            print(f"  {way:20} {spent * 1000:8.0f} ms   {spent / found['plain backward pass']:5.1f} × plain")
        assert found["all at once"] <= min(found["one by one"], found["Opacus' hooks"], found["vmap"]), (
            "not the fastest"
        )


if __name__ == "__main__":
    main()
