"""A run folder to report on."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from recollect.results import Finding, Note, Provenance, Result, RunFolder
from recollect.results.result import About, Guard, GuardCheck, LimitCheck, Mention, Placebo, Power, Withheld
from recollect.stats import mean

PROVENANCE = Provenance(recollect="0.1.0", torch="2.13.0", model="ab12", seed=7, queries=90, seconds=1.5)

LIMITS = (
    LimitCheck(limit="exposure_bits_planted_9>20", status="kept", value=6.5),
    LimitCheck(limit="exposure_bits_planted_9.upper>7", status="exceeded", value=7.25),
    LimitCheck(limit="auc>0.6", status="not_checked", reason="There is no finding auc."),
)
GUARD = Guard(
    comparable=False,
    checks=(
        GuardCheck(name="records_per_user", p_value=0.0003, effect=2.5, comparable=False, text="They wrote more."),
        GuardCheck(name="length", comparable=True, text="Nothing differs."),
    ),
)
PLACEBO = Placebo(status="failed", reason="It accuses anybody.", false_positive_rate=0.25, interval=(0.1, 0.4), runs=40)
POWER = Power(smallest_p=0.02, minimum_detectable_effect=1.5, effect_unit="bits", needed={"control_users": 1200})
EVERYTHING = {
    "outcome": "inconclusive",
    "outcome_code": "placebo_failed",
    "severity": "high",
    "next_step": "Give controls of the same kind.",
    "limits": LIMITS,
    "guard": GUARD,
    "placebo": PLACEBO,
    "power": POWER,
    "withheld": (Withheld(finding="auc", code="not_comparable", reason="It would mislead."),),
    "about": About(system="shop-bot", version="2", who="R. Roe", purpose="release", date="2026-01-31"),
    "verdict": ("Of ", Mention(kind="user", id="ann"), " nothing can be determined."),
    "notes": (Note(code="one_person", text=("Look at ", Mention(kind="record", id="r-7"), ".")),),
}


def _exposures(*, formats=1, seed=0):
    """Tables like those of an exposure audit: 30 controls, four secrets planted once and four planted nine times."""
    rng = np.random.default_rng(seed)
    planted = np.array([0] * 30 + [1] * 4 + [9] * 4)
    bits = np.where(planted == 9, 12.0, rng.exponential(1.44, len(planted)))
    secrets = pa.table(
        {
            "secret_id": [f"secret-{i}" for i in range(len(planted))],
            "secret": ["•••• (5–9 characters)"] * len(planted),
            "format": pa.array(np.arange(len(planted)) % formats, pa.int32()),
            "planted": planted,
            "exposure_bits": bits,
            "lower": bits - 0.2,
            "upper": bits + 0.2,
            "rank": 1e6 / 2**bits,
            "space": [1e6] * len(planted),
            "log_perplexity_bits": 30 - bits,
            "method": ["sampled"] * len(planted),
            "steps": [10] * len(planted),
            "p_value": [0.5] * len(planted),
            "p_corrected": pa.array([None if times == 0 else 0.5 for times in planted], pa.float64()),
            "skew_normal_bits": bits,
        }
    )
    draws = pa.table(
        {
            "format": pa.array(np.repeat(np.arange(formats), 500), pa.int32()),
            "log_perplexity_bits": np.append(rng.normal(28, 2, 500 * formats - 1), np.nan),
        }
    )
    return {"secrets": secrets, "draws": draws}


def _exposed(**changes):
    """A result like that of an exposure audit."""
    tables = _exposures()
    finding = Finding.of(
        mean(tables["secrets"].column("exposure_bits").to_numpy(), of="secrets"),
        name="exposure_bits_planted_9",
        unit="bits",
        reading="Mean exposure.",
    )
    made = Result(
        audit="exposure",
        question="Does the model memorise secrets of a known format?",
        verdict="The model memorised 4 of 8 secrets.",
        outcome="found",
        findings=(finding,),
        untested=("Other formats.",),
        notes=(Note(code="skew_normal_rejected", text="The curve does not fit."),),
        settings={"method": "auto", "draws": 500, "show_text": False},
    )
    return made.model_copy(update=changes).with_tables(**tables).with_provenance(PROVENANCE)


@pytest.fixture
def exposures():
    """Makes tables like those of an exposure audit."""
    return _exposures


@pytest.fixture
def exposed():
    """Makes results like those of an exposure audit."""
    return _exposed


@pytest.fixture
def folder(tmp_path):
    """A run folder with the result of an exposure audit."""
    made = RunFolder(tmp_path / "run")
    made.write_result(_exposed())
    return made


@pytest.fixture
def everything_said():
    """Fields of a result that says all that a result can say beside its numbers."""
    return EVERYTHING


@pytest.fixture
def full(folder):
    """A run folder with the result of an exposure audit that says all that a result can say."""
    folder.write_result(_exposed().replace(**EVERYTHING))
    return folder
