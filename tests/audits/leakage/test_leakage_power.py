"""Power of leakage: the smallest effect that is told is that of the test which is made."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from recollect.audits.common.power import minimum_detectable_auc
from recollect.audits.leakage.safeguards import state_power


def decided(*, draws=1, has_folds=False, permuted=False):
    stratum = SimpleNamespace(controls=160, scores=np.zeros((draws, 40)))
    comparison = SimpleNamespace(
        compared=np.ones(40, dtype=bool), strata=(stratum,), has_folds=has_folds, permuted=permuted
    )
    return SimpleNamespace(comparison=comparison, alpha=0.05, joint_level=0.01)


@pytest.mark.parametrize(("draws", "factor"), [(1, 1), (21, 2)])
def test_the_smallest_detectable_effect_pays_for_several_cuts(draws, factor):
    power, _ = state_power(decided(draws=draws))
    assert power.minimum_detectable_effect == minimum_detectable_auc(40, 160, alpha=0.01 / factor)


def test_no_effect_on_users_is_told_where_models_of_folds_are_tested():
    power, _ = state_power(decided(has_folds=True))
    assert power.minimum_detectable_effect is None
    assert power.effect_unit is None


def test_permutations_give_no_smaller_p_value_than_one_in_their_number():
    assert state_power(decided())[0].smallest_p < 1e-6
    assert state_power(decided(permuted=True))[0].smallest_p == 1 / 2000
    assert state_power(decided(permuted=True, draws=21))[0].smallest_p == 2 / 2000
