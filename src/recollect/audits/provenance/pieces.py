"""Pieces of texts that are queried besides the texts: the same words after less context.

A target that shows one word seldom shows a word that its author made it memorise. Each piece ranks the same words once
more, and others come first in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from recollect.audits.provenance.words import find_owner
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record

MIN_WORDS = 2
"""Words that a piece has at the least."""
_INK = re.compile(r"\S+")


def cut_pieces(texts: Sequence[Record], width: int) -> list[Record]:
    """All pieces of one person's texts, those of the first text first; what is queried already is not repeated.

    A piece begins after every half of its width. The one at the start of a text would repeat what the text itself
    shows.

    Args:
        texts: The texts that are queried, in the order of choice.
        width: How many words a piece has.
    """
    queried = {record.digest for record in texts}
    found = []
    for number, record in enumerate(texts):
        text = record.scored_text
        words = [word.span() for word in _INK.finditer(text)]
        step = max(1, width // 2)
        for first in range(step, len(words) - MIN_WORDS + 1, step):
            begin, end = words[first][0], words[min(first + width, len(words)) - 1][1]
            name = f"{find_owner(record)}/{number}/{begin}"
            piece = replace(_cut_piece(record, text[begin:end]), id=name, user=find_owner(record), extra=None)
            if piece.digest not in queried:
                queried.add(piece.digest)
                found.append(piece)
    return found


def _cut_piece(record: Record, text: str) -> Record:
    """A piece by itself; of a pair or a conversation it is said in the same context, and first."""
    if record.messages is None:
        return replace(record, text=text, source=None, target=None)
    first = next(i for i, each in enumerate(record.messages) if each.scored)
    return replace(record, messages=(*record.messages[:first], record.messages[first]._replace(content=text)))


def find_text(piece: Record) -> int:
    """Which of its author's texts a piece is cut from, from 0."""
    return int(piece.id.rsplit("/", 2)[1])


def build_pieces(texts: Mapping[str, list[Record]], most: int, width: int, *, name: str) -> Corpus:
    """A corpus of the pieces of each person's first texts.

    Args:
        texts: The texts of each user, the best first.
        most: How many of each are queried.
        width: How many words a piece has.
        name: What the corpus is called.
    """
    return Corpus.of([piece for user in sorted(texts) for piece in cut_pieces(texts[user][:most], width)], name=name)
