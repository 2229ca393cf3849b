"""The check of the data, on schedules written by hand."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.collective import Request, collective
from opticcl.errors import ParameterError
from opticcl.fabrics import fabric
from opticcl.ir import Op, Schedule, Transfers
from opticcl.schedule import generate
from opticcl.verify.data.contributions import check_data
from opticcl.verify.data.explain import contributions_of, events_of


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
    assert contributions_of(events_of(all_reduce, 0), 0, all_reduce.collective.num_ranks)[0] == 2**40


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
            assert np.array_equal(contributions_of(events_of(schedule, chunk), rank, len(counts)), counts[rank, chunk])


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
def test_progress_is_reported(num_ranks):
    """Block of chunks by block."""
    reports = []
    schedule = schedule_of(num_ranks, 1, *([[(0, 1, 0, 1, 1)]] * 3 if num_ranks > 1 else []))
    judge(schedule, progress=lambda *what: reports.append(what))
    assert reports == [("follow the data", 1, 1)]


def test_the_collective_decides_what_is_due():
    """A reduce to rank 0 is right where only rank 0 must hold the sum."""
    only_up = schedule_of(3, 1, [(1, 0, 0, 1, 1), (2, 0, 0, 1, 1)])
    due = replace(only_up.collective, after=lambda rank, chunk: rank == 0)
    assert judge(only_up).violations
    assert not judge(replace(only_up, collective=due)).violations


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


def test_a_wrong_sum_is_refused_whatever_its_explanation(monkeypatch):
    """Where counting backwards finds every contribution once."""
    monkeypatch.setattr(
        "opticcl.verify.data.explain.contributions_of", lambda events, rank, num_places: np.ones(2, int)
    )
    missing = "contribution_missing", -1, "chunk 0 at rank 0", "each contribution once", "others", 2
    assert named(schedule_of(2, 1)) == [missing]


@pytest.mark.parametrize("algorithm", ["ramp", "skewed_exchange"])
def test_a_digit_of_one_value_moves_nothing(algorithm):
    """Racks of RAMP may have one node a wavelength: an exchange of 4,096 nodes is proven by one chunk all the same."""
    machine = fabric("ramp:groups=16,racks=16,wavelengths=16")
    report = judge(generate(algorithm, Request("all_to_all"), machine))
    assert not report.violations
    assert report.exhaustive
    assert report.how == "one of 4,096 chunks played, which stand for all by translation"
