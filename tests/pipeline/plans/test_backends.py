"""Where work is done: what plans, the command line and Python may say, and what becomes of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from recollect.cli.app import app
from recollect.execution.local import LocalBackend
from recollect.execution.on_ray import RayBackend
from recollect.pipeline.plans.backends import BackendRef, describe_placement, parse_backend
from recollect.pipeline.plans.plan_file import read_plan
from recollect.session import Session
from recollect.testing.refusals import refused

PLAN = """
models: {target: model}
corpora: {audited: a.jsonl, controls: b.jsonl}
audits: {membership: {signal: loss}}
"""


@pytest.fixture
def plan(tmp_path):
    def written(more: str) -> Path:
        path = tmp_path / "plan.yaml"
        path.write_text(PLAN + more)
        return path

    return written


def test_this_machine_is_the_default_and_needs_nothing(plan, tmp_path):
    (found,) = read_plan(plan("workers: 2\nthreads: 1\n")).plans
    assert found.open_backend() == LocalBackend(workers=2, threads=1)


def test_a_plan_says_what_each_worker_takes_of_a_cluster(plan, tmp_path):
    text = "backend: {ray: {address: head:6379, workers: 32, cpus: 4, gpus: 1, memory: 24GB}}\n"
    (found,) = read_plan(plan(text)).plans
    work = (tmp_path / ".recollect").absolute()
    expected = RayBackend(
        address="head:6379", workers=32, cpus=4, gpus=1, memory=24_000_000_000, threads=4, work_folder=work
    )
    assert found.open_backend() == expected
    assert expected.resources == {"CPU": 4, "GPU": 1, "memory": 24e9}


@pytest.mark.parametrize(
    ("name", "address"), [("ray", "auto"), ("ray:head:6379", "head:6379"), ("ray://head:10001", "ray://head:10001")]
)
def test_a_name_stands_for_a_cluster(plan, name, address):
    (found,) = read_plan(plan(f"backend: {name}\n")).plans
    assert found.backend == parse_backend(name)
    assert found.backend.ray.address == address


def test_a_plan_that_is_written_down_keeps_its_backend(plan, tmp_path):
    from recollect.pipeline.plans.plan_writer import write_plan

    original = read_plan(plan("backend: {ray: {gpus: 1, memory: 2GiB}}\n")).plans
    again = tmp_path / "again.yaml"
    again.write_text(write_plan(original))
    assert read_plan(again).plans[0].backend == original[0].backend


def test_unknown_settings_of_a_backend_name_the_line(plan):
    with refused("unknown_setting") as refusal:
        read_plan(plan("backend: {ray: {gpu: 1}}\n"))
    assert "plan.yaml" in str(refusal.error)
    assert "gpus" in str(refusal.error)
    with refused("invalid_setting"):
        read_plan(plan("backend: slurm\n"))
    with refused("unknown_backend"):
        Session(backend="slurm").plan("membership", "model", "a.jsonl", controls="b.jsonl")


def test_a_session_and_the_command_line_choose_for_the_plan(plan):
    assert Session(backend={"ray": {"cpus": 2}}).plan(
        "membership", "model", "a.jsonl", controls="b.jsonl"
    ).backend == BackendRef.model_validate({"ray": {"cpus": 2}})
    path = plan("backend: ray\n")
    planned = Session(backend="local")._apply(read_plan(path))
    assert planned.plans[0].backend == BackendRef()
    assert Session()._apply(read_plan(path)).plans[0].backend.ray is not None


def test_an_address_of_ray_client_is_refused_before_anything_is_read(plan):
    done = CliRunner().invoke(app, ["run", str(plan("")), "--backend", "ray://head:10001"])
    assert done.exit_code == 2
    said = " ".join(done.stderr.split())
    assert "ray job submit --address http://head:8265 -- recollect run PLAN --backend ray" in said


def test_placement_on_this_machine_is_said_in_words(tmp_path):
    assert describe_placement(BackendRef(), tmp_path, workers=2).text == (
        "This machine does the work: 2 worker processes for scoring, 2 for training"
    )
    assert describe_placement(BackendRef(), tmp_path).text == (
        "This machine does the work: 1 worker process for scoring, as many as a short trial finds fastest for training"
    )
