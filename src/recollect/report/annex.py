"""The annex: which questions of EDPB Opinion 28/2024 on AI models the results speak to, and which they do not."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from recollect.audits.registry import AUDITS
from recollect.report.audit_answer import Answer
from recollect.report.presentations import find_presentation

OPINION: Final = (
    "European Data Protection Board, Opinion 28/2024 on certain data protection aspects related to the processing of "
    "personal data in the context of AI models, adopted on 17 December 2024"
)
CAVEATS: Final = (
    "These findings are evidence for an assessment. They are not a certificate, and no combination of them makes "
    "a model anonymous.",
    "The Opinion asks that, with all means reasonably likely to be used, the likelihood of extraction and of obtaining "
    "personal data from queries be insignificant for every person whose data trained the model. Tests show what "
    "the means that were tried have found; other means may find more.",
    "The Opinion leaves the judgement to the supervisory authority, case by case, and asks for more than tests: how "
    "the data were chosen and prepared, how the model was trained and limited, how it is governed and documented.",
)
CHECKED: Final = (
    "The wording of the questions is ours. The numbers of paragraphs were checked against quotations of paragraphs 34, "
    "43, 107, 114 and 134 of the Opinion and against two descriptions of the list in paragraph 55, not against the "
    "whole of its text; read it before you rely on them."
)
"""How far the annex was compared with the Opinion itself."""
NOTHING: Final = "No audit of this run speaks to it."


@dataclass(frozen=True, kw_only=True)
class Matter:
    """A question of the Opinion."""

    id: str
    """What an audit names in `Presentation.annex` if its findings are evidence for it."""
    about: str
    paragraphs: str = ""
    """Where the Opinion asks it."""
    remark: str = ""
    """How far the evidence reaches."""
    only_with_evidence: bool = False
    """Whether it is left out where no audit of the run speaks to it."""


@dataclass(frozen=True, kw_only=True)
class AnnexEvidence:
    """A question of the Opinion, and what was found."""

    matter: Matter
    answers: tuple[Answer, ...]
    """Those of this run that are evidence."""
    audits: tuple[str, ...]
    """The audits of ours that would be."""


MATTERS: Final = (
    Matter(
        id="extraction",
        about="Likelihood of extraction: can personal data of those whose data trained the model be extracted from it "
        "directly, also with some probability only?",
        paragraphs="43 (i); attacks: 55 (iii), regurgitation of training data",
        remark="Exposure measures synthetic or known secrets; it represents data of the same kind.",
    ),
    Matter(
        id="queries",
        about="Likelihood of obtaining such data from queries, intentionally or not",
        paragraphs="43 (ii); attacks: 55 (iii), regurgitation of training data",
        remark="Leakage prompts the model with the contexts of its own training data.",
    ),
    Matter(
        id="inference",
        about="Likelihood of inference: can it be inferred that a person’s data were used for training?",
        paragraphs="55 (i), membership inference",
    ),
    Matter(
        id="erasure",
        about="Erasure: are data that had to be removed still in the model?",
        paragraphs="114, erasure as a corrective measure; 107, techniques that remove data after training",
        remark="Bears on the consequences of unlawful processing and on requests for erasure.",
        only_with_evidence=True,
    ),
    Matter(
        id="attributes",
        about="Attribute inference, exfiltration, model inversion and reconstruction of inputs other than text of a "
        "known format",
        paragraphs="55 (i), (ii), (iv) and (v)",
        remark="Recollect itself has no test of these.",
    ),
    Matter(
        id="documentation",
        about="Documentation of tests and of residual risk",
        paragraphs="34, case by case; 134, a mere assertion is not enough",
        remark="Settings, limits, counts, intervals and digests of all that was used are in this report and in "
        "results/*.json. How grave the remaining risk is, they do not say.",
    ),
)


def build_annex(answers: Iterable[Answer]) -> list[AnnexEvidence]:
    """The annex: what the answers say to each question of the Opinion, in their order."""
    given = list(answers)
    ours = {name: find_presentation(name).annex for name in AUDITS.table}
    rows = [
        AnnexEvidence(
            matter=matter,
            answers=tuple(answer for answer in given if matter.id in answer.presentation.annex),
            audits=tuple(name for name, ids in ours.items() if matter.id in ids),
        )
        for matter in MATTERS
    ]
    return [row for row in rows if row.answers or not row.matter.only_with_evidence]
