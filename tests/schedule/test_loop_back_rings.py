"""Rings on the loop-back groups of a SiPAC: right everywhere, all lines at work, taken by `auto` where they win."""

import pytest
from tests.schedule.oracle import check

from opticcl.fabrics import fabric
from opticcl.plans.plan import compile
from opticcl.verify import verify

COLLECTIVES = ["all_reduce", "reduce_scatter", "all_gather"]


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_right_at_every_rank(collective):
    """Verified and executed: odd and even switches, switches of two ports, one to three levels, rings at some or all."""
    for radix, levels in ((2, 1), (2, 3), (3, 2), (5, 1)):
        for rings in range(1, levels + 1):
            where = fabric(f"sipac:radix={radix},levels={levels},channels=ring")
            check(f"loop_back_rings:rings={rings}", collective, where)


@pytest.mark.parametrize(("radix", "levels"), [(8, 3), (5, 2), (3, 3), (7, 1)])
def test_closed_form(radix, levels):
    """2 L (r - 1) steps that use all lines of a node."""
    where = fabric(f"sipac:radix={radix},levels={levels},channels=ring")
    nodes, size = radix**levels, 10**9
    time = compile(where, "all_reduce", size, algorithm="loop_back_rings").simulate(
        compute="none", assumptions="published"
    )
    due = 2 * levels * (radix - 1) * 1e-6 + 2 * (nodes - 1) / nodes * size * 8 / where.node_rate
    assert time.num_steps == 2 * levels * (radix - 1)
    assert time.total_s == pytest.approx(due, rel=1e-9)


@pytest.mark.parametrize(("size", "most_us"), [("100MB", 822), ("1GB", 7840)])
def test_auto_takes_rings_for_large_sums(size, most_us):
    """512 nodes, from 100 MB on; without rings the machine takes 897 us and 8.9 ms."""
    plan = compile("sipac:channels=ring", "all_reduce", size, assumptions="published")
    assert plan.algorithm.startswith("loop_back_rings")
    assert plan.simulate(compute="none", assumptions="published").total_s <= most_us * 1e-6


def test_other_algorithms_use_both_channels():
    """SiPCO on a machine whose lines fall into uneven groups, and one that has lost a micro-ring of the loop-back."""
    for spec in (
        "sipac:radix=3,levels=2,wavelengths=7,channels=ring",
        "sipac:radix=3,levels=2,channels=ring,failed=micro_ring:0",
    ):
        assert verify(compile(spec, "all_reduce", "1MB", algorithm="ring").circuits).ok
