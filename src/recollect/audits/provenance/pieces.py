"""Pieces of texts that are asked about besides the texts: the same words after less of what came before them.

A target that shows one word seldom shows a word that its author made it remember. Each piece is a further look at the
same words, and other ones come first in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from recollect.audits.provenance.queries import owner
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record

FEWEST = 2
"""Words that a piece has at the least."""
_INK = re.compile(r"\S+")


def pieces(texts: Sequence[Record], width: int) -> list[Record]:
    """All pieces of one person's texts, those of the first text first; what was asked already is not asked again.

    A piece begins after every half of its width. The one at a text's very beginning would show what the text shows.

    Args:
        texts: The texts that are asked about, in the order of choice.
        width: How many words a piece has.
    """
    asked = {record.digest for record in texts}
    found = []
    for place, record in enumerate(texts):
        text = record.predicted
        words = [word.span() for word in _INK.finditer(text)]
        step = max(1, width // 2)
        for first in range(step, len(words) - FEWEST + 1, step):
            begin, end = words[first][0], words[min(first + width, len(words)) - 1][1]
            name = f"{owner(record)}/{place}/{begin}"
            piece = Record(id=name, user=owner(record), text=text[begin:end])
            if piece.digest not in asked:
                asked.add(piece.digest)
                found.append(piece)
    return found


def place_of(piece: Record) -> int:
    """Which of its author's texts a piece is cut from, from 0."""
    return int(piece.id.rsplit("/", 2)[1])


def in_pieces(texts: Mapping[str, list[Record]], most: int, width: int, *, name: str) -> Corpus:
    """A corpus of the pieces of everybody's first texts.

    Args:
        texts: The texts of each user, the best first.
        most: How many of each are asked about.
        width: How many words a piece has.
        name: What the corpus is called.
    """
    return Corpus.of([piece for user in sorted(texts) for piece in pieces(texts[user][:most], width)], name=name)
