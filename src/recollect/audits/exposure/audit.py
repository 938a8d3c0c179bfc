"""The exposure audit: how strongly a model memorises secrets of a known format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from recollect.audits.audit import Needs
from recollect.audits.exposure.decisions import decide
from recollect.audits.exposure.exposure_measurement import Measurer, Method
from recollect.audits.exposure.log_perplexity import (
    DRAWS,
    SECRETS,
    build_draws_corpus,
    build_secrets_corpus,
    compute_log_perplexities,
)
from recollect.audits.exposure.prefix_tree import NODES_PER_SECRET
from recollect.audits.exposure.result import build_result
from recollect.audits.exposure.secrets import Secret, find_secrets, merge_repeated_secrets, parse_given, read_planted
from recollect.audits.exposure.view import PRESENTATION, QUESTION, VERB
from recollect.audits.verb import Verb
from recollect.audits.workspace import NO_WORKSPACE, Workspace
from recollect.checks import check_at_least, check_between, check_one_of
from recollect.corpora.canaries.formats import parse_format
from recollect.errors import PlanError
from recollect.models.access import Access
from recollect.models.model import Steppable, Stepper
from recollect.results.presentation import Presentation
from recollect.results.result import Result
from recollect.signals.evidence import AUDITED, TARGET, Evidence
from recollect.signals.roles import CANARIES


@dataclass(frozen=True, kw_only=True)
class ExposureAudit:
    """Exposure: by how many bits a model shortens the search for secrets.

    The secrets are those of a manifest; or, with a format, those that are given; or, with a format alone, those that
    occur in the audited corpus.
    """

    format: str | None = None
    """Format of the secrets, for --secrets or CORPUS: 'my pin is {digits:6}'. A manifest has its own."""
    secrets: tuple[str, ...] = ()
    """Secrets of that format."""
    context: int = 50
    """For secrets found in a corpus: how many characters before each secret an attacker is assumed to know."""
    most: int = 100
    """For secrets found in a corpus: maximum number of different secrets that are measured."""
    method: Method = "auto"
    """`sampled`, `exact`, `skew-normal` (the paper's), or `auto`: sampled, and exact for secrets (not for controls)
    that are rarer than sampling can tell."""
    draws: int = 4096
    """Number of random secrets of each format that form the null distribution."""
    max_steps: int = 100_000
    """Maximum number of forward steps of the model in an exact count, per secret."""
    alpha: float = 0.05
    """The significance level: how often a model that was trained on none of the secrets is found to memorise some."""
    show_text: bool = False
    """Show the secrets in the table."""

    name: ClassVar[str] = "exposure"
    question: ClassVar[str] = QUESTION
    paper: ClassVar[str] = "Carlini et al. 2018, The Secret Sharer"
    verb: ClassVar[Verb] = VERB
    presentation: ClassVar[Presentation] = PRESENTATION

    def __post_init__(self) -> None:
        check_one_of(("auto", "exact", "sampled", "skew-normal"), method=self.method)
        check_at_least(1, most=self.most, max_steps=self.max_steps)
        check_at_least(0, context=self.context)
        check_at_least(100, draws=self.draws)
        check_between(0, 1, alpha=self.alpha)
        if self.format is not None:
            parse_format(self.format)
        elif self.secrets:
            raise PlanError(
                "Secrets are given, but no format.",
                do="Give the format that they are fillings of.",
                code="secrets_without_format",
            )

    def needs(self, evidence: Evidence) -> Needs:
        """The secrets and as many random ones as are drawn, scored by the target."""
        access = {TARGET: Access(k=1, logprob="any", distribution=False, steps=self.method == "exact")}
        if self.format is not None and CANARIES in evidence.files:
            raise PlanError(
                "The secrets are ambiguous: a format is given, and canaries that have formats of their own.",
                do=_SOURCES,
                code="unclear_secrets",
            )
        given = frozenset({TARGET, *self._source})
        if not given <= evidence.roles:
            return Needs(access=access, given=given, advice=_SOURCES)
        secrets, kind = merge_repeated_secrets(self._collect_secrets(evidence)[0]), evidence.models[TARGET].kind
        if kind == "classifier":
            raise PlanError(
                "A classifier generates no text.", do="Give a language model.", code="classifier_without_text"
            )
        corpora = {
            SECRETS: build_secrets_corpus(secrets, kind),
            DRAWS: build_draws_corpus(secrets, kind, draws=self.draws, seed=evidence.seed),
        }
        scored_pairs = frozenset((TARGET, role) for role in corpora)
        return Needs(
            access=access,
            given=given,
            corpora=corpora,
            score=scored_pairs,
            most_steps=self._count_most_steps(secrets) if evidence.models[TARGET].access.steps else 0,
        )

    def run(self, evidence: Evidence, rng: np.random.Generator, workspace: Workspace = NO_WORKSPACE) -> Result:
        """The exposure of every secret, and whether planted ones rank above controls."""
        given, occurring = self._collect_secrets(evidence)
        secrets = merge_repeated_secrets(given)
        scores = compute_log_perplexities(evidence, secrets)
        open_stepper = _find_target_stepper(evidence, workspace)
        measurer = Measurer(
            method=self.method,
            open_stepper=open_stepper,
            max_steps=self.max_steps,
            folder=workspace.folder,
            progress=workspace.progress,
        )
        measured = measurer.measure_all(secrets, scores, rng)
        counts = open_stepper is not None and self.method in ("auto", "exact") and not measured.uncountable
        decisions = decide(
            measured.rows,
            alpha=self.alpha,
            at_random=not self.searches_corpus,
            draws=None if counts else self.draws,
        )
        return build_result(self, decisions, measured, occurring=occurring, repeated=len(given) - len(secrets))

    @property
    def settings(self) -> dict[str, Any]:
        """All settings, as a result writes them down; secrets are counted, not named."""
        return {**asdict(self), "secrets": len(self.secrets)}

    @property
    def searches_corpus(self) -> bool:
        """Whether the secrets are those that occur in the audited corpus, so that they were not drawn at random."""
        return self.format is not None and not self.secrets

    def _count_most_steps(self, secrets: Sequence[Secret]) -> int:
        """How many steps exact counts may take: most take far fewer, because what is memorised has few rivals."""
        if self.method not in ("auto", "exact"):
            return 0
        counted = [secret for secret in secrets if self.method == "exact" or not secret.is_control]
        return sum(min(self.max_steps, NODES_PER_SECRET * secret.parsed.size) for secret in counted)

    @property
    def _source(self) -> tuple[str, ...]:
        """The role that contains the secrets, if any."""
        if self.format is None:
            return (CANARIES,)
        return (AUDITED,) if self.searches_corpus else ()

    def _collect_secrets(self, evidence: Evidence) -> tuple[list[Secret], int]:
        """The secrets, and how many different ones occur in the corpus, if it was searched."""
        if self.format is None:
            return read_planted(evidence.files[CANARIES]), 0
        if self.secrets:
            return parse_given(self.format, self.secrets), 0
        return find_secrets(self.format, evidence.corpora[AUDITED], context=self.context, most=self.most)


_SOURCES = (
    "Give canaries, the manifest of `recollect plant`; or a format and secrets of it; or a format and a corpus to look "
    "for secrets in (audited)."
)


def _find_target_stepper(evidence: Evidence, workspace: Workspace) -> Callable[[], Stepper] | None:
    """What opens the target of an exposure audit step by step, if it shows steps; opening it may load the model."""
    target = evidence.models[TARGET]
    if not target.access.steps or not isinstance(target, Steppable):
        return None
    return partial(workspace.open_stepper, target)
