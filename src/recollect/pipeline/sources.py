"""Models and corpora as a user names them: one string, and how it is to be read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from recollect.corpora.columns import Columns
from recollect.corpora.corpus import Corpus
from recollect.corpora.splitting import Split
from recollect.corpora.validating import read_corpus

if TYPE_CHECKING:
    # torch comes with models, and whoever only reads a corpus should not wait for it
    from recollect.models.model import Kind, Model, Question


@dataclass(frozen=True, kw_only=True)
class NamedModel:
    """The name of a model, and how it is to be asked."""

    ref: str
    """What `load_model` takes."""
    question: Question | None = None
    """How it is asked; None for the plain way."""
    kind: Kind | None = None
    """What it predicts, where its configuration does not say."""
    device: str | None = None
    """Where it computes; None for the best there is."""
    top_k: int | None = None
    """How many ranked symbols it shows, and nothing else; None for all that it can show."""

    def load(self) -> Model:
        """The model itself, or as much of it as is to be seen."""
        from recollect.models.access import Access
        from recollect.models.limited import limited
        from recollect.models.loading import load_model

        model = load_model(self.ref, question=self.question, kind=self.kind, device=self.device)
        return model if self.top_k is None else limited(model, Access.top(self.top_k))


@dataclass(frozen=True, kw_only=True)
class NamedCorpus:
    """The name of a corpus, and how it is to be read."""

    ref: str
    """What `read_corpus` takes."""
    columns: Columns = field(default_factory=Columns)
    format: str | None = None
    split: Split | None = None
    skip_bad: bool = False
    running_text: bool = False

    def read(self) -> Corpus:
        """The corpus itself, checked."""
        return read_corpus(
            self.ref,
            columns=self.columns,
            format=self.format,
            split=self.split,
            skip_bad=self.skip_bad,
            running_text=self.running_text,
        )
