"""What a result came from: versions, digests, seed and cost, so that anybody can do it again."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import PurePath

from recollect.digests import digest, digest_file
from recollect.models.answer_store.manifest import get_versions
from recollect.models.answer_store.recorded_model import RecordedModel
from recollect.models.limited import Limited
from recollect.models.model import Model, compute_address
from recollect.pipeline.plans.plan import Plan, collect_masked_settings, collect_settings, digest_cohorts
from recollect.pipeline.servers import add_server_notes, build_server_facts, get_endpoint
from recollect.results.result import ModelFacts, Provenance, Result
from recollect.signals.evidence import AUDITED, TARGET, Evidence
from recollect.version import __version__

NOTED_PACKAGES = ("numpy", "scipy", "transformers", "tokenizers")
"""Packages besides torch that may change a number."""


def add_provenance(result: Result, plan: Plan, evidence: Evidence, *, seconds: float) -> Result:
    """The result with what it came from, all settings of its audit, and what was dropped from the corpora."""
    dropped = {
        f"{role}.{reason}": count
        for role, corpus in evidence.corpora.items()
        if role in plan.corpora
        for reason, count in corpus.skipped.items()
    }
    fields = {
        "dropped": {**dropped, **result.dropped},
        "settings": {**collect_masked_settings(plan.audit), **result.settings},
    }
    noted = add_server_notes(result.replace(**fields), evidence.models)
    return noted.with_provenance(_build_provenance(plan, evidence, seconds))


def compute_work_address(plan: Plan, evidence: Evidence) -> str:
    """The address of all that a result's own work depends on."""
    models = {
        role: [compute_address(model), str(model.access), _get_min_probability(model)]
        for role, model in evidence.models.items()
    }
    seen = {role: corpus.digest for role, corpus in evidence.corpora.items()}
    rest = {**_digest_cohorts(evidence), **_digest_files(evidence)}
    return digest(plan.audit.name, collect_settings(plan.audit), models, seen, rest, plan.seed)


def _build_provenance(plan: Plan, evidence: Evidence, seconds: float) -> Provenance:
    """Where the result came from."""
    target, audited = evidence.models.get(TARGET), evidence.corpora.get(AUDITED)
    others = {role: model.digest for role, model in evidence.models.items() if role != TARGET}
    others |= {role: corpus.digest for role, corpus in evidence.corpora.items() if role != AUDITED}
    return Provenance(
        recollect=__version__,
        torch=version("torch") if any(map(_is_computed, evidence.models.values())) else None,
        versions=get_versions(NOTED_PACKAGES),
        model=None if target is None else target.digest,
        corpus=None if audited is None else audited.digest,
        digests=dict(sorted({**others, **_digest_cohorts(evidence), **_digest_files(evidence)}.items())),
        models={
            role: _build_model_facts(model, given=role in plan.models)
            for role, model in sorted(evidence.models.items())
        },
        seed=plan.seed,
        queries=sum(len(evidence.corpora[corpus]) for model, corpus in evidence.answers if model == TARGET),
        seconds=round(seconds, 3),
        date=datetime.now(UTC).date().isoformat(),
    )


def _digest_cohorts(evidence: Evidence) -> dict[str, str]:
    """The digests of the cohorts that a result came from."""
    known = {} if evidence.members is None else {"members": evidence.members.digest}
    return known | {f"cohorts of {role}": digest_cohorts(cohorts) for role, cohorts in evidence.cohorts.items()}


def _digest_files(evidence: Evidence) -> dict[str, str]:
    """The digests of the other files that a result came from."""
    return {role: digest_file(path) for role, path in evidence.files.items()}


def _build_model_facts(model: Model, *, given: bool) -> ModelFacts:
    """Which model a result came from; one trained for the audit has the same name in every work folder."""
    name = model.name if given else PurePath(model.name).name
    revision = getattr(model, "revision", None)
    return ModelFacts(name=name, digest=model.digest, revision=revision, endpoint=build_server_facts(model))


def _get_min_probability(model: Model) -> float | None:
    """The probability below which a model that a result came from shows nothing."""
    return model.min_probability if isinstance(model, Limited) else None


def _is_computed(model: Model) -> bool:
    """Whether a result's model computes here, and neither replays what was stored nor asks a server."""
    whole = model.model if isinstance(model, Limited) else model
    return not isinstance(whole, RecordedModel) and get_endpoint(whole) is None
