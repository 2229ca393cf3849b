"""Halving-doubling and recursive doubling: partners, data, and what they decline."""

from __future__ import annotations

import numpy as np
import pytest
from tests.altered import altered
from tests.schedule.oracle import check

from opticcl.fabrics import fabric, job
from opticcl.ir import Schedule
from opticcl.schedule import generate, reason_declined

ALGORITHMS = ("halving_doubling", "recursive_doubling")


def _on_ideal(algorithm: str, nodes: int, collective: str = "all_reduce") -> Schedule:
    return generate(algorithm, collective, fabric("ideal", nodes=nodes))


@pytest.mark.parametrize(("algorithm", "steps"), [("halving_doubling", 2), ("recursive_doubling", 1)])
def test_number_of_steps(algorithm: str, steps: int) -> None:
    """2 log2 N and log2 N."""
    assert [_on_ideal(algorithm, 1 << bits).num_steps for bits in range(11)] == [steps * bits for bits in range(11)]


def test_a_row_of_a_grid_is_a_cube_of_its_own() -> None:
    """Four nodes of the second row, in another order."""
    check("halving_doubling", "reduce_scatter", job(fabric("oddl:shape=2x4"), [7, 5, 4, 6]))


@pytest.mark.parametrize(
    ("collective", "sizes"),
    [
        ("reduce_scatter", [8, 4, 2, 1]),
        ("all_gather", [1, 2, 4, 8]),
        ("all_to_all", [8, 8, 8, 8]),
        ("broadcast", [8, 4, 2, 1, 1, 2, 4, 8]),
        ("reduce", [8, 4, 2, 1, 1, 2, 4, 8]),
    ],
)
def test_data_of_each_step(collective: str, sizes: list[int]) -> None:
    """Sixteenths of the message that a node sends in each step."""
    schedule = _on_ideal("halving_doubling", 16, collective)
    assert [int(schedule.step(i).size_chunks().max()) for i in range(schedule.num_steps)] == sizes


def test_partners_of_figure_2() -> None:
    """Node 1 of eight, numbered from 1, exchanges with 5, 3, 2 and back."""
    schedule = _on_ideal("halving_doubling", 8)
    assert [int(schedule.step(i).dst[0]) + 1 for i in range(6)] == [5, 3, 2, 2, 3, 5]


def test_data_sent() -> None:
    """Halving-doubling sends 1/2, 1/4, ... and back, 2(N-1)/N in all; recursive doubling always everything."""
    schedule = _on_ideal("halving_doubling", 16)
    shares = [np.unique(schedule.step(i).chunk_n / 16) for i in range(8)]
    assert np.concatenate(shares).tolist() == [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 16, 1 / 8, 1 / 4, 1 / 2]
    assert np.sum(shares) == pytest.approx(2 * 15 / 16)
    doubling = _on_ideal("recursive_doubling", 16)
    assert doubling.collective.num_chunks == 1
    assert all((doubling.step(i).chunk_n == 1).all() for i in range(4))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_partners_that_are_not_linked_are_declined(algorithm: str) -> None:
    """A power of two whose bits are not the coordinates of the grid's sides."""
    where = fabric("oddl:shape=2x8")
    apart = altered(where, links_all=False, linked=lambda self, src, dst: where.linked(src, dst) & ((src ^ dst) != 4))
    assert reason_declined(algorithm, "all_reduce", where) is None
    assert reason_declined(algorithm, "all_reduce", apart) == "no single circuit joins nodes (0, 0) and (0, 4)"
