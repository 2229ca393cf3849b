"""Direct exchange where one rank has a laser or a photodiode less."""

from __future__ import annotations

import pytest

from opticcl.fabrics import fabric
from opticcl.plans.plan import compile


@pytest.mark.parametrize(("shape", "part"), [("1x3", "laser:4"), ("2x2", "photodiode:15"), ("1x5", "photodiode:0")])
def test_every_laser_has_at_most_one_chunk_a_step(shape: str, part: str) -> None:
    """2 p - 2 rounds of one chunk of (p - 1) p + p - 2, whichever rank is weak; data by sets of contributors."""
    p = {"1x3": 3, "2x2": 4, "1x5": 5}[shape]
    where = fabric(f"lightpath:shape={shape},lasers={p},waveguides=16", failed=part)
    plan = compile(where, "all_reduce", 1_000_000, algorithm="uneven_exchange")
    plan.verify(exact=True).raise_if_bad()
    assert plan.simulate().num_rounds == 2 * p - 2
    assert plan.schedule.collective.num_chunks == p * (p - 1) + p - 2
    for i in range(2 * p - 2):
        for circuits in plan.circuits.rounds(i):
            assert circuits.wavelength_n.tolist() == [1] * len(circuits)


def test_a_gigabyte_on_sixteen_tiles_is_near_its_bound() -> None:
    """2 (p - 1) / (p - 1 + 15 / 16) of the message on 16 lasers is the least that the tile with 15 allows."""
    where = fabric("lightpath:shape=4x4,failed=laser:80")
    plan = compile(where, "all_reduce", 10**9, algorithm="uneven_exchange")
    bound_s = 2 * 15 / (15 + 15 / 16) * 8e9 / where.node_rate_bits_per_s
    assert 1 <= plan.simulate(assumptions="common", compute="none").total_s / bound_s < 1.03
