"""How the membership audit is called and shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from recollect.audits.verb import CANDIDATES, CONTROL_RECORDS, REFERENCES, TARGET_MODEL, Role, Verb
from recollect.results.advice import Advice
from recollect.results.presentation import Presentation, TableView
from recollect.results.result import Outcome
from recollect.signals.roles import AUDITED, CANARIES, CONTROLS, EMBEDDER, PERTURBER, REFERENCE, SHADOW, TARGET

QUESTION: Final = "Was this record, or this person's set of records, in the training data?"

ADVICE: Final[Mapping[Outcome, Advice]] = {
    "found": Advice(
        meaning="Whoever can query the model can tell that some of these records were part of its training data; of "
        "single records or people only where the verdict says that they are identified, or how often they are "
        "recognised. Where taking part says something about a person, such as an illness, that is a disclosure.",
        severity="medium",
        raised_by=("identified",),
        steps=("train-less", "private-training", "restrict-access", "notify"),
    ),
    "not_found": Advice(
        meaning="The model does not reveal by these tests who was in its training data.",
        severity="none",
        steps=("repeat",),
    ),
}

VERB: Final = Verb(
    name="membership",
    summary="Find out which records, or whose, were in the training data of a model.",
    guide="CORPUS contains the candidates; the controls are held-out records known not to be in the training set, "
    "which set the thresholds. With known members (ground truth) the audit measures how well membership can be "
    "inferred; with known members and non-members no controls are needed.\n\n"
    "`recollect membership my-model candidates.jsonl --reference base-model --controls population.jsonl --out run`",
    roles={
        TARGET: TARGET_MODEL,
        AUDITED: CANDIDATES,
        CONTROLS: CONTROL_RECORDS,
        REFERENCE: REFERENCES,
        SHADOW: Role(
            kind="model",
            help="A shadow model: shadow-0, shadow-1 … in the order given; a cohorts.json lists its members.",
            many=True,
        ),
        PERTURBER: Role(
            kind="model", help="For the signal neighbourhood: a masked model that generates the neighbours."
        ),
        EMBEDDER: Role(
            kind="model", help="With known members: a general masked model, to predict which records are susceptible."
        ),
        CANARIES: Role(kind="file", help="The .canaries.json of `recollect plant`, for a bound on ε."),
    },
    members=True,
    trains=True,
    natural_reference=True,
)
PRESENTATION: Final = Presentation(
    figures="recollect.report.figures.membership:draw_membership_figures",
    tables={
        "candidates": TableView(
            caption="Candidates, those with the most evidence of training first",
            terminal=("record", "user", "score", "p_corrected", "identified"),
            first="score",
        ),
    },
    drawn=frozenset({"controls", "roc"}),
    key_findings=frozenset({"auc", "auc_against_controls", "identified"}),
    listed="candidates",
    annex=("inference",),
    advice=ADVICE,
)
