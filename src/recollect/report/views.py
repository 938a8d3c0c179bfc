"""How each audit is shown: its figures, and which columns of its tables matter to a reader.

An audit without an entry here, such as a plug-in, is shown with all columns of its tables and no figures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from recollect.report.figures.exposure import exposure_figures
from recollect.report.figures.figure import Figure
from recollect.report.figures.leakage import leakage_figures
from recollect.report.figures.membership import membership_figures
from recollect.report.figures.provenance import provenance_figures
from recollect.report.figures.removal import removal_figures
from recollect.report.following import read_followed
from recollect.results.folders import FOLLOWED
from recollect.results.result import Result


def no_figures(result: Result, tables: Mapping[str, pa.Table]) -> list[Figure]:
    """What is drawn of an audit that nobody made figures for."""
    return []


@dataclass(frozen=True, kw_only=True)
class TableView:
    """How a table is shown."""

    caption: str
    columns: Mapping[str, str] = field(default_factory=dict)
    """The columns to show, in order, with their headings; all, if none is named."""
    first: str | None = None
    """The column whose highest values come first; the order of the table, if None."""


@dataclass(frozen=True, kw_only=True)
class View:
    """How an audit is shown."""

    figures: Callable[[Result, Mapping[str, pa.Table]], list[Figure]] = no_figures
    """Draws from the result and those of its tables that can be read. Figures are given numbers, never texts."""
    tables: Mapping[str, TableView] = field(default_factory=dict)
    files: Mapping[str, tuple[str, Callable[[Path], pa.Table]]] = field(default_factory=dict)
    """More tables for the figures, by name: from which file of the run folder, if it is there, and read by whom."""
    drawn: frozenset[str] = frozenset()
    """Tables that figures show better than rows do."""


GENERIC = View()


def _epsilons_by(key: str, heading: str, caption: str) -> TableView:
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


VIEWS: Mapping[str, View] = {
    "exposure": View(
        figures=exposure_figures,
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
                first="exposure_bits",
            )
        },
        files={"followed": (FOLLOWED, read_followed)},
        drawn=frozenset({"draws"}),
    ),
    "leakage": View(
        figures=leakage_figures,
        tables={
            "sequences": TableView(
                caption="Sequences that only one user wrote and the model says, those that give away most first",
                columns={
                    "user": "User",
                    "text": "Sequence",
                    "context": "After",
                    "personal": "Looks like",
                    "words": "Words",
                    "users": "Users",
                    "times": "Written (times)",
                    "predicted": "Said (times)",
                    "perplexity": "Perplexity",
                    "reference_perplexity": "Reference’s",
                    "epsilon": "Epsilon",
                    "epsilon_sum": "Nats",
                },
            ),
            "users": TableView(
                caption="Users, those of whom most is given away first",
                columns={
                    "user": "User",
                    "sequences": "Sequences",
                    "longest": "Longest (words)",
                    "epsilon": "Epsilon",
                    "epsilon_sum": "Nats",
                    "p_corrected": "p, corrected",
                    "flagged": "Flagged",
                },
            ),
            "by_length": _epsilons_by("words", "Words", "By the words of a sequence"),
            "by_times": _epsilons_by("times_up_to", "Written up to (times)", "By how often its user wrote it"),
            "by_k": _epsilons_by("top_k", "Top k", "By how many symbols the model shows"),
        },
        drawn=frozenset({"chance"}),
    ),
    "removal": View(
        figures=removal_figures,
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
    ),
    "provenance": View(
        figures=provenance_figures,
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
                    "unlike": "Unlike the controls by",
                    "compared_with": "Compared with",
                    "svm_member": "Paper’s classifier",
                },
                first="score",
            ),
        },
        drawn=frozenset({"calibration", "frequency"}),
    ),
    "membership": View(
        figures=membership_figures,
        tables={
            "candidates": TableView(
                caption="Candidates, those with the most evidence of training first", first="score"
            ),
        },
        drawn=frozenset({"controls", "roc"}),
    ),
    "extraction": View(
        tables={
            "secrets": TableView(
                caption="The likeliest secrets",
                columns={
                    "place": "Place",
                    "secret": "Text",
                    "log_perplexity_bits": "Log-perplexity (bits)",
                    "proven": "Proven to be among the likeliest",
                },
            )
        }
    ),
}
"""By the name of the audit."""
