"""The ROC curve as it is saved."""

import numpy as np
import pytest

from recollect.audits.common.roc_table import MAX_POINTS, READ_AT, build_roc_table
from recollect.errors import NotEnoughData
from recollect.stats import roc_curve
from recollect.testing.refusals import refused


def test_a_short_curve_is_saved_whole():
    members, others = [0.9, 0.8, 0.4], [0.5, 0.4]
    curve, table = roc_curve(members, others), build_roc_table(members, others)
    assert (table["fpr"].to_pylist(), table["tpr"].to_pylist()) == (curve.fpr.tolist(), curve.tpr.tolist())


def test_a_long_one_reads_the_same_where_it_is_read():
    rng = np.random.default_rng(0)
    members, others = rng.normal(1, 1, 9000), rng.normal(0, 1, 9000)
    curve, table = roc_curve(members, others), build_roc_table(members, others)
    fpr, tpr = table["fpr"].to_numpy(), table["tpr"].to_numpy()
    assert len(fpr) <= MAX_POINTS + len(READ_AT) + 2
    assert curve.tpr_at(np.array(READ_AT)).tolist() == [tpr[np.flatnonzero(fpr <= rate)[-1]] for rate in READ_AT]
    assert np.trapezoid(tpr, fpr) == pytest.approx(np.trapezoid(curve.tpr, curve.fpr), abs=1e-3)


def test_one_side_alone_has_no_curve():
    with refused("too_few_non_members", NotEnoughData):
        build_roc_table([1.0], [])
