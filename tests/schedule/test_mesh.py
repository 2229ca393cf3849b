"""Direct exchange: pairs, right results, and what it declines."""

from __future__ import annotations

import numpy as np
import pytest
from tests.altered import altered

from opticcl.circuits import lower
from opticcl.collective import Request
from opticcl.fabrics import fabric, fabric_at_scale, job
from opticcl.ir import Schedule
from opticcl.schedule import generate, reason_declined
from opticcl.verify import verify

OF_ALL = ("all_to_all", "reduce_scatter", "all_gather", "all_reduce", "barrier")
WITH_ROOT = ("broadcast", "scatter", "gather", "reduce")


def schedule(collective: str | Request, num_nodes: int) -> Schedule:
    """On the ideal switch."""
    return generate("mesh", collective, fabric_at_scale("ideal", num_nodes))


@pytest.mark.parametrize(
    ("collective", "steps", "transfers"), [("all_to_all", 1, 56), ("all_reduce", 2, 56), ("scatter", 1, 7)]
)
def test_steps_and_transfers_of_eight(collective: str, steps: int, transfers: int) -> None:
    """N (N - 1) or N - 1 transfers of one chunk a step."""
    made = schedule(collective, 8)
    assert [len(made.step(i)) for i in range(made.num_steps)] == [transfers] * steps
    assert all((made.step(i).chunk_n == 1).all() for i in range(steps))


def test_rows_go_by_offset() -> None:
    """The first N rows are a permutation, so are the next."""
    step = schedule("all_to_all", 7).step(0)
    for rows in np.split(np.arange(42), 6):
        assert sorted(step.src[rows]) == sorted(step.dst[rows]) == list(range(7))
    assert ((step.dst - step.src) % 7).tolist() == sorted(((step.dst - step.src) % 7).tolist())


@pytest.mark.parametrize("nodes", [[3, 1, 7], [5, 4, 9, 0, 15, 14, 2, 8, 11], [6]])
def test_part_of_a_machine(nodes: list[int]) -> None:
    """Ranks are not nodes: a job on some tiles of a wafer."""
    part = job(fabric("lightpath:shape=4x4,numbering=squares,lasers=4"), nodes)
    for collective in OF_ALL + WITH_ROOT:
        verify(lower(part, generate("mesh", collective, part))).raise_if_bad()


def test_declines_with_a_reason() -> None:
    """Pairs without a circuit."""
    assert reason_declined("mesh", "broadcast", fabric("ideal:nodes=5001")) is None
    line = altered(fabric("ideal:nodes=8"), linked=lambda self, src, dst: np.abs(src - dst) == 1)
    assert reason_declined("mesh", "all_gather", line) == "no single circuit joins nodes 7 and 0"
    assert reason_declined("mesh", Request("gather", 3), line) == "no single circuit joins nodes 5 and 3"
    part = job(fabric("oddl:shape=2x8"), [15, 1, 0])
    assert reason_declined("mesh", "all_gather", part) == "no single circuit joins nodes (1, 7) and (0, 1)"
