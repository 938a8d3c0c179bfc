"""The docstrings that stand beneath fields: the one place where a setting is explained."""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache


@cache
def field_docs(kind: type) -> dict[str, str]:
    """What stands beneath each field of a class, by field; fields without a docstring are left out.

    >>> from recollect.pipeline.refs import CorpusRef
    >>> field_docs(CorpusRef)["skip_bad"]
    'Drop and count bad records instead of stopping.'
    """
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(body, ast.ClassDef)  # noqa: S101 - the source of a class is one
    found: dict[str, str] = {}
    for before, after in zip(body.body, body.body[1:], strict=False):
        text = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else None
        if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name) and isinstance(text, str):
            found[before.target.id] = " ".join(text.split())
    return found
