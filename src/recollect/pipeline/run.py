"""Read this first: how a plan becomes a result. Every audit runs this way, from the command line and from Python.

read and load what is given → refuse what is impossible → train and score, round by round → decide → add provenance →
save
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

from recollect.audits.audit import Needs
from recollect.audits.rounds import collect_evidence
from recollect.audits.workspace import Progress, Workspace, add_notes, ignore_progress
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.errors import ModelError, PlanError, RecollectError
from recollect.execution.threads import describe_threads, divide_threads
from recollect.files import (
    describe_fault,
    hold_lock,
    is_interruption,
    make_private_folder,
    refuse_foreign_folder,
    use_folder,
    write_atomically,
    write_text,
)
from recollect.models.answer_store.scoring import Source, score_corpus
from recollect.models.answer_store.store import AnswerStore
from recollect.models.model import Model, Perturber, Question, Steppable, Stepper
from recollect.pipeline.plans.limits import check_limits
from recollect.pipeline.plans.plan import Plan, collect_masked_settings
from recollect.pipeline.plans.plan_file import PlannedRun
from recollect.pipeline.plans.plan_writer import write_plan
from recollect.pipeline.plans.refs import ModelRef, use_template_in_ref
from recollect.pipeline.result_provenance import add_provenance, compute_work_address
from recollect.pipeline.servers import confirm_models
from recollect.pipeline.sources import Sources
from recollect.pipeline.stored_work import build_trained_ref
from recollect.pipeline.work_folder.run_notes import RunNote
from recollect.pipeline.work_folder.work_entries import WorkLimit
from recollect.recipes.fleet import Fleet, TrainedFleet, train_fleet
from recollect.recipes.layout_trial import WorkerLayout
from recollect.results.advice import add_advice
from recollect.results.presentation import GENERIC
from recollect.results.result import Failed, Provenance, Result
from recollect.results.run_folder import RunFolder
from recollect.results.run_manifest import remove_run_manifest
from recollect.signals.evidence import AUDITED, TARGET, Evidence
from recollect.signals.roles import PERTURBER
from recollect.streams import stream
from recollect.version import __version__


@dataclass(frozen=True, kw_only=True)
class FinishedRun:
    """A plan that was run: what came out, and what its run folder keeps besides."""

    plan: Plan
    result: Result
    cohorts: Mapping[str, Cohorts]
    """Which units each model was trained on, by the role of the corpus."""
    target: str | None = None
    """The name of the audited model, which may be its folder."""

    def write_folder(self, out: Path) -> None:
        """Write the run folder; the result last, because it says that all is there."""
        folder = RunFolder(out)
        remove_run_manifest(out)
        write_text(folder.plan, write_plan([self.plan], out=out))
        for role, cohorts in self.cohorts.items():
            cohorts.save(folder.cohorts if role == AUDITED else folder.get_cohorts_path(role))
        self._copy_files(folder)
        folder.write_result(self.result)

    def _copy_files(self, folder: RunFolder) -> None:
        """Copy the files beside the target that the audit's report shows, such as its exposure by epoch."""
        if self.target is None:
            return
        for name, _ in getattr(self.plan.audit, "presentation", GENERIC).files.values():
            if (Path(self.target) / name).is_file():
                with write_atomically(folder.path / name) as temporary:  # as it is: of a damaged one the report says so
                    shutil.copyfile(Path(self.target) / name, temporary)


def run(plan: Plan, out: Path | None = None, *, progress: Progress = ignore_progress) -> Result:
    """The result of a plan; see `finish`, which also says what else was kept."""
    return finish(plan, out, progress=progress).result


def finish(
    plan: Plan,
    out: Path | None = None,
    *,
    first: Needs | None = None,
    sources: Sources | None = None,
    progress: Progress = ignore_progress,
) -> FinishedRun:
    """Run a plan to its end.

    What is trained and scored is kept in the work folder. So the same plan again, after it was killed at any moment or
    after it was done, resumes, and ends with the same result but for its seconds.

    Args:
        plan: What is to be run.
        out: The run folder, in which the result is kept with its tables, the plan and the cohorts; None to keep
            nothing but what is in the work folder.
        first: What round 0 needs, if `plan.refuse_incomplete` was called before.
        sources: Models and corpora that other plans loaded and read before.
        progress: Called now and then with the current stage and how far it is.

    Raises:
        AccessError: A model offers too little access; nothing was trained or scored.
        PlanError: Something is missing from the plan; nothing was trained or scored.
        RecollectError: A model could not be trained or could not score; what was done is kept.
    """
    began = time.monotonic()
    first = first or plan.refuse_incomplete()
    refuse_foreign_folder(plan.work, shared=plan.shared_work)
    refuse_unwritable(out)
    WorkLimit(work=plan.work, gigabytes=plan.work_limit_gb).refuse_exceeded()
    plan.open_backend().prepare()
    given = plan.load_evidence(sources)
    with use_folder(plan.work):
        evidence, audit_result = _run_audit(plan, out, given, first, progress)
    result = add_provenance(audit_result, plan, evidence, seconds=time.monotonic() - began)
    result = result.replace(limits=check_limits(plan.limits, result), about=plan.about)
    result = add_advice(result, getattr(plan.audit, "presentation", GENERIC).advice)
    target = evidence.models[TARGET].name if TARGET in evidence.models else None
    finished = FinishedRun(plan=plan, result=result, cohorts=evidence.cohorts, target=target)
    if out is not None:
        finished.write_folder(out)
    return finished


def _run_audit(
    plan: Plan, out: Path | None, given: Evidence, first: Needs, progress: Progress
) -> tuple[Evidence, Result]:
    """Train and score what an audit needs, and let it decide; what it all came from, and what it found."""
    executor = _RunExecutor.of(plan, given, progress)
    note = RunNote(work=plan.work, run=out, audit=plan.audit.name)
    score, train = note.track_scoring(executor.score), note.track_training(executor.train)
    evidence = collect_evidence(plan.audit, executor.place_perturber(given), score=score, train=train, first=first)
    with _open_workspace(plan, evidence, progress, executor.open_stepper) as workspace:
        result = plan.audit.run(evidence, stream(plan.seed, plan.audit.name), workspace)
    confirm_models(evidence.models)
    return evidence, result


@dataclass(frozen=True, kw_only=True)
class _RunExecutor:
    """Trains and scores what an audit needs, into the work folder."""

    plan: Plan
    question: Question | None
    """The scoring options of the target, and of all models that are trained to be compared with it."""
    known: dict[int, tuple[str, Source]]
    """By identity of a model, its part, and how a worker process gets it: it loads its own where it can."""
    progress: Progress

    @cached_property
    def limit(self) -> WorkLimit:
        """How large the work folder of a run may become."""
        return WorkLimit(work=self.plan.work, gigabytes=self.plan.work_limit_gb)

    @classmethod
    def of(cls, plan: Plan, given: Evidence, progress: Progress) -> _RunExecutor:
        """The executor of a run, which knows the models that are given."""
        known: dict[int, tuple[str, Source]] = {}
        for role, model in given.models.items():
            named = plan.models[role]
            placed = use_template_in_ref(named, model.question.chat_template)
            known[id(model)] = role, partial(placed.load, plan.work) if isinstance(placed, ModelRef) else placed
        question = given.models[TARGET].question if TARGET in given.models else None
        return cls(plan=plan, question=question, known=known, progress=progress)

    def score(self, model: Model, corpus: Corpus) -> AnswerStore:
        """The model's answers about a corpus; only records not scored before are scored."""
        role, source = self.known[id(model)]
        self.limit.refuse_exceeded()
        backend = self.plan.open_backend()
        named = role if role[-1].isdigit() else f"the {role}"
        task = f"scoring with {named}: {corpus.name.rpartition('/')[2]} ({describe_threads(backend.threads)})"
        return score_corpus(
            model if backend.in_process else source,
            corpus,
            self.plan.work,
            backend=backend,
            progress=self.limit.watch(add_notes(self.progress, task)),
        )

    def train(self, cohorts: Cohorts, corpus: Corpus) -> Mapping[str, Model]:
        """The models of these cohorts; only those that were never trained are trained."""
        self.limit.refuse_exceeded()
        recipe = self.plan.load_recipe()
        if recipe is None:
            raise PlanError(
                f"The {self.plan.audit.name} audit needs the models {', '.join(cohorts.models)} trained.",
                do="Give the models, or a recipe to train them with (--recipe, recipe=).",
                code="missing_recipe",
            )
        fleet = Fleet(recipe=recipe, corpus=corpus, cohorts=cohorts, seed=self.plan.seed)
        task = f"training {cohorts.models[0] if len(cohorts.models) == 1 else f'{len(cohorts.models)} models'}"
        cluster = None if self.plan.backend.ray is None else self.plan.open_backend()
        trained = train_fleet(
            fleet, self.plan.work, layout=self._get_layout(), backend=cluster, progress=partial(self.progress, task)
        )
        if trained.failures:
            raise _build_training_error(trained)
        return {role: self._load_trained(role, folder) for role, folder in trained.folders.items()}

    def open_stepper(self, model: Steppable) -> Stepper:
        """A model step by step: in this process, or on the workers of a cluster."""
        if not self._asks_workers(model):
            return model.stepper()
        from recollect.models.worker_queries import WorkerStepper

        return WorkerStepper(model.stepper(), self.known[id(model)][1], self.plan.open_backend())

    def place_perturber(self, given: Evidence) -> Evidence:
        """The same evidence; on a cluster, workers write the neighbours of texts."""
        perturber = given.models.get(PERTURBER)
        if not isinstance(perturber, Perturber) or not self._asks_workers(perturber):
            return given
        from recollect.models.worker_queries import WorkerPerturber

        placed = WorkerPerturber(model=perturber, source=self.known[id(perturber)][1], backend=self.plan.open_backend())
        return replace(given, models={**given.models, PERTURBER: placed})

    def _asks_workers(self, model: Model) -> bool:
        """Whether queries that follow from each other go to workers: of a cluster, which keeps them meanwhile.

        A model in memory would have to be sent with every frontier, and one behind a server is queried from here.
        """
        if self.plan.backend.ray is None or getattr(model, "remote", False):
            return False
        return not isinstance(self.known[id(model)][1], Model)

    def _load_trained(self, role: str, folder: Path) -> Model:
        """A model that was trained for the audit, scored as the target is."""
        load = partial(build_trained_ref(self.plan, self.question, folder).load, self.plan.work)
        model = load()
        self.known[id(model)] = role, load
        return model

    def _get_layout(self) -> WorkerLayout | None:
        """As many processes and threads as the plan says; None to find out what is best."""
        workers, threads = self.plan.workers, self.plan.threads
        if workers is None and threads is None:
            return None
        return WorkerLayout(workers=workers or 1, threads=threads or divide_threads(workers or 1))


def _build_training_error(trained: TrainedFleet) -> ModelError:
    """All failures of the trainings of a run in one error."""
    errors = {role: failure.error for role, failure in trained.failures.items()}
    reasons = [f"{role}: {failure.describe()}" for role, failure in trained.failures.items()]
    shown = " ".join(reasons[:3]) + (f" (and {len(reasons) - 3} more)" if len(reasons) > 3 else "")
    remedy = next((e.do for e in errors.values() if isinstance(e, RecollectError) and e.do), "")
    error = ModelError(
        f"{len(reasons)} of {len(reasons) + len(trained.folders)} models could not be trained. {shown}",
        do=f"{remedy} The others are kept: run the same again, and only these are trained.".strip(),
        code="training_failed",
    )
    failures = list(trained.failures.values())
    error.add_note(failures[0].traceback)
    error.traceback = next((f.traceback for f in failures if not isinstance(f.error, RecollectError)), "")
    return error


@contextmanager
def _open_workspace(
    plan: Plan, evidence: Evidence, progress: Progress, open_stepper: Callable[[Steppable], Stepper]
) -> Iterator[Workspace]:
    """A workspace in the work folder, found again by the same plan, for one run at a time; an empty one is removed."""
    folder = plan.work / "audits" / f"{plan.audit.name}-{compute_work_address(plan, evidence)}"
    with hold_lock(folder, purpose="working in", temporary=True):
        yield Workspace(folder=folder, progress=progress, open_stepper=open_stepper)


def refuse_unwritable(out: Path | None) -> None:
    """Refuse a run folder that could not be written, before any cost."""
    if out is None:
        return
    refuse_foreign_folder(out)
    existing = next(folder for folder in (out.absolute(), *out.absolute().parents) if folder.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise PlanError(
            f"The run folder {str(out)!r} cannot be written.",
            do="Choose another with --out.",
            code="run_folder_not_writable",
        )


def run_all(
    planned: PlannedRun, *, sources: Sources | None = None, progress: Progress = ignore_progress
) -> Iterator[FinishedRun]:
    """Each audit as it is done. What was trained or scored before is not done again.

    Args:
        planned: The plans and their run folder.
        sources: Models and corpora that were loaded and read before; each is loaded and read once in any case.
        progress: Called now and then with the current stage and how far it is.

    Raises:
        PlanError: Something is missing from one of the plans; nothing was trained or scored.
    """
    first = [plan.refuse_incomplete() for plan in planned.plans]
    folder, known = RunFolder(planned.out), sources or Sources()
    for plan, needs in zip(planned.plans, first, strict=True):
        try:
            finished = finish(plan, planned.out, first=needs, sources=known, progress=progress)
        except BaseException as error:  # panics of native libraries are no Exception
            if is_interruption(error):
                raise
            fault = describe_fault(error, (make_private_folder(planned.out), Path()))
            finished = FinishedRun(plan=plan, result=_build_failed_result(plan, fault), cohorts={})
            folder.write_result(finished.result)
        yield finished
        # each audit leaves its own plan; what was requested is the whole
        write_text(folder.plan, write_plan(planned.plans, out=planned.out))


def _build_failed_result(plan: Plan, error: RecollectError) -> Result:
    """The result of a run whose audit failed."""
    result = Result(
        audit=plan.audit.name,
        question=plan.audit.question,
        verdict=f"Not tested. {error.found}",
        outcome="inconclusive",
        outcome_code="failed",
        failed=(Failed(audit=plan.audit.name, code=error.code, error=f"{error.found} {error.do}".strip()),),
        settings=collect_masked_settings(plan.audit),
        about=plan.about,
    ).with_provenance(Provenance(recollect=__version__, seed=plan.seed, queries=0, seconds=0.0))
    return result.replace(limits=check_limits(plan.limits, result))
