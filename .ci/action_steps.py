"""Run the steps of action/action.yml where there is no GitHub: inputs, outputs, conditions, exit status.

python .ci/action_steps.py plan=audit.yaml requirement= out=run
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml

ACTION = Path(__file__).resolve().parents[1] / "action" / "action.yml"


def run_action(given: dict[str, str], action: Path = ACTION) -> tuple[int, dict[str, str], str]:
    """The exit status of the action, its outputs, and the summary that it wrote.

    Args:
        given: The inputs, by name; others have their defaults.
        action: The file that declares the action.
    """
    declared = yaml.safe_load(action.read_text(encoding="utf-8"))
    inputs = {name: str(each.get("default", "")) for name, each in declared["inputs"].items()}
    if unknown := [name for name in given if name not in inputs]:
        raise SystemExit(f"no such input: {', '.join(unknown)}")
    if missing := [name for name, each in declared["inputs"].items() if each.get("required") and name not in given]:
        raise SystemExit(f"missing input: {', '.join(missing)}")
    context = {f"inputs.{name}": value for name, value in (inputs | given).items()}
    status = 0
    with tempfile.TemporaryDirectory() as scratch:
        summary = Path(scratch) / "summary"
        summary.touch()
        for step in declared["runs"]["steps"]:
            if _is_wanted(step, context, status):
                status = _run_step(step, context, Path(scratch)) or status
        outputs = {name: _fill(each["value"], context) for name, each in declared["outputs"].items()}
        return status, outputs, summary.read_text(encoding="utf-8")


def _is_wanted(step: dict[str, Any], context: dict[str, str], status: int) -> bool:
    """Whether a step is run: its condition holds, and no step before it failed unless it is run always."""
    condition = str(step.get("if", "success()"))
    if condition == "always()":
        return True
    found = re.fullmatch(r"(inputs\.[\w-]+) != ''", condition)
    return status == 0 and (condition == "success()" or (found is not None and context[found[1]] != ""))


def _run_step(step: dict[str, Any], context: dict[str, str], scratch: Path) -> int:
    """One step in bash, with its environment; what it writes to GITHUB_OUTPUT becomes context."""
    output = scratch / "output"
    output.write_text("", encoding="utf-8")
    env = {name: _fill(value, context) for name, value in step.get("env", {}).items()}
    files = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(scratch / "summary")}
    print(f"== {step['name']}", flush=True)  # noqa: T201
    # GitHub runs bash with these options
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(command, env={**os.environ, **env, **files}, check=False)  # noqa: S603
    for line in output.read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition("=")
        context[f"steps.{step.get('id')}.outputs.{name}"] = value
    return done.returncode


def _fill(text: str, context: dict[str, str]) -> str:
    """A text with its expressions filled in."""
    return re.sub(r"\$\{\{ *([\w.-]+) *\}\}", lambda found: context.get(found[1], ""), str(text))


if __name__ == "__main__":
    code, results, _ = run_action(dict(word.split("=", 1) for word in sys.argv[1:]))
    print(results)  # noqa: T201
    raise SystemExit(code)
