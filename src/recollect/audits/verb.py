"""The verb of an audit: what a user gives to it, declared once for the command line, plans and Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from recollect.checks import document_fields


@document_fields
@dataclass(frozen=True, kw_only=True)
class Role:
    """The role of an input that a user gives: a model, a corpus or a file."""

    kind: Literal["model", "corpus", "file"]
    """What users give: a model, a corpus of records, or another file."""
    help: str
    """One line for `--help` and the documentation."""
    required: bool = False
    """Whether the command line refuses to begin without it. What `Needs.given` names is refused in any case."""
    many: bool = False
    """Whether several may be given: their roles are then reference-0, reference-1 …"""


TARGET_MODEL = Role(kind="model", help="The model that is audited.", required=True)
CANDIDATES = Role(kind="corpus", help="The records that are audited.", required=True)
CONTROL_RECORDS = Role(
    kind="corpus", help="Held-out records known not to be in the training set, read as the audited records are."
)
REFERENCES = Role(kind="model", help="A model to compare with that was not trained on the audited records.", many=True)


@document_fields
@dataclass(frozen=True, kw_only=True)
class Verb:
    """How users call an audit. Its settings are the fields of the audit's dataclass, and are declared there alone.

    The role "target" is the argument MODEL, the role "audited" the argument CORPUS; every other role is an option of
    its name, and a keyword argument of the same name in Python.
    """

    name: str
    """The command, and the function in Python."""
    summary: str
    """One sentence in the imperative."""
    guide: str = ""
    """What `--help` teaches beyond that: paragraphs, and commands between backticks."""
    roles: Mapping[str, Role] = field(default_factory=dict)
    """By role in the evidence: "target", "audited", "controls", "reference", "canaries" …"""
    members: bool = False
    """Whether it can use ground truth: which users or records are known to be in the training set, and which not."""
    trains: bool = False
    """Whether it trains models with a recipe where none are given."""
    natural_reference: bool = False
    """Whether an adapter's own base is its reference where none is given."""
