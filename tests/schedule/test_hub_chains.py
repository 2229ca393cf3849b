"""Chains of hubs on a TeraRack."""

import numpy as np
import pytest
from tests.schedule.oracle import check
from tests.schedule.test_circulant_rings import PLAIN

from opticcl.collective import Request
from opticcl.fabrics import fabric
from opticcl.plans.plan import compile

SHAPES = [(7,), (12,), (3, 5), (4, 3), (2, 3, 4), (3, 3, 3)]


@pytest.mark.parametrize("radices", SHAPES)
@pytest.mark.parametrize("halves", [True, False])
@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
def test_data_light_and_time(radices, halves, collective):
    """From two roots; the closed form is depth + S - 1 steps on the wavelengths of a level."""
    n, pieces, size = int(np.prod(radices)), 3, 960_000
    where = fabric("terarack", nodes=n, wavelengths=6)
    name = f"hub_chains:radices={'x'.join(map(str, radices))},pipeline={pieces},halves={halves}"
    for root in (0, n // 2):
        check(name, Request(collective, root), where)
        plan = compile(where, Request(collective, root), size, algorithm=name)
        depth = sum(b - 1 if halves else b // 2 for b in radices)
        piece_s = 8 * size / (1 + halves) / pieces / (6 // len(radices) * where.rate_bits_per_s)
        due = 25e-6 + (depth + pieces - 1) * (1e-6 + piece_s)
        assert plan.simulate(**PLAIN).total_s == pytest.approx(due, rel=1e-9)
