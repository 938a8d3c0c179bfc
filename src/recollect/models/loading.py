"""From the name of a model to a model that may be asked: one string, the same in the CLI, the plan and Python."""

from __future__ import annotations

from recollect.errors import MissingDependency, ModelError
from recollect.models.folders import locate
from recollect.models.model import Kind, Model, Question
from recollect.models.refs import Endpoint, GgufFile, OwnCode, Recording, parse_model


def load_model(
    ref: str, *, question: Question | None = None, kind: Kind | None = None, device: str | None = None
) -> Model:
    """The model of that name, ready to be asked.

    Args:
        ref: A folder; `hf:NAME[@REV]`; BASE+ADAPTER, each of them a folder or `hf:`; `recorded:DIR`;
            `python:package.module:factory` (runs that code). Only what is marked with `hf:` is looked for on the
            network, and code from a model's folder is never run.
        question: How it is to be asked; a recorded model and one of the user's own have theirs.
        kind: What it predicts, where its architecture does not say or says something else.
        device: Where it computes; None for the best there is.

    Raises:
        ModelError: It cannot be found or loaded; the message says what is there instead.
        MissingDependency: An optional package is needed.
    """
    name = parse_model(ref)
    if isinstance(name, Endpoint | GgufFile):
        raise _not_yet(name)
    if isinstance(name, Recording | OwnCode):
        made = _replayed(name) if isinstance(name, Recording) else _made(name)
        if kind not in (None, made.kind):
            found = f"{ref} is a {made.kind} model, not a {kind} one."
            raise ModelError(found, do="Leave --as (kind=) out.", code="other_kind")
        return made
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


def _replayed(name: Recording) -> Model:
    """The model whose answers lie in this folder."""
    from recollect.models.recorded import replay

    return replay(name.path)


def _made(name: OwnCode) -> Model:
    """The model that the user's code makes."""
    from recollect.models.own_code import model_from_code

    return model_from_code(name)
