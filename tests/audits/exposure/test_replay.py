"""A search that is killed at any moment goes on and ends with the same list."""

import pytest

from recollect.audits.exposure.prefix_tree import PrefixTree
from recollect.audits.exposure.replay import FILE, resume_stepper
from recollect.audits.exposure.shortest_path import find_shortest_paths
from recollect.corpora.canaries.formats import parse_format
from recollect.models.causal import Causal
from recollect.models.model import Question
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
        found = find_shortest_paths(PrefixTree(stepper, FORMAT), 20, max_steps=2000, batch=16, progress=watch)
    return found, sum(asked)


@pytest.mark.parametrize("cut", [0, 1, 13])
def test_a_killed_search_ends_with_the_same_list_and_asks_only_what_is_missing(tmp_path, cut):
    whole, asked = search(None)
    with pytest.raises(KilledError):
        search(tmp_path, until=60)
    kept = tmp_path / FILE
    with kept.open("r+b") as file:
        file.truncate(kept.stat().st_size - cut)  # a kill in the middle of a write
    again, rest = search(tmp_path)
    assert [secret.text for secret in again.secrets] == [secret.text for secret in whole.secrets]
    assert [secret.cost for secret in again.secrets] == pytest.approx(
        [secret.cost for secret in whole.secrets], abs=1e-4
    )
    assert (again.proven, again.steps) == (whole.proven, whole.steps)
    assert rest < asked - 30
    assert search(tmp_path)[1] == 0
    assert kept.stat().st_mode & 0o077 == 0
