"""Scores through a server are those of its model, whatever the server shows of it."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.models.access import Access, require
from recollect.models.answer_store.scoring import score_corpus
from recollect.models.endpoint.probe import MOST_REQUESTS
from recollect.models.model import Question
from recollect.testing.refusals import refused

pytestmark = pytest.mark.loopback
TEXTS = ["the cat and the dog met on a street in town", "a ring of stones, and the sea", "x", "müsli at 日本 today"]
RECORDS = [Record(id=str(i), text=text) for i, text in enumerate(TEXTS)]
ACCESS = {
    "prompt_logprobs": Access(k=None, logprob="any", distribution=False, steps=False),
    "echo": Access(k=20, logprob="any", distribution=False, steps=False),
    "forced": Access(k=20, logprob="any", distribution=False, steps=False),
    "top_k": Access(k=20, logprob="shown", distribution=False, steps=False),
}


def expected(server, k):
    """Log-probabilities and ranks of all texts, from the model itself; 0 for a rank that is not shown."""
    rows = [row for text in TEXTS for row in server.model.score(text)]
    logprob, rank = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    return logprob, rank if k is None else np.where(rank > k, 0, rank)


@pytest.mark.parametrize("tokenizer", ["llama.cpp", "vllm"])
@pytest.mark.parametrize("shows", ACCESS)
def test_scores_are_those_of_the_model_and_the_probe_is_cheap(serve, load, shows, tokenizer):
    server = serve(shows=shows, tokenizer=tokenizer)
    model = load(server)
    assert server.received <= MOST_REQUESTS
    assert model.spent.requests == server.received
    assert model.access == ACCESS[shows]
    answers = model.answer(RECORDS)
    logprob, rank = expected(server, model.access.k)
    if shows == "echo":  # it names tokens by their text, which those of bytes share: no rank is better than it is
        assert ((answers.rank == 0) | (answers.rank >= np.where(rank, rank, 99))).all()
        assert (answers.rank[rank > 0] > 0).any()
    else:
        assert np.array_equal(answers.rank, rank)
    shown = rank > 0 if shows == "top_k" else np.ones(len(rank), dtype=bool)
    assert np.allclose(answers.logprob[shown], logprob[shown], atol=1e-6)
    assert np.isnan(answers.logprob[~shown]).all()
    assert answers.records == tuple(record.digest for record in RECORDS)
    assert model.spent.requests == server.received


def test_tokens_are_located_in_the_text(serve, load):
    server = serve()
    answers = load(server).answer(RECORDS)
    for record in RECORDS:
        rows = answers.get_rows(record.digest)
        pieces = [record.text[b:e] for b, e in zip(answers.start[rows], answers.end[rows], strict=True)]
        whole = [server.model.decode([token]) for token in server.model.encode(record.text)[1:]]
        assert [p for p, w in zip(pieces, whole, strict=True) if "\ufffd" not in w] == [
            w for w in whole if "\ufffd" not in w
        ]


def test_the_whole_vocabulary_gives_all_four_numbers(serve, load):
    server = serve(max_top=1000)
    model = load(server, top_logprobs=len(server.model.pieces))
    assert model.access == Access.PROBABILITIES
    answers = model.answer(RECORDS[:1])
    rows = [server.model.predict([token]) for token in server.model.encode(TEXTS[0])[:-1]]
    entropy = [-(np.exp(row) * row).sum() for row in rows]
    assert np.allclose(answers.entropy, entropy, atol=1e-5)
    variance = [(np.exp(row) * row**2).sum() - e**2 for row, e in zip(rows, entropy, strict=True)]
    assert np.allclose(answers.logprob_std, np.sqrt(variance), atol=1e-4)
    assert np.array_equal(answers.rank, [rank for _, rank in server.model.score(TEXTS[0])])


def test_without_a_tokenizer_an_echoed_text_is_scored_in_the_servers_own_tokens(serve, load):
    server = serve(shows="echo", tokenizer=None)
    answers = load(server).answer(RECORDS[:2])
    rows = [row for text in TEXTS[:2] for row in server.model.score(text)]
    assert np.allclose(answers.logprob, [row[0] for row in rows], atol=1e-6)
    first = answers.get_rows(RECORDS[0].digest)
    assert "".join(TEXTS[0][b:e] for b, e in zip(answers.start[first], answers.end[first], strict=True)) == TEXTS[0][2:]


@pytest.mark.parametrize("tokenizer", ["llama.cpp", None])
def test_where_only_text_comes_back_the_first_guess_of_words_is_scored(serve, load, tokenizer):
    server = serve(shows="text", tokenizer=tokenizer)
    model = load(server)
    assert model.access == Access.LABEL
    guessed = server.model.encode("the cat")
    for _ in range(8):
        guessed.append(int(server.model.predict(guessed).argmax()))
    said = server.model.decode(guessed[len(server.model.encode("the cat")) :])
    answers = model.answer(RECORDS[:1])
    assert set(answers.rank) <= {0, 1}
    assert answers.logprob is None
    assert answers.rows == 10
    import re

    word = re.search(r"\w+|[^\w\s]+", said)
    record = Record(id="guessed", text=f"the cat {word.group()}")
    assert model.answer([record]).rank.tolist()[-1] == 1


def test_a_service_that_only_chats_is_refused(serve, load):
    with refused("chat_only"):
        load(serve(shows="chat", tokenizer=None))


def test_a_model_that_is_not_served_is_named_with_those_that_are(serve, load):
    server = serve()
    server.behaviour.name = "other"
    url = server.url
    server.behaviour.name = "table"

    class Named:
        pass

    named = Named()
    named.url = url
    with refused("model_not_served") as refusal:
        load(named)
    assert "table" in refusal.error.do


def test_what_lets_a_server_be_stepped_through_is_named(serve, load):
    with refused("access_missing") as refusal:
        require(Access(k=1, logprob="any", distribution=False, steps=True), load(serve()), audit="extraction")
    assert "--server-tokenizer" in refusal.error.do


def test_a_long_text_is_scored_in_windows(serve, load):
    server = serve(shows="prompt_logprobs")
    long = Record(id="long", text="the cat and the dog " * 80)
    answers = load(server).answer([long])
    assert np.allclose(answers.logprob, [row[0] for row in server.model.score(long.text)], atol=1e-6)


def test_a_corpus_is_scored_once_and_found_again(serve, load, tmp_path):
    server = serve(shows="prompt_logprobs")
    corpus = Corpus.of(RECORDS)
    score_corpus(load(server), corpus, tmp_path / "work")
    completions = server.answered.total()
    store = score_corpus(load(server), corpus, tmp_path / "work")
    repeated = server.answered.total() - completions
    assert repeated == 2  # the two texts of the probe
    assert np.allclose(store.get_answers(RECORDS).logprob, expected(server, None)[0], atol=1e-6)


def test_other_settings_have_another_address(serve, load):
    server = serve()
    one, other = load(server), load(server, top_logprobs=5)
    assert one.digest != other.digest
    assert other.access.k == 5
    assert one.question == Question()


def test_a_server_whose_cache_rounds_otherwise_is_not_taken_for_another_model(serve, load):
    server = serve(shows="forced", owner="llamacpp")
    real, rounding = server.complete, [0.0]

    def complete(body, number):
        answer = real(body, number)
        if "logit_bias" in body and body.get("cache_prompt", True):
            answer["choices"][0]["logprobs"]["content"][0]["logprob"] -= rounding[0]
        return answer

    server.complete = complete
    model = load(server)
    assert (model.endpoint.generation, model.spent.requests) == (0, server.received)
    assert server.received <= 60
    rounding[0] = 0.09
    assert load(server).endpoint.generation == 0
    server.model = type(server.model)(seed=5)
    assert load(server).endpoint.generation == 1
