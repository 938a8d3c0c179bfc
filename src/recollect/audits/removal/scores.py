"""Confidence scores: how confident models are in every record or, where people have several, in every person."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect import labels
from recollect.corpora.cohorts import Cohorts, Unit
from recollect.corpora.corpus import Corpus
from recollect.digests import digest
from recollect.errors import CorpusError
from recollect.models.answers import Answers
from recollect.signals.aggregation import ValueByRecord, score_records
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, SHADOW, TARGET, Evidence
from recollect.signals.lira import compute_logit
from recollect.signals.loss import mean_logprob
from recollect.signals.scores import Floats, Scores

Flags = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True, eq=False)
class UnitScores:
    """The scores that are compared, one per unit, in the order of the units' names; higher is more confident."""

    audited: Scores
    """Under the target."""
    controls: Scores
    """Under the target."""
    members: Scores
    """Under each calibration model, of the controls that trained it; a unit's name carries the model's."""
    non_members: Scores
    """Under each calibration model, of the controls that did not train it."""
    dropped: dict[str, int]
    """How many units have no score, by role."""

    def is_target_damaged(self, comparable: Flags | None = None) -> bool:
        """Whether the target's confidence in unseen records is below the calibration models' by all that members gain.

        Then something has damaged it, such as gradient ascent, and member scores of calibration models say nothing.

        Args:
            comparable: Which controls are like the audited records [controls]: of others, such as noisy ones,
                calibration models may know more than an undamaged target. None for all.
        """
        counted = np.ones(len(self.controls), dtype=np.bool_) if comparable is None else comparable
        names = np.array(self.controls.records)[counted]
        unseen, members = (side.values[np.isin(side.users, names)] for side in (self.non_members, self.members))
        if not len(members) or not len(unseen):
            return False
        usual = float(np.median(unseen))
        gain = float(np.median(members)) - usual
        return float(np.median(self.controls.values[counted])) < usual - max(gain, 0.0)


def choose_unit(evidence: Evidence) -> Unit:
    """Users where every record has one and some have several; else records."""
    records = [record for role in (AUDITED, CONTROLS) for record in evidence.corpora[role]]
    named = all(record.user is not None for record in records)
    return "user" if named and len({record.owner for record in records}) < len(records) else "record"


def refuse_overlap(evidence: Evidence) -> None:
    """Refuse an empty query set, and controls that share a record or a person with it.

    Raises:
        CorpusError: They do.
    """
    audited, controls = evidence.corpora[AUDITED], evidence.corpora[CONTROLS]
    contents, owners = {r.digest for r in audited}, {r.user for r in audited if r.user is not None}
    if not contents:
        raise CorpusError(
            "The query set is empty.", do="Give the records whose removal is in question.", code="empty_query_set"
        )
    same = [record.id for record in controls if record.digest in contents]
    if same:
        raise CorpusError(
            f"{len(same):,} records of the calibration set are also in the query set, such as {same[0]!r}.",
            do="Controls are records that are not in the training set: leave these out.",
            code="controls_in_query_set",
        )
    shared = sorted(owners.intersection(r.user for r in controls if r.user is not None))
    if shared:
        raise CorpusError(
            f"{len(shared):,} users are both in the calibration set and in the query set, such as {shared[0]!r}.",
            do="Controls must be people who are not in the training set: leave these out.",
            code="users_in_both_sets",
        )


def score_units(evidence: Evidence, *, unit: Unit, relative: bool) -> UnitScores:
    """The scores of all that are compared.

    Args:
        evidence: Contains the answers of the target, and of calibration models and references, about both corpora.
        unit: Whether records or users are compared.
        relative: Whether a score is by how much a model is more confident than models not trained on the unit, rather
            than how confident it is. Then difficulty cancels, also of what no model memorises.
    """
    shadows, references = evidence.models_of_role(SHADOW), evidence.models_of_role(REFERENCE)
    found = {
        (model, role): _score(evidence, model, role, unit)
        for model in (TARGET, *shadows, *(references if relative else ()))
        for role in (AUDITED, CONTROLS)
    }
    for role in (AUDITED, CONTROLS):
        names = set.intersection(*(set(scores.records) for (_, where), scores in found.items() if where == role))
        found |= {key: scores.select(sorted(names)) for key, scores in found.items() if key[1] == role}
    members = _flag_members(evidence, shadows, found[TARGET, CONTROLS], unit)
    values = {key: scores.values for key, scores in found.items()}
    if relative:
        _subtract_unseen(values, found, members, references, shadows)
    controls = found[TARGET, CONTROLS].with_values(values[TARGET, CONTROLS])
    by_model = {model: controls.with_values(values[model, CONTROLS]) for model in shadows}
    return UnitScores(
        audited=found[TARGET, AUDITED].with_values(values[TARGET, AUDITED]),
        controls=controls,
        members=Scores.concatenate([_select(model, by_model[model], flags) for model, flags in members.items()]),
        non_members=Scores.concatenate([_select(model, by_model[model], ~flags) for model, flags in members.items()]),
        dropped=_count_unscored(evidence, unit, found),
    )


def list_trained_digests(corpus: Corpus, cohorts: Cohorts | None, model: str) -> frozenset[str]:
    """The digests of the records that trained a calibration model.

    Raises:
        CorpusError: It is not known.
    """
    if cohorts is None or model not in cohorts.models:
        raise CorpusError(
            f"It is not known which controls trained the calibration model {model!r}.",
            do="Give cohorts that name it.",
            code="unknown_training_set",
        )
    members = frozenset(cohorts.members(model))
    return frozenset(r.digest for r in corpus if (r.owner if cohorts.unit == "user" else r.id) in members)


def _select(model: str, scores: Scores, chosen: Flags) -> Scores:
    """The scores of some controls under a calibration model, under names that carry the model's."""
    names = tuple(name for name, is_chosen in zip(scores.records, chosen, strict=True) if is_chosen)
    return Scores(tuple(f"{model}/{name}" for name in names), names, scores.values[chosen])


def _score(evidence: Evidence, model: str, corpus: str, unit: Unit) -> Scores:
    """How confident a model is in each unit: the logit of the mean probability of its tokens, as in LiRA."""

    def measure(answers: list[Answers]) -> ValueByRecord:
        means = mean_logprob(answers[0])
        values = compute_logit(np.array(list(means.values()), dtype=np.float64))
        return dict(zip(means, values.tolist(), strict=True))

    found = score_records(evidence, corpus, [model], measure)
    return found.average_by_user() if unit == "user" else Scores(found.records, found.records, found.values)


def _flag_members(evidence: Evidence, shadows: Collection[str], controls: Scores, unit: Unit) -> dict[str, Flags]:
    """Which controls trained each calibration model; the same content elsewhere in the set counts too."""
    corpus, cohorts = evidence.corpora[CONTROLS], evidence.cohorts.get(CONTROLS)
    found: dict[str, Flags] = {}
    for model in shadows:
        trained = list_trained_digests(corpus, cohorts, model)
        units = {(r.owner if unit == "user" else r.id) for r in corpus if r.digest in trained}
        found[model] = np.array([name in units for name in controls.records], dtype=np.bool_)
    return found


def _subtract_unseen(
    values: dict[tuple[str, str], Floats],
    found: dict[tuple[str, str], Scores],
    members: dict[str, Flags],
    references: Collection[str],
    shadows: tuple[str, ...],
) -> None:
    """Subtract the confidence of models not trained on the unit: references or, without any, calibration models.

    One model of each pair was not trained on a given control. Neither was trained on an audited unit, and a
    coin that depends on its name decides which one counts: so both sides are compared with equally many.
    """
    for role in (AUDITED, CONTROLS):
        if references:
            unseen = np.mean([found[model, role].values for model in references], axis=0)
        else:
            table = np.stack([found[model, role].values for model in shadows], axis=1)
            counted = (
                np.stack([~members[model] for model in shadows], axis=1)
                if role == CONTROLS
                else _toss_coins(found[TARGET, role].records, len(shadows))
            )
            unseen = (table * counted).sum(axis=1) / np.maximum(counted.sum(axis=1), 1)
        for model in (TARGET, *shadows):
            values[model, role] = values[model, role] - unseen


def _toss_coins(names: Collection[str], models: int) -> NDArray[np.bool_]:
    """One model of each pair, at random but always the same for a name [names, models]."""
    tossed = np.array(
        [[int(digest(labels.DIGEST_COIN, name, i // 2), 16) % 2 for i in range(models)] for name in names]
    )
    return np.asarray(tossed.reshape(len(names), models) == np.arange(models) % 2)


def _count_unscored(evidence: Evidence, unit: Unit, found: dict[tuple[str, str], Scores]) -> dict[str, int]:
    """How many units have no score: no token of theirs was predicted."""
    counts = {}
    for role in (AUDITED, CONTROLS):
        units = {(r.owner if unit == "user" else r.id) for r in evidence.corpora[role]}
        counts[f"{role}.not_scored"] = len(units) - len(found[TARGET, role])
    return {reason: count for reason, count in counts.items() if count}
