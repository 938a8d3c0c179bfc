"""The shadows of a provenance audit serve a removal audit whose controls are the users that trained them."""

from __future__ import annotations

from recollect.audits.provenance.reference_users import divide_reference
from recollect.audits.removal.audit import RemovalAudit
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.recipes.fleet import Fleet
from recollect.recipes.recipe_file import load_recipe
from recollect.signals.evidence import AUDITED, CONTROLS, Evidence

SHADOWS = 4


def test_a_removal_audit_finds_the_shadows_of_a_provenance_audit(tmp_path):
    everybody = Corpus.of(
        Record(id=f"{user}-{i}", user=f"u{user}", text=f"text {i} of {user}") for user in range(40) for i in range(3)
    )
    reference = divide_reference(Evidence(corpora={CONTROLS: everybody}), shadows=SHADOWS, share=0.5, artificial=10)
    assert reference is not None
    trained = everybody.select_users(reference.training)
    removed = Corpus.of([Record(id="r", user="somebody", text="gone")])
    needed = RemovalAudit(models=SHADOWS)._plan_training(
        Evidence(corpora={CONTROLS: trained, AUDITED: removed}, trainable=True)
    )
    recipe = load_recipe("word-lstm")
    ours = Fleet(recipe=recipe, corpus=everybody, cohorts=reference.cohorts)
    theirs = Fleet(recipe=recipe, corpus=trained, cohorts=needed[CONTROLS])
    assert len(reference.shadows) == SHADOWS
    assert [ours.get_folder(tmp_path, name) for name in reference.shadows] == [
        theirs.get_folder(tmp_path, name) for name in theirs.cohorts.models
    ]
