"""Audits of conversations: the same findings as for texts where both are the same tokens, from every door."""

from __future__ import annotations

import json
import warnings

import pytest
from typer.testing import CliRunner

import recollect as rc
from recollect.cli.app import app
from recollect.corpora import synthetic
from recollect.corpora.messages import SEPARATOR
from recollect.errors import RecollectWarning
from recollect.models.loading.loader import load_model
from recollect.models.model import compute_address
from recollect.pipeline.plans.plan import Plan, make_planned_audit
from recollect.pipeline.plans.refs import ModelRef
from recollect.testing.chats import CHATML
from recollect.testing.refusals import refused
from recollect.testing.tiny import build_tiny_model, save_tiny

BARE = "{% for m in messages if m.role == 'assistant' %}{{ bos_token + m.content }}{% endfor %}"
"""A template that writes a reply as the tiny model reads a text."""


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """Two models, one with a template, and the same posts as texts and as replies."""
    folder = tmp_path_factory.mktemp("chats")
    for seed, name in enumerate(("model", "base")):
        tiny = build_tiny_model("llama", window=256, seed=seed)
        if name == "model":
            tiny.tokenizer.chat_template = BARE
        save_tiny(tiny, folder / name)
    posts = list(synthetic.make_texts(people=92, per_person=3))
    for name, chosen in (("posts", posts[:36]), ("others", posts[36:])):
        texts = [{"id": r.id, "user": r.user, "text": r.text} for r in chosen]
        chats = [{"id": r.id, "user": r.user, "messages": [{"role": "assistant", "content": r.text}]} for r in chosen]
        for kind, rows in (("text", texts), ("chat", chats)):
            (folder / f"{name}-{kind}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder


def run(verb, shelf, kind, **options):
    """The findings of an audit of texts or of replies, and its outcome."""
    corpora = {"posts": str(shelf / f"posts-{kind}.jsonl"), "others": str(shelf / f"others-{kind}.jsonl")}
    result = getattr(rc, verb)(
        str(shelf / "model"), corpora["posts"], controls=corpora["others"], work=shelf / "work", **options
    )
    return result.outcome, [(each.name, each.value, each.interval) for each in result.findings]


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        ("membership", {}),
        pytest.param("leakage", {"reference": "base"}, marks=pytest.mark.slow),
        pytest.param("removal", {"reference": "base"}, marks=pytest.mark.slow),
    ],
)
def test_replies_give_the_findings_of_the_same_texts(shelf, verb, options):
    options = {name: str(shelf / value) for name, value in options.items()}
    texts, chats = (run(verb, shelf, kind, **options) for kind in ("text", "chat"))
    assert texts[0] == chats[0]
    assert [name for name, *_ in texts[1]] == [name for name, *_ in chats[1]]
    for (name, one, _), (_, other, _) in zip(texts[1], chats[1], strict=True):
        assert one == pytest.approx(other, abs=1e-3), name


def test_a_reference_without_a_template_renders_as_the_target_does(shelf):
    plan = Plan(
        audit=make_planned_audit("membership", {}),
        models={"target": ModelRef(model=str(shelf / "model")), "reference": ModelRef(model=str(shelf / "base"))},
    )
    models = plan.load_evidence().models
    assert models["reference"].question.chat_template == BARE
    assert load_model(str(shelf / "base")).question.chat_template is None
    assert compute_address(models["reference"]) != compute_address(load_model(str(shelf / "base")))


def test_the_command_line_scores_conversations_by_a_template_from_a_file(shelf, tmp_path):
    (tmp_path / "chatml.jinja").write_text(CHATML)
    arguments = ["score", str(shelf / "base"), str(shelf / "posts-chat.jsonl"), "--work", str(tmp_path / "work")]
    failed = CliRunner().invoke(app, arguments)
    assert failed.exit_code == 2
    done = CliRunner().invoke(app, [*arguments, "--chat-template", str(tmp_path / "chatml.jinja")])
    assert done.exit_code == 0, done.output
    for wrong in ("missing.jinja", "posts.txt"):
        (tmp_path / "posts.txt").write_text("no template")
        refusal = CliRunner().invoke(app, [*arguments, "--chat-template", str(tmp_path / wrong)])
        assert refusal.exit_code == 2


def test_a_text_that_looks_rendered_is_warned_of_once(shelf, tmp_path):
    rows = [{"text": "<|im_start|>user\nhi<|im_end|>"}, {"text": "<|im_start|>user\nho<|im_end|>"}]
    with pytest.warns(RecollectWarning, match="messages") as found:
        rc.score(str(shelf / "model"), rows, work=tmp_path)
    assert len([each for each in found if each.category is RecollectWarning]) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error", RecollectWarning)
        rc.score(str(shelf / "model"), [{"text": "a <s>struck</s> word, <unk>"}], work=tmp_path)


def test_scored_roles_are_an_option_of_every_corpus(shelf, tmp_path):
    rows = [{"messages": [{"role": "user", "content": "the fox"}, {"role": "assistant", "content": "the dog"}]}]
    both = rc.score(str(shelf / "model"), rows, work=tmp_path, scored_roles="user,assistant", chat_template=CHATML)
    (answers,) = both
    assert int(answers.end.max()) == len(f"the fox{SEPARATOR}the dog")
    with refused("unknown_choice"):
        rc.score(str(shelf / "model"), rows, work=tmp_path, scored_roles="usr")
