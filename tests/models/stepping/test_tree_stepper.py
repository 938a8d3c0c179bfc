"""Walking models token by token, against reading every path from its first token."""

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.corpora.record import Record
from recollect.models.architectures import (
    ConvolutionalConfig,
    ConvolutionalLM,
    RecurrentConfig,
    RecurrentLM,
    TranslatingConfig,
    TranslatingLM,
)
from recollect.models.hugging_face.causal import Causal
from recollect.models.hugging_face.seq2seq import Seq2Seq
from recollect.models.model import Frontier, Question, Steppable
from recollect.models.stepping.node_tree import NodeStateCache
from recollect.models.stepping.step_decoders import CacheDecoder, RereadDecoder, StateDecoder, choose_decoder
from recollect.models.stepping.tree_stepper import DEFAULT_MEMORY, TreeStepper
from recollect.models.tokens.token_spelling import Spelling
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model

pytestmark = pytest.mark.xdist_group("stepping")  # one process: what the slow twin found is remembered there
VOCABULARY = 30
SMALL = {"vocab_size": VOCABULARY, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 24, "num_hidden_layers": 2}
PAIRS = {"decoder_start_token_id": 1}


def no_spelling():
    return Spelling((), str)


def _gpt2():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(n_embd=16, n_layer=2, n_head=2, **SMALL))


def _attention():
    return TranslatingLM(TranslatingConfig(cell="gru", attention=True, layers=2, **PAIRS, **SMALL))


def _llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(hidden_size=16, **HEADS, **SMALL))


def _mistral():
    config = transformers.MistralConfig(hidden_size=16, sliding_window=4, **HEADS, **SMALL)
    return transformers.MistralForCausalLM(config)


def _mamba():
    return transformers.MambaForCausalLM(
        transformers.MambaConfig(hidden_size=16, state_size=4, num_hidden_layers=2, **SMALL)
    )


def _t5():
    config = transformers.T5Config(d_model=16, d_kv=4, d_ff=24, num_layers=2, num_heads=4, **PAIRS, **SMALL)
    return transformers.T5ForConditionalGeneration(config)


def _bart():
    sizes = {f"{side}_{part}": n for side in ("encoder", "decoder") for part, n in (("layers", 2), ("ffn_dim", 24))}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    config = transformers.BartConfig(d_model=16, max_position_embeddings=64, **sizes, **heads, **PAIRS, **SMALL)
    return transformers.BartForConditionalGeneration(config)


MODELS = {
    "lstm": (lambda: RecurrentLM(RecurrentConfig(units=12, layers=2, **SMALL)), StateDecoder),
    "gru": (lambda: RecurrentLM(RecurrentConfig(cell="gru", units=12, **SMALL)), StateDecoder),
    "cnn": (lambda: ConvolutionalLM(ConvolutionalConfig(units=8, width=4, layers=2, **SMALL)), StateDecoder),
    "wavenet": (lambda: ConvolutionalLM(ConvolutionalConfig(form="wavenet", units=8, width=2, **SMALL)), StateDecoder),
    "gpt2": (_gpt2, CacheDecoder),
    "llama": (_llama, CacheDecoder),
    "mistral": (_mistral, CacheDecoder),
    "mamba": (_mamba, RereadDecoder),
    "seq2seq": (lambda: TranslatingLM(TranslatingConfig(units=12, **PAIRS, **SMALL)), StateDecoder),
    "attention": (_attention, StateDecoder),
    "t5": (_t5, CacheDecoder),
    "bart": (_bart, CacheDecoder),
}
every_model = pytest.mark.parametrize("name", MODELS)
LIMITS = {"all": DEFAULT_MEMORY, "some": 20_000, "one": 1_500, "nothing": 0}
_MADE = {}
_EXPECTED = {}
"""By model: the walk is the same whatever the memory."""


def network_of(name):
    """A small model with large weights, so that its predictions differ."""
    if name not in _MADE:
        torch.manual_seed(7)
        network = MODELS[name][0]().eval()
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.mul_(2.0 if parameter.dim() > 1 else 1.0)
        _MADE[name] = network.requires_grad_(False)
    return _MADE[name]


def stepper_of(name, network=None, **options):
    network = network or network_of(name)
    encode = lambda text: [1, *(3 + ord(letter) % (VOCABULARY - 3) for letter in text)]  # noqa: E731
    source = encode if network.config.is_encoder_decoder else None
    return TreeStepper(network, encode, encode_source=source, spelling=no_spelling, **options)


def twin(network, path, source):
    """Log-probabilities of what follows a path, which is read whole."""
    ids = torch.tensor([path])
    inputs = {"input_ids": ids} if source is None else {"input_ids": torch.tensor([source]), "decoder_input_ids": ids}
    with torch.no_grad():
        return network(**inputs).logits[0, -1].log_softmax(-1).numpy()


def random_walk(stepper, starts, seed, rounds=6, width=12):
    """Children of parents from any earlier round: the nodes with their paths, and all that was said about them."""
    rng = np.random.default_rng(seed)
    roots = [stepper.start(ids, source=source) for ids, source in starts]
    paths = [(list(ids), source) for ids, source in starts]
    nodes, said = Frontier.concatenate(roots), [stepper.score_next(Frontier.concatenate(roots))]
    for _ in range(rounds):
        parents, symbols = rng.integers(0, len(nodes), width), rng.integers(0, VOCABULARY, width)
        children, following = stepper.step(nodes, parents, symbols)
        paths += [([*paths[p][0], int(s)], paths[p][1]) for p, s in zip(parents, symbols, strict=True)]
        nodes = Frontier.concatenate([nodes, children])
        said.append(following)
    return nodes, paths, np.concatenate(said)


def starts_of(network):
    sources = [[5, 9, 3, 2], [4, 2]] if network.config.is_encoder_decoder else [None, None]
    return [([1, 8, 5, 7], sources[0]), ([6], sources[1])]


@every_model
@pytest.mark.parametrize("limit", LIMITS)
def test_every_node_says_what_its_whole_path_says_whatever_the_memory(name, limit):
    network = network_of(name)
    stepper = stepper_of(name, memory=LIMITS[limit])
    nodes, paths, said = random_walk(stepper, starts_of(network), seed=1)
    if name not in _EXPECTED:
        _EXPECTED[name] = np.stack([twin(network, path, source) for path, source in paths])
    assert np.abs(said - _EXPECTED[name]).max() < 1e-4
    assert np.abs(stepper.score_next(nodes) - _EXPECTED[name]).max() < 1e-4


@every_model
def test_each_kind_of_model_is_walked_in_its_own_way(name):
    assert type(choose_decoder(network_of(name))) is MODELS[name][1]


@settings(deadline=None, max_examples=10)
@given(st.sampled_from(["lstm", "gpt2", "attention"]), st.integers(0, 10**6), st.integers(0, 30_000))
def test_any_memory_gives_the_same_numbers(name, seed, memory):
    network = network_of(name)
    _, _, few = random_walk(stepper_of(name, memory=memory), starts_of(network), seed)
    _, _, all_kept = random_walk(stepper_of(name), starts_of(network), seed)
    assert np.abs(few - all_kept).max() < 1e-4


@every_model
def test_batches_and_order_do_not_matter(name):
    stepper, network = stepper_of(name), network_of(name)
    nodes, _, said = random_walk(stepper, starts_of(network), seed=3)
    order = np.random.default_rng(0).permutation(len(nodes))
    together = stepper.score_next(nodes.take(order))
    alone = np.concatenate([stepper.score_next(nodes.take([i])) for i in order])
    assert np.abs(together - said[order]).max() < 1e-4
    assert np.abs(alone - said[order]).max() < 1e-4


@pytest.mark.parametrize("name", ["lstm", "gpt2", "t5"])
def test_only_the_tokens_requested_are_returned_and_all_count(name):
    stepper, network = stepper_of(name), network_of(name)
    source = [5, 2] if network.config.is_encoder_decoder else None
    root = stepper.start([1, 4], source=source)
    whole = stepper.score_next(root)
    assert whole.shape == (1, VOCABULARY)
    assert np.exp(whole).sum() == pytest.approx(1, abs=1e-5)
    children, digits = stepper.step(root, [0, 0, 0], [7, 8, 7], among=[9, 3, 4])
    assert len(children) == 3
    np.testing.assert_allclose(digits, stepper.score_next(children)[:, [9, 3, 4]], atol=1e-5)
    np.testing.assert_allclose(digits[0], digits[2], atol=1e-5)


@pytest.mark.parametrize("name", ["lstm", "gpt2", "bart"])
def test_a_text_is_read_as_its_tokens(name):
    stepper, network = stepper_of(name), network_of(name)
    pair = network.config.is_encoder_decoder
    ids = stepper._encode("abc")
    by_text = stepper.start("abc", source="xyz" if pair else None)
    by_ids = stepper.start(ids, source=stepper._encode("xyz") if pair else None)
    np.testing.assert_allclose(stepper.score_next(by_text), stepper.score_next(by_ids), atol=1e-6)


@pytest.mark.parametrize("name", ["lstm", "gpt2"])
def test_the_prefix_is_read_once(name):
    network, lengths = network_of(name), []
    hook = network.get_input_embeddings().register_forward_hook(lambda _, inputs, __: lengths.append(inputs[0].shape))
    try:
        stepper = stepper_of(name)
        lengths.clear()
        root = stepper.start(range(3, 23))
        for _ in range(3):
            root, _ = stepper.step(root, [0] * 5, range(5))
    finally:
        hook.remove()
    assert sum(length >= 19 for _, length in lengths) == 1
    # the first step reads the root and its child; from then on one token at a time
    assert lengths[1:] == [(5, 2), (5, 1), (5, 1)]


@pytest.mark.parametrize("name", ["lstm", "gpt2"])
def test_numbers_have_the_precision_of_the_model(name):
    torch.manual_seed(1)
    network = MODELS[name][0]().eval().double()
    stepper = stepper_of(name, network=network)
    _, paths, said = random_walk(stepper, [([1, 4, 9], None)], seed=0)
    assert said.dtype == np.float64
    expected = np.stack([twin(network, path, None) for path, _ in paths])
    assert np.abs(said - expected).max() < 1e-12
    single = stepper_of(name)
    assert single.score_next(single.start([1])).dtype == np.float32


def test_nothing_to_step_is_no_error():
    stepper = stepper_of("lstm")
    root = stepper.start("a")
    children, said = stepper.step(root, [], [], among=[1, 2])
    assert (len(children), said.shape) == (0, (0, 2))


def test_what_cannot_be_walked_is_refused():
    bare = TreeStepper(network_of("lstm"), lambda text: [3] * len(text), spelling=no_spelling, longest=4)
    with refused("empty_prefix"):
        bare.start("")
    with refused("text_too_long"):
        bare.start("abcde")
    root = bare.start("abc")
    child, _ = bare.step(root, [0], [3])
    with refused("text_too_long"):
        bare.step(child, [0], [3])
    with refused("source_not_read"):
        bare.start("a", source="b")
    with refused("source_missing"):
        stepper_of("seq2seq").start("a")
    with refused("empty_source"):
        stepper_of("seq2seq").start("a", source=[])


def test_a_model_that_computes_no_numbers_is_refused():
    torch.manual_seed(0)
    broken = MODELS["gru"][0]().eval()
    with torch.no_grad():
        broken.lm_head.bias.fill_(float("nan"))
    stepper = stepper_of("gru", network=broken)
    with refused("logits_not_finite"):
        stepper.score_next(stepper.start("a"))


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 9), st.lists(st.lists(st.integers(0, 30), unique=True, max_size=14), max_size=12))
def test_memory_holds_the_latest_rows_and_never_another_nodes(capacity, rounds):
    memory, latest = NodeStateCache(capacity * 4), {}
    for nodes in rounds:
        new = np.array(nodes, dtype=np.int64)
        memory.put(new, (torch.tensor(nodes, dtype=torch.float32)[:, None],))
        latest = {**{n: i for n, i in latest.items() if n not in nodes}, **dict.fromkeys(nodes)}
        held = [n for n in range(31) if memory.contains(np.array([n]))[0]]
        assert set(held) <= set(latest)
        assert len(held) <= capacity
        if held:
            assert memory.get(np.array(held))[0][:, 0].tolist() == held
        fitting = nodes[:capacity]
        assert set(fitting) <= set(held)


@pytest.mark.parametrize("name", ["lstm", "gpt2"])
def test_no_more_is_kept_than_the_limit(name):
    stepper = stepper_of(name, memory=5_000)
    random_walk(stepper, [([1, 2], None)], seed=0, rounds=10)
    kept = sum(part.nbytes for part in stepper._memory._kept)
    assert 2_500 < kept <= 5_000


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma2", "opt", "mamba", "t5", "bart"])
def test_a_text_queried_token_by_token_is_as_likely_as_the_answers_say(family):
    pretrained = build_tiny_model(family)
    pair = family in {"t5", "bart"}
    model = (Seq2Seq if pair else Causal)(pretrained, Question())
    assert isinstance(model, Steppable)
    assert model.access.steps
    text = "the number is 281265017"
    record = Record(id="1", user="u", source="a source", target=text) if pair else Record(id="1", user="u", text=text)
    answers = model.answer([record])
    stepper = model.stepper()
    symbols = stepper.encode(text)
    read = len(symbols) - answers.rows
    node = stepper.start(symbols[:read], source="a source" if pair else None)
    found, following = [], stepper.score_next(node)
    for symbol in symbols[read:]:
        found.append(following[0, symbol])
        node, following = stepper.step(node, [0], [symbol])
    np.testing.assert_allclose(found, answers.logprob, atol=1e-4)
