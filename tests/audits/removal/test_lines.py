"""Two lines: one where calibration models tell members best, and one far down for targets that hold them weakly."""

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from recollect.audits.common.builder import ResultBuilder
from recollect.audits.removal.audit import RemovalAudit
from recollect.audits.removal.calibrated import Case
from recollect.audits.removal.judging import Judged
from recollect.audits.removal.lines import SPENT_LOW, lines_of, with_nothing_known
from recollect.audits.removal.rates import TELLING, Near, Rate, low_line
from recollect.audits.removal.reporting import add_findings
from recollect.audits.removal.units import Standing
from recollect.signals.scores import Scores
from recollect.stats.significance import binomial_p

AUDIT = RemovalAudit()
CONTROLS, NEIGHBOURS = 1200, 3


def scores(values, prefix):
    names = tuple(f"{prefix}{place:05d}" for place in range(len(values)))
    return Scores(names, names, np.asarray(values, dtype=np.float64))


MEMBERS, NEVER = {"wrong": 0.0, "unsure": 0.02}, {"wrong": 0.04, "unsure": 0.1}
WEAK_MEMBERS, WEAK_NEVER = {"wrong": 0.002, "unsure": 0.12}, {"wrong": 0.04, "unsure": 0.12}
"""How often models take a record for something else, and how often they are unsure of it."""


def drawn(rng, count, *, wrong, unsure):
    """Scores of records."""
    kind = rng.choice(3, size=count, p=[wrong, unsure, 1 - wrong - unsure])
    return np.choose(kind, [rng.normal(-6, 1, count), rng.normal(2, 1, count), rng.normal(9, 1.5, count)])


def judged(seed, *, size, share, weakly):
    """A set of which a share is in, judged by controls that are like it; a weak target is as unsure of members."""
    rng = np.random.default_rng(seed)
    members, never = (WEAK_MEMBERS, WEAK_NEVER) if weakly else (MEMBERS, NEVER)
    inside = round(share * size)
    controls = scores(drawn(rng, CONTROLS, **never), "c")
    sides = {}
    for name, rates in (("members", MEMBERS), ("others", NEVER)):
        shown = controls.records[: CONTROLS // 2]
        models = [tuple(f"m{model}/{control}" for control in shown) for model in range(4)]
        sides[name] = Scores.joined([Scores(each, shown, drawn(rng, len(shown), **rates)) for each in models])
    audited = np.concatenate([drawn(rng, inside, **members), drawn(rng, size - inside, **never)])
    found = Standing(audited=scores(audited, "a"), controls=controls, dropped={}, **sides)
    distances = rng.random(size), rng.random(CONTROLS)
    near = Near(
        audited=rng.integers(0, CONTROLS, (size, NEIGHBOURS)),
        controls=rng.integers(0, CONTROLS, (CONTROLS, NEIGHBOURS)),
        distances=distances,
    )
    lines = lines_of(AUDIT, found, near)
    return Judged(
        found=found,
        near=near,
        case=lines.case,
        low=lines.low,
        whole=with_nothing_known(AUDIT, found, lines.line),
        line=lines.line,
        p_below=1.0,
        p_above=1.0,
        shifted=False,
        level=AUDIT.level,
    )


def verdicts(worlds, **world):
    return Counter(judged(seed, **world).verdict for seed in range(worlds))


@pytest.mark.parametrize(
    ("size", "worlds"),
    [(800, 60), *(pytest.param(size, 300, marks=pytest.mark.slow) for size in (5, 20, 50, 200, 500, 800))],
)
@pytest.mark.parametrize("weakly", [True, False])
def test_a_set_that_was_never_in_is_accused_no_more_often_than_stated(size, weakly, worlds):
    said = verdicts(worlds, size=size, share=0.0, weakly=weakly)
    assert binomial_p(said["still there"], worlds, 0.05) > 0.001
    assert size < 800 or said["gone"] > 0.7 * worlds


def test_a_target_that_holds_its_members_weakly_still_shows_them_far_down():
    said = verdicts(40, size=800, share=1.0, weakly=True)
    assert said["still there"] > 36
    assert not said["gone"]


def test_a_firm_target_is_told_as_ever():
    assert verdicts(40, size=800, share=1.0, weakly=False)["still there"] == 40


def test_the_low_line_that_speaks_is_the_one_that_is_reported():
    weak = judged(0, size=800, share=1.0, weakly=True)
    assert weak.case is weak.low
    assert weak.case.spent == SPENT_LOW
    assert weak.unsure.sum() == weak.case.unsure
    assert weak.case.likeliest > 0.7
    firm = judged(0, size=800, share=0.0, weakly=False)
    assert firm.low is not None
    assert firm.case is not firm.low
    assert firm.case.spent == 1 - SPENT_LOW


def test_that_two_lines_were_tried_is_said():
    builder = ResultBuilder(AUDIT)
    add_findings(builder, judged(0, size=800, share=1.0, weakly=True), AUDIT)
    methods = {finding.name: finding.method for finding in builder.findings}
    assert methods["p_still_there"].endswith("corrected for the two lines that were tried")
    assert "two lines" not in methods["p_all_in"]


def test_a_set_that_looks_gone_but_not_far_down_is_not_called_so():
    gone = judged(0, size=800, share=0.0, weakly=False)
    assert gone.verdict == "gone"
    assert not gone.held_below
    below = Case(unsure=2, size=800, members=Rate(value=0.0, size=600), never=Rate(value=0.015, size=600))
    parts = {name: getattr(gone, name) for name in ("found", "near", "case", "line", "p_below", "p_above")}
    doubted = Judged(low=below, whole=None, shifted=False, level=0.05, **parts)
    assert doubted.held_below
    assert doubted.verdict == "cannot tell"


def test_a_set_that_does_not_look_gone_is_not_said_to():
    whole = judged(0, size=800, share=1.0, weakly=False)
    assert whole.verdict == "still there"
    assert whole.low.likeliest > 0.9
    assert not whole.held_below


@pytest.mark.parametrize("size", [5, 50, 800])
def test_so_many_answers_as_tell_are_expected_below_the_low_line(size):
    rng = np.random.default_rng(size)
    never, counted = np.round(rng.normal(size=400), 2), rng.random(400)
    found = low_line(never, counted, size)
    share = min(1.0, TELLING / size)
    below, upto = (counted[flags].sum() / counted.sum() for flags in (never < found, never <= found))
    assert below <= share <= upto + 1e-12


def test_what_one_test_may_spend_is_paid_for():
    case = Case(unsure=3, size=100, members=Rate(value=0.01, size=500), never=Rate(value=0.1, size=500), spent=0.2)
    table = [[3, 50], [97, 450]]
    assert case.p_still == pytest.approx(5 * stats.fisher_exact(table, alternative="less").pvalue)
    assert Case(unsure=30, size=100, members=case.members, never=case.never, spent=0.2).p_still == 1
