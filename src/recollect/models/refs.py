"""The name of a model, taken apart: nothing here touches the network or loads torch."""

from __future__ import annotations

from pathlib import Path


def split_adapter(ref: str) -> tuple[str, str] | None:
    """Base and adapter of a name like BASE+ADAPTER; None for any other name.

    >>> split_adapter("gpt2+runs/lora")
    ('gpt2', 'runs/lora')
    """
    if "+" not in ref or Path(ref).expanduser().exists():
        return None
    places = [place for place, letter in enumerate(ref) if letter == "+"]
    there = [place for place in places if Path(ref[place + 1 :]).expanduser().is_dir()]
    place = (there or places[-1:])[0]
    return ref[:place], ref[place + 1 :]


def natural_reference(ref: str) -> str | None:
    """The model that an adapted model is naturally compared with: its base; None for any other model.

    >>> natural_reference("gpt2+runs/lora")
    'gpt2'
    """
    parts = split_adapter(ref)
    return None if parts is None else parts[0]
