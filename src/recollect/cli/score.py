"""`recollect score`: score every token of a corpus, and keep the scores."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.cli import console
from recollect.cli.shared_options import (
    AsJson,
    BackendName,
    CorpusName,
    CorpusOptions,
    ModelName,
    ModelOptions,
    SharedWork,
    Threads,
    Work,
    Workers,
    WorkLimitGb,
)

if TYPE_CHECKING:
    from recollect.corpora.corpus import Corpus
    from recollect.models.answer_store.store import AnswerStore
    from recollect.models.answers import Answers


def score(
    model: ModelName,
    corpus: CorpusName,
    reading: CorpusOptions,
    scoring: ModelOptions,
    work: Work = Path(".recollect"),
    shared_work: SharedWork = False,
    work_limit_gb: WorkLimitGb = None,
    workers: Workers = None,
    threads: Threads = None,
    backend: BackendName = None,
    json: AsJson = False,
) -> None:
    """Score every token of a corpus and keep the scores: four numbers per predicted token.

    The scores are in WORK/answers/ADDRESS as Parquet. Only records that were not scored yet are scored, so a run that
    was stopped resumes. Every audit reads the same scores; `recorded:WORK/answers/ADDRESS` replays them where
    the model is not.
    """
    texts = reading.read(corpus)
    from recollect.session import Session

    began = time.monotonic()
    with console.show_stages() as progress:
        session = Session(
            work=work,
            shared_work=shared_work,
            work_limit_gb=work_limit_gb,
            workers=workers,
            threads=threads,
            backend=backend,
            progress=progress,
        )
        store = session.score(model, texts, **scoring)
    found = _ScoreSummary()
    for _, answers in store.iter_blocks(texts):
        found.add(answers)
    summary = found.build_facts(store, texts, seconds=time.monotonic() - began)
    if json:
        console.print_json(summary)
    else:
        rows = [[name.replace("_", " "), _format_score(value)] for name, value in summary.items()]
        console.print_table(f"Scores of {model}", ["what", "found"], rows)


@dataclass
class _ScoreSummary:
    """What the answers add up to, block by block."""

    tokens: int = 0
    unknown: int = 0
    likeliest: int = 0
    logprob: float = 0.0
    shown: int = 0
    unpredicted: int = 0

    def add(self, answers: Answers) -> None:
        """Take more answers into account."""
        import numpy as np

        self.tokens += answers.rows
        self.unknown += int((~answers.known).sum())
        self.likeliest += int((answers.rank == 1).sum())
        self.unpredicted += int((np.diff(answers.offsets) == 0).sum())
        if answers.logprob is not None:
            has_logprob = ~np.isnan(answers.logprob)
            self.shown += int(has_logprob.sum())
            self.logprob += float(answers.logprob[has_logprob].sum(dtype=np.float64))

    def build_facts(self, store: AnswerStore, corpus: Corpus, *, seconds: float) -> dict[str, Any]:
        """The summary, for people and programs."""
        return {
            "store": str(store.folder),
            "replay_as": f"recorded:{store.folder}",
            "records": len(corpus),
            "records_without_a_prediction": self.unpredicted,
            "tokens": self.tokens,
            "unknown_tokens": self.unknown,
            "predicted_as_likeliest": round(self.likeliest / self.tokens, 6) if self.tokens else None,
            "mean_logprob": round(self.logprob / self.shown, 6) if self.shown else None,
            "dropped": dict(corpus.skipped),
            "seconds": round(seconds, 2),
        }


def _format_score(value: object) -> str:
    """A value as people read it."""
    if isinstance(value, dict):
        from recollect.corpora.readers.faults import describe_reason

        return ", ".join(f"{count:,} {describe_reason(reason)}" for reason, count in value.items()) or "nothing"
    return f"{value:,}" if isinstance(value, int | float) else str(value)
