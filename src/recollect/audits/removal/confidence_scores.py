"""Confidence scores: how confident models are in every record or, where people have several, in every person."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from recollect import labels
from recollect.audits.common.duplicates import find_duplicates
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
from recollect.stats.requirements import require_count

Flags = NDArray[np.bool_]
MEMBERS: Final = "members"
"""The members of calibration models, beside the roles of corpora."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CalibrationScores:
    """Scores of calibration models, each of a control that did or did not train the model."""

    confidence: Floats
    difficulty: Floats
    """The mean confidence of other models that the control did not train."""
    member: Flags


@dataclass(frozen=True, kw_only=True, eq=False)
class UnitScores:
    """The confidence scores that are compared, one per unit, in the order of the units' names."""

    audited: Scores
    """Under the target."""
    controls: Scores
    """Under the target."""
    members: Scores
    """Under each calibration model, of the controls that trained it; a unit's name carries the model's."""
    non_members: Scores
    """Under each calibration model, of the controls that did not train it."""
    difficulty: Mapping[str, Floats]
    """Of the audited, the controls and the members: the mean confidence of models that were not trained on the unit."""
    calibration: CalibrationScores | None
    """What a likelihood of membership is learned from; None without calibration models."""
    dropped: dict[str, int]
    """How many records or units are left out, by role and reason."""

    def subtract_difficulty(self) -> tuple[Scores, Scores, Scores]:
        """Confidence in the audited, the controls and the members beyond that of models not trained on them."""
        sides = ((AUDITED, self.audited), (CONTROLS, self.controls), (MEMBERS, self.members))
        one, other, inside = (side.with_values(side.values - self.difficulty[name]) for name, side in sides)
        return one, other, inside

    def is_target_damaged(self, comparable: Flags | None = None) -> bool:
        """Whether the target's confidence in unseen records is below the calibration models' by all that members gain.

        Then something has damaged it, such as gradient ascent, and member scores of calibration models say nothing. So
        they do of a target that is equally confident in all records.

        Args:
            comparable: Which controls are like the audited records [controls]: of others, such as noisy ones,
                calibration models may know more than an undamaged target. None for all.
        """
        if len(self.controls) > 1 and len(np.unique(np.concatenate([self.audited.values, self.controls.values]))) == 1:
            return True
        counted = np.ones(len(self.controls), dtype=np.bool_) if comparable is None else comparable
        names = np.array(self.controls.records)[counted]
        unseen, members = (side.values[np.isin(side.users, names)] for side in (self.non_members, self.members))
        if not len(members) or not len(unseen):
            return False
        usual = float(np.median(unseen))
        gain = float(np.median(members)) - usual
        return float(np.median(self.controls.values[counted])) < usual - max(gain, 0.0)


def choose_scored_unit(evidence: Evidence) -> Unit:
    """Whose confidence is scored: users where every record has one and some have several; else records."""
    records = [record for role in (AUDITED, CONTROLS) for record in evidence.corpora[role]]
    named = all(record.user is not None for record in records)
    return "user" if named and len({record.owner for record in records}) < len(records) else "record"


def score_confidence(evidence: Evidence, *, unit: Unit) -> UnitScores:
    """The confidence scores of all that are compared; of near-duplicates of one user, or of none, the first counts.

    Those between sides, or between users, are left out altogether.

    Args:
        evidence: Holds the answers of the target, and of calibration models and references, about both corpora.
        unit: Whether records or users are compared.

    Raises:
        NotEnoughData: Nothing is left of a side.
    """
    shadows, references = evidence.models_of_role(SHADOW), evidence.models_of_role(REFERENCE)
    repeated = find_duplicates(evidence.corpora[AUDITED], evidence.corpora[CONTROLS], own=True)
    left_out = {AUDITED: repeated.audited, CONTROLS: repeated.controls}
    found = {
        (model, role): _score_model(evidence, model, role, unit, left_out[role])
        for model in (TARGET, *shadows, *references)
        for role in (AUDITED, CONTROLS)
    }
    infinite = dict[str, int]()
    for role in (AUDITED, CONTROLS):
        scored = [scores for (_, where), scores in found.items() if where == role]
        both = set.intersection(*(set(scores.records) for scores in scored))
        names = both.difference(*map(_list_infinite, scored))
        infinite[role] = len(both) - len(names)
        require_count(len(names), 1, of=f"{role} units", purpose="The comparison", code=f"no_{role}_left")
        found |= {key: scores.select(sorted(names)) for key, scores in found.items() if key[1] == role}
    trained = _flag_scored_members(evidence, shadows, found[TARGET, CONTROLS], unit)
    if shadows and not references:
        # the difficulty of a control that trained every model is unknown
        known = ~np.all(list(trained.values()), axis=0)
        require_count(int(known.sum()), 1, of="controls left out of a model", purpose="Difficulty", code="no_holdout")
        holdouts = [name for name, is_known in zip(found[TARGET, CONTROLS].records, known, strict=True) if is_known]
        found |= {key: scores.select(holdouts) for key, scores in found.items() if key[1] == CONTROLS}
        trained = {model: flags[known] for model, flags in trained.items()}
    difficulty = {role: _measure_difficulty(found, role, trained, references) for role in (AUDITED, CONTROLS)}
    inside = list(trained.items())
    return UnitScores(
        audited=found[TARGET, AUDITED],
        controls=found[TARGET, CONTROLS],
        members=Scores.concatenate(
            [_select_calibration_scores(model, found[model, CONTROLS], flags) for model, flags in inside]
        ),
        non_members=Scores.concatenate(
            [_select_calibration_scores(model, found[model, CONTROLS], ~flags) for model, flags in inside]
        ),
        difficulty={
            **difficulty,
            MEMBERS: np.concatenate([np.empty(0), *(difficulty[CONTROLS][flags] for _, flags in inside)]),
        },
        calibration=_collect_calibration_scores(found, trained, difficulty[CONTROLS] if references else None),
        dropped={
            **{reason: count for reason, count in repeated.counts.items() if count},
            **_count_unscored(evidence, unit, found, left_out, infinite),
        },
    )


def _list_infinite(scores: Scores) -> set[str]:
    """The units of which no confidence is scored, because a model gives a token of theirs no probability at all."""
    return {name for name, finite in zip(scores.records, np.isfinite(scores.values), strict=True) if not finite}


def list_trained_digests(corpus: Corpus, cohorts: Cohorts | None, model: str) -> frozenset[str]:
    """The digests of the records that trained a calibration model whose confidence is scored.

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


def _select_calibration_scores(model: str, scores: Scores, chosen: Flags) -> Scores:
    """The confidence of a calibration model in some controls, under names that carry the model's."""
    names = tuple(name for name, is_chosen in zip(scores.records, chosen, strict=True) if is_chosen)
    return Scores(tuple(f"{model}/{name}" for name in names), names, scores.values[chosen])


def _score_model(evidence: Evidence, model: str, corpus: str, unit: Unit, left_out: Collection[str]) -> Scores:
    """How confident a model is in each unit: the logit of the mean probability of its tokens, as in LiRA."""

    def measure(answers: list[Answers]) -> ValueByRecord:
        means = mean_logprob(answers[0])
        values = compute_logit(np.array(list(means.values()), dtype=np.float64))
        return dict(zip(means, values.tolist(), strict=True))

    found = score_records(evidence, corpus, [model], measure)
    found = found.select([name for name in found.records if name not in left_out])
    return found.average_by_user() if unit == "user" else Scores(found.records, found.records, found.values)


def _flag_scored_members(
    evidence: Evidence, shadows: Collection[str], controls: Scores, unit: Unit
) -> dict[str, Flags]:
    """Which controls trained each calibration model; the same content elsewhere in the set counts too."""
    corpus, cohorts = evidence.corpora[CONTROLS], evidence.cohorts.get(CONTROLS)
    found: dict[str, Flags] = {}
    for model in shadows:
        trained = list_trained_digests(corpus, cohorts, model)
        units = {(r.owner if unit == "user" else r.id) for r in corpus if r.digest in trained}
        found[model] = np.array([name in units for name in controls.records], dtype=np.bool_)
    return found


def _measure_difficulty(
    found: Mapping[tuple[str, str], Scores], role: str, trained: Mapping[str, Flags], references: Collection[str]
) -> Floats:
    """The mean confidence of models not trained on each unit: references or, without any, calibration models.

    Of a pair of calibration models one was not trained on a given control. Of a pair neither was trained on an audited
    unit, and a coin that depends on its name decides which one counts: so both sides are compared with equally many.
    """
    if references:
        return np.asarray(np.mean([found[model, role].values for model in references], axis=0))
    table = np.stack([found[model, role].values for model in trained], axis=1)
    counted = (
        ~np.stack(list(trained.values()), axis=1)
        if role == CONTROLS
        else _draw_model_of_each_pair(found[TARGET, role].records, len(trained))
    )
    return _average_counted_scores(table, counted)


def _collect_calibration_scores(
    found: Mapping[tuple[str, str], Scores], trained: Mapping[str, Flags], references: Floats | None
) -> CalibrationScores | None:
    """The confidence of every calibration model in every control, beside its difficulty for other models.

    The difficulty leaves out the model and the other one of its pair, so that members and non-members are compared with
    equally many.
    With a single pair, a member of one model is compared with the other one and a non-member the other way round.
    """
    if not trained:
        return None
    table = np.stack([found[model, CONTROLS].values for model in trained], axis=1)
    inside = np.stack(list(trained.values()), axis=1)
    count = len(trained)
    if references is not None:
        difficulty = np.repeat(references[:, None], count, axis=1)
    elif count <= 2:
        difficulty = table[:, ::-1]
    else:
        difficulty = np.stack(
            [_average_counted_scores(table, ~inside & (np.arange(count) // 2 != i // 2)) for i in range(count)], 1
        )
    known = np.isfinite(difficulty) & np.isfinite(table)
    return CalibrationScores(confidence=table[known], difficulty=difficulty[known], member=inside[known])


def _average_counted_scores(table: Floats, counted: Flags) -> Floats:
    """The mean confidence of the models that count in each row; not a number where none does."""
    counts = counted.sum(axis=1)
    return np.asarray(np.where(counts > 0, (table * counted).sum(axis=1) / np.maximum(counts, 1), np.nan))


def _draw_model_of_each_pair(names: Collection[str], models: int) -> NDArray[np.bool_]:
    """One calibration model of each pair whose confidence counts: random, the same for a name [names, models]."""
    tossed = np.array(
        [[int(digest(labels.DIGEST_COIN, name, i // 2), 16) % 2 for i in range(models)] for name in names]
    )
    return np.asarray(tossed.reshape(len(names), models) == np.arange(models) % 2)


def _count_unscored(
    evidence: Evidence,
    unit: Unit,
    found: Mapping[tuple[str, str], Scores],
    left_out: Mapping[str, Collection[str]],
    infinite: Mapping[str, int],
) -> dict[str, int]:
    """How many units have no confidence score although not all their records are left out, by reason.

    No token of theirs was predicted, or a model gives one no probability at all.
    """
    counts = {}
    for role in (AUDITED, CONTROLS):
        kept = [record for record in evidence.corpora[role] if record.id not in left_out[role]]
        units = {(record.owner if unit == "user" else record.id) for record in kept}
        counts[f"{role}.not_finite"] = infinite[role]
        counts[f"{role}.not_scored"] = len(units) - len(found[TARGET, role]) - infinite[role]
    return {reason: count for reason, count in counts.items() if count}
