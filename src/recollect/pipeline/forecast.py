"""What a plan will cost, before it is run: models to train, records to score, roughly how long."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import compress, islice
from pathlib import Path

from recollect.audits.audit import Needs
from recollect.audits.rounds import refuse_impossible
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.errors import RecollectError
from recollect.files import describe_fault, is_interruption
from recollect.models.answer_store.scoring import find_stored
from recollect.models.model import Model, Steppable, compute_address
from recollect.pipeline.plans.backends import WorkPlacement, describe_placement
from recollect.pipeline.plans.plan import Plan
from recollect.pipeline.servers import ServerForecast, forecast_server, get_endpoint
from recollect.pipeline.sources import Sources
from recollect.pipeline.stored_work import count_stored_records, find_trained_models
from recollect.recipes.layout_trial import estimate_training_seconds
from recollect.signals.evidence import TARGET, Evidence

SAMPLES = (8, 64)
"""Records that a model scores at once, to measure how long it takes; more of them only if the first went quickly."""
NODES = 64
"""Nodes that a model reads at once, to measure how long a search takes."""
MAX_TRIAL_SECONDS = 8.0
"""A trial that would take longer is not made: a large model is measured by one record."""


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """What is known about an audit's cost before it starts; later rounds may need more."""

    audit: str
    models_to_train: Mapping[str, int]
    """How many models are trained, by the corpus that they are trained on."""
    records_scored: int
    """Records that all models score together, those included that were scored before."""
    records_stored: int
    """How many of them were scored before: their answers are in the work folder."""
    queries: int
    """Records that the target scores."""
    seconds: float
    """Roughly, on this machine, for what is not stored yet."""
    seconds_at_most: float
    """The same if a search or an exact count takes as many steps as it may; most take far fewer."""
    models_possibly_needed: Mapping[str, int]
    """Models that may also have to be trained, by role, depending on the first answers."""
    servers: Mapping[str, ServerForecast] = field(default_factory=dict)
    """What is sent to the servers of models, by role."""
    placement: str = ""
    """Where the work will be done, in words."""


@dataclass(frozen=True, kw_only=True)
class ImpossibleAudit:
    """An audit that cannot be run as planned."""

    audit: str
    error: RecollectError


def forecast_all(plans: Iterable[Plan], sources: Sources) -> list[Forecast | ImpossibleAudit]:
    """What each plan will cost, or why it cannot be run."""
    found: list[Forecast | ImpossibleAudit] = []
    counted = set[str]()
    placements: dict[tuple[object, ...], WorkPlacement] = {}
    for plan in plans:
        try:
            key = plan.backend, plan.work, plan.workers, plan.threads
            if key not in placements:
                placements[key] = describe_placement(
                    plan.backend, plan.work, workers=plan.workers, threads=plan.threads
                )
            if (problem := placements[key].problem) is not None:
                raise problem
            found.append(replace(forecast(plan, sources, counted), placement=placements[key].text))
        except BaseException as error:  # panics of native libraries are no Exception
            if is_interruption(error):
                raise
            found.append(ImpossibleAudit(audit=plan.audit.name, error=describe_fault(error, (Path(),))))
    return found


def forecast(plan: Plan, sources: Sources | None = None, counted: set[str] | None = None) -> Forecast:
    """What a plan will cost. Models and corpora are loaded, and models on this machine score a few records.

    Of a model behind a server only the probe is sent, and what it costs is counted; the answers are kept for the run.

    Args:
        plan: What is to be run.
        sources: Models and corpora that other plans loaded and read before.
        counted: Addresses of answers that plans before this one compute, which it uses; its own are added.

    Raises:
        AccessError: A model offers too little access.
        PlanError: Something is missing from the plan.
    """
    first = plan.refuse_incomplete()
    given = plan.load_evidence(sources)
    refuse_impossible(plan.audit, given, first)
    needs = plan.audit.needs(given)
    corpora = {**given.corpora, **needs.corpora}
    done = find_trained_models(plan, needs, corpora, given)
    trained = {
        role: [name for name in cohorts.models if name not in given.models and name not in done]
        for role, cohorts in needs.train.items()
    }
    # what depends on the first answers, or whether it is needed at all
    later = {
        role: count for role, count in needs.fleet.items() if not given.models_of_role(role) and plan.recipe is not None
    }
    later = {} if done or any(trained.values()) else later
    pairs = sorted((model, role) for model, role in needs.score if role in corpora)
    record_counts = _count_new_records(pairs, given, corpora, set() if counted is None else counted)
    stored = count_stored_records(plan, record_counts, corpora, given.models, done)
    servers = _forecast_servers(given, corpora, record_counts, plan.work, needs.most_steps)
    seconds = (
        _estimate_scoring_seconds(given, corpora, {pair: n - stored[pair] for pair, n in record_counts.items()})
        + sum(each.seconds for each in servers.values())
        + _estimate_training_seconds(plan, needs, corpora, trained)
    )
    return Forecast(
        audit=plan.audit.name,
        models_to_train={role: len(names) for role, names in trained.items() if names},
        records_scored=sum(record_counts.values()),
        records_stored=sum(stored.values()),
        queries=sum(count for (model, _), count in record_counts.items() if model == TARGET),
        seconds=seconds,
        seconds_at_most=seconds + needs.most_steps * _measure_seconds_per_step(given.models.get(TARGET), needs),
        models_possibly_needed=later,
        servers=servers,
    )


def _count_new_records(
    pairs: Iterable[tuple[str, str]], given: Evidence, corpora: Mapping[str, Corpus], counted: set[str]
) -> dict[tuple[str, str], int]:
    """Forecast how many records each model scores of each corpus; what was counted before is not counted again."""
    found = {}
    for name, role in pairs:
        if name in given.models:
            key = f"{compute_address(given.models[name])} {corpora[role].digest}"
            if key in counted:
                continue
            counted.add(key)
        found[name, role] = len(corpora[role])
    return found


def _forecast_servers(
    given: Evidence,
    corpora: Mapping[str, Corpus],
    record_counts: Mapping[tuple[str, str], int],
    work: Path,
    most_steps: int,
) -> dict[str, ServerForecast]:
    """What is sent to servers for records not scored before, by the role of the model; now only the probe is sent."""
    found = {}
    for name, model in given.models.items():
        if (endpoint := get_endpoint(model)) is not None:
            roles = [role for scored, role in record_counts if scored == name]
            missing = {role: ~find_stored(model, corpora[role], work) for role in roles}
            distinct = {record.digest: record for role in roles for record in compress(corpora[role], missing[role])}
            roles = [role for role in roles if missing[role].any()]
            steps = most_steps if name == TARGET else 0
            found[name] = forecast_server(endpoint, distinct.values(), corpora=len(roles), search_steps=steps)
    return found


def _estimate_scoring_seconds(
    given: Evidence, corpora: Mapping[str, Corpus], record_counts: Mapping[tuple[str, str], int]
) -> float:
    """Forecast how long scoring takes: models still to be trained are assumed to be as fast as the target."""
    found, known = 0.0, dict[tuple[str, str], float]()
    for (name, role), count in record_counts.items():
        model = given.models.get(name, given.models.get(TARGET))
        if model is None or not count or get_endpoint(model) is not None:
            continue
        key = name if name in given.models else TARGET, role
        if key not in known:
            known[key] = _measure_seconds_per_record(model, corpora[role])
        found += known[key] * count
    return found


def _measure_seconds_per_record(model: Model, corpus: Corpus) -> float:
    """For a forecast: seconds that a model takes for a record, from a few; the quickest counts, for others disturb."""
    records = list(islice(iter(corpus), max(SAMPLES)))
    model.answer(records[:1])  # loads it, and warms up
    seconds = [_time_answers(model, records[:1])]
    for size in SAMPLES:
        if seconds[-1] * min(size, len(records)) > MAX_TRIAL_SECONDS:
            break
        seconds.append(_time_answers(model, records[:size]))
    return min(seconds)


def _time_answers(model: Model, records: list[Record]) -> float:
    """For a forecast: seconds that a model takes for each of these records together."""
    began = time.monotonic()
    model.answer(records)
    return (time.monotonic() - began) / len(records)


def _measure_seconds_per_step(target: Model | None, needs: Needs) -> float:
    """Seconds that one node of a search takes, from some that are read together; 0 where nothing is searched."""
    if not needs.most_steps or not isinstance(target, Steppable) or get_endpoint(target) is not None:
        return 0.0
    stepper = target.stepper()
    tokens = stepper.encode("0123456789")
    root = stepper.start(tokens[:1])
    children = [tokens[-1]] * NODES
    stepper.step(root, [0], tokens[-1:], among=tokens[-1:])  # warms up
    began = time.monotonic()
    stepper.step(root, [0] * NODES, children, among=tokens[-1:])
    return (time.monotonic() - began) / NODES


def _estimate_training_seconds(
    plan: Plan, needs: Needs, corpora: Mapping[str, Corpus], missing: Mapping[str, list[str]]
) -> float:
    """Forecast how long the training of missing models takes, from a few steps of one."""
    found = 0.0
    for role, new in missing.items():
        recipe = plan.load_recipe()
        if new and recipe is not None:
            one = needs.train[role].select_corpus(corpora[role], new[0])
            found += len(new) * estimate_training_seconds(recipe, one)
    return found
