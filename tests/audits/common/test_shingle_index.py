"""The index of shingles: its signatures and what it finds are those of datasketch."""

import numpy as np
from datasketch import MinHash, MinHashLSH

from recollect.audits.common.shingle_index import ShingleIndex, sign_shingles


def draw_similar_sets(count):
    rng = np.random.default_rng(0)
    common = rng.integers(0, 2**32, 30).tolist()
    for _ in range(count):
        kept = rng.random(30) < rng.choice([0.5, 0.8, 0.95])
        yield frozenset(np.array(common)[kept].tolist()) | {int(rng.integers(0, 2**32))}


def sign_with_datasketch(shingles):
    signature = MinHash(num_perm=64, seed=1, hashfunc=int, scheme="affine32")
    signature.update_batch(list(shingles))
    return signature


def test_a_signature_is_that_of_datasketch():
    for shingles in draw_similar_sets(50):
        assert b"".join(sign_shingles(shingles)) == sign_with_datasketch(shingles).hashvalues.tobytes()


def test_the_same_candidates_are_found_as_with_datasketch():
    ours, theirs, found = ShingleIndex(), MinHashLSH(params=(16, 4), num_perm=64), 0
    for number, shingles in enumerate(draw_similar_sets(200)):
        bands, signature = sign_shingles(shingles), sign_with_datasketch(shingles)
        candidates = ours.find_candidates(bands)
        assert candidates == set(theirs.query(signature))
        found += len(candidates)
        ours.add(str(number), bands)
        theirs.insert(str(number), signature)
    assert 0 < found < 200 * 199 / 2
