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
from opticcl.ir import Op, Schedule, Transfers, Violation
from opticcl.ir.phases import UNIT, MessagePart, Phase, PhaseRows, Space, Steps
from opticcl.schedule import generate
from opticcl.verify.data.contributions import DataReport, check_data, never_too_large
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


LIMITS = "opticcl.verify.data.contributions"


def test_what_is_too_large_to_be_judged(monkeypatch):
    """Chunks that all transfers carry are counted, of lists and of phases; a plan at the limit is judged."""
    lists = schedule_of(2, 4, [(0, 1, 0, 2, 1), (1, 0, 0, 3, 1)], [(0, 1, 3, 1, 1, 1)])
    same = replace(lists, step=lambda i: lists.step(0), classes=(range(2),))  # the first of a class stands for it
    box = PhaseRows.of(2, 0, (0, 1), 0, (1, 3), unit_count=2, part=1)
    other = PhaseRows.of(2, 0, (1, 0), 0, unit_lo=1, part=1)
    parts = [MessagePart(((UNIT, 1, 2),), 2), MessagePart(((1, 1, 3), (UNIT, 1, 2)), 2)]
    steps = Steps(Space((2, 3)), parts, [Phase(box, (True, False), 2), Phase(other, (False, True), 3)])
    held = replace(collective("all_reduce", 6, 8), after=lambda rank, chunk: rank < 0)
    phases = Schedule.of("phases", held, steps)
    wide = lists.in_groups(5)
    for schedule, carried in ((lists, 6), (same, 10), (phases, 2 * 2 * 3 * 2 + 3 * 3), (wide, 6)):
        monkeypatch.setattr(f"{LIMITS}.CHUNKS_CARRIED", carried)
        report = judge(schedule)
        assert report.judged
        assert report.exhaustive
        assert never_too_large(schedule)
        monkeypatch.setattr(f"{LIMITS}.CHUNKS_CARRIED", carried - 1)
        report = judge(schedule)
        text = f"{carried} chunks carried by transfers, which no translations make of few; at most {carried - 1}"
        assert report == DataReport((Violation("not_judged", -1, -1, text, "a proof", "none"),), 0, 0, False, "", ())
        assert not report.judged
        assert not never_too_large(schedule)
        assert judge(schedule, num_chunks=1).judged
    ring = generate("ring", "all_reduce", fabric("ideal:nodes=4"))
    monkeypatch.setattr(f"{LIMITS}.CHUNKS_CARRIED", 0)
    assert never_too_large(ring)
    assert judge(ring).how.startswith("one of 4 chunks")


def test_reports_on_rows_that_are_refused():
    """What was counted until then."""
    bad = judge(schedule_of(2, 1, [(0, 1, 0, 1, 1), (1, 0, 0, 1, 1)], [(0, 1, 0, 1, 1)], [(0, 1, 1, 1, 1)]))
    (found,) = bad.violations
    assert (found.rule, found.step, bad.transfers, bad.chunks, bad.exhaustive) == ("chunk_unknown", 2, 3, 0, False)
    assert (bad.how, bad.notes) == ("", ())
    ring = generate("ring", "all_reduce", fabric("ideal:nodes=4"))
    other = replace(ring, collective=collective("all_reduce", 5, 4))
    fewer = replace(ring, collective=collective("all_reduce", 4, 8))
    nothing = Schedule.of("none", collective("all_reduce", 2, 1), Steps(Space((2,)), [], []))
    for one, due, said in (
        (other, "5 ranks, 4 chunks", "4 ranks, 4 chunks"),
        (fewer, "4 ranks, 8 chunks", "4 ranks, 4 chunks"),
        (nothing, "2 ranks, 1 chunks", "2 ranks, 0 chunks"),
    ):
        violation = Violation("rank_unknown", -1, -1, "phases", due, said)
        assert judge(one) == DataReport((violation,), 0, 0, False, "", ())


@pytest.mark.parametrize(("parts", "by", "count"), [(1, 1, 2), (2, -1, 2), (3, -1, 3), (2, 0, 1)])
def test_sums_of_several_parts_are_refused(parts, by, count):
    """In any step of a phase, the first or the last."""
    ring = generate("ring", "all_reduce", fabric("ideal:nodes=4"))
    rows = replace(ring.steps.phases[1].rows, parts=np.array([parts]), parts_step=np.array([by]))
    phases = [ring.steps.phases[0], replace(ring.steps.phases[1], rows=rows, count=count)]
    (found,) = judge(
        Schedule.of("parts", ring.collective, Steps(ring.steps.space, ring.steps.parts, phases))
    ).violations
    assert (found.rule, found.step, found.where, found.found) == ("size_wrong", 3, "transfer 0", "row 0")


@pytest.mark.parametrize(("cut", "halves"), [(None, 1), (0, 1), (1, 2), (2, 2), (3, 1), (4, 1)])
def test_where_a_plan_is_cut(cut, halves, monkeypatch):
    """In front of a phase that is not the first; each half is judged for itself, and what is counted is added up."""
    monkeypatch.setattr(f"{LIMITS}.CHUNKS_AS_A_PHASE", -(1 << 40))
    mesh = generate("mesh", "all_reduce", fabric("ideal:nodes=4"))
    nothing = Phase(mesh.steps.phases[0].rows.take(slice(0)), (True,))
    first, second = mesh.steps.phases
    phases = [first, nothing, second]
    seen = []
    made = Schedule.of("cut", mesh.collective, Steps(mesh.steps.space, mesh.steps.parts, phases), cut=cut)
    report = judge(made, progress=lambda *what: seen.append(what))
    assert seen == [("follow the data", 1, 1)] * halves
    assert (report.violations, report.transfers, report.chunks) == ((), 24, 4)
    assert report.how == "one of 4 chunks played, which stand for all by translation"


def test_contributions_that_are_kept_apart_are_not_cut():
    """Behind an exchange an owner gives its chunk away, as if it were one contribution, and gets it back."""
    mesh = generate("mesh", "all_to_all", fabric("ideal:nodes=4"))
    for parts, due in ((4, set()), (1, {"size_wrong"})):
        more = [Phase(PhaseRows.of(1, 0, to, lo, op=Op.MOVE, parts=parts), (True,)) for to, lo in ((1, 0), (3, 3))]
        steps = Steps(mesh.steps.space, mesh.steps.parts, [*mesh.steps.phases, *more])
        for cut in (None, 1):
            assert {v.rule for v in judge(Schedule.of("more", mesh.collective, steps, cut=cut)).violations} == due


@pytest.mark.parametrize(
    ("together", "ends"), [(1 << 20, [5]), (8, [3, 5]), (5, [2, 4, 5]), (2, [1, 2, 3, 4, 5]), (1, [1, 2, 3, 4, 5])]
)
def test_chunks_are_played_in_blocks(together, ends, monkeypatch):
    """As many as carry that many transfers; what is wrong with each is added up, and the first step is named."""
    monkeypatch.setattr(f"{LIMITS}.EVENTS_TOGETHER", together)
    seen = []
    wrong = schedule_of(3, 5, [(0, 1, 0, 5, 1)], [(0, 1, 4, 1, 0), (2, 1, 4, 1, 0)], [(0, 2, 0, 2, 0), (1, 2, 0, 2, 0)])
    report = judge(wrong, progress=lambda *what: seen.append(what))
    assert seen == [("follow the data", end, 5) for end in ends]
    assert (report.transfers, report.chunks, report.how) == (5, 5, "every chunk played")
    overwritten, *sums = report.violations
    assert (overwritten.rule, overwritten.count) == ("chunk_overwritten", 3)
    if len(ends) > 1:
        assert (overwritten.step, overwritten.where) == (1, "chunk 4 of rank 1")
    assert {v.count for v in sums} == {15}
    assert report.notes == ("3 of 3 nodes end with a wrong sum",)


def test_runs_of_a_sample_are_played_together(monkeypatch):
    """Chunks of a sample that are no neighbours are blocks of their own."""
    right = schedule_of(2, 50, [(0, 1, 0, 50, 1), (1, 0, 0, 50, 1)])
    seen = []
    judge(right, num_chunks=20, seed=3, progress=lambda _, done, __: seen.append(done))
    chunks = np.sort(np.random.default_rng(3).choice(50, size=20, replace=False))
    assert seen == (chunks[np.append(np.diff(chunks) > 1, True)] + 1).tolist()
    wrong = check_data(schedule_of(2, 50), num_chunks=3, seed=4)
    assert wrong.notes == ("sample of seed 4", "2 of 2 nodes end with a wrong sum")
    assert (wrong.how, wrong.chunks, wrong.exhaustive) == ("sample", 3, False)
