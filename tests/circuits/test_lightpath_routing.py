"""Routes of LIGHTPATH's circuits by the fabric's `routing`, and what they save in rounds."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest

from opticcl.circuits import lower
from opticcl.fabrics import fabric
from opticcl.ir import CircuitPlan
from opticcl.routing.grid import Grid
from opticcl.routing.least_overlap import least_overlap
from opticcl.schedule import generate
from opticcl.verify import verify

ROUTINGS = ["dimension_order", "random", "least_overlap"]


def plan(where: str, algorithm: str, collective: str = "reduce_scatter") -> CircuitPlan:
    """A verified plan."""
    made = fabric(where)
    lowered = lower(made, generate(algorithm, collective, made))
    verify(lowered).raise_if_bad()
    return lowered


def fullest_edges(made: CircuitPlan) -> list[int]:
    """Most circuits on an edge in each step, all rounds of it together."""
    return [
        int(np.bincount(np.concatenate([c.hops for c in made.rounds(i)])).max()) for i in range(made.schedule.num_steps)
    ]


def num_rounds(made: CircuitPlan) -> int:
    """Rounds in all."""
    return sum(len(made.rounds(i)) for i in range(made.schedule.num_steps))


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("algorithm", ["lumorph:radix=4", "mesh", "tree"])
@pytest.mark.parametrize("shape", ["1x7", "3x5"])
def test_every_routing_verifies(routing: str, algorithm: str, shape: str) -> None:
    """On scarce waveguides, odd shapes and random places."""
    where = f"lightpath:shape={shape},routing={routing},numbering=random,waveguides=2"
    plan(where, algorithm, "all_reduce")


def test_least_overlap_has_the_least() -> None:
    """As the room of routes finds and proves; random routes have about twice as much."""
    loads = {r: fullest_edges(plan(f"lightpath:routing={r},numbering=random", "lumorph:radix=4")) for r in ROUTINGS}
    where = fabric("lightpath:numbering=random")
    tile = np.random.default_rng(0).permutation(256)
    for i, load in enumerate(loads["least_overlap"]):
        step = generate("lumorph:radix=4", "reduce_scatter", where).step(i)
        routes = least_overlap(Grid(16, 16), tile[step.src], tile[step.dst])
        assert load == routes.max_overlap == routes.bound
    assert max(loads["least_overlap"]) < max(loads["dimension_order"]) < max(loads["random"])


def test_fewer_rounds_on_few_waveguides() -> None:
    """Ten waveguides, each with one circuit from end to end: least overlap splits least."""
    text = "lightpath:waveguides=10,switch_unit=waveguide,numbering=random,routing="
    rounds = {r: num_rounds(plan(text + r, "lumorph:radix=4")) for r in ROUTINGS}
    assert rounds["least_overlap"] == 8 == rounds["dimension_order"]
    assert rounds["random"] == 14


def test_equal_fabrics_have_equal_routes() -> None:
    """The seed decides, also for the same step asked twice; another seed gives others."""
    text = "lightpath:shape=8x8,routing=random,seed="
    one, same, other = (plan(text + seed, "lumorph:radix=4").rounds(1)[0] for seed in "445")
    assert np.array_equal(one.hops, same.hops)
    assert not np.array_equal(one.hops, other.hops)


def test_routes_of_the_middle_steps_stand() -> None:
    """The last step of the reduce-scatter and the first of the all-gather need no reconfiguration, also on random routes."""
    made = plan("lightpath:shape=8x8,routing=random", "lumorph:radix=4", "all_reduce")
    (before,), (after,) = made.rounds(2), made.rounds(3)
    assert np.array_equal(before.hops, after.hops)


@pytest.mark.parametrize(("radix", "waveguides"), [(4, 1), (4, 3), (8, 1), (8, 2)])
def test_sets_of_lasers_share_waveguides(radix: int, waveguides: int) -> None:
    """Sets of five lasers, or of two: rounds near load / (sets x waveguides), which none can undercut."""
    made = plan(f"lightpath:waveguides={waveguides},numbering=squares", f"lumorph:radix={radix}")
    steps = range(made.schedule.num_steps)
    sets = [16 // int(made.rounds(i)[0].wavelength_n[0]) for i in steps]
    bounds = [ceil(load / (k * waveguides)) for load, k in zip(fullest_edges(made), sets, strict=True)]
    rounds = [len(made.rounds(i)) for i in steps]
    assert all(r >= b for r, b in zip(rounds, bounds, strict=True))
    assert sum(rounds) <= sum(bounds) + 2


def test_a_dead_waveguide_costs_a_round() -> None:
    """Two circuits east of tile 1; with one of two waveguides dead they take turns."""
    text = "lightpath:shape=1x4,waveguides=2,switch_unit=waveguide"
    assert len(plan(text, "lumorph").rounds(1)) == 1
    assert len(plan(text + ",dead_waveguides=1-2:1", "lumorph").rounds(1)) == 2
