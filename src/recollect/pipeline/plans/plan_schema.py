"""The JSON Schema of plan files, for editors: generated from the models and the audits' settings."""

from __future__ import annotations

import dataclasses
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from recollect.audits.registry import AUDITS
from recollect.pipeline.plans.plan import OWN, to_plain
from recollect.pipeline.plans.plan_file import Given, PlanFile

SCHEMA_PATH = Path(str(files("recollect.pipeline"))) / "plan.schema.json"
"""The schema that editors may rely on; a test keeps it equal to the generated one."""


def build_plan_schema() -> dict[str, Any]:
    """The JSON Schema of a plan file, with the settings of all audits of ours.

    >>> build_plan_schema()["$id"]
    'urn:recollect:plan:2'
    """
    described = PlanFile.model_json_schema()
    definitions: dict[str, Any] = {**described.pop("$defs", {}), "Given": Given.model_json_schema()}
    definitions |= definitions["Given"].pop("$defs", {})
    audits: dict[str, Any] = {}
    for name in AUDITS.table:
        settings = TypeAdapter(AUDITS.load(name)).json_schema()
        for each in dataclasses.fields(AUDITS.load(name)):
            if each.default_factory is not dataclasses.MISSING:
                settings["properties"][each.name]["default"] = to_plain(each.default_factory())
        definitions |= settings.pop("$defs", {})
        settings.pop("required", None)
        settings["properties"] = {**settings.get("properties", {}), OWN: {"$ref": "#/$defs/Given"}}
        audits[name] = {"anyOf": [{**settings, "additionalProperties": False}, {"type": "null"}]}
    described["properties"]["audits"] = {"type": "object", "minProperties": 1, "properties": audits}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:recollect:plan:2",
        **described,
        "$defs": definitions,
    }


def publish_plan_schema() -> None:
    """Write the JSON Schema of plans; to be done after every change of the models or of an audit's settings."""
    SCHEMA_PATH.write_text(json.dumps(build_plan_schema(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
