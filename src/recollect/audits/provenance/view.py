"""How the provenance audit is called and shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from recollect.audits.verb import CANDIDATES, CONTROL_RECORDS, TARGET_MODEL, Verb
from recollect.results.advice import Advice
from recollect.results.presentation import Presentation, TableView
from recollect.results.result import Outcome
from recollect.signals.roles import AUDITED, CONTROLS, TARGET

QUESTION: Final = "Were this person's texts used to train this model?"

ADVICE: Final[Mapping[Outcome, Advice]] = {
    "found": Advice(
        meaning="There is evidence that texts of these people were used to train the model. It does not say "
        "that their texts can be extracted.",
        severity="medium",
        steps=("check-basis", "notify", "retrain"),
    ),
    "not_found": Advice(
        meaning="There is no evidence that texts of these people were used to train the model.",
        severity="none",
        steps=("repeat",),
    ),
    "inconclusive": Advice(
        meaning="The data did not allow a decision about anybody. The verdict says what was seen, why nothing may be "
        "concluded from it, and what would be needed.",
        steps=("improve-data",),
    ),
}

VERB: Final = Verb(
    name="provenance",
    summary="Find out whether a person's texts were used to train a model that outputs ranked words, or only its "
    "first choice.",
    guide="CORPUS is one person's texts, or has a user column: then every user in it is audited. --controls are texts "
    "of at least 76 people who are known not to be in the training set and who write as the person does. Three "
    "quarters of them train shadow models with --recipe, which measure how hard each word is. One quarter is held out "
    "for calibration: the target scores their texts like the person's, which gives the null distribution.\n\n"
    "The result is a p-value: how often somebody who is not in the training set is predicted as well as this "
    "person. Shadow models are kept in --work and reused for the next person, which then takes seconds.\n\n"
    "`recollect provenance their-model/ my-posts.jsonl --controls others.jsonl --recipe word-lstm --out run/`\n\n"
    "For a model that outputs one word, and few queries: add `--top-k 1 --queries 8 --budget 400`.",
    roles={TARGET: TARGET_MODEL, AUDITED: CANDIDATES, CONTROLS: replace(CONTROL_RECORDS, required=True)},
    members=True,
    trains=True,
)
PRESENTATION: Final = Presentation(
    figures="recollect.report.figures.provenance:draw_provenance_figures",
    tables={
        "users": TableView(
            caption="People, those with the strongest evidence first",
            columns={
                "user": "User",
                "decision": "Decision",
                "score": "Score",
                "p_value": "p",
                "p_corrected": "p, corrected",
                "member": "In training",
                "words": "Words",
                "queries": "Texts",
                "unknown_words": "Unknown words",
                "unlike": "Differs from the controls in",
                "compared_with": "Compared with",
                "svm_member": "Paper’s classifier",
            },
            terminal=("user", "decision", "score", "p_value", "p_corrected"),
            first="score",
        ),
    },
    drawn=frozenset({"calibration", "frequency", "roc"}),
    listed="users",
    annex=("inference",),
    advice=ADVICE,
)
