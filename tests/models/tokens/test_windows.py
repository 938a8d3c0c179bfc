"""Windows predict every token once, with half a window known before it."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.models.model import Question
from recollect.models.tokens.windows import get_context_length, get_window_width, plan_windows
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model


@settings(deadline=None)
@given(st.integers(0, 200), st.integers(2, 40) | st.none())
def test_what_follows_each_token_is_predicted_exactly_once(size, width):
    found = plan_windows(size, width)
    predicted = [i for w in found for i in range(w.begin + w.skip, w.end)]
    assert predicted == list(range(size))


@settings(deadline=None)
@given(st.integers(0, 200), st.integers(2, 40))
def test_half_a_window_is_known_before_each_token(size, width):
    for window in plan_windows(size, width):
        assert window.end - window.begin <= width
        if window.begin:
            assert window.skip >= width // 2


def test_without_a_limit_a_text_is_read_in_one_pass():
    assert [(w.begin, w.end, w.skip) for w in plan_windows(10**6, None)] == [(0, 10**6, 0)]


@pytest.mark.parametrize(("family", "longest"), [("gpt2", 32), ("llama", 32), ("bart", 32), ("roberta", 32)])
def test_the_limit_is_what_the_model_can_really_read(family, longest):
    import torch

    network = build_tiny_model(family, window=32).network
    assert get_context_length(network) == longest
    network(input_ids=torch.full((1, longest), 9))
    if family in {"gpt2", "roberta"}:
        with pytest.raises((IndexError, RuntimeError)):
            network(input_ids=torch.full((1, longest + 1), 9))


@pytest.mark.parametrize("family", ["t5", "mamba"])
def test_recurrence_and_relative_positions_know_no_limit(family):
    assert get_context_length(build_tiny_model(family).network) is None


def test_the_tokenizer_may_state_a_lower_limit():
    network = build_tiny_model("gpt2", window=32).network
    assert get_context_length(network, SimpleNamespace(model_max_length=20)) == 20
    assert get_context_length(network, SimpleNamespace(model_max_length=int(1e30))) == 32


def test_a_window_is_at_most_what_the_model_reads():
    network = build_tiny_model("gpt2", window=32).network
    assert get_window_width(network, Question(), name="m") == 32
    assert get_window_width(network, Question(window=8), name="m") == 8
    with refused("window_too_long"):
        get_window_width(network, Question(window=33), name="m")


LONG = """
import json, resource, sys
from recollect.corpora.record import Record
from recollect.models.hugging_face.causal import Causal
from recollect.models.model import Question
from recollect.testing.tiny import build_tiny_model

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

pretrained = build_tiny_model("llama", window=512)
pretrained.network.resize_token_embeddings(50_000)
model = Causal(pretrained, Question())
words = "the quick brown fox jumps over the lazy dog ".split() * 4000
texts = [" ".join(words[:count]) for count in (1_500, 16_000)]
tokens = [len(model._encode_text([text])[0]) for text in texts]
found = []
for i, text in enumerate(texts):
    answers = model.answer([Record(id=str(i), text=text)])
    found.append({"tokens": tokens[i], "rows": len(answers.rank), "records": len(answers.records), "mb": peak()})
print(json.dumps(found))
"""


@pytest.mark.slow
def test_a_text_of_32_000_tokens_is_one_record_and_needs_hardly_more_memory_than_a_short_one():
    done = subprocess.run([sys.executable, "-c", LONG], capture_output=True, text=True, check=True)  # noqa: S603
    short, long = json.loads(done.stdout)
    assert long["tokens"] > 32_000
    for text in (short, long):
        assert text["records"] == 1
        assert text["rows"] == text["tokens"]  # each predicted once; the start token precedes the first
    # all logits of the long text at once would be 6 GB
    assert long["mb"] - short["mb"] < 150
