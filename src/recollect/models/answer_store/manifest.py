"""The manifest of an answer store: whose answers these are, to what question, and how they were computed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from recollect.errors import RecollectError, StoreError
from recollect.files import read_checked_json, write_checked_json
from recollect.models.access import Access
from recollect.models.model import SCORING_REVISION, Kind, Model, Question, Sampling, compute_address

MANIFEST = "manifest.json"
FORMAT = 2
"""Raised when the layout of a store changes."""
BLOCK_SIZE = 1024
"""Records per shard: enough to sort by length within; a run that is killed loses no finished batch of one."""
_NOTED_PACKAGES = ("recollect", "numpy", "pyarrow", "torch", "transformers", "tokenizers")


def get_versions(packages: Iterable[str]) -> dict[str, str]:
    """The installed versions of packages for the manifest: stored answers are read and kept without torch, too.

    >>> get_versions(["no-such-package"])
    {}
    """
    found = {}
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """All that answers depend on, and all that must stay the same for a resumed run to end with the same bytes.

    It is written before the first shard and never again. It holds no times.
    """

    address: str
    """Where the answers are kept: the name of the store's folder."""
    name: str
    """How the user named the model."""
    digest: str
    """The address of the model."""
    kind: Kind
    question: Question
    access: Access
    """The most the model shows, which is what the store holds."""
    block: int = BLOCK_SIZE
    """Records per shard."""
    budget: int | None = None
    """Tokens read at once; None for models that have no such number."""
    revision: int = SCORING_REVISION
    versions: Mapping[str, str] = field(default_factory=lambda: get_versions(_NOTED_PACKAGES))
    """What was installed; noted only, because a number that may change raises `SCORING_REVISION`."""
    format: int = FORMAT

    @classmethod
    def of(cls, model: Model, *, block: int = BLOCK_SIZE) -> Manifest:
        """The manifest of a store for this model."""
        return cls(
            address=compute_address(model),
            name=model.name,
            digest=model.digest,
            kind=model.kind,
            question=model.question,
            # answers are the same whether or not the model can also be queried step by step
            access=replace(model.access, steps=False),
            block=block,
            budget=getattr(model, "budget", None),
        )

    @property
    def is_double(self) -> bool:
        """Whether numbers are kept in double precision: only if the model computes in it."""
        return self.question.precision == "float64"

    def write(self, folder: Path) -> None:
        """Write it into the store's folder, whole or not at all."""
        write_checked_json(folder / MANIFEST, asdict(self))

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The manifest in this folder.

        Raises:
            StoreError: There is none, or it is damaged or of another version.
        """
        path = folder / MANIFEST
        if not path.is_file():
            raise StoreError(
                f"The folder '{folder}' is no answer store: it has no {MANIFEST}.",
                do="Check the path.",
                code="no_answer_store",
            )
        advice = f"Delete '{folder}', and the records will be scored again."
        try:
            written = read_checked_json(path, do=advice, code="manifest_damaged")
            if written["format"] != FORMAT:
                found = f"The answer store '{folder}' has format {written['format']}; this version reads {FORMAT}."
                raise StoreError(found, do=advice, code="store_format")
            return cls._parse(written)
        except StoreError:
            raise
        except (KeyError, TypeError, AttributeError, RecollectError) as error:
            raise StoreError(
                f"The manifest '{path}' cannot be read: {error}", do=f"It is damaged. {advice}", code="manifest_damaged"
            ) from error

    @classmethod
    def _parse(cls, written: dict[str, Any]) -> Manifest:
        """A manifest from what `write` wrote."""
        question = {**written["question"], "sampling": Sampling(**written["question"]["sampling"])}
        return cls(**{**written, "question": Question(**question), "access": Access(**written["access"])})
