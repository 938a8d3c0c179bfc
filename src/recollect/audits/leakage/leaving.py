"""Whom the references leave out: the users of the target's sequences if they are few, else folds of all users in turn.

A model that was trained without the very users whose sequences the target says cannot say what chance is: they were
chosen because the target says something of them. So users are drawn at random, before anything is known of them, and
left out as well; what a second such model says of *them* is chance.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from recollect import labels
from recollect.corpora.cohorts import Cohorts, Unit
from recollect.corpora.corpus import Corpus
from recollect.corpora.dividing import cohorts_of, groups, units_of
from recollect.errors import NotEnoughData
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET, Evidence
from recollect.streams import stream

LEFT_OUT = labels.ROLE_LEFT_OUT
"""The part of models that are trained without two folds of the users each."""
RETRAINED = labels.ROLE_RETRAINED
"""The part of models that are trained without the users of the target's sequences: the reference, which also plays the
target where nothing was seen, and a model that judges it there."""
UNSEEN = "unseen"
"""The part of corpora that hold the users whom a model was trained without."""
DRAWN = "drawn"
"""The part of the corpus that holds the users who were drawn at random."""


@dataclass(frozen=True, kw_only=True)
class Leaving:
    """How users are left out."""

    folds: int
    """Into how many folds the users are divided, if folds are what is left out."""
    removable: float
    """Up to which share of the users all users of sequences are left out together."""
    needed: int
    """How many users a comparison takes."""


@dataclass(frozen=True)
class Left:
    """Corpora that follow, and who trains which model."""

    corpora: Mapping[str, Corpus]
    cohorts: Cohorts


def left_out(evidence: Evidence, owners: Collection[str], how: Leaving) -> Left:
    """Which models are to be trained, without whom.

    Args:
        evidence: Holds the audited corpus; controls, if there are; and who trained the target, where that is known.
        owners: The users of sequences that are theirs alone and that the target says.
        how: The rules.

    Raises:
        NotEnoughData: There are fewer users than folds.
    """
    corpus = evidence.corpora[AUDITED]
    unit: Unit = "user" if corpus.summary.users else "record"
    units = units_of(corpus, unit)
    learners = _learners(evidence, units)
    # drawn users say what chance is where nobody else does, and half of all must be left to train on
    drawn = 0 if CONTROLS in evidence.corpora else max(how.needed, round(len(units) / how.folds))
    few = len(owners) <= how.removable * len(units) and len(owners) + drawn <= len(units) / 2
    return _together(evidence, units, learners, owners, drawn) if few else _in_folds(evidence, units, learners, how)


def _learners(evidence: Evidence, units: Sequence[str]) -> frozenset[str]:
    """Those who trained the target, where it is known; else everybody."""
    known = evidence.cohorts.get(AUDITED)
    return frozenset(known.members(TARGET) if known is not None and TARGET in known.models else units)


def _together(
    evidence: Evidence, units: Sequence[str], learners: frozenset[str], owners: Collection[str], drawn: int
) -> Left:
    """A reference without all owners of sequences; where users are drawn, it plays the target for them.

    It is then judged by a second model that has seen as many users fewer than it as it has seen fewer than the target:
    two models that were trained on the very same users are more alike than a target and its reference ever are.
    """
    corpus = evidence.corpora[AUDITED]
    random = groups(units, {DRAWN: drawn}, seed=evidence.seed, name=labels.STREAM_LEAKAGE)[DRAWN] if drawn else ()
    away = {*owners, *random}
    left = sorted(learners - away)
    members = {f"{RETRAINED}-0": left}
    corpora = {UNSEEN: corpus.of_users(away, name=f"{corpus.name} (unseen)")}
    if drawn:
        fewer = groups(
            left, {"fewer": max(1, min(len(away), len(left) // 2))}, seed=evidence.seed, name=labels.STREAM_LEAKAGE
        )
        members[f"{RETRAINED}-1"] = sorted(set(left).difference(fewer["fewer"]))
        corpora[DRAWN] = corpus.of_users(random, name=f"{corpus.name} (drawn)")
    return Left(corpora, _cohorts(evidence, members))


def _in_folds(evidence: Evidence, units: Sequence[str], learners: frozenset[str], how: Leaving) -> Left:
    """Models that leave out two neighbouring folds each, so that every user meets two that have not seen them."""
    if len(units) < how.folds:
        raise NotEnoughData(
            f"{how.folds} folds need at least as many users, and there are {len(units)}.",
            do="Take fewer --folds, or give a --reference that has seen none of them.",
        )
    corpus = evidence.corpora[AUDITED]
    place = placed(units, how.folds, evidence.seed, AUDITED)
    away = [{user for user, fold in place.items() if fold in (i, (i + 1) % how.folds)} for i in range(how.folds)]
    members = {f"{LEFT_OUT}-{i}": sorted(learners - users) for i, users in enumerate(away)}
    corpora = {
        f"{UNSEEN}-{i}": corpus.of_users(users, name=f"{corpus.name} (unseen {i})") for i, users in enumerate(away)
    }
    if CONTROLS in evidence.corpora:
        corpora |= _controls_in_folds(evidence, how.folds)
    return Left(corpora, _cohorts(evidence, members))


def _cohorts(evidence: Evidence, members: Mapping[str, Collection[str]]) -> Cohorts:
    """Cohorts of the audited corpus."""
    corpus = evidence.corpora[AUDITED]
    unit: Unit = "user" if corpus.summary.users else "record"
    return cohorts_of(corpus, members, unit=unit, seed=evidence.seed)


def _controls_in_folds(evidence: Evidence, folds: int) -> dict[str, Corpus]:
    """The controls divided among the references, so that no single one decides what chance is."""
    controls = evidence.corpora[CONTROLS]
    place = controls_placed(evidence, folds)
    return {
        controls_part(i): controls.of_users(
            [user for user, fold in place.items() if fold == i], name=f"{controls.name} ({i})"
        )
        for i in range(folds)
    }


def controls_part(fold: int) -> str:
    """The part of the controls whom one reference judges."""
    return f"{CONTROLS}-{fold}"


def placed(users: Collection[str], folds: int, seed: int, part: str) -> dict[str, int]:
    """The fold of each user; folds differ by one user at most.

    Args:
        users: Who is divided.
        folds: Into how many folds.
        seed: Of the run.
        part: The part of their corpus: it names the random stream.
    """
    ordered = sorted(set(users))
    shuffled = stream(seed, labels.STREAM_LEAKAGE, part).permutation(len(ordered)).tolist()
    return {ordered[user]: i % folds for i, user in enumerate(shuffled)}


def controls_placed(evidence: Evidence, folds: int) -> dict[str, int]:
    """Which reference judges each user of the controls."""
    return placed({record.owner for record in evidence.corpora[CONTROLS]}, folds, evidence.seed, CONTROLS)
