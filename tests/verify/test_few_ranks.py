"""Chunks that few ranks hold are followed at these alone: the same verdicts as at all ranks."""

from dataclasses import replace

import numpy as np
import pytest

from opticcl.collective import Request, collective
from opticcl.fabrics import fabric
from opticcl.ir import Op, Schedule, Transfers
from opticcl.ir.symmetry import Digits, Symmetry, Table
from opticcl.schedule import generate
from opticcl.verify import data
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
