"""What the removal audit says, word by word; all other tests assert codes, decisions and numbers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from recollect.audits.removal.audit import RemovalAudit
from recollect.audits.rounds import collect_evidence
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import RecollectError
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, TARGET, Evidence
from recollect.streams import stream
from recollect.testing.fakes import Memoriser, Null
from recollect.testing.wording import check_wording
from recollect.testing.world import World

PAIR, ALONE = RemovalAudit(models=2), RemovalAudit(models=0)


def images(count, seed, *, shift=0.0):
    rng = np.random.default_rng([3, seed])
    arrays = rng.random((count, 4, 4), dtype=np.float32) + np.float32(shift)
    return [Record(id=f"{seed}-{i:03d}", array=array, label=int(rng.integers(10))) for i, array in enumerate(arrays)]


def memoriser(records, certainty=0.99):
    return Memoriser(tuple(records), otherwise=Null(kind="classifier", vocabulary=10), certainty=certainty)


def run(audit, given, world):
    """The result, or the refusal."""
    try:
        return audit.run(collect_evidence(audit, given, score=world.score, train=world.train), stream(0, "removal"))
    except RecollectError as error:
        return error


def of_images(audit, target, audited, controls):
    corpora = {AUDITED: Corpus.of(audited), CONTROLS: Corpus.of(controls)}
    return run(audit, Evidence(models={TARGET: target}, corpora=corpora), World(kind="classifier"))


def of_people(audit, **people):
    world = World(others=3, **people)
    return run(audit, world.build_given(world.build_memoriser()), world)


def settings_refused(**settings):
    try:
        return RemovalAudit(**settings)
    except RecollectError as error:
        return error


def test_the_wording_is_as_it_was_agreed():
    query, controls, far = images(60, 1), images(100, 2), images(40, 3, shift=5.0)
    named = [replace(record, user=f"user-{i % 9}") for i, record in enumerate(query)]
    prefixed = World(members=12, others=0, controls=24)
    other_kind = {
        **prefixed.corpora,
        AUDITED: Corpus.of(replace(r, text=f"hello {r.text}") for r in prefixed.corpora[AUDITED]),
    }
    unlike = replace(prefixed.build_given(prefixed.build_null()), corpora=other_kind, cohorts={})
    cases = {
        "half of the set is in": of_images(PAIR, memoriser(query[:30]), query, controls),
        "nothing is in": of_images(PAIR, memoriser([]), query, controls),
        "pushed below": of_images(PAIR, memoriser(query, certainty=1e-4), query, controls),
        "two records": of_images(PAIR, memoriser([]), query[:2], controls),
        "like no control": of_images(PAIR, memoriser(far), far, controls),
        "damaged": of_images(PAIR, memoriser([*query, *controls], certainty=1e-6), query, controls),
        "separable without the model": run(PAIR, unlike, prefixed),
        "a retrained model only, still there": of_people(ALONE, members=20, controls=80),
        "a retrained model only, nothing is in": run(ALONE, prefixed.build_given(prefixed.build_null()), prefixed),
        "every person": of_people(replace(PAIR, by="user"), members=3, controls=120),
        "every person, few controls": of_people(replace(PAIR, by="user"), members=3, controls=30),
        "every person, too few controls": of_people(replace(PAIR, by="user"), members=3, controls=8),
        "ema, memorised": of_images(RemovalAudit(method="ema"), memoriser(query), query, controls),
        "ema, removed": of_images(RemovalAudit(method="ema"), memoriser([]), query, controls),
        "ks, memorised": of_images(RemovalAudit(method="ks"), memoriser(query), query, controls),
        "three controls": of_images(PAIR, memoriser([]), query, controls[:3]),
        "three controls, ema": of_images(RemovalAudit(method="ema"), memoriser([]), query, controls[:3]),
        "no query set": of_images(PAIR, memoriser([]), [], controls),
        "a control is audited": of_images(PAIR, memoriser([]), [*query, replace(controls[0], id="x")], controls),
        "a person on both sides": of_images(
            PAIR, memoriser([]), named, [replace(record, user="user-1") for record in controls]
        ),
        "people without names": of_images(replace(PAIR, by="user"), memoriser([]), query, controls),
        "ks of a language model": of_people(RemovalAudit(method="ks"), members=3, controls=8),
        "a reference of another kind": run(
            PAIR,
            Evidence(
                models={TARGET: memoriser([]), REFERENCE: Null(seed=1)},
                corpora={AUDITED: Corpus.of(query), CONTROLS: Corpus.of(controls)},
            ),
            World(kind="classifier"),
        ),
        "an odd number of models": settings_refused(models=3),
        "ema for people": settings_refused(method="ema", by="user"),
    }
    check_wording(cases, Path(__file__).with_name("wording.txt"))
