"""A result as it shows itself in a notebook: verdict, key numbers with intervals, figures.

A fragment that needs nothing else: no script, and a style that reaches no further than the fragment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import pyarrow as pa
from markupsafe import Markup

from recollect.report.audit_answer import build_answer
from recollect.report.html import build_environment, read_template
from recollect.report.words import Naming, get_own_id
from recollect.results.advice import STEPS
from recollect.results.result import Result

KEY_NUMBERS: Final = 6
"""So many numbers are shown at once; the others unfold."""


def render_notebook_html(result: Result, tables: Mapping[str, pa.Table], *, naming: Naming = get_own_id) -> str:
    """The result as a fragment of HTML; everything is escaped, and no text of a corpus is in it.

    Args:
        result: What the audit found.
        tables: Its tables, by name: the figures are drawn from them.
        naming: How people and records are called.
    """
    answer = build_answer(result, tables, naming=naming)
    page = build_environment().get_template("notebook.html")
    return page.render(answer=answer, style=_build_notebook_style(), most=KEY_NUMBERS, steps=STEPS)


def _build_notebook_style() -> Markup:
    """The style of a notebook's fragment, nested under it."""
    nested = read_template("parts.css") + read_template("notebook.css")
    return Markup(".recollect-result {\n") + nested.replace(":root", Markup("&")) + Markup("}\n")
