"""All dimensions of a grid at once."""

from __future__ import annotations

import pytest
from tests.schedule.oracle import check, requests

from opticcl.collective import COLLECTIVES
from opticcl.fabrics import fabric
from opticcl.plans.plan import compile

MACHINES = [
    ("lightpath:shape=4x4", "2x2x2x2"),
    ("lightpath:shape=3x4", "3x2x2"),
    ("lightpath:shape=3x5", "5x3"),
    ("ideal:nodes=8", "4x2"),
]


@pytest.mark.parametrize(("name", "shape"), MACHINES)
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_right_at_every_rank(name, shape, collective):
    """Equal and unequal sides, all collectives and roots."""
    where = fabric(name)
    for request in requests(collective, where.num_nodes):
        check(f"all_dimensions:shape={shape}", request, where)


@pytest.mark.parametrize("k", [0, 1, 2, 3])
def test_fewer_digits(k):
    """Fewer steps for more volume."""
    schedule = check(f"all_dimensions:shape=4x2x2,k={k}", "all_reduce", fabric("lightpath:shape=4x4"))
    assert schedule.num_steps == 3 + k


@pytest.mark.parametrize("rows", [2, 4, 8, 16])
def test_circuits_stand(rows):
    """One reconfiguration, 2 L latencies, and 2 (N-1)/N of the message on the lasers that L neighbours share."""
    where = fabric(f"lightpath:shape={rows}x{rows}")
    n, bits = where.num_nodes, where.num_nodes.bit_length() - 1
    plan = compile(where, "all_reduce", 10**6, algorithm=f"all_dimensions:shape={'x'.join('2' * bits)}")
    lasers = where.lasers_per_port // bits * bits
    due = where.reconfiguration_s + 2 * bits * where.latency_s
    due += 2 * (n - 1) / n * plan.size_bytes * 8 / (lasers * where.rate_bits_per_s)
    assert plan.simulate(compute="none", assumptions="published").total_s == pytest.approx(
        due, rel=0.01
    )  # chunks of whole elements
