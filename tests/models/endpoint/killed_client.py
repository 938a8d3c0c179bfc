"""Scores a corpus through a server, to be killed: `killed_client.py URL WORK BUDGET CONNECTIONS TEXTS`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import RecollectError
from recollect.models.answer_store.scoring import score_corpus
from recollect.models.endpoint.settings import Budget, EndpointSettings, Pace
from recollect.models.loading.loader import load_model


def main(url: str, work: str, budget: str, connections: str, texts: str) -> None:
    records = [Record(id=str(i), text=text) for i, text in enumerate(json.loads(Path(texts).read_text()))]
    settings = EndpointSettings(
        work=Path(work),
        budget=Budget(requests=int(budget)),
        connections=int(connections),
        pace=Pace(first_wait=0.001, timeout=5.0, recheck=200, attempts=12),
    )
    try:
        store = score_corpus(load_model(url, endpoint=settings), Corpus.of(records), Path(work), block=4)
    except RecollectError as error:
        sys.exit(f"{error.code}: {error}")
    sys.stdout.write(json.dumps(store.get_answers(records).logprob.tolist()))


if __name__ == "__main__":
    main(*sys.argv[1:])
