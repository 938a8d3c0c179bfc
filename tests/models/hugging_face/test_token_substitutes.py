"""Texts that differ in one token, by a masked model and by swapping words."""

import pytest

from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.models.hugging_face.causal import Causal
from recollect.models.hugging_face.masked import Masked
from recollect.models.model import Question
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET, Evidence
from recollect.signals.neighbourhood import Neighbourhood
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model

TEXTS = ["The quick brown fox jumps over it again", "see you at noon", "one", "to be or not to be 1234!"]


@pytest.fixture(scope="module", params=["bert", "roberta"])
def masked(request):
    return Masked(build_tiny_model(request.param), Question(patterns=1))


def test_each_neighbour_differs_in_one_token(masked):
    tokenizer = masked._substitutes.tokenizer
    for text, near in zip(TEXTS, masked.neighbours(TEXTS, 3), strict=True):
        (symbols,) = masked._substitutes.encode([text])
        spans = list(zip(symbols.start.tolist(), symbols.end.tolist(), strict=True))
        assert len(near) == len(set(near)) == min(3, len(spans))
        for other in near:
            assert other != text
            assert any(other.startswith(text[:start]) and other.endswith(text[end:]) for start, end in spans)
            assert not any(mark in other for mark in tokenizer.all_special_tokens)


def test_neither_batches_nor_order_change_what_is_written(masked):
    whole = masked.neighbours(TEXTS, 4)
    assert masked.neighbours(TEXTS[::-1], 4) == whole[::-1]
    assert [masked.neighbours([text], 4)[0] for text in TEXTS] == whole


def test_the_most_likely_token_is_that_of_the_bare_network():
    import torch

    model = Masked(build_tiny_model("bert"), Question(patterns=1))
    inside = model._substitutes
    (near,) = model.neighbours(["see you at noon"], 99)
    encoded = inside.encode(["see you at noon"])[0]
    continues = inside._is_continuation
    for place, found in enumerate(near):
        ids = [*inside.encode.prefix_ids, *encoded.ids.tolist(), *inside.encode.suffix_ids]
        at = len(inside.encode.prefix_ids) + place
        own, ids[at] = ids[at], inside.tokenizer.mask_token_id
        logits = inside.network(input_ids=torch.tensor([ids])).logits[0, at]
        allowed = [
            i
            for i in range(len(continues))
            if i != own and i not in inside.tokenizer.all_special_ids and continues[i] == continues[own]
        ]
        best = max(allowed, key=lambda i: float(logits[i]))
        start, end = encoded.start[place], encoded.end[place]
        assert (
            found
            == "see you at noon"[:start]
            + inside.tokenizer.decode([best]).removeprefix("##")
            + ("see you at noon"[end:])
        )


def test_a_model_that_cannot_write_neighbours_is_refused():
    corpora = {part: Corpus.of([Record(id="1", text="see you")]) for part in (AUDITED, CONTROLS)}
    causal = Causal(build_tiny_model("gpt2"), Question())
    evidence = Evidence(models={TARGET: causal, "perturber": causal}, corpora=corpora)
    with refused("perturber_not_masked"):
        Neighbourhood().derive_corpus(evidence, AUDITED)


def test_without_a_model_words_as_frequent_are_swapped_in():
    controls = Corpus.of([Record(id=str(i), text="we meet at noon or at ten") for i in range(3)])
    texts = ["we meet at noon", "", "xyz"]
    audited = Corpus.of(Record(id=str(i), text=text) for i, text in enumerate(texts))
    evidence = Evidence(corpora={AUDITED: audited, CONTROLS: controls})
    near = list(Neighbourhood(count=3).derive_corpus(evidence, AUDITED))
    assert [record.id.partition("\x1f")[0] for record in near] == ["0", "0", "0", "2"]
    for record in near:
        words = texts[int(record.id[0])].split()
        changed = [(a, b) for a, b in zip(words, record.text.split(), strict=True) if a != b]
        assert len(changed) == 1
        assert changed[0][1] in {"we", "meet", "at", "noon", "or", "ten"}
    assert [r.text for r in Neighbourhood(count=3).derive_corpus(evidence, AUDITED)] == [r.text for r in near]
