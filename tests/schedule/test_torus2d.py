"""Rings along rows and columns."""

from __future__ import annotations

import pytest
from tests.schedule.oracle import check

from opticcl.fabrics import fabric, job
from opticcl.schedule import generate

COLLECTIVES = ["all_reduce", "reduce_scatter", "all_gather", "all_to_all"]


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("shape", ["12x1", "1x12", "2x6", "6x2", "4x3"])
def test_any_shape(collective: str, shape: str) -> None:
    """Flat, high and narrow, the sides the other way round."""
    schedule = check(f"torus2d:shape={shape}", collective, fabric("ideal:nodes=12"))
    rows, columns = map(int, shape.split("x"))
    assert schedule.num_steps == (rows + columns - 2) * (2 if collective == "all_reduce" else 1)


def test_a_job_is_near_a_square() -> None:
    """Six of nine nodes, in another order."""
    schedule = check("torus2d", "all_reduce", job(fabric("terarack:nodes=9"), [5, 0, 7, 2, 8, 4]))
    assert schedule.num_steps == 2 * (2 + 3 - 2)


def test_steps_data_and_classes() -> None:
    """1024 nodes: 124 steps in four classes instead of 2046, and no more than 2(N-1)/N of the message."""
    schedule = generate("torus2d", "all_reduce", fabric("ideal:nodes=1024"))
    assert schedule.num_steps == 124
    assert [len(steps) for steps in schedule.step_classes()] == [31, 31, 31, 31]
    sent = sum(int(schedule.step(s.start).chunk_n[0]) * len(s) for s in schedule.step_classes())
    assert sent / 1024 == pytest.approx(2 * 1023 / 1024)


def test_an_all_to_all_sends_less_than_a_ring() -> None:
    """Sixteen nodes: 6 + 6 quarters of the buffer against 7.5 buffers of the ring."""
    schedule = generate("torus2d", "all_to_all", fabric("ideal:nodes=16"))
    sent = sum(int(schedule.step(i).size_chunks()[0]) for i in range(schedule.num_steps))
    assert sent / 16 == pytest.approx(3.0)
