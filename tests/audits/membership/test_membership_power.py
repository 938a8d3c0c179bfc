"""Power of membership: the smallest effect that is told allows for all that its p-values are multiplied by."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from recollect.audits.common.power import minimum_detectable_auc
from recollect.audits.membership.comparison import GroupTest
from recollect.audits.membership.safeguards import state_power


def build_design(*, equal=True, draws=1, known=True):
    """40 candidates beside 160 controls; ten of them are known members, ten are known to be none."""
    group = GroupTest(p=0.5, equal=equal, method="by hand", above=40, below=160, smallest_p=1e-6)
    membership = GroupTest(p=0.5, equal=True, method="by hand", above=10, below=10, smallest_p=1e-5)
    names = [f"user-{i}" for i in range(40)]
    candidates = SimpleNamespace(users=names, values=np.arange(40.0))
    return SimpleNamespace(
        audit=SimpleNamespace(alpha=0.05),
        membership=membership if known else None,
        group_test=group,
        by_truth=False,
        scores=SimpleNamespace(complete=False, candidates=SimpleNamespace(**vars(candidates)), controls=None),
        units=SimpleNamespace(controls=np.full(40, 160), draws=np.full(40, draws)),
        decisions=SimpleNamespace(p=np.ones(40), correction="benjamini-hochberg"),
    )


@pytest.mark.parametrize(
    ("design", "factor"),
    [({"known": False}, 1), ({}, 2), ({"known": False, "equal": False}, 2), ({"equal": False, "draws": 21}, 8)],
)
def test_the_smallest_detectable_effect_pays_for_every_correction(monkeypatch, design, factor):
    monkeypatch.setattr("recollect.audits.membership.safeguards.count_controls_to_identify_one", lambda found: 0)
    power = state_power(build_design(**design))
    assert power.minimum_detectable_effect == minimum_detectable_auc(40, 160, alpha=0.05 / factor)
