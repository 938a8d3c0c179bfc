"""The study of false positives: ten of its cells on small made-up scores, and how it counts."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from recollect.corpora.record import Record
from recollect.models.answers import Answers
from recollect.stats.significance import binomial_p

PEOPLE, RECORDS, WORLDS = 330, 4, 8
CELLS = (
    ("membership-user-loss", "1-record"),
    ("membership-user-ratio", "one-1-record"),
    ("membership-user-loss", "known"),
    ("membership-user-loss", "heavy-tails"),
    ("membership-user-lira", "equal"),
    ("membership-record-loss", "short"),
    ("leakage", "sixth-controls"),
    ("provenance", "one"),
    ("exposure", "secrets-5"),
    ("removal-set", "equal"),
)


@pytest.fixture(scope="module")
def people(nulls):
    """People who write at random, each in a way of their own."""
    rng = np.random.default_rng(0)
    records = {
        f"u{i:03d}": tuple(Record(id=f"u{i:03d}/{j}", user=f"u{i:03d}", text=_write(rng)) for j in range(RECORDS))
        for i in range(PEOPLE)
    }
    moments = {user: str(rng.integers(100, 999)) for user in records}
    return nulls("people").People(name="made-up", amount=RECORDS, records=records, moments=moments)


@pytest.fixture(scope="module")
def trained(nulls, people, tmp_path_factory):
    """Two targets with a reference and a fleet that all saw nobody: scores depend on word, person and record alone."""
    folder = tmp_path_factory.mktemp("nulls")
    stored, division = nulls("stored"), nulls("people").divide(people, 0, 0)
    shadows = nulls("trainings")._draw_shadows(division, 0)
    for number, name in enumerate(["target-0", "target-1", "reference-0", *(f"fleet-0-{each}" for each in shadows)]):
        stored.store_answers(
            _Guesser(number), [r for each in people.records.values() for r in each], folder / f"{name}.npz"
        )
    secrets = nulls("exposures").build_secrets(people)
    for number in range(2):
        stored.store_answers(_Guesser(number), secrets, folder / f"target-{number}-secrets.npz")
    build = nulls("trainings").Trained
    return [
        build(number=i, fleet=0, people=people, division=nulls("people").divide(people, i, 0), folder=folder)
        for i in range(2)
    ]


@pytest.mark.parametrize(("method", "design"), CELLS, ids=lambda name: name)
def test_an_audit_of_people_whom_the_model_never_saw_keeps_its_error_rate(nulls, trained, method, design):
    cells, worlds = nulls("cells"), nulls("worlds")
    small = nulls("designs").DESIGNS[design]
    small = replace(small, audited=min(small.audited, 8), controls=5 if method == "exposure" else 39)
    cell = cells.Cell(method=cells.METHODS[method], design=small, worlds=WORLDS)
    said = [worlds.run_world(cell, trained[i % 2], i) for i in range(WORLDS)]
    assert not any(each.outcome == "refused" for each in said)
    for claim in ("found", "named", "low_p"):
        count = sum(each.outcome == "found" if claim == "found" else bool(getattr(each, claim)) for each in said)
        assert binomial_p(count, WORLDS, 0.05) > 0.001, (claim, count)
    if small.exchangeable:
        guarded = sum(each.code in ("not_comparable", "explained_by_texts", "placebo_failed") for each in said)
        assert binomial_p(guarded, WORLDS, 0.10) > 0.001


def test_an_audit_finds_people_of_whom_the_model_is_surer(nulls, trained, people):
    """The worlds can fail: where the target does know the audited, they are found."""
    cells, designs, worlds = nulls("cells"), nulls("designs"), nulls("worlds")
    cell = cells.Cell(method=cells.METHODS["membership-user-loss"], design=designs.DESIGNS["equal"], worlds=1)
    world = designs.draw_world(
        trained[0],
        replace(cell.design, controls=39),
        designs.Pools(audited=trained[0].division.unseen),
        np.random.default_rng(0),
    )
    answers = trained[0].target.answers
    audited = {record.digest for record in world.corpora["audited"]}
    surer = np.repeat([record in audited for record in answers.records], np.diff(answers.offsets))
    known = nulls("stored").change_logprobs(trained[0].target, answers.logprob + 3 * surer, "surer")
    evidence = worlds.build_evidence(cell.method, trained[0], world)
    audit = cell.method.make()
    evidence = replace(evidence, models={**evidence.models, "target": known})
    complete = nulls("recollect.audits.rounds").collect_evidence(
        audit, evidence, score=lambda model, corpus: model, train=lambda *_: {}
    )
    said = worlds.read_result(audit.run(complete, np.random.default_rng(0)), trained[0], {}, 0)
    assert (said.outcome, said.named) == ("found", True)


def test_a_rate_is_tested_with_the_target_as_cluster(nulls):
    test_rate = nulls("rates").test_rate
    alike, clustered = test_rate([4] * 5, [40] * 5, 0.05), test_rate([20, 0, 0, 0, 0], [40] * 5, 0.05)
    assert alike == pytest.approx(binomial_p(20, 200, 0.05), rel=0.01)
    assert clustered > 10 * alike
    assert test_rate([0] * 5, [40] * 5, 0.05) == 1


def test_worlds_that_were_drawn_are_not_drawn_again(nulls, trained, tmp_path):
    cells, worlds = nulls("cells"), nulls("worlds")
    design = replace(nulls("designs").DESIGNS["one"], controls=19)
    cell = cells.Cell(method=cells.METHODS["membership-user-loss"], design=design, worlds=12)
    file = tmp_path / "cell.json"
    first = worlds.run_cell(cell, trained.__getitem__, file, turns=worlds.Turns(until=2, targets=2))
    assert len(json.loads(file.read_text())) == 2
    asked = []
    turns = worlds.Turns(until=3, targets=2)
    both = worlds.run_cell(cell, lambda i: asked.append(i) or trained[i], file, turns=turns)
    assert (both[:2], len(both), asked) == (first, 3, [0])
    asked.clear()
    again = replace(turns, again=True)
    assert worlds.run_cell(cell, lambda i: asked.append(i) or trained[i], file, turns=again) == both
    assert asked == [], "the same version drew them, so that a run that was killed goes on"
    worlds.run_cell(cell, lambda i: asked.append(i) or trained[i], file, turns=replace(again, rules="another"))
    assert asked == [0, 1, 0]


def test_worlds_that_were_counted_are_added_to_and_counted_once(nulls):
    counts, said = nulls("counts"), nulls("worlds").Said
    every = [
        said(set="irc", target=i % 2, number=i, outcome=outcome, code=code, intervals={"auc": i != 5})
        for i, (outcome, code) in enumerate(
            [("found", None), ("not_found", None), ("inconclusive", "not_comparable")] * 3
        )
    ]
    every = [replace(each, rules="old" if each.number < 4 else "new") for each in every]
    kept = counts.count_worlds(every[:4])
    whole = counts.count_worlds(every)
    assert counts.add_worlds(kept, every[4:]) == counts.add_worlds(kept, every[2:]) == whole
    assert whole.rules == {"old": 4, "new": 5}
    assert sum(each.guarded for each in whole.targets.values()) == 3
    assert [list(each.intervals["auc"]) for each in whole.targets.values()] == [[5, 5], [4, 3]]
    again = counts.add_worlds(whole, every[:2])
    assert again.worlds == 2, "worlds drawn from the first one on replace what was kept"
    assert counts.Drawn.from_json(json.loads(json.dumps(asdict(whole)))) == whole


def test_a_version_of_the_rules_is_of_one_audit_and_of_what_all_audits_share(nulls, tmp_path):
    digest_rules = nulls("counts").digest_rules
    files = ("audits/removal/ema.py", "audits/membership/audit.py", "audits/common/guard.py", "audits/rounds.py")
    versions = []
    for i, changed in enumerate(("", *files)):
        for file in files:
            path = tmp_path / str(i) / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f'"""Docs {i}."""\nx = {int(file == changed)}\n')
        versions.append([digest_rules(audit, tmp_path / str(i)) for audit in ("removal", "membership")])
    moved = [[one != two for one, two in zip(each, versions[0], strict=True)] for each in versions]
    assert moved == [[False, False], [True, False], [False, True], [True, True], [True, True]]


def test_targets_have_fleets_of_their_own(nulls, people):
    study = nulls("people")
    fleets = [frozenset(study.divide(people, i, i % study.FLEETS).fleet) for i in range(study.TARGETS)]
    assert len(set(fleets)) == study.TARGETS


@pytest.mark.parametrize(
    ("counts", "failing"),
    [
        ({"found": 4}, []),
        ({"found": 9}, ["membership-user-loss.equal"]),
        ({"named": 9, "found": 2}, ["membership-user-loss.equal"]),
        ({"low_p": 9, "p_told": 54}, ["membership-user-loss.equal"]),
        ({"guarded": 5, "inconclusive": 5}, []),
        ({"guarded": 13, "inconclusive": 13}, ["membership-user-loss.equal"]),
        ({"intervals": {"auc": [54, 51]}}, []),
        ({"intervals": {"auc": [54, 46]}}, ["coverage of membership `auc`"]),
    ],
)
def test_the_table_fails_where_a_rate_is_too_high_or_an_interval_covers_too_rarely(
    nulls, tmp_path, monkeypatch, capsys, counts, failing
):
    """800 worlds of 15 targets, each with these counts in 54 worlds; and two cells beside it that hold."""
    table, cell = nulls("table"), nulls("counts")
    targets = {str(i): cell.Counts(worlds=54, **counts) for i in range(5)}
    fine = {str(i): cell.Counts(worlds=54, found=2) for i in range(5)}
    kept = {
        name: {each: asdict(cell.Drawn(worlds=270, rules={"x": 270}, targets=said)) for each in nulls("people").TEXTS}
        for name, said in (
            ("membership-user-loss.equal", targets),
            ("membership-user-loss.1-record", fine),
            ("removal-set.equal", fine),
        )
    }
    (tmp_path / "results.json").write_text(json.dumps(kept))
    monkeypatch.setattr(table, "SUMMARY", tmp_path / "results.json")
    monkeypatch.setattr(table, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr("sys.argv", ["table.py"])
    assert table.main() == int(bool(failing))
    assert [line[5:] for line in capsys.readouterr().out.splitlines() if line.startswith("FAIL")] == failing
    assert ("| **no** |" in (tmp_path / "page.md").read_text(encoding="utf-8")) == bool(failing)


def test_no_audited_person_or_control_trained_a_target(nulls, people):
    divide = nulls("people").divide
    for target in range(10):
        found = divide(people, target, 0)
        groups = [set(found.members), set(found.reference), set(found.fleet), set(found.unseen)]
        assert sum(map(len, groups)) == len(set.union(*groups)) == PEOPLE
        assert set(found.near) <= set(found.unseen)


def test_targets_of_one_period_were_trained_on_people_of_it(nulls, people):
    study = nulls("people")
    for target in (5, 6):
        members = study.divide(people, target, 0).members
        inside = study.select_period(people, people.users, 0.5, last=target % 2 == 0)
        assert set(members) <= set(inside)


def test_the_page_of_the_docs_is_written_from_the_results(nulls):
    table = nulls("table")
    before = json.loads(table.BEFORE.read_text(encoding="utf-8"))
    assert table.PAGE.read_text(encoding="utf-8") == table.write_page(
        table.sum_up(table.load_kept(table.SUMMARY)), before
    )


def test_the_page_of_power_is_written_from_its_results(nulls):
    power = nulls("power")
    counts = json.loads(power.RESULTS.read_text(encoding="utf-8"))
    assert power.PAGE.read_text(encoding="utf-8") == power.write_page(counts)


def _write(rng):
    """A text of some words, frequent ones more often; their numbers are written in letters."""
    numbers = (int(300 ** rng.random()) for _ in range(int(rng.integers(5, 14))))
    return " ".join(str(number).translate(_LETTERS) for number in numbers)


_LETTERS = str.maketrans("0123456789", "abcdefghij")
_DIGITS = str.maketrans("abcdefghij", "0123456789")


class _Guesser:
    """A model that finds some words, people and records harder than others, and has seen none of them."""

    kind = "causal"

    def __init__(self, number):
        self.number, self.digest = number, f"guesser-{number}"

    def answer(self, records):
        """Random numbers that depend on the model, the person, the record and the words."""
        rows = [self._score(record) for record in records]
        lengths = [len(row) for row in rows]
        logprob = np.concatenate(rows).astype(np.float32)
        starts = [[i for i, c in enumerate(r.text) if c != " " and (not i or r.text[i - 1] == " ")] for r in records]
        ends = [
            [s + len(w) for s, w in zip(start, r.text.split(), strict=True)]
            for r, start in zip(records, starts, strict=True)
        ]
        return Answers(
            records=tuple(record.digest for record in records),
            offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
            pattern=np.zeros(sum(lengths), dtype=np.int32),
            position=np.concatenate([np.arange(n) for n in lengths]).astype(np.int32),
            start=np.concatenate(starts).astype(np.int32),
            end=np.concatenate(ends).astype(np.int32),
            known=np.ones(sum(lengths), dtype=np.bool_),
            rank=np.maximum(1, np.minimum(300, np.exp(-logprob))).astype(np.int32),
            logprob=logprob,
            entropy=np.full(sum(lengths), 3.0, dtype=np.float32),
            logprob_std=np.full(sum(lengths), 1.0, dtype=np.float32),
        )

    def _score(self, record):
        person = np.random.default_rng([self.number, *(record.user or "").encode()]).normal(0, 0.3)
        rng = np.random.default_rng([self.number, *record.id.encode()])
        hardness = np.array([np.log1p(int(word.translate(_DIGITS))) for word in record.text.split()])
        return np.minimum(-0.01, -hardness + person + rng.normal(0, 0.5) + rng.normal(0, 0.7, size=len(hardness)))
