"""Exact ranks and proven extraction, against scoring every secret of the format one by one."""

import math
from functools import cache

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.audits.exposure.prefix_tree import SLACK, PrefixTree
from recollect.audits.exposure.rank_counting import count_rank
from recollect.audits.exposure.search import (
    draw_choices,
    search_beam,
    search_by_sampling,
    search_exhaustively,
    search_shortest_paths,
)
from recollect.corpora.canaries.formats import compute_check_digit, parse_format
from recollect.corpora.record import Record
from recollect.errors import ModelError, PlanError
from recollect.models.architectures import RecurrentConfig, RecurrentLM
from recollect.models.hugging_face.causal import Causal
from recollect.models.loading.pretrained import Pretrained
from recollect.models.model import Question
from recollect.recipes.data.tokenizers import train_bpe_tokenizer, train_character_tokenizer, train_word_tokenizer
from recollect.testing.refusals import refused

pytestmark = pytest.mark.xdist_group("search")  # one process: what the slow twin found is remembered there
ENOUGH = 10**6
TEXTS = ["my pin is 1212 1212 77 77 121 and is, 90 90 907 is 1", "Red and blue: is 12 or is 77? aé é é 7aé"]
TOKENIZERS = {
    "characters": lambda: train_character_tokenizer(TEXTS, force=["0123456789abcdef{}-"]),
    "bpe": lambda: train_bpe_tokenizer(TEXTS * 3, size=330),
    "words": lambda: train_word_tokenizer(TEXTS, 40, lower=True, force=["red green blue 1 2 3"]),
}
FORMATS = {
    "characters": [
        "my pin is {digits:3}",
        "{digits:1}-{hex:1} and {digits:1}",
        "aé {choice:a|ab|b|é} is",
    ],
    "bpe": [
        "my pin is {digits:3}",
        "pin{digits:2}a{digits:1}",
        "{digits:3}",
        "is {choice:12|121|1212|é}",
        "é{choice:é|7aé}",
    ],
    "words": ["my pin is {choice:red|green|blue} and {choice:1|2|3}", "Red: {choice:1|2|3}, {choice:12|77}"],
}
CASES = [(name, written) for name, all_of in FORMATS.items() for written in all_of]
every_case = pytest.mark.parametrize(("name", "written"), CASES)
_MADE = {}


def model_of(name, *, seed=0, kind="lstm", flat=False):
    """A model with random weights, large enough that its predictions differ; or one that knows nothing."""
    key = name, seed, kind, flat
    if key not in _MADE:
        tokenizer = _MADE.setdefault(name, TOKENIZERS[name]())
        special = {"vocab_size": len(tokenizer), "bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
        torch.manual_seed(seed)
        if kind == "lstm":
            network = RecurrentLM(RecurrentConfig(units=12, layers=2, **special))
        else:
            network = transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=16, n_layer=2, n_head=2, **special))
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.mul_(0.0 if flat else 3.0)
        network = network.double().eval().requires_grad_(False)
        pretrained = Pretrained(name=name, network=network, tokenizer=tokenizer, digest=str(key), card={})
        _MADE[key] = Causal(pretrained, Question(precision="float64"))
    return _MADE[key]


def tree_of(model, written, **options):
    return PrefixTree(model.stepper(**options), parse_format(written))


def every_cost(model, written):
    """The slow twin: bits of every text of the format, first token to last."""
    if (model.digest, written) in _MADE:
        return _MADE[model.digest, written]
    texts = list(parse_format(written).iter_all())
    answers = model.answer([Record(id=str(i), text=text) for i, text in enumerate(texts)])
    ends = answers.offsets
    costs = {text: -answers.logprob[ends[i] : ends[i + 1]].sum() / math.log(2) for i, text in enumerate(texts)}
    return _MADE.setdefault((model.digest, written), costs)


def twin_rank(costs, text):
    return sum(cost <= costs[text] + SLACK for cost in costs.values())


@every_case
@pytest.mark.parametrize("kind", ["lstm", "gpt2"])
@pytest.mark.parametrize("places", [3, pytest.param(9, marks=pytest.mark.slow)])
def test_the_rank_is_the_number_of_secrets_at_least_as_likely(name, written, kind, places):
    model = model_of(name, kind=kind)
    costs = every_cost(model, written)
    ordered = sorted(costs, key=costs.__getitem__)
    # the most likely, the least likely, which is counted among all, and what is evenly between them
    for place in np.linspace(0, len(ordered) - 1, min(places, len(ordered))).astype(int):
        text = ordered[place]
        tree = tree_of(model, written)
        found = count_rank(tree, tree.score(text).cost, max_steps=ENOUGH)
        assert found.exact
        assert found.low == twin_rank(costs, text)


SEEDS = [st.sampled_from([0, 3]), pytest.param(st.integers(0, 30), marks=pytest.mark.slow)]
"""Of the fast test, models of which other tests know every cost already; of the slow one, any."""


@pytest.mark.parametrize("seeds", SEEDS, ids=["two", "any"])
@settings(deadline=None, max_examples=12)
@given(
    data=st.data(),
    case=st.sampled_from(CASES),
    batch=st.sampled_from([1, 3, 1024]),
    memory=st.sampled_from([0, 2000, None]),
    pick=st.randoms(use_true_random=False),
)
def test_neither_batches_nor_memory_move_a_rank(seeds, data, case, batch, memory, pick):
    name, written = case
    model = model_of(name, seed=data.draw(seeds))
    costs = every_cost(model, written)
    text = pick.choice(list(costs))
    tree = tree_of(model, written, memory=memory)
    found = count_rank(tree, tree.score(text).cost, max_steps=ENOUGH, batch=batch)
    assert (found.low, found.high) == (twin_rank(costs, text),) * 2


@every_case
def test_ties_count_against_the_finding(name, written):
    model = model_of(name, flat=True)
    costs = every_cost(model, written)
    text = max(costs, key=costs.__getitem__)
    tree = tree_of(model, written)
    assert count_rank(tree, tree.score(text).cost, max_steps=ENOUGH).low == len(costs)


@pytest.mark.parametrize("seeds", SEEDS, ids=["two", "any"])
@settings(deadline=None, max_examples=12)
@given(data=st.data(), case=st.sampled_from(CASES), budget=st.integers(0, 60), batch=st.sampled_from([1, 7]))
def test_when_the_budget_ends_the_rank_lies_within_its_bounds(seeds, data, case, budget, batch):
    name, written = case
    model = model_of(name, seed=data.draw(seeds))
    costs = every_cost(model, written)
    for text in list(costs)[:: max(1, len(costs) // 3)]:
        tree = tree_of(model, written)
        found = count_rank(tree, tree.score(text).cost, max_steps=budget, batch=batch)
        assert found.low <= twin_rank(costs, text) <= found.high <= len(costs)
        assert found.steps <= budget


@cache
def every_secret(name, written):
    """What an exhaustive search finds, however many nodes the other reads at once."""
    model = model_of(name, seed=3)
    return search_exhaustively(tree_of(model, written), min(10, len(every_cost(model, written))), max_steps=ENOUGH)


@every_case
@pytest.mark.parametrize("batch", [1, 1024])
def test_the_shortest_paths_are_the_most_likely_secrets_in_order(name, written, batch):
    model = model_of(name, seed=3)
    costs = every_cost(model, written)
    top = min(10, len(costs))
    found = search_shortest_paths(tree_of(model, written), top, max_steps=ENOUGH, batch=batch)
    brute = every_secret(name, written)
    expected = sorted(costs, key=costs.__getitem__)[:top]
    read = str.lower if name == "words" else str
    assert [secret.text for secret in found.secrets] == [read(text) for text in expected]
    assert found.proven == brute.proven == top
    assert [secret.text for secret in found.secrets] == [secret.text for secret in brute.secrets]
    differences = np.diff([secret.cost for secret in found.secrets])
    assert differences == pytest.approx(np.diff([costs[text] for text in expected]), abs=1e-9)


@pytest.mark.parametrize("seeds", SEEDS, ids=["two", "any"])
@settings(deadline=None, max_examples=20)
@given(data=st.data(), budget=st.integers(1, 80))
def test_what_is_called_proven_is_so_when_the_budget_ends(seeds, data, budget):
    model, written = model_of("characters", seed=data.draw(seeds)), "my pin is {digits:3}"
    costs = every_cost(model, written)
    found = search_shortest_paths(tree_of(model, written), 10, max_steps=budget, batch=4)
    expected = sorted(costs, key=costs.__getitem__)
    assert found.steps <= budget
    assert [secret.text for secret in found.secrets[: found.proven]] == expected[: found.proven]


@every_case
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_below_a_ceiling_every_secret_is_listed_and_what_is_not_listed_is_proven_to_cost_more(name, written, share):
    model = model_of(name, seed=3)
    tree = tree_of(model, written)
    read = str.lower if name == "words" else str
    costs = {read(text): tree.score(text).cost for text in parse_format(written).iter_all()}
    ordered = sorted(costs.values())
    ceiling = ordered[int(share * (len(ordered) - 1))] + (1e-6 if share else -1e-6)
    found = search_shortest_paths(tree_of(model, written), len(costs) + 1, max_steps=ENOUGH, ceiling=ceiling)
    assert {secret.text for secret in found.secrets} == {text for text, cost in costs.items() if cost < ceiling}
    assert found.proven == len(found.secrets)
    unlisted = [cost for cost in ordered if cost >= ceiling]
    assert ceiling - 1e-9 <= found.floor <= min(unlisted, default=math.inf)
    everything = search_shortest_paths(tree_of(model, written), len(costs) + 1, max_steps=ENOUGH)
    assert found.steps <= everything.steps


@every_case
def test_the_cost_of_a_secret_exceeds_its_log_perplexity_by_no_more_than_the_known_text_costs(name, written):
    tree = tree_of(model_of(name, seed=3), written)
    scores = [tree.score(text) for text in parse_format(written).iter_all()]
    assert tree.measure_shift() == pytest.approx(max(score.cost - score.bits for score in scores), abs=1e-9)


def test_log_perplexity_counts_from_the_first_token_that_reaches_into_the_secret():
    model, written, text = model_of("bpe"), "my pin is {digits:3}", "my pin is 121"
    answers = model.answer([Record(id="0", text=text)])
    reaching = answers.end > len("my pin is ")
    expected = -answers.logprob[reaching].sum() / math.log(2)
    assert answers.start[reaching][0] < len("my pin is ")  # the space is in the secret's first token
    assert tree_of(model, written).score(text).bits == pytest.approx(expected, abs=1e-9)


def test_known_text_between_and_after_the_slots_counts():
    model, written, text = model_of("characters"), "pin {digits:1} and {digits:1} is", "pin 1 and 2 is"
    answers = model.answer([Record(id="0", text=text)])
    expected = -answers.logprob[answers.end > len("pin ")].sum() / math.log(2)
    assert tree_of(model, written).score(text).bits == pytest.approx(expected, abs=1e-9)


def test_cards_are_walked_through_to_their_check_digit():
    model = model_of("characters")
    found = search_shortest_paths(tree_of(model, "{card}"), 3, max_steps=20_000)
    assert len(found.secrets) == 3
    assert all(secret.text[-1] == compute_check_digit(secret.text[:-1]) for secret in found.secrets)


def test_a_wide_beam_finds_the_most_likely_and_a_narrow_one_reads_little():
    model, written = model_of("characters"), "my pin is {digits:3}"
    best = search_shortest_paths(tree_of(model, written), 5, max_steps=ENOUGH)
    wide = search_beam(tree_of(model, written), 5, width=1000, max_steps=ENOUGH)
    narrow = search_beam(tree_of(model, written), 5, width=2, max_steps=ENOUGH)
    assert [secret.text for secret in wide.secrets] == [secret.text for secret in best.secrets]
    assert wide.proven == narrow.proven == 0
    assert narrow.steps <= 4


def test_sampling_draws_each_secret_as_often_as_the_model_would_write_it():
    model, written = model_of("characters"), "my pin is {digits:1}"
    costs = every_cost(model, written)
    weights = np.exp2(-np.array(list(costs.values())))
    tree, rng = tree_of(model, written), np.random.default_rng(0)
    counts = dict.fromkeys(costs, 0)
    children, complete = tree.expand_root()
    drawn = draw_choices(np.tile(complete.cost, (20_000, 1)), rng)
    for i in drawn:
        counts[tree.spell(-1, int(complete.piece[i]))] += 1
    assert not len(children)
    assert np.array(list(counts.values())) / 20_000 == pytest.approx(weights / weights.sum(), abs=0.015)
    found = search_by_sampling(tree_of(model, "my pin is {digits:2}"), 5, rng, max_steps=3000)
    assert [s.cost for s in found.secrets] == sorted(s.cost for s in found.secrets)
    assert len({s.text for s in found.secrets}) == 5


def test_a_format_that_the_tokens_cannot_spell_is_refused():
    with refused("format_not_spellable", ModelError):
        tree_of(model_of("words"), "my pin is {digits:2}")
    with refused("indistinct_fillings", PlanError):
        tree_of(model_of("words"), "my pin is {choice:Red|red}")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_in_a_space_of_a_million_the_rank_is_that_of_the_bare_network(seed):
    model, size = model_of("characters", seed=seed), 10**6
    encoded = model.tokenizer([f"my pin is {i:06d}" for i in range(size)], add_special_tokens=False)["input_ids"]
    ids = torch.tensor([[2, *row] for row in encoded])
    bits = np.empty(size)
    with torch.inference_mode():
        for begin in range(0, size, 10_000):
            part = ids[begin : begin + 10_000]
            logs = torch.log_softmax(model._network(input_ids=part).logits[:, -7:-1], dim=-1)
            picked = logs.gather(2, part[:, -6:, None]).sum(dim=(1, 2))
            bits[begin : begin + 10_000] = -picked.numpy() / math.log(2)
    order = bits.argsort()
    for place in (0, 1, 50, 5_000, 400_000, size - 1):
        secret = int(order[place])
        tree = tree_of(model, "my pin is {digits:6}")
        known = tree.score(f"my pin is {secret:06d}")
        assert known.bits == pytest.approx(bits[secret], abs=1e-6)
        found = count_rank(tree, known.cost, max_steps=10**7)
        assert found.exact
        assert found.low == int((bits <= bits[secret] + SLACK).sum())


@pytest.mark.parametrize("search", [search_shortest_paths, search_by_sampling])
@pytest.mark.parametrize(
    ("name", "written"),
    [("bpe", "is {choice:12|121|1212|é}"), ("bpe", "my pin is {digits:2}"), ("characters", "{digits:1}")],
)
def test_no_search_reaches_more_secrets_than_there_are_or_takes_more_steps_than_it_may(search, name, written):
    tree, rng = tree_of(model_of(name), written), np.random.default_rng(0)
    more = (rng,) if search is search_by_sampling else ()
    found = search(tree, 5, *more, max_steps=120)
    assert len(found.secrets) <= found.completed <= tree.size
    assert found.steps <= 120
