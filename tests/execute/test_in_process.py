"""Schedules on real arrays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.strategies import fabrics

import opticcl
from opticcl.collective import collective
from opticcl.errors import ParameterError
from opticcl.execute import execute, in_process
from opticcl.execute.lockstep import execute_by_ranks
from opticcl.ir import Op, Schedule, Transfers

TYPES = ["int8", "uint8", "int16", "int64", "uint64", "float16", "float32", "float64", "complex64", "bool"]


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [*((dtype, (3, 5)) for dtype in TYPES), *(("int64", shape) for shape in [(), (1,), (7,), (2, 0), (64,)])],
)
def test_every_type_and_shape(dtype, shape):
    """Sums of whole numbers are exact in every type; small types wrap as NumPy's do."""
    plan = opticcl.compile("ideal:nodes=5", "all_reduce", "1KB", algorithm="ring")
    data = np.random.default_rng(1).integers(0, 60, (5, *shape)).astype(dtype)
    for result in plan.execute(data):
        assert result.dtype == data.dtype
        assert result.shape == shape
        assert np.array_equal(result, data.sum(axis=0, dtype=dtype))


@examples(30)
@given(fabrics(), st.integers(0, 70))
def test_every_fabric_and_length(fabric, length):
    """Messages that the chunks do not divide, shorter than the chunks, and of nothing."""
    plan = opticcl.compile(fabric, "all_reduce", "1KB")
    data = np.random.default_rng(2).integers(-(2**40), 2**40, (fabric.num_nodes, length))
    assert all(np.array_equal(result, data.sum(axis=0)) for result in plan.execute(data))


def test_what_was_given_stays():
    """Arrays in, new arrays out."""
    plan = opticcl.compile("ideal:nodes=3", "all_reduce", 8, algorithm="ring")
    data = [np.full(4, rank) for rank in range(3)]
    results = plan.execute(data)
    assert [a.tolist() for a in data] == [[0] * 4, [1] * 4, [2] * 4]
    results[0][:] = 9
    assert results[1].tolist() == [3] * 4


@pytest.mark.parametrize(
    "arrays",
    [
        [np.zeros(3)] * 2,
        [np.zeros(3), np.zeros(4), np.zeros(3)],
        [np.zeros(3), np.zeros(3, int), np.zeros(3)],
        [np.array(["a"])] * 3,
        [np.array([object()])] * 3,
    ],
)
def test_arrays_that_do_not_fit(arrays):
    """One line that says which array and why."""
    plan = opticcl.compile("ideal:nodes=3", "all_reduce", 8, algorithm="ring")
    with pytest.raises(ParameterError, match="execute: "):
        plan.execute(arrays)


@examples(40)
@given(
    st.sampled_from(["all_reduce", "reduce_scatter", "all_gather", "broadcast", "gather", "all_to_all"]),
    st.sampled_from(["ring", "mesh", "lumorph:radix=4", "tree"]),
    st.integers(1, 7),
    st.integers(1, 40),
    st.sampled_from(["int16", "float16", "int64"]),
    st.integers(8, 40),
)
def test_slices_change_nothing(name, algorithm, nodes, length, dtype, row_bytes):
    """A message played in many slices ends as one played at once, whatever the length of blocks and chunks."""
    try:
        plan = opticcl.compile(f"ideal:nodes={nodes}", name, "1KB", algorithm=algorithm)
    except opticcl.errors.UnsupportedError:
        return
    data = np.random.default_rng(length).integers(0, 50, (nodes, nodes * length)).astype(dtype)
    at_once = plan.execute(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_process, "STATE_BYTES", 1)
        patch.setattr(in_process, "LEAST_ROW_BYTES", row_bytes)
        patch.setattr(in_process, "MOST_ROWS_KEPT", nodes)
        for one, other in zip(at_once, plan.execute(data), strict=True):
            assert (one is None) == (other is None)
            assert one is None or np.array_equal(one, other)


def schedule_of(name, ranks, chunks, *steps):
    """A schedule with these steps, each a list of (src, dst, chunk, number of chunks, operation)."""
    made = [Transfers.of(*np.array(rows).T) for rows in steps]
    return Schedule("by hand", collective(name, ranks, chunks), len(made), made.__getitem__)


def test_sends_see_the_data_before_the_step():
    """An exchange in one step; sums of several senders at one place; a copy and a sum in one step."""
    both = schedule_of("all_reduce", 2, 1, [(0, 1, 0, 1, Op.REDUCE), (1, 0, 0, 1, Op.REDUCE)])
    assert [list(r) for r in execute(both, [[1, 2], [10, 20]])] == [[11, 22]] * 2
    three = schedule_of("reduce", 3, 2, [(1, 0, 0, 2, Op.REDUCE), (2, 0, 0, 2, Op.REDUCE), (2, 1, 1, 1, Op.COPY)])
    assert list(execute(three, np.array([[1, 2], [10, 20], [100, 200]]))[0]) == [111, 222]


def test_what_is_given_up_is_no_longer_there():
    """Its sender has what arrives in the same step or later, and nothing of its own; the same rank by rank."""
    steps = (
        [(0, 1, 0, 1, Op.REDUCE_MOVE), (1, 2, 0, 1, Op.REDUCE_MOVE), (2, 0, 1, 1, Op.REDUCE_MOVE)],
        [(2, 1, 0, 1, Op.REDUCE_MOVE), (1, 0, 1, 1, Op.REDUCE)],
        [(1, 0, 0, 1, Op.REDUCE), (1, 2, 0, 1, Op.REDUCE), (0, 1, 1, 1, Op.COPY), (0, 2, 1, 1, Op.REDUCE)],
    )
    ring = schedule_of("all_reduce", 3, 2, *steps)
    given = np.array([[1, 2], [10, 20], [100, 200]])
    for results in (execute(ring, given), execute_by_ranks(ring, given)):
        assert [list(result) for result in results] == [[111, 222]] * 3


def test_what_is_lost_on_the_way_is_zero():
    """Pieces of an all_to_all that nobody sends do not appear by themselves."""
    half = schedule_of("all_to_all", 2, 2, [(0, 1, 1, 1, Op.MOVE)])
    assert [list(r) for r in execute(half, [[1, 2], [3, 4]])] == [[1, 0], [2, 4]]


@pytest.mark.parametrize("row", [(0, 3, 0, 1), (-1, 1, 0, 1), (0, 1, 1, 2), (0, 1, -1, 1)])
@pytest.mark.parametrize("name", ["all_reduce", "all_to_all"])
def test_what_is_not_there_is_refused(name, row):
    """Ranks and chunks out of range: one line that names the step, and never another rank's data."""
    wrong = schedule_of(name, 2, 2, [(*row, Op.COPY)])
    with pytest.raises(ParameterError, match=r"execute: step 0: transfer 0 has a (rank|chunk) that is not 0"):
        execute(wrong, np.zeros((2, 4)))


def test_progress_is_told():
    """After every step, up to the last."""
    told = []
    plan = opticcl.compile("ideal:nodes=4", "all_reduce", "1KB", algorithm="ring")
    execute(plan.schedule, np.zeros((4, 10)), progress=lambda *what: told.append(what))
    assert told == [("run the steps", i + 1, 6) for i in range(6)]
