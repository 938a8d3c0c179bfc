"""Runs a real audit in many worlds, none of which has anything to find, and counts what it says."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cells import Cell, Method
from designs import Pools, World, change_model, draw_world
from exposures import ALTERNATIVES, audit_secrets, compute_mean_exposure
from people import TARGETS
from stored import StoredModel
from trainings import Trained

from recollect.audits.rounds import collect_evidence
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.errors import RecollectError
from recollect.files import write_text
from recollect.results.result import Result
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, TARGET, Evidence
from recollect.streams import stream

ALPHA = 0.05
CALIBRATING = 4
"""Shadow models that provenance is given."""
SAVE_EVERY = 20
"""Worlds."""


@dataclass(frozen=True, kw_only=True)
class Said:
    """What an audit said in one world."""

    set: str
    target: int
    number: int = 0
    """Of the world."""
    rules: str = ""
    """By which version of the audits."""
    outcome: str
    code: str | None = None
    """Why the outcome is inconclusive, or why the audit refused."""
    named: bool = False
    """Whether anybody was identified, flagged or said to be in the training set."""
    low_p: bool | None = None
    """Whether the first person's p-value is at most 0.05; None where none is told."""
    intervals: dict[str, bool] | None = None
    """Whether the intervals whose true value is known hold it."""


@dataclass(frozen=True, kw_only=True)
class Turns:
    """Which worlds are drawn."""

    first: int = 0
    """The number of the first one, if none is kept."""
    until: int | None = None
    """Stop before this number; None for as many as the cell has."""
    targets: int = TARGETS
    """So many targets take their turns."""
    rules: str = ""
    """The version of the audits, to be noted."""
    again: bool = False
    """Draw worlds anew that were drawn by another version."""


def run_cell(
    cell: Cell,
    load: Callable[[int], Trained],
    file: Path,
    *,
    turns: Turns,
) -> list[Said]:
    """What the audit said in worlds of a cell in one set; worlds that were drawn before are read from the file.

    Args:
        cell: The cell.
        load: The models of a target by its number.
        file: Where the cell's worlds are kept.
        turns: Which worlds are drawn, and for which targets.
    """
    said = [Said(**each) for each in json.loads(file.read_text())] if file.exists() else []
    if turns.again and any(each.rules != turns.rules for each in said):
        said = []
    wanted = min(cell.worlds_each, turns.until or cell.worlds_each)
    for number in range(said[-1].number + 1 if said else turns.first, wanted):
        world = run_world(cell, load(cell.first_target + number % turns.targets), number)
        said.append(replace(world, number=number, rules=turns.rules))
        if (number + 1) % SAVE_EVERY == 0 or number + 1 == wanted:
            write_text(file, json.dumps([asdict(each) for each in said]))
    return [each for each in said if each.number < wanted]


def run_world(cell: Cell, trained: Trained, number: int) -> Said:
    """Draw one world, run the audit in it, and read its result."""
    result = audit_world(cell, trained, number)
    if isinstance(result, RecollectError):
        return Said(set=trained.people.name, target=trained.number, outcome="refused", code=result.code)
    return read_result(result, trained, find_truth(cell, trained), number)


def audit_world(cell: Cell, trained: Trained, number: int) -> Result | RecollectError:
    """The result of the audit in one world; a refusal where it says that this data will not do."""
    rng = stream(0, "nulls", trained.people.name, cell.name, number)
    if cell.method.models == "secrets":
        counts = {"planted": cell.design.audited, "controls": cell.design.controls}
        return audit_secrets(
            cell.method.make(), trained.secrets, trained.people, **counts, seed=int(rng.integers(2**31))
        )
    most = 1 if cell.method.by_record else cell.most_records
    world = draw_world(trained, cell.design, _choose_pools(cell.method, trained), rng, most=most)
    evidence = build_evidence(cell.method, trained, world)
    audit = cell.method.make()
    try:
        complete = collect_evidence(audit, evidence, score=_read_answers, train=_Fleet(trained).train)
        return audit.run(complete, stream(world.seed, audit.name))
    except RecollectError as refusal:
        return refusal


def build_evidence(method: Method, trained: Trained, world: World) -> Evidence:
    """The models, corpora and cohorts that a user would give."""
    corpora, cohorts = dict(world.corpora), dict[str, Cohorts]()
    models: dict[str, StoredModel] = {TARGET: trained.cased if method.models == "cased" else trained.target}
    if method.models == "reference":
        models[REFERENCE] = trained.reference
    if method.models == "calibration":
        training = [record for user in trained.division.fleet for record in trained.people.records[user]]
        corpora[CONTROLS] = Corpus.of([*corpora[CONTROLS], *training], name=CONTROLS)
    if method.models in ("fleet", "calibration", "removal"):
        shadows = trained.shadows
        models |= dict(list(shadows.items())[:CALIBRATING]) if method.models == "calibration" else shadows
        roles = (AUDITED, CONTROLS) if method.models == "fleet" else (CONTROLS,)
        cohorts = {role: _build_cohorts(trained, corpora[role], models) for role in roles}
    if world.change != "as they are":
        users = {record.digest: record.owner for corpus in corpora.values() for record in corpus}
        models = {name: change_model(model, world, users) for name, model in models.items()}
    return Evidence(
        models=models,
        corpora=corpora,
        cohorts=cohorts,
        members=world.members,
        trainable=method.models == "folds",
        seed=world.seed,
    )


def read_result(result: Result, trained: Trained, truth: Mapping[str, float], number: int) -> Said:
    """What a result says, whatever the audit; of its people, the p-value of one that the world's number draws."""
    tables = result.tables_in_memory
    table = next((tables[name] for name in ("candidates", "users", "secrets") if name in tables), None)
    units = {} if table is None else table.to_pydict()
    return Said(
        set=trained.people.name,
        target=trained.number,
        outcome=result.outcome,
        code=result.outcome_code,
        named=_has_named(units),
        low_p=_find_low_p(units, {each.finding for each in result.withheld}, number),
        intervals=_check_intervals(result, truth),
    )


def _has_named(units: Mapping[str, list[Any]]) -> bool:
    """Whether anybody is named."""
    flags = [*units.get("identified", ()), *units.get("flagged", ())]
    words = [*units.get("decision", ()), *units.get("said", ())]
    return any(map(bool, flags)) or any(str(word) in _NAMING for word in words)


_NAMING = {"member", "still there"}
"""What tables say of somebody who is said to be in the training set."""


def _find_low_p(units: Mapping[str, list[Any]], withheld: set[str], number: int) -> bool | None:
    """Whether a random person's own p-value is small: the first by name would be the same few in all worlds."""
    for column in ("p_value", "p_still_there"):
        values = [value for value in units.get(column, ()) if value is not None]
        if values and column not in withheld:
            return bool(values[int(stream(0, "one person", number).integers(len(values)))] <= ALPHA)
    return None


def find_truth(cell: Cell, trained: Trained) -> dict[str, float]:
    """The true values of findings that have an interval, in worlds where nobody was trained on."""
    if cell.method.models == "secrets":
        mean = compute_mean_exposure(trained.secrets, trained.people)
        return {"exposure_bits_planted_1": mean, "exposure_bits_controls": mean, "first_guess": 1 / ALTERNATIVES**2}
    if cell.design.inside:
        return {"fraction_still_in": cell.design.inside}
    truth = {"fraction_still_in": 0.0, "epsilon_from_counts": 0.0, "epsilon_from_one_run": 0.0}
    if cell.design.exchangeable:
        names = ("auc", "loss_auc", "auc_against_controls", "blind_auc", "precision_at_fpr_0.1")
        truth |= {**dict.fromkeys(names, 0.5), "leakage_excess": 0.0}
        truth |= {f"tpr_at_fpr_{rate:g}": rate for rate in (0.1, 0.01, 0.001)}
    return truth


def _check_intervals(result: Result, truth: Mapping[str, float]) -> dict[str, bool]:
    """Which intervals hold the true value."""
    found = {}
    for finding in result.findings:
        if finding.name in truth and finding.interval is not None:
            low, high = finding.interval
            true = truth[finding.name]
            found[finding.name] = (low is None or low <= true) and (high is None or true <= high)
    return found


def _choose_pools(method: Method, trained: Trained) -> Pools:
    """From whom audited people and controls are drawn."""
    if method.models == "removal":
        return Pools(audited=trained.division.near, controls=trained.division.fleet)
    if method.models == "fleet":
        return Pools(audited=trained.division.fleet)
    return Pools(
        audited=trained.division.near if method.models in ("calibration", "folds") else trained.division.unseen
    )


def _build_cohorts(trained: Trained, corpus: Corpus, models: Collection[str]) -> Cohorts:
    """Which people of a corpus trained which shadow."""
    users = {record.owner for record in corpus}
    chosen = {name: members for name, members in trained.cohorts.items() if name in models}
    members = {name: sorted(users.intersection(trained_on)) for name, trained_on in chosen.items()}
    return Cohorts.of(members, units=users, unit="user", corpus=corpus.digest, seed=0)


def _read_answers(model: Any, corpus: Corpus) -> Any:
    """A stored model is the source of its own answers."""
    return model


@dataclass(frozen=True)
class _Fleet:
    """Stands in for training: models of the fleet, which never saw the people of this world."""

    trained: Trained

    def train(self, cohorts: Cohorts, corpus: Corpus) -> Mapping[str, StoredModel]:
        """A model of the fleet for each that is to be trained."""
        shadows = list(self.trained.shadows.values())
        return {name: shadows[i % len(shadows)] for i, name in enumerate(cohorts.models)}
