"""How the exposure audit is called and shown."""

from __future__ import annotations

from typing import Final

from recollect.audits.verb import TARGET_MODEL, Role, Verb
from recollect.results.folders import EXPOSURE_HISTORY
from recollect.results.presentation import Presentation, TableView
from recollect.signals.evidence import AUDITED, TARGET

CANARIES: Final = "canaries"
"""The role of the manifest that `recollect plant` writes."""

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
    listed="secrets",
    annex=("extraction", "queries"),
    supports="exposure",
)
