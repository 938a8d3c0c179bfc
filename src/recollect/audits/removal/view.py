"""How the removal audit is called and shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from recollect.audits.verb import CANDIDATES, CONTROL_RECORDS, REFERENCES, TARGET_MODEL, Verb
from recollect.results.advice import Advice
from recollect.results.presentation import Presentation, TableView
from recollect.results.result import Outcome
from recollect.signals.roles import AUDITED, CONTROLS, REFERENCE, TARGET

QUESTION: Final = "Has this data set really been removed from the model?"

ADVICE: Final[Mapping[Outcome, Advice]] = {
    "found": Advice(
        meaning="The data that were to be removed still influence the model. A deletion request is not fulfilled.",
        severity="high",
        steps=("retrain", "notify"),
    ),
    "not_found": Advice(
        meaning="The model behaves as if it had never seen the data that were to be removed.",
        severity="none",
        steps=("repeat",),
    ),
}

VERB: Final = Verb(
    name="removal",
    summary="Find out whether a data set was really removed from a model.",
    guide="CORPUS is the query set, whose removal is in question; the controls are a calibration set of the same kind "
    "that the model was not trained on. The target's own recipe trains calibration models on halves of it, which show "
    "how members are scored. Without a recipe, the target is compared with a model retrained without the set.\n\n"
    "`recollect removal my-model query.npz --controls calibration.npz --recipe mlp --out run`",
    roles={
        TARGET: TARGET_MODEL,
        AUDITED: CANDIDATES,
        CONTROLS: replace(CONTROL_RECORDS, required=True),
        REFERENCE: REFERENCES,
    },
    trains=True,
)
PRESENTATION: Final = Presentation(
    figures="recollect.report.figures.removal:draw_removal_figures",
    tables={
        "users": TableView(
            caption="People, strongest evidence of still being in the model first",
            columns={
                "user": "User",
                "decision": "Verdict",
                "score": "Score",
                "p_still_there": "p still there",
                "p_still_there_corrected": "p, corrected",
                "p_gone": "p gone",
            },
            terminal=("user", "decision", "score", "p_still_there", "p_gone"),
            first="score",
        ),
    },
    drawn=frozenset({"audited", "controls", "members", "power", "votes"}),
    listed="users",
    annex=("erasure",),
    advice=ADVICE,
    outcome_words={"found": "Not gone", "not_found": "No sign of it"},
)
