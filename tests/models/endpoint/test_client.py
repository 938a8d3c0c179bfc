"""Good manners: what is repeated, what is not, how long is waited, and what is said of it."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
import time
from contextlib import suppress

import numpy as np
import pytest

from recollect.corpora.record import Record
from recollect.models.endpoint.client import _parse_retry_after
from recollect.models.endpoint.safety import clean_message, read_key
from recollect.models.endpoint.settings import EndpointSettings, Pace
from recollect.models.loading.loader import load_model
from recollect.testing.refusals import refused
from recollect.testing.scripted_server import Behaviour, ScriptedServer

pytestmark = pytest.mark.loopback
RECORDS = [Record(id=str(i), text=f"the cat and {i} dogs met") for i in range(12)]
KEY = "sk-verysecretkey0123456789"


def test_failures_of_every_kind_are_repeated_and_change_no_number(serve, load):
    server = serve(shows="prompt_logprobs", error_rate=0.3, retry_after=0.01)
    answers = load(server, pace={"attempts": 12}).answer(RECORDS)
    expected = [row[0] for record in RECORDS for row in server.model.score(record.text)]
    assert np.allclose(answers.logprob, expected, atol=1e-6)


def test_a_server_that_only_fails_is_left_alone_after_a_while(serve, load):
    server = serve(shows="prompt_logprobs")
    model = load(server)
    before = server.received
    server.behaviour.error_rate = 1.0
    with refused("server_failed") as refusal:
        model.answer(RECORDS)
    assert "attempts" in refusal.error.found
    assert server.received - before <= 12 * 8


def test_an_address_at_which_nobody_listens_is_refused_at_once(serve, load):
    server = serve()
    server.port = 9
    began = time.monotonic()
    with refused("server_not_reached"):
        load(server, pace={"first_wait": 30.0})
    assert time.monotonic() - began < 20


def test_a_port_that_accepts_and_never_answers_the_handshake_is_refused_at_once(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/v1#table"
        settings = EndpointSettings(work=tmp_path, pace=Pace(connect_timeout=0.5, first_wait=30.0))
        began = time.monotonic()
        with refused("server_not_reached") as refusal:
            load_model(url, endpoint=settings)
    assert time.monotonic() - began < 20
    assert "https" in refusal.error.do


def test_a_server_that_answered_before_is_waited_for_while_it_is_away(load):
    server = ScriptedServer(behaviour=Behaviour(shows="prompt_logprobs"))
    with server.run():
        model = load(server, pace={"first_wait": 0.2})
    returning = threading.Event()

    def come_back():
        time.sleep(0.5)
        with server.run():
            returning.wait(20)

    thread = threading.Thread(target=come_back)
    thread.start()
    answers = model.answer(RECORDS[:2])
    returning.set()
    thread.join()
    expected = [row[0] for record in RECORDS[:2] for row in server.model.score(record.text)]
    assert np.allclose(answers.logprob, expected, atol=1e-6)


@pytest.fixture
def unknown_authority(tmp_path):
    """A certificate that nobody vouches for, with its private key."""
    if (program := shutil.which("openssl")) is None:
        pytest.skip("makes its certificate with openssl")
    words = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "1",
        "-subj",
        "/CN=localhost",
    ]
    path = tmp_path / "certificate.pem"
    subprocess.run([program, *words, "-keyout", path, "-out", tmp_path / "own.pem"], check=True, capture_output=True)  # noqa: S603
    path.write_bytes(path.read_bytes() + (tmp_path / "own.pem").read_bytes())
    return path


def test_a_certificate_that_nobody_vouches_for_stops_at_once(unknown_authority, tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(unknown_authority)
    greeted = []

    def greet(listener):
        with suppress(OSError):
            while True:
                greeted.append(listener.accept()[0])
                with suppress(ssl.SSLError), context.wrap_socket(greeted[-1], server_side=True):
                    pass

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=greet, args=[listener], daemon=True).start()
        address = f"https://127.0.0.1:{listener.getsockname()[1]}/v1#any"
        with refused("certificate_refused") as refusal:
            load_model(address, endpoint=EndpointSettings(work=tmp_path))
    assert "self-signed" in refusal.error.found
    assert len(greeted) == 1


def test_a_server_that_asks_for_too_long_a_pause_is_left_alone(serve, load):
    server = serve(shows="prompt_logprobs")
    model = load(server, pace={"longest_wait": 5.0})
    server.behaviour.retry_after, server.behaviour.error_rate = 3600.0, 1.0
    began = time.monotonic()
    with refused("server_failed"):
        for _ in range(20):
            model.answer(RECORDS)
    assert time.monotonic() - began < 30


def test_retry_after_is_waited_for(serve, load):
    server = serve(shows="prompt_logprobs", slow=0.0)
    model = load(server)
    server.behaviour.retry_after, server.behaviour.error_rate = 0.4, 0.5
    began = time.monotonic()
    model.answer(RECORDS)
    assert time.monotonic() - began > 0.4


def test_a_slow_server_is_waited_for_and_no_more_connections_are_made_than_allowed(serve, load):
    server = serve(shows="prompt_logprobs")
    model = load(server, connections=3)
    server.behaviour.slow = 0.02
    server.most_at_once = 0
    model.answer(RECORDS)
    assert 1 <= server.most_at_once <= 3


def test_a_wrong_key_stops_at_once_with_what_the_server_says_but_never_with_the_key(serve, load, monkeypatch):
    monkeypatch.setenv("RECOLLECT_API_KEY", KEY)
    server = serve(key="another")
    with refused("rejected_by_server") as refusal:
        load(server)
    assert "Incorrect API key" in refusal.error.found
    assert KEY not in str(refusal.error)
    assert server.received == 1


def test_the_right_key_is_sent_and_shown_nowhere(serve, load, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    model = load(serve(key=KEY, shows="prompt_logprobs"), key_variable="MY_KEY")
    assert model.answer(RECORDS).rows
    assert KEY not in repr(model._generation.prober.client)
    assert KEY not in repr(vars(model))


@pytest.mark.parametrize("given", ["sk-verysecretkey", "lower_case", "A-B", ""])
def test_a_key_in_the_place_of_its_variable_is_refused_and_not_repeated(given):
    with refused("invalid_key_variable") as refusal:
        read_key("https://example.org/v1", given)
    assert "verysecret" not in str(refusal.error)


def test_the_key_of_openai_goes_to_openai_alone(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("RECOLLECT_API_KEY", raising=False)
    assert read_key("https://api.openai.com/v1", None) == KEY
    assert read_key("https://example.org/v1", None) is None
    assert read_key("https://api.openai.com.example.org/v1", None) is None
    with refused("key_variable_not_set"):
        read_key("https://example.org/v1", "RECOLLECT_API_KEY")
    monkeypatch.delenv("OPENAI_API_KEY")
    with refused("key_variable_not_set") as refusal:
        read_key("https://api.openai.com/v1", None)
    assert "OPENAI_API_KEY" in refusal.error.do


def test_a_servers_message_is_one_short_line():
    assert clean_message("a\n b", None) == "a b"
    assert len(clean_message("x" * 10_000, None)) < 400


def test_retry_after_may_be_a_date():
    from email.utils import formatdate

    import httpx2

    assert 5 < _parse_retry_after(httpx2.Headers({"retry-after": formatdate(time.time() + 10, usegmt=True)})) <= 10
    assert _parse_retry_after(httpx2.Headers({"retry-after": "soon"})) == 0
    assert _parse_retry_after(httpx2.Headers({})) == 0
