"""send_recv: one step, any shift."""

from __future__ import annotations

import pytest
from tests.schedule.oracle import check

from opticcl.circuits import lower
from opticcl.collective import Request
from opticcl.fabrics import fabric, job
from opticcl.ir import Transfers
from opticcl.schedule import generate, reason_declined
from opticcl.verify import verify


@pytest.mark.parametrize("nodes", [1, 2, 7])
@pytest.mark.parametrize("shift", [1, 2, 5, -1, 0, 16])
def test_every_shift(nodes: int, shift: int) -> None:
    """One step, none where every rank would send to itself; shifts wrap around, backwards too."""
    schedule = check("send_recv", Request("send_recv", shift=shift), fabric("ideal", nodes=nodes))
    assert schedule.num_steps == (1 if shift % nodes else 0)


@pytest.mark.parametrize(
    "name", ["terarack:nodes=9", "oddl:shape=5,wavelengths=5", "sipac:radix=5,levels=1", "lightpath:shape=3x3"]
)
def test_on_light(name: str) -> None:
    """One circuit a rank."""
    check("send_recv", Request("send_recv", shift=2), fabric(name))


def test_a_job_counts_its_own_ranks() -> None:
    """Rank r of the job sends to rank r + 1 of the job, wherever they stand."""
    schedule = check("send_recv", "send_recv", job(fabric("terarack:nodes=9"), [8, 3, 5]))
    assert schedule.step(0).dst.tolist() == [1, 2, 0]


def test_what_is_declined() -> None:
    """Other collectives, and pairs that no circuit joins."""
    where = fabric("oddl:shape=2x4")
    assert reason_declined("send_recv", "broadcast", where) == "it does send_recv only"
    reason = reason_declined("send_recv", "send_recv", where)
    assert reason == "no single circuit joins nodes (0, 3) and (1, 0)"
    assert reason_declined("send_recv", Request("send_recv", shift=4), where) is None


def test_a_block_for_the_wrong_rank_is_refused() -> None:
    """Sent one too far."""
    where = fabric("ideal:nodes=5")
    right = generate("send_recv", "send_recv", where)
    wrong = generate("send_recv", Request("send_recv", shift=2), where)
    schedule = type(right)("send_recv", right.collective, 1, lambda i: Transfers.of(*_columns(wrong.step(i))))
    assert {v.rule for v in verify(lower(where, schedule)).violations} == {"contribution_missing"}


def _columns(t: Transfers) -> tuple[object, ...]:
    return t.src, t.dst, t.chunk_lo, t.chunk_n, t.op
