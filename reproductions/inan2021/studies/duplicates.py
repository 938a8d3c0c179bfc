"""Section 4: what is said again and again comes out first; sequences written once, and what sanitising would change."""

from __future__ import annotations

from pathlib import Path

from common.outcomes import Figure, Outcome
from laboratory import BOTS, DISTINCT, OTHERS, PASSAGE, PRIVATE, SCALE, Laboratory, Row, value
from transformers import AutoTokenizer

from recollect.audits.leakage.occurrences import count_occurrences
from recollect.corpora.corpus import Corpus
from recollect.corpora.sanitisation import sanitise_by_duplicates

MANY = 10
"""How often a sequence stands in its user's data to be called repeated; the paper speaks of 50 and more."""


def study(lab: Laboratory) -> Outcome:
    found = lab.leakage(lab.trained(PRIVATE), lab.trained(OTHERS))
    distinct = lab.leakage(lab.trained(DISTINCT), lab.trained(OTHERS), audited="distinct")
    people, fewer = lab.people("private"), lab.people("distinct")
    sequences = found["sequences"]
    long = [each for each in sequences if each["words"] > 9]
    texts = said(sequences, people)
    per_symbol = by_symbol(sequences, texts, lab.trained(PRIVATE))
    after = count_occurrences(texts, ((record.owner, record.scored_text) for record in fewer))
    return Outcome(
        title="Section 4: repetitions",
        scale=SCALE,
        figures=[
            Figure("ε_l", 17.75, value(found, "leakage_epsilon")),
            Figure("ε_l of sequences written once", 4.60, value(found, "leakage_epsilon_once")),
            Figure("ε_l by symbol", None, max(per_symbol)),
            Figure("ε_l by symbol of sequences written once", None, max(once(sequences, per_symbol), default=None)),
            Figure("ε_l of the bots", None, largest(sequences, bots=True)),
            Figure("ε_l of Reddit users", None, largest(sequences, bots=False)),
            Figure("largest sum over a sequence, nats", None, value(found, "leakage_epsilon_sum")),
            Figure("unique sequences", 3757, len(sequences)),
            Figure("unique sequences of the bots", None, sum(each["user"] in BOTS for each in sequences)),
            Figure("sequences of 10 or more words", 759, len(long)),
            Figure(f"of these written {MANY} times or more", None, sum(each["times"] >= MANY for each in long)),
            Figure("of these written 50 times or more", 728, sum(each["times"] >= 50 for each in long)),
            Figure("records that repeat an earlier one", None, sanitise_by_duplicates(people).removed),
            Figure(f"records that repeat {PASSAGE} words of an earlier one", None, len(people) - len(fewer)),
            Figure("unique sequences written twice or more", None, sum(each["times"] > 1 for each in sequences)),
            Figure("of these still written twice or more in the sanitised texts", None, int((after.times > 1).sum())),
            Figure("trained on the sanitised texts: ε_l", None, value(distinct, "leakage_epsilon")),
            Figure("trained on the sanitised texts: ε_l of the bots", None, largest(distinct["sequences"], bots=True)),
            Figure("trained on the sanitised texts: unique sequences", None, len(distinct["sequences"])),
            Figure("trained on the sanitised texts: largest sum, nats", None, value(distinct, "leakage_epsilon_sum")),
        ],
        details={
            "sequences": sequences,
            "distinct": distinct["sequences"],
            "times after sanitising": after.times.tolist(),
        },
    )


def by_symbol(sequences: list[Row], texts: list[str], model: Path) -> list[float]:
    """The ε of each sequence by symbol of the model, as in the paper; what stands between spaces may be several."""
    encoded = AutoTokenizer.from_pretrained(model)(texts, add_special_tokens=False)["input_ids"]
    return [each["epsilon_sum"] / len(symbols) for each, symbols in zip(sequences, encoded, strict=True)]


def once(sequences: list[Row], values: list[float]) -> list[float]:
    """The values of the sequences that were written once."""
    return [value for each, value in zip(sequences, values, strict=True) if each["times"] == 1]


def said(sequences: list[Row], people: Corpus) -> list[str]:
    """What the sequences say, read where they stand."""
    texts = {record.id: record.scored_text for record in people}
    return [" ".join(texts[each["record"]][each["start"] :].split()[: each["words"]]) for each in sequences]


def largest(sequences: list[Row], *, bots: bool) -> float | None:
    """The largest ε of sequences by bots, or by others."""
    return max((each["epsilon"] for each in sequences if (each["user"] in BOTS) == bots), default=None)
