"""The paper's other ways to draw secrets out: brute force, beam search and generative sampling."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from recollect.audits.exposure.exact import AT_ONCE, Progress, Stack
from recollect.audits.exposure.found import Best, Found, narrowed
from recollect.audits.exposure.moves import Numbers
from recollect.audits.exposure.space import Nodes, Space


def brute_force(
    space: Space, top: int, *, max_steps: int, at_once: int = AT_ONCE, progress: Progress = lambda *_: None
) -> Found:
    """Read every node; proven if the budget was enough."""
    best, began = Best(space, top), space.steps
    children, complete = space.first()
    best.meet(complete)
    stack = Stack(children)
    while len(stack) and space.steps - began < max_steps:
        children, complete = space.expand(stack.pop(min(at_once, max_steps - (space.steps - began))))
        best.meet(complete)
        stack.push(children)
        progress(space.steps - began, max_steps)
    floor = best.worst if not len(stack) else -math.inf
    return best.found(floor=floor, steps=space.steps - began)


def beam(space: Space, top: int, *, width: int, max_steps: int, progress: Progress = lambda *_: None) -> Found:
    """At every symbol keep only the `width` cheapest nodes; nothing is proven."""
    best, began = Best(space, top), space.steps
    for _ in narrowed(space, best, width=width, max_steps=max_steps):
        progress(space.steps - began, max_steps)
    return best.found(floor=-math.inf, steps=space.steps - began)


def sampling(
    space: Space,
    top: int,
    rng: np.random.Generator,
    *,
    max_steps: int,
    at_once: int = AT_ONCE,
    progress: Progress = lambda *_: None,
) -> Found:
    """Draw secrets as the model would write them, among the symbols that the format allows; nothing is proven."""
    best, began = Best(space, top), space.steps
    children, complete = space.first()
    while (left := max_steps - (space.steps - began)) > 0:
        first = Nodes.joined([children, complete])
        # every draw begins with the same choice, which was read once
        drawn = first.take(_likely(np.tile(first.bits, (min(at_once, left), 1)), rng))
        while len(drawn):
            ended = space.moves.are_complete(drawn.place)
            best.meet(drawn.take(ended))
            going = drawn.take(~ended)
            if not len(going):
                break
            inner, last = space.expand(going)
            drawn = _one_below_each(Nodes.joined([inner, last]), rng)
        progress(space.steps - began, max_steps)
    return best.found(floor=-math.inf, steps=space.steps - began)


def _likely(bits: NDArray[np.float64], rng: np.random.Generator) -> Numbers:
    """One choice per row, each as likely as its cost says (the largest after adding Gumbel noise)."""
    chosen: Numbers = np.argmax(-bits * math.log(2) + rng.gumbel(size=bits.shape), axis=1)
    return chosen


def _one_below_each(children: Nodes, rng: np.random.Generator) -> Nodes:
    """One child of each parent, each as likely as the model finds it."""
    noisy = -children.bits * math.log(2) + rng.gumbel(size=len(children))
    order = np.lexsort((-noisy, children.line))
    first = np.flatnonzero(np.diff(children.line[order], prepend=-2))
    return children.take(order[first])
