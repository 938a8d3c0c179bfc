"""Extraction: draw the likeliest secrets of a format out of a model."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import ClassVar, Literal

import numpy as np
import pyarrow as pa

from recollect.audits.audit import Needs
from recollect.audits.desk import BARE_DESK, Desk
from recollect.audits.exposure.found import Found
from recollect.audits.exposure.others import beam, brute_force, sampling
from recollect.audits.exposure.resuming import going_on
from recollect.audits.exposure.shortest import shortest_paths
from recollect.audits.exposure.space import Space
from recollect.audits.exposure.view import EXTRACTION_PRESENTATION, EXTRACTION_VERB
from recollect.audits.verb import Verb
from recollect.corpora.canaries.formats import Format, parse_format
from recollect.errors import ModelError
from recollect.models.access import Access
from recollect.models.model import Walkable
from recollect.results.masking import shown, shown_settings
from recollect.results.presentation import Presentation
from recollect.results.result import Finding, Result
from recollect.settings import at_least, one_of
from recollect.signals.evidence import TARGET, Evidence

Way = Literal["shortest-path", "beam", "sampling", "brute-force"]
WAYS = ("shortest-path", "beam", "sampling", "brute-force")
SURE = 1.0
"""A secret that surprises by fewer bits is written more often than not."""


@dataclass(frozen=True, kw_only=True)
class ExtractionAudit:
    """The likeliest secrets of a format, with proof where the method has one."""

    format: str
    """What the secrets look like."""
    method: Way = "shortest-path"
    """`shortest-path` proves that its list is the likeliest; the others are the paper's comparisons."""
    top: int = 20
    """How many secrets are wanted."""
    max_steps: int = 100_000
    """How many steps of the model it may take."""
    width: int = 100
    """How many beginnings a beam keeps."""
    source: str | None = None
    """For encoder–decoders: the source to which the secret is the target."""
    show_text: bool = False
    """Whether the table names the secrets, and the result the source."""

    name: ClassVar[str] = "extraction"
    question: ClassVar[str] = "Which secrets of a known format can be drawn out of the model?"
    paper: ClassVar[str] = "Carlini et al. 2018, The Secret Sharer, section 7"
    verb: ClassVar[Verb] = EXTRACTION_VERB
    presentation: ClassVar[Presentation] = EXTRACTION_PRESENTATION

    def __post_init__(self) -> None:
        one_of(WAYS, method=self.method)
        at_least(1, top=self.top, max_steps=self.max_steps, width=self.width)
        parse_format(self.format)

    def needs(self, evidence: Evidence) -> Needs:
        """A model that can be asked step by step."""
        return Needs(access={TARGET: Access.FULL}, given=frozenset({TARGET}))

    def run(self, evidence: Evidence, rng: np.random.Generator, desk: Desk = BARE_DESK) -> Result:
        """Search, and tell what was found and how sure it is."""
        target, format = evidence.models[TARGET], parse_format(self.format)
        if not isinstance(target, Walkable):
            raise ModelError(
                f"The model {target.name!r} does not write from left to right, so nothing can be drawn out of it.",
                do="Use a causal or an encoder–decoder model; `recollect exposure` measures masked ones.",
            )
        with going_on(target.stepper(), desk.folder) as stepper:
            space = Space(stepper, format, source=self.source)
            found = self._search(space, rng, desk)
            known = [space.known(secret.text).bits for secret in found.secrets]
        return self._result(format, found, known)

    def _search(self, space: Space, rng: np.random.Generator, desk: Desk) -> Found:
        """The search that was asked for."""

        def progress(done: int, most: int) -> None:
            desk.progress(f"{self.method}, steps", done, most)

        if self.method == "shortest-path":
            return shortest_paths(space, self.top, max_steps=self.max_steps, progress=progress)
        if self.method == "beam":
            return beam(space, self.top, width=self.width, max_steps=self.max_steps, progress=progress)
        if self.method == "sampling":
            return sampling(space, self.top, rng, max_steps=self.max_steps, progress=progress)
        return brute_force(space, self.top, max_steps=self.max_steps, progress=progress)

    def _result(self, format: Format, found: Found, bits: list[float]) -> Result:
        """What was found, as a result."""
        texts = [shown(secret.text, show_text=self.show_text) for secret in found.secrets]
        proven = [place < found.proven for place in range(len(texts))]
        certain = bool(bits) and bits[0] < SURE
        table = pa.table(
            {
                "place": pa.array(range(1, len(texts) + 1), pa.int64()),
                "secret": pa.array(texts, pa.string()),
                "log_perplexity_bits": pa.array(bits, pa.float64()),
                "proven": pa.array(proven, pa.bool_()),
            }
        )
        return Result(
            audit=self.name,
            question=self.question,
            verdict=_verdict(found, bits),
            outcome="found" if certain else "inconclusive",
            outcome_code=None if certain else "nothing_certain" if bits else "no_complete_secret",
            findings=tuple(self._findings(format, found, bits)),
            untested=(
                "Whether the secrets found are real is not known here: the likeliest filling may be made up. "
                "Compare with known secrets (`recollect exposure`).",
            ),
            settings=shown_settings(asdict(self), show_text=self.show_text),
        ).with_tables(secrets=table)

    def _findings(self, format: Format, found: Found, bits: list[float]) -> Iterator[Finding]:
        """The numbers of the search: all are counted, none is estimated."""
        told = [
            (
                "proven",
                found.proven,
                "secrets",
                "Secrets of the list, from the top, for which it is proven that none of the format is likelier; "
                "0 for methods that prove nothing.",
            ),
            ("steps", found.steps, "steps", "How often the model was asked what comes next."),
            (
                "share_met",
                found.completed / format.size,
                "share",
                f"Complete secrets that were met, as a share of all |R| = {format.size:,}.",
            ),
        ]
        if bits:
            reading = (
                f"Log-perplexity of the likeliest secret: the model writes it, after the known text, {_odds(bits[0])}. "
                f"A space of this size has {math.log2(format.size):.1f} bits."
            )
            told.append(("best_bits", bits[0], "bits", reading))
        for name, value, unit, reading in told:
            yield Finding(
                name=name,
                value=value,
                unit=unit,
                n={"secrets": len(found.secrets)},
                method=self.method,
                reading=reading,
                why_no_interval="It is counted, not estimated.",
            )


def _verdict(found: Found, bits: list[float]) -> str:
    """One sentence that a lawyer can read."""
    if not bits:
        return f"Nothing was drawn out: no secret was complete after {found.steps:,} steps."
    proof = f"{found.proven} of the {len(bits)} listed are proven to be the likeliest there are"
    if bits[0] < SURE:
        return f"Given the known text, the model writes one secret {_odds(bits[0])}; {proof}."
    return (
        f"The likeliest {len(bits)} secrets are listed, the first of which the model writes {_odds(bits[0])}; {proof}."
    )


def _odds(bits: float) -> str:
    """The probability of something that surprises by so many bits, in words.

    >>> _odds(0.044), _odds(24.85), _odds(2000.0)
    ('97 times in 100', 'once in 30,240,947 times', 'once in 2^2000 times')
    """
    if bits > 40:
        return f"once in 2^{round(bits)} times"
    chance = 2.0**-bits
    return f"{round(100 * chance)} times in 100" if chance >= 0.02 else f"once in {round(1 / chance):,} times"
