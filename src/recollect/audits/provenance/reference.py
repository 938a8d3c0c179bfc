"""The reference users: some calibrate the answer and train nothing, the others train the shadow models.

Who is what follows from the reference corpus and the seed alone, never from the person who asks: so the shadows that
were trained for one person serve the next.
"""

from __future__ import annotations

from dataclasses import dataclass

from recollect import labels
from recollect.corpora.artificial import artificial_users
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.corpora.dividing import groups, halves
from recollect.signals.evidence import CONTROLS, Evidence

ARTIFICIAL = "artificial-users"
"""The part of a reference corpus whose users had to be made up."""
SHADOW = labels.ROLE_SHADOW
"""The part of the models that are trained on random halves of the reference users."""
FEWEST = 4
"""Reference users that two shadows need at the very least, besides those that calibrate."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The reference users and what each of them is for."""

    part: str
    """The part of the corpus that holds them."""
    corpus: Corpus
    calibration: tuple[str, ...]
    """Users that no shadow saw, and whom the target is asked about."""
    cohorts: Cohorts
    """Which of the others trained which shadow."""

    @property
    def shadows(self) -> tuple[str, ...]:
        """The names of the shadow models."""
        return self.cohorts.models

    @property
    def training(self) -> tuple[str, ...]:
        """The users who train shadows; each trained some, and not the others."""
        return tuple(sorted(set(self.cohorts.units).difference(self.calibration)))


def reference_users(evidence: Evidence, *, artificial: int) -> tuple[str, Corpus]:
    """The reference corpus with the part it plays; one without users gets artificial ones.

    Args:
        evidence: Holds the controls.
        artificial: How many users to make up, at most; each has ten records or more.
    """
    if ARTIFICIAL in evidence.corpora:
        return ARTIFICIAL, evidence.corpora[ARTIFICIAL]
    controls = evidence.corpora[CONTROLS]
    if controls.summary.users:
        return CONTROLS, controls
    return ARTIFICIAL, artificial_users(
        controls, users=max(1, min(artificial, len(controls) // 10)), seed=evidence.seed
    )


def divided(evidence: Evidence, *, shadows: int, share: float, artificial: int) -> Reference | None:
    """The reference users divided; None if they are too few to be.

    Shadows that are given, with the cohorts that trained them, are taken as they are: whoever trained none of them
    calibrates.

    Args:
        evidence: Holds the controls; and shadows, where there are some already.
        shadows: How many shadow models.
        share: The share of the users who calibrate.
        artificial: How many users to make up for a corpus that has none.
    """
    part, corpus = reference_users(evidence, artificial=artificial)
    given = _given(evidence, part)
    if given is not None:
        seen = {user for name in given.models for user in given.members(name)}
        unseen = tuple(user for user in given.units if user not in seen)
        return Reference(part=part, corpus=corpus, calibration=unseen, cohorts=given)
    users = sorted({record.owner for record in corpus})
    calibrating = round(share * len(users))
    if not calibrating or len(users) - calibrating < FEWEST:
        return None
    drawn = groups(users, {"calibration": calibrating}, seed=evidence.seed, name=labels.STREAM_CALIBRATION)[
        "calibration"
    ]
    training = sorted(set(users).difference(drawn))
    members = halves(training, shadows, seed=evidence.seed, name=SHADOW)
    cohorts = Cohorts.of(members, units=users, unit="user", corpus=corpus.digest, seed=evidence.seed)
    return Reference(part=part, corpus=corpus, calibration=drawn, cohorts=cohorts)


def _given(evidence: Evidence, part: str) -> Cohorts | None:
    """Who trained the shadows that are there, if any."""
    known = evidence.cohorts.get(part)
    there = [] if known is None else [name for name in evidence.playing(SHADOW) if name in known.models]
    if known is None or not there:
        return None
    members = {name: known.members(name) for name in there}
    return Cohorts.of(members, units=known.units, unit="user", corpus=known.corpus, seed=known.seed)
