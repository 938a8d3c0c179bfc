"""Who compares: for each user a reference that has not seen them, and a second such model that plays the target."""

from __future__ import annotations

from pathlib import Path

from recollect.audits.leakage.comparing import Asked, Comparison, Judges
from recollect.audits.leakage.leaving import DRAWN, LEFT_OUT, RETRAINED, UNSEEN, controls_part, controls_placed, placed
from recollect.corpora.corpus import Corpus
from recollect.errors import PlanError
from recollect.files import read_json
from recollect.signals.evidence import AUDITED, CONTROLS, REFERENCE, TARGET, Evidence

_BESIDE = "A sequence counts by how much likelier the model finds it than a second one, the reference, which was"
_TRUST = "That it learnt nothing of these users is taken on trust, where neither its card nor the cohorts tell."


def compared_by(evidence: Evidence) -> Comparison:
    """How the target's sequences are judged, from the models that there are.

    A given reference serves everybody whom it has not seen; of two, the second plays the target for comparison. Else
    models serve that were trained without the users of the sequences, or without folds of the users. Users known not to
    be in training (controls) play the comparison's part before all others.
    """
    if given := evidence.playing(REFERENCE):
        return _by_given(evidence, given)
    if evidence.playing(RETRAINED):
        return _by_retrained(evidence)
    if evidence.playing(LEFT_OUT):
        return _by_folds(evidence)
    null = Asked(corpus=CONTROLS, judges=(Judges(speaker=(TARGET, CONTROLS)),)) if _has_controls(evidence) else None
    return Comparison(target=Asked(corpus=AUDITED, judges=(Judges(speaker=(TARGET, AUDITED)),)), null=null)


def _by_given(evidence: Evidence, given: tuple[str, ...]) -> Comparison:
    """Compared with models that are given."""
    seen = frozenset[str]().union(*(seen_by(evidence, name) for name in given[:2]))
    place = None
    if seen:
        place = {record.owner: 0 for record in evidence.corpora[AUDITED] if record.owner not in seen}
        if not place:
            raise PlanError(
                f"The reference has seen all {len(seen)} audited users, as its card or the cohorts say: nothing can be "
                "told by comparing with it.",
                do="Give a reference that has seen none of them, or --recipe to train some.",
            )
    null = None
    if _has_controls(evidence):
        null = _one_reference(CONTROLS, TARGET, given[0])
    elif len(given) > 1:
        null = _one_reference(AUDITED, given[1], given[0], place)
    target = _one_reference(AUDITED, TARGET, given[0], place)
    return Comparison(target=target, null=null, way=f"{_BESIDE} given. {_TRUST}", seen=seen)


def _one_reference(corpus: str, speaker: str, reference: str, place: dict[str, int] | None = None) -> Asked:
    """Everybody judged by one reference."""
    return Asked(corpus=corpus, judges=(Judges(speaker=(speaker, corpus), reference=(reference, corpus)),), place=place)


def _by_retrained(evidence: Evidence) -> Comparison:
    """Compared with a model that was trained without all whose sequences the target says."""
    reference, *others = evidence.playing(RETRAINED)
    judges = (Judges(speaker=(TARGET, AUDITED), reference=(reference, UNSEEN)),)
    target = Asked(corpus=AUDITED, judges=judges, place=dict.fromkeys(_owners_in(evidence.corpora[UNSEEN]), 0))
    if _has_controls(evidence):
        null = _one_reference(CONTROLS, TARGET, reference)
    else:
        null = Asked(corpus=DRAWN, judges=(Judges(speaker=(reference, UNSEEN), reference=(others[0], DRAWN)),))
    way = f"{_BESIDE} trained for this purpose, without the users whose sequences come out."
    return Comparison(target=target, null=null, way=way)


def _by_folds(evidence: Evidence) -> Comparison:
    """Compared with models that were each trained without two folds of the users."""
    models = evidence.playing(LEFT_OUT)
    folds = len(models)
    place = placed(evidence.cohorts[AUDITED].units, folds, evidence.seed, AUDITED)
    unseen = [(model, f"{UNSEEN}-{i}") for i, model in enumerate(models)]
    target = [Judges(speaker=(TARGET, AUDITED), reference=unseen[i]) for i in range(folds)]
    if _has_controls(evidence):
        judges = [Judges(speaker=(TARGET, CONTROLS), reference=(models[i], controls_part(i))) for i in range(folds)]
        null = Asked(corpus=CONTROLS, judges=tuple(judges), place=controls_placed(evidence, folds))
    else:
        nulls = tuple(Judges(speaker=unseen[i - 1], reference=unseen[i]) for i in range(folds))
        null = Asked(corpus=AUDITED, judges=nulls, place=place)
    way = f"{_BESIDE} trained for this purpose, without this user and others: two of {folds} parts of all users."
    return Comparison(target=Asked(corpus=AUDITED, judges=tuple(target), place=place), null=null, way=way)


def _has_controls(evidence: Evidence) -> bool:
    return CONTROLS in evidence.corpora


def seen_by(evidence: Evidence, model: str) -> frozenset[str]:
    """The audited users whom a given model is known to have seen: from the cohorts, or from its own card."""
    cohorts, corpus = evidence.cohorts.get(AUDITED), evidence.corpora[AUDITED]
    if cohorts is not None and model in cohorts.models:
        return _owners(corpus, cohorts.members(model))
    folder = Path(evidence.models[model].name)
    if not (folder / "card.json").is_file():
        return frozenset()
    if (folder / "members.json").is_file():
        return _owners(corpus, read_json(folder / "members.json"))
    trained_on = read_json(folder / "card.json").get("corpus") or {}  # a model that no recipe trained may have a card
    return _owners_in(corpus) if trained_on.get("digest") == corpus.digest else frozenset()


def _owners(corpus: Corpus, units: tuple[str, ...] | list[str]) -> frozenset[str]:
    """The users who are, or own, one of these units."""
    chosen = frozenset(units)
    return frozenset(record.owner for record in corpus if record.owner in chosen or record.id in chosen)


def _owners_in(corpus: Corpus) -> frozenset[str]:
    """All users of a corpus."""
    return frozenset(record.owner for record in corpus)
