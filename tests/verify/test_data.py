"""The check of the data, on schedules written by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.collective import Request, collective
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.fabrics import fabric
from opticcl.ir import Collective, Op, Schedule, Transfers
from opticcl.ir.chunk_rows import by_chunk
from opticcl.ir.collective import Holders
from opticcl.ir.symmetry import Run, RunSteps, Table, power
from opticcl.schedule import generate
from opticcl.verify import chunk_rows
from opticcl.verify import data as data_module
from opticcl.verify._time_data import _inside
from opticcl.verify.chunk_rows import with_followed_alone, with_neighbours_alone
from opticcl.verify.data import check_data
from opticcl.verify.explain import contributions
from opticcl.verify.malformed import cut_ranges


def schedule_of(num_ranks, num_chunks, *steps):
    """A schedule from rows (src, dst, chunk_lo, chunk_n, op), or with chunk_step behind them, of each step."""
    columns = [np.array(rows).reshape(len(rows), -1).T for rows in steps]
    made = [Transfers.of(*one[:5], chunk_step=one[5] if len(one) > 5 else None) for one in columns]
    return Schedule("hand", collective("all_reduce", num_ranks, num_chunks), len(made), made.__getitem__)


def judge(schedule, **options):
    """Report with the usual options."""
    report = check_data(schedule, **{"num_chunks": None, "seed": 0, "progress": lambda *_: None, **options})
    assert all(v.round == -1 for v in report.violations)
    assert all(v.step == -1 for v in report.violations if v.rule.startswith("contribution"))
    return report


def brute_force(schedule):
    """Contribution counts (rank, chunk, origin) by replaying lists of numbers."""
    n, chunks = schedule.collective.num_ranks, schedule.collective.num_chunks
    state = np.zeros((n, chunks, n), int)
    state[np.arange(n), :, np.arange(n)] = 1
    for i in range(schedule.num_steps):
        old, step = state.copy(), schedule.step(i)
        apart = np.ones(len(step), int) if step.chunk_step is None else step.chunk_step
        for src, lo, count, by in zip(
            *(column[step.op == 3] for column in (step.src, step.chunk_lo, step.chunk_n, apart)), strict=True
        ):
            state[src, lo : lo + count * by : by] = 0
        for src, dst, lo, count, op, by in zip(
            *(getattr(step, c) for c in Transfers.__slots__[:5]), apart, strict=True
        ):
            for c in range(lo, lo + count * by, by):
                if op == Op.COPY:
                    state[dst, c] = old[src, c]
                else:
                    state[dst, c] += old[src, c]
    return state


def test_an_exchange_is_right():
    """Two ranks that send each other everything hold the sum."""
    assert not judge(schedule_of(2, 1, [(0, 1, 0, 1, 1), (1, 0, 0, 1, 1)])).violations


def test_sends_of_a_step_see_the_data_before_it():
    """In one step the sum of rank 0 has not reached rank 2 yet: all sends see the data before the step."""
    together = judge(schedule_of(3, 1, [(0, 1, 0, 1, 1), (1, 2, 0, 1, 1)]))
    assert {v.rule for v in together.violations} == {"contribution_missing"}


def test_what_is_given_up_is_counted_once():
    """Along a directed ring of three: who keeps what it has given counts it again when it comes back."""
    ring = [(0, 1, 0, 1), (1, 2, 0, 1), (2, 0, 0, 1)]
    copies = [(*row, Op.COPY) for row in ((0, 1, 0, 1), (0, 2, 0, 1))]
    given = [(0, 1, 0, 1, Op.REDUCE_MOVE)], [(1, 2, 0, 1, Op.REDUCE_MOVE)], [(2, 0, 0, 1, Op.REDUCE)], copies
    assert not judge(schedule_of(3, 1, *given)).violations
    together = [(*row, Op.REDUCE_MOVE) for row in ring]
    found = {v.rule for v in judge(schedule_of(3, 1, together, together, copies)).violations}
    assert found == {"contribution_missing"}  # every rank has one contribution, and it is no sum
    again = judge(schedule_of(3, 1, *given[:1], [(0, 2, 0, 1, Op.REDUCE)], *given[1:])).violations
    assert {"sent_before_held"} <= {v.rule for v in again}


@pytest.mark.parametrize(
    ("name", "op"), [("all_reduce", Op.MOVE), ("all_to_all", Op.REDUCE), ("all_to_all", Op.REDUCE_MOVE)]
)
@pytest.mark.parametrize("rows", [1, 1 << 14])  # checked by NumPy and by a compiled loop
def test_operations_of_other_collectives_are_refused(name, op, rows):
    """Sums where contributions are kept apart, and contributions put side by side where they are summed."""
    step = Transfers.of(np.zeros(rows, int), 1, 0, 1, op, 1 if name == "all_to_all" else None)
    schedule = Schedule("hand", Request(name).on(2, 2), 1, lambda i: step)
    assert judge(schedule).violations[0].rule == "operation_wrong"


@pytest.mark.parametrize("doublings", [61, 62, 63, 64, 65, 128])
def test_counts_do_not_overflow(doublings):
    """A contribution that is counted 1 + 2^64 times has the right labels modulo 2^64."""
    double = ([(0, 1, 0, 1, 0)], [(1, 0, 0, 1, 1)])
    steps = ([(0, 2, 0, 1, 0)], *doublings * double, [(2, 0, 0, 1, 1)], [(0, 1, 0, 1, 0), (0, 2, 0, 1, 0)])
    all_reduce = schedule_of(3, 1, *steps)
    found = judge(replace(all_reduce, collective=collective("broadcast", 3, 1))).violations
    assert {v.rule for v in found} == {"contribution_doubled"}
    assert "rank 0 x" in found[0].found
    assert contributions(all_reduce, 0, 0)[0] == 2**40


def test_a_set_would_be_fooled():
    """Data of rank 1 that is added twice is refused though every contribution is present."""
    steps = [[(1, 0, 0, 1, 1)], [(1, 0, 0, 1, 1)], [(0, 1, 0, 1, 0)]]
    found = judge(schedule_of(2, 1, *steps)).violations
    assert {v.rule for v in found} == {"contribution_doubled"}
    assert "rank 1 x2" in found[0].found


def test_one_rank_needs_nothing():
    """N = 1: the sum is the input."""
    assert not judge(schedule_of(1, 4)).violations


@st.composite
def schedules(draw):
    """Any small schedule, right or wrong."""
    n, chunks = draw(st.integers(1, 5)), draw(st.integers(1, 4))
    steps = []
    for _ in range(draw(st.integers(0, 4))):
        rows = []
        for _ in range(draw(st.integers(1, 5)) if n > 1 else 0):
            src, dst = draw(st.permutations(range(n)))[:2]
            lo = draw(st.integers(0, chunks - 1))
            by = draw(st.integers(1, 3))
            count = draw(st.integers(1, (chunks - lo - 1) // by + 1))
            rows.append((src, dst, lo, count, draw(st.sampled_from([0, 1, 1, 1, 3])), by))
        steps.append(rows)
    return schedule_of(n, chunks, *[s for s in steps if s])


@examples(150)
@given(schedules())
def test_the_judge_agrees_with_brute_force(schedule):
    """Labels detect exactly the plans whose counts are not all one; replaying backwards gives the counts."""
    report = judge(schedule)
    found = {v.rule for v in report.violations}
    if "chunk_overwritten" in found:
        return  # the result is undefined, so there is nothing to compare
    counts = brute_force(schedule)
    nodes = int((counts != 1).any(axis=(1, 2)).sum())
    assert report.notes == ((f"{nodes} of {len(counts)} nodes end with a wrong sum",) if nodes else ())
    assert ("contribution_missing" in found or "contribution_doubled" in found) == bool((counts != 1).any())
    for rank in range(schedule.collective.num_ranks):
        for chunk in range(schedule.collective.num_chunks):
            assert np.array_equal(contributions(schedule, rank, chunk), counts[rank, chunk])


def test_a_sample_follows_the_chunks_it_names():
    """A plan that is wrong in every chunk is refused for any sample, and the report says that it is a sample."""
    wrong = schedule_of(2, 50, [(0, 1, 0, 50, 1)])
    for seed in range(5):
        report = judge(wrong, num_chunks=3, seed=seed)
        assert report.violations
        assert (report.chunks, report.exhaustive) == (3, False)


def test_a_sample_can_miss_what_it_does_not_follow():
    """One wrong chunk of 50: following all finds it, following chunk 49 alone would not, so the report says sample."""
    rows = [(0, 1, 0, 50, 1), (1, 0, 1, 49, 1)]
    assert judge(schedule_of(2, 50, rows)).exhaustive
    assert judge(schedule_of(2, 50, rows)).violations
    assert not judge(schedule_of(2, 50, rows), num_chunks=1, seed=0).exhaustive


@pytest.mark.parametrize("num_ranks", [1, 2, 7])
def test_progress_is_reported_every_step(num_ranks):
    """Long verifications report their progress."""
    reports = []
    schedule = schedule_of(num_ranks, 1, *([[(0, 1, 0, 1, 1)]] * 3 if num_ranks > 1 else []))
    judge(schedule, progress=lambda *what: reports.append(what))
    assert reports == [("follow the data", i + 1, 3) for i in range(schedule.num_steps)]


def test_the_collective_decides_what_is_due():
    """A reduce to rank 0 is right where only rank 0 must hold the sum."""
    only_up = schedule_of(3, 1, [(1, 0, 0, 1, 1), (2, 0, 0, 1, 1)])
    due = replace(only_up.collective, after=lambda rank, chunk: rank == 0)
    assert judge(only_up).violations
    assert not judge(replace(only_up, collective=due)).violations


@examples(60)
@given(st.integers(-6, 6), st.integers(1, 6), st.integers(1, 4), st.integers(1, 8))
def test_chunks_of_a_window(first, count, apart, width):
    """Those of a transfer whose chunks are no neighbours that a block has."""
    found = list(_inside.py_func(first, count, apart, width))
    assert found == [c for c in range(first, first + count * apart, apart) if 0 <= c < width]


@examples(60)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4), st.integers(1, 3)), max_size=6))
def test_chunks_apart_are_rows_of_their_own(rows):
    """By the type, by the judge, and chunk by chunk: three ways to the same rows."""
    lo, n, apart = np.array(rows, np.int64).reshape(-1, 3).T
    step = Transfers.of(np.zeros(len(lo)), np.arange(1, len(lo) + 1), lo, n, Op.COPY, chunk_step=apart)
    for made, row in (step.ranges(), with_neighbours_alone(step)):
        assert made.chunk_step is None
        assert all(map(np.array_equal, by_chunk(made), by_chunk(step)))
        assert np.array_equal(made.dst, step.dst[row])


@examples(60)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4), st.integers(1, 3)), max_size=6),
    st.sets(st.integers(0, 18), max_size=5),
    st.sampled_from([0, 64]),
)
def test_followed_chunks_of_chunks_apart(rows, chunks, few):
    """Rows of a followed chunk are those of all chunks listed, in their order."""
    lo, n, apart = np.array(rows, np.int64).reshape(-1, 3).T
    step = Transfers.of(np.zeros(len(lo)), np.arange(1, len(lo) + 1), lo, n, Op.COPY, chunk_step=apart)
    followed = np.array(sorted(chunks), np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunk_rows, "FEW_FOLLOWED", few)
        made = with_followed_alone(step, followed)
    assert made.chunk_step is None
    whole, _ = with_neighbours_alone(step)
    for chunk in followed.tolist():
        due, found = (one.dst[(one.chunk_lo <= chunk) & (chunk < one.chunk_lo + one.chunk_n)] for one in (whole, made))
        assert found.tolist() == due.tolist()


@examples(60)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(1, 4), st.sampled_from([1, 2, 3, 6])), min_size=1, max_size=6),
    st.integers(0, 5),
)
def test_chunks_of_one_distance_are_ranges(rows, rest):
    """Where followed chunks are a multiple of all distances apart, no row is split; each carries what it carried of them."""
    lo, n, apart = np.array(rows, np.int64).reshape(-1, 3).T
    step = Transfers.of(np.zeros(len(lo)), np.arange(1, len(lo) + 1), lo, n, Op.COPY, chunk_step=apart)
    followed = np.arange(rest, 30, 6)
    made = with_followed_alone(step, followed)
    assert made.chunk_step is None
    assert len(made) <= len(step)
    for chunk in followed.tolist():
        due = [1 + i for i, (first, count, by) in enumerate(rows) if chunk in range(first, first + count * by, by)]
        assert made.dst[(made.chunk_lo <= chunk) & (chunk < made.chunk_lo + made.chunk_n)].tolist() == due


@pytest.mark.parametrize("wrong", [None, 0, 1])
def test_chunks_apart_are_followed_by_classes(monkeypatch, wrong):
    """In blocks of one rest each, so that none is listed; a chunk that is left out is found in either class."""
    monkeypatch.setattr(chunk_rows, "MOST_APART", 5)
    for name in ("BLOCK", "LARGE_BLOCK"):
        monkeypatch.setattr(data_module, name, 4)
    monkeypatch.setattr(chunk_rows, "FEW_FOLLOWED", 0)
    few = [4 - (wrong == half) for half in (0, 1)]
    found = judge(schedule_of(2, 8, [(0, 1, 0, few[0], 1, 2), (0, 1, 1, few[1], 1, 2), (1, 0, 0, 8, 1, 1)]))
    assert [v.rule for v in found.violations] == ([] if wrong is None else ["contribution_missing"])
    if wrong is not None:
        assert f"chunk {6 + wrong}" in found.violations[0].where


def test_chunks_apart_are_followed():
    """Two ranks exchange the even chunks and the odd ones; a row that carries chunk 2 twice and chunk 1 never is refused."""
    even_and_odd = [(0, 1, 0, 2, 1, 2), (0, 1, 1, 2, 1, 2), (1, 0, 0, 4, 1, 1)]
    assert not judge(schedule_of(2, 4, even_and_odd)).violations
    wrong = judge(schedule_of(2, 4, [(0, 1, 0, 2, 1, 2), (0, 1, 2, 2, 1, 1), (1, 0, 0, 4, 1, 1)]))
    assert {v.rule for v in wrong.violations} == {"contribution_missing", "contribution_doubled"}


def test_neighbours_need_no_rows_of_their_own():
    """A step of neighbours is its own list."""
    step = Transfers.of([0, 1], [1, 2], 0, 3, Op.COPY)
    alone, row = with_neighbours_alone(step)
    assert alone is step
    assert row.tolist() == [0, 1]
    assert chunk_rows.num_apart(step) == 0
    assert chunk_rows.num_apart(Transfers.of([0, 1], [1, 2], 0, [3, 4], Op.COPY, chunk_step=[1, 2])) == 4


def test_too_many_chunks_apart_are_refused(monkeypatch):
    """Before they are listed."""
    rows = np.arange(1 << 12)
    step = Transfers.of(rows, rows + 1, 0, 1 << 14, Op.COPY, chunk_step=2)
    with pytest.raises(UnsupportedError, match="67,108,864 chunks that are no neighbours; at most"):
        with_neighbours_alone(step)
    monkeypatch.setattr(chunk_rows, "MOST_APART", 6)
    assert len(with_neighbours_alone(Transfers.of([0, 1], [1, 2], 0, 3, Op.COPY, chunk_step=2))[0]) == 6


@pytest.mark.parametrize("rows", [1, 1 << 14])  # checked by NumPy and by a compiled loop
@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        ("src", -1, "rank_unknown"), ("src", 3, "rank_unknown"), ("dst", -1, "rank_unknown"), ("dst", 3, "rank_unknown"),
        ("chunk_lo", -1, "chunk_unknown"), ("chunk_lo", 3, "chunk_unknown"), ("chunk_n", 0, "chunk_unknown"),
        ("chunk_n", 4, "chunk_unknown"), ("chunk_step", 0, "chunk_unknown"), ("op", 4, "operation_unknown"),
        ("parts", 2, "size_wrong"), ("parts", 0, "size_wrong"),
    ],
)  # fmt: skip
def test_rows_that_name_what_does_not_exist_are_refused(column, value, rule, rows):
    """The first of them is shown, and they are counted; the largest rank, chunk and operation are taken."""
    good = Transfers.of(np.full(rows, 2), 1, 2, 1, Op.REDUCE_MOVE, 1, 1 if column == "chunk_step" else None)
    values = getattr(good, column).copy()
    assert not {v.rule for v in judge(schedule_steps(3, 3, good)).violations} & {rule}
    values[-1] = value
    (found,) = judge(schedule_steps(3, 3, replace(good, **{column: values}))).violations
    assert (found.rule, found.where, found.count) == (rule, f"transfer {rows - 1}", 1)


def schedule_steps(num_ranks, num_chunks, *steps):
    """A schedule of transfers."""
    return Schedule("hand", collective("all_reduce", num_ranks, num_chunks), len(steps), steps.__getitem__)


@pytest.mark.parametrize("seed", range(4))
def test_a_sample_follows_chunks_that_do_not_become_all_others(seed):
    """On a torus the shift of a run moves a chunk along its row or column alone."""
    made = generate("torus2d:shape=3x4", "all_reduce", fabric("ideal:nodes=12"))
    assert not judge(made, num_chunks=1, seed=seed).violations


def test_samples_are_of_chunks_with_a_seed():
    """A sample of no chunks and a negative seed are refused; one of one chunk and seed 0 are taken."""
    right = schedule_of(2, 2, [(0, 1, 0, 2, 1), (1, 0, 0, 2, 1)])
    for options in ({"num_chunks": 0}, {"seed": -1}):
        with pytest.raises(ParameterError, match="verify: "):
            judge(right, **options)
    assert judge(right, num_chunks=1).chunks == 1
    assert judge(right, num_chunks=2).exhaustive


def test_a_sample_has_no_chunk_twice():
    """One wrong chunk of 50 is in nearly every sample of 49."""
    wrong = schedule_of(2, 50, [(0, 1, 0, 50, 1), (1, 0, 1, 49, 1)])
    assert sum(bool(judge(wrong, num_chunks=49, seed=seed).violations) for seed in range(20)) >= 18
    assert check_data(wrong, num_chunks=3).notes[0] == "sample of seed 0"


def test_every_block_is_followed(monkeypatch):
    """Five blocks of two chunks: an error in the last one is found, and one in all of them is named once."""
    for name in ("BLOCK", "LARGE_BLOCK"):
        monkeypatch.setattr(data_module, name, 4)
    found = judge(schedule_of(2, 9, [(0, 1, 0, 9, 1), (1, 0, 0, 8, 1)])).violations
    assert [(v.rule, v.where) for v in found] == [("contribution_missing", "chunk 8 at rank 0")]
    for row, rule in (((0, 1, 0, 9, 1), "contribution_missing"), ((0, 1, 0, 10, 1), "chunk_unknown")):
        assert [v.rule for v in judge(schedule_of(2, 9, [row])).violations] == [rule]
    assert judge(schedule_of(2, 9, [(0, 1, 0, 9, 1)])).notes == ("1 of 2 nodes end with a wrong sum",)
    copies = judge(schedule_of(2, 9, [(0, 1, 0, 9, 0), (0, 1, 0, 9, 0)])).violations
    assert [v.step for v in copies if v.rule == "chunk_overwritten"] == [0] * 5


@st.composite
def runs_of_steps(draw, most=1):
    """A schedule of runs, right or wrong, with its number of ranks and chunks; also of contributions that stay apart."""
    n, apart = draw(st.integers(2, 4)), draw(st.booleans())
    chunks = n * draw(st.integers(1, 2)) if apart else draw(st.integers(2, 6))

    def member(count):
        rows = []
        for _ in range(draw(st.integers(0, 3))):
            src, dst = draw(st.permutations(range(n)))[:2]
            size = min(draw(st.integers(1, most)), chunks)
            lo = draw(st.integers(0, chunks - size))
            rows.append((src, dst, lo, size, draw(st.sampled_from([0, 2] if apart else [0, 1, 1, 3]))))
        columns = np.array(rows).reshape(-1, 5).T
        parts = draw(st.lists(st.integers(1, 2), min_size=len(rows), max_size=len(rows))) if apart else None
        shift = draw(st.none() | st.permutations(range(chunks)).map(lambda images: Table(np.array(images))))
        return Run(lambda: Transfers.of(*columns, parts), count, shift, draw(st.integers(0, 1)) if apart else 0)

    made = []
    for count in draw(st.lists(st.integers(1, 4), min_size=1, max_size=2)):
        beside = tuple(member(count) for _ in range(draw(st.integers(0, 1))))
        made.append(replace(member(count), beside=beside))
    steps = RunSteps(tuple(made), chunks)
    made = collective("all_to_all" if apart else "all_reduce", n, chunks)
    return Schedule("hand", made, steps.num_steps, steps, steps.classes)


@examples(150)
@given(runs_of_steps())
def test_a_run_is_judged_as_its_steps(schedule):
    """The same rules are broken, first in the same step, and as often; step by step is the oracle."""
    run = judge(schedule)
    every = judge(replace(schedule, step=lambda i: schedule.step(i), classes=()))
    assert run.transfers == every.transfers
    starts = np.cumsum([0, *(one.count for one in schedule.step.runs)])
    counted = [{}, {}]
    for report, found in zip((run, every), counted, strict=True):
        for v in report.violations:
            if v.step >= 0:
                key = v.rule, int(np.searchsorted(starts, v.step, side="right"))
                first, count = found.get(key, (v.step, 0))
                found[key] = min(first, v.step), count + v.count
    assert counted[0] == counted[1]
    if not any(rule == "chunk_overwritten" for rule, _ in counted[0]):  # else the result is undefined
        ends = [{(v.rule, v.where, v.count) for v in report.violations if v.step < 0} for report in (run, every)]
        assert ends[0] == ends[1]


@examples(200)
@given(runs_of_steps(4))
def test_ranges_that_a_shift_tears_are_found(schedule):
    """Chunk by chunk, and turn by turn: the images of neighbours are neighbours."""
    chunks = schedule.collective.num_chunks
    for run in schedule.step.runs:
        base = run.base()
        torn = [
            turn
            for turn in range(run.count)
            for lo, n in zip(base.chunk_lo, base.chunk_n, strict=True)
            if run.shift is not None and (np.diff(power(run.shift.images(chunks), turn)[lo : lo + n]) != 1).any()
        ]
        found = cut_ranges(run, base, 7, collective("all_reduce", 4, chunks))
        assert (found is None) == (not torn)
        if found is not None:
            assert (found.rule, found.step, found.round) == ("run_cuts_ranges", 7 + min(torn), -1)
        nothing = base.take(np.zeros(0, int))
        assert cut_ranges(run, nothing, 7, schedule.collective) is None


@pytest.mark.parametrize(
    ("log_ranks", "width", "runs", "count", "chunks"),
    [
        (10, 1, 1, 1, 8192),  # narrow transfers: a large block
        (10, 15, 1024, 1, 8192),
        (10, 16, 1, 1, 256),  # wide ones, or runs: a small block
        (10, 1, 1, 2, 256),
        (15, 16, 1, 1, 128),  # but as many chunks as eight ranges have
        (16, 16, 1, 1, 128),
        (17, 16, 1, 1, 64),  # where a large block has them
        (10, 16, 1025, 1, 16384),  # many steps: two large blocks
        (10, 0, 1, 1, 8192),  # nothing in the first step, or no steps
        (10, 0, 0, 1, 8192),
        *((25, width, runs, 1, 1) for width, runs in ((1, 1), (16, 1), (1, 1025), (0, 1))),
    ],
)
def test_chunks_of_a_block(log_ranks, width, runs, count, chunks):
    """By the width of the transfers and the number of steps, in (rank, chunk) pairs of 2^21 or 2^23; at least one."""
    step = Transfers.of([0], [1], [0], width, Op.REDUCE) if width else Transfers.of([], [], [], [], [])
    steps = RunSteps(runs * (Run(lambda: step, count),), 32)
    wanted = Collective("sum", 1 << log_ranks, 32, True, Holders("all"), Holders("all"))
    assert data_module._chunks_together(Schedule("hand", wanted, steps.num_steps, steps)) == chunks


def named(schedule):
    """Rule, step, place, what was expected and found, and the number of each violation."""
    return [(v.rule, v.step, v.where, v.expected, v.found, v.count) for v in judge(schedule).violations]


def test_what_violations_say():
    """Of rows that do not exist, of rules of one step, and of sums."""
    unknown = ("chunk_unknown", 0, "transfer 0", "chunks 0..4")
    assert named(schedule_of(2, 5, [(0, 1, 4, 2, 1, 3)])) == [(*unknown, "0 -> 1 chunks 4..7 every 3 op 1", 1)]
    assert named(schedule_of(2, 5, [(0, 1, 4, 2, 1)])) == [(*unknown, "0 -> 1 chunks 4..5 op 1", 1)]
    twice = named(schedule_of(3, 1, [(0, 2, 0, 1, 0), (1, 2, 0, 1, 0)]))[0]
    assert twice[:5] == ("chunk_overwritten", 0, "chunk 0 of rank 2", "one copy, or sums alone", "several writes")
    empty = replace(schedule_of(3, 1, [(1, 2, 0, 1, 0)]), collective=collective("broadcast", 3, 1))
    assert named(empty)[0] == ("sent_before_held", 0, "chunk 0 of rank 1", "data to send", "none yet", 1)
    step = Transfers.of([0], [1], [1], 1, Op.MOVE, [2])
    large = Schedule("hand", collective("all_to_all", 2, 2), 1, lambda i: step)
    assert named(large)[0] == (
        "size_wrong",
        0,
        "chunk 1 of rank 0",
        "as many contributions as it has",
        "2 sent of 1",
        1,
    )
    four = "rank 1 x0, rank 2 x0, rank 3 x0, rank 4 x0"
    for ranks, text in ((5, four), (6, f"{four}, ...")):
        missing = "contribution_missing", -1, "chunk 0 at rank 0", "each contribution once", text, 2 * ranks
        assert named(schedule_of(ranks, 2)) == [missing]


def test_what_violations_of_runs_say():
    """The step is that of the run's turn."""
    base = Transfers.of([0, 1], [2, 2], 0, 1, Op.COPY)
    steps = RunSteps(
        (Run(lambda: Transfers.of([0], [1], [3], 1, Op.REDUCE)), Run(lambda: base, 2, Table([1, 0, 2, 3]))), 4
    )
    made = Schedule("hand", collective("all_reduce", 3, 4), 3, steps, steps.classes)
    assert named(made)[0][:5] == (
        "chunk_overwritten",
        1,
        "chunk 0 of rank 2",
        "one copy, or sums alone",
        "several writes",
    )
    only = replace(made, collective=collective("broadcast", 3, 4))
    found = {one[0]: one[1:] for one in named(only)}
    assert found["sent_before_held"] == (1, "chunk 0 of rank 1", "data to send", "none yet", 2)
    wide = Run(lambda: Transfers.of([0], [1], [1], 2, Op.COPY), 2, Table([1, 2, 0]))
    torn = RunSteps((wide,), 3)
    expected = "run_cuts_ranges", 1, "run from step 0", "a range", "chunks 1..2 become 2 to 0", 1
    assert named(Schedule("hand", collective("broadcast", 2, 3), 2, torn, torn.classes)) == [expected]
    later = RunSteps((Run(lambda: Transfers.of([0], [1], [0], 2, Op.COPY), 3, Table([1, 2, 0])),), 3)
    expected = "run_cuts_ranges", 2, "run from step 0", "a range", "chunks 1..2 become 2 to 0", 1
    assert named(Schedule("hand", collective("broadcast", 2, 3), 3, later, later.classes)) == [expected]
    far = RunSteps((Run(lambda: Transfers.of([0], [1], [0], 2, Op.COPY, chunk_step=2), 2, Table([1, 2, 0])),), 3)
    expected = "run_cuts_ranges", 0, "run from step 0", "neighbouring chunks", "chunks apart", 1
    assert named(Schedule("hand", collective("broadcast", 2, 3), 2, far, far.classes)) == [expected]


def test_a_wrong_sum_is_refused_whatever_its_explanation(monkeypatch):
    """Where counting backwards finds every contribution once."""
    monkeypatch.setattr("opticcl.verify.explain.contributions", lambda schedule, rank, chunk: np.ones(2, int))
    missing = "contribution_missing", -1, "chunk 0 at rank 0", "each contribution once", "others", 2
    assert named(schedule_of(2, 1)) == [missing]
