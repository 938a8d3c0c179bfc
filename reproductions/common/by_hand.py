"""Numbers that a template or a page has of its own; there each would have to be kept right by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator

NUMBER = r"[A-F]?\.?\d+(?:\.\d+)*[a-d]?"
QUOTED = re.compile(
    r"<!-- (?:figures )?\w+(?:/[\w/]+)?(?:: .+?|\n.*?\n)-->.*?<!-- (?:/|end of figures) -->"
    r"|```.*?^```$|`[^`\n]*`|\{\{.+?\}\}|<!--.*?-->|\]\([^)\n]*\)",
    re.DOTALL | re.MULTILINE,
)
"""Figures of results files, in pages and in templates, code, comments and addresses."""
REFERENCE = re.compile(
    rf"\b(?:tables?|figures?|sections?|appendix|equations?|algorithm|footnote|rows?|columns?|item)\s+{NUMBER}"
    rf"(?:(?:,| and| to|–|, and)\s*{NUMBER})*",
    re.IGNORECASE,
)
"""Parts of a paper."""
NAME = re.compile(
    r"[A-Za-z]+[-‑]?\d[\w.]*|(?:et al\.|Shmatikov) \d{4}|[Vv]ersion \d[\d.]*|\bk = \d+|\b10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+"
)
"""Names with digits in them ("ResNet-18", "M6", "top-50", "k = 100"), years of papers, versions, and powers of ten."""
DIGITS = re.compile(r"\d[\d.,]*")


def numbers_by_hand(template: str) -> Iterator[tuple[int, str]]:
    """Each number that is written out, with its line.

    >>> list(numbers_by_hand("Table 3, M6: {{study: share}} of `5` and 0.52 (Huang et al. 2021)"))
    [(1, '0.52')]
    """
    rest = template
    for allowed in (QUOTED, REFERENCE, NAME):
        rest = allowed.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), rest)
    for place, line in enumerate(rest.split("\n"), 1):
        for found in DIGITS.findall(line):
            yield place, found.rstrip(".,")
