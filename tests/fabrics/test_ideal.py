"""The ideal switch: two ports on every path, and parameters that are refused."""

from dataclasses import replace

import numpy as np
import pytest
from tests.fabrics.walks import pairs, refusals, routed

from opticcl.assumptions import assumptions
from opticcl.errors import FabricError
from opticcl.fabrics import fabric
from opticcl.fabrics.ideal import Ideal
from opticcl.ir import Circuits


def test_every_path_is_the_port_of_the_sender_and_that_of_the_receiver():
    """Hop i sends from node i, hop N + i receives at node i; any other hop and any other number of hops is refused."""
    where = fabric("ideal:nodes=3,rate=10Gb/s")
    src, dst = pairs(3)
    circuits = routed(where, src, dst)
    assert [circuits.path(i).tolist() for i in range(6)] == [[a, 3 + b] for a, b in zip(src, dst, strict=True)]
    assert refusals(where, circuits) == set()
    tx, rx = where.usage(circuits)
    assert (tx.index.tolist(), rx.index.tolist()) == (src.tolist(), dst.tolist())
    ports = [(r.kind, r.count, r.capacity, r.per_wavelength, r.shared) for r in where.resources]
    assert ports == [("tx_port", 3, 10e9, False, True), ("rx_port", 3, 10e9, False, True)]
    for place in range(12):
        for hop in set(range(-1, 8)) - {int(circuits.hops[place])}:
            hops = circuits.hops.copy()
            hops[place] = hop
            (fault,) = where.faults(replace(circuits, hops=hops))
            assert (fault.rule, fault.circuits.tolist()) == ("path_broken", [place // 2])
    for path in ([], [0], [0, 4, 4]):
        alone = Circuits.of([0], [0], [1], path=np.array([path], int).reshape(1, -1))
        assert refusals(where, alone) == {"path_broken"}


def test_its_passage_and_its_limits():
    """Two links with a receiver each, one switch; one node, a rate of 1 b/s and no latency are possible."""
    where, floor = fabric("ideal:nodes=5"), assumptions("common").floor
    passed = where.passage(floor)
    assert (passed.fibre_m, passed.receivers, passed.switches) == (floor.through_centre_m(5), 2, 1)
    assert Ideal.example() == (fabric("ideal:nodes=6"), "ring")
    assert fabric("ideal:nodes=1,rate=1b/s,latency=0s").num_nodes == 1
    for text in ("nodes=0", "rate=0b/s", "latency=-1us"):
        with pytest.raises(FabricError, match=text.split("=")[0]):
            fabric(f"ideal:{text}")
