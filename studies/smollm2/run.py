"""All audits of a real pretrained model: SmolLM2-135M, fine-tuned by plain PEFT code on comments with planted secrets.

Every model and every verdict is kept; killed at any moment and started again, it goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from finetuning import LORA, RATES, fine_tune
from people import SECRETS, SIZES, write_corpora

from recollect.corpora.cohorts import Cohorts
from recollect.files import write_json
from recollect.session import AuditResult, Session

RECIPE = {"model.adapter.targets": LORA["target_modules"], "training.learning_rate": RATES["lora"]}
"""What `lora` must be told to train as the target was trained."""
SHADOWS = 4
FOLDS = 4
Job = Callable[[], AuditResult]


@dataclass(frozen=True, kw_only=True)
class Study:
    """Where everything is, and how it is audited."""

    base: Path
    data: Path
    folder: Path
    size: str
    threads: int

    @cached_property
    def corpora(self) -> Mapping[str, Path]:
        """The corpora by role."""
        (self.folder / "corpora").mkdir(parents=True, exist_ok=True)
        return write_corpora(self.data, self.folder / "corpora", SIZES[self.size])

    @cached_property
    def session(self) -> Session:
        """What all audits share."""
        return Session(work=self.folder / "work", workers=1, threads=self.threads)

    def model(self, name: str) -> str:
        """A model of the study, trained unless it is there."""
        if name == "base":
            return str(self.base)
        how, role, start = MODELS[name]
        out = self.folder / "models" / name
        started = None if start is None else Path(self.model(start))
        fine_tune(how, self.base, self.corpora[role], out, start=started)
        return str(out)

    def list_audits(self) -> dict[str, Job]:
        """All audits by name, the quickest first; what is true is in `TRUTH`."""
        return {
            **{f"exposure-{name}": self._expose(name) for name in ("target", "base", "full")},
            **{f"extract-{name}": self._extract(name) for name in ("target", "base", "full")},
            **{f"membership-user-{name}": self._infer(name, "user") for name in ("target", "base", "full")},
            "membership-record-target": self._infer("target", "record"),
            "provenance-target": self._trace(self.corpora["audited"]),
            "provenance-held-out": self._trace(self.corpora["held-out"]),
            "membership-lira": self._infer_with_shadows,
            **{f"removal-{name}": self._check_removal(name) for name in ("target", "retrained", "ascent", "rest")},
            "leakage-target": self._leak,
        }

    def _expose(self, name: str) -> Job:
        return lambda: self.session.exposure(self.model(name), canaries=str(self.corpora["canaries"]))

    def _extract(self, name: str) -> Job:
        return lambda: self.session.extract(self.model(name), format=SECRETS.format)

    def _infer(self, name: str, by: str) -> Job:
        signal = {"signal": "loss"} if name == "base" else {"reference": str(self.base)}
        return lambda: self.session.membership(
            self.model(name), str(self.corpora["audited"]), **self._people, by=by, **signal
        )

    def _trace(self, corpus: Path) -> Job:
        known = {"members": str(self.corpora["members.txt"]), "others": "non-members"}
        return lambda: self.session.provenance(
            self.model("target"), str(corpus), **(known if corpus == self.corpora["audited"] else {}), **self._fleet
        )

    def _infer_with_shadows(self) -> AuditResult:
        """LiRA with the shadows of the provenance audit, which never saw a candidate."""
        shadows = self._find_shadows()
        return self.session.membership(
            self.model("target"),
            str(self.corpora["audited"]),
            **self._people,
            by="user",
            signal="lira-offline",
            shadow=list(shadows.values()),
        )

    def _check_removal(self, name: str) -> Job:
        return lambda: self.session.removal(
            self.model(name),
            str(self.corpora["removed"]),
            controls=str(self.corpora["controls"]),
            recipe="lora",
            set=RECIPE,
            models=SHADOWS,
        )

    def _leak(self) -> AuditResult:
        return self.session.leakage(
            self.model("target"),
            str(self.corpora["training"]),
            controls=str(self.corpora["held-out"]),
            recipe="lora",
            set=RECIPE,
            folds=FOLDS,
        )

    def _find_shadows(self) -> dict[str, str]:
        """The folders of the shadows that the provenance audit trained."""
        run = self.folder / "runs" / "provenance-target"
        cohorts = Cohorts.load(next(run.glob("cohorts*controls*.json")))
        found = {}
        for card in sorted((self.folder / "work" / "models").glob("*/card.json")):
            cohort = json.loads(card.read_text(encoding="utf-8"))["cohort"]
            if cohort is not None and cohort["name"] in cohorts.models:
                found[cohort["name"]] = str(card.parent)
        return dict(sorted(found.items()))

    @property
    def _people(self) -> dict[str, str]:
        """Controls, and who is a member."""
        return {
            "controls": str(self.corpora["controls"]),
            "members": str(self.corpora["members.txt"]),
            "others": "non-members",
        }

    @property
    def _fleet(self) -> dict[str, Any]:
        """The shadows: half of the controls train them, the other half calibrates."""
        return {
            "controls": str(self.corpora["controls"]),
            "recipe": "lora",
            "set": RECIPE,
            "shadows": SHADOWS,
            "calibration": 0.5,
        }


MODELS: dict[str, tuple[str, str, str | None]] = {
    "target": ("lora", "training", None),
    "full": ("full", "training", None),
    "retrained": ("lora", "kept", None),
    "ascent": ("ascent", "removed", "target"),
    "rest": ("rest", "kept", "target"),
}
"""How each model is trained, on which corpus, and from which other one."""
TRUTH = {
    "exposure-base": "not_found",
    "extract-base": "not_found",
    "membership-user-base": "not_found",
    "provenance-held-out": "not_found",
    "removal-retrained": "not_found",
}
"""What is true of each audit; of all others `found`. What unlearning leaves behind is what is asked."""


def main() -> None:
    """Run what is named, and write down every verdict beside the truth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="the Hugging Face folder of SmolLM2-135M")
    parser.add_argument("--data", type=Path, required=True, help="the folder with reddit_comments/")
    parser.add_argument("--work", type=Path, default=Path(".recollect") / "smollm2")
    parser.add_argument("--size", choices=list(SIZES), default="full")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--audits", nargs="*", help="some audits; all if none is named")
    given = parser.parse_args()
    study = Study(
        base=given.base, data=given.data, folder=given.work / given.size, size=given.size, threads=given.threads
    )
    for name, job in study.list_audits().items():
        if not given.audits or name in given.audits:
            run_audit(name, job, study.folder)


def run_audit(name: str, job: Job, folder: Path) -> None:
    """Run one audit unless its verdict is there."""
    path = folder / "results" / f"{name}.json"
    if path.exists():
        return
    began, spent = time.monotonic(), time.process_time()
    result = job()
    result.save(folder / "runs" / name)
    row = {
        "outcome": result.outcome,
        "truth": TRUTH.get(name, "found"),
        "verdict": result.verdict if isinstance(result.verdict, str) else str(result.verdict),
        "findings": {finding.name: finding.value for finding in result.findings},
        "seconds": round(time.monotonic() - began, 1),
        "cpu_seconds": round(time.process_time() - spent, 1),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
    }
    write_json(path, row)
    print(f"{name}: {row['outcome']} (truth: {row['truth']}), {row['cpu_seconds']} s CPU", flush=True)


if __name__ == "__main__":
    main()
