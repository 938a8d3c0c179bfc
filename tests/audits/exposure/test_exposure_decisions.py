"""From exposures to decisions, on measurements that are made up."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from recollect.audits.exposure.decisions import decide
from recollect.audits.exposure.exposure_measurement import Measurement
from recollect.audits.exposure.result import _average_exposure
from recollect.audits.exposure.secrets import Secret, merge_repeated_secrets
from recollect.audits.exposure.verdict import build_exposure_verdict
from recollect.corpora.canaries.formats import parse_format


def measured(bits, *, planted, p=0.5, format="{digits:4}"):
    secret = Secret(id=f"{planted}-{bits}", parsed=parse_format(format), text="1234", planted=planted)
    return Measurement(
        secret=secret,
        exposure_bits=bits,
        lower=bits,
        upper=bits,
        rank=1.0,
        log_perplexity_bits=1.0,
        method="sampled",
        steps=0,
        p_value=p,
        skew_normal_bits=None,
    )


CONTROLS = [measured(bits, planted=0) for bits in (0.1, 0.4, 0.9, 1.3, 2.2, 2.9)]


def test_each_number_of_repetitions_is_tested_against_the_controls_and_corrected():
    rows = [measured(bits, planted=times) for times in (4, 1) for bits in (1.0 + times, 2.0 + times, 3.0 + times)]
    decisions = decide([*rows, *CONTROLS], alpha=0.05, at_random=True)
    assert list(decisions.p_by_repetitions) == [1, 4]
    one, four = (
        stats.mannwhitneyu(
            [row.exposure_bits for row in decisions.by_repetitions[times]],
            [row.exposure_bits for row in CONTROLS],
            alternative="greater",
            method="exact",
        ).pvalue
        for times in (1, 4)
    )
    assert decisions.p_by_repetitions[4] == pytest.approx(2 * four)
    assert decisions.p_by_repetitions[1] == pytest.approx(max(one, 2 * four))


def test_a_single_secret_is_ranked_among_the_controls():
    rows = [measured(2.5, planted=1)]
    assert decide([*rows, *CONTROLS], alpha=0.05, at_random=True).p_by_repetitions == {1: pytest.approx(2 / 7)}


def test_the_two_kinds_of_test_share_alpha_where_there_are_both():
    rows = [measured(9.0, planted=1, p=0.02), measured(0.0, planted=1, p=1.0)]
    alone, beside = decide(rows, alpha=0.05, at_random=True), decide([*rows, *CONTROLS], alpha=0.05, at_random=True)
    assert (alone.alpha, alone.memorised, alone.found) == (0.05, 1, True)
    assert (beside.alpha, beside.memorised, beside.found) == (0.025, 0, False)


def test_secrets_that_were_not_drawn_at_random_are_not_called_memorised():
    decisions = decide([measured(13.0, planted=1, p=1e-9)], alpha=0.05, at_random=False)
    assert decisions.p_corrected is None
    assert not decisions.found


def test_single_secrets_are_corrected_by_holm():
    rows = [measured(5.0, planted=None, p=p) for p in (0.01, 0.03, 0.2)]
    decisions = decide(rows, alpha=0.05, at_random=True)
    np.testing.assert_allclose(decisions.p_corrected, [0.03, 0.06, 0.2])
    assert decisions.memorised == 1


def test_many_memorised_secrets_are_found_together_where_no_single_one_can_be():
    """With 4,096 draws no p-value is below 1/4,097, which times 400 secrets is above the significance level."""
    rng = np.random.default_rng(0)
    ordinary = [measured(1.0, planted=None, p=p) for p in rng.uniform(size=300)]
    decisions = decide([*ordinary, *[measured(12.0, planted=None, p=1 / 4097)] * 100], alpha=0.05, at_random=True)
    assert decisions.memorised == 0
    assert decisions.any_p == pytest.approx(400 / 100 / 4097, rel=0.02)
    assert decisions.found


def test_secrets_that_no_model_saw_are_found_no_more_often_than_stated():
    """Ranks among shared draws, as the audit computes them; all secrets are drawn as the draws are."""
    rng, found, worlds = np.random.default_rng(1), 0, 400
    for _ in range(worlds):
        draws = np.sort(rng.normal(size=200))
        p = (1 + np.searchsorted(draws, rng.normal(size=40), side="right")) / 201
        found += decide([measured(1.0, planted=None, p=each) for each in p], alpha=0.05, at_random=True).found
    assert stats.binomtest(found, worlds, 0.05, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize(("format", "attainable"), [("{digits:1}", False), ("{digits:2}", True)])
def test_a_secret_among_few_possible_ones_can_never_be_found(format, attainable):
    secret = Secret(id="pin", parsed=parse_format(format), text="1", planted=None)
    likeliest = replace(measured(3.3, planted=None, p=1 / secret.parsed.size), secret=secret)
    decisions = decide([likeliest], alpha=0.05, at_random=True)
    assert decisions.smallest_p == 1 / secret.parsed.size
    assert decisions.attainable is decisions.found is attainable


@pytest.mark.parametrize("secrets", [1, 3])
def test_as_many_possible_secrets_and_draws_as_are_said_to_be_enough_are_enough(secrets):
    def attainable(space, draws):
        format = f"{{choice:{'|'.join(f'x{i}' for i in range(space))}}}"
        return decide_on(format, draws).attainable

    def decide_on(format, draws):
        return decide([measured(3.3, planted=None, format=format)] * secrets, alpha=0.05, at_random=True, draws=draws)

    said = decide_on("{digits:1}", 5)
    assert not said.attainable
    assert attainable(said.needed_space, said.needed_draws)
    assert not attainable(said.needed_space - 1, said.needed_draws)
    assert not attainable(said.needed_space, said.needed_draws - 1)


def test_few_draws_bound_the_smallest_p_value_unless_ranks_are_counted():
    rows = [measured(9.0, planted=None, p=1 / 11)]
    assert decide(rows, alpha=0.05, at_random=True, draws=10).smallest_p == pytest.approx(1 / 11)
    assert decide(rows, alpha=0.05, at_random=True).smallest_p == pytest.approx(1e-4)


def test_controls_can_find_what_few_possible_secrets_cannot():
    digit = parse_format("{digits:1}")
    rows = [
        replace(each, secret=replace(each.secret, parsed=digit))
        for each in (*[measured(3.0, planted=1, p=0.5)] * 6, *CONTROLS)
    ]
    assert decide(rows, alpha=0.05, at_random=True).attainable


@pytest.mark.parametrize(("planted", "controls"), [(1, 1), (1, 6), (3, 1), (3, 6)])
def test_no_design_gives_a_smaller_p_value_than_the_smallest(planted, controls):
    digit = parse_format("{digits:1}")
    rows = [measured(9.0 + i, planted=1, p=1.0) for i in range(planted)] + CONTROLS[:controls]
    rows = [replace(each, secret=replace(each.secret, parsed=digit)) for each in rows]
    decisions = decide(rows, alpha=0.05, at_random=False)
    assert decisions.smallest_p == pytest.approx(decisions.p_by_repetitions[1])


def test_a_secret_that_is_named_twice_counts_once_and_is_no_control_if_it_was_planted():
    one, two, three = (
        replace(measured(1.0, planted=times).secret, id=name) for name, times in zip("abc", (0, 1, 4), strict=True)
    )
    other = replace(one, id="d", text="4321")
    merged = merge_repeated_secrets([one, two, three, other])
    assert [(secret.id, secret.planted) for secret in merged] == [("b", 5), ("d", 0)]


def test_the_verdict_names_what_the_secrets_rank_above():
    """Four of p = 0.02 are found together by Simes, and none of them alone; two controls can tell nothing."""
    rows = [measured(5.0 + i, planted=1, p=0.02) for i in range(4)]
    decisions = decide([*rows, *CONTROLS[:2]], alpha=0.05, at_random=True)
    assert decisions.found
    assert (decisions.memorised, decisions.above_controls) == (0, ())
    assert "as a group, the 4 rank above random secrets." in build_exposure_verdict(decisions)


def test_the_verdict_names_only_those_that_rank_above_the_controls():
    often = [measured(9.0 + i, planted=16) for i in range(4)]
    once = [measured(bits, planted=1) for bits in (0.2, 0.5)]
    decisions = decide([*often, *once, *CONTROLS], alpha=0.05, at_random=True)
    assert decisions.above_controls == (16,)
    verdict = build_exposure_verdict(decisions)
    assert "as a group, the 4 that were planted 16 times rank above secrets that were never planted." in verdict
    single = decide([measured(9.0, planted=1), *[measured(1.0, planted=0)] * 60], alpha=0.05, at_random=True)
    assert "it ranks higher than secrets that were never planted" in build_exposure_verdict(single)


def test_secrets_are_compared_with_controls_of_formats_of_the_same_size():
    small = [measured(bits, planted=0, format="{digits:1}") for bits in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)]
    rows = [measured(bits, planted=1) for bits in (1.0, 2.0, 3.0)]
    assert decide([*rows, *small], alpha=0.05, at_random=True).p_by_repetitions == {}
    one, both = (decide([*rows, *CONTROLS, *more], alpha=0.05, at_random=True) for more in ((), small))
    assert one.p_by_repetitions == both.p_by_repetitions
    assert one.smallest_p == both.smallest_p


def test_secrets_are_not_compared_with_controls_that_a_model_finds_equally_likely():
    """Ties count against the finding, so that secrets of such a format have no bits, whatever their rank."""
    tied = [measured(0.0, planted=0, format="code {digits:4}") for _ in range(20)]
    rows = [measured(bits, planted=1) for bits in np.linspace(0.0, 4.0, 20)]
    decisions = decide([*rows, *tied], alpha=0.05, at_random=True)
    assert decisions.p_by_repetitions == {}, "nothing was tested"
    assert decisions.alpha == 0.05, "so that the other test has the whole level"
    assert not decisions.found


def test_each_group_tells_with_how_many_controls_of_how_many_formats_it_is_compared():
    other = "code {digits:4}"
    rows = [measured(2.0, planted=1), measured(3.0, planted=4), measured(1.0, planted=4, format=other)]
    controls = [*(measured(0.5, planted=0) for _ in range(3)), *(measured(0.5, planted=0, format=other),) * 2]
    assert decide([*rows, *controls], alpha=0.05, at_random=True).compared_controls == {1: (3, 1), 4: (5, 2)}


@pytest.mark.parametrize("n", range(2, 51, 3))
def test_the_mean_exposure_of_a_group_has_no_interval_or_one_within_the_possible_range(n):
    most = np.log2(10**4)
    bits = np.minimum(most, stats.expon(scale=1 / np.log(2)).rvs(n, random_state=n))
    for values in (bits, np.full(n, most), np.zeros(n)):
        mean = _average_exposure([measured(each, planted=1) for each in values])
        assert (mean.interval is None) == (n < 5)
        assert mean.interval is None or 0 <= mean.interval.low <= mean.value <= mean.interval.high <= most


def test_several_sizes_of_formats_are_compared_within_each():
    rows = [
        measured(bits, planted=1, format=format) for bits in (5.0, 6.0, 7.0) for format in ("{digits:4}", "{digits:1}")
    ]
    small = [measured(bits, planted=0, format="{digits:1}") for bits in (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)]
    (p,) = decide([*rows, *CONTROLS, *small], alpha=0.05, at_random=True).p_by_repetitions.values()
    assert p < min(decide([*rows[::2], *CONTROLS], alpha=0.05, at_random=True).p_by_repetitions.values())
