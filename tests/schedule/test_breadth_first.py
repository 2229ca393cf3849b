"""Blocks that spread breadth first: right everywhere, at both bounds on every grid, wherever sides differ chosen by `auto`."""

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.schedule.oracle import check

from opticcl.fabrics import fabric
from opticcl.plans.plan import compile
from opticcl.schedule import generate
from opticcl.schedule.breadth_first import Spread

COLLECTIVES = ["all_reduce", "reduce_scatter", "all_gather", "barrier"]


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_right_at_every_rank(collective):
    """Verified and executed: odd, even and unequal sides, sides of 1 and 2, up to four dimensions, optical grids."""
    for shape in ("2x2", "3x3", "2x8", "3x8", "5x7", "1x3x4", "2x3x5", "2x2x3x2"):
        check("breadth_first", collective, fabric(f"torus:shape={shape}"))
    for name in ("oddl:shape=3x5", "sipac:radix=3,levels=2", "lightpath:shape=3x4", "terarack_torus:shape=2x5"):
        check("breadth_first", collective, fabric(name))
    check("breadth_first:shape=2x6", collective, fabric("ideal:nodes=12"))


@pytest.mark.parametrize("shape", ["8x16", "4x32", "6x10", "3x5x7", "7x31", "2x3x16"])
@pytest.mark.parametrize("collective", ["all_gather", "reduce_scatter"])
def test_closed_form(shape, collective):
    """As many steps as the diameter has hops, and every port busy all the time, with all sides that differ."""
    where = fabric("torus", shape=shape)
    sides, n = where.dimensions, where.num_nodes
    ports, diameter = sum(1 if side == 2 else 2 for side in sides), sum(side // 2 for side in sides)
    size = 64 * n * 2**10
    plan = compile(where, collective, size)
    time = plan.simulate(compute="none", assumptions="published")
    assert plan.algorithm == "breadth_first"
    assert time.num_steps == diameter
    due = diameter * 1e-6 + (n - 1) / n * size * 8 / (ports * where.rate_bits_per_s)
    assert time.total_s == pytest.approx(due, rel=1e-9)


@given(st.lists(st.integers(2, 9), min_size=2, max_size=4))
@examples(12)
def test_loads_have_the_least_sum(sides):
    """Counted from the transfers: every link carries what the closed form says, rounded up to slices."""
    spread = Spread(tuple(sides))
    ports = sum(1 if side == 2 else 2 for side in sides)
    assert spread.loads.sum() == pytest.approx((prod(sides) - 1) / ports, rel=1e-12)
    if spread.num_nodes > 200:
        return
    made = generate("breadth_first", "all_gather", fabric("torus", shape="x".join(map(str, sides))))
    for distance, least in enumerate(spread.loads, start=1):
        rows = made.step(distance - 1)
        _, link = np.unique(rows.src * np.int64(spread.num_nodes) + rows.dst, return_inverse=True)
        assert np.bincount(link, rows.chunk_n).max() == np.ceil(least * spread.slices - 1e-9)
