"""Every number of the audit, against a reader who goes through all texts word by word."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from recollect.audits.leakage.audit import LeakageAudit
from recollect.audits.rounds import collect_evidence
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.signals.evidence import Evidence
from recollect.streams import stream
from recollect.testing.fakes import Null
from recollect.testing.world import WorldAnswers

WORDS = ["the", "The", "cat", "é", "e\u0301", "ß", "12", "sat", "on", "a", "mat", "again"]


def corpus_of(seed, users=5):
    rng = np.random.default_rng(seed)
    drawn = [" ".join(WORDS[int(i)] for i in rng.integers(len(WORDS), size=rng.integers(0, 15))) for _ in range(20)]
    return Corpus.of(
        [Record(id=str(i), user=f"u{rng.integers(users)}", text=drawn[rng.integers(len(drawn))]) for i in range(40)]
    )


def runs_in(words, ranks, k, least):
    """First and last place of every maximal run."""
    hits = [1 <= rank <= k for rank in ranks]
    runs, begin = [], None
    for i, hit in enumerate([*hits, False]):
        if hit and begin is None:
            begin = i
        if not hit and begin is not None:
            runs.append((begin, i))
            begin = None
    return [(a, b) for a, b in runs if b - a >= least and words]


def contains(words, run):
    return sum(words[i : i + len(run)] == run for i in range(len(words) - len(run) + 1))


def twin(corpus, target, reference, k, least):
    """By unique run: its user, times, the largest epsilon, and how often it was said."""
    records = list(corpus)
    ours, theirs = ({r.id: m.answer([r]) for r in records} for m in (target, reference))
    said = defaultdict(list)
    for record in records:
        words = record.text.split()
        for a, b in runs_in(words, ours[record.id].rank, k, least):
            gain = ours[record.id].logprob[a:b].astype(float).sum() - theirs[record.id].logprob[a:b].astype(float).sum()
            said[tuple(words[a:b])].append((record.user, gain / (b - a)))
    found = {}
    for run, places in said.items():
        times = [(record.user, contains(record.text.split(), list(run))) for record in records]
        owners = {user for user, n in times if n}
        if len(owners) == 1:
            epsilon = max(value for _, value in places)
            found[run] = (owners.pop(), sum(n for _, n in times), epsilon, len(places))
    return found, len(said)


def grouped(found, key):
    """Sequences, users, largest, median and 99th percentile of epsilon by some key."""
    groups = defaultdict(list)
    for run, row in found.items():
        groups[key(run, row)].append((run, row))
    return {
        name: (
            len(rows),
            len({row[0] for _, row in rows}),
            max(row[2] for _, row in rows),
            *np.quantile([row[2] for _, row in rows], [0.5, 0.99]),
            max(row[2] * len(run) for run, row in rows),
        )
        for name, rows in groups.items()
    }


def table(result, name):
    columns = ("sequences", "users", "epsilon", "epsilon_median", "epsilon_p99", "epsilon_sum")
    rows = result.tables_in_memory[name].to_pylist()
    return {next(iter(row.values())): tuple(row[column] for column in columns) for row in rows}


def same(ours, theirs):
    assert ours.keys() == theirs.keys()
    for key, row in ours.items():
        assert row == pytest.approx(theirs[key], rel=1e-5), key


@pytest.mark.parametrize(("seed", "least"), [(0, 1), (1, 1), (2, 2), (3, 1), (4, 3)])
def test_sequences_users_and_groups_are_those_of_a_reader_who_goes_word_by_word(seed, least):
    corpus, models = corpus_of(seed), {"target": Null(seed=seed, noise=2.0), "reference": Null(seed=9, noise=2.0)}
    audit = LeakageAudit(top_k=5, min_length=least, show_text=True)
    given = Evidence(models=models, corpora={"audited": corpus})
    evidence = collect_evidence(audit, given, score=lambda model, texts: WorldAnswers(model), train=None)
    result = audit.run(evidence, stream(0, audit.name))
    by_k = {k: twin(corpus, models["target"], models["reference"], k, least) for k in (1, 3, 5)}
    found, distinct = by_k[5]
    assert found, "the test compares nothing"
    rows = {tuple(row["text"].split(" ")): row for row in result.tables_in_memory["sequences"].to_pylist()}
    same(
        {run: (row["times"], row["epsilon"], row["predicted"], row["words"]) for run, row in rows.items()},
        {run: (times, epsilon, n, len(run)) for run, (_, times, epsilon, n) in found.items()},
    )
    assert {run: row["user"] for run, row in rows.items()} == {run: row[0] for run, row in found.items()}
    assert all(row["users"] == 1 for row in rows.values())
    same(table(result, "by_length"), grouped(found, lambda run, _: len(run)))
    same(table(result, "by_times"), grouped(found, lambda _, row: 1 << (row[1] - 1).bit_length()))
    same(
        table(result, "by_k"),
        {k: next(iter(grouped(each, lambda *_: 0).values())) for k, (each, _) in by_k.items() if each},
    )
    epsilons = [row[2] for row in found.values()]
    values = {each.name: each.value for each in result.findings}
    assert values["leakage_epsilon"] == pytest.approx(max(epsilons))
    assert values["leakage_epsilon_median"] == pytest.approx(np.median(epsilons))
    assert values["leakage_epsilon_p99"] == pytest.approx(np.quantile(epsilons, 0.99))
    assert values["leakage_epsilon_sum"] == pytest.approx(max(row[2] * len(run) for run, row in found.items()))
    once = [row[2] for row in found.values() if row[1] == 1]
    assert values.get("leakage_epsilon_once") == (pytest.approx(max(once)) if once else None)
    assert result.finding("unique_sequences").value == len(found)
    assert result.finding("unique_sequences").n["sequences"] == distinct
    users = {row["user"]: (row["sequences"], row["epsilon"]) for row in result.tables_in_memory["users"].to_pylist()}
    expected = grouped(found, lambda _, row: row[0])
    assert users.keys() == {record.user for record in corpus}
    for user, (sequences, epsilon) in users.items():
        assert (sequences, epsilon) == (
            (0, None) if user not in expected else (expected[user][0], pytest.approx(expected[user][2]))
        )
