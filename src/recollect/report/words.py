"""Words from anywhere, made fit to be shown: nothing invisible, nothing endless, people under the names they get."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from recollect.results.pseudonyms import load_pseudonyms
from recollect.results.result import Mention, Text, render_text
from recollect.results.text_masks import mask_unless_shown

Naming = Callable[[Mention], str]
"""How a person or a record is called in a view."""
MAX_CHARACTERS = 2_000
"""Characters of one text that are shown; nobody reads more, and the results hold it all."""


def fit(text: str, most: int = MAX_CHARACTERS) -> str:
    r"""Words on one line, control and direction signs spelt out, the end cut off and said to be.

    >>> fit("a\u202eb"), fit("abcdef", most=3)
    ('a\\u202eb', 'abc … (6 characters)')
    """
    plain = mask_unless_shown(" ".join(text[: 2 * most].split()), show_text=True)
    return plain if len(text) <= most and len(plain) <= 2 * most else f"{plain[:most]} … ({len(text):,} characters)"


def get_own_id(mention: Mention) -> str:
    """A person or a record in words, under its own id."""
    return mention.id


def choose_naming(
    folder: Path | None, *, real_names: bool = False, named: Collection[str] = (), keep: bool = True
) -> Naming:
    """The words for people and records in the views of a run folder.

    Args:
        folder: The run folder; None for a result that is in memory only.
        real_names: Whether all are called by their own ids.
        named: Who is called by their own ids in any case.
        keep: Whether the folder may get a key for its pseudonyms if it has none.
    """
    return get_own_id if real_names else load_pseudonyms(folder, named=named, keep=keep)


def render_sentence(text: Text, naming: Naming = get_own_id) -> str:
    """The words of a result's sentence as one string: the one place where views name people and records.

    >>> render_sentence(("Nothing of ", Mention(kind="user", id="ann"), " was found."), lambda each: f"a {each.kind}")
    'Nothing of a user was found.'
    """
    return render_text(text, naming)
