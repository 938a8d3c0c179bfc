"""What a result came from: versions, digests, seed and cost, so that anybody can do it again."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import PurePath

from recollect.digests import digest, digest_file
from recollect.models.limited import Limited
from recollect.models.manifest import installed
from recollect.models.model import Model, address
from recollect.models.recorded import Recorded
from recollect.pipeline.plan import Plan, digest_of, settings_of, told_settings
from recollect.results.result import ModelFacts, Provenance, Result
from recollect.signals.evidence import AUDITED, TARGET, Evidence
from recollect.version import __version__

NOTED = ("numpy", "scipy", "transformers", "tokenizers")
"""Packages besides torch that may move a number."""


def traced(result: Result, plan: Plan, evidence: Evidence, *, seconds: float) -> Result:
    """The result with what it came from, all settings of its audit, and what was dropped from the corpora."""
    dropped = {
        f"{part}.{reason}": count
        for part, corpus in evidence.corpora.items()
        if part in plan.corpora
        for reason, count in corpus.skipped.items()
    }
    told = {"dropped": {**dropped, **result.dropped}, "settings": {**told_settings(plan.audit), **result.settings}}
    return result.replaced(**told).with_provenance(_provenance(plan, evidence, seconds))


def work_address(plan: Plan, evidence: Evidence) -> str:
    """The address of all that the audit's own work depends on."""
    models = {part: [address(model), str(model.access), _least(model)] for part, model in evidence.models.items()}
    seen = {part: corpus.digest for part, corpus in evidence.corpora.items()}
    rest = {**_cohorts(evidence), **_files(evidence)}
    return digest(plan.audit.name, settings_of(plan.audit), models, seen, rest, plan.seed)


def _provenance(plan: Plan, evidence: Evidence, seconds: float) -> Provenance:
    """Where the result came from."""
    target, audited = evidence.models.get(TARGET), evidence.corpora.get(AUDITED)
    others = {part: model.digest for part, model in evidence.models.items() if part != TARGET}
    others |= {part: corpus.digest for part, corpus in evidence.corpora.items() if part != AUDITED}
    return Provenance(
        recollect=__version__,
        torch=version("torch") if any(map(_runs, evidence.models.values())) else None,
        versions=installed(NOTED),
        model=None if target is None else target.digest,
        corpus=None if audited is None else audited.digest,
        digests=dict(sorted({**others, **_cohorts(evidence), **_files(evidence)}.items())),
        models={role: _facts(model, given=role in plan.models) for role, model in sorted(evidence.models.items())},
        seed=plan.seed,
        queries=sum(len(evidence.corpora[corpus]) for model, corpus in evidence.answers if model == TARGET),
        seconds=round(seconds, 3),
    )


def _cohorts(evidence: Evidence) -> dict[str, str]:
    """The digests of who trained which model."""
    known = {} if evidence.members is None else {"members": evidence.members.digest}
    return known | {f"cohorts of {part}": digest_of(cohorts) for part, cohorts in evidence.cohorts.items()}


def _files(evidence: Evidence) -> dict[str, str]:
    """The digests of the other files."""
    return {part: digest_file(path) for part, path in evidence.files.items()}


def _facts(model: Model, *, given: bool) -> ModelFacts:
    """Which model it was; one that was trained for the audit has the same name in whatever work folder it lies."""
    name = model.name if given else PurePath(model.name).name
    return ModelFacts(name=name, digest=model.digest, revision=getattr(model, "revision", None))


def _least(model: Model) -> float | None:
    """The probability below which a model shows nothing."""
    return model.least if isinstance(model, Limited) else None


def _runs(model: Model) -> bool:
    """Whether a model computes, and not only replays what was stored."""
    return not isinstance(model.model if isinstance(model, Limited) else model, Recorded)
