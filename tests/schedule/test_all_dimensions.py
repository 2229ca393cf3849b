"""All dimensions of a grid at once."""

from __future__ import annotations

from math import prod

import pytest
from tests.schedule.oracle import check, requests

from opticcl.collective import COLLECTIVES
from opticcl.fabrics import fabric
from opticcl.plans.plan import compile
from opticcl.schedule import reason_declined
from opticcl.schedule.all_dimensions import sides_within

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


def test_small_messages_on_256_tiles():
    """A sum of 1 KB takes 6.6 us where LUMORPH-2 takes 67 and LUMORPH-4 35; one reconfiguration of 3.7 us is in it."""
    plan = compile("lightpath:shape=16x16", "all_reduce", "1KB", algorithm="all_dimensions:shape=4x4x4x4,k=0")
    assert plan.verify().ok
    assert plan.simulate(compute="none", assumptions="published").total_s == pytest.approx(6.553e-6, rel=1e-3)


def test_every_grid_fits():
    """Sides multiply to the nodes, and neighbours are as many as asked for at most."""
    for nodes in range(1, 200):
        for sides in sides_within(nodes, 16):
            assert prod(sides) == nodes
            assert min(sides) > 1
            assert sum(sides) - len(sides) <= 16


@pytest.mark.parametrize(
    ("algorithm", "collective", "name", "text"),
    [
        ("all_dimensions:shape=3x3", "all_reduce", "lightpath:shape=2x4", "shape=3x3 has 9 nodes, not 8"),
        ("all_dimensions:shape=2x4,k=3", "all_reduce", "lightpath:shape=2x4", "k=3 is not 0 to levels=2"),
        ("all_dimensions:k=1", "all_gather", "lightpath:shape=2x4", "all_gather has no k"),
        ("all_dimensions", "all_reduce", "ideal:nodes=65536", "transfers a step are more than"),
        ("all_dimensions:shape=2x4", "all_reduce", "sipac:radices=2x4", "no single circuit joins nodes"),
    ],
)
def test_declined(algorithm, collective, name, text):
    """With a reason."""
    assert text in (reason_declined(algorithm, collective, fabric(name)) or "")
