"""The reference users: some are held out for calibration, the others train the shadow models.

Who is what follows from the reference corpus and the seed alone, never from the audited person: so the shadows that
were trained for one person serve the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect import labels
from recollect.corpora.cohorts import Cohorts
from recollect.corpora.corpus import Corpus
from recollect.corpora.partitions import draw_groups, draw_halves
from recollect.corpora.user_assignment import assign_artificial_users
from recollect.signals.evidence import CONTROLS, Evidence

ARTIFICIAL = "artificial-users"
"""The role of a reference corpus whose users had to be made up."""
SHADOW = labels.ROLE_SHADOW
"""The role of the models that are trained on random halves of the reference users."""
MIN_USERS = 4
"""Reference users that two shadows need at the very least, besides those that calibrate."""


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The reference users and what each of them is for."""

    role: str
    """The role of the corpus that contains them."""
    corpus: Corpus
    calibration: tuple[str, ...]
    """Held-out users: no shadow was trained on them, and the target scores their texts."""
    cohorts: Cohorts
    """Which of the others trained which shadow."""

    @property
    def shadows(self) -> tuple[str, ...]:
        """The names of the shadow models."""
        return self.cohorts.models

    @property
    def training(self) -> tuple[str, ...]:
        """The users whose texts train shadows; each trains some of them, and not the others."""
        return tuple(sorted(set(self.cohorts.units).difference(self.calibration)))

    def find_trained(self, users: Sequence[str]) -> NDArray[np.bool_]:
        """Which shadow was trained on which of these users [shadows, users]."""
        index = {user: i for i, user in enumerate(self.cohorts.units)}
        return self.cohorts.matrix[:, [index[user] for user in users]]


def find_reference_corpus(evidence: Evidence, *, artificial: int) -> tuple[str, Corpus]:
    """The reference corpus with its role; one without users gets artificial ones.

    Args:
        evidence: Contains the controls.
        artificial: How many users to make up, at most; each has ten records or more.
    """
    if ARTIFICIAL in evidence.corpora:
        return ARTIFICIAL, evidence.corpora[ARTIFICIAL]
    controls = evidence.corpora[CONTROLS]
    if controls.summary.users:
        return CONTROLS, controls
    return ARTIFICIAL, assign_artificial_users(
        controls, users=max(1, min(artificial, len(controls) // 10)), seed=evidence.seed
    )


def divide_reference(evidence: Evidence, *, shadows: int, share: float, artificial: int) -> Reference | None:
    """The reference users divided; None if they are too few to be.

    Shadows that are given, with their cohorts, are used as they are: users who are in none of their training sets
    calibrates.

    Args:
        evidence: Contains the controls; and shadows, where there are some already.
        shadows: How many shadow models.
        share: The share of the users who calibrate.
        artificial: How many users to make up for a corpus that has none.
    """
    role, corpus = find_reference_corpus(evidence, artificial=artificial)
    given = _find_shadow_cohorts(evidence, role)
    if given is not None:
        seen = {user for name in given.models for user in given.members(name)}
        unseen = tuple(user for user in given.units if user not in seen)
        return Reference(role=role, corpus=corpus, calibration=unseen, cohorts=given)
    users = sorted({record.owner for record in corpus})
    calibrating = round(share * len(users))
    if not calibrating or len(users) - calibrating < MIN_USERS:
        return None
    drawn = draw_groups(users, {"calibration": calibrating}, seed=evidence.seed, name=labels.STREAM_CALIBRATION)[
        "calibration"
    ]
    training = sorted(set(users).difference(drawn))
    members = draw_halves(training, shadows, seed=evidence.seed, name=SHADOW)
    cohorts = Cohorts.of(members, units=users, unit="user", corpus=corpus.digest, seed=evidence.seed)
    return Reference(role=role, corpus=corpus, calibration=drawn, cohorts=cohorts)


def _find_shadow_cohorts(evidence: Evidence, role: str) -> Cohorts | None:
    """Which reference users the given shadows were trained on, if there are any."""
    known = evidence.cohorts.get(role)
    given = [] if known is None else [name for name in evidence.models_of_role(SHADOW) if name in known.models]
    if known is None or not given:
        return None
    members = {name: known.members(name) for name in given}
    return Cohorts.of(members, units=known.units, unit="user", corpus=known.corpus, seed=known.seed)
