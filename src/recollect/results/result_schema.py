"""The JSON Schema of results, generated from the models, and the one way to read a result back."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from recollect.errors import StoreError
from recollect.files import read_json
from recollect.results.result import SCHEMA_VERSION, Result

SCHEMA_PATH = Path(str(files("recollect.results"))) / "result.schema.json"
"""The schema that others may rely on; a test keeps it equal to the generated one."""


def build_result_schema() -> dict[str, Any]:
    """The JSON Schema of a result.

    >>> build_result_schema()["$id"]
    'urn:recollect:result:2'
    """
    described = Result.model_json_schema(mode="serialization")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:recollect:result:{SCHEMA_VERSION}",
        **described,
    }


def publish_result_schema() -> None:
    """Write the JSON Schema of results; to be done after every change of the models."""
    SCHEMA_PATH.write_text(json.dumps(build_result_schema(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def read_result_file(path: Path) -> Result:
    """The result in a file.

    Raises:
        StoreError: The file is absent, damaged, or written by a newer version.
    """
    try:
        document = read_json(path)
    except FileNotFoundError:
        raise StoreError(f"There is no result at {str(path)!r}.", do="Run the audit first.", code="no_result") from None
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{str(path)!r} cannot be read as JSON: {error}.", do="Run the audit again.", code="damaged_result"
        ) from error
    return parse_result(document, source=str(path))


def parse_result(document: Any, *, source: str) -> Result:
    """The result in a JSON document, checked against its schema.

    Args:
        document: What was in the file.
        source: Where it came from, for the message.

    Raises:
        StoreError: It is not a result, or one of another version.
    """
    version = document.get("schema_version") if isinstance(document, dict) else None
    if isinstance(version, str) and version.isdecimal() and int(version) > int(SCHEMA_VERSION):
        raise StoreError(
            f"{source!r} has schema version {version}; this Recollect reads version {SCHEMA_VERSION}.",
            do="Install a newer Recollect.",
            code="newer_schema",
        )
    if isinstance(version, str) and version.isdecimal() and int(version) < int(SCHEMA_VERSION):
        raise StoreError(
            f"{source!r} was written by Recollect 0.1 (result schema {version}); since 0.2.0 results have schema "
            f"{SCHEMA_VERSION}: outcomes are found, not_found or inconclusive, and notes and counts have codes.",
            do="Run the audit again: what was trained and scored is kept in the work folder and is not done again.",
            code="older_schema",
        )
    try:
        return Result.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        location = ".".join(map(str, first["loc"])) or "the document"
        raise StoreError(
            f"{source!r} is not a result: {location}: {first['msg']}.",
            do="Run the audit again to write it anew.",
            code="damaged_result",
        ) from error
