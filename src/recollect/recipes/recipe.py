"""A recipe: how a corpus becomes a model. The settings alone; nothing here loads torch."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
)

from recollect import labels
from recollect.digests import digest
from recollect.models.tokens.template_files import read_template

_LATER_KEYS = frozenset({"sequences.chat_template"})
"""Keys that recipes did not always have: they are hashed only where they are set, so that older models are found."""
Share = Annotated[float, Field(ge=0, lt=1)]


class Section(BaseModel):
    """Settings that cannot change and refuse what they do not know."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, allow_inf_nan=False)


class _Model(Section):
    """What every model can say."""

    start: str | None = None
    """A checkpoint to continue from: a folder, or hf:NAME[@REV]; its architecture, sizes and vocabulary are kept."""


class Recurrent(_Model):
    """A recurrent language model."""

    kind: Literal["recurrent"] = "recurrent"
    cell: Literal["lstm", "gru"] = "lstm"
    layers: PositiveInt = 1
    units: PositiveInt = 128
    embedding: PositiveInt = 128
    dropout: Share = 0.0
    """On embedded tokens, between layers, and before the output layer."""


class Convolutional(_Model):
    """A causal convolutional language model; `wavenet` dilates and gates its layers."""

    kind: Literal["convolutional"] = "convolutional"
    form: Literal["cnn", "wavenet"] = "cnn"
    layers: PositiveInt = 2
    units: PositiveInt = 188
    embedding: PositiveInt = 133
    width: PositiveInt = 10
    """How many tokens one layer looks at."""
    dropout: Share = 0.0


class EncoderDecoder(_Model):
    """A recurrent model from a source text to a target text."""

    kind: Literal["recurrent-seq2seq"] = "recurrent-seq2seq"
    cell: Literal["lstm", "gru"] = "lstm"
    layers: PositiveInt = 1
    units: PositiveInt = 128
    embedding: PositiveInt = 128
    dropout: Share = 0.0
    attention: bool = False


class Adapter(Section):
    """A low-rank adapter (LoRA) that is trained in place of the weights themselves."""

    rank: PositiveInt = 8
    alpha: PositiveFloat = 16
    dropout: Share = 0.0
    targets: tuple[str, ...] | None = None
    """Names of the layers that get one; None for those that peft knows for the architecture."""


class Transformer(_Model):
    """A transformer of the transformers library, from its configuration or from a checkpoint."""

    kind: Literal["transformer"] = "transformer"
    task: Literal["causal", "masked", "seq2seq", "classifier"] = "causal"
    architecture: str = "gpt2"
    """The name of the configuration, such as gpt2, llama, bert or bart."""
    config: dict[str, Any] = Field(default_factory=dict)
    """Settings of that configuration, under its own names."""
    adapter: Adapter | None = None


class Perceptron(_Model):
    """A multi-layer perceptron that classifies arrays."""

    kind: Literal["mlp"] = "mlp"
    hidden: tuple[PositiveInt, ...] = (256, 256)
    dropout: Share = 0.0


class ResNet(_Model):
    """A residual network that classifies images."""

    kind: Literal["resnet"] = "resnet"
    depths: tuple[PositiveInt, ...] = (2, 2, 2, 2)
    widths: tuple[PositiveInt, ...] = (64, 128, 256, 512)
    norm: Literal["batch", "group"] = "batch"
    """Batch norm mixes the records of a batch; under differential privacy choose group norm."""


Task = Literal["causal", "masked", "seq2seq", "classifier"]
Architecture = Annotated[
    Recurrent | Convolutional | EncoderDecoder | Transformer | Perceptron | ResNet, Field(discriminator="kind")
]


class Tokenizer(Section):
    """How texts become tokens; not used where a checkpoint brings its own."""

    kind: Literal["characters", "words", "bpe"] = "words"
    size: PositiveInt = 5000
    """The most frequent so many tokens are kept (words), or made (bpe); characters keep all."""
    lowercase: bool = False
    forced: str = ""
    """Tokens that must be in the vocabulary even if the corpus lacks them: characters, or words between spaces."""


class Sequences(Section):
    """How records become training sequences."""

    layout: Literal["records", "windows", "stream"] = "records"
    """`records`: each record by itself. `windows`: records joined and cut into equal windows, which are shuffled.
    `stream`: joined, read in order in as many parallel streams as a batch has rows, the state carried along."""
    length: PositiveInt = 100
    """The most tokens predicted by one training sequence."""
    long: Literal["split", "cut"] = "split"
    """Records that are longer: split into several training sequences, or cut off."""
    masked: Annotated[float, Field(gt=0, lt=1)] = 0.15
    """Masked models: the share of tokens to predict (80 % hidden, 10 % replaced at random, 10 % left)."""
    chat_template: Annotated[str | None, AfterValidator(read_template)] = None
    """Causal models: the template that renders conversations, or a file with it; that of the checkpoint by default."""


class Schedule(Section):
    """How the learning rate changes."""

    kind: Literal["constant", "plateau", "inverse", "linear"] = "constant"
    """`plateau`: times `factor` after `patience` epochs without a better loss. `inverse`: divided by
    (1 + decay × steps so far). `linear`: up over the first `warmup` share of the steps, then down to nothing."""
    factor: Annotated[float, Field(gt=0, lt=1)] = 0.5
    patience: NonNegativeInt = 1
    threshold: NonNegativeFloat = 0.001
    """By which share of itself the loss must fall to count as better."""
    decay: NonNegativeFloat = 0.0
    warmup: Share = 0.0


class Training(Section):
    """The loop."""

    optimiser: Literal["sgd", "momentum", "rmsprop", "adagrad", "adadelta", "adam", "adamw", "adamax"] = "adam"
    learning_rate: PositiveFloat = 0.001
    momentum: Share = 0.9
    """Of `momentum` only."""
    weight_decay: NonNegativeFloat = 0.0
    batch_size: PositiveInt = 32
    accumulate: PositiveInt = 1
    """In how many parts a batch is computed: saves memory and changes nothing else."""
    epochs: PositiveInt = 10
    sampling: Literal["shuffle", "bagging"] = "shuffle"
    """Every sequence once an epoch in random order, or drawn with replacement."""
    clip: PositiveFloat | None = None
    """The largest norm of a batch's gradient."""
    schedule: Schedule = Schedule()
    validation: Share = 0.0
    """The share of the corpus that is held out to watch the loss, unless a validation corpus is given."""
    stop_after: PositiveInt | None = None
    """Stop after so many epochs without a better validation loss."""
    keep: Literal["best", "last"] = "last"
    """Which weights the model gets: of the epoch with the best validation loss, or the last."""
    precision: Literal["float32", "bfloat16", "float16"] = "float32"


class Privacy(Section):
    """Differential privacy of the training; `unit: none` trains without."""

    unit: Literal["none", "record", "user"] = "none"
    """Whose influence is bounded: one training sequence's, or everything of one user."""
    clip: PositiveFloat = 1.0
    """The largest norm of one unit's update."""
    noise: NonNegativeFloat | None = None
    """Standard deviation of the noise, in multiples of `clip`; 0 clips only. None: found from `epsilon`."""
    epsilon: PositiveFloat | None = None
    """The budget that training may spend."""
    delta: Annotated[float, Field(gt=0, lt=1)] | None = None
    """None: a tenth of one over the number of units."""
    accountant: Literal["prv", "rdp"] = "prv"
    """`prv` is tight; `rdp` is looser and what older papers print."""
    rate: Annotated[float, Field(gt=0, le=1)] | None = None
    """With which probability a unit takes part in a step. None: batch_size over the number of sequences; for users
    batch_size over the number of users."""
    snapshots: tuple[PositiveFloat, ...] = ()
    """Also keep the last model within each of these ε, from the same run."""
    update: Literal["gradient", "fedavg"] = "gradient"
    """Users only: a user's update is the gradient of all their texts, or the way some local epochs of SGD lead."""
    local_epochs: PositiveInt = 1
    """Of `fedavg` only, like the next two."""
    local_batch_size: PositiveInt = 8
    local_learning_rate: PositiveFloat = 0.1
    most_sequences: PositiveInt | None = None
    """Users only: how many of a user's training sequences are drawn for one update; None for all."""
    secret_noise: bool = False
    """Draw noise and samples from the operating system's entropy and keep no seed, as a release demands: whoever knows
    the seed can take the noise away again. The training is then not repeatable."""


class Recipe(Section):
    """How a corpus becomes a model: everything but the corpus and the seed."""

    name: str
    """What it is; the file's name."""
    summary: str = ""
    """One line for lists."""
    source: str = ""
    """Where the settings come from: paper and section, and which are our choice."""
    model: Architecture = Recurrent()
    tokenizer: Tokenizer | None = Tokenizer()
    """None for models of arrays."""
    sequences: Sequences = Sequences()
    training: Training = Training()
    privacy: Privacy = Privacy()

    @property
    def private(self) -> bool:
        """Whether it trains with differential privacy."""
        return self.privacy.unit != "none"

    @property
    def task(self) -> Task:
        """What the model will predict: next words, masked words, a target text, a label."""
        if isinstance(self.model, Transformer):
            return self.model.task
        tasks: dict[str, Task] = {"recurrent": "causal", "convolutional": "causal", "recurrent-seq2seq": "seq2seq"}
        return tasks.get(self.model.kind, "classifier")

    @property
    def digest(self) -> str:
        """The address of the settings; what the recipe is called does not matter."""
        return digest(_relabel_recipe(self.model_dump(mode="json", exclude={"name", "summary", "source"})))


def _relabel_recipe(settings: Any, at: str = "") -> Any:
    """The settings of a recipe under the keys that are hashed, whatever they are called now."""
    if not isinstance(settings, dict):
        return settings
    return {
        labels.RECIPE_KEYS.get(f"{at}{key}", key): _relabel_recipe(value, f"{at}{key}.")
        for key, value in settings.items()
        if value is not None or f"{at}{key}" not in _LATER_KEYS
    }
