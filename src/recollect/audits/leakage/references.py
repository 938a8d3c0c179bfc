"""References: for each user a model not trained on them, and a second such model for the null distribution."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from recollect.audits.leakage.leave_out import (
    DRAWN,
    LEFT_OUT,
    RETRAINED,
    UNSEEN,
    assign_control_folds,
    assign_folds,
    name_controls_role,
)
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import PlanError
from recollect.files import read_json
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, TARGET, Evidence

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
        """All answers that are read."""
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
        return tuple(sorted(_list_owners(evidence.corpora[self.corpus])))


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


def choose_references(evidence: Evidence) -> ReferencePlan:
    """How the target's sequences are rated, with the models that are available.

    A given reference serves all users it was not trained on; of two, the second replaces the target for the null
    distribution. Else models serve that were trained without the users of the sequences, or without folds of the users.
    Where there are controls, the null distribution is theirs.
    """
    if given := evidence.models_of_role(REFERENCE):
        return _use_given(evidence, given)
    if evidence.models_of_role(RETRAINED):
        return _use_retrained(evidence)
    if evidence.models_of_role(LEFT_OUT):
        return _use_folds(evidence)
    null = Group(corpus=CONTROLS, pairs=(ModelPair(model=(TARGET, CONTROLS)),)) if _has_controls(evidence) else None
    return ReferencePlan(audited=Group(corpus=AUDITED, pairs=(ModelPair(model=(TARGET, AUDITED)),)), null=null)


def _use_given(evidence: Evidence, given: tuple[str, ...]) -> ReferencePlan:
    """Compared with models that are given."""
    seen = frozenset[str]().union(*(find_seen_users(evidence, name) for name in given[:2]))
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
    if _has_controls(evidence):
        null = _compare_all(CONTROLS, TARGET, given[0])
    elif len(given) > 1:
        null = _compare_all(AUDITED, given[1], given[0], assigned)
    audited = _compare_all(AUDITED, TARGET, given[0], assigned)
    return ReferencePlan(audited=audited, null=null, description=f"{_RATIO} given. {_TRUST}", seen=seen)


def _compare_all(corpus: str, model: str, reference: str, assigned: dict[str, int] | None = None) -> Group:
    """All users rated by one pair of models."""
    pair = ModelPair(model=(model, corpus), reference=(reference, corpus))
    return Group(corpus=corpus, pairs=(pair,), assigned=assigned)


def _use_retrained(evidence: Evidence) -> ReferencePlan:
    """Compared with a model that was trained without all whose sequences the target predicts."""
    reference, *others = evidence.models_of_role(RETRAINED)
    pairs = (ModelPair(model=(TARGET, AUDITED), reference=(reference, UNSEEN)),)
    audited = Group(corpus=AUDITED, pairs=pairs, assigned=dict.fromkeys(_list_owners(evidence.corpora[UNSEEN]), 0))
    if _has_controls(evidence):
        null = _compare_all(CONTROLS, TARGET, reference)
    else:
        null = Group(corpus=DRAWN, pairs=(ModelPair(model=(reference, UNSEEN), reference=(others[0], DRAWN)),))
    description = f"{_RATIO} trained for this purpose, without the users whose sequences the model predicts."
    return ReferencePlan(audited=audited, null=null, description=description)


def _use_folds(evidence: Evidence) -> ReferencePlan:
    """Compared with models that were each trained without two folds of the users."""
    models = evidence.models_of_role(LEFT_OUT)
    folds = len(models)
    assigned = assign_folds(evidence.cohorts[AUDITED].units, folds, evidence.seed, AUDITED)
    unseen = [(model, f"{UNSEEN}-{i}") for i, model in enumerate(models)]
    audited = [ModelPair(model=(TARGET, AUDITED), reference=unseen[i]) for i in range(folds)]
    if _has_controls(evidence):
        pairs = [
            ModelPair(model=(TARGET, CONTROLS), reference=(models[i], name_controls_role(i))) for i in range(folds)
        ]
        null = Group(corpus=CONTROLS, pairs=tuple(pairs), assigned=assign_control_folds(evidence, folds))
    else:
        nulls = tuple(ModelPair(model=unseen[i - 1], reference=unseen[i]) for i in range(folds))
        null = Group(corpus=AUDITED, pairs=nulls, assigned=assigned)
    description = f"{_RATIO} trained for this purpose, without this user and others: two of {folds} folds of all users."
    group = Group(corpus=AUDITED, pairs=tuple(audited), assigned=assigned)
    return ReferencePlan(audited=group, null=null, description=description)


def _has_controls(evidence: Evidence) -> bool:
    """Whether there are users who are known not to be in the training set."""
    return CONTROLS in evidence.corpora


def find_seen_users(evidence: Evidence, model: str) -> frozenset[str]:
    """The audited users whom a given model is known to be trained on: from the cohorts, or from its own card."""
    cohorts, corpus = evidence.cohorts.get(AUDITED), evidence.corpora[AUDITED]
    if cohorts is not None and model in cohorts.models:
        return _find_owners(corpus, cohorts.members(model))
    folder = Path(evidence.models[model].name)
    if not (folder / "card.json").is_file():
        return frozenset()
    if (folder / "members.json").is_file():
        return _find_owners(corpus, read_json(folder / "members.json"))
    trained_on = read_json(folder / "card.json").get("corpus") or {}  # a model that no recipe trained may have a card
    return _list_owners(corpus) if trained_on.get("digest") == corpus.digest else frozenset()


def _find_owners(corpus: Corpus, units: tuple[str, ...] | list[str]) -> frozenset[str]:
    """The users who are, or own, one of these units."""
    chosen = frozenset(units)
    return frozenset(record.owner for record in corpus if record.owner in chosen or record.id in chosen)


def _list_owners(corpus: Corpus) -> frozenset[str]:
    """All users of a corpus."""
    return frozenset(record.owner for record in corpus)
