"""The exposure audit: how deep secrets of a known format sit in a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np

from recollect.audits.audit import Needs
from recollect.audits.desk import BARE_DESK, Desk
from recollect.audits.exposure.costs import DRAWS, SECRETS, Costs, costs_of, draws_corpus, secrets_corpus
from recollect.audits.exposure.judging import judged
from recollect.audits.exposure.measuring import Measured, Measurer, Method, curve_of
from recollect.audits.exposure.secrets import Secret, formats_of, given_secrets, natural_secrets, planted_secrets
from recollect.audits.exposure.view import CANARIES, PRESENTATION, VERB
from recollect.audits.verb import Verb
from recollect.corpora.canaries.formats import parse_format
from recollect.errors import NotEnoughData, PlanError
from recollect.models.access import Access
from recollect.models.model import Stepper, Walkable
from recollect.results.presentation import Presentation
from recollect.results.result import Note, Result
from recollect.settings import at_least, between, one_of
from recollect.signals.evidence import AUDITED, TARGET, Evidence
from recollect.stats.exposure import SkewNormal


@dataclass(frozen=True, kw_only=True)
class ExposureAudit:
    """By how many bits a model shortens the search for secrets.

    The secrets are those of a manifest; or, with a format, those that are given; or those that stand in a corpus.
    """

    format: str | None = None
    """The format of the secrets, if they are given or to be found; a manifest has its own."""
    secrets: tuple[str, ...] = ()
    """Secrets of that format that the user knows."""
    context: int = 50
    """For secrets found in a corpus: how many characters before each are taken to be known."""
    most: int = 100
    """For secrets found in a corpus: how many different ones are measured."""
    method: Method = "auto"
    """`sampled`, `exact`, `skew-normal` (the paper's), or `auto`: sampled, and exact where sampling cannot see."""
    draws: int = 4096
    """How many random secrets of each format are drawn."""
    max_steps: int = 100_000
    """How many steps of the model an exact count may take, for each secret."""
    alpha: float = 0.05
    """How often a model that saw none of the secrets may be called a model that memorised some."""
    show_text: bool = False
    """Whether the table names the secrets."""

    name: ClassVar[str] = "exposure"
    question: ClassVar[str] = "Does the model memorise secrets of a known format?"
    paper: ClassVar[str] = "Carlini et al. 2018, The Secret Sharer"
    verb: ClassVar[Verb] = VERB
    presentation: ClassVar[Presentation] = PRESENTATION

    def __post_init__(self) -> None:
        one_of(("auto", "exact", "sampled", "skew-normal"), method=self.method)
        at_least(1, most=self.most, max_steps=self.max_steps)
        at_least(0, context=self.context)
        at_least(100, draws=self.draws)
        between(0, 1, alpha=self.alpha)
        if self.format is not None:
            parse_format(self.format)
        elif self.secrets:
            raise PlanError(
                "Secrets are given, but no format.",
                do="Give the format that they are fillings of.",
                code="secrets_without_format",
            )

    def needs(self, evidence: Evidence) -> Needs:
        """The secrets and as many random ones as are drawn, asked of the target."""
        access = {TARGET: Access(k=1, logprob="any", distribution=False, steps=self.method == "exact")}
        if self.format is not None and CANARIES in evidence.files:
            raise PlanError(
                "Which secrets are meant is not clear: there is a format, and canaries with formats of their own.",
                do=_SOURCES,
                code="unclear_secrets",
            )
        given = frozenset({TARGET, *self._source})
        if not given <= evidence.parts:
            return Needs(access=access, given=given, advice=_SOURCES)
        found, kind = self._secrets(evidence)[0], evidence.models[TARGET].kind
        if kind == "classifier":
            raise PlanError("A classifier writes no text.", do="Exposure is asked of language models.")
        corpora = {
            SECRETS: secrets_corpus(found, kind),
            DRAWS: draws_corpus(found, kind, draws=self.draws, seed=evidence.seed),
        }
        return Needs(access=access, given=given, corpora=corpora, ask=frozenset((TARGET, part) for part in corpora))

    def run(self, evidence: Evidence, rng: np.random.Generator, desk: Desk = BARE_DESK) -> Result:
        """The exposure of every secret, and whether planted ones stand out."""
        secrets, there = self._secrets(evidence)
        costs = costs_of(evidence, secrets)
        known = [secret for secret in secrets if np.isfinite(costs.secrets[secret.id])]
        if not any(not secret.is_control for secret in known):
            raise NotEnoughData(
                "The model does not know the symbols of the secrets: its vocabulary calls them all unknown.",
                do="Force the format's symbols into the vocabulary when training (recollect train --canaries).",
            )
        curves = {each.kind: curve_of(costs.draws[each.kind], rng, self.method) for each in formats_of(known)}
        measurer = Measurer(
            method=self.method,
            stepper=_stepper(evidence),
            max_steps=self.max_steps,
            folder=desk.folder,
            progress=desk.progress,
        )
        rows = _measured(measurer, known, costs, curves, desk)
        left = f"{len(secrets) - len(known)} secrets hold symbols that the model does not know, and are left out."
        some = f"{there} different secrets stand in the corpus; {len(secrets)} were measured."
        notes = [
            *([Note(code="unknown_secrets", text=left)] if len(known) < len(secrets) else []),
            *([Note(code="secrets_in_corpus", text=some)] if there else []),
            *(
                Note(code="not_counted_exactly", text=f"Could not be counted exactly: {why}")
                for why in sorted(measurer.unwalkable)
            ),
        ]
        return judged(self, rows, costs, curves, notes)

    @property
    def settings(self) -> dict[str, object]:
        """All settings, as a result writes them down; secrets are counted, not named."""
        return {**asdict(self), "secrets": len(self.secrets)}

    @property
    def by_nature(self) -> bool:
        """Whether the secrets are those that stand in a corpus, drawn by nobody."""
        return self.format is not None and not self.secrets

    @property
    def _source(self) -> tuple[str, ...]:
        """Where the secrets come from."""
        if self.format is None:
            return (CANARIES,)
        return (AUDITED,) if self.by_nature else ()

    def _secrets(self, evidence: Evidence) -> tuple[list[Secret], int]:
        """The secrets, and how many different ones there are where they were looked for."""
        if self.format is None:
            return planted_secrets(evidence.files[CANARIES]), 0
        if self.secrets:
            return given_secrets(self.format, self.secrets), 0
        return natural_secrets(self.format, evidence.corpora[AUDITED], context=self.context, most=self.most)


_SOURCES = (
    "Give canaries, the manifest of `recollect plant`; or a format and secrets of it; or a format and a corpus to look "
    "for secrets in (audited)."
)


def _measured(
    measurer: Measurer,
    secrets: Sequence[Secret],
    costs: Costs,
    curves: dict[tuple[str, str | None], SkewNormal | None],
    desk: Desk,
) -> list[Measured]:
    """Every secret's row."""
    rows = []
    for done, secret in enumerate(secrets):
        draws = costs.draws[secret.kind]
        rows.append(measurer.measured(secret, costs.secrets[secret.id], draws[np.isfinite(draws)], curves[secret.kind]))
        desk.progress("measuring", done + 1, len(secrets))
    return rows


def _stepper(evidence: Evidence) -> Stepper | None:
    """The target step by step, if it can be asked so."""
    target = evidence.models[TARGET]
    return target.stepper() if target.access.steps and isinstance(target, Walkable) else None
