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
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from chats import CHAT_SIZES, USER_TURN, write_chats
from finetuning import LORA, RATES, fine_tune
from people import SECRETS, SIZES, write_corpora

from recollect.corpora.canaries.insertion import plant
from recollect.corpora.canaries.manifest import Canaries
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus_writer import write_corpus
from recollect.files import write_json
from recollect.session import AuditResult, Session

RECIPE = {"model.adapter.targets": LORA["target_modules"], "training.learning_rate": RATES["lora"]}
"""What `lora` must be told to train as the target was trained."""
SHADOWS = 4
NULL_SETS = 40
"""Other draws of as many secrets, planted nowhere, by which the false positives of exposure are counted."""
CHAT = "chat-"
"""What the names of models, corpora and audits of the chat half begin with."""
Job = Callable[[], AuditResult]
MODELS: dict[str, tuple[str, str, str | None]] = {
    "target": ("lora", "training", None),
    "full": ("full", "training", None),
    "retrained": ("lora", "kept", None),
    "ascent": ("ascent", "removed", "target"),
    "rest": ("rest", "kept", "target"),
    "chat-target": ("lora", "chat-training", None),
    "chat-retrained": ("lora", "chat-kept", None),
}
"""How each model is trained, on which corpus, and from which other one."""
NOT_FOUND = (
    "exposure-base",
    "membership-user-base",
    "provenance-held-out",
    "removal-retrained",
    "chat-exposure-base",
    "chat-membership-user-base",
    "chat-removal-retrained",
)
"""Audits of which it is true that there is nothing to find."""
OPEN = (
    "extract-target",
    "extract-base",
    "extract-full",
    "leakage-target",
    "leakage-full",
    "removal-ascent",
    "removal-rest",
    "chat-extract-target",
    "chat-leakage-target",
)
"""Audits of which nothing is known beforehand: what a trained model reproduces, and what unlearning leaves behind.
Of an extraction it is counted how many of the listed secrets were planted."""


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
        """The corpora by role, those of conversations with `CHAT` before it."""
        for half in ("corpora", "chats"):
            (self.folder / half).mkdir(parents=True, exist_ok=True)
        chats = write_chats(self.data, self.folder / "chats", CHAT_SIZES[self.size])
        texts = write_corpora(self.data, self.folder / "corpora", SIZES[self.size])
        return {**texts, **{CHAT + role: path for role, path in chats.items()}}

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
        """All audits by name, the quickest first."""
        three = ("target", "base", "full")
        jobs = {
            **{f"exposure-{name}": partial(self._expose, name) for name in three},
            **{f"extract-{name}": partial(self._extract, name) for name in three},
            **{f"membership-user-{name}": partial(self._infer, name, "user") for name in three},
            "membership-record-target": partial(self._infer, "target", "record"),
            "leakage-full": partial(self._leak, "full"),
            "provenance-target": partial(self._trace, "audited"),
            "provenance-held-out": partial(self._trace, "held-out"),
            "membership-lira": self._infer_with_shadows,
            **{f"removal-{name}": partial(self._check, name) for name in ("target", "retrained", "ascent", "rest")},
            "leakage-target": self._leak_with_folds,
            "exposure-target-bf16": partial(self._expose, "target", precision="bfloat16"),
            "membership-user-target-bf16": partial(self._infer, "target", "user", precision="bfloat16"),
        }
        chats = {
            "exposure-target": partial(self._expose, "chat-target"),
            "exposure-base": partial(self._expose, "base", CHAT),
            "extract-target": partial(self._extract, "chat-target"),
            "membership-user-target": partial(self._infer, "chat-target", "user"),
            "membership-user-base": partial(self._infer, "base", "user", CHAT),
            "leakage-target": partial(self._leak, "chat-target"),
            **{f"removal-{name}": partial(self._check_beside_base, CHAT + name) for name in ("target", "retrained")},
        }
        return {**jobs, **{CHAT + name: job for name, job in chats.items()}}

    def count_extracted(self, result: AuditResult, half: str) -> dict[str, float]:
        """How many of the secrets that an extraction lists were planted, and the place of the first of them."""
        canaries = Canaries.load(self.corpora[half + "canaries"]).canaries
        planted = {canary.text for canary in canaries if canary.planted}
        places = [
            place for place, text in enumerate(result.table("secrets")["secret"].to_pylist(), 1) if text in planted
        ]
        return {"planted_among_listed": len(places), **({"place_of_first_planted": places[0]} if places else {})}

    def compare_precisions(self) -> None:
        """Write down by how much scores in bfloat16 differ from those in float32; both are there after the audits."""
        corpus = self.session.read(self._get("audited"))
        exact, rough = (
            self.session.score(self.model("target"), corpus, precision=precision).get_answers(corpus)
            for precision in ("float32", "bfloat16")
        )
        apart, likely = np.abs(exact.logprob - rough.logprob), exact.rank <= 10
        row = {
            "tokens": len(apart),
            "median": float(np.median(apart)),
            "largest": float(apart.max()),
            "equal_rank": float((exact.rank == rough.rank).mean()),
            "equal_rank_of_top_10": float((exact.rank == rough.rank)[likely].mean()),
        }
        write_json(self.folder / "precision.json", row)

    def count_false_exposures(self) -> None:
        """Write down in how many draws of secrets that were planted nowhere the base is said to have memorised some."""
        path = self.folder / "null_exposures.json"
        rows = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
        members = self.session.read(self._get("members"))
        for seed in range(len(rows) + 1, NULL_SETS + 1):
            drawn = self.folder / "corpora" / "null.canaries.json"
            plant(members, replace(SECRETS, seed=seed))[1].save(drawn)
            result = self._expose("base", canaries=str(drawn))
            rows.append({"outcome": result.outcome, "any_memorised_p": result["any_memorised_p"].value})
            write_json(path, rows)

    def _get(self, role: str, half: str = "") -> str:
        """The corpus of a role."""
        return str(self.corpora[half + role])

    def _expose(self, name: str, half: str = "", **options: Any) -> AuditResult:
        half, steps = half or _find_half(name), SIZES[self.size].steps
        draws = (CHAT_SIZES if half else SIZES)[self.size].draws
        settings = {"canaries": self._get("canaries", half), "draws": draws, "max_steps": steps, **options}
        return self.session.exposure(self.model(name), **settings)

    def _extract(self, name: str) -> AuditResult:
        turn = {"user_turn": USER_TURN} if _find_half(name) else {}
        return self.session.extract(self.model(name), format=SECRETS.format, show_text=True, **turn)

    def _infer(self, name: str, by: str, half: str = "", **options: Any) -> AuditResult:
        """With the base as reference; the base itself has none."""
        half = half or _find_half(name)
        signal = {"signal": "loss"} if name == "base" else {"reference": str(self.base)}
        audited = self._get("audited", half)
        return self.session.membership(self.model(name), audited, **self._get_people(half), by=by, **signal, **options)

    def _trace(self, role: str) -> AuditResult:
        """With shadows trained on halves of one half of the controls; the other half calibrates."""
        known = {"members": self._get("members.txt"), "others": "non-members"} if role == "audited" else {}
        return self.session.provenance(
            self.model("target"),
            self._get(role),
            controls=self._get("controls"),
            recipe="lora",
            set=RECIPE,
            shadows=SHADOWS,
            calibration=0.5,
            **known,
        )

    def _infer_with_shadows(self) -> AuditResult:
        """LiRA with the shadows of the provenance audit, which never saw a candidate: a plan names their cohorts."""
        people = self._get_people()
        shadows = {f"shadow-{i}": folder for i, folder in enumerate(self._find_shadows())}
        plan = {
            "models": {"target": self.model("target"), **shadows},
            "corpora": {"audited": self._get("audited"), "controls": people["controls"]},
            "cohorts": {"controls": str(self._get_cohorts_path())},
            "members": people["members"],
            "others": people["others"],
            "audits": {"membership": {"by": "user", "signal": "lira-offline"}},
            "work": str(self.folder / "work"),
            "workers": 1,
            "threads": self.threads,
        }
        path = self.folder / "lira.yaml"
        write_json(path, plan)  # which is YAML too
        (result,) = self.session.run(path, out=self.folder / "runs" / "membership-lira")
        return result

    def _check(self, name: str) -> AuditResult:
        """Calibrated by the shadows of the provenance audit: the controls are the users whom these are trained on."""
        controls = self.folder / "corpora" / "shadow-users.jsonl"
        if not controls.exists():
            cohorts = self._read_cohorts()
            trained = {user for model in cohorts.models for user in cohorts.members(model)}
            write_corpus(self.session.read(self._get("controls")).select_users(trained), controls)
        return self.session.removal(
            self.model(name), self._get("removed"), controls=str(controls), recipe="lora", set=RECIPE, models=SHADOWS
        )

    def _check_beside_base(self, name: str) -> AuditResult:
        """Without calibration models: beside the base, which saw nobody."""
        removed, controls = self._get("removed", CHAT), self._get("controls", CHAT)
        return self.session.removal(self.model(name), removed, controls=controls, reference=str(self.base), models=0)

    def _leak(self, name: str) -> AuditResult:
        """Beside the base, which saw nobody."""
        members, controls = (self._get(role, _find_half(name)) for role in ("members", "controls"))
        return self.session.leakage(self.model(name), members, controls=controls, reference=str(self.base))

    def _leak_with_folds(self) -> AuditResult:
        """Beside models each of which was trained without some of the members."""
        members, controls, folds = self._get("members"), self._get("controls"), SIZES[self.size].folds
        return self.session.leakage(
            self.model("target"), members, controls=controls, recipe="lora", set=RECIPE, folds=folds
        )

    def _get_cohorts_path(self) -> Path:
        """The file that says which controls trained which shadow of the provenance audit, which is run first."""
        return self.folder.resolve() / "runs" / "provenance-target" / "cohorts-controls.json"

    def _read_cohorts(self) -> Cohorts:
        """Which controls trained which shadow of the provenance audit."""
        return Cohorts.load(self._get_cohorts_path())

    def _find_shadows(self) -> list[str]:
        """The folders of these shadows."""
        found, names = {}, self._read_cohorts().models
        for card in sorted((self.folder / "work" / "models").glob("*/card.json")):
            cohort = json.loads(card.read_text(encoding="utf-8"))["cohort"]
            if cohort is not None and cohort["name"] in names:
                found[cohort["name"]] = str(card.parent)
        return [found[name] for name in names]

    def _get_people(self, half: str = "") -> dict[str, str]:
        """Controls, and who is a member."""
        return {
            "controls": self._get("controls", half),
            "members": self._get("members.txt", half),
            "others": "non-members",
        }


def _find_half(model: str) -> str:
    """What the corpora of a model are called."""
    return CHAT if model.startswith(CHAT) else ""


def main() -> None:
    """Run what is named, and write down every verdict beside the truth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", type=Path, required=True, help="the Hugging Face folder of SmolLM2-135M")
    parser.add_argument("--data", type=Path, required=True, help="the folder with reddit_comments/ and chitchat/")
    parser.add_argument("--work", type=Path, default=Path(".recollect") / "smollm2")
    parser.add_argument("--size", choices=list(SIZES), default="full")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--audits", nargs="*", help="some audits; all if none is named")
    given = parser.parse_args()
    study = Study(
        base=given.base, data=given.data, folder=given.work / given.size, size=given.size, threads=given.threads
    )
    study.folder.mkdir(parents=True, exist_ok=True)
    write_json(study.folder / "planned.json", list(study.list_audits()))
    for name, job in study.list_audits().items():
        if not given.audits or name in given.audits:
            run_audit(name, job, study)
    if not given.audits:
        study.count_false_exposures()
    if (study.folder / "results" / "membership-user-target-bf16.json").exists():
        study.compare_precisions()


def run_audit(name: str, job: Job, study: Study) -> None:
    """Run one audit unless its verdict is there."""
    path = study.folder / "results" / f"{name}.json"
    if path.exists():
        return
    began, spent = time.monotonic(), time.process_time()
    result = job()
    result.save(study.folder / "runs" / name)
    findings = {finding.name: finding.value for finding in result.findings}
    if result.audit == "extraction":
        findings |= study.count_extracted(result, CHAT if name.startswith(CHAT) else "")
    row = {
        "outcome": result.outcome,
        "truth": "not_found" if name in NOT_FOUND else "open" if name in OPEN else "found",
        "verdict": result.verdict if isinstance(result.verdict, str) else str(result.verdict),
        "findings": findings,
        "seconds": round(time.monotonic() - began, 1),
        "cpu_seconds": round(time.process_time() - spent, 1),
        "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
    }
    write_json(path, row)
    print(f"{name}: {row['outcome']} (truth: {row['truth']}), {row['cpu_seconds']} s CPU", flush=True)


if __name__ == "__main__":
    main()
