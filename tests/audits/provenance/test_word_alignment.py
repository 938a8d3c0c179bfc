"""Words of models whose tokenizers cut differently."""

import random

import numpy as np
import pytest

from recollect.audits.provenance.word_alignment import _find_word_edges, align_words
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.models.access import Access
from recollect.models.answers import Answers
from recollect.models.hugging_face.causal import Causal
from recollect.models.model import Question
from recollect.signals.evidence import Evidence
from recollect.testing.fakes import Null
from recollect.testing.tiny import build_tiny_model
from recollect.testing.world import WorldAnswers


class Cutting:
    """A model that cuts texts as it is told and gives each token the rank it is told."""

    name, kind, digest, access = "cutting", "causal", "0", Access.RANKS

    def __init__(self, tokens, unknown=()):
        self.tokens, self.unknown = tokens, unknown

    def answer(self, records):
        rows = [row for record in records for row in self.tokens[record.text]]
        sizes = [len(self.tokens[record.text]) for record in records]
        start, end, rank = (np.array([row[i] for row in rows], dtype=np.int32) for i in range(3))
        return Answers(
            records=tuple(record.digest for record in records),
            offsets=np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            pattern=np.zeros(len(rows), np.int32),
            position=np.arange(len(rows), dtype=np.int32),
            start=start,
            end=end,
            known=~np.isin(rank, self.unknown),
            rank=rank,
            logprob=None,
            entropy=None,
            logprob_std=None,
        )


def words_of(texts, *models):
    """The aligned words of texts that all belong to one person, unless pairs (person, text) are given."""
    pairs = [text if isinstance(text, tuple) else ("ann", text) for text in texts]
    corpus = Corpus.of(Record(id=str(i), user=user, text=text) for i, (user, text) in enumerate(pairs))
    named = {f"m{i}": model for i, model in enumerate(models)}
    answers = {(name, "queries"): WorldAnswers(model, 2) for name, model in named.items()}
    evidence = Evidence(models=named, corpora={"queries": corpus}, answers=answers)
    return align_words(evidence, "queries", list(named))


def ranks(words):
    return np.exp(words.log_rank).round(6).tolist()


def test_models_that_cut_alike_are_compared_token_by_token():
    text = {"no way": [(0, 2, 3), (3, 6, 40)]}
    found = words_of(["no way"], Cutting(text), Cutting({"no way": [(0, 2, 5), (3, 6, 7)]}))
    assert ranks(found) == [[3, 40], [5, 7]]


def test_the_rank_of_a_word_in_pieces_is_the_product_of_their_ranks():
    whole, pieces = Cutting({"no way": [(0, 2, 3), (3, 6, 40)]}), Cutting({"no way": [(0, 2, 5), (3, 4, 2), (4, 6, 9)]})
    assert ranks(words_of(["no way"], whole, pieces)) == [[3, 40], [5, 18]]


def test_a_space_that_belongs_to_the_next_token_changes_nothing():
    text, spaced = {"no  way": [(0, 2, 3), (4, 7, 40)]}, {"no  way": [(0, 2, 5), (2, 7, 7)]}
    assert ranks(words_of(["no  way"], Cutting(text), Cutting(spaced))) == [[3, 40], [5, 7]]


def test_a_first_word_that_one_model_cannot_predict_is_left_out():
    text, headless = {"no way": [(0, 2, 3), (3, 6, 40)]}, {"no way": [(3, 6, 7)]}
    assert ranks(words_of(["no way"], Cutting(text), Cutting(headless))) == [[40], [7]]


def test_words_that_some_model_does_not_know_are_left_out_and_counted():
    text, other = {"no way": [(0, 2, 3), (3, 6, 40)]}, {"no way": [(0, 2, 5), (3, 6, 7)]}
    found = words_of(["no way"], Cutting(text), Cutting(other, unknown=[5]))
    assert ranks(found) == [[40], [7]]
    assert found.unknown.tolist() == [1]


def test_the_end_of_a_text_that_one_model_did_not_read_is_left_out_and_counted():
    text = {"no way out": [(0, 2, 3), (3, 6, 40), (7, 10, 2)]}
    found = words_of(["no way out"], Cutting(text), Cutting({"no way out": [(0, 2, 5), (3, 6, 7)]}))
    assert ranks(found) == [[3], [5]]
    assert found.incomplete.tolist() == [1]


def test_a_word_is_shown_only_if_all_its_pieces_are():
    whole, pieces = Cutting({"no way": [(0, 2, 3), (3, 6, 40)]}), Cutting({"no way": [(0, 2, 5), (3, 4, 2), (4, 6, 9)]})
    found = words_of(["no way"], whole, pieces)
    assert np.isinf(found.limit_ranks(1, 8)).tolist() == [False, True]
    assert np.isinf(found.limit_ranks(1, 9)).tolist() == [False, False]
    hidden = Cutting({"no way": [(0, 2, 5), (3, 4, 2), (4, 6, 0)]})
    assert np.isinf(words_of(["no way"], whole, hidden).log_rank[1]).tolist() == [False, True]


def test_words_know_their_user_and_in_which_of_the_users_texts_they_stand():
    texts = [("bob", "a"), ("ann", "b c"), ("bob", "d"), ("ann", "e")]
    model = Cutting({"a": [(0, 1, 1)], "b c": [(0, 1, 2), (2, 3, 3)], "d": [(0, 1, 4)], "e": [(0, 1, 5)]})
    found = words_of(texts, model)
    whose = [(found.users[u], int(t)) for u, t in zip(found.user, found.text, strict=True)]
    assert whose == [("bob", 0), ("ann", 0), ("ann", 0), ("bob", 1), ("ann", 1)]
    assert dict(zip(found.users, found.texts.tolist(), strict=True)) == {"ann": 2, "bob": 2}
    assert found.count_words(1).tolist() == [2, 1]


def test_texts_of_the_same_content_are_read_for_each_owner():
    found = words_of([("ann", "a"), ("bob", "a")], Cutting({"a": [(0, 1, 6)]}))
    assert ranks(found) == [[6, 6]]
    assert found.user.tolist() == [0, 1]


@pytest.mark.parametrize("seed", range(5))
def test_alignment_agrees_with_the_slow_way(seed):
    rng = np.random.default_rng(seed)
    texts = [" ".join("abcdef"[: rng.integers(1, 6)] for _ in range(rng.integers(1, 8))) + f" {i}" for i in range(7)]
    scripts = [{text: _cut(text, rng) for text in texts} for _ in range(3)]
    found = words_of(texts, *map(Cutting, scripts))
    expected = [_slowly(text, [script[text] for script in scripts]) for text in texts]
    np.testing.assert_allclose(np.exp(found.log_rank), np.array([row for part in expected for row in part]).T)


def _cut(text, rng):
    """Tokens that begin at every word and at some letters."""
    begins = [
        i for i, letter in enumerate(text) if letter != " " and (i == 0 or text[i - 1] == " " or rng.random() < 0.4)
    ]
    ends = [*begins[1:], len(text)]
    return [(b, b + len(text[b:e].rstrip()), int(rng.integers(1, 99))) for b, e in zip(begins, ends, strict=True)]


def _slowly(text, cuts):
    """Word by word: the product of all ranks from one common beginning to the next."""
    common = sorted(set.intersection(*({begin for begin, _, _ in cut} for cut in cuts)))
    rows = []
    for begin, end in zip(common, [*common[1:], len(text)], strict=True):
        rows.append([np.prod([float(r) for b, _, r in cut if begin <= b < end]) for cut in cuts])
    return rows


def test_subwords_of_a_real_tokenizer_meet_at_white_space_words():
    texts = ["the quick brown fox  jumps over", "smile 🙂 naïve\u0301 again", "one"]
    pieces, whole = Causal(build_tiny_model("gpt2"), Question()), Null()
    records = [Record(id=str(i), user="ann", text=text) for i, text in enumerate(texts)]
    found = words_of(texts, pieces, whole)
    first = [pieces.answer([record]).start.min(initial=99) == 0 for record in records]
    expected = [len(text.split()) - (not told) for text, told in zip(texts, first, strict=True)]
    assert found.count_words().tolist() == [sum(expected)]
    answers = pieces.answer(records[:1])
    inside = (answers.start >= 3) & (answers.end <= 9)
    assert found.log_rank[0, found.text == 0][-5] == pytest.approx(np.log(answers.rank[inside]).sum())


def edges_one_by_one(text):
    """The slow twin: the next character that is no white space, and the last end of one before, of each position."""
    inked = [not character.isspace() for character in text]
    after = [next((i for i in range(at, len(text)) if inked[i]), len(text)) for at in range(len(text) + 1)]
    before = [next((i for i in range(at, 0, -1) if inked[i - 1]), 0) for at in range(len(text) + 1)]
    return after, before


def test_words_end_and_begin_where_white_space_does_in_any_script():
    draw = random.Random(0)
    for _ in range(200):
        texts = ["".join(draw.choices("ab \n\u00a0\u3000\u3001😀\x1c", k=draw.randrange(8))) for _ in range(4)]
        after, before, starts = (each.tolist() for each in _find_word_edges(texts))
        assert starts == [sum(len(text) + 1 for text in texts[:i]) for i in range(4)]
        slow = [edges_one_by_one(text) for text in texts]
        assert after == [edge for edges, _ in slow for edge in edges]
        assert before == [edge for _, edges in slow for edge in edges]
