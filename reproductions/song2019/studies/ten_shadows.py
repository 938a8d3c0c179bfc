"""Section 4.3 and Table 3, same domain, with ten shadows as in the paper: translation and dialogue."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache

from common.outcomes import Outcome
from comparing import Comparison
from laboratory import PAIRS, Laboratory, Scene
from printed import PERFECT, TABLE3


def study(lab: Laboratory) -> Iterator[Outcome]:
    scenes = {name: cache(lambda name=name: lab.scene(lab.pair(name))) for name in PAIRS}
    return compared(lab, "ten_shadows", scenes, f"{lab.pairs_scale} Ten shadows, as in the paper.")


def compared(lab: Laboratory, study: str, scenes: Mapping[str, Callable[[], Scene]], scale: str) -> Iterator[Outcome]:
    """The unrestricted audit and every output size, by both methods."""
    found = Comparison(lab, study)
    title = f"Ten shadows: {' and '.join(scenes)}"
    for name, scene in scenes.items():
        found.add(f"{name}, all words", scene, PERFECT)
        yield found.outcome(title, scale)
        for k, printed in TABLE3[name].items():
            found.add(f"{name}, top-{k}", scene, printed, top_k=k)
            yield found.outcome(title, scale)
