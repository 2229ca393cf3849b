"""Rings along all dimensions at the same time, one way round."""

from math import prod

import pytest
from tests.schedule.oracle import check

from opticcl.fabrics import fabric
from opticcl.plans.plan import compile

COLLECTIVES = ["all_reduce", "reduce_scatter", "all_gather", "barrier"]


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("shape", ["2x2", "3x3", "4x3", "3x5", "2x3x4", "2x2x2x2"])
def test_right_at_every_rank(collective, shape):
    """Equal and unequal sides, up to four dimensions."""
    sides = [int(side) for side in shape.split("x")]
    schedule = check(f"rotated_rings:shape={shape}", collective, fabric("ideal", nodes=prod(sides)))
    stages = 2 if collective in ("all_reduce", "barrier") else 1
    assert schedule.num_steps == stages * len(sides) * (max(sides) - 1)


def test_on_light():
    """One round a step, and the circuits of the first step serve all."""
    for name in ("oddl:shape=4x4", "oddl:shape=3x5", "sipac:radix=3,levels=2", "torus:shape=3x4"):
        check("rotated_rings", "all_reduce", fabric(name))
    plan = compile("oddl:shape=4x4", "all_reduce", "1MB", algorithm="rotated_rings")
    pairs = [sorted(zip(t.src.tolist(), t.dst.tolist(), strict=True)) for t in map(plan.schedule.step, range(12))]
    assert all(found == pairs[0] for found in pairs)
    assert plan.simulate(assumptions="published").reconfiguration_s.sum() == plan.fabric.reconfiguration_s


@pytest.mark.parametrize("side", [4, 8, 32])
def test_volume(side):
    """2 (N-1)/N of the message on each of two senders a node."""
    where = fabric(f"oddl:shape={side}x{side}")
    n = side * side
    plan = compile(where, "all_reduce", "1GB", algorithm="rotated_rings")
    due = 2 * (n - 1) / n * 8e9 / where.node_rate_bits_per_s
    assert plan.simulate(compute="none", assumptions="published").transfer_s.sum() == pytest.approx(due, rel=1e-3)


@pytest.mark.parametrize("shape", ["8x16", "3x5", "8x8x16", "2x8"])
def test_volume_of_unequal_sides(shape):
    """In every stage as much as the part that moves most, in no more steps than the longest ring has."""
    where = fabric(f"oddl:shape={shape}")
    sides, k = where.dimensions, len(where.dimensions)
    plan = compile(where, "all_gather", "1GB", algorithm="rotated_rings")
    orders = [[sides[(part + stage) % k] for stage in range(k)] for part in range(k)]
    most = sum(max((1 - 1 / order[stage]) / prod(order[stage + 1 :]) for order in orders) for stage in range(k))
    due = most / k * 8e9 / (where.num_wavelengths * where.rate_bits_per_s)
    timeline = plan.simulate(compute="none", assumptions="published")
    assert timeline.transfer_s.sum() == pytest.approx(due, rel=1e-9)
    assert plan.schedule.num_steps == k * (max(sides) - 1)
    assert plan.verify().exhaustive
