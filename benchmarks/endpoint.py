"""Throughput of scoring through a server, beside the same requests sent by a bare asynchronous client.

    python benchmarks/endpoint.py [--records 400] [--latency 0.02 0.1] [--rounds 9]

The server is a process of its own whose model is a table, so that all that is measured is the way to it. Each answer
takes it `latency` seconds, as a small model does. Both sides send the same bodies over 8 connections, one side after
the other in every round; ours also plans, reserves every request on disk before it is sent, checks and keeps every
answer, and repeats the probe at the end. Processor time is that of this process, so without the server's.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import httpx2

from recollect.corpora.record import Record
from recollect.models.endpoint.settings import EndpointSettings
from recollect.models.loading.loader import load_model
from recollect.testing.scripted_server import Behaviour, ScriptedServer

CONNECTIONS = 8


@dataclass(frozen=True)
class Cost:
    """What one request costs on average, in seconds."""

    wall: float
    processor: float

    @classmethod
    def measure(cls, send, count: int) -> Cost:
        """The cost of each of so many requests that are sent."""
        wall, processor = time.monotonic(), time.process_time()
        send()
        return cls((time.monotonic() - wall) / count, (time.process_time() - processor) / count)


def serve(latency: float) -> None:
    """Serve until standard input ends."""
    with ScriptedServer(behaviour=Behaviour(shows="prompt_logprobs", slow=latency)).run() as server:
        print(server.url, flush=True)
        sys.stdin.read()


async def send_bare(url: str, bodies: list[dict]) -> None:
    """Send all bodies with a bare client."""
    left = iter(bodies)
    async with httpx2.AsyncClient(limits=httpx2.Limits(max_connections=CONNECTIONS)) as client:

        async def work() -> None:
            for body in left:
                response = await client.post(f"{url}/completions", json=body)
                assert json.loads(response.content)["choices"]

        await asyncio.gather(*(work() for _ in range(CONNECTIONS)))


def measure_round(model, address: str, count: int, number: int) -> tuple[Cost, Cost]:
    """What a request costs us, and the bare client."""
    records = [Record(id=str(i), text=f"the cat and {i} dogs met on street {number} at noon") for i in range(count)]
    model._generation.tokens.encode([record.text for record in records])  # kept, so that only scoring is timed
    client, sent = model._generation.prober.client, list[dict]()
    ask = type(client).send_all

    def note(requests, keep) -> None:
        sent.extend(request.body for request in requests)
        ask(client, requests, keep)

    client.send_all = note
    ours = Cost.measure(lambda: model.answer(records), 1)
    bare = Cost.measure(lambda: asyncio.run(send_bare(address.partition("#")[0], sent)), len(sent))
    return Cost(ours.wall / len(sent), ours.processor / len(sent)), bare


def compare(latency: float, count: int, rounds: int) -> None:
    """Print medians of all rounds against a server of so much latency."""
    words = [sys.executable, __file__, "--serve", "--latency", str(latency)]
    server = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603
    try:
        assert server.stdout is not None
        address = server.stdout.readline().strip()
        with tempfile.TemporaryDirectory() as folder:
            model = load_model(address, endpoint=EndpointSettings(work=Path(folder), connections=CONNECTIONS))
            measured = [measure_round(model, address, count, number) for number in range(rounds)]
    finally:
        server.kill()
    for which in ("wall", "processor"):
        ours, bare = (statistics.median(getattr(pair[side], which) for pair in measured) for side in (0, 1))
        ratios = sorted(getattr(theirs, which) / getattr(own, which) for own, theirs in measured)
        print(
            f"{latency:g} s an answer, {which}: ours {ours * 1e3:.2f}, bare {bare * 1e3:.2f} ms a request; "
            f"ratio {bare / ours:.2f}, in single rounds {ratios[0]:.2f} to {ratios[-1]:.2f}, "
            f"median {statistics.median(ratios):.2f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=400)
    parser.add_argument("--latency", type=float, nargs="+", default=[0.02, 0.1])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.latency[0])
        return
    for latency in given.latency:
        compare(latency, given.records, given.rounds)


if __name__ == "__main__":
    main()
