"""How the exposure audit is called and shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from recollect.audits.verb import TARGET_MODEL, Role, Verb
from recollect.results.advice import Advice
from recollect.results.presentation import Presentation, TableView
from recollect.results.result import Outcome
from recollect.results.run_folder import EXPOSURE_HISTORY
from recollect.signals.roles import AUDITED, CANARIES, TARGET

QUESTION: Final = "Does the model memorise secrets of a known format?"

EXPOSURE_ADVICE: Final[Mapping[Outcome, Advice]] = {
    "found": Advice(
        meaning="The model ranks secrets from its training data far above secrets that it never saw. Whoever "
        "can query it can find such secrets with much less effort than by guessing.",
        severity="medium",
        raised_by=("first_guess",),
        steps=("hold-release", "deduplicate", "private-training", "replace-secrets"),
    ),
    "not_found": Advice(
        meaning="These tests found no sign that the model memorised secrets of this format.",
        severity="none",
        steps=("repeat",),
    ),
}

EXTRACTION_ADVICE: Final[Mapping[Outcome, Advice]] = {
    "found": Advice(
        meaning="The model itself writes secrets from its training data to whoever asks in the right way.",
        severity="high",
        steps=("hold-release", "replace-secrets", "deduplicate", "private-training", "notify"),
    ),
    "inconclusive": Advice(
        meaning="None of the secrets found is one that the model writes more often than not, or so few are possible "
        "that one of them is likely anyway. Some may still come from its training data, which the list alone does not "
        "tell: compare it with the data, or measure exposure.",
        steps=("repeat",),
    ),
}

VERB: Final = Verb(
    name="exposure",
    summary="Measure how strongly a model memorises secrets of a known format: exposure, in bits.",
    guide="A secret of exposure 20 is found 2^20 times sooner than by guessing at random. The secrets are those of a "
    "manifest (--canaries), those you name (--format and --secrets), or those of a corpus (--format and CORPUS).\n\n"
    "`recollect exposure my-model --canaries planted.canaries.json --out run`",
    roles={
        TARGET: TARGET_MODEL,
        AUDITED: Role(kind="corpus", help="Where to look for secrets of the format."),
        CANARIES: Role(kind="file", help="The .canaries.json of `recollect plant`."),
    },
)
PRESENTATION: Final = Presentation(
    figures="recollect.report.figures.exposure:draw_exposure_figures",
    tables={
        "secrets": TableView(
            caption="Every secret that was measured, the most exposed first",
            columns={
                "secret_id": "Secret",
                "secret": "Text",
                "planted": "Planted (times)",
                "exposure_bits": "Exposure (bits)",
                "lower": "At least",
                "upper": "At most",
                "rank": "Rank",
                "space": "Of so many",
                "p_corrected": "p, corrected",
                "method": "Method",
                "skew_normal_bits": "Paper’s curve (bits)",
            },
            terminal=("secret_id", "secret", "planted", "exposure_bits", "rank"),
            first="exposure_bits",
        )
    },
    files={"followed": (EXPOSURE_HISTORY, "recollect.report.exposure_history:read_exposure_history")},
    drawn=frozenset({"draws"}),
    listed="secrets",
    annex=("extraction",),
    advice=EXPOSURE_ADVICE,
)

EXTRACTION_VERB: Final = Verb(
    name="extract",
    summary="Extract the most likely secrets of a known format from a model.",
    guide="The default method searches until no unexplored secret can be more likely than those listed, which proves "
    "the list; if the steps run out first, the result states how much of the list is proven.\n\n"
    "`recollect extract my-model --format 'my pin is {digits:6}' --show-text`",
    roles={TARGET: TARGET_MODEL},
)
EXTRACTION_PRESENTATION: Final = Presentation(
    tables={
        "secrets": TableView(
            caption="The most likely secrets",
            columns={
                "place": "Place",
                "secret": "Text",
                "log_perplexity_bits": "Log-perplexity (bits)",
                "proven": "Proven to be among the most likely",
            },
            terminal_rows=10,
        )
    },
    key_findings=frozenset({"proven", "best_bits", "unlisted_bits", "share_searched"}),
    terminal_findings=4,
    listed="secrets",
    annex=("extraction", "queries"),
    advice=EXTRACTION_ADVICE,
    supports="exposure",
)
