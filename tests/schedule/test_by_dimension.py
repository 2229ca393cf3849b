"""All-to-all, one dimension of a grid after the other."""

from __future__ import annotations

import pytest
from tests.schedule.oracle import check

from opticcl.circuits import lower
from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric, job
from opticcl.schedule import generate


@pytest.mark.parametrize(
    ("nodes", "shape"),
    [(1, "1"), (2, "2"), (7, "7"), (12, "12"), (12, "2x6"), (12, "3x2x2"), (64, "4x4x4"), (30, "5x6")],
)
def test_right_at_every_rank(nodes: int, shape: str) -> None:
    """Lines, grids and cubes on fully linked nodes; a step for each side above 1."""
    schedule = check(f"by_dimension:shape={shape}", "all_to_all", fabric("ideal", nodes=nodes))
    assert schedule.num_steps == sum(int(side) > 1 for side in shape.split("x"))


def test_a_job_on_one_line() -> None:
    """Three nodes of a row are a line of their own."""
    where = job(fabric("oddl:shape=2x5,wavelengths=4"), [9, 5, 7])
    assert check("by_dimension", "all_to_all", where).num_steps == 1


def test_data_of_each_step() -> None:
    """4 x 8: three times a quarter of the buffer, then seven times an eighth, in blocks of 1 and 4 contributions."""
    schedule = generate("by_dimension:shape=4x8", "all_to_all", fabric("ideal:nodes=32"))
    first, second = schedule.step(0), schedule.step(1)
    assert (len(first), len(second)) == (32 * 3, 32 * 7)
    assert set(first.size_chunks()) == {8}
    assert set(second.size_chunks()) == {4}


@pytest.mark.parametrize(("shape", "needed"), [("8", 7), ("4x4", 3), ("2x8x2", 7), ("3x5", 4)])
def test_wavelengths_that_a_switch_needs(shape: str, needed: int) -> None:
    """ODDL: side - 1, one less is refused with the right number; the default of log2(side) is too few."""
    enough, fewer = (fabric("oddl", shape=shape, wavelengths=w) for w in (needed, needed - 1))
    check("by_dimension", "all_to_all", enough)
    for where in (fewer, fabric("oddl", shape=shape)):
        with pytest.raises(UnsupportedError, match=f"needs {needed} wavelengths a switch, .*wavelengths={needed}"):
            lower(where, generate("by_dimension", "all_to_all", where))
