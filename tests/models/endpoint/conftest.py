"""A scripted server, and settings under which nobody waits."""

from __future__ import annotations

import pytest

from recollect.corpora.record import Record
from recollect.models.endpoint.settings import EndpointSettings, Pace
from recollect.models.loading.loader import load_model
from recollect.testing.scripted_server import Behaviour, ScriptedServer

TEXTS = ["the cat and the dog met on a street in town", "a ring of stones, and the sea", "x", "müsli at 日本 today"]
RECORDS = [Record(id=str(i), text=text) for i, text in enumerate(TEXTS)]


@pytest.fixture
def serve():
    """Starts servers, which end with the test."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        yield lambda **behaviour: stack.enter_context(ScriptedServer(behaviour=Behaviour(**behaviour)).run())


@pytest.fixture
def load(tmp_path):
    """Loads the model of a server; each time as after a restart."""

    def loaded(server, *, pace=None, **settings):
        chosen = {"first_wait": 0.001, "timeout": 5.0, **(pace or {})}
        settings = {"work": tmp_path / "work", **settings}
        return load_model(server.url, endpoint=EndpointSettings(pace=Pace(**chosen), **settings))

    return loaded
