"""Compiled templates, kept where Python keeps its compiled modules: compiling takes longer than rendering."""

from __future__ import annotations

import hashlib
import marshal
import sys
from contextlib import suppress
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path

from jinja2 import BytecodeCache, __version__
from jinja2.bccache import Bucket

from recollect.files import write_atomically

_DECIDING = ("html.py", "words.py")
"""Modules beside this one that a compiled template depends on: how it is compiled, and how constants are written."""


class TemplateCache(BytecodeCache):
    """Compiled templates beside their sources, in `__pycache__`; without them, or without the right, all works as well.

    A compiled template is used only if it comes from the very source, the version of the template engine and that of
    Python that are at hand.
    """

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """The file of a template."""
        return filename or name

    def get_source_checksum(self, source: str) -> str:
        """A digest of all that a compiled template depends on."""
        digest = hashlib.sha256(f"{__version__} {source}".encode())
        for name in _DECIDING:
            digest.update(Path(__file__).with_name(name).read_bytes())
        return digest.hexdigest()

    def load_bytecode(self, bucket: Bucket) -> None:
        """Give a template its compiled code, if it is kept."""
        header = _build_cache_header(bucket)
        with suppress(OSError, ValueError, EOFError, TypeError):
            kept = _find_cached_template(bucket).read_bytes()
            if kept.startswith(header):
                bucket.code = marshal.loads(kept[len(header) :])  # noqa: S302 - as trusted as compiled modules beside it

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the compiled code of a template."""
        if sys.dont_write_bytecode or not Path(bucket.key).is_file():  # such as one inside an archive
            return
        with suppress(OSError), write_atomically(_find_cached_template(bucket)) as temporary:
            temporary.write_bytes(_build_cache_header(bucket) + marshal.dumps(bucket.code))


def _find_cached_template(bucket: Bucket) -> Path:
    """Where the compiled code of a template is kept."""
    return Path(cache_from_source(f"{bucket.key}.py"))


def _build_cache_header(bucket: Bucket) -> bytes:
    """What the compiled code of a template begins with."""
    return MAGIC_NUMBER + bucket.checksum.encode()
