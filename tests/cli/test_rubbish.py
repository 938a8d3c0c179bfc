"""Rubbish of all sorts, two thousand times: a status that means something, one clear message, never a traceback."""

from __future__ import annotations

import copy
import json
import random
import re

import pytest
import typer
import yaml
from click.testing import CliRunner

from recollect.cli.app import app, build_command
from recollect.corpora import synthetic
from recollect.results import Finding, Provenance, Result, RunFolder
from recollect.testing.tiny import build_tiny_model, save_tiny

COMMAND = typer.main.get_command(app)
JUNK = [
    None,
    True,
    -1,
    0,
    1e308,
    float("nan"),
    "",
    " ",
    "\x00",
    "🦜",
    "a" * 3000,
    "../..",
    [],
    {},
    [[]],
    {"a": {"b": 1}},
]
JUNK += [
    "mine.jsonl",
    "gpt2",
    "recorded:",
    "python:os:getcwd",
    "hf:",
    "no-such-thing",
    "auc>",
    "1;2",
    "${HOME}",
    "%s%n",
]
PLAN = {
    "models": {"target": "model", "reference": {"model": "model", "window": 16}},
    "corpora": {"audited": {"corpus": "mine.jsonl", "user_column": "user"}, "controls": "others.jsonl"},
    "cohorts": {},
    "members": "mine.txt",
    "others": "non-members",
    "files": {},
    "about": {"system": "shop-bot"},
    "recipe": {"recipe": "word-lstm", "set": {"training.epochs": 1}},
    "audits": {
        "membership": {"signal": "loss", "fpr": [0.1], "by": "user"},
        "leakage": {"top_k": 3, "with": {"corpora": {"audited": "others.jsonl"}}},
        "exposure": {"draws": 100, "method": "sampled", "with": {"files": {"canaries": "mine.canaries.json"}}},
    },
    "limits": {"membership": ["training_p>2"]},
    "seed": 1,
    "threads": 1,
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A folder with a model, corpora, a run, and files that are nothing of the kind."""
    folder = tmp_path_factory.mktemp("rubbish")
    save_tiny(build_tiny_model("gpt2"), folder / "model")
    people = list(synthetic.make_texts(people=30, per_person=1, seed=0))
    for name, chosen in (("mine", people[:5]), ("others", people[5:])):
        rows = [json.dumps({"id": r.id, "user": r.user, "text": r.text[:20]}) for r in chosen]
        (folder / f"{name}.jsonl").write_text("\n".join(rows) + "\n")
    (folder / "mine.txt").write_text(f"{people[0].user}\n{people[1].user}\n")
    (folder / "mine.canaries.json").write_text("{}")
    save_tiny(build_tiny_model("gpt2"), folder / "odd[/b]")
    for name in ("card.json", "exposure-by-epoch.json"):
        (folder / "odd[/b]" / name).write_text("[1")
    (folder / "bytes.bin").write_bytes(bytes(range(256)))
    (folder / "empty.jsonl").touch()
    finding = Finding(
        name="auc", value=0.7, interval=(0.6, 0.8), confidence=0.95, unit="p", n={"users": 3}, method="m", reading="r"
    )
    result = Result(audit="membership", question="Who?", verdict="Found.", outcome="found", findings=(finding,))
    RunFolder(folder / "run").write_result(
        result.with_provenance(Provenance(recollect="0.1.0", seed=0, queries=1, seconds=0.1))
    )
    (folder / "good.yaml").write_text(yaml.safe_dump(PLAN))
    return folder


@pytest.fixture
def call(home, monkeypatch):
    """Runs a command, and sees to it that its end is a decent one."""
    monkeypatch.chdir(home)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    def called(*words):
        done = CliRunner().invoke(COMMAND, [str(word) for word in words], prog_name="recollect")
        told = f"{words} ended with {done.exit_code}: {done.output} {done.exception!r}"
        assert done.exception is None or isinstance(done.exception, SystemExit), told
        assert done.exit_code in (0, 1, 2), told
        assert "Traceback" not in done.output, told
        if done.exit_code == 2:
            complaints = re.findall(r"^recollect: .|─ Error ─", done.stderr, re.MULTILINE)
            assert len(complaints) == 1, told
        return done.exit_code

    return called


def places(value, above=()):
    """All places in nested settings."""
    for key, inner in value.items() if isinstance(value, dict) else ():
        yield (*above, key)
        yield from places(inner, (*above, key))


def spoilt(draw):
    """A plan with a few things changed: values, names, what is there at all."""
    plan = copy.deepcopy(PLAN)
    for _ in range(draw.randint(1, 3)):
        path = draw.choice(list(places(plan)))
        section = plan
        for part in path[:-1]:
            section = section[part]
        value = section.pop(path[-1])
        way = draw.randrange(4)
        if way == 0:
            section[path[-1]] = draw.choice(JUNK)
        elif way == 1:
            section[path[-1][:-1] or "x"] = value
        elif way == 2:
            section[path[-1]] = value
            section[draw.choice(["usr", "x", "audits", "with", ""])] = draw.choice(JUNK)
        if not plan:
            plan = {"audits": None}
    return plan


def torn(draw, text):
    """A text with a few characters lost, added or moved."""
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(text) + 1)
        text = draw.choice(
            [text[:at], text[:at] + text[at + 3 :], text[:at] + draw.choice("{}[]:,&*!|>%@`\"'\t\n#-") + text[at:]]
        )
    return text


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_spoilt_plans(seed, home, call):
    draw = random.Random(seed)
    for _ in range(200):
        plan = yaml.safe_dump(spoilt(draw), allow_unicode=True)
        (home / "plan.yaml").write_text(plan if draw.random() < 0.8 else torn(draw, plan))
        words = [draw.choice(["check", "run"]), "plan.yaml"]
        if draw.random() < 0.3:
            words += ["--only", draw.choice(["membership", "leakage", "removal", ""])]
        if draw.random() < 0.3:
            words += [
                "--set",
                draw.choice(["seed=x", "=", "a.b.c=1", "audits=3", "models.target=[", "limits.membership=[]"]),
            ]
        call(*words)


def options_of(verb):
    """The options of a verb."""
    return [name for each in build_command(verb).params for name in each.opts if name.startswith("--")]


QUIET = ["doctor", "demo"]
"""Verbs that look at the machine, or do what takes minutes."""


VALUES = [
    *("model", "mine.jsonl", "others.jsonl", "empty.jsonl", "bytes.bin", "run", "good.yaml", "absent", ".", "-1", "0"),
    *("3", "odd[/b]", "a=[", "word-lstm", "loss", "a=b", "{digits:2}", "auc>0.5", "", "🦜", "nan", "1e400"),
    *("recorded:run", "hf:x:y", "python:os:getcwd"),
]
"""What is given in place of arguments and options."""


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))])
def test_spoilt_options(seed, home, call):
    draw = random.Random(100 + seed)
    verbs = sorted(set(COMMAND.list_commands(None)) - set(QUIET))
    for _ in range(200):
        verb = draw.choice(verbs)
        words = [verb, *draw.choices(VALUES, k=draw.randint(0, 2))]
        for _ in range(draw.randint(0, 3)):
            name = draw.choice(["--nonsense", *options_of(verb)])
            words += [name] if draw.random() < 0.2 else [name, draw.choice(VALUES)]
        if verb == "train":
            words += ["--out", "absent/model", "--set", "training.epochs=0"]  # no training is worth its time here
        call(*words)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_spoilt_files(seed, home, call):
    draw = random.Random(200 + seed)
    good = home / "run" / "results" / "membership.json"
    kept, people = good.read_text(), (home / "mine.jsonl").read_text()
    try:
        for _ in range(100):
            good.write_text(torn(draw, kept))
            call(*draw.choice([["report", "run"], ["compare", "run", "run"], ["compare", "run", "run", "--json"]]))
            (home / "torn.jsonl").write_bytes(
                torn(draw, people).encode() + draw.choice([b"", b"\xff\xfe", b"\x00" * 9])
            )
            call(*draw.choice([["score", "model", "torn.jsonl"], ["evaluate", "model", "torn.jsonl", "--json"]]))
    finally:
        good.write_text(kept)


def test_limits_are_status_1(home, call):
    words = [
        "membership",
        "model",
        "mine.jsonl",
        "--controls",
        "others.jsonl",
        "--signal",
        "loss",
        "--by",
        "user",
        "--fpr",
        "0.1",
    ]
    assert call(*words, "--fail-if", "training_p>=0") == 1
    assert call(*words, "--fail-if", "training_p<0") == 0
    assert call(*words, "--fail-if", "no_such_number>0") == 2
    assert call("run", "good.yaml", "--only", "membership") == 0
    assert call("run", "good.yaml", "--only", "membership", "--set", "limits.membership=[training_p>=0]") == 1
