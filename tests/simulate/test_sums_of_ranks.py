"""What ranks of a step add."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opticcl.ir import Op, Transfers
from opticcl.simulate.parts import summed_chunks

ROW = st.tuples(
    st.integers(0, 3), st.integers(4, 7), st.integers(0, 4), st.integers(1, 3), st.sampled_from([Op.COPY, Op.REDUCE])
)


def step_of(rows):
    """Transfers from (sender, receiver, first chunk, chunks, operation)."""
    src, dst, lo, n, op = (np.array(column) for column in zip(*rows, strict=True))
    return Transfers.of(src, dst, lo, n, op)


@given(rows=st.lists(ROW, min_size=1, max_size=12))
def test_sums_of_ranges_that_overlap(rows):
    """Of each rank the chunks that arrive, and those that differ."""
    arrives = {rank: [row for row in rows if row[1] == rank and row[4] == Op.REDUCE] for rank in range(8)}
    arrived = [sum(row[3] for row in arrives[rank]) for rank in range(8)]
    differ = [len({row[2] + k for row in arrives[rank] for k in range(row[3])}) for rank in range(8)]
    assert summed_chunks(step_of(rows), "chain") == 3 * max(arrived)
    fused = summed_chunks(step_of(rows), "fused")
    assert fused == max(a + 2 * d for a, d in zip(arrived, differ, strict=True))


def test_a_rank_that_gets_the_same_range_from_all():
    """Three arrivals of four chunks: each is read, the rank's own is read, the sum is written; a second range counts too."""
    same = [(src, 0, 2, 4, Op.REDUCE) for src in (1, 2, 3)]
    assert summed_chunks(step_of(same), "fused") == 12 + 2 * 4
    other = step_of([*same, (1, 0, 0, 4, Op.REDUCE)])
    assert summed_chunks(other, "fused") == 16 + 2 * 6
