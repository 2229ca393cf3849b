"""ODDL: shapes, links, control plane, and what its hardware refuses."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from opticcl.circuits import lower
from opticcl.errors import FabricError
from opticcl.fabrics import fabric, fabric_at_scale
from opticcl.fabrics.oddl import switches_per_dimension
from opticcl.ir import CircuitPlan, Circuits, concatenate_circuits
from opticcl.schedule import generate
from opticcl.verify import verify


@pytest.mark.parametrize(
    ("shape", "nodes", "wavelengths", "switches"),
    [
        ("32x32", 1024, 5, (32, 32)),
        ("16x16x16", 4096, 4, (256, 256, 256)),
        ("8x8x8", 512, 3, (64, 64, 64)),
        ("8x8x16", 1024, 4, (128, 128, 64)),
        ("256", 256, 8, (1,)),
        ("5", 5, 3, (1,)),
        ("1", 1, 1, (1,)),
    ],
)
def test_numbers_of_the_paper(shape: str, nodes: int, wavelengths: int, switches: tuple[int, ...]) -> None:
    """Nodes, wavelengths of a NIC and switches of the grids of section 3.C, 8x8x8 and 16x16x16 corrected."""
    made = fabric("oddl", shape=shape)
    assert (made.num_nodes, made.num_wavelengths) == (nodes, wavelengths)
    assert made.ports_per_node == len(switches)
    assert switches_per_dimension(made.parameters["shape"]) == switches


@pytest.mark.parametrize(
    ("nodes", "shape"),
    [
        (1, (1,)),
        (2, (2,)),
        (32, (32,)),
        (64, (8, 8)),
        (128, (8, 16)),
        (1024, (32, 32)),
        (2048, (8, 16, 16)),
        (4096, (16, 16, 16)),
        (32768, (32, 32, 32)),
    ],
)
def test_shape_at_scale(nodes: int, shape: tuple[int, ...]) -> None:
    """The grid nearest to a square with sides up to 32, and the whole rate of a node where one is asked for."""
    made = fabric_at_scale("oddl", nodes, 1e12)
    assert made.parameters["shape"] == shape
    assert made.node_rate_bits_per_s == pytest.approx(1e12)


@pytest.mark.parametrize(("nodes", "near"), [(3, "2 or 4"), (1000, "512 or 1024"), (65536, "32768"), (10**9, "32768")])
def test_sizes_that_do_not_exist(nodes: int, near: str) -> None:
    """Other than powers of two up to 32 x 32 x 32 are refused, with the nearest."""
    with pytest.raises(FabricError, match=f"{nodes} nodes .* nearest: {near}$"):
        fabric_at_scale("oddl", nodes)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("shape=2x2x2x2", "shape=2x2x2x2 has 4 dimensions, 1 to 3 exist; nearest: 2x2x4"),
        ("wavelengths=0", "wavelengths=0; a switch takes 1 to 96, nearest: wavelengths=1"),
        ("wavelengths=97", "wavelengths=97; a switch takes 1 to 96, nearest: wavelengths=96"),
        ("control_radix=15", "control_radix=15 is no even number of at least 2; nearest: 14 or 16"),
        ("control_radix=-4", "nearest: 2"),
        ("nic_rate=0b/s", "nic_rate must be positive"),
        ("reconfiguration=-1s", "not negative"),
    ],
)
def test_bad_parameters_are_refused(arguments: str, text: str) -> None:
    """One line that names the field, its value and what to try."""
    with pytest.raises(FabricError, match=text):
        fabric(f"oddl:{arguments}")


@pytest.mark.parametrize(
    "shape", ["2", "3", "7", "2x2", "2x3", "3x3", "3x5", "1x5x1", "4x1", "3x4x5", "3x3x3", "2x2x2", "5x2x7", "32x32"]
)
def test_ring_order_is_a_cycle_of_single_hops(shape: str) -> None:
    """Every node once, neighbours linked, the last and the first too."""
    made = fabric("oddl", shape=shape)
    order = made.ring_order()
    assert sorted(order) == list(range(made.num_nodes))
    assert made.linked(order, np.roll(order, -1)).all()
    assert order[0] == 0


def test_linked_is_one_coordinate() -> None:
    """One hop joins nodes that differ in one coordinate alone; a node is not linked to itself."""
    linked = fabric("oddl:shape=2x3x4").linked
    coordinates = np.stack(np.unravel_index(np.arange(24), (2, 3, 4)), axis=1)
    differing = (coordinates[:, None] != coordinates[None]).sum(axis=2)
    node = np.arange(24)
    assert np.array_equal(linked(node[:, None], node[None]), differing == 1)


def test_mean_hops_of_the_control_tree() -> None:
    """Equation 1 at 1024 nodes: 4.863 switches over all pairs, 3.2 over the partners of halving-doubling."""
    made = fabric("oddl:control_switch_delay=0.5s")  # two exchanges at half a second a switch: seconds are hops
    assert made.control_s is not None
    hops = [made.control_s(np.array([0]), np.array([other])) for other in range(1, 1024)]
    assert np.mean(hops) == pytest.approx(4.863, abs=5e-4)
    assert np.mean([hops[(1 << bit) - 1] for bit in range(10)]) == pytest.approx(3.2)


def test_control_waits_for_the_farthest_pair() -> None:
    """A step takes as long as its longest exchange; a step without transfers takes none."""
    made = fabric("oddl")
    assert made.control_s is not None
    assert made.control_s(np.array([0, 8]), np.array([7, 15])) == pytest.approx(10e-6)
    assert made.control_s(np.array([0, 0]), np.array([7, 63])) == pytest.approx(30e-6)
    assert made.control_s(np.array([0, 0]), np.array([7, 64])) == pytest.approx(50e-6)
    assert made.control_s(np.zeros(0, np.int32), np.zeros(0, np.int32)) == 0


# --- mutants: the judge refuses each by its own rule ------------------------------------------------------------------


def _mutated(change: Callable[[Circuits], Circuits], step: int = 1) -> set[str]:
    """Rules that a halving-doubling job on 2 x 4 nodes breaks once the circuits of a step are changed."""
    where = fabric("oddl:shape=2x4,wavelengths=4")
    right = lower(where, generate("halving_doubling", "all_reduce", where))

    def rounds(i: int) -> tuple[Circuits, ...]:
        return tuple(change(c) for c in right.rounds(i)) if i == step else right.rounds(i)

    return {v.rule for v in verify(CircuitPlan(where, right.schedule, rounds)).violations}


def _with(circuits: Circuits, column: str, row: int, value: int) -> Circuits:
    values = getattr(circuits, column).copy()
    values[row] = value
    return dataclasses.replace(circuits, **{column: values})


def test_the_plan_that_is_mutated_is_right() -> None:
    """Nothing is wrong before a change."""
    assert _mutated(lambda c: c) == set()


@pytest.mark.parametrize(
    ("change", "rules"),
    [
        (lambda c: _with(c, "wavelength_lo", 0, 0), {"switch_reset"}),  # that wavelength leads to another output
        (lambda c: _with(c, "wavelength_n", 0, 1), set()),  # half of a bonded pair is no clash
        (lambda c: _with(c, "wavelength_lo", 0, 3), {"wavelength_unknown"}),  # the pair would end at wavelength 4
        (lambda c: _with(c, "wavelength_n", 0, 0), {"wavelength_unknown"}),
        (lambda c: _with(c, "port", 0, 0), {"path_broken"}),  # the NIC of the other dimension
        (lambda c: _with(c, "port", 0, 2), {"port_unknown"}),
        (lambda c: _with(c, "hops", 0, 0), {"path_broken"}),  # the switch of the other dimension
        (lambda c: _with(c, "hops", 0, 9), {"path_broken"}),
        (lambda c: _with(c, "hops", 0, -1), {"path_broken"}),
        (lambda c: dataclasses.replace(c, hops=c.hops[:0], hop_offsets=c.hop_offsets * 0), {"path_broken"}),
        (
            lambda c: dataclasses.replace(c, wavelength_step=2, wavelength_lo=c.wavelength_lo * 0),
            {"wavelength_unheard"},
        ),
        (lambda c: _with(c, "dst", 0, 6), {"circuit_astray", "path_broken"}),  # 0 -> 6 differs in both coordinates
        (lambda c: concatenate_circuits([c, c.take([0])]), {"transmitter_shared", "receiver_shared"}),
        (lambda c: c.take(np.arange(1, len(c))), {"transfer_not_carried"}),
    ],
)
def test_mutants_are_refused(change: Callable[[Circuits], Circuits], rules: set[str]) -> None:
    """A wrong wavelength, port, path, a doubled or a missing circuit."""
    assert _mutated(change) == rules


def _alone(*circuits: tuple[int, int, int, int]) -> set[str]:
    """Rules that (round, src, dst, wavelength) on one switch of four ports break."""
    where = fabric("oddl:shape=4,wavelengths=4")
    schedule = generate("recursive_doubling", "all_reduce", where)
    rows = np.array(circuits)

    def rounds(i: int) -> tuple[Circuits, ...]:
        if i:
            return ()
        picked = [rows[rows[:, 0] == number] for number in np.unique(rows[:, 0])]
        return tuple(
            Circuits.of(np.arange(len(r)), r[:, 1], r[:, 2], 0, r[:, 3], 1, np.zeros((len(r), 1))) for r in picked
        )

    physics = {"transmitter_shared", "receiver_shared", "switch_reset"}
    return {v.rule for v in verify(CircuitPlan(where, schedule, rounds)).violations} & physics


@pytest.mark.parametrize(
    ("circuits", "rules"),
    [
        ([(0, 0, 1, 0), (0, 1, 2, 0), (0, 2, 0, 0)], set()),  # one wavelength, three inputs, three outputs
        ([(0, 0, 1, 0), (0, 0, 2, 1)], {"transmitter_shared"}),  # a NIC has one partner at a time
        ([(0, 0, 2, 0), (0, 1, 2, 1)], {"receiver_shared"}),
        ([(0, 0, 1, 0), (1, 0, 2, 1)], set()),  # retuned between rounds
        ([(0, 0, 1, 0), (1, 0, 2, 0)], {"switch_reset"}),  # the input would have to be set again
        ([(0, 0, 2, 0), (1, 1, 2, 0)], {"switch_reset"}),  # and the output
    ],
)
def test_physics_of_one_switch(circuits: list[tuple[int, int, int, int]], rules: set[str]) -> None:
    """Exclusive NICs in a round, one setting of the switch for the whole job."""
    assert _alone(*circuits) == rules
