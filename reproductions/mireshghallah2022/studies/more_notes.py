"""Tables 2, 5 and 7 with ten times as many notes: 600 train the target; K = 20; three trainings; ten draws of members.

With 60 notes each name of Table 5 is memorised, and its loss does not fall as in the paper; and Table 7's order is not
seen. Is the number of patients the reason? Network, learning rate and epochs are those of the other studies.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from statistics import fmean
from typing import Literal

from common.outcomes import Figure, Outcome
from laboratory import EPOCHS, FPR, Laboratory, Parts, Row, Setting, long, value
from studies.table2_overview import FINDINGS, PAPER
from studies.table5_names import NAMED
from studies.table5_names import PAPER as NAMES
from studies.table7_exposed import columns

from recollect.audits.membership.audit import MembershipAudit
from recollect.audits.membership.susceptibility import EMBEDDER
from recollect.corpora.corpus import Corpus
from recollect.corpora.partitions import draw_groups
from recollect.signals.evidence import REFERENCE, TARGET

SIZES = {"members": 600, "others": 200, "population": 200, "general": 500}
SEEDS = (0, 1, 2)
DRAWS = 10
"""How often as many members are drawn as there are non-members, as in the paper."""
PATTERNS = 20
Level = Literal["record", "user"]
LEVELS: tuple[Level, ...] = ("record", "user")
PLAIN = "without names"
WORDS = (PLAIN, "members named", "all named")
STUDY, MADE_OF = "more_notes", [1, SIZES, DRAWS, PATTERNS, EPOCHS]


def study(lab: Laboratory) -> Iterator[Outcome]:
    rows: dict[tuple[Level, str], list[Row]] = {cell: [] for cell in product(LEVELS, WORDS)}
    exposed: list[Figure] = []
    for seed in SEEDS:
        each = replace(lab, sizes=SIZES, seed=seed, patterns=PATTERNS)
        for by, words in rows:
            made = partial(attacked, each, words, by)
            rows[by, words] += each.keep(STUDY, f"seed {seed}, {words}, by {by}", MADE_OF, made)
            yield outcome(rows, exposed)
        exposed += each.keep_figures(STUDY, f"seed {seed}, exposed", MADE_OF, partial(looks, each))
        yield outcome(rows, exposed)


def attacked(lab: Laboratory, words: str, by: Level) -> list[Row]:
    """What the attack finds in each draw of members, without a table of records."""
    if words == PLAIN:
        found = drawn(lab, Setting(), lab.parts(Setting(), kept(by)), by)
    else:
        found = drawn(lab, NAMED, candidates(lab, words, by), by)
    names = (*FINDINGS.values(), "blind_auc")
    return [{"findings": {name: [each] for name in names if (each := value(row, name)) is not None}} for row in found]


def looks(lab: Laboratory) -> list[Figure]:
    """Table 7 of one training."""
    models = {TARGET: lab.target(Setting()), REFERENCE: lab.general(), EMBEDDER: lab.encyclopedia()}
    row = lab.told(models, lab.parts(Setting()), MembershipAudit(signal="ratio", fpr=(FPR,)))
    return [replace(figure, what=f"seed {lab.seed}, {figure.what}") for figure in columns(row, FPR)]


def outcome(rows: dict[tuple[Level, str], list[Row]], exposed: list[Figure]) -> Outcome:
    """What there is after some trainings."""
    figures = list[Figure]()
    for (by, words), found in rows.items():
        said = "patient" if by == "user" else "record"
        if words == PLAIN:
            figures += averaged(f"by {said}, other notes", found, PAPER[f"by {said}, other notes"])
        else:
            figures += averaged(f"{words}, by {said}", found, NAMES[words, by])
    figures += exposed
    return Outcome(
        title="Tables 2, 5 and 7 with 600 notes",
        scale=f"BERT of 2 layers of 64; {SIZES['members']} notes of MTSamples, {EPOCHS} epochs, in place of MIMIC-III; "
        f"K = {PATTERNS}; means of {len(SEEDS)} trainings and {DRAWS} draws of as many members as non-members each.",
        figures=figures,
    )


def kept(by: Level):
    """By record, sentences of 20 to 60 words; by patient, all."""
    return long if by == "record" else None


def candidates(lab: Laboratory, words: str, by: Level) -> Parts:
    """Members with names, and others and population with or without."""
    plain, named = lab.parts(Setting(), kept(by)), lab.parts(NAMED, kept(by))
    return (named[0], *plain[1:]) if words == "members named" else named


def drawn(lab: Laboratory, setting: Setting, parts: Parts, by: Level) -> list[Row]:
    """What the attack finds with as many members as non-members, drawn several times."""
    members, others, population = parts
    users = sorted({record.owner for record in members})
    count = min(len(users), len({record.owner for record in others}))
    rows = []
    for draw in range(DRAWS):
        chosen = set(draw_groups(users, {"drawn": count}, seed=draw, name="drawn members")["drawn"])
        some = Corpus.of([record for record in members if record.owner in chosen], name=members.name)
        rows.append(lab.attack(setting, (some, others, population), by=by))
    return rows


def averaged(name: str, rows: Sequence[Row], paper: Sequence[float | None]) -> list[Figure]:
    """A column of one of the paper's tables beside the means of ours, and the range of the two AUCs."""
    figures = []
    for printed, (what, finding) in zip(paper, FINDINGS.items(), strict=True):
        found = [each for row in rows if (each := value(row, finding)) is not None]
        figures.append(Figure(f"{name}: {what}", printed, fmean(found) if found else None))
        if what.startswith("AUC") and found:
            figures.append(Figure(f"{name}: {what}, lowest", None, min(found)))
            figures.append(Figure(f"{name}: {what}, highest", None, max(found)))
    told = [each for row in rows if (each := value(row, "blind_auc")) is not None]
    return [*figures, Figure(f"{name}: told by words alone", None, fmean(told) if told else None)]
