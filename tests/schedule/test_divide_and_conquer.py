"""Divide and conquer: squares first, the whole buffer in every step."""

from __future__ import annotations

import numpy as np
import pytest
from tests.altered import altered

import opticcl
from opticcl.circuits import lower
from opticcl.fabrics import fabric, fabric_at_scale, job
from opticcl.fabrics.lightpath import tile_of_node
from opticcl.ir import Schedule
from opticcl.schedule import generate, reason_declined
from opticcl.schedule.divide_and_conquer import order
from opticcl.verify import verify


def schedule(where: str, num_nodes: int, square: str = "pairs", collective: str = "all_reduce") -> Schedule:
    """On that fabric."""
    return generate(f"divide_and_conquer:square={square}", collective, fabric_at_scale(where, num_nodes))


@pytest.mark.parametrize(("square", "steps"), [("pairs", 8), ("at_once", 7)])
def test_steps_of_256(square: str, steps: int) -> None:
    """log2 N steps of the whole buffer, one less if a square exchanges at once."""
    made = schedule("lightpath", 256, square)
    assert made.num_steps == steps
    assert made.collective.num_chunks == 1


@pytest.mark.parametrize("numbering", ["row", "squares", "random"])
def test_squares_come_first(numbering: str) -> None:
    """On 8 x 8 tiles the first two steps stay within squares of 2 x 2, the next two within 4 x 4, however numbered."""
    where = fabric(f"lightpath:shape=8x8,numbering={numbering}")
    row, column = np.divmod(tile_of_node((8, 8), numbering), 8)
    made = generate("divide_and_conquer", "all_reduce", where)
    for i in range(6):
        step = made.step(i)
        side = 2 << i // 2
        for place in (row, column):
            assert (place[step.src] // side == place[step.dst] // side).all()
        moved = np.abs(row[step.src] - row[step.dst]) + np.abs(column[step.src] - column[step.dst])
        assert (moved == side // 2).all()


def test_a_job_takes_its_tiles_square_by_square() -> None:
    """Nodes of the two squares on the left of 4 x 4 tiles, given in any order."""
    part = job(fabric("lightpath:shape=4x4"), [13, 0, 9, 5, 4, 12, 1, 8])
    assert [int(part.machine_nodes(np.array(r))) for r in order(part)] == [0, 1, 4, 5, 8, 9, 12, 13]
    verify(lower(part, generate("divide_and_conquer", "all_reduce", part))).raise_if_bad()


@pytest.mark.parametrize(("square", "crossing_mb"), [("pairs", 16.07), ("at_once", 13.58)])
def test_loses_to_the_ring_above(square: str, crossing_mb: float) -> None:
    """256 GPUs; the paper has 16 MB (section 5), which speaks for pairs."""

    def us(algorithm: str, where: str, size: float) -> float:
        return (
            opticcl.compile(where, "all_reduce", size, algorithm=algorithm).simulate(assumptions="lumorph").total_s
            * 1e6
        )

    rival = ("ring", "ideal:nodes=256,rate=300 GB/s,latency=0.7 us")
    ours = (f"divide_and_conquer:square={square}", "lightpath")
    for factor, ring_wins in ((0.99, False), (1.01, True)):
        size = round(factor * crossing_mb * 1e6)
        assert (us(*rival, size) < us(*ours, size)) is ring_wins


def test_declines_with_a_reason() -> None:
    """Nodes without a circuit."""
    line = altered(fabric("ideal:nodes=8"), linked=lambda self, src, dst: np.abs(src - dst) == 1)
    assert reason_declined("divide_and_conquer", "all_reduce", line) == "no single circuit joins nodes 2 and 0"
