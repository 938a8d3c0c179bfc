"""Trials: something is killed while a real cluster works, and the result must be the same, with nothing made twice."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cluster_jobs import JOBS, WORKERS
from gates import KILLED, READY, Gate, is_alive, list_finished, wait_until
from small_cluster import add_node, build_environment, start_cluster

from recollect.execution.local import LocalBackend

HERE = Path(__file__).parent
PATIENCE = 400.0
"""Seconds after which a run hangs, on a machine that does much else."""
CASES = {
    "worker": ("score", "train"),
    "node": ("score", "train"),
    "driver": ("score", "train"),
    "head": ("score", "train"),
}
"""What is killed, and during what."""
SIZES = {"score": 30, "train": 8}
"""How many shards and models there are."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What came of one trial."""

    killed: str
    job: str
    number: int
    faults: list[str]
    """What went wrong; empty if nothing did."""
    finished_before: int
    """Shards or models that were whole when something was killed."""
    made_twice: int
    """Shards or models that were whole and were written again."""
    begun_again: int
    """Shards or models that were being made when something was killed, and were taken up by another worker."""
    seconds: float


@dataclass
class Watch:
    """Looks which files are whole, whether any of them is ever written again, and whether two work on the same."""

    gate: Gate
    seen: dict[Path, int] = field(default_factory=dict)
    twice: set[Path] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)
    ended: threading.Event = field(default_factory=threading.Event)

    def look(self) -> None:
        """Note new files, and old ones that are others now."""
        finished = list_finished(self.gate.work)
        # weights are whole once there is a card: a training that is killed between the two writes them again
        weights = [path.with_name("model.safetensors") for path in finished if path.name == "card.json"]
        for path in [*finished, *weights]:
            with suppress(FileNotFoundError):
                inode = path.stat().st_ino
                if self.seen.setdefault(path, inode) != inode:
                    self.twice.add(path)
        self.shared |= self.gate.find_shared()

    @contextmanager
    def running(self):
        """Look again and again while this lasts."""

        def run() -> None:
            while not self.ended.wait(0.1):
                self.look()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.ended.set()
            thread.join()
            self.look()


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What a trial is about: a driver that works on a cluster, behind a gate."""

    job: str
    gate: Gate
    driver: subprocess.Popen
    rng: random.Random
    faults: list[str]


class Faults:
    """Runs trials, one after the other, on one cluster as far as it survives them.

    Args:
        home: Where results of this machine alone, and work folders, are kept.
        sizes: How many shards and models there are.
    """

    def __init__(self, home: Path, sizes: dict[str, int] | None = None) -> None:
        self.home, self.sizes = home, sizes or SIZES
        self.home.mkdir(parents=True, exist_ok=True)
        self._cluster, self._context = None, None

    def read_expected(self, job: str) -> str:
        """What this machine alone finds, computed once."""
        noted = self.home / f"expected-{job}-{self.sizes[job]}.txt"
        if not noted.exists():
            with tempfile.TemporaryDirectory() as work:
                noted.write_text(JOBS[job](Path(work), LocalBackend(threads=1), self.sizes[job]))
        return noted.read_text()

    @property
    def cluster(self):
        """A cluster with two nodes."""
        if self._cluster is None:
            self._context = start_cluster(nodes=WORKERS)
            self._cluster = self._context.__enter__()
        return self._cluster

    def close(self) -> None:
        """End the cluster."""
        if self._cluster is not None:
            with suppress(Exception):
                self._context.__exit__(None, None, None)
            self._cluster = None

    def run(self, killed: str, job: str, number: int) -> Trial:
        """One trial."""
        began, rng = time.monotonic(), random.Random(f"{killed} {job} {number}")
        expected, faults, total = self.read_expected(job), list[str](), self.sizes[job]
        home = Path(tempfile.mkdtemp(prefix="faults-", dir=self.home))
        (work := home / "work").mkdir()
        (control := home / "control").mkdir()
        wanted = rng.randint(1, 2 * total // 3) if job == "score" else rng.randint(0, 5 * total // 8)
        gate = Gate(work=work, control=control, wanted=wanted, total=total)
        watch = Watch(gate)
        try:
            with watch.running():
                scene = Scene(job=job, gate=gate, driver=self._start_driver(job, gate), rng=rng, faults=faults)
                before = self._wait_for_work(scene)
                said = getattr(self, f"_kill_{killed}")(scene)
            faults += self._compare(said, expected, watch, gate)
            return Trial(
                killed=killed,
                job=job,
                number=number,
                faults=faults,
                finished_before=before,
                made_twice=len(watch.twice),
                begun_again=gate.count_begun_again(),
                seconds=round(time.monotonic() - began, 1),
            )
        finally:
            shutil.rmtree(home, ignore_errors=True)

    @staticmethod
    def _compare(said: dict[str, str], expected: str, watch: Watch, gate: Gate) -> list[str]:
        """What is not as it should be at the end."""
        faults = []
        if said.get("digest") != expected:
            faults.append(f"another result: {said}")
        if watch.twice:
            faults.append(f"made twice: {sorted(str(path.relative_to(gate.work)) for path in watch.twice)}")
        if watch.shared:
            faults.append(f"worked on by two at once: {sorted(watch.shared)}")
        if (again := gate.count_begun_again()) > WORKERS:
            faults.append(f"begun again: {again}, though {WORKERS} were being worked on at most")
        if left := [path.name for path in gate.work.glob(".*")]:
            faults.append(f"left behind: {left}")
        return faults

    def _start_driver(self, job: str, gate: Gate) -> subprocess.Popen:
        """A driver in a process of its own."""
        words = [job, self.cluster.address, str(gate.work), str(gate.control), str(gate.wanted), str(gate.total)]
        return subprocess.Popen(  # noqa: S603 - our own
            [sys.executable, str(HERE / "cluster_jobs.py"), *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **build_environment()},
            start_new_session=True,
        )

    @staticmethod
    def _wait_for_work(scene: Scene) -> int:
        """Wait until enough is finished and all workers are at work, then a random moment; how much is finished."""
        gate = scene.gate

        def works() -> bool:
            if scene.driver.poll() is not None:
                return True
            return len(list_finished(gate.work)) >= gate.wanted and len(gate.list_workers()) == WORKERS

        if not wait_until(works, PATIENCE):
            scene.faults.append(f"it did not come to work: {len(gate.list_workers())} workers")
        if scene.driver.poll() is not None:
            scene.faults.append("the driver ended before anything was killed")
        gate.open(READY)
        time.sleep(scene.rng.random() * 0.3)
        return len(list_finished(gate.work))

    @staticmethod
    def _finish(driver: subprocess.Popen, faults: list[str], status: int = 0) -> dict[str, str]:
        """What a driver says at its end."""
        try:
            out, noise = driver.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            driver.send_signal(signal.SIGUSR1)
            time.sleep(1)
            driver.kill()
            faults.append(f"it hangs: {driver.communicate()[1][-3000:]}")
            return {}
        if driver.returncode != status:
            faults.append(f"status {driver.returncode}: {noise[-300:]}")
        return json.loads(out.splitlines()[-1]) if out.strip() else {}

    def _finish_undisturbed(self, scene: Scene, driver: subprocess.Popen) -> dict[str, str]:
        """What a driver says once the gate is open."""
        scene.gate.open(KILLED)
        return self._finish(driver, scene.faults)

    def _kill_worker(self, scene: Scene) -> dict[str, str]:
        """Kill one worker process."""
        if workers := scene.gate.list_workers():
            scene.rng.choice(workers).kill()
        return self._finish_undisturbed(scene, scene.driver)

    def _kill_node(self, scene: Scene) -> dict[str, str]:
        """Kill a raylet without grace; another node joins."""
        lost = scene.rng.choice(sorted(self.cluster.worker_nodes, key=lambda node: node.unique_id))
        self.cluster.remove_node(lost, allow_graceful=False)
        add_node(self.cluster)
        return self._finish_undisturbed(scene, scene.driver)

    def _kill_driver(self, scene: Scene) -> dict[str, str]:
        """Kill the driver, and start it again."""
        os.killpg(scene.driver.pid, signal.SIGKILL)
        scene.driver.communicate()
        return self._finish_undisturbed(scene, self._start_driver(scene.job, scene.gate))

    def _kill_head(self, scene: Scene) -> dict[str, str]:
        """Kill the head: the driver must end, say why, and go on where it was on another cluster."""
        workers = scene.gate.list_workers()
        self.cluster.head_node.kill_all_processes(check_alive=False, allow_graceful=False)
        said = self._finish(scene.driver, scene.faults, status=2)
        if said.get("refused") != "cluster_lost":
            scene.faults.append(f"no clear end: {said}")
        self.close()
        if not wait_until(lambda: not any(map(is_alive, workers)), PATIENCE):
            scene.faults.append("workers outlive their cluster")
        return self._finish_undisturbed(scene, self._start_driver(scene.job, scene.gate))


def write(file: Path, trial: Trial) -> None:
    """Keep what came of a trial."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(asdict(trial)) + "\n")


def read(file: Path) -> list[Trial]:
    """What came of all trials so far."""
    return [Trial(**json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []
