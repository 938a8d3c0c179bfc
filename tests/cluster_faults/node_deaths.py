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

import psutil
from cluster_jobs import JOBS, list_finished
from small_cluster import WORKER_TITLE, add_node, build_environment, start_cluster

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
    seconds: float


@dataclass
class Watch:
    """Looks which files are whole, and whether any of them is ever written again."""

    work: Path
    seen: dict[Path, int] = field(default_factory=dict)
    twice: set[Path] = field(default_factory=set)
    ended: threading.Event = field(default_factory=threading.Event)

    def look(self) -> None:
        """Note new files, and old ones that are others now."""
        for path in list_finished(self.work):
            with suppress(FileNotFoundError):
                inode = path.stat().st_ino
                if self.seen.setdefault(path, inode) != inode:
                    self.twice.add(path)

    @contextmanager
    def running(self):
        """Look again and again while this lasts."""

        def run() -> None:
            while not self.ended.wait(0.02):
                self.look()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.ended.set()
            thread.join()
            self.look()


class Faults:
    """Runs trials, one after the other, on one cluster as far as it survives them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.expected = {job: self._compute_expected(job) for job in JOBS}
        self._cluster, self._context = None, None

    def _compute_expected(self, job: str) -> str:
        """What this machine alone finds."""
        noted = self.home / f"expected-{job}.txt"
        if not noted.exists():
            self.home.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory() as work:
                noted.write_text(JOBS[job](Path(work), LocalBackend(threads=1)))
        return noted.read_text()

    @property
    def cluster(self):
        """A cluster with two nodes."""
        if self._cluster is None:
            self._context = start_cluster(nodes=2)
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
        cluster, faults = self.cluster, []
        work = Path(tempfile.mkdtemp(prefix="faults-", dir=self.home))
        try:
            with Watch(work).running() as watch:
                driver = self._start_driver(job, work)
                wanted = rng.randint(1, 20) if job == "score" else rng.randint(0, 5)
                self._wait_for(watch, driver, wanted, rng)
                before = len(watch.seen)
                said = getattr(self, f"_kill_{killed}")(cluster, driver, job, work, rng, faults)
            if said.get("digest") != self.expected[job]:
                faults.append(f"another result: {said}")
            if watch.twice:
                faults.append(f"made twice: {len(watch.twice)}")
            if left := [path.name for path in work.glob(".*")]:
                faults.append(f"left behind: {left}")
        finally:
            shutil.rmtree(work, ignore_errors=True)
        return Trial(
            killed=killed,
            job=job,
            number=number,
            faults=faults,
            finished_before=before,
            made_twice=len(watch.twice),
            seconds=round(time.monotonic() - began, 1),
        )

    def _start_driver(self, job: str, work: Path) -> subprocess.Popen:
        """A driver in a process of its own."""
        words = [sys.executable, str(HERE / "cluster_jobs.py"), job, self.cluster.address, str(work)]
        environment = {**os.environ, **build_environment()}
        return subprocess.Popen(  # noqa: S603 - our own
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True
        )

    @staticmethod
    def _wait_for(watch: Watch, driver: subprocess.Popen, wanted: int, rng: random.Random) -> None:
        """Wait until so many are finished, or a training has begun, and then a moment."""
        deadline = time.monotonic() + PATIENCE
        while len(watch.seen) < max(wanted, 1) and time.monotonic() < deadline and driver.poll() is None:
            if wanted == 0 and list(watch.work.glob("models/*/working/*")):
                break
            time.sleep(0.02)
        time.sleep(rng.random() * 0.3)

    def _finish(self, driver: subprocess.Popen, faults: list[str], status: int = 0) -> dict[str, str]:
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

    def _kill_worker(self, cluster, driver, job, work, rng, faults):
        """Kill one worker process."""
        workers = self._find_workers(cluster, faults)
        if workers:
            rng.choice(workers).kill()
        return self._finish(driver, faults)

    @staticmethod
    def _find_workers(cluster, faults) -> list[psutil.Process]:
        """The processes of all workers of this cluster."""
        found = []
        for node in cluster.list_all_nodes():
            for raylet in node.all_processes["raylet"]:
                with suppress(psutil.Error):
                    started = psutil.Process(raylet.process.pid).children(recursive=True)
                    found += [each for each in started if WORKER_TITLE in " ".join(each.cmdline())]
        if not found:
            faults.append("no worker was found")
        return found

    def _kill_node(self, cluster, driver, job, work, rng, faults):
        """Kill a raylet without grace; another node joins."""
        lost = rng.choice(sorted(cluster.worker_nodes, key=lambda node: node.unique_id))
        cluster.remove_node(lost, allow_graceful=False)
        add_node(cluster)
        return self._finish(driver, faults)

    def _kill_driver(self, cluster, driver, job, work, rng, faults):
        """Kill the driver, and start it again."""
        os.killpg(driver.pid, signal.SIGKILL)
        driver.communicate()
        return self._finish(self._start_driver(job, work), faults)

    def _kill_head(self, cluster, driver, job, work, rng, faults):
        """Kill the head: the driver must end, say why, and go on where it was on another cluster."""
        workers = self._find_workers(cluster, faults)
        for worker in workers:
            worker.suspend()  # else they would be done before anybody notices
        cluster.head_node.kill_all_processes(check_alive=False, allow_graceful=False)
        said = self._finish(driver, faults, status=2)
        if said.get("refused") != "cluster_lost":
            faults.append(f"no clear end: {said}")
        for worker in workers:
            worker.resume()
        self.close()
        return self._finish(self._start_driver(job, work), faults)


def write(file: Path, trial: Trial) -> None:
    """Keep what came of a trial."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(asdict(trial)) + "\n")


def read(file: Path) -> list[Trial]:
    """What came of all trials so far."""
    return [Trial(**json.loads(line)) for line in file.read_text().splitlines()] if file.exists() else []
