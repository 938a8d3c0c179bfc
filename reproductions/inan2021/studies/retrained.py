"""Table 1 and section 4 with the paper's own reference: retrained without all users of S_uniq; three trainings.

Each training is audited twice. Once 500 further users, whom no model saw, say what is expected where nothing was seen.
And once there are none: users are drawn at random and left out of the reference as well, which plays the target for
them, and a second model, trained without them too, judges it (the null model).

Ten epochs are those of the other studies. Three were added after looking: in a trial of the code with 60 users and
three epochs, ε_l of sequences written once was far below that of all, which is the paper's result and which the other
studies do not see. So this one tests whether their long training is the reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from itertools import product
from statistics import fmean, median

from common.outcomes import Figure, Outcome
from laboratory import BOTS, MANY, MANY_COMMENTS, WORDS, Laboratory, Row, Setting, value

STUDY, REVISION = "retrained", 1
SEEDS = (0, 1, 2)
SETTINGS = {
    f"{epochs} epochs": Setting(
        group="many private", changes=("learning_rate=0.02", "batch_size=16", f"training.epochs={epochs}")
    )
    for epochs in (3, 10)
}
AUDIT = {"top_k": 1, "folds": 8, "removable": 0.5}
"""One reference without all users of S_uniq, as long as these are at most half; else folds, and the figures say so."""
LONGER = (2, 3)
"""A mean over words lets a single rare word win: so ε_l is also given for sequences of so many words at least."""
RETRAINED = "without the users whose sequences come out"
"""What a note of the audit says if there is one reference for all users of S_uniq."""
CONTROLS = {"controls": "many controls", "drawn users": None}


def study(lab: Laboratory) -> Iterator[Outcome]:
    figures: list[Figure] = []
    for name, seed in product(SETTINGS, SEEDS):
        setting, what = replace(SETTINGS[name], seed=seed), f"{name}, seed {seed}"
        made_of = [REVISION, asdict(setting), AUDIT]
        figures += lab.keep_figures(STUDY, f"{what}, use", made_of, partial(useful, lab, setting, what))
        for said, controls in CONTROLS.items():
            audited = partial(lab.retrained, setting, controls=controls, **AUDIT)
            part = f"{what}, {said}"
            figures += lab.keep_figures(STUDY, part, made_of, lambda p=part, audit=audited: described(p, audit()))
            yield outcome(figures)


def useful(lab: Laboratory, setting: Setting, what: str) -> list[Figure]:
    """How well the model of a setting predicts users whom it never saw."""
    good = lab.good(lab.trained(setting), "many controls")
    return [
        Figure(f"{what}: validation perplexity", 69.4, good["perplexity"]),
        Figure(f"{what}: validation accuracy, %", 23.7, 100 * good["accuracy"]),
    ]


def outcome(figures: list[Figure]) -> Outcome:
    """What there is after some trainings."""
    return Outcome(
        title="The reference retrained without the users of S_uniq",
        scale=f"{MANY['many private']:,} Reddit users with {MANY_COMMENTS} comments each and two bots, in place of 4.4 "
        f"million users; a GRU of 96 units and {WORDS:,} words, in place of 512 and 10,000; {len(SEEDS)} trainings of "
        "each length.",
        figures=[*(figure for name in SETTINGS for figure in across(name, figures)), *figures],
    )


def described(name: str, row: Row) -> list[Figure]:
    """What leaks in one audit, and of sequences that nobody repeats."""
    sequences = row["sequences"]
    once = [each for each in sequences if each["times"] == 1]
    excess = row["findings"].get("leakage_excess", {})
    low, high = excess.get("interval") or (None, None)
    owners = {each["user"] for each in sequences}
    return [
        Figure(f"{name}: references", "without the users of S_uniq", way(row)),
        Figure(f"{name}: unique sequences", 3757, len(sequences)),
        Figure(f"{name}: unique sequences of the bots", None, sum(each["user"] in BOTS for each in sequences)),
        Figure(f"{name}: users of unique sequences", None, len(owners)),
        Figure(f"{name}: ε_l", 17.75, value(row, "leakage_epsilon")),
        Figure(f"{name}: ε_l of sequences written once", 4.60, value(row, "leakage_epsilon_once")),
        *(
            Figure(f"{name}: ε_l of sequences written once, {words} words or more", None, largest(once, words))
            for words in LONGER
        ),
        Figure(f"{name}: median ε", None, middle(sequences)),
        Figure(f"{name}: median ε of sequences written once", None, middle(once)),
        Figure(f"{name}: largest sum, nats", None, value(row, "leakage_epsilon_sum")),
        Figure(f"{name}: largest sum of sequences written once, nats", None, largest(once, 1, "epsilon_sum")),
        Figure(f"{name}: ε_l of users not seen", None, value(row, "leakage_epsilon_null")),
        Figure(f"{name}: excess, nats", None, excess.get("value")),
        Figure(f"{name}: excess, lower limit", None, low),
        Figure(f"{name}: excess, upper limit", None, high),
        Figure(f"{name}: users flagged, share", None, value(row, "flagged_users")),
        Figure(f"{name}: sequences of 10 or more words", 759, sum(each["words"] > 9 for each in sequences)),
    ]


def across(length: str, figures: list[Figure]) -> list[Figure]:
    """Means over the trainings of one length, beside controls."""
    papers = {"ε_l": 17.75, "ε_l of sequences written once": 4.60, "ε_l of users not seen": None}
    means = []
    for name, paper in papers.items():
        mine = [
            each.ours for each in figures if each.what.startswith(length) and each.what.endswith(f"controls: {name}")
        ]
        known = [each for each in mine if isinstance(each, int | float)]
        means.append(Figure(f"{length}: mean {name}", paper, fmean(known) if known else None))
    return means


def middle(sequences: list[Row]) -> float | None:
    """The median ε of sequences."""
    return median(each["epsilon"] for each in sequences) if sequences else None


def largest(sequences: list[Row], words: int, name: str = "epsilon") -> float | None:
    """The largest value of sequences of so many words at least."""
    return max((each[name] for each in sequences if each["words"] >= words), default=None)


def way(row: Row) -> str:
    """Whether there is one reference without the users of S_uniq, or references without folds of all users."""
    return "without the users of S_uniq" if any(RETRAINED in note for note in row["notes"]) else "without folds"
