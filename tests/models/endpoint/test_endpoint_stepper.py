"""A search through a server finds what scoring every secret finds, and requests only what can matter to it."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from recollect.audits.exposure.prefix_tree import PrefixTree
from recollect.audits.exposure.rank_counting import count_rank
from recollect.audits.exposure.search import search_shortest_paths
from recollect.corpora.canaries.formats import parse_format
from recollect.models.endpoint.stepper import EndpointStepper
from recollect.models.tokens.token_spelling import Spelling
from recollect.testing.refusals import refused

pytestmark = pytest.mark.loopback
FORMAT = parse_format("a door code that my sister has on {digits:3}")
MEMORISED = (
    *(("s", " on", 0.6), (" on", " ", 0.7), (" ", "4", 0.5), (" ", "7", 0.3), ("4", "8", 0.5)),
    *(("8", "2", 0.6), ("7", "3", 0.6), ("3", "5", 0.5), ("3", "9", 0.3)),
)
"""Which token follows which, and how likely: three codes."""
SHOWS = pytest.mark.parametrize("shows", ["forced", "prompt_logprobs"])


@pytest.fixture
def memorise(serve):
    """Starts a server whose model has memorised three codes."""

    def started(**behaviour):
        server = serve(**behaviour)
        table = server.model.logprobs
        for before, after, share in MEMORISED:
            row, token = table[server.model.encode(before)[-1]], server.model.encode(after)[0]
            others = np.arange(len(row)) != token
            row[others] += math.log1p(-share) - np.log(np.exp(row[others]).sum())
            row[token] = math.log(share)
        return server

    return started


@pytest.fixture
def step(load):
    """Steps through the model of a scripted server with its own tokenizer, which needs no request here."""

    def stepper(server):
        table, generation = server.model, load(server)._generation
        tokens = SimpleNamespace(
            before=[], encode=lambda texts: [SimpleNamespace(ids=np.array(table.encode(text))) for text in texts]
        )
        spelling = Spelling(tuple((piece.decode("latin-1"),) for piece in table.pieces), str)
        return EndpointStepper(
            method=generation.probe.method, tokens=tokens, spelling=spelling, generation=generation, longest=None
        )

    return stepper


def cost_of(model, text):
    """The slow twin: bits of a whole text from its second token on."""
    return -sum(logprob for logprob, _ in model.score(text)) / math.log(2)


def count_completions(server):
    return server.answered.total()


@SHOWS
def test_whatever_matters_is_told_and_nothing_else_is_requested(serve, step, shows):
    server = serve(shows=shows)
    stepper, rng = step(server), np.random.default_rng(0)
    nodes = stepper.add_children(stepper.start("the"), [0] * 6, list(range(97, 103)))
    among = rng.permutation(len(server.model.pieces))[:40].tolist()
    least = rng.choice([-np.inf, -9.0, -6.0, -4.0, np.inf], size=(6, 40))
    exact = np.array([server.model.predict([token])[among] for token in range(97, 103)])
    stepper.score_next(nodes, among=[])  # the first tries what the server shows
    before = count_completions(server)
    found = stepper.score_next(nodes, among=among, least=least)
    lowest = [np.sort(server.model.predict([token]))[-20] for token in range(97, 103)]
    needed = (least <= np.array(lowest)[:, None] + 0.01) & (exact < np.array(lowest)[:, None])
    assert count_completions(server) - before == needed.sum()
    assert not np.isnan(found[exact >= least]).any()
    known = ~np.isnan(found)
    assert np.allclose(found[known], exact[known], atol=1e-5)
    assert (needed[known & (exact < np.array(lowest)[:, None])]).all()


@SHOWS
def test_memorised_secrets_are_found_and_proven_with_few_requests(memorise, step, shows):
    server = memorise(shows=shows)
    tree = PrefixTree(step(server), FORMAT)
    before = count_completions(server)
    found = search_shortest_paths(tree, 3, max_steps=10_000)
    costs = {text: cost_of(server.model, text) for text in FORMAT.iter_all()}
    best = sorted(costs, key=costs.__getitem__)[:3]
    assert [secret.text for secret in found.secrets] == best
    assert found.proven == 3
    shift = found.secrets[0].cost - costs[best[0]]
    assert all(abs(secret.cost - costs[secret.text] - shift) < 1e-4 for secret in found.secrets)
    obvious = found.steps * (len(tree.automaton.tokens) - 20)
    assert count_completions(server) - before < obvious / 4


@SHOWS
def test_that_nothing_is_memorised_is_proven_with_few_requests(serve, step, shows):
    server = serve(shows=shows)
    requests = {}
    for ceiling in (math.inf, 7.0):
        tree = PrefixTree(step(server), FORMAT)
        shift = tree.measure_shift()
        before = count_completions(server)
        found = search_shortest_paths(tree, 3, max_steps=10_000, ceiling=ceiling + shift)
        requests[ceiling] = count_completions(server) - before
        server.answered.clear()
        costs = [tree.score(text).bits for text in FORMAT.iter_all()]
    assert found.secrets == ()
    assert min(costs) >= found.floor - shift >= 7.0 - 1e-6
    assert requests[7.0] < requests[math.inf] / 10


@SHOWS
def test_a_rank_is_counted_through_a_server_as_among_all_secrets(serve, step, shows):
    server = serve(shows=shows)
    tree = PrefixTree(step(server), FORMAT)
    costs = {text: cost_of(server.model, text) for text in FORMAT.iter_all()}
    for place in (0, 4, 30):
        text = sorted(costs, key=costs.__getitem__)[place]
        rank = count_rank(tree, tree.score(text).cost, max_steps=10_000)
        assert (rank.low, rank.high) == (place + 1, place + 1)


def test_a_token_that_noise_lifts_above_those_shown_is_counted(memorise, step):
    server = memorise()
    row, token = server.model.logprobs[ord("8")], ord("7")
    row[token] = np.sort(np.delete(row, token))[-20] - 0.001  # the first that is not shown
    real = server.complete

    def complete(body, number):
        answer = real(body, number)
        if "logit_bias" in body:
            answer["choices"][0]["logprobs"]["content"][0]["logprob"] += 0.005
        return answer

    server.complete = complete
    text = f"{FORMAT.known_prefix}487"
    rivals = sum(cost_of(server.model, other) <= cost_of(server.model, text) for other in FORMAT.iter_all())
    tree = PrefixTree(step(server), FORMAT)
    assert count_rank(tree, tree.score(text).cost, max_steps=10_000).low == rivals > 1


def test_shown_tokens_that_are_scored_otherwise_than_prompts_are_refused(serve, step):
    server = serve(shows="prompt_logprobs")
    stepper = step(server)
    real = server.complete

    def complete(body, number):
        answer = real(body, number)
        shown = answer["choices"][0]["logprobs"]
        for each in shown["content"][0]["top_logprobs"] if shown else []:
            each["logprob"] -= 0.3
        return answer

    server.complete = complete
    with refused("prompt_scores_disagree"):
        stepper.score_next(stepper.start("the"), among=[1])
