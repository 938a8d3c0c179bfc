"""The extraction audit: the most likely secrets of a known format, extracted from a model."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from recollect.audits.audit import Needs
from recollect.audits.exposure.prefix_tree import NODES_PER_SECRET, PrefixTree
from recollect.audits.exposure.result import build_extraction_result
from recollect.audits.exposure.search import (
    SearchResult,
    search_beam,
    search_by_sampling,
    search_exhaustively,
    search_shortest_paths,
)
from recollect.audits.exposure.search_journal import resume_stepper
from recollect.audits.exposure.view import EXTRACTION_PRESENTATION, EXTRACTION_VERB
from recollect.audits.verb import Verb
from recollect.audits.workspace import NO_WORKSPACE, Workspace
from recollect.checks import check_at_least, check_between, check_one_of
from recollect.corpora.canaries.formats import parse_format
from recollect.digests import digest
from recollect.errors import ModelError
from recollect.models.access import Access
from recollect.models.model import Steppable, reply_to
from recollect.results.presentation import Presentation
from recollect.results.result import Result
from recollect.results.text_masks import mask_settings
from recollect.signals.evidence import TARGET, Evidence

SearchMethod = Literal["shortest-path", "beam", "sampling", "brute-force"]
METHODS = ("shortest-path", "beam", "sampling", "brute-force")


@dataclass(frozen=True, kw_only=True)
class ExtractionAudit:
    """The most likely secrets of a format, with proof where the method has one."""

    format: str
    """Format of the secrets."""
    method: SearchMethod = "shortest-path"
    """`shortest-path` proves that its list is the most likely; the others are the paper's baselines."""
    top: int = 20
    """Number of secrets in the list."""
    max_steps: int = 100_000
    """Maximum number of forward steps of the model in the search."""
    max_bits: float | None = None
    """Search only for secrets that the model writes at least once in 2^max_bits times (shortest-path only): if none of
    the format is memorised, the search proves it in few steps."""
    width: int = 100
    """Number of prefixes that `beam` keeps."""
    source: str | None = None
    """For encoder–decoders: the source to which the secret is the target."""
    user_turn: str | None = None
    """For chat models: what the user says, to which the secret is the assistant's reply."""
    show_text: bool = False
    """Show the secrets in the table, and the source in the result."""

    name: ClassVar[str] = "extraction"
    question: ClassVar[str] = "Which secrets of a known format can be extracted from the model?"
    paper: ClassVar[str] = "Carlini et al. 2018, The Secret Sharer, section 7"
    verb: ClassVar[Verb] = EXTRACTION_VERB
    presentation: ClassVar[Presentation] = EXTRACTION_PRESENTATION

    def __post_init__(self) -> None:
        check_one_of(METHODS, method=self.method)
        check_at_least(1, top=self.top, max_steps=self.max_steps, width=self.width)
        if self.max_bits is not None:
            check_between(0, math.inf, max_bits=self.max_bits)
            check_one_of(["shortest-path"], **{"method of a search with max_bits": self.method})
        parse_format(self.format)

    def needs(self, evidence: Evidence) -> Needs:
        """A model that shows the log-probability of any token, step by step."""
        stepping = Access(k=1, logprob="any", distribution=False, steps=True)
        most = min(self._most_steps, NODES_PER_SECRET * parse_format(self.format).size)
        return Needs(access={TARGET: stepping}, given=frozenset({TARGET}), most_steps=most)

    def run(self, evidence: Evidence, rng: np.random.Generator, workspace: Workspace = NO_WORKSPACE) -> Result:
        """Search, and report the secrets found and how many are proven."""
        target, format = evidence.models[TARGET], parse_format(self.format)
        if not isinstance(target, Steppable):
            raise ModelError(
                f"The model {target.name!r} does not generate from left to right, so nothing can be extracted from it.",
                do="Use a causal or an encoder–decoder model; `recollect exposure` measures masked ones.",
                code="not_left_to_right",
            )
        owner = digest(target.digest, self.settings)
        replying = reply_to(workspace.open_stepper(target), self.user_turn)
        with resume_stepper(replying, workspace.folder, owner=owner) as stepper:
            tree = PrefixTree(stepper, format, source=self.source)
            ceiling = math.inf if self.max_bits is None else self.max_bits + tree.measure_shift()
            found = self._search(tree, rng, workspace, ceiling)
            bits = [tree.score(secret.text).bits for secret in found.secrets]
            bound = found.floor - tree.measure_shift() if math.isfinite(found.floor) else None
        return build_extraction_result(self, format.size, found, bits, bound)

    @property
    def settings(self) -> dict[str, Any]:
        """All settings, as a result writes them down."""
        return mask_settings(asdict(self), show_text=self.show_text)

    @property
    def _most_steps(self) -> int:
        """How many steps the search may take."""
        if self.max_bits is None or self.max_bits >= math.log2(self.max_steps):
            return self.max_steps
        # prefixes of one length exclude each other: no more than 2^bits of them can be that likely. The beam reads as
        # many again, and no secret has more tokens than bytes.
        return min(self.max_steps, 2 * math.ceil(2**self.max_bits) * parse_format(self.format).longest_ending)

    def _search(self, tree: PrefixTree, rng: np.random.Generator, workspace: Workspace, ceiling: float) -> SearchResult:
        """The search by the method that is set."""

        def progress(done: int, most: int) -> None:
            workspace.progress(f"{self.method}, steps", done, most)

        if self.method == "shortest-path":
            most = self._most_steps
            return search_shortest_paths(tree, self.top, max_steps=most, ceiling=ceiling, progress=progress)
        if self.method == "beam":
            return search_beam(tree, self.top, width=self.width, max_steps=self.max_steps, progress=progress)
        if self.method == "sampling":
            return search_by_sampling(tree, self.top, rng, max_steps=self.max_steps, progress=progress)
        return search_exhaustively(tree, self.top, max_steps=self.max_steps, progress=progress)
