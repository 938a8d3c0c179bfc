"""Frozen labels: no name that is hashed may change, because every number that comes after it would move."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import recollect
from recollect import labels
from recollect.audits.exposure.log_perplexity import build_draws_corpus
from recollect.audits.exposure.secrets import Secret
from recollect.audits.leakage.reference_models import LEFT_OUT, RETRAINED, assign_folds
from recollect.audits.membership.shadow_models import build_reference_cohorts, build_shadow_cohorts
from recollect.audits.provenance.queries import QuerySelector
from recollect.audits.provenance.reference_users import divide_reference
from recollect.audits.provenance.word_frequencies import Frequencies
from recollect.audits.registry import AUDITS
from recollect.audits.removal.confidence_scores import _draw_model_of_each_pair
from recollect.audits.removal.safeguards import sample_guarded_records
from recollect.corpora import synthetic
from recollect.corpora.canaries.formats import parse_format
from recollect.corpora.canaries.insertion import CanarySettings, plant
from recollect.corpora.corpus import Corpus
from recollect.corpora.digit_images import draw_digit_images
from recollect.corpora.partitions import build_cohorts, draw_balanced_groups, draw_folds, draw_groups, draw_halves
from recollect.corpora.record import Record
from recollect.corpora.user_assignment import assign_artificial_users
from recollect.digests import digest
from recollect.models import architectures
from recollect.models.answer_store.recorded_model import write_recording
from recollect.models.hugging_face.mask_patterns import draw_hidden
from recollect.models.loading.model_digests import compute_model_digest
from recollect.models.model import Question, build_question_key, compute_address
from recollect.recipes.fleet import Fleet
from recollect.recipes.recipe_file import list_builtin_recipes, load_recipe
from recollect.recipes.training.samplers import ShuffledSampler
from recollect.signals.neighbourhood import _WordSwapper
from recollect.streams import stream
from recollect.testing.fakes import Null
from recollect.testing.world import World

STREAMS = [
    (labels.ROLE_TARGET, "target", 0.23178363254113443),
    (labels.ROLE_REFERENCE, "reference", 0.11177800056183351),
    (labels.ROLE_SHADOW, "shadow", 0.8857593683576469),
    (labels.ROLE_AUDITED, "audited", 0.24487399382940434),
    (labels.ROLE_CONTROLS, "controls", 0.5316558187928003),
    (labels.ROLE_LEFT_OUT, "left-out", 0.2953431406237036),
    (labels.ROLE_RETRAINED, "retrained", 0.979998124854948),
    (labels.STREAM_PERSON, "person", 0.8013105628853419),
    (labels.STREAM_TEXT, "text", 0.3259559540136472),
    (labels.STREAM_PAIR, "pair", 0.6457503880595769),
    (labels.STREAM_HANDWRITING, "hand", 0.27587141789635206),
    (labels.STREAM_DRAWING, "drawing", 0.5140439499720393),
    (labels.STREAM_ARTIFICIAL_USER, "artificial user", 0.010135808965356152),
    (labels.STREAM_GROUPS, "groups", 0.4471165125405714),
    (labels.STREAM_FOLDS, "fold", 0.23162851607388213),
    (labels.STREAM_CANARY_SECRETS, ("planting", "secrets"), 0.22985718262522026),
    (labels.STREAM_CANARY_PREFIXES, ("planting", "prefix"), 0.7197006284430794),
    (labels.STREAM_CANARY_RECORDS, ("planting", "places"), 0.19651257268056654),
    (labels.STREAM_CANARY_POSITIONS, ("planting", "inside"), 0.12589752406537125),
    (labels.STREAM_MASK, "mask", 0.3629380251043587),
    (labels.STREAM_NEIGHBOURS, "neighbours", 0.2521411669098813),
    (labels.STREAM_WORD_SWAPS, "swapping", 0.6509123221900761),
    (labels.STREAM_FLEET, "fleet", 0.5365693833218489),
    (labels.STREAM_WEIGHTS, "weights", 0.982698267497541),
    (labels.STREAM_ORDER, "order", 0.3180079942286854),
    (labels.STREAM_STEP, "step", 0.3112354504731045),
    (labels.STREAM_BATCH, "batch", 0.7820877149488066),
    (labels.STREAM_VALIDATION, "validation", 0.03398963611449868),
    (labels.STREAM_GRADIENT_CHECK, "check", 0.33636007095711506),
    (labels.STREAM_USER, "user", 0.3130953074096443),
    (labels.STREAM_NOISE, "noise", 0.6039565217201682),
    (labels.STREAM_POISSON, "poisson", 0.4481630935880039),
    (labels.STREAM_EXPOSURE_DRAWS, ("exposure", "draws"), 0.3012499507201942),
    (labels.STREAM_EXPOSURE_ROOT, ("exposure", "root"), 0.7688305753528023),
    (labels.STREAM_LEAKAGE, "leakage", 0.5422150260454432),
    (labels.STREAM_LEAKAGE_MATCHING, ("leakage", "matching"), 0.7078710736445724),
    (labels.STREAM_LEAKAGE_PERMUTATION, ("leakage", "permutation"), 0.45622202031907566),
    (labels.STREAM_MEMBERSHIP, "membership", 0.10982398499845247),
    (labels.STREAM_SUSCEPTIBLE, "susceptible", 0.5660220288461913),
    (labels.STREAM_CALIBRATION, "calibration", 0.642427719093986),
    (labels.STREAM_QUERY, "query", 0.627511400816424),
    (labels.STREAM_AFFORDED, "afforded", 0.7138044570992048),
    (labels.STREAM_EVENED, "evened", 0.06644948231709902),
    (labels.STREAM_MATCHING_CUT, ("matching", "cut"), 0.03425540543774719),
    (labels.STREAM_MATCHING_STRATA, ("matching", "strata"), 0.366107126467335),
    (labels.STREAM_EVEN_SHADOWS, ("signals", "even shadows"), 0.08136004339247649),
    (labels.STREAM_MEMBERSHIP_PERMUTATION, ("membership", "permutation"), 0.8432497227690675),
    (labels.STREAM_MEMBERSHIP_PLACEBO, ("membership", "placebo"), 0.818229159040604),
    (labels.STREAM_MEMBERSHIP_STRATA, ("membership", "strata"), 0.9715345877192862),
    (labels.STREAM_EXPOSURE_STRATA, ("exposure", "strata"), 0.5593785617974808),
    (labels.STREAM_GUARD_UNITS, ("guard", "units"), 0.5909031384666221),
    (labels.STREAM_GUARD_LABELS, ("guard", "labels"), 0.9864069056780438),
    (labels.STREAM_PLACEBO, "placebo", 0.3016985832916862),
    (labels.STREAM_REMOVAL_PERMUTATION, ("removal", "permutation"), 0.6547542625611492),
    (labels.STREAM_REMOVAL_PLACEBO, ("removal", "placebo"), 0.5728120134738391),
    (labels.STREAM_SANITISE, "sanitise", 0.2115077867483257),
    (labels.STREAM_DIGITS, "digits", 0.0912096227500031),
    (labels.STREAM_DEMO, "demo", 0.6684160620858153),
    (labels.STREAM_FAKE_ORDER, "mixed", 0.6816321012955064),
    (labels.STREAM_FAKE_NULL, "null", 0.0759009181091751),
]
"""Each label of a stream, its literal, and the first random number of the stream of that name for seed 0."""
LITERALS = [
    (labels.DEMO_BASE, "base-language-model"),
    (labels.DEMO_LANGUAGE_MODEL, "language-model"),
    (labels.DEMO_PRIVATE_LANGUAGE_MODEL, "private-language-model"),
    (labels.DEMO_MASKED_LANGUAGE_MODEL, "masked-language-model"),
    (labels.DEMO_CLASSIFIER, "classifier"),
    (labels.DEMO_RETRAINED_CLASSIFIER, "retrained-classifier"),
    (labels.FAKE_MEMBER, "member"),
    (labels.FAKE_OTHER, "other"),
    (labels.FAKE_CONTROL, "control"),
    (labels.DIGEST_TINY, "tiny"),
    (labels.DIGEST_SHIFT, "shift"),
    (labels.DIGEST_COIN, "coin"),
    (labels.DIGEST_ENDPOINT, "endpoint"),
    (labels.DIGEST_LOCAL_TOKENIZER, "local"),
    (labels.RECORD_TEXT, b"text:str"),
    (labels.RECORD_SOURCE, b"source:str"),
    (labels.RECORD_TARGET, b"target:str"),
    (labels.RECORD_LABEL, "label:"),
    (labels.RECORD_ARRAY, "array:"),
    (labels.RECORD_MESSAGES, b"messages:role,content"),
    (labels.RECORD_SCORED_TURNS, b"scored:"),
    (labels.MODEL_ADAPTER, "adapter"),
    (labels.MODEL_SCALING, "scaling"),
    (labels.MODEL_SCALING_MEAN, "mean"),
    (labels.MODEL_SCALING_STD, "std"),
    (labels.MODEL_START, "start_symbol"),
    (labels.TOKENIZER_VOCABULARY, "vocabulary"),
    (labels.QUESTION_WINDOW, "window"),
    (labels.QUESTION_PATTERNS, "patterns"),
    (labels.QUESTION_MASKED, "masked"),
    (labels.QUESTION_ONE_BY_ONE, "one_by_one"),
    (labels.QUESTION_MASK_SEED, "mask_seed"),
    (labels.QUESTION_PRECISION, "precision"),
    (labels.QUESTION_SAMPLING, "sampling"),
    (labels.QUESTION_CHAT_TEMPLATE, "chat_template"),
    (labels.COLUMN_LOGPROB_STD, "spread"),
]
"""Each other label and its literal."""

TEXTS = synthetic.make_texts(people=4, per_person=3, seed=0)
NOTES = Corpus.of([Record(id=f"n{i:03d}", text=f"note {i} of {i % 7}") for i in range(40)])
USERS = [f"user-{i}" for i in range(12)]
WORLD = World(members=4, others=4, controls=30)
QUESTION = Question(window=64, patterns=7, masked=0.2, one_by_one=True, mask_seed=3, precision="float64")
PLANTING = CanarySettings(
    format="my code is {digits:4}", secrets=2, repeat=(1, 2), controls=3, unique_prefix=4, inside=True
)
SECRET = Secret(id="s", parsed=parse_format("my code is {digits:4}"), text="my code is 1234", planted=1)


def divisions() -> dict[str, object]:
    """How each audit divides the people of a world among models."""
    evidence = WORLD.build_evidence(WORLD.build_null())
    _, shadows = build_shadow_cohorts(evidence, 4)
    halved, reference = build_reference_cohorts(evidence)
    calibrating = divide_reference(evidence, shadows=2, share=0.2, artificial=0)
    members = {
        name: cohorts.members(name) for cohorts in (shadows, reference, calibrating.cohorts) for name in cohorts.models
    }
    return {
        "members": members,
        "corpora": [corpus.digest for corpus in halved.values()],
        "calibration": calibrating.calibration,
        "folds": [assign_folds(USERS, 3, 0, part) for part in evidence.corpora],
    }


def ordered() -> list[str]:
    """The texts of a user in the order in which they are asked about."""
    chooser = QuerySelector("random", Frequencies.of(NOTES, 50), 0)
    (texts,) = chooser.rank_texts(NOTES).values()
    return [record.id for record in texts]


def blank(config: object) -> str:
    """The digest of a model of ours whose weights are all zero: of its class, its weights' names and its settings."""
    network = next(model for _, known, model in architectures._KNOWN if known is type(config))(config)
    network.load_state_dict({name: torch.zeros_like(values) for name, values in network.state_dict().items()})
    return compute_model_digest(network)


def seeds(*roles: str) -> list[int]:
    """The seeds with which models of these roles are trained."""
    cohorts = build_cohorts(NOTES, {f"{role}-{i}": ["n001"] for role in roles for i in range(2)}, unit="record", seed=0)
    fleet = Fleet(recipe=load_recipe("char-gru"), corpus=NOTES, cohorts=cohorts)
    return [fleet.derive_seed(name) for name in cohorts.models]


VALUES = {
    "texts": lambda: TEXTS.digest,
    "pairs": lambda: synthetic.make_pairs(people=2, per_person=2, seed=0).digest,
    "drawings": lambda: draw_digit_images(people=2, per_person=2, seed=0).digest,
    "labels": lambda: Corpus.of([Record(id="1", text="good", label="yes"), Record(id="2", text="bad", label=0)]).digest,
    "artificial users": lambda: assign_artificial_users(NOTES, users=3, seed=0).digest,
    "planted": lambda: [plant(corpus, PLANTING)[0].digest for corpus in (NOTES, TEXTS)],
    "groups": lambda: digest(draw_groups(USERS, {"one": 4, "two": 0.5}, seed=0)),
    "balanced groups": lambda: digest(
        draw_balanced_groups({user: [float(i)] for i, user in enumerate(USERS)}, {"one": 4, "two": 4}, seed=0)
    ),
    "halves": lambda: digest(draw_halves(USERS, 3, seed=0)),
    "folds": lambda: digest(draw_folds(USERS, 3, seed=0)),
    "address": lambda: compute_address(Null(question=QUESTION)),
    "default address": lambda: compute_address(Null()),
    "masks": lambda: [draw_hidden("abc", 20, pattern, Question()).tolist() for pattern in (0, 1)],
    "swapped": lambda: digest(_WordSwapper(NOTES).neighbours(["the note of 3 and 4"], 3)),
    "order": lambda: next(ShuffledSampler(lengths=np.ones(9, np.int32), batch_size=9, seed=0).iter_batches(0)).tolist(),
    "seeds": lambda: seeds("shadow", "reference", LEFT_OUT, RETRAINED),
    "recurrent model": lambda: blank(architectures.RecurrentConfig(units=2, embedding=2)),
    "convolutional model": lambda: blank(architectures.ConvolutionalConfig(units=2, embedding=2, width=2)),
    "seq2seq model": lambda: blank(architectures.TranslatingConfig(units=2, embedding=2, attention=True)),
    "perceptron": lambda: blank(architectures.PerceptronConfig(inputs=4, hidden=(3,))),
    "recipes": lambda: {name: load_recipe(name).digest for name in sorted(list_builtin_recipes())},
    "divisions": lambda: digest(divisions()),
    "shift": lambda: [record.id for record in sample_guarded_records(NOTES)][:5],
    "coins": lambda: _draw_model_of_each_pair(USERS[:3], 4).astype(int).tolist(),
    "queries": lambda: ordered()[:5],
    "random secrets": lambda: build_draws_corpus([SECRET], "causal", draws=3, seed=0).digest,
    "world": lambda: [corpus.digest for corpus in WORLD.corpora.values()],
    "fake": lambda: Null().answer(list(TEXTS)[:1]).logprob[:3].round(4).tolist(),
}
"""Values that hang on hashed names, computed as audits and trainings compute them."""
PINNED = {
    "texts": "f7f7c89d5656a93fed3be0c1c5b0fcc4",
    "pairs": "0e0601ff4a87835fd3cefc457cbbc9da",
    "drawings": "d0266bfd4d891ce18f8fa6cdd0cd4b00",
    "labels": "ce6f194a8052e5a407cc62a61acd96bb",
    "artificial users": "eae117a8cd02f1852e86a976517270ce",
    "planted": ["103087c28fd95d96ba91baa83972924e", "1c4c34bd4de6a0e38643864f0a6b477e"],
    "groups": "2b5390d9c6fb4e98a3e96c9e79247c4b",
    "balanced groups": "6e00f86fc4d072af0d416f1501a1dff4",
    "halves": "53818a724514efe7c63da176871b304a",
    "folds": "d2759c3dbd17abca49a377714d9817d0",
    "address": "df147368c2bbd7e70a3297ea7d9cce52",
    "default address": "ff1e0faa15f1224943c579b5351d2ace",
    "masks": [[8, 13, 15], [2, 3, 4]],
    "swapped": "b4e5cf852f6adcea6544b84d353abb4d",
    "order": [0, 8, 2, 3, 5, 4, 6, 7, 1],
    "seeds": [1269281753, 1486993298, 1838455596, 1581642982, 1949324622, 281565340, 1732486781, 1665000736],
    "recurrent model": "17839c79b69da57429160b6c4c8738f1",
    "convolutional model": "da28451fba515c5691d63c8854d46e73",
    "seq2seq model": "502946a54b625d6da75476feda0a7ffe",
    "perceptron": "699f7da8b990022aa8a89f587604a01e",
    "recipes": {
        "causal-transformer": "90cd0df58dafde6725ebd2795bf8497a",
        "char-cnn": "508a93b0813b93a0b62e1edfc36a7aac",
        "char-gru": "4c4931f637f3e0f6baff14b5d39c1e2c",
        "char-lstm": "883d849d342b3f7420dd3d4f838a59f0",
        "char-lstm-dp": "b2ac09fe7b162d551b6491a8097a32e0",
        "char-wavenet": "bae6b246578b76c14a29e73bd9bd093f",
        "lora": "f20199fb68fbb545b657f7cfd74ec3e0",
        "masked-transformer": "6c1e260cfaf78c095174901ecc0c1e8e",
        "mlp": "baf7a73d3afde13509379a95bd13a309",
        "resnet18": "ba2deb23578bcd028ff8693a910e46fb",
        "seq2seq": "08f25e122e2933a61036dcdc1ee0e61f",
        "seq2seq-attention": "018fbd21c611195ab5fcc6720b0f154d",
        "seq2seq-attention-shadow": "2f75efe1558d6b302801e14b1d6aec1a",
        "seq2seq-shadow": "1cd178b3d5c35063bde9ebc03b94f566",
        "seq2seq-transformer": "ced202b009f4bd3bd4ad8e79c118c13f",
        "text-classifier": "022f9844ef60730caee1229f5672f0ab",
        "word-gru": "883f4061a0d4caff1d197b79a9a34dc2",
        "word-gru-shadow": "0367543c7bdf4f5c7bacc8b5fd219869",
        "word-gru-user-dp": "bb4e6d425e0ed3ae01a12b5a38f06c75",
        "word-lstm": "4e2d5f1bade8a47873fdb543aa2aa46c",
        "word-lstm-user-dp": "c211dc2a76054e02073d88cbc6ebfb68",
    },
    "divisions": "83061380a88289690a3bc55951105566",
    "shift": ["n030", "n035", "n036", "n021", "n038"],
    "coins": [[0, 1, 1, 0], [0, 1, 1, 0], [0, 1, 0, 1]],
    "queries": ["n026", "n034", "n027", "n001", "n017"],
    "random secrets": "0b3c04251a1f25a5a1fb10a619b30e4f",
    "world": ["62c8130277aa2e6da6355b6e89344417", "68030e7be88b84166a11db86445d34eb"],
    "fake": [-3.6059000492095947, -1.4488999843597412, -5.510300159454346],
}
"""The same values as version 0.1.0 gives them; those of `address` follow from scoring revision 2."""


@pytest.mark.parametrize(("label", "literal", "first"), STREAMS, ids=str)
def test_a_label_of_a_stream_is_its_literal_and_gives_the_same_numbers_as_ever(label, literal, first):
    assert label == literal
    assert stream(0, *([label] if isinstance(label, str) else label)).random() == first


@pytest.mark.parametrize(("label", "literal"), LITERALS)
def test_every_other_label_is_its_literal(label, literal):
    assert label == literal


def test_no_label_is_left_unpinned():
    there = [value for name, value in vars(labels).items() if name.isupper() and not isinstance(value, dict)]
    assert sorted(map(str, there)) == sorted(str(pinned[1]) for pinned in (*STREAMS, *LITERALS))


@pytest.mark.parametrize("name", VALUES)
def test_what_hangs_on_hashed_names_is_as_it_always_was(name):
    assert VALUES[name]() == PINNED[name]


def test_a_store_of_answers_has_the_same_address_names_and_check_as_ever(tmp_path):
    about = {"name": "m", "kind": "causal", "access": Null().access, "question": QUESTION}
    store = write_recording([Null().answer(list(NOTES))], tmp_path / "store", **about)
    (shard,) = store.folder.glob("*.parquet")
    assert store.manifest.address == "85310ed01637ed7da29dbb980bbe39eb"
    assert shard.name == "c1ea256118ea9632e48d9a279c4d41ff.parquet"
    assert pq.read_metadata(shard).metadata[b"digest"] == b"2da3850ad886846f9d241d94104c9767"
    assert pq.read_schema(shard).names == [
        "record",
        "pattern",
        "position",
        "start",
        "end",
        "known",
        "rank",
        "logprob",
        "entropy",
        "spread",
    ]


def test_every_field_that_is_hashed_has_a_label():
    assert len(build_question_key(Question(chat_template="{{ x }}"))) == len(fields(Question))


def test_a_recipe_whose_key_was_renamed_keeps_its_digest(monkeypatch):
    recipe = load_recipe("char-gru")
    monkeypatch.setattr(labels, "RECIPE_KEYS", {"sequences.length": "longest"})
    renamed = recipe.digest
    assert renamed != PINNED["recipes"]["char-gru"]
    settings = recipe.model_dump(mode="json", exclude={"name", "summary", "source"})
    settings["sequences"]["longest"] = settings["sequences"].pop("length")
    assert settings["sequences"].pop("chat_template") is None  # a key that came later: hashed only where it is set
    assert renamed == digest(settings)


def test_audits_have_the_names_that_their_streams_always_had():
    assert list(AUDITS.table) == ["exposure", "extraction", "leakage", "membership", "provenance", "removal"]


HASHING = {"stream", "derive_seed", "digest", "digest_bytes", "frame", "_derive_seed"}
"""Functions whose arguments are hashed."""
NAMING = {"draw_groups", "draw_balanced_groups", "draw_halves", "draw_folds"}
"""Functions whose `name` is hashed."""


def test_nothing_is_hashed_under_a_literal_of_its_own():
    sources = {path: path.read_text(encoding="utf-8") for path in Path(recollect.__file__).parent.rglob("*.py")}
    found = [
        f"{path.name}: {text}"
        for path, source in sources.items()
        if path.name != "labels.py" and any(name in source for name in HASHING | NAMING)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call | ast.FunctionDef)
        for text in _hashed_literals(node)
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "stream(0, 'mask', record)",
        "partial(stream, 0, 'mask')",
        "digest({'window': 3})",
        "frame(f'label:{kind}'.encode())",
        "streams.derive_seed(seed, *names, 'mask')",
        "draw_groups(users, sizes, seed=0, name='mask')",
        "def draw_groups(users, *, name='mask'): pass",
    ],
)
def test_a_literal_that_is_hashed_is_noticed(line):
    (statement,) = ast.parse(line).body
    node = statement.value if isinstance(statement, ast.Expr) else statement
    assert len(list(_hashed_literals(node))) == 1


def _hashed_literals(node: ast.Call | ast.FunctionDef) -> Iterator[str]:
    """The literals that one call, or the defaults of one function, hash."""
    if isinstance(node, ast.FunctionDef):
        defaults = [*node.args.defaults, *filter(None, node.args.kw_defaults)] if node.name in NAMING else []
        yield from _literals(defaults)
        return
    called, given = _name(node.func), node.args
    if called == "partial" and given:
        called, given = _name(given[0]), given[1:]
    if called in HASHING:
        yield from _literals(given)
    if called in NAMING:
        yield from _literals([keyword.value for keyword in node.keywords if keyword.arg == "name"])


def _name(function: ast.expr) -> str:
    """What a called function is called."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _literals(given: list[ast.expr]) -> Iterator[str]:
    """Strings in these expressions, but for arguments of further calls: those are not what is hashed."""
    for expression in given:
        if isinstance(expression, ast.Constant) and isinstance(expression.value, str | bytes) and expression.value:
            yield str(expression.value)
        elif isinstance(expression, ast.Call):
            yield from _literals([expression.func])
        else:
            yield from _literals([child for child in ast.iter_child_nodes(expression) if isinstance(child, ast.expr)])
