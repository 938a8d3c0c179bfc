"""Authors who wrote more: bloggers with 1,500 words each, as little as a single word shown."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from laboratory import METHODS, WORDS, Laboratory, People, Task, in_random_order

from recollect.corpora import read_corpus
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record
from recollect.recipes.recipe_file import load_recipe

MEMBERS, SHADOWS, CALIBRATING = 60, 4, 300
MOST_WORDS = 1500
SIZES = {None: 1.0, 50: 0.648, 5: 0.572, 1: 0.549}
"""Words shown, and the AUC in the paper's Table 3 (Reddit)."""


def study(lab: Laboratory) -> Outcome:
    scene = lab.scene(task(lab))
    rows = {f"{method}, {k or 'all'}": lab.audit(scene, method=method, top_k=k) for k in SIZES for method in METHODS}
    figures = []
    for k, paper in SIZES.items():
        shown = "all words" if k is None else f"top-{k}"
        figures.append(Figure(f"{shown}: histogram, AUC", paper, rows[f"histogram, {k or 'all'}"]["auc"]))
        figures.append(Figure(f"{shown}: calibrated, AUC", None, rows[f"calibrated, {k or 'all'}"]["auc"]))
        figures.append(Figure(f"{shown}: calibrated, recall", None, rows[f"calibrated, {k or 'all'}"].get("recall")))
    return Outcome(
        title="Bloggers: more text of each author",
        scale=f"{MEMBERS} members and {MEMBERS} others with {MOST_WORDS:,} words each, {SHADOWS} shadows of {MEMBERS} "
        f"bloggers, {CALIBRATING} calibration users (paper: 300 Reddit users with 247 comments, ten shadows).",
        figures=figures,
        details=rows,
    )


def task(lab: Laboratory) -> Task:
    """Word prediction with bloggers."""
    corpus = _cut(read_corpus(lab.file("blog_authorship/posts.jsonl.gz"), skip_bad=True))
    people = People.of(corpus, in_random_order(corpus), members=MEMBERS, training=2 * MEMBERS, calibrating=CALIBRATING)
    return Task(people=people, recipe=load_recipe(WORDS), shadows=SHADOWS)


def _cut(posts: Corpus) -> Corpus:
    """The first words of every blogger, post by post."""
    written, kept = dict[str | None, int](), list[Record]()
    for post in posts:
        words = str(post.text).split()[: MOST_WORDS - written.get(post.user, 0)]
        if words:
            written[post.user] = written.get(post.user, 0) + len(words)
            kept.append(Record(id=post.id, user=post.user, text=" ".join(words)))
    return Corpus.of([each for each in kept if written[each.user] >= MOST_WORDS], name="blogs")
