"""Frozen labels: every name that a random stream or a digest hashes.

A stream's numbers and a digest's address depend on the names that are hashed into them. So these literals never change,
whatever the things they name are called elsewhere: one letter moves every number that is drawn from the stream, and
makes stored models and answers unfindable. Constants may be renamed, their values may not; `tests/test_labels.py` pins
both the values and what comes of them. A new stream or digest gets a new constant here.

Not frozen is what addresses nothing but unfinished work, which may be done again: see
`pipeline.result_provenance.compute_work_address`.
"""

from __future__ import annotations

# Roles: they name trained models, whose seeds they decide, and the records of pooled corpora.
ROLE_TARGET = "target"
ROLE_REFERENCE = "reference"
ROLE_SHADOW = "shadow"
ROLE_AUDITED = "audited"
ROLE_CONTROLS = "controls"
ROLE_LEFT_OUT = "left-out"
ROLE_RETRAINED = "retrained"

# Streams of corpora, canaries and cohorts.
STREAM_PERSON = "person"
STREAM_TEXT = "text"
STREAM_PAIR = "pair"
STREAM_HANDWRITING = "hand"
STREAM_DRAWING = "drawing"
STREAM_ARTIFICIAL_USER = "artificial user"
STREAM_GROUPS = "groups"
STREAM_FOLDS = "fold"
STREAM_CANARY_SECRETS = ("planting", "secrets")
STREAM_CANARY_PREFIXES = ("planting", "prefix")
STREAM_CANARY_RECORDS = ("planting", "places")
STREAM_CANARY_POSITIONS = ("planting", "inside")

# Streams of models and signals.
STREAM_MASK = "mask"
STREAM_NEIGHBOURS = "neighbours"
STREAM_WORD_SWAPS = "swapping"

# Streams of trainings.
STREAM_FLEET = "fleet"
STREAM_WEIGHTS = "weights"
STREAM_ORDER = "order"
STREAM_STEP = "step"
STREAM_BATCH = "batch"
STREAM_VALIDATION = "validation"
STREAM_GRADIENT_CHECK = "check"
STREAM_USER = "user"
STREAM_NOISE = "noise"
STREAM_POISSON = "poisson"

# Streams of audits; the stream that an audit's `run` is given has the audit's own name.
STREAM_EXPOSURE_DRAWS = ("exposure", "draws")
STREAM_EXPOSURE_ROOT = ("exposure", "root")
STREAM_LEAKAGE = "leakage"
STREAM_LEAKAGE_MATCHING = ("leakage", "matching")
STREAM_LEAKAGE_PERMUTATION = ("leakage", "permutation")
STREAM_MEMBERSHIP = "membership"
STREAM_SUSCEPTIBLE = "susceptible"
STREAM_CALIBRATION = "calibration"
STREAM_QUERY = "query"
STREAM_AFFORDED = "afforded"
STREAM_EVENED = "evened"
STREAM_MATCHING_CUT = ("matching", "cut")
STREAM_MATCHING_STRATA = ("matching", "strata")
STREAM_EVEN_SHADOWS = ("signals", "even shadows")
STREAM_MEMBERSHIP_PERMUTATION = ("membership", "permutation")
STREAM_MEMBERSHIP_STRATA = ("membership", "strata")
STREAM_EXPOSURE_STRATA = ("exposure", "strata")
STREAM_MEMBERSHIP_PLACEBO = ("membership", "placebo")
STREAM_GUARD_UNITS = ("guard", "units")
STREAM_GUARD_LABELS = ("guard", "labels")
STREAM_PLACEBO = "placebo"
STREAM_REMOVAL_PERMUTATION = ("removal", "permutation")
STREAM_REMOVAL_PLACEBO = ("removal", "placebo")

# Streams of the pipeline.
STREAM_SANITISE = "sanitise"
STREAM_DIGITS = "digits"
STREAM_DEMO = "demo"

# Models of the demonstration: the names decide their seeds, and its plans find their folders by them.
DEMO_BASE = "base-language-model"
DEMO_LANGUAGE_MODEL = "language-model"
DEMO_PRIVATE_LANGUAGE_MODEL = "private-language-model"
DEMO_MASKED_LANGUAGE_MODEL = "masked-language-model"
DEMO_CLASSIFIER = "classifier"
DEMO_RETRAINED_CLASSIFIER = "retrained-classifier"

# Streams and digests of fakes.
STREAM_FAKE_ORDER = "mixed"
STREAM_FAKE_NULL = "null"
FAKE_MEMBER = "member"
FAKE_OTHER = "other"
FAKE_CONTROL = "control"
DIGEST_TINY = "tiny"

# Digests that decide by a name.
DIGEST_SHIFT = "shift"
DIGEST_COIN = "coin"

# Models behind a server, and the tokenizers that are used with them.
DIGEST_ENDPOINT = "endpoint"
DIGEST_LOCAL_TOKENIZER = "local"

# Contents of a record, as its digest frames them.
RECORD_TEXT = b"text:str"
RECORD_SOURCE = b"source:str"
RECORD_TARGET = b"target:str"
RECORD_LABEL = "label:"
RECORD_ARRAY = "array:"
RECORD_MESSAGES = b"messages:role,content"
RECORD_SCORED_TURNS = b"scored:"

# What the digest of a model takes into account besides weights, configuration and tokenizer.
MODEL_ADAPTER = "adapter"
MODEL_SCALING = "scaling"
MODEL_SCALING_MEAN = "mean"
MODEL_SCALING_STD = "std"
MODEL_START = "start_symbol"
TOKENIZER_VOCABULARY = "vocabulary"
MODEL_CLASSES: dict[str, str] = {}
"""Classes of models of ours that were renamed: from the name now to the name that is hashed."""

# Fields of a question, as the address of answers hashes them.
QUESTION_WINDOW = "window"
QUESTION_PATTERNS = "patterns"
QUESTION_MASKED = "masked"
QUESTION_ONE_BY_ONE = "one_by_one"
QUESTION_MASK_SEED = "mask_seed"
QUESTION_PRECISION = "precision"
QUESTION_SAMPLING = "sampling"
QUESTION_CHAT_TEMPLATE = "chat_template"

# Columns of a shard of answers that are not named like the field of `Answers`; its check hashes their names.
COLUMN_LOGPROB_STD = "spread"

RECIPE_KEYS: dict[str, str] = {}
"""Keys of a recipe that were renamed: from the path of a key now, such as "sequences.long", to the key that is hashed.

A recipe is hashed by all its keys; those that are not here are hashed as they are called."""
