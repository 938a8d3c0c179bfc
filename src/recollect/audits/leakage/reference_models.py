"""Reference models: for each user a model not trained on them, and a second such model for the null distribution.

They are given, or trained with users left out: without the users of the target's sequences if they are few, else
without folds. A model that was trained without the very users whose sequences the target predicts gives no null
distribution: they were chosen because the target predicts something of them. So users are drawn at random, before
anything is known of them, and left out as well; what a second such model predicts of *them* is the null distribution.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from recollect import labels
from recollect.corpora.cohorts import Cohorts, Unit
from recollect.corpora.corpus import Corpus
from recollect.corpora.partitions import build_cohorts, draw_groups, list_units
from recollect.corpora.record import Record
from recollect.errors import NotEnoughData, PlanError
from recollect.files import read_json
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, TARGET, Evidence
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
Source = tuple[str, str]
"""A model and the corpus that it scored, by their roles."""
NO_PAIR = -1
_RATIO = "Each sequence is rated by how much more likely it is under the model than under the reference, which was"
_TRUST = "That it was not trained on these users is assumed where neither its card nor the cohorts say so."


@dataclass(frozen=True, kw_only=True)
class ModelPair:
    """A model whose sequences are looked for, and a reference not trained on the users."""

    model: Source
    reference: Source | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """The users of a corpus, each with a pair of models."""

    corpus: str
    pairs: tuple[ModelPair, ...]
    assigned: Mapping[str, int] | None = None
    """By user, which of the pairs; users who have none are read and not rated. None: the first pair serves all."""

    @property
    def sources(self) -> frozenset[Source]:
        """All answers of reference models and target that are read."""
        return frozenset(source for pair in self.pairs for source in (pair.model, pair.reference) if source is not None)

    def assign(self, records: Sequence[Record]) -> Iterator[tuple[ModelPair, list[int]]]:
        """The places of records by their pair of models; those without one are read by the first model alone."""
        if self.assigned is None:
            yield self.pairs[0], list(range(len(records)))
            return
        theirs: dict[int, list[int]] = {}
        for i, record in enumerate(records):
            theirs.setdefault(self.assigned.get(record.owner, NO_PAIR), []).append(i)
        for number, some in sorted(theirs.items()):
            yield self.pairs[number] if number != NO_PAIR else ModelPair(model=self.pairs[0].model), some

    def list_users(self, evidence: Evidence) -> tuple[str, ...]:
        """The users who are rated, in ascending order."""
        if self.assigned is not None:
            return tuple(sorted(self.assigned))
        return tuple(sorted(_list_users(evidence.corpora[self.corpus])))


@dataclass(frozen=True, kw_only=True, eq=False)
class ReferencePlan:
    """Which models are compared for the audited users, and which for the null distribution."""

    audited: Group
    null: Group | None = None
    """Models, and users that are known not to be in their training sets; None if there are none."""
    description: str = ""
    """How the references came about, in sentences for a reader; empty if there are none."""
    seen: frozenset[str] = frozenset()
    """Users in the training set of a given reference: they cannot be rated."""


def choose_reference_models(evidence: Evidence) -> ReferencePlan:
    """The reference models by which the target's sequences are rated, of those that are available.

    A given reference serves all users it was not trained on; of two, the second replaces the target for the null
    distribution. Else models serve that were trained without the users of the sequences, or without folds of the users.
    Where there are controls, the null distribution is theirs.
    """
    if given := evidence.models_of_role(REFERENCE):
        return _use_given_references(evidence, given)
    if evidence.models_of_role(RETRAINED):
        return _use_retrained_references(evidence)
    if evidence.models_of_role(LEFT_OUT):
        return _use_fold_references(evidence)
    null = (
        Group(corpus=CONTROLS, pairs=(ModelPair(model=(TARGET, CONTROLS)),)) if CONTROLS in evidence.corpora else None
    )
    return ReferencePlan(audited=Group(corpus=AUDITED, pairs=(ModelPair(model=(TARGET, AUDITED)),)), null=null)


def _use_given_references(evidence: Evidence, given: tuple[str, ...]) -> ReferencePlan:
    """Reference models that are given."""
    seen = frozenset[str]().union(*(find_users_seen_by_reference(evidence, name) for name in given[:2]))
    assigned = None
    if seen:
        assigned = {record.owner: 0 for record in evidence.corpora[AUDITED] if record.owner not in seen}
        if not assigned:
            raise PlanError(
                f"The reference was trained on all {len(seen)} audited users, according to its card or the cohorts: "
                "comparing with it shows nothing.",
                do="Give a reference that was trained on none of them, or --recipe to train some.",
                code="reference_trained_on_everybody",
            )
    null = None
    if CONTROLS in evidence.corpora:
        null = _pair_all_users(CONTROLS, TARGET, given[0])
    elif len(given) > 1:
        null = _pair_all_users(AUDITED, given[1], given[0], assigned)
    audited = _pair_all_users(AUDITED, TARGET, given[0], assigned)
    return ReferencePlan(audited=audited, null=null, description=f"{_RATIO} given. {_TRUST}", seen=seen)


def _pair_all_users(corpus: str, model: str, reference: str, assigned: dict[str, int] | None = None) -> Group:
    """All users rated by one pair of a model and a reference model."""
    pair = ModelPair(model=(model, corpus), reference=(reference, corpus))
    return Group(corpus=corpus, pairs=(pair,), assigned=assigned)


def _use_retrained_references(evidence: Evidence) -> ReferencePlan:
    """A reference model that was trained without all whose sequences the target predicts."""
    reference, *others = evidence.models_of_role(RETRAINED)
    pairs = (ModelPair(model=(TARGET, AUDITED), reference=(reference, UNSEEN)),)
    audited = Group(corpus=AUDITED, pairs=pairs, assigned=dict.fromkeys(_list_users(evidence.corpora[UNSEEN]), 0))
    if CONTROLS in evidence.corpora:
        null = _pair_all_users(CONTROLS, TARGET, reference)
    else:
        null = Group(corpus=DRAWN, pairs=(ModelPair(model=(reference, UNSEEN), reference=(others[0], DRAWN)),))
    description = f"{_RATIO} trained for this purpose, without the users whose sequences the model predicts."
    return ReferencePlan(audited=audited, null=null, description=description)


def _use_fold_references(evidence: Evidence) -> ReferencePlan:
    """Reference models that were each trained without two folds of the users."""
    models = evidence.models_of_role(LEFT_OUT)
    folds = len(models)
    assigned = assign_folds(evidence.cohorts[AUDITED].units, folds, evidence.seed, AUDITED)
    unseen = [(model, f"{UNSEEN}-{i}") for i, model in enumerate(models)]
    audited = [ModelPair(model=(TARGET, AUDITED), reference=unseen[i]) for i in range(folds)]
    if CONTROLS in evidence.corpora:
        pairs = [
            ModelPair(model=(TARGET, CONTROLS), reference=(models[i], name_controls_of_fold(i))) for i in range(folds)
        ]
        null = Group(corpus=CONTROLS, pairs=tuple(pairs), assigned=assign_control_folds(evidence, folds))
    else:
        nulls = tuple(ModelPair(model=unseen[i - 1], reference=unseen[i]) for i in range(folds))
        null = Group(corpus=AUDITED, pairs=nulls, assigned=assigned)
    description = f"{_RATIO} trained for this purpose, without this user and others: two of {folds} folds of all users."
    group = Group(corpus=AUDITED, pairs=tuple(audited), assigned=assigned)
    return ReferencePlan(audited=group, null=null, description=description)


def find_users_seen_by_reference(evidence: Evidence, model: str) -> frozenset[str]:
    """The audited users whom a given reference of leakage is known to be trained on, from cohorts or its card."""
    cohorts, corpus = evidence.cohorts.get(AUDITED), evidence.corpora[AUDITED]
    if cohorts is not None and model in cohorts.models:
        return _select_users(corpus, cohorts.members(model))
    folder = Path(evidence.models[model].name)
    if not (folder / "card.json").is_file():
        return frozenset()
    if (folder / "members.json").is_file():
        return _select_users(corpus, read_json(folder / "members.json"))
    trained_on = read_json(folder / "card.json").get("corpus") or {}  # a model that no recipe trained may have a card
    return _list_users(corpus) if trained_on.get("digest") == corpus.digest else frozenset()


def _select_users(corpus: Corpus, units: tuple[str, ...] | list[str]) -> frozenset[str]:
    """The users of a corpus who are, or own, one of these units that a reference model was trained on."""
    chosen = frozenset(units)
    return frozenset(record.owner for record in corpus if record.owner in chosen or record.id in chosen)


def _list_users(corpus: Corpus) -> frozenset[str]:
    """All users of a corpus whom reference models may be without."""
    return frozenset(record.owner for record in corpus)


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


def plan_leave_out(evidence: Evidence, owners: Collection[str], rule: LeaveOutRule) -> LeaveOut:
    """Which reference models are to be trained, and which users each leaves out.

    Args:
        evidence: Contains the audited corpus; controls, if any; and the target's members, if known.
        owners: The users of sequences that are theirs alone and that the target predicts.
        rule: How users are left out.

    Raises:
        NotEnoughData: There are fewer users than folds.
    """
    corpus = evidence.corpora[AUDITED]
    units = list_units(corpus, _choose_left_out_unit(corpus))
    members = _list_target_members(evidence, units)
    # drawn users give the null distribution where there are no controls, and half of all must be left to train on
    drawn = 0 if CONTROLS in evidence.corpora else max(rule.needed, round(len(units) / rule.folds))
    few = len(owners) <= rule.removable * len(units) and len(owners) + drawn <= len(units) / 2
    if few:
        return _leave_out_owners(evidence, units, members, owners, drawn)
    return _leave_out_folds(evidence, units, members, rule.folds)


def _list_target_members(evidence: Evidence, units: Sequence[str]) -> frozenset[str]:
    """The target's members, where they are known, else all users: reference models are trained on some of them."""
    known, corpus = evidence.cohorts.get(AUDITED), evidence.corpora[AUDITED]
    if evidence.members is not None:
        truth = evidence.members.truth_by_record(corpus)
        return frozenset(record.owner for record in corpus if truth.get(record.id))
    return frozenset(known.members(TARGET) if known is not None and TARGET in known.models else units)


def _leave_out_owners(
    evidence: Evidence, units: Sequence[str], members: frozenset[str], owners: Collection[str], drawn: int
) -> LeaveOut:
    """A reference model without all owners of sequences; where users are drawn, it replaces the target for them.

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
    return LeaveOut(corpora, _build_left_out_cohorts(evidence, trained))


def _leave_out_folds(evidence: Evidence, units: Sequence[str], members: frozenset[str], folds: int) -> LeaveOut:
    """Reference models that leave out two neighbouring folds each, so that two models are without each user."""
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
        corpora |= _divide_controls_by_fold(evidence, folds)
    return LeaveOut(corpora, _build_left_out_cohorts(evidence, trained))


def _choose_left_out_unit(corpus: Corpus) -> Unit:
    """What reference models leave out of a corpus: users, or records where it has no users."""
    return "user" if corpus.summary.users else "record"


def _build_left_out_cohorts(evidence: Evidence, trained: Mapping[str, Collection[str]]) -> Cohorts:
    """The cohorts of reference models that leave users out of the audited corpus."""
    corpus = evidence.corpora[AUDITED]
    return build_cohorts(corpus, trained, unit=_choose_left_out_unit(corpus), seed=evidence.seed)


def _divide_controls_by_fold(evidence: Evidence, folds: int) -> dict[str, Corpus]:
    """The controls divided among the reference models, so that no single one decides the null distribution."""
    controls = evidence.corpora[CONTROLS]
    fold_of = assign_control_folds(evidence, folds)
    return {
        name_controls_of_fold(i): controls.select_users(
            [user for user, fold in fold_of.items() if fold == i], name=f"{controls.name} ({i})"
        )
        for i in range(folds)
    }


def name_controls_of_fold(fold: int) -> str:
    """The role of the controls whom the reference model of one fold scores."""
    return f"{CONTROLS}-{fold}"


def assign_folds(users: Collection[str], folds: int, seed: int, role: str) -> dict[str, int]:
    """The fold of each user, which reference models leave out; folds differ by one user at most.

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
    """Which of leakage's reference models scores each control user, by folds."""
    return assign_folds({record.owner for record in evidence.corpora[CONTROLS]}, folds, evidence.seed, CONTROLS)


def explain_missing_reference(evidence: Evidence, plan: ReferencePlan) -> str:
    """Why there is no reference model, so that no leakage epsilon can be computed; empty if there is one."""
    if evidence.models[TARGET].access.logprob == "none":
        return f"The model outputs {evidence.models[TARGET].access}; a ratio of perplexities needs probabilities."
    if not plan.description:
        return "No reference is given and none is trained: give --reference MODEL, or --recipe to train some."
    return ""
