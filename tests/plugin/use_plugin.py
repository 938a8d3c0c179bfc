"""What users do once the plug-in is installed, in a process and a folder of its own; prints what each step gave."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path

import recollect
from recollect.cli import main
from recollect.models.answer_store.recorded_model import write_recording
from recollect.signals.evidence import AUDITED, CONTROLS
from recollect.testing.world import World

WORLD = World(seed=1)  # audited and controls that the guard finds comparable


def run_command(*words: str) -> str:
    """What a command prints; it must end well."""
    printed = io.StringIO()
    sys.argv[1:] = words
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main()
    return printed.getvalue()


def write_inputs() -> None:
    """The corpora as files, and a model that memorised the members, as the scores it gave."""
    for role in WORLD.corpora:
        Path(f"{role}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows(role)), encoding="utf-8")
    model = WORLD.build_memoriser()
    answers = [model.answer(list(corpus)) for corpus in WORLD.corpora.values()]
    write_recording(answers, Path("recorded"), name="memoriser", kind=model.kind, access=model.access)
    plan = {
        "models": {"target": "recorded:recorded"},
        "corpora": {role: f"{role}.jsonl" for role in WORLD.corpora},
        "audits": {"fluency": {"top_k": 2}},
        "limits": {"fluency": ["auc>0.99"]},
        "out": "planned",
    }
    Path("plan.yaml").write_text(json.dumps(plan), encoding="utf-8")  # JSON is YAML


def rows(role: str) -> list[dict[str, str | None]]:
    """A corpus as a list of rows."""
    return [{"id": record.id, "user": record.user, "text": record.text} for record in WORLD.corpora[role]]


def call_from_python() -> dict[str, object]:
    """The function of the audit, on objects in memory."""
    members = sorted({record.owner for record in WORLD.member_records})
    result = recollect.fluency(
        WORLD.build_memoriser(), rows(AUDITED), controls=rows(CONTROLS), members=members, others="non-members", top_k=2
    )
    return {
        "doc": recollect.fluency.__doc__,
        "findings": {each.name: each.value for each in result.findings},
        "people": result.table("people").num_rows,
        "html": result._repr_html_(),
    }


def check_contracts() -> list[str]:
    """The contracts, which raise where they are broken."""
    from recollect.audits.registry import build_audit
    from recollect.signals.registry import make_signal
    from recollect.testing.contracts import check_audit, check_signal

    check_audit(build_audit("fluency"))
    check_signal(make_signal("top-share"))
    return ["fluency", "top-share"]


if __name__ == "__main__":
    write_inputs()
    on_files = ("recorded:recorded", "audited.jsonl", "--controls", "controls.jsonl")
    seen = {
        "list": json.loads(run_command("list", "--json")),
        "verbs": run_command("--help"),
        "help": run_command("fluency", "--help"),
        "check": run_command("check", "plan.yaml", "--json"),
        "run": run_command("run", "plan.yaml"),
        "verb": json.loads(run_command("fluency", *on_files, "--top-k", "2", "--out", "called", "--json")),
        "listed": run_command("fluency", *on_files),
        "signal": json.loads(run_command("membership", *on_files, "--signal", "top-share", "--json")),
        "again": run_command("run", "called/plan.yaml"),
        "python": call_from_python(),
        "contracts": check_contracts(),
        "dir": dir(recollect),
        "torch": "torch" in sys.modules,
    }
    json.dump(seen, sys.stdout)
