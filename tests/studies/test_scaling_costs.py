"""The page on costs says what its script computes."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "methods" / "scaling.md"


@pytest.fixture(scope="module")
def costs():
    spec = importlib.util.spec_from_file_location("costs", ROOT / "studies" / "scaling_costs" / "costs.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["costs"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["costs"]


def test_every_table_of_the_page_is_what_the_script_computes(costs):
    page, measured, assumed = PAGE.read_text(encoding="utf-8"), costs.Measured.read(), costs.Assumed()
    for tabulate in (costs.tabulate_scoring, costs.tabulate_shadows, costs.tabulate_limits):
        assert tabulate(measured, assumed) in page, tabulate.__name__


def test_costs_follow_from_operations_per_token(costs):
    assumed = costs.Assumed(tokens=100, parameters=1e9, gpu_flops=1e15, utilisation=0.5)
    # 3600 records of 100 tokens, 2e9 operations each, at 5e14 operations per second
    assert costs.count_scoring_hours(3600, assumed) == pytest.approx(3600 * 100 * 2e9 / 5e14 / 3600)
    # on half of the records, with twice the operations of scoring
    assert costs.count_training_hours(3600, assumed) == pytest.approx(costs.count_scoring_hours(3600, assumed))


def test_every_measured_figure_says_how_it_was_measured():
    figures = json.loads((ROOT / "studies" / "scaling_costs" / "figures.json").read_text(encoding="utf-8"))
    assert all(each["value"] > 0 and each["how"] for each in figures.values())
