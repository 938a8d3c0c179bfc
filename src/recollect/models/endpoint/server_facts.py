"""What a server says of a model in its list of models: part of the address of its answers, and never trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from recollect.errors import ModelError

_VOLATILE: Final = ("created", "permission", "modified_at")


@dataclass(frozen=True, kw_only=True)
class ServerFacts:
    """What a server says of the model, which is part of the address of its answers."""

    listed: dict[str, Any]
    """The model's entry in the list of models, times left out; empty if there is no list."""

    @property
    def server(self) -> str | None:
        """Which program serves, as it calls itself."""
        owner = self.listed.get("owned_by")
        return owner if isinstance(owner, str) else None

    @property
    def context(self) -> int | None:
        """Tokens that the model reads at once."""
        meta = self.listed.get("meta")
        found = self.listed.get("max_model_len", meta.get("n_ctx") if isinstance(meta, dict) else None)
        return found if isinstance(found, int) and found > 1 else None

    @property
    def vocabulary(self) -> int | None:
        """How many tokens the model knows."""
        meta = self.listed.get("meta")
        found = meta.get("n_vocab") if isinstance(meta, dict) else None
        return found if isinstance(found, int) else None


def find_facts(answer: Any, model: str) -> ServerFacts:
    """The facts of a model from the answer to a request for the list of models.

    Raises:
        ModelError: It lists others only.
    """
    models = answer.get("data") if isinstance(answer, dict) else None
    listed = [each for each in models if isinstance(each, dict)] if isinstance(models, list) else []
    found = next((each for each in listed if model in (each.get("id"), *_get_aliases(each))), None)
    if found is None and listed:
        names = ", ".join(sorted(str(each.get("id")) for each in listed)[:8])
        raise ModelError(f"The server has no model {model!r}.", do=f"It has: {names}.", code="model_not_served")
    return ServerFacts(listed={} if found is None else _drop_volatile(found))


def _get_aliases(entry: dict[str, Any]) -> list[Any]:
    """Other names of a model."""
    aliases = entry.get("aliases")
    return aliases if isinstance(aliases, list) else []


def _drop_volatile(value: Any) -> Any:
    """A description without what changes whenever it is requested."""
    if isinstance(value, dict):
        return {key: _drop_volatile(each) for key, each in value.items() if key not in _VOLATILE}
    return [_drop_volatile(each) for each in value] if isinstance(value, list) else value
