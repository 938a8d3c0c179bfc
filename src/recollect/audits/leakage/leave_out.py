"""Leave-out training: references without the users of the target's sequences if they are few, else without folds.

A model that was trained without the very users whose sequences the target predicts gives no null distribution: they
were chosen because the target predicts something of them. So users are drawn at random, before anything is known of
them, and left out as well; what a second such model predicts of *them* is the null distribution.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from recollect import labels
from recollect.corpora.cohorts import Cohorts, Unit
from recollect.corpora.corpus import Corpus
from recollect.corpora.partitions import build_cohorts, draw_groups, list_units
from recollect.errors import NotEnoughData
from recollect.signals.evidence import AUDITED, CONTROLS, TARGET, Evidence
from recollect.streams import stream

LEFT_OUT = labels.ROLE_LEFT_OUT
"""The role of models that are trained without two folds of the users each."""
RETRAINED = labels.ROLE_RETRAINED
"""The role of models that are trained without the users of the target's sequences: the reference, which also replaces
the target in the null distribution, and its reference there."""
UNSEEN = "unseen"
"""The role of corpora of the users whom a model was trained without."""
DRAWN = "drawn"
"""The role of the corpus of the users who were drawn at random."""


@dataclass(frozen=True, kw_only=True)
class LeaveOutRule:
    """How users are left out."""

    folds: int
    """Into how many folds the users are divided, if folds are what is left out."""
    removable: float
    """Up to which share of the users all users of sequences are left out together."""
    needed: int
    """How many users a null distribution needs."""


@dataclass(frozen=True)
class LeaveOut:
    """Corpora that follow, and which users train which model."""

    corpora: Mapping[str, Corpus]
    cohorts: Cohorts


def leave_out(evidence: Evidence, owners: Collection[str], rule: LeaveOutRule) -> LeaveOut:
    """Which models are to be trained, and which users each leaves out.

    Args:
        evidence: Contains the audited corpus; controls, if any; and the target's members, if known.
        owners: The users of sequences that are theirs alone and that the target predicts.
        rule: How users are left out.

    Raises:
        NotEnoughData: There are fewer users than folds.
    """
    corpus = evidence.corpora[AUDITED]
    units = list_units(corpus, _get_unit(corpus))
    members = _find_members(evidence, units)
    # drawn users give the null distribution where there are no controls, and half of all must be left to train on
    drawn = 0 if CONTROLS in evidence.corpora else max(rule.needed, round(len(units) / rule.folds))
    few = len(owners) <= rule.removable * len(units) and len(owners) + drawn <= len(units) / 2
    if few:
        return _leave_out_owners(evidence, units, members, owners, drawn)
    return _leave_out_folds(evidence, units, members, rule.folds)


def _find_members(evidence: Evidence, units: Sequence[str]) -> frozenset[str]:
    """The target's members, where they are known; else all users."""
    known = evidence.cohorts.get(AUDITED)
    return frozenset(known.members(TARGET) if known is not None and TARGET in known.models else units)


def _leave_out_owners(
    evidence: Evidence, units: Sequence[str], members: frozenset[str], owners: Collection[str], drawn: int
) -> LeaveOut:
    """A reference without all owners of sequences; where users are drawn, it replaces the target for them.

    Its own reference has as many users fewer than it as it has fewer than the target: two models that were trained on
    exactly the same users are more alike than a target and its reference are.
    """
    corpus = evidence.corpora[AUDITED]
    random = draw_groups(units, {DRAWN: drawn}, seed=evidence.seed, name=labels.STREAM_LEAKAGE)[DRAWN] if drawn else ()
    away = {*owners, *random}
    left = sorted(members - away)
    trained = {f"{RETRAINED}-0": left}
    corpora = {UNSEEN: corpus.select_users(away, name=f"{corpus.name} (unseen)")}
    if drawn:
        fewer = draw_groups(
            left, {"fewer": max(1, min(len(away), len(left) // 2))}, seed=evidence.seed, name=labels.STREAM_LEAKAGE
        )
        trained[f"{RETRAINED}-1"] = sorted(set(left).difference(fewer["fewer"]))
        corpora[DRAWN] = corpus.select_users(random, name=f"{corpus.name} (drawn)")
    return LeaveOut(corpora, _build_cohorts(evidence, trained))


def _leave_out_folds(evidence: Evidence, units: Sequence[str], members: frozenset[str], folds: int) -> LeaveOut:
    """Models that leave out two neighbouring folds each, so that two models are without each user."""
    if len(units) < folds:
        raise NotEnoughData(
            f"{folds} folds need at least as many users, and there are {len(units)}.",
            do="Use fewer --folds, or give a --reference that was trained on none of them.",
            code="fewer_users_than_folds",
            needed=folds,
        )
    corpus = evidence.corpora[AUDITED]
    fold_of = assign_folds(units, folds, evidence.seed, AUDITED)
    away = [{user for user, fold in fold_of.items() if fold in (i, (i + 1) % folds)} for i in range(folds)]
    trained = {f"{LEFT_OUT}-{i}": sorted(members - users) for i, users in enumerate(away)}
    corpora = {
        f"{UNSEEN}-{i}": corpus.select_users(users, name=f"{corpus.name} (unseen {i})") for i, users in enumerate(away)
    }
    if CONTROLS in evidence.corpora:
        corpora |= _divide_controls(evidence, folds)
    return LeaveOut(corpora, _build_cohorts(evidence, trained))


def _get_unit(corpus: Corpus) -> Unit:
    """What is left out of a corpus."""
    return "user" if corpus.summary.users else "record"


def _build_cohorts(evidence: Evidence, trained: Mapping[str, Collection[str]]) -> Cohorts:
    """Cohorts of the audited corpus."""
    corpus = evidence.corpora[AUDITED]
    return build_cohorts(corpus, trained, unit=_get_unit(corpus), seed=evidence.seed)


def _divide_controls(evidence: Evidence, folds: int) -> dict[str, Corpus]:
    """The controls divided among the references, so that no single one decides the null distribution."""
    controls = evidence.corpora[CONTROLS]
    fold_of = assign_control_folds(evidence, folds)
    return {
        name_controls_role(i): controls.select_users(
            [user for user, fold in fold_of.items() if fold == i], name=f"{controls.name} ({i})"
        )
        for i in range(folds)
    }


def name_controls_role(fold: int) -> str:
    """The role of the controls whom one reference scores."""
    return f"{CONTROLS}-{fold}"


def assign_folds(users: Collection[str], folds: int, seed: int, role: str) -> dict[str, int]:
    """The fold of each user; folds differ by one user at most.

    Args:
        users: Who is divided.
        folds: Into how many folds.
        seed: Of the run.
        role: The role of their corpus: it names the random stream.
    """
    ordered = sorted(set(users))
    shuffled = stream(seed, labels.STREAM_LEAKAGE, role).permutation(len(ordered)).tolist()
    return {ordered[user]: i % folds for i, user in enumerate(shuffled)}


def assign_control_folds(evidence: Evidence, folds: int) -> dict[str, int]:
    """Which reference scores each user of the controls."""
    return assign_folds({record.owner for record in evidence.corpora[CONTROLS]}, folds, evidence.seed, CONTROLS)
