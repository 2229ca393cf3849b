"""Rank schedules: every algorithm, collective and fabric, bit by bit as the in-process execution."""

import gc
import pickle
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.collective import COLLECTIVES, Request, collective, custom_collective
from opticcl.errors import OpticclError, ParameterError
from opticcl.execute import execute
from opticcl.execute.lockstep import execute_by_ranks
from opticcl.execute.loop import chunk_width, load_state, store_result
from opticcl.execute.ranks import rank_schedules
from opticcl.fabrics import fabric
from opticcl.ir import Op, Schedule, Transfers
from opticcl.plans.rank_plans import EarlyPlanner, RankPlanner
from opticcl.schedule import all_variants, generate, reason_declined

FABRICS = (
    "ideal:nodes=7",
    "ramp:groups=2,racks=2,wavelengths=4",
    "sipac:radix=2,levels=3",
)
LATER = ("terarack:nodes=9", "torus:shape=3x3", "ideal:nodes=8", "oddl:shape=4x4", "lightpath:shape=2x4")
"""Fabrics of `make test-deep`."""
LONGEST = 16
"""Pieces of a pipeline; those with more take seconds."""

NO_ALGORITHM = {("oddl:shape=4x4", "send_recv")}
"""Fabrics that do not do a collective."""

OWN_BLOCK = ("all_gather", "gather", "send_recv")


ROOTED_AT_THE_LAST = ("broadcast", "reduce", "scatter", "gather")


def request_of(name, num_ranks):
    """The collective, at the last rank if it has a root."""
    return Request(name, root=num_ranks - 1 if name in ROOTED_AT_THE_LAST else 0)


def is_long(algorithm):
    """Whether it is a long pipeline, which takes seconds."""
    pieces = re.search(r"pipeline=(\d+)", algorithm)
    return pieces is not None and int(pieces[1]) > LONGEST


def algorithms(wanted, made):
    """Every algorithm with every variant that does a collective on a fabric."""
    return [name for name in all_variants(wanted, made) if reason_declined(name, wanted, made) is None]


def inputs(schedule, dtype, length):
    """Random arrays of all ranks; floats whose sums depend on the order."""
    c = schedule.collective
    random = np.random.default_rng(1)
    length *= 1 if c.name in OWN_BLOCK else c.num_ranks
    if dtype == np.int32:
        return random.integers(-1000, 1000, (c.num_ranks, length)).astype(dtype)
    return (random.standard_normal((c.num_ranks, length)) * 10.0 ** random.integers(-3, 3, length)).astype(dtype)


def results_are_those_in_process(schedule):
    """The same bits at every rank."""
    for dtype in (np.int32, np.float32):
        arrays = inputs(schedule, dtype, 5)
        for found, due in zip(execute_by_ranks(schedule, arrays), execute(schedule, arrays), strict=True):
            assert (found is None) == (due is None), schedule.algorithm
            assert found is None or found.shape == due.shape, schedule.algorithm
            assert found is None or found.tobytes() == due.tobytes(), schedule.algorithm


@pytest.mark.parametrize("name", COLLECTIVES)
@pytest.mark.parametrize("where", [*FABRICS, *(pytest.param(one, marks=pytest.mark.deep) for one in LATER)])
def test_bit_by_bit_as_in_process(where, name):
    """Every algorithm; integers and floats, a length that the chunks do not divide."""
    made = fabric(where)
    wanted = request_of(name, made.num_nodes)
    tried = [algorithm for algorithm in algorithms(wanted, made) if not is_long(algorithm)]
    assert bool(tried) == ((where, name) not in NO_ALGORITHM)
    for algorithm in tried:
        results_are_those_in_process(generate(algorithm, wanted, made))


@pytest.mark.deep
@pytest.mark.parametrize("where", FABRICS)
def test_long_pipelines_bit_by_bit_as_in_process(where):
    """All collectives, on the fabrics that have such pipelines."""
    made, tried = fabric(where), 0
    for name in COLLECTIVES:
        wanted = request_of(name, made.num_nodes)
        for algorithm in filter(is_long, algorithms(wanted, made)):
            results_are_those_in_process(generate(algorithm, wanted, made))
            tried += 1
    assert tried


@pytest.mark.parametrize("algorithm", ["mesh", "ring", "halving_doubling", "lumorph:radix=4"])
def test_messages_match(algorithm):
    """In every step each message that is sent is received, with as many rows, and no slot is sent and received into."""
    made = fabric("ideal:nodes=8")
    for name in ("all_reduce", "all_gather", "reduce_scatter"):
        cut = rank_schedules(generate(algorithm, name, made))
        for i in range(len(cut[0].steps)):
            sent = {(r.rank, m.peer): count(m.rows) for r in cut for m in r.steps[i].sends}
            received = {(m.peer, r.rank): count(m.rows) for r in cut for m in r.steps[i].recvs}
            assert sent == received
            for r in cut:
                out = {s for m in r.steps[i].sends for s in members(m.rows)}
                assert not out & {s for m in r.steps[i].recvs if not m.staged for s in members(m.rows)}


def members(rows):
    """Indices of rows."""
    return range(rows.start, rows.stop) if isinstance(rows, slice) else rows.tolist()


def count(rows):
    """Number of rows."""
    return len(members(rows))


def test_halving_doubling_sends_in_place():
    """Consecutive chunks are neither packed nor, where they are stored, staged."""
    cut = rank_schedules(generate("halving_doubling", "all_reduce", fabric("ideal:nodes=8")))
    for r in cut:
        assert all(isinstance(m.rows, slice) for step in r.steps for m in step.sends)
        assert [step.stage_rows for step in r.steps] == [4, 2, 1, 0, 0, 0]
        assert all(len(step.turns) == 1 for step in r.steps[:3])


def test_direct_sums_are_taken_in_row_order():
    """A reduce-scatter in one step: seven contributions to one slot are seven turns, by offset."""
    cut = rank_schedules(generate("mesh", "reduce_scatter", fabric("ideal:nodes=8")))
    (step,) = cut[0].steps
    senders = [step.recvs[rows.start].peer for rows, _ in step.turns]
    assert senders == [7, 6, 5, 4, 3, 2, 1]  # row order of the mesh: offset 1 comes from rank 7


@st.composite
def tables(draw):
    """A custom collective of copies or sums, and one step per row that makes it."""
    ranks, chunks = draw(st.integers(2, 5)), draw(st.integers(1, 5))
    flags = st.lists(st.booleans(), min_size=ranks, max_size=ranks)
    before = np.array([draw(flags.filter(any)) for _ in range(chunks)])
    after = np.array([draw(flags.filter(any)) for _ in range(chunks)])
    return ranks, chunks, before, after


@given(tables(), st.integers(0, 7))
@examples(60)
def test_some_chunks_of_a_message(table, length):
    """Custom collectives give zeros elsewhere, as the in-process execution does, whatever the length."""
    ranks, _, before, after = table
    c = custom_collective("mine", before, after, False)
    missing = np.argwhere(after & ~before)
    rows = [(int(np.flatnonzero(before[k])[0]), int(d), int(k)) for k, d in missing]
    steps = [Transfers.of([s], [d], [k], 1, Op.COPY) for s, d, k in rows]
    schedule = Schedule("mine", c, len(steps), lambda i: steps[i])
    message = np.arange(1, length + 1)
    arrays = [message if before[:, r].any() else None for r in range(ranks)]
    for found, due in zip(execute_by_ranks(schedule, arrays), execute(schedule, arrays), strict=True):
        assert (found is None) == (due is None)
        assert found is None or np.array_equal(found, due)


def test_a_block_that_does_not_arrive_is_refused():
    """An all_to_all with a transfer missing."""
    c = collective("all_to_all", 2, 2)
    schedule = Schedule("half", c, 1, lambda i: Transfers.of([0], [1], [1], 1, Op.MOVE, 1))
    with pytest.raises(ParameterError, match="the block of rank 1 for rank 0 does not arrive"):
        rank_schedules(schedule)


def test_pickles():
    """Rank schedules travel between processes."""
    cut = rank_schedules(generate("mesh", "all_to_all", fabric("ideal:nodes=5")))[2]
    again = pickle.loads(pickle.dumps(cut))
    assert [m.peer for m in again.steps[0].sends] == [m.peer for m in cut.steps[0].sends]
    assert np.array_equal(again.final, cut.final)


@pytest.mark.parametrize("name", ["all_reduce", "all_gather", "scatter"])
def test_load_and_store_are_inverse(name):
    """What a rank holds at the start comes back, padded chunks included."""
    cut = rank_schedules(generate("tree" if name == "scatter" else "ring", name, fabric("ideal:nodes=3")))[0]
    length = 3 * 7
    given_here = np.arange(7 if name == "all_gather" else length)
    state = load_state(cut, given_here, length, np.int64)
    assert state.shape == (cut.slots, chunk_width(cut, length))
    found = store_result(cut, state, length)
    if name == "all_gather":
        found = found[:7]
    assert np.array_equal(found, given_here if name != "scatter" else given_here[:7])


def test_plans_are_loaded_early():
    """The planner of a group makes the plans of any other, reports what it refuses, and leaves the collector as it is."""
    request, frozen = Request("all_gather"), gc.get_freeze_count() > 0
    early, due = (make(RankPlanner(3)) for make in (EarlyPlanner, lambda planner: planner))
    for mine, other in zip(early(request, 300), due(request, 300), strict=True):
        assert repr(mine) == repr(other)
    assert [schedule.num_ranks for schedule in early.part([2, 0])(request, 300)] == [2, 2]
    assert (gc.get_freeze_count() > 0) == frozen
    with pytest.raises(OpticclError, match="unknown algorithm 'nonsense'"):
        EarlyPlanner(RankPlanner(2, algorithm="nonsense"))(request, 300)
