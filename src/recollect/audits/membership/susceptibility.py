"""Susceptibility: can it be predicted from a record's features (the paper's Table 7) that it is detected?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from recollect import labels
from recollect.audits.common.result_builder import ResultBuilder
from recollect.audits.membership.candidate_scores import UnitScores
from recollect.audits.membership.decisions import Decisions
from recollect.corpora.partitions import draw_groups
from recollect.corpora.record import Record
from recollect.errors import NotEnoughData, PlanError
from recollect.models.model import Embedder
from recollect.results.result import Finding
from recollect.signals.evidence import AUDITED, Evidence
from recollect.signals.roles import EMBEDDER
from recollect.signals.scores import Floats
from recollect.stats.groups import OwnedValues
from recollect.stats.intervals import Estimate, proportion
from recollect.stats.requirements import require_count

if TYPE_CHECKING:
    from recollect.audits.membership.audit import MembershipAudit


RAREST_WORD_COUNT = 3
"""How many of the rarest words' frequencies are a feature."""
COMBINATIONS: tuple[tuple[str, ...], ...] = (
    ("digits",),
    ("length",),
    ("symbols",),
    ("rarest",),
    ("symbols", "rarest"),
    ("length", "symbols", "rarest"),
    ("digits", "length", "symbols", "rarest"),
)
"""The rows of the paper's table: A, B, C, D, C & D, B & C & D, A & B & C & D."""


def extract_features(records: Sequence[Record], counted: Iterable[Record]) -> dict[str, Floats]:
    """The paper's hand-crafted features of susceptibility, each as columns [records, columns].

    Args:
        records: Texts.
        counted: The texts in which word frequencies are counted. A record's own user is left out of its counts: else
            the words of counted users would seem more frequent than those of others.
    """
    mine = count_words_by_user(counted)
    whole = Counter[str]()
    for words in mine.values():
        whole.update(words)
    counts: dict[str, Callable[[str], int]] = {
        "digits": lambda text: sum(character.isdigit() for character in text),
        "length": lambda text: len(text.split()),
        "symbols": lambda text: sum(not character.isalnum() and not character.isspace() for character in text),
    }
    made = {name: [[count(record.scored_text)] for record in records] for name, count in counts.items()}
    made["rarest"] = [_count_rarest_words(record.scored_text, whole, mine.get(record.owner, {})) for record in records]
    return {name: np.array(columns, dtype=np.float64) for name, columns in made.items()}


def count_words_by_user(records: Iterable[Record]) -> dict[str, Counter[str]]:
    """For susceptibility: how often each user wrote each word.

    >>> count_words_by_user([Record(id="1", user="ann", text="to be or not to be")])["ann"]["be"]
    2
    """
    found: dict[str, Counter[str]] = {}
    for record in records:
        found.setdefault(record.owner, Counter()).update(record.scored_text.split())
    return found


def _count_rarest_words(text: str, whole: Mapping[str, int], mine: Mapping[str, int]) -> list[int]:
    """For susceptibility: how often others wrote a text's rarest words, rarest first."""
    found = sorted(whole.get(word, 0) - mine.get(word, 0) for word in text.split())[:RAREST_WORD_COUNT] or [0]
    return found + found[-1:] * (RAREST_WORD_COUNT - len(found))


EMBEDDED = "embedding"
MIN_RECORDS = 20
"""Detected records, and undetected ones, that each half must have."""
_PURPOSE = "Predicting which records are detected"


@dataclass(frozen=True, kw_only=True, eq=False)
class Susceptibility:
    """How well detection can be predicted, and what is predicted for non-members."""

    table: pa.Table
    """One row per set of features."""
    likely: dict[str, float]
    """By non-member: the predicted probability that it would be detected if it were trained on."""
    precision: Estimate
    """Of the best features, on the half that was held out."""
    recall: Estimate
    features: str
    """Which these are: the embedding where there is one, else all hand-crafted features."""


def add_susceptibility(
    builder: ResultBuilder, audit: MembershipAudit, evidence: Evidence, scores: UnitScores, decisions: Decisions | None
) -> Susceptibility | None:
    """Which records are susceptible, where ground truth is known and the units are records; else None."""
    if scores.truth is None or audit.by != "record" or decisions is None or not decisions.flagged:
        return None
    records = {record.id: record for record in evidence.corpora[AUDITED]}
    if any(record.array is not None for record in records.values()):
        return None
    flags = decisions.flagged[max(decisions.flagged)]
    detected = dict(zip(scores.candidates.records, flags.tolist(), strict=True))
    try:
        found = predict_susceptibility(
            [records[name] for name in scores.members.records],
            [detected[name] for name in scores.members.records],
            [records[name] for name in scores.non_members.records],
            embedder=find_embedder(evidence),
            seed=evidence.seed,
            confidence=audit.confidence,
        )
    except NotEnoughData as refusal:
        builder.refuse("susceptibility_precision", refusal)
        return None
    how = f"by a logistic regression from {found.features}, on held-out users."
    for name, what, share in (
        ("susceptibility_precision", "Of the records predicted to be detected, the share that is,", found.precision),
        ("susceptibility_recall", "Of the records that are detected, the share that was predicted,", found.recall),
    ):
        builder.findings.append(Finding.of(share, name=name, unit="share", reading=f"{what} {how}"))
    return found


def find_embedder(evidence: Evidence) -> Embedder | None:
    """The general model whose embedding is a feature of susceptibility, if one is given.

    Raises:
        PlanError: It is of a kind that embeds nothing.
    """
    model: object = evidence.models.get(EMBEDDER)
    if model is None or isinstance(model, Embedder):
        return model
    raise PlanError(
        f"The embedder is a {evidence.models[EMBEDDER].kind} model, which has no token that stands for a whole text.",
        do="Give a masked model that is neither the target nor a reference, such as a general BERT.",
        code="not_an_embedder",
    )


def predict_susceptibility(
    members: Sequence[Record],
    detected: Sequence[bool],
    others: Sequence[Record],
    *,
    embedder: Embedder | None,
    seed: int,
    confidence: float,
) -> Susceptibility:
    """Predict from features which of the members were detected, and which others would be.

    Args:
        members: Texts that were trained on.
        detected: Whether the audit flags each of them.
        others: Texts that were not trained on.
        embedder: A general masked model; None for hand-crafted features only.
        seed: Of the run: divides users into those that are fitted to and those that are held out.
        confidence: The confidence level of all intervals.

    Raises:
        NotEnoughData: One half has too few records that were detected, or too few that were not.
    """
    truth = np.asarray(detected, dtype=np.bool_)
    users = np.array([record.owner for record in members])
    chosen = draw_groups(
        sorted(set(users.tolist())), {"fitted": 0.5, "judged": 0.5}, seed=seed, name=labels.STREAM_SUSCEPTIBLE
    )
    fitted = np.isin(users, chosen["fitted"])
    for half in (fitted, ~fitted):
        for side, name in ((truth, "detected records in each half"), (~truth, "undetected records in each half")):
            require_count(int((side & half).sum()), MIN_RECORDS, of=name, purpose=_PURPOSE, code="too_few_records")
    rows, found = [], dict[str, tuple[NDArray[np.bool_], Floats]]()
    for name, columns in _combine_features(members, others, fitted, embedder).items():
        probability = _fit_susceptibility(columns, truth, fitted)
        found[name] = probability[: len(members)] > 0.5, probability[len(members) :]
        rows.append(_build_susceptibility_row(name, found[name][0], truth, fitted))
    best = EMBEDDED if EMBEDDED in found else name
    predicted, likely = found[best]
    return Susceptibility(
        table=pa.Table.from_pylist(rows),
        likely={record.id: float(probability) for record, probability in zip(others, likely, strict=True)},
        precision=_estimate_detected_share(truth, predicted & ~fitted, users, of="guessed", confidence=confidence),
        recall=_estimate_detected_share(predicted, truth & ~fitted, users, of="detected", confidence=confidence),
        features=best,
    )


def _combine_features(
    members: Sequence[Record], others: Sequence[Record], fitted: NDArray[np.bool_], embedder: Embedder | None
) -> dict[str, Floats]:
    """All sets of features by name, members first [records, columns]; frequencies are those of the fitted half."""
    records = [*members, *others]
    made = extract_features(records, (record for record, mine in zip(members, fitted, strict=True) if mine))
    combined = {" & ".join(names): np.hstack([made[name] for name in names]) for names in COMBINATIONS}
    return combined if embedder is None else {**combined, EMBEDDED: embedder.embed(records)}


def _fit_susceptibility(columns: Floats, truth: NDArray[np.bool_], fitted: NDArray[np.bool_]) -> Floats:
    """The predicted probability of each record, members first, of being detected."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model: Any = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    model.fit(columns[: len(truth)][fitted], truth[fitted])
    return np.asarray(model.predict_proba(columns)[:, 1])


def _build_susceptibility_row(
    name: str, predicted: NDArray[np.bool_], truth: NDArray[np.bool_], fitted: NDArray[np.bool_]
) -> Mapping[str, Any]:
    """A row of the paper's table of susceptibility; a share of nothing is None."""
    row: dict[str, Any] = {"features": name}
    for half, chosen in (("train", fitted), ("test", ~fitted)):
        both = int((predicted & truth & chosen).sum())
        for what, whole in (("precision", predicted & chosen), ("recall", truth & chosen)):
            row[f"{half}_{what}"] = both / int(whole.sum()) if whole.any() else None
    return row


def _estimate_detected_share(
    hits: NDArray[np.bool_], among: NDArray[np.bool_], users: NDArray[Any], *, of: str, confidence: float
) -> Estimate:
    """The share of detected ones among some records, with an interval by user."""
    require_count(int(among.sum()), 1, of=f"{of} records", purpose=_PURPOSE, code="too_few_records")
    return proportion(OwnedValues(hits[among], users[among]), of=of, confidence=confidence)
