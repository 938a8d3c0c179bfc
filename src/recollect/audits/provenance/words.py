"""The words of a text, and whose text it is."""

from __future__ import annotations

import re

from recollect.corpora.record import Record

PERSON = "the person"
"""Who owns the texts of a file that names no users."""
_WORD = re.compile(r"\w+(?:['’]\w+)*|[^\w\s]")


def split_words(text: str) -> list[str]:
    """The words of a text, in lowercase, as their frequencies are counted.

    >>> split_words("Don't panic, Arthur.")
    ["don't", 'panic', ',', 'arthur', '.']
    """
    return _WORD.findall(text.lower())


def find_word(text: str, start: int) -> str:
    """The word that begins at this character, in lowercase; nothing where none does.

    >>> find_word("Don't panic", 6), find_word("Don't panic", 5)
    ('panic', '')
    """
    found = _WORD.match(text, start)
    return "" if found is None else found.group().lower()


def find_owner(record: Record) -> str:
    """Whose text it is; a file without users is one person's."""
    return PERSON if record.user is None else record.user
