"""Circuits of skewed exchanges, over the planes that work."""

import numpy as np
import pytest

from opticcl.circuits import lower
from opticcl.fabrics import fabric
from opticcl.ir import Condition
from opticcl.schedule import generate
from opticcl.verify import verify


@pytest.mark.parametrize(
    ("parts", "rounds"),
    [
        ([], 15),
        ([(3, 2)], 19),
        ([(3, 0), (3, 2)], 25),
        ([(p, p) for p in range(4)], 19),
        ([(p, p) for p in range(5)], 19),
    ],
)
def test_labels_are_dealt_over_the_planes_that_work(parts, rounds):
    """75 labels over five planes, or over four or three where that takes fewer rounds than a repair."""
    where = fabric("ramp:groups=5,racks=3,wavelengths=5").without(
        [Condition("transmitter", 5 * n + p) for n, p in parts]
    )
    plan = lower(where, generate("skewed_exchange:steps=1", "all_to_all", where))
    assert verify(plan).ok
    assert len(plan.rounds(0)) == rounds


def test_one_plane_is_used_too():
    """On two planes of three 18 labels take 9 rounds, on one 18: fewer than a repair, which takes 10 and 21."""
    for lost, rounds in (((0,), 9), ((0, 1), 18)):
        failed = [Condition("transmitter", 3 * node + plane) for node in range(18) for plane in lost]
        where = fabric("ramp:groups=3,racks=2,wavelengths=3").without(failed)
        plan = lower(where, generate("skewed_exchange:steps=1", "all_to_all", where))
        assert verify(plan).ok
        assert len(plan.rounds(0)) == rounds


def test_a_repair_uses_planes_that_are_free():
    """Transfers that lost their plane have a round of their own, with more than one plane each; a mesh has no labels."""
    where = fabric("ramp:groups=3,racks=2,wavelengths=3,failed=transmitter:0+transmitter:4")
    for algorithm in ("skewed_exchange:steps=1", "mesh"):
        plan = lower(where, generate(algorithm, "all_to_all", where))
        assert verify(plan).ok
        assert max(np.bincount(circuits.transfer).max() for circuits in plan.rounds(0)) > 1


@pytest.mark.parametrize(
    ("shape", "collective", "parameters", "block", "phases"),
    [
        ((4, 4, 4), "all_reduce", "block=2,steps=4", 2, "ABBA"),
        ((4, 4, 4), "all_gather", "block=4", 4, "BA"),
        ((2, 2, 6), "all_to_all", "block=1", 1, "AB"),
        ((3, 3, 6), "all_to_all", "steps=1", 3, "N"),
        ((4, 4, 8), "all_to_all", "classes=2", 4, "CD"),
    ],
)
def test_labels_by_their_definition(shape, collective, parameters, block, phases):
    """The plane is a, in B g + g' + j; transfers of a round agree in b and c, in B in b and in c but for c modulo x.

    Args:
        shape: x, J, L.
        collective: its name.
        parameters: of skewed_exchange.
        block: racks of a block.
        phases: of its steps.
    """
    x, racks, places = shape
    where = fabric("ramp", groups=x, racks=racks, wavelengths=places)
    plan = lower(where, generate(f"skewed_exchange:{parameters}", collective, where))
    for i, phase in enumerate(phases):
        found = []
        for circuits in plan.rounds(i):
            l_src, l_dst = circuits.src % places, circuits.dst % places
            (g_src, j_src), (g_dst, j_dst) = (divmod(end // places, racks) for end in (circuits.src, circuits.dst))
            if phase == "D":
                label = {(c % 2, 0) for c in (l_dst // (places // 2) - l_src // (places // 2)).tolist()}
                assert (np.bincount(circuits.transfer) == x).all()
            else:
                due = g_src + g_dst + j_src if phase == "B" else g_dst - g_src - j_src
                assert (circuits.port == due % x).all()
                apart = (l_dst // x - l_src // x) % (places // x) if phase == "B" else (l_dst - l_src) % places
                if phase == "C":
                    apart = apart % (places // 2)
                of = block if phase == "A" else racks  # the own block only
                label = set(zip(((j_dst - j_src) % of).tolist(), apart.tolist(), strict=True))
            assert len(label) == 1
            found += label
        assert len(set(found)) == len(found)
