"""Sources: every model and corpus, named or given as an object, is loaded and read once however many audits use it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from recollect.checks import quote_value
from recollect.corpora.corpus import Corpus
from recollect.corpora.readers.corpus_reader import read_corpus
from recollect.errors import PlanError
from recollect.models.loading.loader import load_model, natural_reference
from recollect.models.model import Model
from recollect.pipeline.plans.refs import CorpusRef, ModelRef


@dataclass(frozen=True)
class Sources:
    """What was loaded and read so far, by how it was described."""

    _models: dict[tuple[ModelRef, Path], Model] = field(default_factory=dict)
    _corpora: dict[CorpusRef, Corpus] = field(default_factory=dict)

    def clear(self) -> None:
        """Forget what was loaded and read."""
        self._models.clear()
        self._corpora.clear()

    def load_model(self, source: Model | ModelRef | str, work: Path = Path(".recollect")) -> Model:
        """The model itself; the same object each time it is described in the same way.

        Args:
            source: What is described.
            work: The work folder, where answers of a server are kept.
        """
        if isinstance(source, str):
            source = ModelRef(model=source)
        if not isinstance(source, ModelRef):
            return source
        key = source, work.absolute()
        if key not in self._models:
            self._models[key] = source.load(work)
        return self._models[key]

    def read_corpus(self, source: Corpus | CorpusRef | str) -> Corpus:
        """The corpus itself; the same object each time it is described in the same way."""
        if isinstance(source, str):
            source = CorpusRef(corpus=source)
        if not isinstance(source, CorpusRef):
            return source
        if source not in self._corpora:
            self._corpora[source] = source.read()
        return self._corpora[source]


Options = Mapping[str, Any]
Ref = TypeVar("Ref", bound=BaseModel)


@dataclass(frozen=True)
class _LoadedObject:
    """What an object became."""

    objects: tuple[Any, ...]
    """The objects, kept so that no others get their identities."""
    state: Any
    """What they were like."""
    made: Any


@dataclass(frozen=True)
class ObjectSources:
    """What objects became: the same model or corpus for the same object, as long as it is not changed."""

    _models: dict[Any, _LoadedObject] = field(default_factory=dict)
    """By the identities of model and tokenizer, and how it is scored."""
    _corpora: dict[Any, _LoadedObject] = field(default_factory=dict)
    """By the identity of the data, and how they are read."""

    def clear(self) -> None:
        """Forget them."""
        self._models.clear()
        self._corpora.clear()

    def model(self, source: Any, options: Options, tokenizer: Any = None) -> Model | ModelRef:
        """A model as a plan takes it.

        Args:
            source: A model string, a reference, or an object.
            options: How it is scored.
            tokenizer: Of an object that does not bring its own.
        """
        if isinstance(source, ModelRef):
            return source
        if isinstance(source, str | Path):
            return build_object_reference(ModelRef, {"model": str(source), **options})
        if isinstance(source, Mapping):
            return build_object_reference(ModelRef, {**options, **source})
        made: Model = self._load(load_model, source, options, tokenizer)
        return made

    def base(self, source: Any, options: Options, tokenizer: Any = None) -> Model | None:
        """The model that an object with an adapter is naturally compared with; None for any other."""
        made: Model | None = self._load(natural_reference, source, options, tokenizer)
        return made

    def _load(self, load: Callable[..., Any], source: Any, options: Options, tokenizer: Any) -> Any:
        """The model that a function makes of an object; what it made before, if the weights are still the same."""
        described = build_object_reference(ModelRef, {"model": "object", **options})
        key, state = (load, id(source), id(tokenizer), described), _state_of_weights(source)
        kept = self._models.get(key)
        if kept is None or kept.state != state:
            settings = {"question": described.question, "kind": described.kind, "loading": described.loading}
            found = load(source, tokenizer, **settings)
            made = None if found is None else described.limit(found)
            kept = self._models[key] = _LoadedObject((source, tokenizer), state, made)
        return kept.made

    def corpus(self, source: Any, options: Options) -> Corpus | CorpusRef:
        """A corpus as a plan takes it.

        Args:
            source: A path, a reference, a corpus, or an object.
            options: How it is read.
        """
        if isinstance(source, CorpusRef):
            return source
        if isinstance(source, str | Path):
            return build_object_reference(CorpusRef, {"corpus": str(source), **options})
        if isinstance(source, Mapping) and "corpus" in source:
            return build_object_reference(CorpusRef, {**options, **source})
        described = build_object_reference(CorpusRef, {"corpus": "object", **options})
        if isinstance(source, Corpus):
            return source
        kept = self._corpora.get((id(source), described))
        if kept is None or not _is_object_unchanged(source, kept.state):
            made = read_corpus(source, **described.options)
            kept = self._corpora[id(source), described] = _LoadedObject((source,), _snapshot_object(source), made)
        corpus: Corpus = kept.made
        return corpus


def find_origin(source: Any) -> str | None:
    """The folder that a Hugging Face model given as a source says it was loaded from, if it does."""
    config = getattr(source, "config", None) or getattr(getattr(source, "model", None), "config", None)
    return getattr(config, "name_or_path", None) or None


def build_object_reference(kind: type[Ref], fields: Mapping[str, Any]) -> Ref:
    """The reference to a source that was given as an object, or what is wrong with it."""
    try:
        return kind.model_validate(dict(fields))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        raise PlanError(
            f"{name} is {quote_value(first['input'])}. {first['msg']}.",
            do="Change it, or leave it out for the default.",
            code="invalid_setting",
        ) from None


def _state_of_weights(source: Any) -> tuple[tuple[int, int], ...]:
    """What changes as soon as a source, a network or pipeline in memory, is trained further; empty for others."""
    network = source if hasattr(source, "parameters") else getattr(source, "model", None)
    parameters = getattr(network, "parameters", None)
    return tuple((id(each), each._version) for each in parameters()) if callable(parameters) else ()


def _snapshot_object(source: Any) -> Any:
    """The data of a source in memory as they are now, at no cost: a DataFrame is copied only if written to."""
    if isinstance(source, list | tuple):
        return tuple(source)
    return source.copy(deep=False) if type(source).__module__.partition(".")[0] == "pandas" else source


def _is_object_unchanged(source: Any, snapshot: Any) -> bool:
    """Whether the data of a source in memory are still what they were."""
    if isinstance(snapshot, tuple):
        return len(source) == len(snapshot) and all(a is b for a, b in zip(source, snapshot, strict=True))
    return source is snapshot or bool(snapshot.equals(source))
