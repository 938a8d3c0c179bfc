"""From the name of a model to a model that may be asked: one string, the same in the CLI, the plan and Python."""

from __future__ import annotations

from pathlib import Path

from recollect.errors import MissingDependency, ModelError
from recollect.models.model import Kind, Model, Question


def load_model(
    ref: str, *, question: Question | None = None, kind: Kind | None = None, device: str | None = None
) -> Model:
    """The model of that name, ready to be asked.

    Args:
        ref: A folder or hub id; BASE+ADAPTER; `recorded:DIR`; `python:package.module:factory` (runs that code).
            Only a hub id is looked for on the network, and code from a model's folder is never run.
        question: How it is to be asked; a recorded model and one of the user's own have theirs.
        kind: What it predicts, where its architecture does not say or says something else.
        device: Where it computes; None for the best there is.

    Raises:
        ModelError: It cannot be found or loaded; the message says what is there instead.
        MissingDependency: An optional package is needed.
    """
    scheme, _, rest = ref.partition(":")
    if scheme in {"http", "https"}:
        raise ModelError(
            f"The model {ref!r} is an endpoint, and endpoints cannot be asked yet.",
            do="They come with the next release. Until then record its answers elsewhere and give recorded:DIR.",
            code="endpoint_not_supported_yet",
        )
    if scheme in {"recorded", "python"}:
        made = _recorded(rest) if scheme == "recorded" else _own(rest)
        if kind not in (None, made.kind):
            raise ModelError(
                f"{ref} is a {made.kind} model, not a {kind} one.", do="Leave --as (kind=) out.", code="other_kind"
            )
        return made
    try:
        from recollect.models.local import load_local
    except ModuleNotFoundError as error:
        raise MissingDependency(
            f"The model {ref!r} computes here, which needs the package {error.name}.",
            do="pip install torch transformers, or give answers that were computed elsewhere: recorded:DIR.",
            code="torch_missing",
        ) from error
    return load_local(ref, question or Question(), kind, device)


def _recorded(folder: str) -> Model:
    """The model whose answers lie in this folder."""
    from recollect.models.recorded import replay

    return replay(Path(folder).expanduser())


def _own(target: str) -> Model:
    """The model that the user's code makes."""
    from recollect.models.own_code import model_from_code

    return model_from_code(target)
