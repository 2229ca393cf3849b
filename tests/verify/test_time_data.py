"""Data over time: sums of a step, chunk by chunk."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.ir import Op, Transfers
from opticcl.verify._time_data import _jobs


@examples(60)
@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 5), st.integers(1, 4), st.integers(0, 9)), min_size=1, max_size=6
    ),
    st.sampled_from([1, 2, 3]),
)
def test_sums_of_chunks_apart_are_those_of_single_chunks(rows, apart):
    """What the memory of each rank has to do, released and due when: chunk by chunk, and by ranges."""
    rank, lo, n, when = np.array(rows).T
    t = Transfers.of(np.full(len(rows), 9), rank, lo, n, Op.REDUCE, chunk_step=np.full(len(rows), apart))
    arrived, due = when.astype(float), when + 10.0
    of_chunk = {}
    for dst, first, count, at in rows:
        for chunk in range(first, first + count * apart, apart):
            of_chunk.setdefault((dst, chunk), []).append(at)
    expected = Counter()
    for (dst, _), at in of_chunk.items():
        expected[dst, max(at) + 0.0, min(at) + 10.0] += len(at) + 2
    found = Counter()
    for dst, _, chunks, release, until in zip(*_jobs(t, arrived, due, "fused"), strict=True):
        found[dst, release, until] += chunks
    assert found == expected
