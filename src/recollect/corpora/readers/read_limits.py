"""How much of a file is believed: limits on what a small, hostile or damaged file can make a reader hold or do."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.checks import check_at_least
from recollect.errors import CorpusError

MEGABYTE = 1 << 20
FREE_BYTES = 100 * MEGABYTE
"""What any file may expand to, however small it is."""
RUNNING_TEXT_BYTES = 1 << 30
"""The least that a running text may have: it is one record until it is split."""
ROW_BYTES = 32
"""What a row counts for besides its texts, where a file expands: a bomb may hold rows without anything in them."""


@dataclass(frozen=True, kw_only=True)
class ReadLimits:
    """Limits on one file of a corpus."""

    max_record_mb: int = 64
    """Megabytes of one line or record."""
    max_expansion: int = 200
    """How many times its own size a compressed file may expand to."""

    def __post_init__(self) -> None:
        check_at_least(1, max_record_mb=self.max_record_mb, max_expansion=self.max_expansion)

    @property
    def record_bytes(self) -> int:
        """Bytes of one line or record."""
        return self.max_record_mb * MEGABYTE

    def get_expanded_bytes(self, size: int) -> int:
        """Bytes that a file of this size may expand to."""
        return max(FREE_BYTES, size * self.max_expansion)

    def build_long_record_error(self, location: str) -> CorpusError:
        """The error for a line or record that does not end."""
        return CorpusError(
            f"{location} is longer than {self.max_record_mb:,} MB.",
            do="Check the file: is it one record per line? If it is right, raise --max-record-mb (max_record_mb=).",
            code="record_too_long",
        )

    def build_expansion_error(self, path: str) -> CorpusError:
        """The error for a file that expands without end."""
        return CorpusError(
            f"{path} expands to more than {self.max_expansion:,} times its size.",
            do="Check where the file comes from. If it is right, raise --max-expansion (max_expansion=).",
            code="expands_too_far",
        )
