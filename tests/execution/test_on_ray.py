"""The Ray backend: what it refuses before any work, and that a real cluster keeps the contract."""

from __future__ import annotations

import builtins
from pathlib import Path

import pytest
from workloads import Loads, note_slowly, troubled

from recollect.execution.backend import Done
from recollect.execution.cluster_nodes import NodeReport, count_slots
from recollect.execution.on_ray import RayBackend
from recollect.testing.refusals import refused
from recollect.version import __version__


@pytest.mark.ray
def test_a_cluster_gives_outcomes_in_order_and_names_the_node_of_a_failure(ray_cluster, shared_folder, capfd):
    backend = RayBackend(address=ray_cluster.address, work_folder=shared_folder)
    outcomes = list(backend.map(troubled, ["a", "dies", "refuses", "b"]))
    assert (outcomes[0], outcomes[-1]) == (Done("a!"), Done("b!"))
    assert [outcome.error.code for outcome in outcomes[1:3]] == ["worker_died", "refused"]
    nodes = {node["NodeManagerHostname"] for node in __import__("ray").nodes()}
    assert all(any(f"on node {name} (" in outcome.describe() for name in nodes) for outcome in outcomes[1:3])
    assert backend.count_workers() == 2
    assert list(shared_folder.iterdir()) == [], "tokens are taken away"
    said = capfd.readouterr()
    assert said.out == "", "what Ray has to say stays off standard output"


@pytest.mark.ray
def test_the_same_work_again_finds_what_it_had_loaded_and_other_work_does_not(ray_cluster, shared_folder):
    backend = RayBackend(address=ray_cluster.address, workers=1, work_folder=shared_folder)
    first, again, other = (next(backend.map(Loads(name), [0])).value for name in ("a", "a", "b"))
    assert first == again
    assert other.startswith("b ")


@pytest.mark.ray
def test_what_a_lost_node_worked_on_is_done_by_others_and_a_new_node_may_join(ray_cluster, shared_folder, tmp_path):
    from small_cluster import add_node

    paths = [str(tmp_path / str(i)) for i in range(12)]
    outcomes = RayBackend(address=ray_cluster.address, workers=2, work_folder=shared_folder).map(note_slowly, paths)
    first = next(outcomes)
    ray_cluster.remove_node(next(iter(ray_cluster.worker_nodes)), allow_graceful=False)
    add_node(ray_cluster)
    assert [first, *outcomes] == [Done(path) for path in paths]
    done = [len(Path(path).read_text().splitlines()) for path in paths]
    assert sum(done) <= len(paths) + 1, "at most what was being worked on is done again"


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "contents"),
    [
        ("other_version_on_node", {"__init__.py": "", "version.py": "__version__ = '0.0.1'"}),
        ("package_missing_on_node", {"__init__.py": "raise ImportError('none here')"}),
    ],
)
def test_a_real_node_without_the_same_package_is_refused_before_any_work(
    ray_cluster, shared_folder, tmp_path, code, contents
):
    from small_cluster import add_node

    (tmp_path / "path" / "recollect").mkdir(parents=True)
    for name, text in contents.items():
        (tmp_path / "path" / "recollect" / name).write_text(text)
    node = add_node(ray_cluster, tmp_path / "path")
    try:
        backend = RayBackend(address=ray_cluster.address, work_folder=shared_folder)
        with refused(code) as refusal:
            list(backend.map(note_slowly, [str(tmp_path / "made")]))
        assert "pip install" in str(refusal.error)
        assert not (tmp_path / "made").exists()
    finally:
        ray_cluster.remove_node(node)


@pytest.mark.ray
@pytest.mark.slow
def test_a_folder_that_a_real_node_does_not_see_is_refused_before_any_work(ray_cluster, tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path)
    # a path that means something else in every process, as a folder does that is not shared
    backend = RayBackend(address=ray_cluster.address, work_folder=Path("/proc/self/cwd/work"))
    with refused("work_folder_not_shared") as refusal:
        list(backend.map(note_slowly, [str(tmp_path / "made")]))
    assert "Mount the same folder at the same path on every node" in str(refusal.error)
    assert not (tmp_path / "made").exists()


def test_an_address_of_ray_client_is_refused_with_the_line_that_does_it_right():
    with refused("ray_client") as refusal:
        RayBackend(address="ray://head.example:10001")
    assert "ray job submit --address http://head.example:8265 -- recollect run PLAN --backend ray" in str(refusal.error)


def test_ray_that_is_not_installed_is_one_message_with_the_command(monkeypatch, tmp_path):
    imported = builtins.__import__

    def without_ray(name, *rest):
        if name.partition(".")[0] == "ray":
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_ray)
    with refused("ray_missing") as refusal:
        list(RayBackend(work_folder=tmp_path).map(troubled, ["a"]))
    assert "pip install 'recollect[ray]'" in str(refusal.error)


def test_work_that_would_carry_a_model_along_is_refused():
    from recollect.execution.remote_workers import MAX_WORK_BYTES, pack_work

    class Packer:
        def pack(self, work):
            return b"x" * (MAX_WORK_BYTES + 1)

    with refused("too_large_to_send"):
        pack_work(Packer(), troubled)


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (NodeReport(name="n", versions={"recollect": __version__}), None),
        (NodeReport(name="n", versions={"recollect": "0.0.1"}), "other_version_on_node"),
        (NodeReport(name="n", versions={"recollect": None}), "package_missing_on_node"),
        (NodeReport(name="n", versions={"recollect": __version__}, folder="no such"), "work_folder_not_shared"),
        (NodeReport(name="n", error="gone"), "node_silent"),
    ],
)
def test_a_node_that_lacks_something_is_named_with_what_to_do(report, code, tmp_path):
    problem = report.find_problem(tmp_path)
    assert (problem and problem.code) == code
    assert problem is None or ("Node n" in problem.found and problem.do)


def test_workers_fit_on_nodes_that_have_everything_they_ask_for():
    nodes = [{"CPU": 8.0, "GPU": 2.0, "memory": 64e9}, {"CPU": 3.0, "memory": 8e9}, {}]
    assert count_slots(nodes, {"CPU": 1.0}) == 11
    assert count_slots(nodes, {"CPU": 4.0, "GPU": 1.0}) == 2
    assert count_slots(nodes, {"CPU": 1.0, "memory": 24e9}) == 2
