"""A search that is killed at any moment continues and ends with the same list."""

import pytest

from recollect.audits.exposure import search_journal
from recollect.audits.exposure.prefix_tree import PrefixTree
from recollect.audits.exposure.search import search_shortest_paths
from recollect.audits.exposure.search_journal import FILE, resume_stepper
from recollect.corpora.canaries.formats import parse_format
from recollect.models.hugging_face.causal import Causal
from recollect.models.model import Question
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model

FORMAT = parse_format("again {digits:4}")


class KilledError(Exception):
    """Whoever watched the progress had enough."""


def search(folder, *, until=None):
    model, asked = Causal(build_tiny_model("llama"), Question()), []

    def watch(done, most):
        if until is not None and done >= until:
            raise KilledError

    inner = model.stepper()
    real = inner.score_next
    inner.score_next = lambda state, **options: asked.append(len(state)) or real(state, **options)
    with resume_stepper(inner, folder) as stepper:
        found = search_shortest_paths(PrefixTree(stepper, FORMAT), 20, max_steps=2000, batch=16, progress=watch)
    return found, sum(asked)


@pytest.fixture(autouse=True)
def short_segments(monkeypatch):
    monkeypatch.setattr(search_journal, "SEGMENT", 32)


@pytest.fixture(scope="module")
def whole():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search_journal, "SEGMENT", 32)
        return search(None)


@pytest.mark.parametrize(("until", "cut"), [(1, 0), (60, 0), (60, 1), (61, 13), (150, 500), (340, 0)])
def test_a_killed_search_ends_with_the_same_numbers_and_computes_only_what_is_missing(tmp_path, whole, until, cut):
    expected, asked = whole
    with pytest.raises(KilledError):
        search(tmp_path, until=until)
    kept = tmp_path / FILE
    with kept.open("r+b") as file:
        file.truncate(max(0, kept.stat().st_size - cut))  # a kill in the middle of a write
    again, rest = search(tmp_path)
    assert [(secret.text, secret.cost) for secret in again.secrets] == [(s.text, s.cost) for s in expected.secrets]
    assert (again.proven, again.steps) == (expected.proven, expected.steps)
    assert rest <= asked - until + 2 * 32 + 16 * (cut > 0)
    assert kept.stat().st_mode & 0o077 == 0


def test_a_search_that_is_killed_again_and_again_ends_with_the_same_numbers(tmp_path, whole):
    for until in range(40, 300, 50):
        with pytest.raises(KilledError):
            search(tmp_path, until=until)
    again, _ = search(tmp_path)
    assert [(secret.text, secret.cost) for secret in again.secrets] == [(s.text, s.cost) for s in whole[0].secrets]


def test_a_damaged_journal_is_refused_and_never_gives_another_number(tmp_path):
    with pytest.raises(KilledError):
        search(tmp_path, until=200)
    data = bytearray((tmp_path / FILE).read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / FILE).write_bytes(data)
    with refused("journal_damaged"):
        search(tmp_path)
