"""How the leakage audit is called and shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from recollect.audits.verb import CANDIDATES, CONTROL_RECORDS, REFERENCES, TARGET_MODEL, Verb
from recollect.results.advice import Advice
from recollect.results.presentation import Presentation, TableView
from recollect.results.result import Outcome
from recollect.signals.roles import AUDITED, CONTROLS, REFERENCE, TARGET

QUESTION: Final = "Which users' texts does the model reproduce, and is that because it was trained on them?"

ADVICE: Final[Mapping[Outcome, Advice]] = {
    "found": Advice(
        meaning="Prompted with the beginning of a text from its training data, the model goes on word for "
        "word as one user wrote and nobody else did.",
        severity="medium",
        raised_by=("flagged_users",),
        steps=("hold-release", "deduplicate", "private-training", "train-less", "notify"),
    ),
    "not_found": Advice(
        meaning="These tests do not show that the model reproduces more of its training users' texts than of the "
        "texts of people whom it never saw.",
        severity="none",
        steps=("repeat",),
    ),
}


def _build_epsilon_view(key: str, heading: str, caption: str) -> TableView:
    """How sequences and their epsilons are shown by groups."""
    return TableView(
        caption=caption,
        columns={
            key: heading,
            "sequences": "Sequences",
            "users": "Users",
            "epsilon": "Largest epsilon",
            "epsilon_median": "Median",
            "epsilon_p99": "99th percentile",
            "epsilon_sum": "Largest sum (nats)",
        },
    )


VERB: Final = Verb(
    name="leakage",
    summary="Find out which users' sequences a model reproduces when it is prompted with their texts.",
    guide="CORPUS is the training data, with a user column. Consecutive words that the model predicts (top k) form a "
    "run; runs that only one user wrote may leak. Leakage epsilon measures how much more likely they are under the "
    "model than under a reference that was not trained on the user: given (--reference), or trained without the user "
    "(--recipe, with --folds and --removable).\n\n"
    "It is positive even without a leak. Its null distribution comes from held-out users (--controls, the most "
    "reliable), from a second --reference, or from a second model of the recipe. Without any of these, sequences "
    "are counted but not tested.\n\n"
    "`recollect leakage my-model train.jsonl --recipe word-gru --controls others.jsonl --out run`\n\n"
    "`recollect leakage my-model train.jsonl --reference public-model --top-k 3 --fail-if 'flagged_users>0'`",
    roles={
        TARGET: TARGET_MODEL,
        AUDITED: CANDIDATES,
        CONTROLS: CONTROL_RECORDS,
        REFERENCE: REFERENCES,
    },
    members=True,
    trains=True,
)
PRESENTATION: Final = Presentation(
    figures="recollect.report.figures.leakage:draw_leakage_figures",
    key_findings=frozenset({"leakage_excess", "leakage_p", "flagged_users", "leakage_epsilon", "unique_sequences"}),
    tables={
        "sequences": TableView(
            caption="Sequences that only one user wrote and the model predicts, those that leak most first",
            columns={
                "user": "User",
                "text": "Sequence",
                "context": "After",
                "personal": "Looks like",
                "words": "Words",
                "users": "Users",
                "times": "Written (times)",
                "predicted": "Predicted (times)",
                "perplexity": "Perplexity",
                "reference_perplexity": "Reference’s",
                "epsilon": "Epsilon",
                "epsilon_sum": "Nats",
            },
            terminal=("user", "text", "times", "predicted", "epsilon"),
        ),
        "users": TableView(
            caption="Users, largest leak first: sequences of all texts, decisions from texts cut to what controls have",
            columns={
                "user": "User",
                "sequences": "Sequences",
                "longest": "Longest (words)",
                "epsilon": "Epsilon",
                "epsilon_sum": "Nats",
                "p_corrected": "p, corrected (at equal amounts)",
                "flagged": "Flagged (at equal amounts)",
            },
        ),
        "by_length": _build_epsilon_view("words", "Words", "By the words of a sequence"),
        "by_times": _build_epsilon_view("times_up_to", "Written up to (times)", "By how often its user wrote it"),
        "by_k": _build_epsilon_view("top_k", "Top k", "By how many tokens the model shows"),
    },
    drawn=frozenset({"null"}),
    listed="sequences",
    annex=("extraction", "queries"),
    advice=ADVICE,
)
