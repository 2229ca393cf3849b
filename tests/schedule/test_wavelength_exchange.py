"""All-to-all exchange by laps round the ring: every pair once, full fibres, the right data."""

from __future__ import annotations

import numpy as np
import pytest
from tests.schedule.oracle import check
from tests.schedule.test_wrht import ring

from opticcl.circuits import lower
from opticcl.fabrics import fabric
from opticcl.schedule import generate
from opticcl.schedule.wavelength_exchange import arcs, exchange_wavelengths, lap_of


def test_exchange_wavelengths() -> None:
    """The most nodes that 1, 2, 4, ..., 256 wavelengths serve."""
    most = [max(r for r in range(1, 64) if exchange_wavelengths(r) <= 2**k) for k in range(9)]
    assert most == [3, 4, 5, 8, 11, 16, 22, 32, 45]


def test_every_pair_once() -> None:
    """R = 2 to 65: each ordered pair has one arc, in exactly the laps of the formula, however these are cut."""
    for count in range(2, 66):
        laps = exchange_wavelengths(count)
        src, dst = arcs(count, 0, laps)
        assert len(np.unique(src * count + dst)) == len(src) == count * (count - 1)
        _, lap = lap_of(count, src, dst)
        assert set(lap.tolist()) == set(range(laps))
        piece = laps // 4 + 1
        for first in range(0, laps + piece, piece):
            assert set(lap_of(count, *arcs(count, first, piece))[1]) == set(range(first, min(first + piece, laps)))


def test_laps_close_the_circle() -> None:
    """The arcs of a lap are once round the ring, so no fibre has room left; R = 22 needs all 61."""
    src, dst = arcs(22, 0, 61)
    direction, lap = lap_of(22, src, dst)
    length = (dst - src) * (1 - 2 * direction) % 22
    round_the_ring = np.bincount(direction * 61 + lap, length)
    assert set(round_the_ring) == {22}


@pytest.mark.parametrize("wavelengths", [1, 3, 64])
@pytest.mark.parametrize("name", ["all_to_all", "reduce_scatter", "all_gather", "all_reduce"])
def test_every_collective_is_right(name: str, wavelengths: int) -> None:
    """In one step where the wavelengths suffice and in many where not."""
    for nodes in (1, 2, 3, 4, 5, 8, 9, 13, 20):
        check("wavelength_exchange", name, ring(nodes, wavelengths))


@pytest.mark.parametrize(
    ("wavelengths", "nodes", "steps"),
    [(64, 1, 0), (64, 2, 1), (64, 22, 1), (64, 23, 2), (64, 64, 8), (1, 8, 8), (3, 8, 3), (61, 22, 1), (60, 22, 2)],
)
def test_steps(wavelengths: int, nodes: int, steps: int) -> None:
    """W(N) / w, rounded up; an all_reduce takes both halves."""
    made = [generate("wavelength_exchange", name, ring(nodes, wavelengths)) for name in ("all_to_all", "all_reduce")]
    assert [m.num_steps for m in made] == [steps, 2 * steps]


def test_striping_takes_idle_wavelengths() -> None:
    """8 nodes need 8 wavelengths, so each transfer has 8 of 64; on two rings 16, 8 of each or all of one."""
    for rings, width in ((1, 8), (2, 16)):
        where = fabric("terarack", nodes=8, rings=rings, striping=True)
        (circuits,) = lower(where, check("wavelength_exchange", "all_to_all", where)).rounds(0)
        assert set(np.bincount(circuits.transfer, circuits.wavelength_n)) == {width}
