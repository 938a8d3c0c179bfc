"""The manifest of a planted corpus: which secrets are in it, how often, and which were held back."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from recollect.errors import CorpusError
from recollect.files import read_json, remove_checksum, write_checked_json


class Canary(BaseModel):
    """A synthetic secret: planted so many times, or never (a control)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    format: str
    text: str
    """The format filled in: what was planted."""
    source: str | None = None
    """For pairs: the source text it was planted with."""
    source_format: str | None = None
    """For pairs: the format of that source, whose slots are filled like the target's."""
    user_turn: str | None = None
    """For conversations: what the user says before the assistant says the secret."""
    planted: int
    """How many times; 0 for a control."""
    records: tuple[str, ...] = ()
    """The ids of the records that hold it."""


class Canaries(BaseModel):
    """The canaries of one planted corpus, with their controls: what an exposure audit is given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal["1"] = "1"
    corpus: str
    """The digest of the corpus they were planted into."""
    seed: int
    canaries: tuple[Canary, ...]

    @property
    def planted(self) -> tuple[Canary, ...]:
        """The canaries that are in the planted corpus."""
        return tuple(canary for canary in self.canaries if canary.planted)

    @property
    def controls(self) -> tuple[Canary, ...]:
        """The canaries that were held back as controls."""
        return tuple(canary for canary in self.canaries if not canary.planted)

    def save(self, path: Path) -> None:
        """Write the manifest, readable by its owner only: it holds the secrets."""
        write_checked_json(path, self.model_dump(mode="json"))

    @classmethod
    def load(cls, path: Path) -> Canaries:
        """The manifest that `save` wrote."""
        try:
            return cls.model_validate(remove_checksum(read_json(path)))
        except OSError as error:
            raise CorpusError(
                f"{path} cannot be read: {error.strerror}.",
                do="Give the .canaries.json that `recollect plant` wrote.",
                code="unreadable_file",
            ) from error
        except ValidationError as error:
            raise CorpusError(
                f"{path} is no manifest of canaries.", do="`recollect plant` writes one.", code="bad_manifest"
            ) from error
        except ValueError as error:
            raise CorpusError(
                f"{path} is no manifest of canaries, or damaged: {error}.",
                do="Plant the canaries again: `recollect plant` writes one.",
                code="bad_manifest",
            ) from error
