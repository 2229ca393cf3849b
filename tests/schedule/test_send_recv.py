"""send_recv: one step, any shift."""

from __future__ import annotations

import pytest
from tests.schedule.oracle import check

from opticcl.collective import Request
from opticcl.fabrics import fabric, job
from opticcl.schedule import reason_declined


@pytest.mark.parametrize("nodes", [1, 2, 7])
@pytest.mark.parametrize("shift", [1, 2, 5, -1, 0, 16])
def test_every_shift(nodes: int, shift: int) -> None:
    """One step, none where every rank would send to itself; shifts wrap around, backwards too."""
    schedule = check("send_recv", Request("send_recv", shift=shift), fabric("ideal", nodes=nodes))
    assert schedule.num_steps == (1 if shift % nodes else 0)


def test_a_job_counts_its_own_ranks() -> None:
    """Rank r of the job sends to rank r + 1 of the job, wherever they stand."""
    schedule = check("send_recv", "send_recv", job(fabric("terarack:nodes=9"), [8, 3, 5]))
    assert schedule.step(0).dst.tolist() == [1, 2, 0]


def test_what_is_declined() -> None:
    """Pairs that no circuit joins."""
    where = fabric("oddl:shape=2x4")
    reason = reason_declined("send_recv", "send_recv", where)
    assert reason == "no single circuit joins nodes (0, 3) and (1, 0)"
    assert reason_declined("send_recv", Request("send_recv", shift=4), where) is None
