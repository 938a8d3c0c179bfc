"""Cohorts: which users (or records) trained which model. The ground truth of an audit."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from recollect.checks import check_one_of, suggest_name
from recollect.corpora.corpus import Corpus
from recollect.errors import CorpusError
from recollect.files import add_checksum, remove_checksum, write_text

Unit = Literal["user", "record"]
VERSION: Literal[1] = 1


@dataclass(frozen=True, kw_only=True, eq=False)
class Cohorts:
    """Which users (or records) trained which model.

    >>> cohorts = Cohorts.of({"target": ["ann", "bob"]}, units=["ann", "bob", "cid"], unit="user", corpus="…", seed=0)
    >>> cohorts.members("target"), cohorts.non_members("target")
    (('ann', 'bob'), ('cid',))
    """

    unit: Unit
    """Whether users or records were divided."""
    corpus: str
    """The digest of the corpus that was divided."""
    seed: int
    """The seed of the random streams that divided it."""
    units: tuple[str, ...]
    """Every user (or record id), in ascending order."""
    models: tuple[str, ...]
    matrix: NDArray[np.bool_]
    """Models × units: whether the unit trained the model."""

    @classmethod
    def of(
        cls, members: Mapping[str, Collection[str]], *, units: Collection[str], unit: Unit, corpus: str, seed: int
    ) -> Cohorts:
        """Cohorts from the members of each model.

        Args:
            members: The units that trained each model.
            units: All units.
            unit: Whether they are users or records.
            corpus: The digest of the corpus.
            seed: The seed with which the members were drawn.
        """
        check_one_of(("user", "record"), unit=unit)
        ordered = tuple(sorted(set(units)))
        index = {name: i for i, name in enumerate(ordered)}
        matrix = np.zeros((len(members), len(ordered)), dtype=np.bool_)
        for row, (model, chosen) in enumerate(members.items()):
            for name in chosen:
                if name not in index:
                    raise CorpusError(
                        f"The {unit} {name!r} of model {model!r} is not in the corpus.",
                        do=f"{suggest_name(name, ordered)}Divide the corpus again.",
                        code="unknown_member",
                    )
                matrix[row, index[name]] = True
        return cls(unit=unit, corpus=corpus, seed=seed, units=ordered, models=tuple(members), matrix=matrix)

    @cached_property
    def _row_index(self) -> dict[str, int]:
        return {model: row for row, model in enumerate(self.models)}

    def member_mask(self, model: str) -> NDArray[np.bool_]:
        """For each unit, whether it trained the model."""
        if model not in self._row_index:
            raise CorpusError(
                f"The cohorts know no model {model!r}.",
                do=f"{suggest_name(model, self.models)}They know: {', '.join(self.models)}.",
                code="unknown_model",
            )
        row: NDArray[np.bool_] = self.matrix[self._row_index[model]]
        return row

    def members(self, model: str) -> tuple[str, ...]:
        """The units that trained the model, in ascending order."""
        return tuple(self.units[i] for i in np.flatnonzero(self.member_mask(model)))

    def non_members(self, model: str) -> tuple[str, ...]:
        """The units that did not train the model, in ascending order."""
        return tuple(self.units[i] for i in np.flatnonzero(~self.member_mask(model)))

    def join(self, other: Cohorts) -> Cohorts:
        """The models of both, of the same corpus divided by the same unit."""
        if (self.corpus, self.unit) != (other.corpus, other.unit):
            raise CorpusError(
                "The cohorts belong to different corpora or units.",
                do="Divide one corpus, and by one unit.",
                code="different_corpora",
            )
        shared = sorted(set(self.models).intersection(other.models))
        if shared:
            raise CorpusError(
                f"Both cohorts hold a model {shared[0]!r}.", do="Rename one of them.", code="duplicate_model"
            )
        members = {name: cohorts.members(name) for cohorts in (self, other) for name in cohorts.models}
        units = {*self.units, *other.units}
        return Cohorts.of(members, units=units, unit=self.unit, corpus=self.corpus, seed=self.seed)

    def select_corpus(self, corpus: Corpus, model: str) -> Corpus:
        """The records that trained the model, in the order of the corpus.

        Args:
            corpus: The corpus that was divided; another one is refused by its digest.
            model: The model.
        """
        self.check_corpus(corpus)
        chosen, name = self.members(model), f"{corpus.name} ({model})"
        return (corpus.select_users if self.unit == "user" else corpus.select_records)(chosen, name=name)

    def check_corpus(self, corpus: Corpus) -> None:
        """Refuse a corpus that is not the one that was divided."""
        if corpus.digest != self.corpus:
            raise CorpusError(
                f"The cohorts were made of a corpus with digest {self.corpus}; {corpus.name} has {corpus.digest}.",
                do="Give the same files with the same options, or divide this corpus anew.",
                code="different_corpora",
            )

    def save(self, path: Path) -> None:
        """Write the cohorts as JSON, whole or not at all, readable by the owner only."""
        members = {model: np.flatnonzero(self.member_mask(model)).tolist() for model in self.models}
        saved = _CohortsFile(
            version=VERSION, unit=self.unit, corpus=self.corpus, seed=self.seed, units=list(self.units), models=members
        )
        # in one line: the lists of members are long
        write_text(path, json.dumps(add_checksum(saved.model_dump()), separators=(",", ":"), ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, path: Path) -> Cohorts:
        """The cohorts that `save` wrote, checked."""
        try:
            saved = _CohortsFile.model_validate(remove_checksum(json.loads(path.read_bytes())))
        except OSError as error:
            raise CorpusError(
                f"{path} cannot be read: {error.strerror}.", do="Give a saved cohorts.json.", code="unreadable_file"
            ) from error
        except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise CorpusError(f"{path} holds no cohorts: it is no JSON.", do=_ADVICE, code="bad_cohorts") from error
        except ValidationError as error:
            problem = error.errors()[0]
            where = ".".join(map(str, problem["loc"])) or "the file"
            raise CorpusError(
                f"{path} holds no cohorts: {where}: {problem['msg']}.", do=_ADVICE, code="bad_cohorts"
            ) from error
        except ValueError as error:
            raise CorpusError(f"{path} is damaged: {error}.", do=_ADVICE, code="bad_cohorts") from error
        return cls(
            unit=saved.unit,
            corpus=saved.corpus,
            seed=saved.seed,
            units=tuple(saved.units),
            models=tuple(saved.models),
            matrix=saved.build_matrix(path),
        )


_ADVICE = "Give a file that Cohorts.save wrote, or divide the corpus again."


class _CohortsFile(BaseModel):
    """Cohorts as they are in a file: members are places in the list of units, which keeps the file small."""

    model_config = ConfigDict(extra="forbid", strict=True)

    version: Literal[1]
    unit: Unit
    corpus: str
    seed: int
    units: list[str]
    models: dict[str, list[int]]

    def build_matrix(self, path: Path) -> NDArray[np.bool_]:
        """Models × units, after a check that the places make sense."""
        if any(a >= b for a, b in zip(self.units, self.units[1:], strict=False)):
            raise CorpusError(f"{path} holds units that are not in ascending order.", do=_ADVICE, code="bad_cohorts")
        matrix = np.zeros((len(self.models), len(self.units)), dtype=np.bool_)
        for row, (model, indices) in enumerate(self.models.items()):
            if any(not 0 <= index < len(self.units) for index in indices) or len(set(indices)) < len(indices):
                raise CorpusError(
                    f"{path} holds places in model {model!r} that no unit has.", do=_ADVICE, code="bad_cohorts"
                )
            matrix[row, indices] = True
        return matrix
