"""SiP-Ring's light: wavelengths of halving-doubling, rounds, odd sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from opticcl.circuits import lower
from opticcl.collective import collective
from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric, job
from opticcl.ir import CircuitPlan, Op, Schedule, Transfers
from opticcl.schedule import generate
from opticcl.verify import verify


def plan(algorithm: str, wanted: str = "all_reduce", **ring: int) -> CircuitPlan:
    """A schedule lowered to a ring."""
    where = fabric("sip_ring", **ring)
    return lower(where, generate(algorithm, wanted, where))


@pytest.mark.parametrize("nodes", [2, 4, 8, 64, 1024])
@pytest.mark.parametrize(("directions", "share"), [(1, 2), (2, 4)])
def test_wavelengths_of_halving_doubling(nodes: int, directions: int, share: int) -> None:
    """N/2 one way and N/4 two ways, all of them in one round; with one fewer some step takes two rounds."""
    due = max(1, nodes // share)
    made = plan("halving_doubling", nodes=nodes, wavelengths=due, directions=directions)
    assert all(len(made.rounds(i)) == 1 for i in range(made.schedule.num_steps))
    assert verify(made).ok
    if due > 1:
        short = plan("halving_doubling", nodes=nodes, wavelengths=due - 1, directions=directions)
        assert len(short.rounds(0)) == 2


def test_a_ring_needs_one_wavelength_and_never_changes() -> None:
    """The same circuits in every step."""
    made = plan("ring", nodes=13, wavelengths=1)
    first = made.rounds(0)[0]
    assert set(first.wavelength_lo.tolist()) == {0}
    assert (first.num_hops() == 1).all()
    assert verify(made).ok


@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("nodes", [2, 3, 5, 8, 12])
def test_many_partners_take_many_rounds(nodes: int, directions: int) -> None:
    """Everyone to everyone: a NIC has N - 1 partners, half of them with two directions."""
    made = plan("mesh", "all_to_all", nodes=nodes, wavelengths=nodes * nodes, directions=directions)
    assert verify(made).ok
    assert len(made.rounds(0)) == (nodes - 1 if directions == 1 else nodes // 2)


@given(st.integers(2, 20), st.integers(1, 2), st.integers(1, 5), st.data())
@examples(40)
def test_any_transfers_get_light(nodes: int, directions: int, wavelengths: int, data: st.DataObject) -> None:
    """Random transfers, several from and to a node: every one has its light, and no rule of optics is broken."""
    where = fabric("sip_ring", nodes=nodes, wavelengths=wavelengths, directions=directions)
    ends = data.draw(st.lists(st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1)), min_size=1, max_size=30))
    src, dst = np.array(ends).T
    transfers = Transfers.of(src, dst, 0, 1, Op.COPY)
    schedule = Schedule("random", collective("broadcast", nodes), 1, lambda i: transfers)
    violations = verify(lower(where, schedule)).violations
    assert [v for v in violations if v.step >= 0 and v.round >= 0] == []
    assert not any(v.rule == "transfer_not_carried" for v in violations)


def test_part_of_a_ring() -> None:
    """A job on some nodes of a machine lights the machine's segments."""
    where = job(fabric("sip_ring:nodes=16,directions=2"), [3, 9, 14, 0])
    assert verify(lower(where, generate("halving_doubling", "all_reduce", where))).ok


def test_too_much_light_is_refused() -> None:
    """First fit looks at every segment."""
    where = fabric("sip_ring:nodes=65536")
    with pytest.raises(UnsupportedError, match=r"fibre segments, [0-9.]+ .B; first fit is for 67.11 MB at most"):
        lower(where, generate("halving_doubling", "all_reduce", where))


@pytest.mark.parametrize("nodes", [8, 13, 16])
def test_pairs_that_stand_keep_their_light(nodes: int) -> None:
    """A round whose pairs are some of those of the round before is not charged a change."""
    bruck = plan("bruck", "all_to_all", nodes=nodes)
    before: dict[tuple[int, int, int], int] = {}
    kept = 0
    for step in range(bruck.schedule.num_steps):
        for circuits in bruck.rounds(step):
            columns = (circuits.src, circuits.dst, circuits.port, circuits.wavelength_lo)
            light = {
                (src, dst, port): wave for src, dst, port, wave in zip(*(c.tolist() for c in columns), strict=True)
            }
            if light.keys() <= before.keys():
                kept += 1
                assert all(before[pair] == wave for pair, wave in light.items())
            else:
                before = light
    assert kept > 0
    assert verify(bruck).ok
