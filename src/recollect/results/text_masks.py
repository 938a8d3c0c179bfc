"""Text from corpora as it may be shown: masked unless the reader requested it.

A mask keeps nothing of the text but its rough length. Not even a first letter is kept: for a secret of a known format
that letter is part of the secret. Rows are distinguished by the ids of their records or secrets.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

TEXT_SETTINGS = frozenset({"source"})
"""Settings that hold private text, of every audit that has the setting `show_text`."""
_LENGTHS = (1, 5, 10, 20, 50, 100, 200, 500, 1000)


def mask_text(text: str) -> str:
    """What may be said of a private text to whoever looks over a shoulder: about how long it is.

    >>> mask_text("my pin is 4711"), mask_text("")
    ('•••• (10–19 characters)', '(empty)')
    """
    index = bisect_right(_LENGTHS, len(text))
    if not index:
        return "(empty)"
    if index == len(_LENGTHS):
        return f"•••• ({_LENGTHS[-1]:,} characters or more)"
    return f"•••• ({_LENGTHS[index - 1]}–{_LENGTHS[index] - 1} characters)"


def mask_unless_shown(text: str, *, show_text: bool) -> str:
    r"""The text itself where the reader requested it, with control characters spelt out; else its mask.

    >>> print(mask_unless_shown("red\x1b[31m", show_text=True))
    red\x1b[31m
    """
    if not show_text:
        return mask_text(text)
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def mask_settings(settings: Mapping[str, Any], *, show_text: bool) -> dict[str, Any]:
    """The settings of an audit, the private text among them as `mask_unless_shown` shows it.

    >>> mask_settings({"source": "Dear Anna", "top": 20}, show_text=False)
    {'source': '•••• (5–9 characters)', 'top': 20}
    """
    return {
        name: mask_unless_shown(value, show_text=show_text)
        if name in TEXT_SETTINGS and isinstance(value, str)
        else value
        for name, value in settings.items()
    }
