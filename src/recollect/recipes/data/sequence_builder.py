"""From a corpus to training sequences, as a recipe lays them out."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from recollect.checks import suggest_name
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import CorpusError, PlanError
from recollect.models.tokens.chat_template import find_template
from recollect.models.tokens.record_encoder import RecordEncoder, RenderedTextDetector
from recollect.recipes.data.sequence_layouts import (
    CausalSequences,
    LabelledArraySequences,
    LabelledTextSequences,
    MaskedSequences,
    PairSequences,
    lay_out_masked,
    lay_out_records,
    lay_out_streams,
    lay_out_windows,
)
from recollect.recipes.data.sequences import (
    BLOCK_SIZE,
    Integers,
    SpecialTokens,
    TokenTable,
    TrainingSequences,
    tokenise_for_training,
)
from recollect.recipes.model_builder import DataFacts, get_special_tokens
from recollect.recipes.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class ArrayScale:
    """How arrays are standardised; one number for all channels."""

    mean: float
    std: float


def iter_sequence_texts(corpus: Corpus) -> Iterator[str]:
    """Every text of a corpus from which the builder makes sequences."""
    for record in corpus:
        if record.context_text:
            yield record.context_text
        yield record.scored_text


def inspect_corpus(corpus: Corpus, recipe: Recipe) -> tuple[DataFacts, ArrayScale | None]:
    """Before building sequences: the classes of a corpus, and the shape and scale of its arrays."""
    if recipe.task != "classifier":
        return DataFacts(), None
    labels, shape = set[str | int](), ()
    count, total, squares = 0, 0.0, 0.0
    for record in corpus:
        labels.add(_get_label(record))
        if recipe.tokenizer is None:
            values = move_channels_first(_get_array(record)[None])[0].astype(np.float64)
            shape = values.shape
            unit = values / 255 if _get_array(record).dtype == np.uint8 else values
            count, total, squares = count + unit.size, total + unit.sum(), squares + np.square(unit).sum()
    if recipe.tokenizer is not None:
        return DataFacts(labels=_name_classes(labels)), None
    mean = total / max(1, count)
    std = float(np.sqrt(max(squares / max(1, count) - mean**2, 0))) or 1.0
    return DataFacts(labels=_name_classes(labels), shape=shape), ArrayScale(mean=float(mean), std=std)


def _name_classes(labels: set[str | int]) -> tuple[str, ...]:
    """The names of the classes for the sequence builder, in the order of the outputs: numbers name their own."""
    if all(isinstance(label, int) and label >= 0 for label in labels):
        return tuple(str(i) for i in range(max((int(label) for label in labels), default=0) + 1))
    return tuple(sorted(map(str, labels)))


@dataclass(frozen=True, kw_only=True)
class SequenceBuilder:
    """Turns corpora into training sequences, the training corpus and the validation corpus alike."""

    recipe: Recipe
    tokenizer: Any
    """None for arrays."""
    data: DataFacts
    scale: ArrayScale | None
    decoder_start: int = 0
    """The token that starts the decoder of a seq2seq model."""

    @property
    def rows(self) -> int:
        """How many parallel streams there are."""
        return self.recipe.training.batch_size

    def __call__(self, corpus: Corpus) -> TrainingSequences:
        """The training sequences of a corpus."""
        if self.recipe.task == "classifier":
            return self._build_arrays(corpus) if self.tokenizer is None else self._build_labelled_texts(corpus)
        if self.recipe.task == "seq2seq":
            return self._build_pairs(corpus)
        return self._build_texts(corpus)

    @cached_property
    def special_tokens(self) -> SpecialTokens:
        """The tokens around a text."""
        return get_special_tokens(self.tokenizer, self.recipe)

    @property
    def card_entries(self) -> dict[str, Any]:
        """What whoever loads the model must know: how arrays are scaled, with which token a text begins."""
        if self.scale is not None:
            return {"input_mean": self.scale.mean, "input_std": self.scale.std}
        return {"start_symbol": next(iter(self.special_tokens.before), None)} if self.recipe.task == "causal" else {}

    @property
    def layout_special_tokens(self) -> SpecialTokens:
        """The tokens that are laid out with each text of a language model."""
        special_tokens = self.special_tokens
        if self.recipe.task == "masked":
            return SpecialTokens(padding=special_tokens.padding)  # they are put around each piece
        # where texts are joined and one token means both, it is not written twice
        joined = self.recipe.sequences.layout != "records" and special_tokens.before == special_tokens.after
        return replace(special_tokens, before=()) if joined else special_tokens

    def tokenise(self, records: Iterable[Record]) -> TokenTable:
        """The records of a language model as tokens."""
        remaining = iter(records)
        first = next(remaining, None)
        every = remaining if first is None else chain([first], remaining)
        if self.recipe.task == "causal" and first is not None and first.text is None:
            return self._tokenise_replies(every)
        texts = RenderedTextDetector(self.tokenizer).watch(_get_text(record) for record in every)
        return tokenise_for_training(texts, self.tokenizer, self.layout_special_tokens)

    @cached_property
    def reply_encoder(self) -> RecordEncoder:
        """Turns pairs and conversations into tokens as the model's scoring reads them."""
        template = find_template(self.tokenizer, self.recipe.sequences.chat_template)
        before = self.layout_special_tokens.before
        return RecordEncoder(self.tokenizer, name=self.recipe.name, template=template, before=before)

    def _tokenise_replies(self, records: Iterable[Record]) -> TokenTable:
        """Pairs and conversations, of which only the completion, or what the assistant says, is trained on.

        A completion ends as a text does; a conversation ends as its template ends it.
        """
        if self.recipe.sequences.layout == "stream":
            raise PlanError(
                f"Recipe {self.recipe.name!r} reads all records as one stream, in which replies have no context.",
                do="Choose sequences.layout=records.",
                code="stream_of_replies",
            )
        flat, trained, lengths, remaining = array("i"), array("b"), [0], iter(records)
        after = self.layout_special_tokens.after
        while block := list(islice(remaining, BLOCK_SIZE)):
            for record, sequence in zip(block, self.reply_encoder(block, training=True), strict=True):
                end = after if record.messages is None else ()
                flat.extend([*sequence.ids.tolist(), *end])
                trained.extend([*sequence.trained.tolist(), *(True for _ in end)])
                lengths.append(len(sequence.ids) + len(end))
        return TokenTable(
            flat=np.array(flat, dtype=np.int32),
            offsets=np.cumsum(lengths, dtype=np.int64),
            trained=np.array(trained, dtype=np.bool_),
        )

    def lay_out(self, tokens: TokenTable, users: Integers) -> CausalSequences | MaskedSequences:
        """The training sequences of a language model, whose texts are these, of these users."""
        settings, special_tokens = self.recipe.sequences, self.special_tokens
        if self.recipe.task == "masked":
            return lay_out_masked(tokens, users, special_tokens, tokenizer=self.tokenizer, settings=settings)
        if settings.layout == "stream":
            return lay_out_streams(tokens, special_tokens, length=settings.length, rows=self.rows)
        if settings.layout == "windows":
            return lay_out_windows(tokens, special_tokens, length=settings.length)
        return lay_out_records(tokens, users, special_tokens, length=settings.length, split=settings.long == "split")

    def _build_texts(self, corpus: Corpus) -> CausalSequences | MaskedSequences:
        """For language models."""
        user_index = _UserIndex()
        tokens = self.tokenise(user_index.track(corpus))
        return self.lay_out(tokens, user_index.users)

    def _build_pairs(self, corpus: Corpus) -> PairSequences:
        """Sources between their marks; targets after the token that starts the decoder."""
        user_index, max_length, special_tokens = _UserIndex(), self.recipe.sequences.length, self.special_tokens
        started = replace(special_tokens, before=(self.decoder_start, *special_tokens.before))
        sources = tokenise_for_training(
            (get_pair(record)[0] for record in user_index.track(corpus)),
            self.tokenizer,
            special_tokens,
            max_tokens=max_length,
        )
        targets = tokenise_for_training(
            (get_pair(record)[1] for record in corpus), self.tokenizer, started, max_tokens=max_length
        )
        return PairSequences(sources=sources, targets=targets, users=user_index.users, padding=special_tokens.padding)

    def _build_labelled_texts(self, corpus: Corpus) -> LabelledTextSequences:
        """Texts between their marks, cut off where too long."""
        user_index, classes = _UserIndex(), array("q")
        texts = (_get_text(record) for record in self._note_classes(user_index.track(corpus), classes))
        special_tokens = self.special_tokens
        tokens = tokenise_for_training(texts, self.tokenizer, special_tokens, max_tokens=self.recipe.sequences.length)
        return LabelledTextSequences(
            tokens=tokens,
            classes=_to_sequence_integers(classes),
            users=user_index.users,
            padding=special_tokens.padding,
        )

    def _build_arrays(self, corpus: Corpus) -> LabelledArraySequences:
        """Arrays, held in the type they came in."""
        user_index, classes = _UserIndex(), array("q")
        found = [_get_array(record) for record in self._note_classes(user_index.track(corpus), classes)]
        shapes = {values.shape for values in found}
        if len(shapes) != 1:
            raise CorpusError(
                f"The arrays of {corpus.name} have {len(shapes)} shapes.",
                do="Give arrays of one shape.",
                code="arrays_of_several_shapes",
            )
        scale = self.scale or ArrayScale(mean=0.0, std=1.0)
        return LabelledArraySequences(
            arrays=move_channels_first(np.stack(found)),
            classes=_to_sequence_integers(classes),
            users=user_index.users,
            mean=scale.mean,
            std=scale.std,
        )

    def _note_classes(self, records: Iterator[Record], classes: array[int]) -> Iterator[Record]:
        """The same records, their classes noted on the way."""
        numbers = {label: i for i, label in enumerate(self.data.labels)}
        for record in records:
            label = str(_get_label(record))
            if label not in numbers:
                raise CorpusError(
                    f"Record {record.id!r} has the label {label!r}, which the training corpus does not have.",
                    do=f"{suggest_name(label, numbers)}Train on a corpus that has every label.",
                    code="unknown_label",
                )
            classes.append(numbers[label])
            yield record


class _UserIndex:
    """Numbers the users in order of appearance while their records pass by."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}
        self._found = array("i")

    def track(self, corpus: Corpus) -> Iterator[Record]:
        """The records of a corpus for the sequence builder, their owners noted on the way."""
        for record in corpus:
            self._found.append(self._number.setdefault(record.owner, len(self._number)))
            yield record

    @property
    def users(self) -> Integers:
        """Whose each record of the built sequences was."""
        return np.array(self._found, dtype=np.int32)


def move_channels_first(arrays: NDArray[Any]) -> NDArray[Any]:
    """Images H×W as 1×H×W and H×W×C as C×H×W, as training sequences have them; vectors stay vectors."""
    if arrays.ndim == 3:
        return arrays[:, None]
    return np.ascontiguousarray(arrays.transpose(0, 3, 1, 2)) if arrays.ndim == 4 else arrays


def _to_sequence_integers(values: array[int]) -> NDArray[np.int64]:
    """Integers of a sequence as an array of NumPy."""
    return np.array(values, dtype=np.int64)


def _get_text(record: Record) -> str:
    """The text of a record from which a training sequence is built."""
    if record.text is None:
        raise CorpusError(
            f"Record {record.id!r} has no text, which this recipe trains on.",
            do="Name the text column, or choose a recipe for pairs (seq2seq) or arrays (mlp, resnet18).",
            code="record_without_text",
        )
    return record.text


def get_pair(record: Record) -> tuple[str, str]:
    """Source and target of a record from which a training sequence is built."""
    if record.source is None or record.target is None:
        raise CorpusError(
            f"Record {record.id!r} is no pair of source and target, which this recipe trains on.",
            do="Name the source and target columns, or choose a recipe for texts.",
            code="record_without_pair",
        )
    return record.source, record.target


def _get_label(record: Record) -> str | int:
    """The label of a record from which a training sequence is built."""
    if record.label is None:
        raise CorpusError(
            f"Record {record.id!r} has no label.", do="Name the label column.", code="record_without_label"
        )
    return record.label


def _get_array(record: Record) -> NDArray[Any]:
    """The array of a record from which a training sequence is built."""
    if record.array is None:
        raise CorpusError(
            f"Record {record.id!r} has no array.", do="Give an .npz file with x and y.", code="record_without_array"
        )
    return record.array
