"""What ranks of a step send, receive and add: kernels, and the same with NumPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.interpreted import interpreted

from opticcl.assumptions import assumptions
from opticcl.fabrics import fabric
from opticcl.ir import Circuits, Op, Transfers
from opticcl.kernels import always_compiled, never_compiled
from opticcl.routing.grid import Grid
from opticcl.routing.paths import open_dimension_order
from opticcl.simulate import _step_kernels as kernels
from opticcl.simulate.facts import _busiest_ends
from opticcl.simulate.latency import path_latency
from opticcl.simulate.parts import busiest_sum, summed_chunks

ROW = st.tuples(
    st.integers(0, 3), st.integers(4, 7), st.integers(0, 4), st.integers(1, 3), st.sampled_from([Op.COPY, Op.REDUCE])
)
WAYS = pytest.mark.parametrize("compiled", [False, True])


def step_of(rows):
    """Transfers from (sender, receiver, first chunk, chunks, operation)."""
    src, dst, lo, n, op = (np.array(column) for column in zip(*rows, strict=True))
    return Transfers.of(src, dst, lo, n, op)


@WAYS
@given(rows=st.lists(ROW, min_size=1, max_size=12))
def test_the_busiest_ranks(compiled, rows):
    """Counted one by one."""
    step = step_of(rows)
    with always_compiled() if compiled else never_compiled():
        found = _busiest_ends(step, step.size_chunks())
    due = [
        max(sum(of(row) for row in rows if row[end] == rank) for rank in range(8))
        for of in (lambda row: 1, lambda row: row[3])
        for end in (0, 1)
    ]
    assert list(found) == due


@WAYS
@given(rows=st.lists(ROW, min_size=1, max_size=12))
def test_sums_of_ranges_that_overlap(compiled, rows):
    """Of each rank the chunks that arrive, and those that differ; the first rank with most of them is the busiest."""
    arrives = {rank: [row for row in rows if row[1] == rank and row[4] == Op.REDUCE] for rank in range(8)}
    arrived = [sum(row[3] for row in arrives[rank]) for rank in range(8)]
    differ = [len({row[2] + k for row in arrives[rank] for k in range(row[3])}) for rank in range(8)]
    busiest = arrived.index(max(arrived))
    with always_compiled() if compiled else never_compiled():
        assert busiest_sum(step_of(rows)) == (arrived[busiest], differ[busiest])
        fused = summed_chunks(step_of(rows), assumptions("common", compute="fused"))
    assert fused == max(a + 2 * d for a, d in zip(arrived, differ, strict=True))


@WAYS
def test_a_rank_that_gets_the_same_range_from_all(compiled):
    """Three arrivals of four chunks: each is read, the rank's own is read, the sum is written; a second range counts too."""
    same = [(src, 0, 2, 4, Op.REDUCE) for src in (1, 2, 3)]
    with always_compiled() if compiled else never_compiled():
        assert summed_chunks(step_of(same), assumptions("common", compute="fused")) == 12 + 2 * 4
        other = step_of([*same, (1, 0, 0, 4, Op.REDUCE)])
        assert summed_chunks(other, assumptions("common", compute="fused")) == 16 + 2 * 6


@WAYS
def test_the_longest_path(compiled):
    """A wafer of 4 x 4 tiles: six hops from corner to corner."""
    where = fabric("lightpath:shape=4x4")
    law = path_latency(where, assumptions("common"))
    src, dst = np.array([0, 0, 3]), np.array([1, 15, 7])
    path = open_dimension_order(Grid(4, 4), where.tile[src], where.tile[dst], "row")
    circuits = Circuits.of(np.arange(3), src, dst, path=path)
    with always_compiled() if compiled else never_compiled():
        assert law.longest_s(circuits) == pytest.approx(law.of_circuits(circuits).max(), rel=1e-12)


def test_a_step_without_transfers_or_without_chunks():
    """Nothing is sent, received or added; a transfer of no chunks is one."""
    none, one, count = np.zeros(0, np.int32), np.zeros(1, np.int32), np.zeros(1, np.int64)
    with interpreted(kernels):
        assert kernels.busiest_ends(none, none, count[:0], 2) == (0, 0, 0, 0)
        assert kernels.busiest_ends(one, one + 1, count, 2) == (1, 1, 0, 0)
        assert kernels.most_to_add(none, none, none, 1, 2) == (0, 0, 0)


@pytest.mark.parametrize("seed", range(20))
def test_where_most_chunks_arrive_to_be_added(seed):
    """The first of the ranks with most chunks, and the transfers that bring them; bit 2 says which of them add."""
    rows = np.random.default_rng(seed).integers(0, (3, 3, 4), (seed // 2, 3)).tolist()
    dst, count, op = np.array(rows, np.int32).reshape(-1, 3).T
    mine = [[n for to, n, bits in rows if to == rank and bits & 2] for rank in range(3)]
    busiest = max(range(3), key=lambda rank: (sum(mine[rank]), -rank))
    with interpreted(kernels):
        assert kernels.most_to_add(dst, count, op, 2, 3) == (busiest, sum(mine[busiest]), len(mine[busiest]))


@pytest.mark.parametrize(("ranks", "count", "most"), [(2, 2, 8), (3, 4, 8), (1, 4, 2), (1, 6, 3)])
def test_ranges_that_are_equal_or_apart(ranks, count, most):
    """By the chunks of each pair of ranges of a rank; no more different ones than are compared."""
    draw = np.random.default_rng(most)
    for _ in range(60):
        _compare_ranges(draw.integers((0, 0, 1), (ranks, 8, 3), (count, 3)).tolist(), most)


def _compare_ranges(rows, most):
    chunks = [set(range(lo, lo + n)) for _, lo, n in rows]
    of_rank = [{frozenset(held) for held, row in zip(chunks, rows, strict=True) if row[0] == rank} for rank in range(3)]
    apart = all(one == other or not one & other for mine in of_rank for one in mine for other in mine)
    covered = np.zeros(3, np.int64)
    with interpreted(kernels), pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "MOST_RANGES", most)
        found = kernels.ranges_apart(*np.array(rows, np.int64).reshape(-1, 3).T, covered)
    assert found == (apart and max(map(len, of_rank)) <= most)
    assert not found or covered.tolist() == [len(set().union(*mine)) for mine in of_rank]


def test_as_many_ranges_as_are_compared():
    """Eight different ones of a rank, again and again; not nine."""
    lo, one = np.arange(9) % 8, np.ones(9, np.int64)
    with interpreted(kernels):
        assert kernels.ranges_apart(one, lo, one, np.zeros(2, np.int64))
        assert not kernels.ranges_apart(one, np.arange(9), one, np.zeros(2, np.int64))
