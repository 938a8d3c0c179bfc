"""Which records are exposed: can it be told from what a record looks like whether it will be found out?

Section 4.6 of the paper: among what was trained on, a logistic regression from features of the record to "detected as
a member", fitted on one half of the users and judged on the other. If it can, it also says which data that was not
trained on yet would be found out, if it were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recollect import labels
from recollect.audits.membership.features import COMBINATIONS, handmade
from recollect.corpora.dividing import groups
from recollect.corpora.record import Record
from recollect.models.model import Embedding
from recollect.signals.scores import Floats
from recollect.stats.intervals import Estimate, proportion
from recollect.stats.owners import Owned
from recollect.stats.support import require

EMBEDDER = "embedder"
"""The part of a general masked model that is neither the target nor a reference; its embedding is a feature."""
EMBEDDED = "embedding"
FEWEST = 20
"""Detected records, and undetected ones, that each half must have."""
_PURPOSE = "Predicting which records are exposed"


@dataclass(frozen=True, kw_only=True, eq=False)
class Susceptibility:
    """How well exposure can be predicted, and what is predicted for records that were not trained on."""

    table: pa.Table
    """One row per set of features."""
    likely: dict[str, float]
    """By record that was not trained on: how likely it would be found out if it were."""
    precision: Estimate
    """Of the best features, on the half that was not fitted to."""
    recall: Estimate
    features: str
    """Which these are: the embedding where there is one, else all that are made by hand."""


def susceptibility(
    members: Sequence[Record],
    detected: Sequence[bool],
    others: Sequence[Record],
    *,
    embedder: Embedding | None,
    seed: int,
    confidence: float,
) -> Susceptibility:
    """Predict from their looks which of the members were detected, and the same for others.

    Args:
        members: Texts that were trained on.
        detected: Whether the audit flags each of them.
        others: Texts that were not trained on.
        embedder: A general masked model; None for hand-made features only.
        seed: Of the run: divides users into those that are fitted to and those that judge.
        confidence: How often intervals are right.

    Raises:
        NotEnoughData: One half has too few records that were detected, or too few that were not.
    """
    truth = np.asarray(detected, dtype=np.bool_)
    users = np.array([record.owner for record in members])
    chosen = groups(
        sorted(set(users.tolist())), {"fitted": 0.5, "judged": 0.5}, seed=seed, name=labels.STREAM_SUSCEPTIBLE
    )
    fitted = np.isin(users, chosen["fitted"])
    for half in (fitted, ~fitted):
        for side, name in ((truth, "detected records in each half"), (~truth, "undetected records in each half")):
            require(int((side & half).sum()), FEWEST, of=name, purpose=_PURPOSE, code="too_few_records")
    looks = _looks(members, others, fitted, embedder)
    rows, found = [], dict[str, tuple[NDArray[np.bool_], Floats]]()
    for name, columns in looks.items():
        chances = _chances(columns, truth, fitted)
        found[name] = chances[: len(members)] > 0.5, chances[len(members) :]
        rows.append(_row(name, found[name][0], truth, fitted))
    best = EMBEDDED if EMBEDDED in found else name
    guessed, likely = found[best]
    counted = guessed & ~fitted, truth & ~fitted
    return Susceptibility(
        table=pa.Table.from_pylist(rows),
        likely={record.id: float(chance) for record, chance in zip(others, likely, strict=True)},
        precision=_share(truth, counted[0], users, of="guessed", confidence=confidence),
        recall=_share(guessed, counted[1], users, of="detected", confidence=confidence),
        features=best,
    )


def _looks(
    members: Sequence[Record], others: Sequence[Record], fitted: NDArray[np.bool_], embedder: Embedding | None
) -> dict[str, Floats]:
    """All sets of features by name, members first [records, columns]; frequencies are those of the fitted half."""
    records = [*members, *others]
    made = handmade(records, (record for record, mine in zip(members, fitted, strict=True) if mine))
    looks = {" & ".join(names): np.hstack([made[name] for name in names]) for names in COMBINATIONS}
    return looks if embedder is None else {**looks, EMBEDDED: embedder.embed(records)}


def _chances(columns: Floats, truth: NDArray[np.bool_], fitted: NDArray[np.bool_]) -> Floats:
    """The predicted chance of each record, members first, of being detected."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model: Any = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    model.fit(columns[: len(truth)][fitted], truth[fitted])
    return np.asarray(model.predict_proba(columns)[:, 1])


def _row(
    name: str, guessed: NDArray[np.bool_], truth: NDArray[np.bool_], fitted: NDArray[np.bool_]
) -> Mapping[str, Any]:
    """A row of the paper's table; a share of nothing is None."""
    row: dict[str, Any] = {"features": name}
    for half, chosen in (("train", fitted), ("test", ~fitted)):
        both = int((guessed & truth & chosen).sum())
        for what, whole in (("precision", guessed & chosen), ("recall", truth & chosen)):
            row[f"{half}_{what}"] = both / int(whole.sum()) if whole.any() else None
    return row


def _share(
    hits: NDArray[np.bool_], among: NDArray[np.bool_], users: NDArray[Any], *, of: str, confidence: float
) -> Estimate:
    """The share of hits among some records, with an interval by user."""
    require(int(among.sum()), 1, of=f"{of} records", purpose=_PURPOSE, code="too_few_records")
    return proportion(Owned(hits[among], users[among]), of=of, confidence=confidence)
