"""Run notes: which stores, models and workspaces of a work folder each run folder rests on, for `recollect clean`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.digests import digest
from recollect.errors import StoreError
from recollect.files import make_private_folder, read_checked_json, write_checked_json
from recollect.models.answer_store.store import AnswerStore
from recollect.models.model import Model

RUNS: Final = "runs"
"""The folder of a work folder that holds the notes."""


@dataclass(kw_only=True)
class RunNote:
    """What one audit of one run folder has used so far; nothing is noted of a run that keeps no run folder."""

    work: Path
    run: Path | None
    audit: str
    entries: set[str] = field(default_factory=set)
    """Folders, relative to the work folder."""

    def use(self, folder: Path) -> None:
        """Note that the run rests on this folder, if it is one of the work folder."""
        work = self.work.absolute()
        if self.run is None or not folder.absolute().is_relative_to(work):
            return
        entry = folder.absolute().relative_to(work).as_posix()
        if entry not in self.entries:
            self.entries.add(entry)
            run = str(self.run.absolute())
            content = {"run": run, "audit": self.audit, "entries": sorted(self.entries)}
            name = f"{digest(run, self.audit)}.json"
            write_checked_json(make_private_folder(self.work / RUNS) / name, content)

    def track_scoring(self, score: Callable[[Model, Corpus], AnswerStore]) -> Callable[[Model, Corpus], AnswerStore]:
        """The same function, which also notes the stores that it gives."""

        def tracked(model: Model, corpus: Corpus) -> AnswerStore:
            store = score(model, corpus)
            self.use(store.folder)
            return store

        return tracked

    def track_training(
        self, train: Callable[[Cohorts, Corpus], Mapping[str, Model]]
    ) -> Callable[[Cohorts, Corpus], Mapping[str, Model]]:
        """The same function, which also notes the folders of the models that it gives."""

        def tracked(cohorts: Cohorts, corpus: Corpus) -> Mapping[str, Model]:
            trained = train(cohorts, corpus)
            for model in trained.values():
                self.use(Path(model.name))
            return trained

        return tracked


def iter_run_notes(work: Path) -> Iterator[tuple[Path, Path, frozenset[str]]]:
    """Each note of a work folder: where it is, its run folder, and the entries that the run rests on.

    Raises:
        StoreError: A note is damaged.
    """
    for path in sorted((work / RUNS).glob("[!.]*.json")):
        do, code = "Delete it; what only this run needs is then no longer protected.", "run_note_damaged"
        written = read_checked_json(path, do=do, code=code)
        try:
            yield path, Path(written["run"]), frozenset(written["entries"])
        except (KeyError, TypeError) as error:
            raise StoreError(f"'{path}' is damaged: {error}.", do=do, code=code) from error
