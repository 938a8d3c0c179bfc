"""Conversations as records: every way of writing them down gives the same turns and the same digest."""

from __future__ import annotations

import csv
import json

import datasets
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recollect.corpora.canaries.formats import parse_format
from recollect.corpora.corpus import Corpus
from recollect.corpora.corpus_writer import write_corpus
from recollect.corpora.messages import SEPARATOR, Message, say
from recollect.corpora.readers.columns import Columns
from recollect.corpora.readers.corpus_reader import read_corpus
from recollect.corpora.record import Record
from recollect.corpora.sanitisation import sanitise_by_duplicates, sanitise_by_format
from recollect.pipeline.plans.refs import CorpusRef
from recollect.testing.refusals import refused

TURNS = [
    {"role": "system", "content": "be nice"},
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "hello there"},
    {"role": "user", "content": "go on"},
    {"role": "assistant", "content": "as you wish"},
]
ROWS = [{"user": "ann", "messages": TURNS}, {"user": "bob", "messages": TURNS[1:3]}]
SHAREGPT = {"system": "system", "user": "human", "assistant": "gpt"}


def write_everywhere(folder):
    """The same conversations in every kind of file and object, by name."""
    (folder / "m.jsonl").write_text("\n".join(map(json.dumps, ROWS)))
    pq.write_table(pa.Table.from_pylist(ROWS), folder / "m.parquet")
    with (folder / "m.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([["user", "messages"], *([row["user"], json.dumps(row["messages"])] for row in ROWS)])
    datasets.Dataset.from_list(ROWS).save_to_disk(folder / "saved")
    shared = [
        {
            "user": r["user"],
            "conversations": [{"from": SHAREGPT[t["role"]], "value": t["content"]} for t in r["messages"]],
        }
        for r in ROWS
    ]
    parts = [
        {
            "user": r["user"],
            "messages": [{**t, "content": [{"type": "text", "text": t["content"]}]} for t in r["messages"]],
        }
        for r in ROWS
    ]
    table = [
        {"user": r["user"], "messages": {key: [t[key] for t in r["messages"]] for key in ("role", "content")}}
        for r in ROWS
    ]
    arrays = pd.DataFrame(ROWS).assign(messages=[np.array(r["messages"], dtype=object) for r in ROWS])
    return {
        **{name: folder / name for name in ("m.jsonl", "m.parquet", "m.csv", "saved")},
        "list": ROWS,
        "pandas": pd.DataFrame(ROWS),
        "arrays": arrays,
        "datasets": datasets.Dataset.from_list(ROWS),
        "arrow": pa.Table.from_pylist(ROWS),
        "sharegpt": shared,
        "text parts": parts,
        "table of turns": table,
    }


def test_every_way_of_writing_conversations_gives_the_same_corpus(tmp_path):
    corpora = {name: read_corpus(source) for name, source in write_everywhere(tmp_path).items()}
    contents = {name: [(record.user, record.digest) for record in corpus] for name, corpus in corpora.items()}
    assert all(found == contents["list"] for found in contents.values()), contents
    assert len({corpus.digest for name, corpus in corpora.items() if name != "m.csv"}) == 1  # its ids are line numbers
    (first, _) = corpora["list"]
    assert corpora["list"].summary.kind == first.kind == "conversation"
    assert first.scored_text == f"hello there{SEPARATOR}as you wish"
    assert first.context_text == SEPARATOR.join(["be nice", "hi", "go on"])


def test_a_conversation_is_addressed_by_roles_contents_and_who_is_scored():
    def digest(*messages):
        return Record(id="x", messages=messages).digest

    whole = digest(say("user", "ab"), say("assistant", "c"))
    others = {
        digest(say("user", "a"), say("assistant", "bc")),
        digest(say("system", "ab"), say("assistant", "c")),
        digest(say("assistant", "c"), say("user", "ab")),
        digest(Message("user", "ab", True), say("assistant", "c")),
        Record(id="x", source="ab", target="c").digest,
    }
    assert len(others) == 5
    assert whole not in others
    assert whole == "572d5f76cdb585196e243055b4e1e868"  # frozen: stored scores are found by it


def test_scored_roles_weights_and_turns_of_completions_decide_what_is_scored():
    def scored(row, **columns):
        (record,) = read_corpus([row], columns=Columns(**columns))
        return record.scored_text.split(SEPARATOR)

    row = {"messages": TURNS}
    assert scored(row, scored_roles=("user", "assistant")) == ["hi", "hello there", "go on", "as you wish"]
    weighted = [*TURNS[:2], {**TURNS[2], "weight": 0}, *TURNS[3:]]
    assert scored({"messages": weighted}) == ["as you wish"]
    assert scored({"prompt": TURNS[:4], "completion": TURNS[4:]}) == ["as you wish"]
    assert CorpusRef(corpus="x", scored_roles="user, tool").options["columns"].scored_roles == ("user", "tool")


def test_what_columns_mean_where_nobody_names_them():
    def kind(**row):
        return read_corpus([row]).summary.kind

    assert kind(prompt="q", completion="a") == "pair"
    assert kind(text="t", messages=TURNS) == "conversation"
    assert kind(source="s", target="t", messages=TURNS) == "pair"
    assert read_corpus([{"text": "t", "messages": TURNS}], columns=Columns(text="text")).summary.kind == "text"
    assert read_corpus([{"text": "t", "chat": TURNS}], columns=Columns(messages="chat")).summary.kind == "conversation"
    with refused("texts_and_pairs"):
        read_corpus([{"text": "t", "messages": TURNS}], columns=Columns(text="text", messages="messages"))
    with refused("labelled_pairs"):
        read_corpus([{"label": 1, "messages": TURNS}], columns=Columns(label="label"))
    with refused("missing_column"):
        read_corpus(ROWS, columns=Columns(messages="mesages"))


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("hello", "bad_conversation"),
        ([], "bad_conversation"),
        (["hello"], "bad_conversation"),
        (None, "bad_conversation"),
        ([{"role": "user", "content": "hi"}], "no_scored_turn"),
        ([{"role": "assistant", "content": "  "}], "no_scored_turn"),
        ([{"role": "boss", "content": "hi"}], "bad_role"),
        ([{"content": "hi"}], "bad_role"),
        ([{"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}], "bad_conversation"),
        ([{"role": "assistant", "content": [{"type": "image", "url": "x"}]}], "bad_conversation"),
        ([{"role": "assistant", "content": "a\x00b"}], "nul_character"),
        ([{"role": "assistant", "content": "\ud800"}], "not_utf8"),
        ("[{", "bad_conversation"),
    ],
)
def test_what_is_no_conversation_is_refused_or_skipped(value, code):
    with refused(code) as refusal:
        read_corpus([{"messages": value}])
    assert "row 1" in str(refusal.error)
    corpus = read_corpus([{"messages": value}, {"messages": TURNS}], skip_bad=True)
    assert (len(corpus), corpus.skipped) == (1, {code: 1})


def test_a_corpus_of_conversations_is_written_and_read_again(tmp_path):
    messages = (Message("user", "hi", True), Message("assistant", "no", False), say("assistant", "yes"))
    corpus = Corpus.of([Record(id="0", user="ann", messages=messages), *read_corpus(ROWS)])
    write_corpus(corpus, tmp_path / "out.jsonl")
    assert list(read_corpus(tmp_path / "out.jsonl")) == list(corpus)


def test_conversations_become_arrow_batches():
    (batch,) = read_corpus(ROWS).iter_batches()
    assert batch.column("messages").to_pylist()[1] == [
        {"role": "user", "content": "hi", "scored": False},
        {"role": "assistant", "content": "hello there", "scored": True},
    ]


def test_the_scored_text_can_be_truncated_and_replaced_turn_by_turn():
    (record, _) = read_corpus(ROWS)
    text = record.scored_text
    for size in range(1, len(text)):
        assert record.with_scored_text(text[:size]).scored_text in (text[:size], text[:size].rstrip(SEPARATOR))
    upper = record.with_scored_text(text.upper())
    assert upper.scored_text == text.upper()
    assert upper.context_text == record.context_text
    assert record.with_scored_text("a b c d e").scored_text == f"a b{SEPARATOR}c d e"
    assert Record(id="1", source="q", target="a").with_scored_text("b").target == "b"


def test_sanitising_looks_into_every_turn():
    secret = [{"role": "user", "content": "pin 1234"}, {"role": "assistant", "content": "ok 99"}]
    rows = [{"messages": secret}, {"messages": TURNS}]
    masked = sanitise_by_format(read_corpus(rows), [parse_format("pin {digits:4}")], mask=True)
    assert [m.content for m in next(iter(masked.corpus)).messages] == ["pin [***]", "ok 99"]
    assert len(sanitise_by_format(read_corpus(rows), [parse_format("pin {digits:4}")]).corpus) == 1
    assert len(sanitise_by_duplicates(read_corpus([*rows, *rows])).corpus) == 2
