"""Sources: every model is loaded and every corpus is read once, however many audits use them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from recollect.corpora.corpus import Corpus
from recollect.models.model import Model
from recollect.pipeline.refs import CorpusRef, ModelRef


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
