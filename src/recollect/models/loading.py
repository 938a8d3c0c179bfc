"""From the name of a model, or from a model in memory, to a model that may be asked: the same in all doors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from recollect.errors import MissingDependency, ModelError
from recollect.models import refs
from recollect.models.folders import locate
from recollect.models.model import Kind, Model, Question
from recollect.models.own_code import model_from_code, not_a_model
from recollect.models.refs import Endpoint, GgufFile, OwnCode, Recording, parse_model


def load_model(
    source: Any,
    tokenizer: Any = None,
    *,
    question: Question | None = None,
    kind: Kind | None = None,
    device: str | None = None,
) -> Model:
    """The model of that name, or the one in memory, ready to be asked.

    A model in memory has the digest and the answers of the same weights saved by `save_pretrained`. It is not changed;
    should you train it further, load it again.

    Args:
        source: A model string: a folder; `hf:NAME[@REV]`; BASE+ADAPTER, each of them a folder or `hf:`; `recorded:DIR`;
            `python:package.module:factory` (runs that code). Only what is marked with `hf:` is looked for on the
            network, and code from a model's folder is never run. Or an object: a Hugging Face model with its tokenizer,
            a pipeline of `transformers`, a PEFT model, or anything that keeps the `Model` protocol, which is returned
            as it is.
        tokenizer: Of a model in memory; a pipeline brings its own.
        question: How it is to be asked; a recorded model and one of the user's own have theirs.
        kind: What it predicts, where its architecture does not say or says something else.
        device: Where it computes; None for the best there is, and for a model in memory where it is.

    Raises:
        ModelError: It cannot be found, loaded or asked; the message says what is there instead.
        MissingDependency: An optional package is needed.
    """
    if isinstance(source, str | Path):
        return _named(str(source), tokenizer, question=question, kind=kind, device=device)
    if isinstance(source, Model):
        return _of_kind(source, kind)
    _refuse_plain(source)
    from recollect.models.local import model_in_memory

    return model_in_memory(source, tokenizer, question=question, kind=kind, device=device)


def natural_reference(source: Any, tokenizer: Any = None, **settings: Any) -> Model | str | None:
    """The model that an adapted model is naturally compared with: its base; None for any other model.

    Args:
        source: What `load_model` takes. Of BASE+ADAPTER the base is given by its name, of a PEFT model as a model in
            memory that shares its weights.
        tokenizer: Of a model in memory.
        settings: `question`, `kind` and `device`, as for `load_model`.
    """
    if isinstance(source, str | Path):
        return refs.natural_reference(str(source))
    if isinstance(source, Model):
        return None
    _refuse_plain(source)
    from recollect.models.local import natural_reference_in_memory

    return natural_reference_in_memory(source, tokenizer, **settings)


def _named(ref: str, tokenizer: Any, *, question: Question | None, kind: Kind | None, device: str | None) -> Model:
    """The model that a string names."""
    if tokenizer is not None:
        raise ModelError(
            f"A tokenizer was given for the model {ref!r}, which has its own.",
            do="Leave tokenizer= out; it belongs to a model in memory.",
            code="tokenizer_not_wanted",
        )
    name = parse_model(ref)
    if isinstance(name, Endpoint | GgufFile):
        raise _not_yet(name)
    if isinstance(name, OwnCode):
        return _of_kind(model_from_code(name), kind)
    if isinstance(name, Recording):
        from recollect.models.recorded import replay

        return _of_kind(replay(name.path), kind)
    files = locate(name)  # before torch is loaded, which takes longer than to see that nothing is there
    try:
        from recollect.models.local import load_local
    except ModuleNotFoundError as error:
        raise MissingDependency(
            f"The model {ref!r} computes here, which needs the package {error.name}.",
            do="pip install torch transformers, or give answers that were computed elsewhere: recorded:DIR.",
            code="torch_missing",
        ) from error
    return load_local(files, question or Question(), kind, device)


def _of_kind(model: Model, kind: Kind | None) -> Model:
    """The model, unless it was said to be another."""
    if kind not in (None, model.kind):
        found = f"{model.name} is a {model.kind} model, not a {kind} one."
        raise ModelError(found, do="Leave --as (kind=) out.", code="other_kind")
    return model


def _refuse_plain(source: Any) -> None:
    """Refuse what can be no model, before torch is loaded: whoever has a network has loaded it."""
    if "transformers" not in sys.modules:
        raise not_a_model(source)


def _not_yet(name: Endpoint | GgufFile) -> ModelError:
    """What to do about models that are named, but cannot be asked yet."""
    if isinstance(name, Endpoint):
        return ModelError(
            f"The model {str(name)!r} is an endpoint, and endpoints cannot be asked yet.",
            do="Ask it by other means and give its answers as recorded:DIR (recollect.models.recorded.write_recorded).",
            code="endpoint_not_supported_yet",
        )
    return ModelError(
        f"The model {str(name)!r} is a GGUF file, and these cannot be read yet.",
        do="Give the folder that it was converted from, or ask it by other means and give recorded:DIR.",
        code="gguf_not_supported_yet",
    )
