"""How sure models are of every unit: of each record or, where people have several, of each person."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect import labels
from recollect.audits.removal.rates import Flags
from recollect.corpora.cohorts import Cohorts, Unit
from recollect.corpora.corpus import Corpus
from recollect.digests import digest
from recollect.errors import CorpusError
from recollect.models.answers import Answers
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, SHADOW, TARGET, Evidence
from recollect.signals.lira import confidence
from recollect.signals.loss import mean_logprob
from recollect.signals.per_record import Measured, scores_by
from recollect.signals.scores import Floats, Scores


@dataclass(frozen=True, kw_only=True, eq=False)
class Standing:
    """The scores that are compared, one per unit, in the order of the units' names; higher is surer."""

    audited: Scores
    """Under the target."""
    controls: Scores
    """Under the target."""
    members: Scores
    """Under each calibration model, of the controls that trained it; a unit's name carries the model's."""
    others: Scores
    """Under each calibration model, of the controls that did not train it."""
    dropped: dict[str, int]

    def damaged(self, alike: Flags | None = None) -> bool:
        """Whether the target is less sure of records never seen than calibration models are, by all that members gain.

        Then something has spoilt it, such as gradient ascent, and how members look in calibration models says nothing.

        Args:
            alike: Which controls are like the audited records: of others, such as noisy ones, calibration models may
                know more than a healthy target [controls]. None for all.
        """
        counted = np.ones(len(self.controls), dtype=np.bool_) if alike is None else alike
        names = np.array(self.controls.records)[counted]
        unseen, members = (side.values[np.isin(side.users, names)] for side in (self.others, self.members))
        if not len(members) or not len(unseen):
            return False
        usual = float(np.median(unseen))
        gain = float(np.median(members)) - usual
        return float(np.median(self.controls.values[counted])) < usual - max(gain, 0.0)


def unit_of(evidence: Evidence) -> Unit:
    """Users where every record has one and some have several; else records."""
    owners = [record.owner for part in (AUDITED, CONTROLS) for record in evidence.corpora[part]]
    named = all(record.user is not None for part in (AUDITED, CONTROLS) for record in evidence.corpora[part])
    return "user" if named and len(set(owners)) < len(owners) else "record"


def refuse_overlap(evidence: Evidence) -> None:
    """Refuse an empty query set, and controls that share a record or a person with it.

    Raises:
        CorpusError: They do.
    """
    audited, controls = evidence.corpora[AUDITED], evidence.corpora[CONTROLS]
    contents, owners = {r.digest for r in audited}, {r.user for r in audited if r.user is not None}
    if not contents:
        raise CorpusError("The query set is empty.", do="Give the records whose removal is in question.")
    same = [record.id for record in controls if record.digest in contents]
    if same:
        raise CorpusError(
            f"{len(same):,} records of the calibration set are also in the query set, such as {same[0]!r}.",
            do="Controls are records that the target never saw: leave these out.",
        )
    shared = sorted(owners.intersection(r.user for r in controls if r.user is not None))
    if shared:
        raise CorpusError(
            f"{len(shared):,} users are both in the calibration set and in the query set, such as {shared[0]!r}.",
            do="Controls are people of whom the target never saw anything: leave these out.",
        )


def standing(evidence: Evidence, *, unit: Unit, compared: bool) -> Standing:
    """The scores of all that are compared.

    Args:
        evidence: Holds the answers of the target, and of calibration models and references, about both corpora.
        unit: Whether records or users are compared.
        compared: Whether a score is how much surer a model is than models that never saw the unit, rather than how
            sure it is. Then difficulty cancels, also of what no model learns by heart.
    """
    shadows, references = evidence.playing(SHADOW), evidence.playing(REFERENCE)
    sure = {
        (model, part): _sure(evidence, model, part, unit)
        for model in (TARGET, *shadows, *(references if compared else ()))
        for part in (AUDITED, CONTROLS)
    }
    for part in (AUDITED, CONTROLS):
        names = set.intersection(*(set(found.records) for (_, where), found in sure.items() if where == part))
        sure |= {key: found.select(sorted(names)) for key, found in sure.items() if key[1] == part}
    seen = _seen(evidence, shadows, sure[TARGET, CONTROLS], unit)
    scores = {key: found.values for key, found in sure.items()}
    if compared:
        _take_away(scores, sure, seen, references, shadows)
    controls = sure[TARGET, CONTROLS].with_values(scores[TARGET, CONTROLS])
    said = {model: controls.with_values(scores[model, CONTROLS]) for model in shadows}
    return Standing(
        audited=sure[TARGET, AUDITED].with_values(scores[TARGET, AUDITED]),
        controls=controls,
        members=Scores.joined([_of_model(model, said[model], flags) for model, flags in seen.items()]),
        others=Scores.joined([_of_model(model, said[model], ~flags) for model, flags in seen.items()]),
        dropped=_dropped(evidence, unit, sure),
    )


def _of_model(model: str, said: Scores, chosen: Flags) -> Scores:
    """What a calibration model says of some controls, under names that carry the model's."""
    names = tuple(name for name, there in zip(said.records, chosen, strict=True) if there)
    return Scores(tuple(f"{model}/{name}" for name in names), names, said.values[chosen])


def _sure(evidence: Evidence, model: str, corpus: str, unit: Unit) -> Scores:
    """How sure a model is of each unit: the logit of the mean probability of its symbols, as in LiRA."""

    def measure(answers: list[Answers]) -> Measured:
        means = mean_logprob(answers[0])
        values = confidence(np.array(list(means.values()), dtype=np.float64))
        return dict(zip(means, values.tolist(), strict=True))

    found = scores_by(evidence, corpus, [model], measure)
    return found.by_user() if unit == "user" else Scores(found.records, found.records, found.values)


def _seen(evidence: Evidence, shadows: Collection[str], controls: Scores, unit: Unit) -> dict[str, Flags]:
    """Which controls trained each calibration model; the same content elsewhere in the set counts too."""
    corpus, cohorts = evidence.corpora[CONTROLS], evidence.cohorts.get(CONTROLS)
    found: dict[str, Flags] = {}
    for model in shadows:
        trained = trained_contents(corpus, cohorts, model)
        units = {(r.owner if unit == "user" else r.id) for r in corpus if r.digest in trained}
        found[model] = np.array([name in units for name in controls.records], dtype=np.bool_)
    return found


def trained_contents(corpus: Corpus, cohorts: Cohorts | None, model: str) -> frozenset[str]:
    """The digests of the records that trained a calibration model.

    Raises:
        CorpusError: Nobody knows.
    """
    if cohorts is None or model not in cohorts.models:
        raise CorpusError(
            f"Nobody knows which controls trained the calibration model {model!r}.", do="Give cohorts that name it."
        )
    members = frozenset(cohorts.members(model))
    return frozenset(r.digest for r in corpus if (r.owner if cohorts.unit == "user" else r.id) in members)


def _take_away(
    scores: dict[tuple[str, str], Floats],
    sure: dict[tuple[str, str], Scores],
    seen: dict[str, Flags],
    references: Collection[str],
    shadows: tuple[str, ...],
) -> None:
    """Take away how sure models are that never saw the unit: references or, without any, calibration models.

    Of a pair of calibration models one has not seen a given control. Of a pair neither has seen an audited unit, and a
    coin that its name throws says which one counts: so both sides are compared with as many.
    """
    for part in (AUDITED, CONTROLS):
        if references:
            others = np.mean([sure[model, part].values for model in references], axis=0)
        else:
            table = np.stack([sure[model, part].values for model in shadows], axis=1)
            unseen = (
                np.stack([~seen[model] for model in shadows], axis=1)
                if part == CONTROLS
                else _coins(sure[TARGET, part].records, len(shadows))
            )
            others = (table * unseen).sum(axis=1) / np.maximum(unseen.sum(axis=1), 1)
        for model in (TARGET, *shadows):
            scores[model, part] = scores[model, part] - others


def _coins(names: Collection[str], models: int) -> NDArray[np.bool_]:
    """One model of each pair, by chance but always the same for a name [names, models]."""
    tossed = np.array(
        [[int(digest(labels.DIGEST_COIN, name, i // 2), 16) % 2 for i in range(models)] for name in names]
    )
    return np.asarray(tossed.reshape(len(names), models) == np.arange(models) % 2)


def _dropped(evidence: Evidence, unit: Unit, sure: dict[tuple[str, str], Scores]) -> dict[str, int]:
    """How many units have no score."""
    missing = {}
    for part, said in ((AUDITED, "audited"), (CONTROLS, "controls")):
        units = {(r.owner if unit == "user" else r.id) for r in evidence.corpora[part]}
        missing[f"{said} of which nothing was predicted"] = len(units) - len(sure[TARGET, part])
    return {reason: count for reason, count in missing.items() if count}
