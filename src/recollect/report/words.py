"""Words from anywhere, made fit to be shown: nothing invisible, nothing endless."""

from __future__ import annotations

from recollect.results.masking import shown

MOST = 2_000
"""Characters of one text that are shown; nobody reads more, and the results hold it all."""


def fit(text: str, most: int = MOST) -> str:
    r"""The text on one line, control and direction signs spelt out, its end cut off and said to be.

    >>> fit("a\u202eb"), fit("abcdef", most=3)
    ('a\\u202eb', 'abc … (6 characters)')
    """
    plain = shown(" ".join(text[: 2 * most].split()), show_text=True)
    return plain if len(text) <= most and len(plain) <= 2 * most else f"{plain[:most]} … ({len(text):,} characters)"
