"""From a corpus to training sequences, as a recipe lays them out."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import CorpusError
from recollect.recipes.building import Data, marks_of
from recollect.recipes.layouts import (
    LabelledArrays,
    LabelledTexts,
    Masked,
    Pairs,
    Running,
    masked,
    one_by_one,
    streams,
    windows,
)
from recollect.recipes.recipe import Recipe
from recollect.recipes.sequences import Integers, Marks, Sequences, Tokens, tokenise
from recollect.settings import did_you_mean


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How arrays are standardised; one number for all channels."""

    mean: float
    std: float


def texts_of(corpus: Corpus) -> Iterator[str]:
    """Every text that a vocabulary must cover."""
    for record in corpus:
        if record.source is not None:
            yield record.source
        yield record.predicted


def look_at(corpus: Corpus, recipe: Recipe) -> tuple[Data, Scale | None]:
    """What a model must know of the data: classes, and the shape and scale of arrays. Language models need neither."""
    if recipe.task != "classifier":
        return Data(), None
    labels, shape = set[str | int](), ()
    count, total, squares = 0, 0.0, 0.0
    for record in corpus:
        labels.add(_label(record))
        if recipe.tokenizer is None:
            values = channels_first(_array(record)[None])[0].astype(np.float64)
            shape = values.shape
            unit = values / 255 if _array(record).dtype == np.uint8 else values
            count, total, squares = count + unit.size, total + unit.sum(), squares + np.square(unit).sum()
    if recipe.tokenizer is not None:
        return Data(labels=_classes(labels)), None
    mean = total / max(1, count)
    std = float(np.sqrt(max(squares / max(1, count) - mean**2, 0))) or 1.0
    return Data(labels=_classes(labels), shape=shape), Scale(mean=float(mean), std=std)


def _classes(labels: set[str | int]) -> tuple[str, ...]:
    """The names of the classes in the order of the outputs: numbers name their own output."""
    if all(isinstance(label, int) and label >= 0 for label in labels):
        return tuple(str(i) for i in range(max((int(label) for label in labels), default=0) + 1))
    return tuple(sorted(map(str, labels)))


@dataclass(frozen=True, kw_only=True)
class Preparer:
    """Turns corpora into training sequences, the training corpus and the validation corpus alike."""

    recipe: Recipe
    tokenizer: Any
    """None for arrays."""
    data: Data
    scale: Scale | None
    decoder_start: int = 0
    """The symbol that starts the decoder of a seq2seq model."""

    @property
    def rows(self) -> int:
        """How many parallel streams there are."""
        return self.recipe.training.batch_size

    def __call__(self, corpus: Corpus) -> Sequences:
        """The training sequences of a corpus."""
        if self.recipe.task == "classifier":
            return self._arrays(corpus) if self.tokenizer is None else self._labelled(corpus)
        if self.recipe.task == "seq2seq":
            return self._pairs(corpus)
        return self._texts(corpus)

    @property
    def marks(self) -> Marks:
        """The symbols around a text."""
        return marks_of(self.tokenizer, self.recipe.task)

    @property
    def reading(self) -> dict[str, Any]:
        """What whoever loads the model must know: how arrays are scaled, with which symbol a text begins."""
        if self.scale is not None:
            return {"input_mean": self.scale.mean, "input_std": self.scale.std}
        return {"start_symbol": next(iter(self.marks.before), None)} if self.recipe.task == "causal" else {}

    @property
    def around(self) -> Marks:
        """The symbols that are laid out with each text of a language model."""
        marks = self.marks
        if self.recipe.task == "masked":
            return Marks(padding=marks.padding)  # they are put around each piece
        # where texts are joined and one symbol means both, it is not written twice
        joined = self.recipe.sequences.layout != "records" and marks.before == marks.after
        return replace(marks, before=()) if joined else marks

    def tokens(self, records: Iterable[Record]) -> Tokens:
        """The texts of a language model as symbols."""
        return tokenise((_text(record) for record in records), self.tokenizer, self.around)

    def laid_out(self, tokens: Tokens, users: Integers) -> Running | Masked:
        """The training sequences of a language model, whose texts are these, of these users."""
        settings, marks = self.recipe.sequences, self.marks
        if self.recipe.task == "masked":
            return masked(tokens, users, marks, tokenizer=self.tokenizer, settings=settings)
        if settings.layout == "stream":
            return streams(tokens, marks, length=settings.length, rows=self.rows)
        if settings.layout == "windows":
            return windows(tokens, marks, length=settings.length)
        return one_by_one(tokens, users, marks, length=settings.length, split=settings.long == "split")

    def _texts(self, corpus: Corpus) -> Running | Masked:
        """For language models."""
        owners = _Owners()
        tokens = self.tokens(owners.noted(corpus))
        return self.laid_out(tokens, owners.users)

    def _pairs(self, corpus: Corpus) -> Pairs:
        """Sources between their marks; targets after the symbol that starts the decoder."""
        owners, most, marks = _Owners(), self.recipe.sequences.length, self.marks
        started = replace(marks, before=(self.decoder_start, *marks.before))
        sources = tokenise((pair_of(record)[0] for record in owners.noted(corpus)), self.tokenizer, marks, most=most)
        targets = tokenise((pair_of(record)[1] for record in corpus), self.tokenizer, started, most=most)
        return Pairs(sources=sources, targets=targets, users=owners.users, padding=marks.padding)

    def _labelled(self, corpus: Corpus) -> LabelledTexts:
        """Texts between their marks, cut off where too long."""
        owners, classes = _Owners(), array("q")
        texts = (_text(record) for record in self._classified(owners.noted(corpus), classes))
        marks = self.marks
        tokens = tokenise(texts, self.tokenizer, marks, most=self.recipe.sequences.length)
        return LabelledTexts(tokens=tokens, classes=_numbers(classes), users=owners.users, padding=marks.padding)

    def _arrays(self, corpus: Corpus) -> LabelledArrays:
        """Arrays, held in the type they came in."""
        owners, classes = _Owners(), array("q")
        found = [_array(record) for record in self._classified(owners.noted(corpus), classes)]
        shapes = {values.shape for values in found}
        if len(shapes) != 1:
            raise CorpusError(
                f"The arrays of {corpus.name} have {len(shapes)} shapes.",
                do="Give arrays of one shape.",
                code="arrays_of_several_shapes",
            )
        scale = self.scale or Scale(mean=0.0, std=1.0)
        return LabelledArrays(
            arrays=channels_first(np.stack(found)),
            classes=_numbers(classes),
            users=owners.users,
            mean=scale.mean,
            std=scale.std,
        )

    def _classified(self, records: Iterator[Record], classes: array[int]) -> Iterator[Record]:
        """The same records, their classes noted on the way."""
        numbers = {label: i for i, label in enumerate(self.data.labels)}
        for record in records:
            label = str(_label(record))
            if label not in numbers:
                raise CorpusError(
                    f"Record {record.id!r} has the label {label!r}, which the training corpus does not have.",
                    do=f"{did_you_mean(label, numbers)}Train on a corpus that has every label.",
                    code="unknown_label",
                )
            classes.append(numbers[label])
            yield record


class _Owners:
    """Numbers the users in order of appearance while their records pass by."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self._found = array("i")

    def noted(self, corpus: Corpus) -> Iterator[Record]:
        """The records of a corpus, their owners noted on the way."""
        for record in corpus:
            self._found.append(self._number.setdefault(record.owner, len(self._number)))
            yield record

    @property
    def users(self) -> Integers:
        """Whose each record was."""
        return np.array(self._found, dtype=np.int32)


def channels_first(arrays: NDArray[Any]) -> NDArray[Any]:
    """Images H×W as 1×H×W and H×W×C as C×H×W, as models read them; vectors stay vectors."""
    if arrays.ndim == 3:
        return arrays[:, None]
    return np.ascontiguousarray(arrays.transpose(0, 3, 1, 2)) if arrays.ndim == 4 else arrays


def _numbers(values: array[int]) -> NDArray[np.int64]:
    """An array of integers for NumPy."""
    return np.array(values, dtype=np.int64)


def _text(record: Record) -> str:
    """The text of a record."""
    if record.text is None:
        raise CorpusError(
            f"Record {record.id!r} has no text, which this recipe trains on.",
            do="Name the text column, or choose a recipe for pairs (seq2seq) or arrays (mlp, resnet18).",
            code="record_without_text",
        )
    return record.text


def pair_of(record: Record) -> tuple[str, str]:
    """Source and target of a record."""
    if record.source is None or record.target is None:
        raise CorpusError(
            f"Record {record.id!r} is no pair of source and target, which this recipe trains on.",
            do="Name the source and target columns, or choose a recipe for texts.",
            code="record_without_pair",
        )
    return record.source, record.target


def _label(record: Record) -> str | int:
    """The label of a record."""
    if record.label is None:
        raise CorpusError(
            f"Record {record.id!r} has no label.", do="Name the label column.", code="record_without_label"
        )
    return record.label


def _array(record: Record) -> NDArray[Any]:
    """The array of a record."""
    if record.array is None:
        raise CorpusError(
            f"Record {record.id!r} has no array.", do="Give an .npz file with x and y.", code="record_without_array"
        )
    return record.array
