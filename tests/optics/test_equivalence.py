"""The judge of resources and the emulator of light agree: thousands of random sets of circuits, legal and illegal."""

import pytest
from tests.optics.circuit_sets import (
    both_judges,
    on_grid,
    on_levels,
    on_lines,
    on_ring,
    on_subnets,
    on_switches,
    on_torus,
    sets_of,
)

from opticcl.fabrics import fabric

CASES = {
    "terarack:nodes=6,wavelengths=2": (on_ring, 5),
    "terarack:nodes=5,wavelengths=3,rings=2": (on_ring, 6),
    "terarack_torus:shape=3x4,wavelengths=2": (on_torus, 9),
    "terarack_torus:shape=4x3,wavelengths=3,wrap=false": (on_torus, 8),
    "sipac:radix=3,levels=2,wavelengths=7": (on_levels, 5),
    "sipac:radix=3,levels=2,wavelengths=6,channels=retuned": (on_levels, 5),
    "sipac:radices=4x3,wavelengths=12": (on_levels, 6),
    "sipac:radix=4,levels=1,wavelengths=8,channels=ring": (on_levels, 5),
    "sipac:radices=2x3,wavelengths=6,channels=ring": (on_levels, 5),
    "sipac:radices=2x5,wavelengths=8,channels=retuned": (on_levels, 5),
    "ocs:nodes=7": (on_switches, 5),
    "ocs:nodes=6,planes=2": (on_switches, 4),
    "ocs:nodes=9,planes=3,forwarding=any": (on_switches, 6),
    "oddl:shape=7,wavelengths=3": (on_lines, 4),
    "oddl:shape=4x3": (on_lines, 6),
    "oddl:shape=2x3x2,wavelengths=3": (on_lines, 6),
    "oddl:shape=64,wavelengths=2": (on_lines, 14),
    "ramp:groups=2,racks=2,wavelengths=4": (on_subnets, 5),
    "ramp:groups=3,racks=2,wavelengths=3": (on_subnets, 7),
    "ramp:groups=2,racks=2,wavelengths=2,transceivers_per_group=2": (on_subnets, 4),
    "ramp:groups=2,racks=2,wavelengths=4,subnet=route_broadcast": (on_subnets, 6),
    "ramp:groups=3,racks=2,wavelengths=3,subnet=route_broadcast,transceivers_per_group=2": (on_subnets, 6),
    "ramp:groups=2,racks=2,wavelengths=4,receiver=tunable": (on_subnets, 5),
    "ramp:groups=2,racks=2,wavelengths=4,receiver=none": (on_subnets, 5),
    "ramp:groups=3,racks=2,wavelengths=3,transceivers_per_group=2,receiver=tunable": (on_subnets, 6),
    "ramp:groups=3,racks=2,wavelengths=3,transceivers_per_group=2,receiver=none": (on_subnets, 6),
    "ramp:groups=2,racks=2,wavelengths=4,subnet=route_broadcast,receiver=none": (on_subnets, 6),
    "ramp:groups=3,racks=2,wavelengths=3,subnet=route_broadcast,transceivers_per_group=2,receiver=none": (
        on_subnets,
        6,
    ),
    "ramp:groups=2,racks=2,wavelengths=4,subnet=route_switch": (on_subnets, 8),
    "ramp:groups=3,racks=3,wavelengths=3,subnet=route_switch": (on_subnets, 9),
    "lightpath:shape=3x3,lasers=2,waveguides=1": (on_grid, 4),
    "lightpath:shape=2x5,lasers=3,waveguides=2": (on_grid, 7),
    "lightpath:shape=4x9,lasers=2,waveguides=2": (on_grid, 9),
    "lightpath:shape=3x3,lasers=3,waveguides=2,switch_unit=waveguide": (on_grid, 4),
    "lightpath:shape=2x5,lasers=2,waveguides=3,switch_unit=waveguide": (on_grid, 5),
}
"""Fabric -> how its circuits are drawn, and how many there are in a set at most."""


def check(specification, count, seed=0):
    """Both judges on that many sets."""
    made = fabric(specification)
    draw, most = CASES[specification]
    accepted, clean = both_judges(made, sets_of(made, draw, count, most=most, seed=seed))
    assert (accepted == clean).all(), (accepted != clean).nonzero()[0]
    assert 0.3 <= accepted.mean() <= 0.9, accepted.mean()


@pytest.mark.parametrize("specification", CASES)
def test_both_judges_agree(specification):
    """On every set; three of ten are legal or more, and one of ten is not."""
    check(specification, 60)


@pytest.mark.deep
@pytest.mark.parametrize("specification", CASES)
def test_both_judges_agree_on_thousands(specification):
    """The same with others."""
    check(specification, 3000, seed=1)
