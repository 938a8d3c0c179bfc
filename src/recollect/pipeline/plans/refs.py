"""References: the one description of a model, a corpus, a recipe and members for command line, plan and Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from recollect.checks import describe_fields
from recollect.errors import PlanError
from recollect.models.model_options import Attention, Bits, Kind, Precision
from recollect.models.tokens.template_files import is_template, read_template

if TYPE_CHECKING:
    # a reference only describes: what it takes to load a model or read a corpus is imported when that is done
    from recollect.corpora.corpus import Corpus
    from recollect.models.endpoint.settings import EndpointSettings
    from recollect.models.model import Model, Question
    from recollect.models.model_options import Loading
    from recollect.recipes.recipe import Recipe

QUESTION = ("window", "patterns", "masked", "one_by_one", "mask_seed", "precision", "chat_template")
"""The fields of a reference to a model that say how it is scored."""
SERVER_OPTIONS = frozenset(
    {
        "server_tokenizer",
        "key_variable",
        "allow_http",
        "top_logprobs",
        "connections",
        "budget_requests",
        "budget_tokens",
        "budget_cost",
        "price_input",
        "price_output",
    }
)
"""The fields of a reference to a model that matter only if it is behind a server."""
STORED = "stored"
"""The precision that the weights of a model are stored in."""
COLUMNS = ("user", "text", "source", "target", "label", "id", "time", "messages")


class _Reference(BaseModel):
    """What all references share: fixed once made, no other keys than these."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, json_schema_extra=describe_fields)


class ModelRef(_Reference):
    """A model by its name, and how it is scored."""

    model: str
    """PATH, hf:NAME[@REV], BASE+ADAPTER, FILE.gguf, recorded:DIR, python:module:factory, or http(s)://host/v1#NAME."""
    kind: Kind | None = None
    """Kind of model, if its configuration does not say."""
    device: str | None = None
    """Where it computes: cpu, cuda, cuda:1 …, or auto for all devices together; by default the best one available."""
    attention: Attention | None = None
    """Attention implementation: sdpa, eager or flash_attention_2; sdpa by default if the architecture supports it."""
    bits: Bits | None = None
    """Quantise the weights to 4 or 8 bits with bitsandbytes; a quantised model has scores of its own."""
    window: Annotated[int, Field(ge=2)] | None = None
    """Tokens read at once; by default as many as the model can read."""
    patterns: Annotated[int, Field(ge=1)] = 20
    """Masked models: number of random mask patterns per record."""
    masked: Annotated[float, Field(gt=0, lt=1)] = 0.15
    """Masked models: share of tokens that each pattern hides."""
    one_by_one: bool = False
    """Masked models: hide every token once, one at a time, instead of random patterns."""
    mask_seed: int = 0
    """Masked models: seed of the random patterns."""
    precision: Precision | Literal["stored"] = "stored"
    """Precision of computation. `stored`: that of the weights, as deployed, if the device supports it, else `float32`.
    `float32`: for scores that other machines reproduce closely. `bfloat16` or `float16`: half the memory, coarser
    scores. `float64`: where the last digit matters, at twice the memory. References and shadow models follow the
    target."""
    sampling_top_k: Annotated[int, Field(ge=1)] = 40
    """Assume that the deployed model samples from so many top tokens; each score keeps their probability mass."""
    sampling_temperature: Annotated[float, Field(gt=0)] = 1.0
    """Assume that the deployed model samples at this temperature."""
    chat_template: str | None = None
    """Chat template for conversations, as a file or as the template itself; the tokenizer's own by default."""
    shows_top_k: Annotated[int, Field(ge=1)] | None = None
    """Show the audit only so many ranked tokens and no probabilities, as a deployment would."""
    server_tokenizer: str | None = None
    """Tokenizer of a model behind a server: a folder or hf:NAME; the server's own by default."""
    key_variable: str | None = None
    """Environment variable with the key; by default OPENAI_API_KEY for OpenAI and RECOLLECT_API_KEY for others."""
    allow_http: bool = False
    """Allow texts to be sent to another machine unencrypted."""
    top_logprobs: Annotated[int, Field(ge=1)] = 20
    """How many ranked tokens to request from a server; some return fewer."""
    connections: Annotated[int, Field(ge=1)] = 8
    """Maximum number of simultaneous requests to a server."""
    budget_requests: Annotated[int, Field(ge=0)] | None = None
    """Maximum number of requests to one server over all runs of this work folder, probes and retries included."""
    budget_tokens: Annotated[int, Field(ge=0)] | None = None
    """Maximum number of tokens that one server reads and generates, over all runs of this work folder."""
    budget_cost: Annotated[float, Field(ge=0)] | None = None
    """Maximum cost of one server over all runs of this work folder, in the currency of the prices."""
    price_input: Annotated[float, Field(ge=0)] = 0.0
    """Price of a million input tokens."""
    price_output: Annotated[float, Field(ge=0)] = 0.0
    """Price of a million output tokens."""

    @classmethod
    def from_question(cls, model: str, question: Question | None, *, device: str | None = None) -> Self:
        """A model that is scored as another one is."""
        if question is None:
            return cls(model=model, device=device)
        sampling = {f"sampling_{name}": value for name, value in vars(question.sampling).items()}
        return cls(model=model, device=device, **{name: getattr(question, name) for name in QUESTION}, **sampling)

    @property
    def question(self) -> Question:
        """How it is scored."""
        from recollect.models.model import Question, Sampling

        fields = {name: getattr(self, name) for name in QUESTION}
        if self.precision == STORED:
            fields["precision"] = "float32"  # until the weights are seen
        sampling = Sampling(top_k=self.sampling_top_k, temperature=self.sampling_temperature)
        return Question(**{**fields, "chat_template": read_template(self.chat_template), "sampling": sampling})

    def load(self, work: Path = Path(".recollect")) -> Model:
        """The model itself, or as much of it as is to be seen.

        Args:
            work: The work folder, where answers are kept, and what was spent on a server.
        """
        from recollect.models.loading.loader import load_model

        settings, loading = self._build_endpoint_settings(work), replace(self.loading, work=work)
        model = load_model(self.model, question=self.question, kind=self.kind, loading=loading, endpoint=settings)
        return self.limit(model)

    @property
    def loading(self) -> Loading:
        """How it is brought into memory."""
        from recollect.models.model_options import Loading

        keeps = self.precision == STORED
        return Loading(device=self.device, attention=self.attention, bits=self.bits, keeps_precision=keeps)

    def _build_endpoint_settings(self, work: Path) -> EndpointSettings:
        """How a server is used, should the model be behind one."""
        from recollect.models.endpoint.settings import Budget, EndpointSettings, Prices

        return EndpointSettings(
            tokenizer=self.server_tokenizer,
            key_variable=self.key_variable,
            allow_http=self.allow_http,
            top_logprobs=self.top_logprobs,
            connections=self.connections,
            budget=Budget(requests=self.budget_requests, tokens=self.budget_tokens, cost=self.budget_cost),
            prices=Prices(input_tokens=self.price_input, output_tokens=self.price_output),
            work=work,
        )

    def limit(self, model: Model) -> Model:
        """The model, showing no more than this reference allows."""
        from recollect.models.access import Access
        from recollect.models.limited import limited

        return model if self.shows_top_k is None else limited(model, Access.top(self.shows_top_k))

    def resolve_paths(self, home: Path) -> Self:
        """The same with paths that hold from everywhere; what is no path under `home` stays as it is."""
        template = self.chat_template
        placed = template if template is None or is_template(template) else _resolve_ref_path(template, home)
        tokenizer = None if self.server_tokenizer is None else resolve_ref_name(self.server_tokenizer, home)
        update = {"model": resolve_ref_name(self.model, home), "chat_template": placed, "server_tokenizer": tokenizer}
        return self.model_copy(update=update)


class CorpusRef(_Reference):
    """A corpus by its name, and how it is read."""

    corpus: str
    """A .jsonl, .csv, .tsv, .parquet, .txt or .npz file (also .gz, .zst), a folder, glob, s3://…, hf:NAME:SPLIT."""
    user_column: str | None = None
    """Column with the user of each record; `user` by default."""
    text_column: str | None = None
    """Column with the text; `text` by default."""
    source_column: str | None = None
    """Column with the source of a pair; `source` or `prompt` by default."""
    target_column: str | None = None
    """Column with the target of a pair; `target` or `completion` by default."""
    label_column: str | None = None
    """Column with the class label; `label` by default."""
    id_column: str | None = None
    """Column with the id of each record; `id` by default, otherwise records are numbered."""
    time_column: str | None = None
    """Column with the time of writing (ISO 8601 or seconds since 1970), to compare records of the same period."""
    messages_column: str | None = None
    """Column with the turns of a conversation; `messages` or `conversations` by default."""
    scored_roles: str = "assistant"
    """Whose turns of a conversation are scored and trained on, separated by commas: assistant, user, system, tool."""
    file_format: str | None = None
    """jsonl, csv, tsv, parquet, txt or npz; overrides the suffix."""
    running_text: bool = False
    """Read a .txt file as one text instead of one record per line."""
    split: Literal["sentences", "windows"] | None = None
    """Split long texts into records of the same user."""
    split_words: Annotated[int, Field(ge=1)] = 50
    """Words per window, if texts are split into windows."""
    split_minimum: Annotated[int, Field(ge=1)] = 1
    """If texts are split, pieces with fewer words are dropped and counted."""
    skip_bad: bool = False
    """Drop and count bad records instead of stopping."""
    max_record_mb: Annotated[int, Field(ge=1)] = 64
    """Largest size of a line or record, in megabytes."""
    max_expansion: Annotated[int, Field(ge=1)] = 200
    """How many times its own size a compressed file may expand to."""

    @property
    def options(self) -> dict[str, Any]:
        """How it is read, as `read_corpus` takes it."""
        from recollect.corpora.readers.columns import Columns
        from recollect.corpora.readers.read_limits import ReadLimits
        from recollect.corpora.segmentation import Split

        named = {name: column for name in COLUMNS if (column := getattr(self, f"{name}_column")) is not None}
        cut = None if self.split is None else Split(by=self.split, words=self.split_words, minimum=self.split_minimum)
        return {
            "columns": Columns(**named, scored_roles=tuple(filter(None, re.split(r"[\s,]+", self.scored_roles)))),
            "format": self.file_format,
            "split": cut,
            "skip_bad": self.skip_bad,
            "running_text": self.running_text,
            "limits": ReadLimits(max_record_mb=self.max_record_mb, max_expansion=self.max_expansion),
        }

    def read(self) -> Corpus:
        """The corpus itself, checked."""
        from recollect.corpora.readers.corpus_reader import read_corpus

        return read_corpus(self.corpus, **self.options)

    def resolve_paths(self, home: Path) -> Self:
        """The same with paths that hold from everywhere."""
        return self.model_copy(update={"corpus": resolve_ref_name(self.corpus, home)})


class RecipeRef(_Reference):
    """How models are trained that are needed and not given."""

    recipe: str | None = None
    """A built-in recipe, or a YAML file."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Settings of it to change, such as `training.epochs: 5`."""
    inline: dict[str, Any] | None = None
    """A whole recipe in place of a name, as a plan keeps one that was made in memory."""

    @classmethod
    def of(cls, recipe: Recipe) -> Self:
        """A recipe that was made in memory."""
        return cls(inline=recipe.model_dump(mode="json"))

    def load(self) -> Recipe:
        """The recipe itself."""
        from recollect.recipes.recipe_file import build_recipe, load_recipe

        if self.inline is not None:
            return build_recipe(self.inline)
        if self.recipe is None:
            raise PlanError(
                "A recipe is changed, and none is named.", do="Name one: `recipe: word-lstm`.", code="missing_recipe"
            )
        return load_recipe(self.recipe, self.set)

    def resolve_paths(self, home: Path) -> Self:
        """The same with paths that hold from everywhere; a checkpoint that it starts from may be under `home`, too.

        Models are found again by their recipe, so its paths are the same from wherever the plan is run.
        """
        from recollect.recipes.recipe_file import is_recipe_file

        if self.recipe is None:
            self.load()  # refused at once, and not when something is to be trained
            return self
        named = resolve_ref_name(self.recipe, home) if is_recipe_file(self.recipe) else self.recipe
        placed = self.model_copy(update={"recipe": named})
        start = placed.load().model.start
        if start is None or not (home / start).exists():
            return placed
        others = {key: value for key, value in self.set.items() if key not in ("model.start", "start")}
        return placed.model_copy(update={"set": {**others, "model.start": str((home / start).resolve())}})


Ids = str | tuple[str, ...]
"""Ids themselves, or where they are: a file with one per line, `column:NAME` of the corpus, a cohorts.json."""


class MembersRef(_Reference):
    """Whose data is known to be in the training set, and whose is known not to be; who is not listed is unknown."""

    members: Ids | None = None
    """Ids known to be in the training set: in a file, one per line; column:NAME; a cohorts.json; or a list (Python)."""
    non_members: Ids | None = None
    """Ids known not to be in the training set, given in the same ways."""
    others: Literal["unknown", "non-members"] = "unknown"
    """How users or records that are not listed are treated."""

    @model_validator(mode="after")
    def _refuse_ignored(self) -> Self:
        """A cohorts.json covers everybody; others can be declared beside a list only."""
        more = self.non_members is not None or self.others != "unknown"
        if self.cohorts is not None and more:
            raise PlanError(
                f"{self.members} contains members and non-members, and non-members are given besides.",
                do="Leave out non-members (--non-members, non_members=) and what others are (--others, others=).",
                code="needless_non_members",
            )
        if self.others != "unknown" and self.members is None and self.non_members is None:
            raise PlanError(
                "Others are declared non-members, and no members are listed.",
                do="Give members (--members, members=), or leave it out.",
                code="others_of_nobody",
            )
        return self

    @property
    def cohorts(self) -> Path | None:
        """The cohorts.json that says it, if one does."""
        return Path(self.members) if isinstance(self.members, str) and self.members.endswith(".json") else None

    def resolve_paths(self, home: Path) -> Self:
        """The same with paths that hold from everywhere."""
        found = {
            name: resolve_ref_name(ids, home)
            for name in ("members", "non_members")
            if isinstance(ids := getattr(self, name), str) and not ids.startswith("column:")
        }
        return self.model_copy(update=found)


def use_template_in_ref(source: Model | ModelRef | str, template: str | None) -> Model | ModelRef | str:
    """The reference to a model, which renders conversations by this template unless one was named for it."""
    if template is None or not isinstance(source, str | ModelRef):
        return source
    named = ModelRef(model=source) if isinstance(source, str) else source
    return named.model_copy(update={"chat_template": template}) if named.chat_template is None else named


def use_precision_in_ref(source: Model | ModelRef | str, precision: Precision) -> Model | ModelRef | str:
    """The reference to a model, which computes in this precision unless one was named for it."""
    if not isinstance(source, str | ModelRef):
        return source
    named = ModelRef(model=source) if isinstance(source, str) else source
    return named.model_copy(update={"precision": precision}) if named.precision == STORED else named


def _expand_ref_name(key: str) -> Callable[[Any], Any]:
    """Let a name stand for a reference in which only the name is given."""
    return lambda value: {key: value} if isinstance(value, str) else value


ModelName = Annotated[ModelRef, BeforeValidator(_expand_ref_name("model"), json_schema_input_type=str | ModelRef)]
CorpusName = Annotated[CorpusRef, BeforeValidator(_expand_ref_name("corpus"), json_schema_input_type=str | CorpusRef)]
RecipeName = Annotated[RecipeRef, BeforeValidator(_expand_ref_name("recipe"), json_schema_input_type=str | RecipeRef)]


def resolve_ref_name(ref: str, home: Path) -> str:
    """The name in a reference: a path under `home` becomes absolute; what is not there is left as it is.

    >>> resolve_ref_name("hf:wikitext:train", Path("plans"))
    'hf:wikitext:train'
    """
    prefix, _, rest = ref.rpartition("recorded:")
    if prefix:
        return ref
    return f"{'recorded:' if ref != rest else ''}{_resolve_ref_path(rest, home)}"


def _resolve_ref_path(path: str, home: Path) -> str:
    """The path in a reference under the folder, if something is there; of a base with an adapter, both."""
    pieces: Sequence[str] = path.split("+") if "+" in path and not (home / path).exists() else [path]
    found = [
        str((home / piece).absolute()) if piece and _names_existing_path(home, piece) else piece for piece in pieces
    ]
    return "+".join(found)


def _names_existing_path(home: Path, piece: str) -> bool:
    """Whether a reference's path or pattern names something under a folder."""
    if Path(piece).is_absolute() or ":" in piece:
        return False
    return (home / piece).exists() or any(mark in piece for mark in "*?[")
