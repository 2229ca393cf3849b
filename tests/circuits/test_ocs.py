"""Links of circuit switches: counted, coloured and shared."""

import numpy as np
import pytest

from opticcl.circuits import lower
from opticcl.circuits import ocs as rule
from opticcl.circuits.ocs import _colours, _direct, _distinct, _over_held, links_of_shift
from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric
from opticcl.fabrics.ocs import SHARES
from opticcl.ir import Op, Transfers
from opticcl.schedule import generate


def test_links_of_a_shift_are_counted():
    """The fewest h with h S = D modulo N, 0 where there is none."""
    for n in range(2, 10):
        for shift in range(1, n):
            for distance in range(1, n):
                due = next((h for h in range(1, n) if h * shift % n == distance), 0)
                assert links_of_shift(distance, shift, n) == due, (distance, shift, n)


@pytest.mark.parametrize("below", [20, 10**6])
def test_distinct_values_by_a_table_and_by_a_sort(below):
    """Each value is found at its position."""
    values = np.array([3, 1, 7, 3, 1, 19])
    found, position = _distinct(values, below)
    assert found.tolist() == [1, 3, 7, 19]
    assert found[position].tolist() == values.tolist()


def test_whole_shifts_are_coloured_in_order():
    """Six nodes, each to the nodes 2 and 5 ahead."""
    pairs = sorted((i, (i + d) % 6) for i in range(6) for d in (2, 5))
    src, dst = np.array(pairs).T
    colour, number = _colours(src, dst, 6)
    assert number == 2
    assert colour.tolist() == [{2: 0, 5: 1}[(d - s) % 6] for s, d in pairs]


def test_transfers_of_a_link_share_it_by_their_bytes():
    """Three parts and one; a very small one still has a share."""
    machine = fabric("ocs:nodes=4,planes=1")
    for sizes in ((3, 1), (2 * SHARES, 1)):
        transfers = Transfers.of([0, 0], [1, 1], [0, sizes[0]], np.array(sizes), Op.COPY)
        for (circuits,) in (_direct(machine, transfers), _over_held(machine, transfers, 1)):
            assert circuits.wavelength_n.tolist() == [max(1, SHARES * size // sum(sizes)) for size in sizes]


def test_links_that_stand_are_limited(monkeypatch):
    """Two pairs, three links of shift 2 each on two planes; other pairs are not joined, and a mesh has links of its own."""
    machine = fabric("ocs:nodes=8,planes=2")
    transfers = Transfers.of([0, 1], [6, 7], [0, 1], 1, Op.COPY)
    monkeypatch.setattr(rule, "MOST_HOPS", 12)
    (circuits,) = _over_held(machine, transfers, 2)
    assert len(circuits.hops) == 12
    monkeypatch.setattr(rule, "MOST_HOPS", 11)
    with pytest.raises(UnsupportedError, match="pass 12 links, at most 11 are supported"):
        _over_held(machine, transfers, 2)
    with pytest.raises(UnsupportedError, match="links of shift 2 do not lead 1 nodes ahead"):
        _over_held(machine, Transfers.of([0, 0], [2, 1], [0, 1], 1, Op.COPY), 2)
    plan = lower(machine, generate("mesh", "all_to_all", machine))
    assert {len(circuits.hops) - len(circuits) for circuits in plan.rounds(0)} == {0}
