"""The plan file: one YAML document that says what is audited, with what, and what must not be found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Kinds = Literal["causal", "masked", "seq2seq", "classifier"]
OWN = "with"
"""The setting of an audit under which it names models, corpora and files of its own."""


class _Section(BaseModel):
    """A part of the file: no other keys than these."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ModelEntry(_Section):
    """A model, and how it is asked."""

    model: str
    """A folder, hf:NAME[@REVISION], BASE+ADAPTER, recorded:DIR, or python:module:factory."""
    kind: Kinds | None = None
    """What it is, where its configuration does not say."""
    device: str | None = None
    """cpu, cuda, cuda:1 …"""
    window: int | None = None
    """Tokens read at once."""
    patterns: int | None = None
    """Masked models: random mask patterns per record."""
    one_by_one: bool = False
    """Masked models: hide every token once, alone."""
    mask_seed: int = 0
    """Masked models: the seed of the patterns."""
    precision: Literal["float32", "float64", "float16", "bfloat16"] = "float32"
    """What it computes in."""
    top_k: int | None = Field(default=None, ge=1)
    """Let it show no more than so many ranked symbols and no probabilities, as a deployment does."""


class SplitEntry(_Section):
    """How long texts are cut."""

    by: Literal["sentences", "windows"] = "sentences"
    words: int = 50
    """In a window."""
    minimum: int = 1
    """Pieces of fewer words are dropped and counted."""


class CorpusEntry(_Section):
    """A corpus, and how it is read."""

    corpus: str
    """A .jsonl, .csv, .tsv, .parquet, .txt or .npz file (also .gz, .zst), a folder or glob, or hf:name:split."""
    user: str | None = None
    """The name of its column, like the next five; the same word by default."""
    text: str | None = None
    source: str | None = None
    target: str | None = None
    label: str | None = None
    id: str | None = None
    format: str | None = None
    """jsonl, csv, tsv, parquet, txt or npz, whatever the suffix says."""
    split: SplitEntry | None = None
    """Cut long texts into records that keep their user."""
    skip_bad: bool = False
    """Drop and count bad records instead of stopping."""
    running_text: bool = False
    """A .txt file is one text, not a record per line."""


class RecipeEntry(_Section):
    """How models are trained that are needed and not given."""

    recipe: str
    """A built-in recipe, or a YAML file."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Settings of it to change, such as `training.epochs: 5`."""


def _by_name(key: str) -> Callable[[Any], Any]:
    """What lets a name stand for a section in which only the name is given."""
    return lambda value: {key: value} if isinstance(value, str) else value


ModelName = Annotated[ModelEntry, BeforeValidator(_by_name("model"), json_schema_input_type=str | ModelEntry)]
CorpusName = Annotated[CorpusEntry, BeforeValidator(_by_name("corpus"), json_schema_input_type=str | CorpusEntry)]
RecipeName = Annotated[RecipeEntry, BeforeValidator(_by_name("recipe"), json_schema_input_type=str | RecipeEntry)]


class Given(_Section):
    """What is given to all audits, or to one."""

    models: dict[str, ModelName] = Field(default_factory=dict)
    """By the part each plays: target, reference (or reference-0, reference-1 …), shadow-0 …"""
    corpora: dict[str, CorpusName] = Field(default_factory=dict)
    """By the part each plays: audited, controls …"""
    cohorts: dict[str, str] = Field(default_factory=dict)
    """Who trained which model, where it is known: a cohorts.json, by the part of the corpus."""
    files: dict[str, str] = Field(default_factory=dict)
    """Other files that audits read: canaries …"""
    recipe: RecipeName | None = None
    """How models are trained that are needed and not given."""


class PlanFile(Given):
    """A whole plan."""

    audits: dict[str, dict[str, Any] | None] = Field(min_length=1)
    """Which audits, each with its settings; under `with` what is given to it alone."""
    limits: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """What no finding may pass, by audit: `membership: [auc.lower>0.6]`."""
    seed: int = 0
    """All randomness comes from this number."""
    work: str = ".recollect"
    """Where answers and trained models are kept, for all runs."""
    out: str | None = None
    """The run folder; a folder named after the plan, if it is not given."""
    workers: int | None = Field(default=None, ge=1)
    """Processes at once."""
    threads: int | None = Field(default=None, ge=1)
    """Threads of each."""


SECTIONS: dict[str, type[BaseModel]] = {
    "models": ModelEntry,
    "corpora": CorpusEntry,
    "recipe": RecipeEntry,
    "split": SplitEntry,
}
"""What stands in which section, for messages."""


def resolved(ref: str, home: Path) -> str:
    """A name in a plan: a path is relative to the plan's own folder; what is not there is left as it is.

    >>> resolved("hf:wikitext:train", Path("plans"))
    'hf:wikitext:train'
    """
    prefix, _, rest = ref.rpartition("recorded:")
    if prefix:
        return ref
    return f"{'recorded:' if ref != rest else ''}{_placed(rest, home)}"


def _placed(path: str, home: Path) -> str:
    """The path under the plan's folder, if something is there; of a base with an adapter, both."""
    parts: Sequence[str] = path.split("+") if "+" in path and not (home / path).exists() else [path]
    found = [str(home / part) if part and _is_there(home, part) else part for part in parts]
    return "+".join(found)


def _is_there(home: Path, part: str) -> bool:
    """Whether a path or a pattern names something under a folder."""
    if Path(part).is_absolute() or ":" in part:
        return False
    return (home / part).exists() or any(mark in part for mark in "*?[")
