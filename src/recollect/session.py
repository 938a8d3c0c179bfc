"""A session: audits that share what they load, and what each of them found."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from recollect.audits.registry import list_audits_by_verb
from recollect.audits.workspace import Progress, add_notes, ignore_progress
from recollect.checks import suggest_name
from recollect.files import hold_lock, make_scratch_folder, refuse_foreign_folder, use_folder
from recollect.pipeline.plans.backends import BackendRef, close_backends, parse_backend
from recollect.pipeline.plans.calls import (
    Call,
    divide_call_options,
    parse_call_path,
    parse_call_seed,
    refuse_unknown_call_arguments,
)
from recollect.pipeline.plans.plan import Plan
from recollect.pipeline.plans.plan_file import PlannedRun, read_plan
from recollect.pipeline.plans.refs import ModelRef
from recollect.pipeline.sources import ObjectSources, Sources
from recollect.results.result import Finding, Result

if TYPE_CHECKING:
    import pyarrow as pa

    from recollect.corpora.corpus import Corpus
    from recollect.models.answer_store.store import AnswerStore
    from recollect.pipeline.forecast import Forecast, ImpossibleAudit
    from recollect.pipeline.run import FinishedRun
    from recollect.report.words import Naming
    from recollect.stats.intervals import Estimate


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """What an audit found. `result["auc"]` is a finding, `result.table(name)` a table; a notebook displays it.

    Everything that the result itself holds (`verdict`, `outcome`, `findings`, `notes` …) can be read from it.
    """

    finished_run: FinishedRun = field(repr=False)
    folder: Path | None = None
    """The run folder in which it is kept; None if it is in memory only."""
    real_names: bool = False
    """Whether people and records are shown by their own ids in place of pseudonyms."""
    named: Collection[str] = ()
    """Users and records that are shown by their own ids in any case."""

    @property
    def result(self) -> Result:
        """The result of an audit in a session as it is saved: a pydantic model."""
        return self.finished_run.result

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.finished_run.result, name)

    def __getitem__(self, name: str) -> Finding:
        """The finding of that name."""
        known = {finding.name: finding for finding in self.result.findings}
        if name not in known:
            missing = {each.finding: each.reason for each in self.result.skipped}
            missing |= {each.finding: each.reason for each in self.result.withheld}
            reason = f" {missing[name]}" if name in missing else ""
            raise KeyError(f"no finding {name!r}.{reason} {suggest_name(name, known)}There are: {', '.join(known)}.")
        return known[name]

    def table(self, name: str) -> pa.Table:
        """A longer table of an audit in a session, as Arrow: `.to_pandas()` makes a DataFrame."""
        tables_in_memory = self.result.tables_in_memory
        if name not in tables_in_memory:
            raise KeyError(
                f"no table {name!r}. {suggest_name(name, tables_in_memory)}There are: {', '.join(tables_in_memory)}."
            )
        return tables_in_memory[name]

    def save(self, folder: str | Path) -> Path:
        """Write the run folder of an audit in a session: result, tables, plan, cohorts and report."""
        from recollect.report.report_writer import write_report

        self.finished_run.write_folder(Path(folder))
        write_report(Path(folder), show_text=self._audits_showing_text, real_names=self.real_names, named=self.named)
        return Path(folder)

    def report(self, file: str | Path) -> Path:
        """Write the report of an audit in a session alone, as `.html` or `.md`."""
        from recollect.report.report_writer import write_report

        with make_scratch_folder(Path(file).parent) as scratch:
            self.finished_run.write_folder(scratch)
            return write_report(
                scratch,
                Path(file),
                show_text=self._audits_showing_text,
                real_names=self.real_names,
                named=self.named,
            )

    @property
    def naming(self) -> Naming:
        """How people and records are called where a result of the session is shown."""
        from recollect.report.words import choose_naming

        return choose_naming(self.folder, real_names=self.real_names, named=self.named)

    @property
    def _audits_showing_text(self) -> list[str]:
        """The audits whose text is shown: this one, if it was to show text."""
        return [self.result.audit] if self.result.settings.get("show_text") is True else []

    def __repr__(self) -> str:
        from recollect.results.result import render_text
        from recollect.results.summary_rows import build_summary_rows

        rows = [f"  {row.title}: {row.both}" for row in build_summary_rows(self.result)]
        return "\n".join(
            [f"{self.result.audit}: {self.result.outcome}. {render_text(self.result.verdict, self.naming)}", *rows]
        )

    def _repr_html_(self) -> str:
        from recollect.report.notebook import render_notebook_html

        return render_notebook_html(self.result, dict(self.result.tables_in_memory), naming=self.naming)


@dataclass(frozen=True, kw_only=True)
class Session:
    """Audits that share what they load: every model and corpus is loaded, digested and scored once.

    with Session(work=".recollect") as session:
        session.exposure(model, canaries="planted.canaries.json")
        session.leakage(model, "train.jsonl", controls="others.jsonl")

    A function of this module that is called without a session makes one of its own.
    """

    work: Path | str = Path(".recollect")
    """Where scores per token and trained models are kept, for all runs."""
    seed: int = 0
    """Seed of all random numbers."""
    workers: int | None = None
    """Number of processes; by default one for scoring, and for training as many as a short trial finds best."""
    threads: int | None = None
    """Threads per process; by default the cores are divided among the processes."""
    backend: str | Mapping[str, Any] | BackendRef | None = None
    """Where models are trained and records are scored: "local", "ray", "ray:HOST:6379", or {"ray": {"cpus": 4}}."""
    work_limit_gb: float | None = None
    """Maximum size of the work folder in gigabytes; once it is reached, nothing new is started."""
    shared_work: bool = False
    """Whether the work folder may belong to somebody else, whose scores and models are then trusted."""
    real_names: bool = False
    """Whether people and records are shown by their own ids in place of pseudonyms."""
    named: Collection[str] = ()
    """Users and records that are shown by their own ids in any case."""
    progress: Progress = ignore_progress
    """Called now and then with the current stage and how far it is."""
    _sources: Sources = field(default_factory=Sources, repr=False)
    _objects: ObjectSources = field(default_factory=ObjectSources, repr=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sources.clear()
        self._objects.clear()
        close_backends()

    def audit(self, name: str, model: Any, corpus: Any = None, **given: Any) -> AuditResult:
        """Run the audit of that name; see its own function, such as `membership`, for what can be given."""
        from recollect.pipeline.run import finish
        from recollect.report.report_writer import write_report

        out = given.pop("out", None)
        folder = None if out is None else parse_call_path("out", out)
        plan = self.plan(name, model, corpus, **given)
        with _hold_run_folder(folder):
            finished = finish(plan, folder, sources=self._sources, progress=self.progress)
            result = AuditResult(finished_run=finished, folder=folder, real_names=self.real_names, named=self.named)
            if folder is not None:
                write_report(
                    folder, show_text=result._audits_showing_text, real_names=self.real_names, named=self.named
                )
        return result

    def plan(self, name: str, model: Any, corpus: Any = None, **given: Any) -> Plan:
        """The plan that such a call amounts to; nothing is loaded but objects in memory."""
        running: dict[str, Any] = {
            "work": parse_call_path("work", self.work),
            "workers": self.workers,
            "threads": self.threads,
        }
        running |= {"backend": parse_backend(self.backend) or BackendRef()}
        running |= {"shared_work": self.shared_work, "work_limit_gb": self.work_limit_gb}
        seed = given.pop("seed", None)
        call = Call(audit=name, model=model, corpus=corpus, given=given)
        return call.build_plan(self._objects, seed=parse_call_seed(self.seed if seed is None else seed), **running)

    def score(self, model: Any, corpus: Any, *, tokenizer: Any = None, **options: Any) -> AnswerStore:
        """Score every token of a corpus once, and give the store that keeps the scores per token.

        Args:
            model: A model string, a Hugging Face model with `tokenizer=`, a pipeline, or anything with the protocol.
            corpus: A path, list, DataFrame, `datasets.Dataset` or Arrow table.
            tokenizer: Of a model object.
            options: How the model is scored (`window=`, `patterns=` …) and the corpus read (`text_column=` …).
        """
        from recollect.execution.threads import describe_threads
        from recollect.models.answer_store.scoring import Source, score_corpus
        from recollect.pipeline.work_folder.work_entries import WorkLimit

        refuse_foreign_folder(Path(self.work), shared=self.shared_work)
        limit = WorkLimit(work=Path(self.work), gigabytes=self.work_limit_gb)
        limit.refuse_exceeded()
        model_options, corpus_options = divide_call_options(options)
        texts = self._sources.read_corpus(self._objects.corpus(corpus, corpus_options))
        source = self._objects.model(model, model_options, tokenizer)
        named = parse_backend(self.backend) or BackendRef()
        backend = named.open(Path(self.work), workers=self.workers, threads=self.threads)
        backend.prepare()
        name = getattr(source, "model", None) or getattr(source, "name", "model")
        alone = backend.in_process  # other processes load their own
        work = Path(self.work)
        if isinstance(source, ModelRef) and not alone:
            chosen: Source = partial(source.load, work)
        else:
            chosen = self._sources.load_model(source, work)
        report = limit.watch(add_notes(self.progress, f"scoring {name} ({describe_threads(backend.threads)})"))
        with use_folder(work):
            return score_corpus(chosen, texts, work, backend=backend, progress=report)

    def evaluate(self, model: Any, corpus: Any, *, tokenizer: Any = None, **options: Any) -> dict[str, Estimate]:
        """How well a model predicts a corpus: accuracy, perplexity, bits per character, with intervals by user."""
        from recollect.pipeline.evaluation import evaluate

        _, corpus_options = divide_call_options(options)
        texts = self._sources.read_corpus(self._objects.corpus(corpus, corpus_options))
        return evaluate(self.score(model, texts, tokenizer=tokenizer, **options), texts)

    def run(self, plan: str | Path, *, out: str | Path | None = None, **changes: Any) -> list[AuditResult]:
        """Run every audit that a plan file names, into one run folder with one report.

        Args:
            plan: A YAML file; paths in it are relative to it.
            out: The run folder; the plan's own by default.
            changes: `set=["audits.leakage.top_k=3"]` changes the plan, `only=["leakage"]` picks audits.
        """
        from recollect.pipeline.run import run_all
        from recollect.report.report_writer import write_report

        planned = read_plan(Path(plan), changes.pop("set", ()), only=changes.pop("only", ()))
        refuse_unknown_call_arguments(changes, {"set", "only"})
        planned = planned if out is None else dataclasses.replace(planned, out=Path(out))
        planned = self._apply(planned)
        with _hold_run_folder(planned.out):
            finished = list(run_all(planned, sources=self._sources, progress=self.progress))
            results = [
                AuditResult(finished_run=each, folder=planned.out, real_names=self.real_names, named=self.named)
                for each in finished
            ]
            showing = [name for result in results for name in result._audits_showing_text]
            write_report(planned.out, show_text=showing, real_names=self.real_names, named=self.named)
        return results

    def check(self, plan: str | Path, **changes: Any) -> list[Forecast | ImpossibleAudit]:
        """What a plan will train and score, and roughly how long that takes, or why it cannot be run."""
        from recollect.pipeline.forecast import forecast_all

        planned = read_plan(Path(plan), changes.pop("set", ()), only=changes.pop("only", ()))
        refuse_unknown_call_arguments(changes, {"set", "only"})
        return forecast_all(self._apply(planned).plans, self._sources)

    def _apply(self, planned: PlannedRun) -> PlannedRun:
        """A plan file's content, with what this session says of how it is run."""
        changed: dict[str, Any] = {"shared_work": self.shared_work}
        if (backend := parse_backend(self.backend)) is not None:
            changed["backend"] = backend
        plans = tuple(dataclasses.replace(each, **changed) for each in planned.plans)
        return dataclasses.replace(planned, plans=plans)

    def __getattr__(self, name: str) -> Callable[..., AuditResult]:
        """The audits, each under the name of its verb: `session.membership(...)`."""
        if name.startswith("_") or name not in list_audits_by_verb():
            raise AttributeError(f"a session has no {name!r}")
        return partial(self.audit, list_audits_by_verb()[name])

    def read(self, corpus: Any, **options: Any) -> Corpus:
        """A corpus of a path or an object, read once: `text_column=`, `split=` and so on say how."""
        _, corpus_options = divide_call_options(options)
        return self._sources.read_corpus(self._objects.corpus(corpus, corpus_options))


@contextmanager
def _hold_run_folder(folder: Path | None) -> Iterator[None]:
    """Let one session at a time write into a run folder; the next waits, and uses what the first trained and scored."""
    from recollect.pipeline.run import refuse_unwritable

    if folder is None:
        yield
        return
    refuse_unwritable(folder)
    with hold_lock(folder, purpose="writing into", temporary=True):
        yield
