"""Data over time: sums of a step, chunk by chunk."""

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.ir import Op, Transfers
from opticcl.verify._time_data import _jobs, _renumbered


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


@pytest.mark.parametrize("apart", [None, 1, 2, 3, 5])
@pytest.mark.parametrize(
    "others", [(), ((0, 2, 3),), ((2, 2, 2), (1, 2, 4)), ((7, 1, 3), (4, 1, 2)), ((0, 3, 1), (0, 4, 1))]
)
def test_other_numbers_of_chunks(apart, others):
    """Rows of neighbours, which have as many chunks in common as before: those of one distance, and some of another one."""
    rows = [(0, 4, apart), (apart or 1, 3, apart), (1, 3, apart), (3, 1, apart), *others]
    lo, n = np.array([row[:2] for row in rows]).T
    steps = None if apart is None else np.array([step or 1 for _, _, step in rows])
    t = Transfers.of(np.zeros(len(rows), int), 1, lo, n, Op.REDUCE, chunk_step=steps)
    found, row = _renumbered(t)
    assert found.chunk_step is None or (found.chunk_step == 1).all()
    steps = np.ones(len(rows), int) if steps is None else steps
    before = [set(range(a, a + k * step, step)) for a, k, step in zip(lo, n, steps, strict=True)]
    after = [set() for _ in rows]
    for at, a, k in zip(row, found.chunk_lo, found.chunk_n, strict=True):
        after[at] |= set(range(a, a + k))
    for one, other in combinations(range(len(rows)), 2):
        assert len(after[one] & after[other]) == len(before[one] & before[other])
    assert list(map(len, after)) == n.tolist()
