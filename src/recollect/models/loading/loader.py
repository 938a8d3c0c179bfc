"""From the name of a model, or from a model in memory, to a model that scores records; for CLI, plans and Python."""

from __future__ import annotations

import importlib
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from recollect.checks import suggest_name
from recollect.errors import MissingDependency, ModelError, RecollectError
from recollect.models.endpoint.settings import EndpointSettings
from recollect.models.loading import adapter_bases
from recollect.models.loading.known_models import compute_files_key, find_known_model, note_loaded
from recollect.models.loading.model_folders import Files, locate_files
from recollect.models.loading.stored_weights import read_stored_precision
from recollect.models.model import Kind, Model, Question
from recollect.models.model_options import Loading
from recollect.models.model_strings import CodeRef, EndpointRef, GgufRef, RecordingRef, parse_model


def load_model(  # noqa: PLR0913 - a model, how it is scored, and how it is reached
    source: Any,
    tokenizer: Any = None,
    *,
    question: Question | None = None,
    kind: Kind | None = None,
    device: str | None = None,
    endpoint: EndpointSettings | None = None,
    loading: Loading | None = None,
) -> Model:
    """Load a model: the one of that name, or the one in memory, ready to score.

    A model in memory has the digest and the answers of the same weights saved by `save_pretrained`. It is not changed;
    should you train it further, load it again.

    Args:
        source: A model string: a folder; `hf:NAME[@REV]`; BASE+ADAPTER, each of them a folder or `hf:`; FILE.gguf;
            `recorded:DIR`; `python:package.module:factory` (runs that code); `http(s)://host:port/v1#NAME`, a model
            behind a server, which is probed. Only servers and what is marked with `hf:` are looked for on the network,
            and code from a model's folder is never run. Or an object: a Hugging Face model with its tokenizer, a
            pipeline of `transformers`, a PEFT model, or anything that keeps the `Model` protocol, which is returned as
            it is.
        tokenizer: Of a model in memory; a pipeline brings its own.
        question: The scoring options; a recorded model and one of the user's own have theirs.
        kind: What it predicts, where its architecture does not say or says something else.
        device: Where it computes; None for the best there is, and for a model in memory where it is.
        endpoint: Of a model behind a server: its tokenizer, budget, prices and work folder.
        loading: More of how a model that is named is brought into memory, its device included.

    Raises:
        ModelError: It cannot be found, loaded or used; the message says what is there instead.
        MissingDependency: An optional package is needed.
    """
    how = loading or Loading(device=device, keeps_precision=question is None)
    if isinstance(source, str | Path):
        return _load_named(str(source), tokenizer, endpoint, question=question, kind=kind, loading=how)
    if isinstance(source, Model):
        return _check_kind(source, kind)
    _refuse_without_transformers(source)
    from recollect.models.loading.local_models import load_from_memory

    return load_from_memory(source, tokenizer, question=question, kind=kind, loading=how)


def natural_reference(source: Any, tokenizer: Any = None, **settings: Any) -> Model | str | None:
    """Load the model that an adapted model is naturally compared with: its base; None for any other model.

    Args:
        source: What `load_model` takes. Of BASE+ADAPTER the base is given by its name, of a PEFT model as a model in
            memory that shares its weights.
        tokenizer: Of a model in memory.
        settings: `question`, `kind`, `device` and `loading`, as for `load_model`.
    """
    if isinstance(source, str | Path):
        return adapter_bases.get_natural_reference(str(source))
    if isinstance(source, Model):
        return None
    _refuse_without_transformers(source)
    from recollect.models.loading.local_models import load_base_from_memory

    return load_base_from_memory(source, tokenizer, **settings)


def _load_named(
    ref: str,
    tokenizer: Any,
    endpoint: EndpointSettings | None,
    *,
    question: Question | None,
    kind: Kind | None,
    loading: Loading,
) -> Model:
    """Load the model that a string names."""
    if tokenizer is not None:
        raise ModelError(
            f"A tokenizer was given for the model {ref!r}, which has its own.",
            do="Leave tokenizer= out; it is for a model in memory.",
            code="tokenizer_not_wanted",
        )
    name = parse_model(ref)
    if isinstance(name, EndpointRef):
        return _check_kind(_load_endpoint(name, endpoint or EndpointSettings(), question or Question()), kind)
    if isinstance(name, CodeRef):
        return _check_kind(load_from_code(name), kind)
    if isinstance(name, RecordingRef):
        from recollect.models.answer_store.recorded_model import load_recording

        return _check_kind(load_recording(name.path), kind)
    # before torch is loaded, which takes longer than to see that nothing is there
    files = name if isinstance(name, GgufRef) else locate_files(name)
    return _check_kind(_find_or_load(files, question or Question(), kind, loading), kind)


def _find_or_load(files: Files | GgufRef, question: Question, kind: Kind | None, loading: Loading) -> Model:
    """The model in these files: loaded now, or when it first computes if its answers are kept."""
    load = partial(_load_files, files, question, kind, loading)
    if loading.work is None:
        return load()
    compute_key = partial(_compute_key, files, question, kind, loading)
    if (key := compute_key()) is None:
        return load()
    name, revision = (files.ref, files.revision) if isinstance(files, Files) else (str(files), None)
    if (known := find_known_model(name, loading.work, key, revision=revision, load=load)) is not None:
        return known
    model = load()
    note_loaded(model, key, compute_key)
    return model


def _compute_key(files: Files | GgufRef, question: Question, kind: Kind | None, loading: Loading) -> str | None:
    """What the loaded model depends on; see `compute_files_key`."""
    places = (files.folder, files.adapter) if isinstance(files, Files) else (files.path,)
    settings: dict[str, Any] = {name: value for name, value in vars(loading).items() if name != "work"}
    if isinstance(files, Files) and loading.keeps_precision and loading.bits is None:
        half = read_stored_precision(files.folder) in {"float16", "bfloat16"}
        local_models = _import_local_models(files.ref) if half else None  # not every device computes in it
        chosen = local_models.choose_stored_precision(files.folder, loading.device) if local_models else "float32"
        settings["precision"] = chosen
    return compute_files_key(places, {"question": asdict(question), "kind": kind, **settings})


def _load_files(files: Files | GgufRef, question: Question, kind: Kind | None, loading: Loading) -> Model:
    """Load the model in these files."""
    if isinstance(files, GgufRef):
        model: Model = _import_local_models(str(files)).load_gguf(files, question, loading)
    else:
        model = _import_local_models(files.ref).load_local(files, question, kind, loading)
    return model


def _import_local_models(ref: str) -> Any:
    """The module that loads torch and models with it."""
    try:
        from recollect.models.loading import local_models
    except ModuleNotFoundError as error:
        raise MissingDependency(
            f"The model {ref!r} computes here, which needs the package {error.name}.",
            do="pip install torch transformers, or give answers that were computed elsewhere: recorded:DIR.",
            code="torch_missing",
        ) from error
    return local_models


def _check_kind(model: Model, kind: Kind | None) -> Model:
    """The loaded model, unless another kind was requested."""
    if kind not in (None, model.kind):
        found = f"{model.name} is a {model.kind} model, not a {kind} one."
        raise ModelError(found, do="Leave --as (kind=) out.", code="other_kind")
    return model


def _refuse_without_transformers(source: Any) -> None:
    """Refuse what can be no model, before torch is loaded: whoever has a network has loaded it."""
    if "transformers" not in sys.modules:
        raise build_not_a_model_error(source)


def _load_endpoint(name: EndpointRef, settings: EndpointSettings, question: Question) -> Model:
    """Load the model behind a server."""
    try:
        from recollect.models.endpoint.endpoint_model import load_endpoint
    except ModuleNotFoundError as error:
        raise MissingDependency(
            f"The model {str(name)!r} is behind a server, which needs the package {error.name}.",
            do="pip install 'recollect[endpoint]'.",
            code="endpoint_missing",
        ) from error
    return load_endpoint(name, settings, question)


_PROTOCOL = ("name", "kind", "digest", "question", "access", "answer")


def load_from_code(name: CodeRef) -> Model:
    """Load a model from the user's code: what the factory returns when it is called without arguments.

    Raises:
        ModelError: The code cannot be found, fails, or returns something that is not a model.
    """
    model = _call_factory(str(name), _import_factory(name))
    if not isinstance(model, Model):
        raise build_not_a_model_error(model, origin=f" that {name} returned")
    return model


def build_not_a_model_error(candidate: object, *, origin: str = "") -> ModelError:
    """Why something that was to be loaded is no model, and what would be one."""
    missing = [piece for piece in _PROTOCOL if not hasattr(candidate, piece)]
    return ModelError(
        f"The {type(candidate).__name__}{origin} is no model: it has no {', '.join(missing)}.",
        do="Give a model string, a Hugging Face model with its tokenizer, a pipeline, a PEFT model, or something of "
        "your own that has what the protocol recollect.models.Model lists.",
        code="not_a_model",
    )


def _import_factory(name: CodeRef) -> Any:
    """The function of the user's code that the loader calls to make the model."""
    try:
        module = importlib.import_module(name.module)
    except ModuleNotFoundError as error:
        raise ModelError(
            f"{name}: there is no module {error.name!r}.",
            do="Install its package, or put its folder on PYTHONPATH.",
            code="no_such_module",
        ) from error
    if not callable(factory := getattr(module, name.factory, None)):
        known = [known for known, value in vars(module).items() if callable(value)]
        raise ModelError(
            f"{name}: the module {name.module!r} has no function {name.factory!r}.",
            do=suggest_name(name.factory, known).strip(),
            code="no_such_factory",
        )
    return factory


def _call_factory(ref: str, factory: Any) -> Any:
    """What the factory makes for the loader; a fault in it is reported as such, with its traceback."""
    try:
        return factory()
    except (RecollectError, MemoryError):
        raise  # running out of memory is reported as everywhere
    except Exception as error:
        raise ModelError(
            f"{ref} failed with {type(error).__name__}: {error}",
            do="Call it in Python to see where.",
            code="factory_failed",
        ) from error
