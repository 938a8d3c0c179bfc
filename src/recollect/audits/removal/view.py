"""How the removal audit is called and shown."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from recollect.audits.verb import CANDIDATES, CONTROL_RECORDS, REFERENCES, TARGET_MODEL, Verb
from recollect.results.presentation import Presentation, TableView
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, TARGET

VERB: Final = Verb(
    name="removal",
    summary="Find out whether a data set has really been removed from a model.",
    guide="CORPUS is the query set, whose removal is in question; the controls are a calibration set of the same kind "
    "that the model never saw. The recipe, the target's own, trains calibration models on halves of it, which show "
    "how members look. Without a recipe, the target is compared with a model retrained without the set.\n\n"
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
            caption="People, those who show most that they are still there first",
            columns={
                "user": "User",
                "said": "Verdict",
                "score": "Score",
                "p_still_there": "p still there",
                "p_still_there_corrected": "p, corrected",
                "p_gone": "p gone",
            },
            first="score",
        ),
    },
    drawn=frozenset({"audited", "controls", "members", "power", "votes"}),
    listed="users",
    annex=("erasure",),
    outcome_words={"found": "Not gone", "not_found": "No sign of it"},
)
