"""Throughput of scoring through a server, beside the same requests sent by a bare asynchronous client.

    python benchmarks/endpoint.py [--records 400] [--latency 0.1] [--rounds 3]

The server is a process of its own whose model is a table, so that all that is measured is the way to it. Each answer
takes it `latency` seconds, as a small model does. Both sides send the same bodies over 8 connections; ours also probes,
tokenises nothing, reserves every request on disk before it is sent, and keeps every answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx2

from recollect.corpora.record import Record
from recollect.models.endpoint.settings import EndpointSettings
from recollect.models.loader import load_model
from recollect.testing.scripted_server import Behaviour, ScriptedServer

CONNECTIONS = 8


def serve(latency: float) -> None:
    """Serve until standard input ends."""
    with ScriptedServer(behaviour=Behaviour(shows="prompt_logprobs", slow=latency)).run() as server:
        print(server.url, flush=True)
        sys.stdin.read()


async def send_bare(url: str, bodies: list[dict]) -> float:
    """Seconds that a bare client takes."""
    left = iter(bodies)
    async with httpx2.AsyncClient(limits=httpx2.Limits(max_connections=CONNECTIONS)) as client:

        async def work() -> None:
            for body in left:
                response = await client.post(f"{url}/completions", json=body)
                assert json.loads(response.content)["choices"]

        began = time.monotonic()
        await asyncio.gather(*(work() for _ in range(CONNECTIONS)))
        return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=400)
    parser.add_argument("--latency", type=float, default=0.1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.latency)
        return
    words = [sys.executable, __file__, "--serve", "--latency", str(given.latency)]
    server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        ratios = [measure(address, given.records, number) for number in range(given.rounds)]
        print(f"median of {len(ratios)} rounds: {sorted(ratios)[len(ratios) // 2]:.2f} of the bare client's throughput")
    finally:
        server.kill()


def measure(address: str, count: int, number: int) -> float:
    """Our throughput as a share of the bare client's."""
    records = [Record(id=str(i), text=f"the cat and {i} dogs met on street {number} at noon") for i in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        model = load_model(address, endpoint=EndpointSettings(work=Path(folder), connections=CONNECTIONS))
        sent = list[dict]()
        ask = model._generation.prober.client.send_all

        def note(requests, keep) -> None:
            sent.extend(request.body for request in requests if request.path == "completions")
            ask(requests, keep)

        model._generation.tokens.encode([record.text for record in records])  # kept, so that only scoring is timed
        model._generation.prober.client.send_all = note
        before = model.spent.requests
        began = time.monotonic()
        model.answer(records)
        ours = (model.spent.requests - before) / (time.monotonic() - began)
    bare = len(sent) / asyncio.run(send_bare(address.partition("#")[0], sent))
    print(f"round {number}: ours {ours:,.0f}, bare {bare:,.0f} requests per second, ratio {ours / bare:.2f}")
    return ours / bare


if __name__ == "__main__":
    main()
