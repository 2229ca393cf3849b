"""Chunks that few ranks hold are followed at these alone: the same verdicts as at all ranks."""

from dataclasses import replace

import numpy as np
import pytest

from opticcl.collective import Request, collective
from opticcl.fabrics import fabric
from opticcl.ir import Op, Schedule, Transfers
from opticcl.ir.symmetry import Digits, Run, RunSteps, Symmetry, Table
from opticcl.schedule import generate
from opticcl.verify import chunk_rows, data
from opticcl.verify.data import check_data
from opticcl.verify.few_ranks import few_ranks

RAMP = "ramp:groups=3,racks=3,wavelengths=6"


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """As if the machine were so large that its cells are followed in blocks."""
    monkeypatch.setattr(data, "BLOCK", 1 << 8)
    monkeypatch.setattr(data, "LARGE_BLOCK", 1 << 9)
    monkeypatch.setattr("opticcl.verify.few_ranks.CHUNKS_AT_ONCE", 16)


def made(collective, algorithm="ramp"):
    """A schedule with root 5."""
    return generate(algorithm, Request(collective, 5), fabric(RAMP))


def changed(schedule, step, change) -> Schedule:
    """The schedule with another step."""
    return replace(schedule, step=lambda i: change(schedule.step(i)) if i == step else schedule.step(i))


@pytest.mark.parametrize("collective", ["gather", "scatter", "send_recv"])
def test_every_chunk_is_followed_once_at_the_ranks_that_may_hold_it(collective):
    """Ranks that hold, pass or need a chunk are among them; parts are as small as allowed."""
    schedule = made(collective, "send_recv" if collective == "send_recv" else "ramp")
    few = few_ranks(schedule)
    assert few is not None
    assert few.transfers == sum(len(schedule.step(i)) for i in range(schedule.num_steps))
    followed, every = [], np.arange(schedule.collective.num_chunks)
    for chunks, ranks, part in few.parts(every, 200):
        followed += chunks.tolist()
        assert len(ranks) * len(chunks) <= 200
        assert part.collective.num_ranks == len(ranks) < schedule.collective.num_ranks
    assert followed == every.tolist()
    report = check_data(schedule)
    assert (report.violations, report.exhaustive, report.how) == ((), True, "every chunk followed")
    assert report.transfers == few.transfers


def at_rank_0(*steps, num_ranks=8):
    """A gather of a chunk of each rank to rank 0, by hand; the rows of its steps."""
    return Schedule("hand", collective("gather", num_ranks, num_ranks), len(steps), steps.__getitem__)


DIRECT = Transfers.of(np.arange(1, 8), 0, np.arange(1, 8), 1, Op.COPY)


@pytest.mark.parametrize(
    ("most_cells", "due"),
    [
        (64, [[0, 1, 2, 3, 4, 5, 6, 7]]),
        (63, [[0, 1, 2, 3], [4, 5, 6, 7]]),  # at ranks 0 to 3, and at rank 0 and ranks 4 to 7
        (20, [[0, 1, 2, 3], [4, 5, 6, 7]]),
        (19, [[0, 1, 2, 3], [4, 5], [6, 7]]),
        (6, [[0, 1], [2, 3], [4, 5], [6, 7]]),
        (5, [[0, 1], [2], [3], [4], [5], [6], [7]]),
        (0, [[0], [1], [2], [3], [4], [5], [6], [7]]),
    ],
)
def test_parts_are_halves_until_they_are_small(most_cells, due):
    """A chunk of a gather is at its rank and at rank 0; one chunk is never cut."""
    parts = list(few_ranks(at_rank_0(DIRECT)).parts(np.arange(8), most_cells))
    assert [chunks.tolist() for chunks, _, _ in parts] == due
    assert [ranks.tolist() for _, ranks, _ in parts] == [sorted({0, *chunks}) for chunks in due]


def test_runs_blocks_and_predicates_are_followed_at_all_ranks():
    """Two steps of one definition, two at once, steps many at a time, and holders that only a function knows."""
    one = Run(lambda: DIRECT)
    for run, fits in ((one, True), (replace(one, count=2), False), (replace(one, beside=(one,)), False)):
        steps = RunSteps((run,), 8)
        assert (few_ranks(replace(at_rank_0(DIRECT), num_steps=steps.num_steps, step=steps)) is not None) == fits
    where = fabric("terarack:nodes=17,wavelengths=1")
    many = generate("wavelength_exchange", Request("all_to_all"), where)
    rows = [many.step(i) for i in range(many.num_steps)]
    c = at_rank_0().collective
    wanted = replace(many.collective, before=c.after, after=c.after)
    assert few_ranks(replace(many, collective=wanted)) is None
    assert few_ranks(replace(many, collective=wanted, step=lambda i: rows[i])) is not None
    for name in ("before", "after"):
        asked = replace(c, **{name: lambda rank, chunk: rank == chunk})
        assert few_ranks(replace(at_rank_0(DIRECT), collective=asked)) is None


def test_as_many_rows_as_can_be_kept(monkeypatch):
    """Of two steps with three chunks that are no neighbours; of one with more, rows are not even made."""
    two = at_rank_0(*[Transfers.of([1], [0], [at], 3, Op.COPY, chunk_step=2) for at in (0, 1)])
    monkeypatch.setattr("opticcl.verify.few_ranks.MOST_ROWS", 6)
    found = few_ranks(two)
    assert [step.chunk_lo.tolist() for step in found.steps] == [[0, 2, 4], [1, 3, 5]]
    assert found.transfers == 2
    for most in (5, 3, 2):
        monkeypatch.setattr("opticcl.verify.few_ranks.MOST_ROWS", most)
        assert few_ranks(two) is None
    one = replace(two, num_steps=1)
    assert few_ranks(one) is None
    monkeypatch.setattr(chunk_rows, "MOST_APART", 2)
    assert few_ranks(one) is None
    monkeypatch.setattr(chunk_rows, "MOST_APART", 3)
    monkeypatch.setattr("opticcl.verify.few_ranks.MOST_ROWS", 3)
    assert few_ranks(one) is not None


@pytest.mark.parametrize(("src", "dst", "chunk"), [(-1, 0, 0), (0, -1, 0), (8, 0, 0), (0, 8, 0), (0, 1, 8), (0, 1, -1)])
def test_what_does_not_exist_is_followed_at_all_ranks(src, dst, chunk):
    """A sender, a receiver or a chunk; an empty step is nothing wrong."""
    nothing = DIRECT.take(slice(0, 0))
    assert few_ranks(at_rank_0(nothing, DIRECT)) is not None
    wrong = Transfers.of([src], [dst], [chunk], 1, Op.COPY)
    assert few_ranks(at_rank_0(nothing, DIRECT, wrong)) is None


@pytest.mark.parametrize("collective", ["gather", "scatter"])
@pytest.mark.parametrize("kind", ["dropped", "doubled", "elsewhere", "other chunk", "unknown rank", "unknown chunk"])
def test_wrong_plans_are_refused_as_at_all_ranks(collective, kind, monkeypatch):
    """The same violations, with the numbers of the machine's ranks."""
    schedule = made(collective)

    def change(rows):
        last = len(rows) - 1
        if kind == "dropped":
            return rows.take(slice(0, last))
        if kind == "doubled":
            return rows.take(np.array([*range(last + 1), last]))
        column, by = {
            "elsewhere": ("dst", 1), "other chunk": ("chunk_lo", -1), "unknown rank": ("src", 10**6),
            "unknown chunk": ("chunk_lo", 10**6),
        }[kind]  # fmt: skip
        values = getattr(rows, column).copy()
        values[last] += by
        return replace(rows, **{column: values})

    wrong = changed(schedule, schedule.num_steps - 1, change)
    found = check_data(wrong)
    monkeypatch.setattr(data, "few_ranks", lambda schedule: None)
    assert found.violations == check_data(wrong).violations
    assert found.violations


def test_a_rank_that_takes_no_part_but_needs_a_chunk_is_noticed():
    """A scatter that forgets a receiver altogether."""
    schedule = made("scatter")
    forgotten = 17

    def change(rows):
        return rows.take((rows.dst != forgotten) & (rows.src != forgotten))

    wrong = replace(schedule, step=lambda i: change(schedule.step(i)))
    assert "contribution_missing" in {violation.rule for violation in check_data(wrong).violations}


@pytest.mark.parametrize("collective", ["all_reduce", "reduce", "all_gather"])
def test_others_are_followed_at_all_ranks(collective):
    """All ranks hold each chunk, at the start or at the end."""
    assert few_ranks(made(collective)) is None


def test_progress_of_parts():
    """Chunks that are followed so far, and the last call says all."""
    calls = []
    check_data(made("gather"), progress=lambda *call: calls.append(call))
    done = [call[1] for call in calls]
    assert done == sorted(set(done))
    assert done[0] > 0
    assert calls[-1] == ("follow the data", 54, 54)


@pytest.mark.parametrize("missing", range(8))
def test_claims_are_checked_beside_blocks_of_chunks(monkeypatch, missing):
    """A send_recv that claims its rotation and lacks one transfer is refused, whichever chunks stand for the others."""
    monkeypatch.setattr(data, "SYMMETRY_FROM", 0)
    monkeypatch.setattr(data, "BLOCK", 2)
    monkeypatch.setattr(data, "LARGE_BLOCK", 2)
    n = 4
    every = np.repeat(np.arange(n), 2)
    rows = Transfers.of(every, (every + 1) % n, np.arange(2 * n), 1, Op.COPY)
    rotation = Symmetry(Digits((n,), 0, 1), Table((np.arange(2 * n) + 2) % (2 * n)))
    wanted = collective("send_recv", n, 2 * n)
    right = Schedule("hand", wanted, 1, lambda i: rows, symmetries=(rotation,))
    assert "symmetry of order 4" in check_data(right).how
    lacking = rows.take(np.arange(2 * n) != missing)
    report = check_data(replace(right, step=lambda i: lacking))
    assert [violation.rule for violation in report.violations] == ["contribution_missing"]
    assert "claim refused" in report.notes[0]
