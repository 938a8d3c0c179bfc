"""Table 3, cross domain: the shadows read Wikipedia, the target Reddit."""

from __future__ import annotations

from common.outcomes import Outcome
from comparing import Comparison
from laboratory import FEW, WORDS, Laboratory, People, Task, in_random_order
from printed import CROSS_DOMAIN, PERFECT

from recollect.corpora import read_corpus
from recollect.corpora.corpus import Corpus
from recollect.corpora.user_assignment import assign_artificial_users
from recollect.recipes.recipe_file import load_recipe

USERS, PARAGRAPHS, SHADOWS = 200, 12, 2
LONG = 200
"""Characters of a paragraph at least: headings are shorter."""


def paragraphs(lab: Laboratory) -> Corpus:
    """Paragraphs of Wikipedia, given to artificial users as in the paper's section 4.1."""
    kept = []
    for record in read_corpus(lab.file("wikitext2/wiki.train.raw.gz"), format="txt", skip_bad=True):
        if len(record.scored_text) >= LONG:
            kept.append(record)
        if len(kept) == USERS * PARAGRAPHS:
            break
    return assign_artificial_users(Corpus.of(kept, name="Wikipedia"), users=USERS, seed=0)


def study(lab: Laboratory) -> Outcome:
    wikipedia, reddit = paragraphs(lab), lab.few()
    order = in_random_order(wikipedia)
    people = People(
        members=reddit.members,
        audited=reddit.audited,
        training=wikipedia.select_users(order[: 2 * FEW], name="shadow users"),
        controls=wikipedia,
    )
    scene = lab.scene(Task(people=people, recipe=load_recipe(WORDS), shadows=SHADOWS))
    found = Comparison(lab)
    for k, printed in CROSS_DOMAIN["word prediction"].items():
        found.add(f"Wikipedia for Reddit, top-{k}", scene, printed, top_k=k)
    found.add("Wikipedia for Reddit, all words", scene, PERFECT)
    return Outcome(
        title="Table 3: shadows from another domain",
        scale=f"{FEW} members, {SHADOWS} shadows of {FEW} artificial users with some {PARAGRAPHS} paragraphs each "
        "(WikiText-2 for WikiText-103).",
        figures=found.figures,
        details=found.details,
    )
