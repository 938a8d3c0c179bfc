"""The contract that every signal keeps, ours and yours."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import AccessError
from recollect.models.model import Model
from recollect.signals.evidence import AUDITED, CONTROLS, Evidence
from recollect.signals.registry import SIGNALS
from recollect.signals.scores import Scores
from recollect.signals.signal import Signal, compute_scores, derive_corpora
from recollect.stats.auc import auc
from recollect.testing.promises import iter_weaker, promise, promise_success, report_broken, require_attributes
from recollect.testing.world import World

MIN_AUC = 0.9
"""The least AUC on a target that has memorised the members."""
MAX_NULL_DEVIATION = 0.2
"""How far the AUC may be from one half on a target that has seen nobody: four standard errors in this world."""


def check_signal(signal: Signal) -> None:
    """Check that a signal keeps the contract, in a small world with fake models in which ground truth is known.

    A target that has memorised the members is found, higher meaning member; targets trained on nobody's data are
    not; the access that the signal names is enough, and less is refused; neither order nor block size nor repetition
    matters; every record keeps its own score and owner.

    Raises:
        BrokenContract: It lacks something, or breaks a promise; the message says what was promised and what was found.
    """
    require_attributes(signal, "signal", SIGNALS.required)
    promise(bool(signal.name and signal.paper and signal.kinds), "a signal has a name, a paper and kinds of models")
    for kind in signal.kinds:
        world = World(kind=kind)
        scores = _score_target(signal, world, world.build_memoriser())
        _check_owners(scores, world, signal)
        _check_direction(signal, world, scores)
        _check_signal_repeatable(signal, world, scores)
        _check_signal_access(signal, world, scores)
        _check_silence(signal, world)


def _score_target(signal: Signal, world: World, target: Model) -> Scores:
    """The scores of the audited corpus by a signal under the contract."""
    return compute_scores(signal, _build_evidence(signal, world, target))


def _build_evidence(signal: Signal, world: World, target: Model, audited: Corpus | None = None) -> Evidence:
    """All evidence, with what the signal derives from both corpora scored as well."""
    evidence = world.build_evidence(target)
    corpora = {**evidence.corpora, **({} if audited is None else {AUDITED: audited})}
    evidence = replace(evidence, corpora=corpora)
    derived = derive_corpora(signal, evidence, corpora)
    answers = {
        (name, role): world.score(model, corpus)
        for role, corpus in derived.items()
        for name, model in evidence.models.items()
    }
    return replace(evidence, corpora={**corpora, **derived}, answers={**evidence.answers, **answers})


def _check_owners(scores: Scores, world: World, signal: Signal) -> None:
    """The contract of a signal: every record has its score, and its owner."""
    owners = {record.id: record.owner for record in world.corpora[AUDITED]}
    given = dict(zip(scores.records, scores.users, strict=True))
    promise(given == owners, f"{signal.name}: every record has one score, under its own id and owner")
    promise(bool(np.isfinite(scores.values).all()), f"{signal.name}: scores are finite numbers")
    controls = compute_scores(signal, _build_evidence(signal, world, world.build_memoriser()), CONTROLS)
    wanted = {record.id for record in world.corpora[CONTROLS]}
    promise(set(controls.records) == wanted, f"{signal.name}: it scores the corpus that it is given")


def _check_direction(signal: Signal, world: World, scores: Scores) -> None:
    """The contract of a signal: members score higher if, and only if, the target has seen them."""
    found = _compute_auc(scores, world)
    promise(
        found >= MIN_AUC,
        f"{signal.name}: what was memorised scores higher (AUC of {MIN_AUC} or more)",
        found=f"AUC {found:.2f} with {world.kind} models",
    )
    for target in (world.build_null(), world.build_uniform()):
        deviation = abs(_compute_auc(_score_target(signal, world, target), world) - 0.5)
        promise(
            deviation <= MAX_NULL_DEVIATION,
            f"{signal.name}: a {target.name} target gives AUC 0.5 (within {MAX_NULL_DEVIATION})",
            found=f"a difference of {deviation:.2f}",
        )


def _check_signal_repeatable(signal: Signal, world: World, scores: Scores) -> None:
    """The contract of a signal: neither repetition nor order nor block size moves a score."""
    if all(_keeps_scores(signal, world, scores, each) for each in ({"block": 1}, {"backwards": True, "block": 7})):
        return
    # only what fails is scored again, to say why
    for changed in ({}, {"backwards": True}, {"block": 1}, {"block": 7}):
        same = _keeps_scores(signal, world, scores, changed)
        promise(same, f"{signal.name}: scores stay the same with {changed or 'nothing changed'}")
    raise report_broken(f"{signal.name}: scores stay the same in another order and another block size")


def _keeps_scores(signal: Signal, world: World, scores: Scores, changed: Mapping[str, Any]) -> bool:
    """The contract of a signal: whether its scores are the same in a world that tells the same otherwise."""
    other = replace(world, **changed)
    again = _score_target(signal, other, other.build_memoriser())
    return set(again.records) == set(scores.records) and np.allclose(
        again.select(scores.records).values, scores.values, rtol=1e-9, atol=1e-9
    )


def _check_signal_access(signal: Signal, world: World, scores: Scores) -> None:
    """What the signal says it needs is enough, and less is refused."""
    evidence = _build_evidence(signal, world, world.build_memoriser())
    with promise_success(f"{signal.name}: the access that it needs is enough"):
        again = compute_scores(signal, world.limit_access(evidence, signal.needs))
    promise(
        np.allclose(again.select(scores.records).values, scores.values, rtol=1e-9, atol=1e-9),
        f"{signal.name}: the access that it needs is enough for the same scores",
    )
    for role, needed in signal.needs.items():
        known = bool(evidence.models_of_role(role))
        promise(known, f"{signal.name}: it needs models by their roles (target, reference, shadow)", found=repr(role))
        for less in iter_weaker(needed):
            _expect_signal_refusal(signal, world.limit_access(evidence, {role: less}), f"{role} shows only {less}")


def _expect_signal_refusal(signal: Signal, evidence: Evidence, why: str) -> None:
    """The signal does not accept this evidence."""
    try:
        compute_scores(signal, evidence)
    except AccessError:
        return
    raise report_broken(f"{signal.name}: it refuses with an AccessError when the {why}", "no refusal")


def _check_silence(signal: Signal, world: World) -> None:
    """The contract of a signal: a record without predicted tokens is left out, and the others are scored."""
    if world.kind == "classifier":
        return
    pair = world.kind == "seq2seq"
    blank = Record(id="blank", source="word1", target=" ") if pair else Record(id="blank", text=" ")
    records = [blank, *world.corpora[AUDITED]]
    evidence = _build_evidence(signal, world, world.build_memoriser(), Corpus.of(records))
    promise(
        len(compute_scores(signal, evidence)) == len(records) - 1,
        f"{signal.name}: a record without a prediction is left out",
    )


def _compute_auc(scores: Scores, world: World) -> float:
    """How well the scores of a signal tell members from others."""
    members = {record.id for record in world.member_records}
    inside = scores.select([record for record in scores.records if record in members])
    outside = scores.select([record for record in scores.records if record not in members])
    return auc(inside, outside).value
