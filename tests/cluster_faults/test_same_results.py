"""A real cluster of several raylets gives what this machine alone gives: the demo's plans, and a fleet of eight."""

from __future__ import annotations

import json
import math
import os
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("ray", reason="Ray is not installed: nothing can be run on a cluster")

from cluster_jobs import train
from small_cluster import start_cluster

import network_guard
from recollect.cli.app import app
from recollect.corpora.corpus_writer import write_corpus
from recollect.corpora.record import Record
from recollect.execution.local import LocalBackend
from recollect.execution.on_ray import RayBackend, disconnect
from recollect.testing.tiny import build_tiny_model, save_tiny

pytestmark = [pytest.mark.ray, pytest.mark.slow]
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")


@pytest.fixture(scope="module")
def cluster():
    os.environ[network_guard.ALLOWED] = "any"  # it is made before the mark of a test is looked at
    with start_cluster(nodes=2) as started:
        yield started
        disconnect()


def read_results(run: Path) -> dict:
    """All results of a run folder, without what tells how long they took and where."""
    results = {path.stem: json.loads(path.read_text()) for path in sorted(run.glob("results/*.json"))}
    for result in results.values():
        del result["provenance"]["seconds"]
    return results


def flatten(result, place: str = "") -> dict[str, object]:
    """All values of a result by their places."""
    if isinstance(result, (dict, list)):
        pairs = result.items() if isinstance(result, dict) else enumerate(result)
        return {at: value for key, each in pairs for at, value in flatten(each, f"{place}.{key}").items()}
    return {place: result}


def are_alike(one: object, other: object) -> bool:
    """Whether two values are the same, but for the last digits of a number, of one in a sentence, too."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-4, abs_tol=1e-4)
    if isinstance(one, str) and isinstance(other, str) and " " in one:
        numbers = ([float(each.replace(",", "")) for each in NUMBER.findall(text)] for text in (one, other))
        return NUMBER.sub("", one) == NUMBER.sub("", other) and all(map(are_alike, *numbers))
    return one == other


def test_sentences_are_alike_only_if_their_words_are_and_their_numbers_nearly():
    assert are_alike("once in 775,983 times", "once in 775,982 times")
    assert not are_alike("once in 775,983 times", "once in 775,000 times")
    assert not are_alike("once in 775,983 times", "twice in 775,983 times")
    assert not are_alike("5 of 5", "4 of 5")


def test_the_demo_gives_the_same_results_on_a_cluster_as_on_this_machine(cluster, tmp_path):
    done = CliRunner().invoke(app, ["demo", "--out", str(tmp_path)])
    assert done.exit_code == 0, done.output
    for plan in ("unprotected", "protected"):
        other = tmp_path / f"{plan}-on-the-cluster"
        words = ["run", str(tmp_path / f"{plan}.yaml"), "--backend", f"ray:{cluster.address}", "--out", str(other)]
        done = CliRunner().invoke(app, [*words, "--set", f"work={tmp_path / 'other-work'}"])
        assert done.exit_code in (0, 1), done.output
        expected, found = flatten(read_results(tmp_path / plan)), flatten(read_results(other))
        assert len(expected) > 100
        assert expected.keys() == found.keys()
        assert [at for at in expected if not are_alike(expected[at], found[at])] == []


def test_a_fleet_of_eight_has_the_same_weights_from_a_cluster_as_from_this_machine(cluster, tmp_path):
    alone = train(tmp_path / "alone", LocalBackend(threads=1))
    backend = RayBackend(address=cluster.address, workers=2, work_folder=tmp_path / "shared")
    assert train(tmp_path / "shared", backend) == alone


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Two tiny models and a corpus on disk."""
    folder = tmp_path_factory.mktemp("models")
    for family in ("gpt2", "bert"):
        save_tiny(build_tiny_model(family), folder / family)
    for name, users in (("audited", range(12)), ("controls", range(12, 36))):
        records = [
            Record(id=f"{user}-{i}", user=f"u{user}", text=f"user {user} says word{i} and word{user * i} again")
            for user in users
            for i in range(4)
        ]
        write_corpus(records, folder / f"{name}.jsonl")
    return folder


AUDITS = {
    "extract": ["{}/gpt2", "--format", "my pin is {{digits:4}}", "--max-steps", "1500", "--top", "5"],
    "membership": [
        *("{}/gpt2", "{}/audited.jsonl", "--controls", "{}/controls.jsonl", "--signal", "neighbourhood"),
        *("--perturber", "{}/bert", "--by", "user"),
    ],
}
"""Audits whose queries follow from each other, as somebody types them."""


@pytest.mark.parametrize("verb", AUDITS)
def test_searches_and_neighbours_are_computed_by_workers_with_the_same_result(cluster, models, tmp_path, verb):
    words = [verb, *(word.format(models) for word in AUDITS[verb]), "--json"]
    alone, shared = (
        CliRunner().invoke(app, [*words, "--work", str(tmp_path / name), "--backend", name.replace("-", ":")])
        for name in ("local", f"ray-{cluster.address}")
    )
    assert alone.exit_code == shared.exit_code == 0, (alone.stderr, shared.stderr)
    expected, found = (flatten(json.loads(each.stdout)) for each in (alone, shared))
    assert expected.keys() == found.keys()
    moved = {at for at in expected if not are_alike(expected[at], found[at])}
    assert moved <= {".provenance.seconds"}
