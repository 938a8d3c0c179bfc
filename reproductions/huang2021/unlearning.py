"""Ways to make a language model unlearn people: none of them is removal, which is why they are audited."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import recollect.models.architectures  # noqa: F401 - registers our recurrent models
from recollect.corpora.corpus import Corpus
from recollect.digests import digest
from recollect.streams import stream

BATCH = 16


@dataclass(frozen=True, kw_only=True)
class Unlearning:
    """Steps down the loss of those who stay, up the loss of those who are to go, or both at once."""

    steps: int
    learning_rate: float
    stay: Corpus | None = None
    go: Corpus | None = None

    def applied(self, source: Path, models: Path) -> Path:
        """The folder of the model that comes out, made once."""
        digests = [corpus.digest if corpus else "" for corpus in (self.stay, self.go)]
        out = models / digest("unlearnt", source.name, self.steps, self.learning_rate, *digests)
        if not out.exists():
            begun = out.with_suffix(".begun")
            shutil.rmtree(begun, ignore_errors=True)
            shutil.copytree(source, begun)
            self._changed(source).save_pretrained(begun)
            begun.rename(out)
        return out

    def _changed(self, source: Path) -> Any:
        """The model after all steps."""
        model, tokenizer = AutoModelForCausalLM.from_pretrained(source), AutoTokenizer.from_pretrained(source)
        optimiser = torch.optim.Adam(model.parameters(), lr=self.learning_rate)
        sides = [([str(record.text) for record in c], sign) for c, sign in ((self.stay, 1), (self.go, -1)) if c]
        rng = stream(0, "unlearning")
        for _ in range(self.steps):
            optimiser.zero_grad()
            for texts, sign in sides:
                some = [texts[i] for i in rng.choice(len(texts), BATCH, replace=False)]
                (sign * _loss(model, tokenizer, some)).backward()
            optimiser.step()
        return model


def _loss(model: Any, tokenizer: Any, texts: list[str]) -> torch.Tensor:
    """The mean loss of some texts."""
    ids = [torch.tensor(tokenizer(text)["input_ids"]) for text in texts]
    batch = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True)
    mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(each) for each in ids], batch_first=True)
    loss: torch.Tensor = model(input_ids=batch, attention_mask=mask, labels=batch.masked_fill(mask == 0, -100)).loss
    return loss
