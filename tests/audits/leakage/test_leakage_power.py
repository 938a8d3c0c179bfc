"""Power of leakage: the smallest effect that is told is that of the test which is made."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from recollect.audits.common.power import minimum_detectable_auc
from recollect.audits.leakage.safeguards import state_power


def decided(*, draws=1, has_folds=False):
    stratum = SimpleNamespace(controls=160, scores=np.zeros((draws, 40)))
    comparison = SimpleNamespace(compared=np.ones(40, dtype=bool), strata=(stratum,), has_folds=has_folds)
    return SimpleNamespace(comparison=comparison, alpha=0.05, joint_level=0.01)


@pytest.mark.parametrize(("draws", "factor"), [(1, 1), (21, 2)])
def test_the_smallest_detectable_effect_pays_for_several_cuts(draws, factor):
    power, _ = state_power(decided(draws=draws))
    assert power.minimum_detectable_effect == minimum_detectable_auc(40, 160, alpha=0.01 / factor)


def test_no_effect_on_users_is_told_where_models_of_folds_are_tested():
    power, _ = state_power(decided(has_folds=True))
    assert power.minimum_detectable_effect is None
    assert power.effect_unit is None
