"""The sample of records that the blind baseline of removal sees."""

from recollect.audits.removal.safeguards import sample_guarded_records
from recollect.corpora.corpus import Corpus
from recollect.corpora.record import Record


def test_a_sample_does_not_depend_on_the_order_of_records():
    records = [Record(id=f"a{i}", text=f"text {i}") for i in range(60)]
    assert sample_guarded_records(Corpus.of(records)) == sample_guarded_records(Corpus.of(records[::-1]))
    assert [r.id for r in sample_guarded_records(Corpus.of(records), frozenset({"a7"}))] == ["a7"]
