"""Trials at random: kills, runs at once, full disks, flipped bits. Equal results or one clear refusal, nothing else."""

from __future__ import annotations

import json
import random
import shutil
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import commands
from commands import KEEPING, LOOKING, Ended, find_leftovers, make_trial, read_outcome, start

FAULTS = ("traceback", "wrong result", "wrong status", "no message", "leftover", "not whole")


@dataclass
class Trial:
    """What came of one trial."""

    kind: str
    case: str
    number: int
    detail: str = ""
    refused: bool = False
    """Whether it was refused with a message, and not done."""
    messages: int = 0
    faults: list[str] = field(default_factory=list)

    def judge(self, ended: Ended, expected: int = 0, *, may_refuse: bool = False) -> None:
        """Look at how a command ended."""
        self.messages = max(self.messages, ended.messages)
        if "Traceback" in ended.said or ended.status == 70:
            self.faults.append(f"traceback: {ended.said[-2000:]}")
        if may_refuse and ended.status == 2:
            self.refused = True
            if ended.messages == 0:
                self.faults.append(f"no message: {ended.said[-500:]}")
        elif ended.status != expected:
            self.faults.append(f"wrong status: {ended.status}: {ended.said[-1500:]}")

    def compare(
        self, trial: Path, whole: dict[str, str], *, everything: bool = True, join_answers: bool = False
    ) -> None:
        """Look at what the command left."""
        found = read_outcome(trial, join_answers=join_answers)
        names = set(whole) | (set(found) if everything else set())
        differing = sorted(name for name in names if found.get(name) != whole.get(name))
        if differing:
            self.faults.append(f"wrong result: {differing[:5]}")
        if left := find_leftovers(trial):
            self.faults.append(f"leftover: {left[:5]}")


class Chaos:
    """All trials, resumable: what was done before is read from a file and not done again."""

    def __init__(self, home: Path, *, seed: int = 0, prepare: bool = True, everything: bool = True) -> None:
        """Prepare the inputs; with what is slow to import of all verbs, or only of training and scoring."""
        self.home, self.seed = home, seed
        self.file = home / "trials.jsonl"
        home.mkdir(parents=True, exist_ok=True)
        if prepare:
            commands.import_once(everything=everything)
        if prepare and not (home / "inputs" / "plan.yaml").exists():
            shutil.rmtree(home / "inputs", ignore_errors=True)
            commands.make_inputs(home / "inputs")
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        self.done = {(each["kind"], each["case"], each["number"]): Trial(**each) for each in map(json.loads, lines)}
        self.wholes: dict[str, tuple[Path, dict[str, str], Ended]] = {}

    def get_whole(self, verb: str) -> tuple[Path, dict[str, str], Ended]:
        """What a command leaves if nobody disturbs it, in which folder, and how it ended."""
        if verb not in self.wholes:
            trial = make_trial(self.home, f"whole-{verb}", like=self._get_folder_before(verb))
            ended = start((KEEPING | LOOKING)[verb], trial).wait()
            assert ended.status == 0, f"{verb} ends with {ended.status} although nobody disturbs it: {ended.said}"
            assert find_leftovers(trial) == [], find_leftovers(trial)
            self.wholes[verb] = trial, read_outcome(trial), ended
        return self.wholes[verb]

    def _get_folder_before(self, verb: str) -> Path | None:
        """What there is before a command: nothing, or what a run left."""
        return None if verb in KEEPING else self.get_whole("run")[0]

    def kill(self, verb: str, number: int) -> Trial:
        """Kill a command at a random moment, and run it again."""
        draw, found = self._draw("kill", verb, number), Trial("kill", verb, number)
        _, whole, ended = self.get_whole(verb)
        like = self._get_folder_before(verb)
        trial, words, longest = make_trial(self.home, "kill", like=like), (KEEPING | LOOKING)[verb], ended.seconds
        for _ in range(20):
            moment = draw.uniform(0, longest)
            started = start(words, trial)
            time.sleep(moment)
            if started.kill():
                break
            longest = moment  # it was faster than the first: an earlier moment is drawn
            trial = make_trial(self.home, "kill", like=like)
        found.detail = f"after {moment:.2f} of {longest:.2f} s"
        found.judge(start(words, trial).wait())
        found.compare(trial, whole)
        self._verify(trial, found)
        return found

    def run_at_once(self, count: int, verb: str, number: int) -> Trial:
        """Start the same command several times at once."""
        case = f"{count} {verb}"
        draw, found = self._draw("at once", case, number), Trial("at once", case, number)
        _, whole, ended = self.get_whole(verb)
        trial = make_trial(self.home, "at-once")
        started = []
        for _ in range(count):
            started.append(start(KEEPING[verb], trial))
            time.sleep(draw.uniform(0, ended.seconds / count / 2))
        for each in started:
            found.judge(each.wait())
        found.compare(trial, whole)
        self._verify(trial, found)
        return found

    def fill_disk(self, verb: str, number: int) -> Trial:
        """Let no file become larger than a random size; then make room, and run again."""
        draw, found = self._draw("full disk", verb, number), Trial("full disk", verb, number)
        folder = self.get_whole(verb)[0]
        largest = max(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        limit = round(largest ** draw.uniform(0, 1)) - 1
        trial, words = make_trial(self.home, "full", like=self._get_folder_before(verb)), (KEEPING | LOOKING)[verb]
        found.detail = f"no file above {limit:,} bytes"
        ended = start(words, trial, largest_file=limit).wait()
        found.judge(ended, may_refuse=True)
        if found.refused and find_leftovers(trial):
            found.faults.append(f"leftover: {find_leftovers(trial)[:5]}")
        found.judge(start(words, trial).wait())
        # an audit that failed asked for nothing, so that others asked first and divided the answers otherwise
        joined = verb == "run" and found.refused
        found.compare(trial, read_outcome(folder, join_answers=joined), join_answers=joined)
        self._verify(trial, found)
        return found

    def list_kinds(self) -> dict[str, list[Path]]:
        """All files of a run folder and a work folder, by what kind of file they are."""
        return self._sort_files([self.get_whole("run")[0], self._make_unfinished()])

    def _sort_files(self, folders: list[Path]) -> dict[str, list[Path]]:
        """The files of folders of trials, by what kind of file they are."""
        kinds = dict[str, list[Path]]()
        for folder in folders:
            for path in sorted(folder.rglob("*")):
                parts = path.relative_to(folder).parts
                if not path.is_file() or parts[0] in commands.INPUTS or path.name.startswith((".", "made")):
                    continue
                name = path.suffix if path.suffix in (".parquet", ".journal") else path.name
                if parts[:2] in (("work", "runs"), ("work", "fleets"), ("out", "results"), ("work", "audits")):
                    name = path.suffix
                place = [each for each in parts[:-1] if len(each) < 32 and "-" not in each]
                kinds.setdefault("/".join([*place, name]), []).append(path)
        return kinds

    def flip_bit(self, kind: str, number: int) -> Trial:
        """Flip a random bit of a file of that kind, and do what reads it."""
        draw, found = self._draw("flipped bit", kind, number), Trial("flipped bit", kind, number)
        trained = kind.startswith("trained/")
        folders = [self.get_whole("train")[0], self._make_unfinished()] if trained else []
        path = draw.choice((self._sort_files(folders) if trained else self.list_kinds())[kind])
        folder = next(each for each in path.parents if each.parent.name == "trials")
        trial = self.home / "trials" / "flipped"
        shutil.rmtree(trial, ignore_errors=True)
        shutil.copytree(folder, trial)
        damaged = trial / path.relative_to(folder)
        data = bytearray(damaged.read_bytes())
        if not data:
            return found
        bit = draw.randrange(8 * len(data))
        data[bit // 8] ^= 1 << bit % 8
        damaged.write_bytes(data)
        found.detail = f"bit {bit} of {path.relative_to(folder).as_posix()}"
        if kind.startswith("out/"):
            self._read_damaged_run(trial, found, self.get_whole("run")[1])
        elif kind.startswith("trained/"):
            self._go_on(trial, KEEPING["train"], found, self.get_whole("train")[1])
        else:
            if kind.startswith("work/models"):
                shutil.rmtree(trial / "work" / "answers", ignore_errors=True)  # so that the models are loaded again
            shutil.rmtree(trial / "out", ignore_errors=True)
            shutil.rmtree(trial / "trained", ignore_errors=True)  # a killed training is removed by the next one alone
            verb = next(verb for start_of_kind, verb in commands.READERS if kind.startswith(start_of_kind))
            self._go_on(trial, KEEPING[verb], found, self.get_whole(verb)[1])
        return found

    def _go_on(self, trial: Path, words: list[str], found: Trial, whole: dict[str, str]) -> None:
        """Run a command on what is damaged: it ends with the same result, or is refused."""
        before = find_leftovers(trial)
        ended = start(words, trial).wait()
        found.judge(ended, may_refuse=True)
        if not found.refused:
            results = {name: value for name, value in whole.items() if name.startswith(("out/", "trained/model"))}
            found.compare(trial, results, everything=False)
        elif left := sorted(set(find_leftovers(trial)) - set(before)):
            found.faults.append(f"leftover: {left[:5]}")

    def _read_damaged_run(self, trial: Path, found: Trial, whole: dict[str, str]) -> None:
        """Build the report of a damaged run folder anew, and compare it with itself."""
        pages = self.get_whole("report")[0] / "out"
        for verb in ("compare", "report"):
            found.judge(start(LOOKING[verb], trial).wait(), may_refuse=True)
        if not found.refused:
            for name in ("report.html", "report.md"):
                if (trial / "out" / name).read_bytes() != (pages / name).read_bytes():
                    found.faults.append(f"wrong result: {name}")
        del whole

    def _make_unfinished(self) -> Path:
        """A training and a search that were killed halfway: what they keep to resume."""
        folder = self.home / "trials" / "unfinished"
        if not (folder / "made").exists():
            for attempt in range(20):
                folder = make_trial(self.home, "unfinished")
                for verb, sign in commands.UNFINISHED:
                    started = start(KEEPING[verb], folder)
                    for _ in range(2000):
                        if any(folder.glob(sign)):
                            break
                        time.sleep(0.005)
                    time.sleep(0.02 * attempt)
                    started.kill()
                shutil.rmtree(folder / "out", ignore_errors=True)
                if all(any(folder.glob(sign)) for _, sign in commands.UNFINISHED):
                    break
            (folder / "made").touch()
        return folder

    def _verify(self, trial: Path, found: Trial) -> None:
        """Look at the checksums of all that is there."""
        for part in ("out", "work", "trained"):
            if (trial / part).is_dir() and any((trial / part).iterdir()):
                ended = start(["verify", part], trial).wait()
                if ended.status != 0:
                    found.faults.append(f"not whole: {part}: {ended.said[-800:]}")

    def _draw(self, *names: object) -> random.Random:
        """The random numbers of one trial."""
        return random.Random(repr((self.seed, *names)))

    def keep(self, trial: Trial) -> Trial:
        """Note what came of a trial."""
        with self.file.open("a") as file:
            file.write(json.dumps(asdict(trial)) + "\n")
        self.done[trial.kind, trial.case, trial.number] = trial
        return trial
