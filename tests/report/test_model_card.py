"""A model card gets a section and metadata that the Hub reads; what else is in it stays, and nobody is named."""

from __future__ import annotations

import pytest
import yaml
from huggingface_hub import ModelCard

import recollect
from recollect.report.model_card_section import build_model_index, update_model_card
from recollect.results import Finding

CARD = """---
license: mit
model-index:
- name: shop-bot
  results:
  - task: {type: text-generation}
    dataset: {type: wikitext, name: WikiText}
    metrics:
    - {type: perplexity, value: 12.5, name: Perplexity}
---
# Shop bot

Sells things.
"""


@pytest.fixture
def card(tmp_path):
    file = tmp_path / "README.md"
    file.write_text(CARD)
    return file


def test_what_is_in_a_card_stays_and_the_hub_reads_what_is_added(folder, card):
    recollect.to_model_card(folder.path, card, name="shop-bot")
    read = ModelCard.load(card)
    assert read.data.license == "mit"
    assert "Sells things." in read.text
    assert "## Memorisation audit" in read.text
    metrics = {(each.task_type, each.metric_type): each.metric_value for each in read.data.eval_results}
    (result,) = folder.read_results().values()
    assert metrics["text-generation", "perplexity"] == 12.5
    assert metrics["recollect-exposure", "outcome"] == "found"
    assert metrics["recollect-exposure", "exposure_bits_planted_9"] == result.findings[0].value


def test_a_second_audit_replaces_the_first(folder, card, exposed):
    update_model_card([exposed()], card, name="shop-bot")
    once = card.read_text()
    update_model_card([exposed()], card, name="shop-bot")
    assert card.read_text() == once
    update_model_card([exposed().replace(outcome="not_found")], card, name="shop-bot")
    assert card.read_text().count("## Memorisation audit") == 1
    assert "| Exposure | Not found |" in card.read_text()


def test_a_card_is_made_where_there_is_none(exposed, tmp_path):
    file = update_model_card([exposed()], tmp_path / "README.md")
    head = yaml.safe_load(file.read_text().split("---\n")[1])
    assert head["model-index"][0]["name"] == tmp_path.name


def test_nobody_is_named_and_few_numbers_are_shown(exposed, everything_said, card):
    many = [
        Finding(name=f"n_{i}", value=i, why_no_interval="x", unit="users", n={"users": 1}, method="m", reading="r")
        for i in range(9)
    ]
    result = exposed().replace(**everything_said, findings=tuple(many))
    update_model_card([result], card)
    assert "ann" not in card.read_text()
    (entry,) = build_model_index([result], "x")[0]["results"]
    assert len(entry["metrics"]) == 6
