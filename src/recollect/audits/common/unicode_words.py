"""The words of a text in any script: what guards and duplicates compare, whatever the model's tokenizer.

Chinese, Japanese, Thai, Lao, Khmer and Burmese are written without spaces; each of their characters counts as a word.
"""

from __future__ import annotations

import itertools
import math
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    + ("\U00020000-\U0003ffff")
)
"""Characters of scripts without spaces, as a regular expression's class has them."""
_WORD = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+(?:['’][^\W{UNSPACED}]+)*")
_SINGLE = re.compile(rf"[{UNSPACED}]")
_SPACES = np.array([chr(code).isspace() for code in range(0x3002)])
"""Which code points are white space; the last one is not, and stands for all beyond."""


def find_spaces(text: str) -> NDArray[np.bool_]:
    """Which characters of a text are white space between Unicode words, as `str.isspace` says [characters].

    >>> find_spaces("a bc d").tolist()
    [False, True, False, False, True, False]
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return np.asarray(_SPACES[np.minimum(codes, len(_SPACES) - 1)])


def list_words(text: str) -> list[str]:
    """The words of a text after normalisation: compatible characters, lowercase, without punctuation.

    >>> list_words("Don't PANIC, 42 times!"), list_words("我爱Python。")
    (["don't", 'panic', '42', 'times'], ['我', '爱', 'python'])
    """
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def truncate_words(text: str, share: float) -> str:
    """The beginning of a text that has that share of its Unicode words, rounded down, and at least one.

    >>> truncate_words("one two, three four", 0.5), truncate_words("我爱你们", 0.75)
    ('one two', '我爱你')
    """
    ends = _find_word_ends(text)
    wanted = max(1, math.floor(share * len(ends) + 1e-9))
    return text if wanted >= len(ends) else text[: ends[wanted - 1]]


@lru_cache(maxsize=2**13)
def _find_word_ends(text: str) -> NDArray[np.int32]:
    """Where each Unicode word of a text ends; kept, because texts are truncated again and again."""
    return np.array([word.end() for word in _WORD.finditer(text)], dtype=np.int32)


def list_terms(words: Sequence[str]) -> list[str]:
    """The terms of a bag of Unicode words: the words and, in scripts without spaces, every two neighbouring characters.

    >>> list_terms(["我", "爱", "python"])
    ['我', '爱', 'python', '我爱']
    """
    pairs = itertools.pairwise(words)
    return [*words, *(one + other for one, other in pairs if _SINGLE.match(one) and _SINGLE.match(other))]


def list_shapes(text: str) -> list[str]:
    """The shapes of a text's words, and of every two neighbours; its beginning counts as a word.

    So a name before every record of one side is seen, even if no two users share it.

    >>> list_shapes("Ann: hi")
    ['^', 'Xx:', 'x', '^ Xx:', 'Xx: x']
    """
    found = ["^", *map(_compute_word_shape, text.split())]
    return found + [f"{one} {other}" for one, other in itertools.pairwise(found)]


@lru_cache(maxsize=2**16)
def _compute_word_shape(word: str) -> str:
    """How a word is written; a long run of a script without spaces is one shape.

    >>> _compute_word_shape("McCoy,"), _compute_word_shape("1999"), _compute_word_shape("USA")
    ('XxXx,', '9', 'X')
    """
    kinds = ("X" if c.isupper() else "x" if c.isalpha() else "9" if c.isdigit() else c for c in word)
    return "".join(kind for kind, _ in itertools.groupby(kinds))[:16]
