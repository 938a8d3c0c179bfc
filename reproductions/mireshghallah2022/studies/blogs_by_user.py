"""Real user level, which the clinical sets do not have: bloggers, by record and by blogger."""

from __future__ import annotations

from common.outcomes import Figure, Outcome
from laboratory import EPOCHS, FPR, GENERAL_EPOCHS, PACE, SMALL, WORDS, Laboratory, Row, value

from recollect.audits.membership.audit import MembershipAudit
from recollect.corpora import read_corpus
from recollect.corpora.corpus import Corpus
from recollect.corpora.partitions import draw_groups
from recollect.corpora.record import Record
from recollect.signals.evidence import REFERENCE, TARGET

BLOGGERS = {"members": 60, "others": 60, "population": 60, "reference": 200}
POSTS = 12
"""Of each blogger, the first that are short enough."""
LEAST = 20
"""Words of a post."""
FINDINGS = ("loss_auc", "auc", "tpr_at_fpr_0.1", f"recall_at_fpr_{FPR:g}", f"observed_fpr_at_fpr_{FPR:g}", "blind_auc")


def study(lab: Laboratory) -> Outcome:
    corpora = _bloggers(lab)
    reference = lab.trained((*SMALL, f"training.epochs={GENERAL_EPOCHS}"), corpora["reference"])
    target = lab.trained((*PACE, f"training.epochs={EPOCHS}", f"model.start={reference}"), corpora["members"])
    models, parts = (
        {TARGET: target, REFERENCE: reference},
        (corpora["members"], corpora["others"], corpora["population"]),
    )
    rows: dict[str, Row] = {
        name: lab.told(models, parts, MembershipAudit(signal="ratio", fpr=(FPR,), by=by))
        for name, by in (("by post", "record"), ("by blogger", "user"))
    }
    figures = [Figure(f"{name}: {what}", None, value(row, what)) for name, row in rows.items() for what in FINDINGS]
    posts = f"{BLOGGERS['members']} bloggers with {POSTS} posts each of {LEAST} to {WORDS[1]} words"
    scale = f"{posts}; the reference saw {BLOGGERS['reference']} others; BERT of 2 layers of 64."
    return Outcome(title="Bloggers: real users", scale=scale, figures=figures, details=rows)


def _bloggers(lab: Laboratory) -> dict[str, Corpus]:
    """Posts of a middling length, so many of each blogger, every text once."""
    posts: dict[str, list[Record]] = {}
    seen = set[str]()
    for record in read_corpus(lab.file("blog_authorship/posts.jsonl.gz"), skip_bad=True):
        text, mine = str(record.text), posts.setdefault(record.owner, [])
        if len(mine) < POSTS and LEAST <= len(text.split()) <= WORDS[1] and text not in seen:
            seen.add(text)
            mine.append(record)
    whole = sorted(user for user, mine in posts.items() if len(mine) == POSTS)
    parted = draw_groups(whole, BLOGGERS, seed=0, name="bloggers")
    return {group: Corpus.of([r for user in users for r in posts[user]], name=group) for group, users in parted.items()}
