"""ODDL's wavelengths: the rule of the bits, table 1, colourings for other schedules, rounds."""

from __future__ import annotations

import numpy as np
import pytest

import opticcl
from opticcl.circuits import lower
from opticcl.circuits.oddl import edge_colouring
from opticcl.collective import collective
from opticcl.errors import UnsupportedError
from opticcl.fabric import fabric
from opticcl.ir import CircuitPlan, Circuits, Op, Schedule, Transfers
from opticcl.papers.oddl import table_1
from opticcl.schedule import generate
from opticcl.verify import verify


def _plan(name: str, algorithm: str = "halving_doubling") -> CircuitPlan:
    where = fabric(name)
    return lower(where, generate(algorithm, "all_reduce", where))


def _everyone_to_everyone(nodes: int) -> Schedule:
    """Every node sends its sum to every other in one step: an all-reduce in which all pairs talk."""
    node = np.arange(nodes)

    def step(i: int) -> Transfers:
        return Transfers.of(node[:, None], node[None, :], 0, 1, Op.REDUCE)

    return Schedule("everyone_to_everyone", collective("all_reduce", nodes), 1, step)


# --- the rule of the bits ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("algorithm", ["halving_doubling", "recursive_doubling", "tree", "ring"])
@pytest.mark.parametrize(
    "shape", ["1", "2", "4", "8", "64", "256", "1x2", "2x2", "2x4", "4x2", "16x16", "4x2x8", "2x2x2", "8x8x4"]
)
def test_powers_of_two_verify(algorithm: str, shape: str) -> None:
    """One to three dimensions, 1 to 256 nodes, one round a step, no wavelengths but the default ones."""
    plan = _plan(f"oddl:shape={shape}", algorithm)
    verify(plan).raise_if_bad()
    assert all(len(plan.rounds(i)) == 1 for i in range(plan.schedule.num_steps))


@pytest.mark.parametrize("shape", ["32x32", "8x8x16"])
def test_1024_nodes_verify(shape: str) -> None:
    """The grids of 1024 nodes."""
    verify(_plan(f"oddl:shape={shape}")).raise_if_bad()


@pytest.mark.parametrize("shape", ["3", "7", "3x5", "3x3x3", "1x5x1", "6x2"])
def test_odd_shapes_carry_a_ring(shape: str) -> None:
    """Any grid has a ring."""
    verify(_plan(f"oddl:shape={shape}", "ring")).raise_if_bad()


@pytest.mark.parametrize(
    ("wavelengths", "shape", "bonded"), [(8, "256", 1), (8, "16", 2), (96, "32", 19), (5, "32x32", 1), (5, "2", 5)]
)
def test_bonded_wavelengths(wavelengths: int, shape: str, bonded: int) -> None:
    """floor(W / log2 side) a partner, section 3.A, and the judge agrees."""
    plan = _plan(f"oddl:shape={shape},wavelengths={wavelengths}")
    steps = [plan.rounds(i)[0] for i in range(plan.schedule.num_steps)]
    assert all((c.wavelength_n == bonded).all() for c in steps)
    verify(plan).raise_if_bad()


def test_a_shorter_side_bonds_more() -> None:
    """On 2 x 4 with two wavelengths the one partner of the short side has both."""
    plan = _plan("oddl:shape=2x4")
    assert [int(plan.rounds(i)[0].wavelength_n[0]) for i in range(6)] == [2, 1, 1, 1, 1, 2]
    assert [int(plan.rounds(i)[0].port[0]) for i in range(6)] == [0, 1, 1, 1, 1, 0]  # steps 1 and 6 are vertical


def test_a_wavelength_for_each_bit() -> None:
    """colour(i, i XOR 2^b) = b, the same at all nodes and in both directions."""
    plan = _plan("oddl:shape=16")
    used = [np.unique(plan.rounds(i)[0].wavelength_lo).tolist() for i in range(8)]
    assert used == [[3], [2], [1], [0], [0], [1], [2], [3]]


# --- table 1 ----------------------------------------------------------------------------------------------------------


def _routing(plan: CircuitPlan) -> np.ndarray:
    """Wavelength from 1 of every pair that talks, 0 elsewhere."""
    table = np.zeros((plan.fabric.num_nodes,) * 2, int)
    for i in range(plan.schedule.num_steps):
        for c in plan.rounds(i):
            table[c.src, c.dst] = c.wavelength_lo + 1
    return table


@pytest.mark.parametrize("plan", [table_1(), _plan("oddl:shape=8")], ids=["table 1", "rule of the bits"])
def test_a_setting_is_a_colouring_of_the_cube(plan: CircuitPlan) -> None:
    """The links are the 3-cube, both ways alike; each wavelength once at each transmitter and each receiver."""
    table = _routing(plan)
    node = np.arange(8)
    flipped = node[:, None] ^ node[None, :]
    assert np.array_equal(table > 0, np.isin(flipped, [1, 2, 4]))
    assert np.array_equal(table, table.T)
    assert all(sorted(row[row > 0]) == [1, 2, 3] for row in [*table, *table.T])
    verify(plan).raise_if_bad()


def test_table_1_at_node_1() -> None:
    """Section 3.A: node 1 reaches node 5 by wavelength 2, node 3 by wavelength 3, node 2 by wavelength 1."""
    assert _routing(table_1())[0, [4, 2, 1]].tolist() == [2, 3, 1]


def test_two_settings_do_not_mix() -> None:
    """Table 1 in some steps and the rule of the bits in others would need the switch set twice."""
    one, other = table_1(), _plan("oddl:shape=8")
    mixed = CircuitPlan(one.fabric, one.schedule, lambda i: (one if i < 3 else other).rounds(i))
    assert {v.rule for v in verify(mixed).violations} == {"switch_reset"}


def test_a_setting_for_each_step_is_refused() -> None:
    """One wavelength would do for each step alone, but the switch would have to be reset."""
    right = _plan("oddl:shape=8")

    def rounds(i: int) -> tuple[Circuits, ...]:
        (c,) = right.rounds(i)
        return (Circuits.of(c.transfer, c.src, c.dst, c.port, 0, 1, c.hops[:, None]),)

    violations = verify(CircuitPlan(right.fabric, right.schedule, rounds)).violations
    assert {v.rule for v in violations} == {"switch_reset"}
    assert min(v.step for v in violations) == 1  # the first step may set it as it likes


# --- other schedules --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [2, 3, 5, 8, 32])
def test_all_pairs_with_just_enough_wavelengths(nodes: int) -> None:
    """N - 1 wavelengths and N - 1 rounds carry all pairs of a switch, no fewer could."""
    where = fabric("oddl", shape=(nodes,), wavelengths=nodes - 1)
    plan = lower(where, _everyone_to_everyone(nodes))
    verify(plan).raise_if_bad()
    assert len(plan.rounds(0)) == nodes - 1


def test_too_few_wavelengths_are_refused() -> None:
    """The number that is needed is told, and how to get it."""
    with pytest.raises(UnsupportedError, match="needs 31 wavelengths a switch, has 5; try oddl:wavelengths=31"):
        lower(fabric("oddl:shape=32"), _everyone_to_everyone(32))
    with pytest.raises(UnsupportedError, match="needs 127 wavelengths a switch, has 7; try a shape with shorter sides"):
        lower(fabric("oddl:shape=128"), _everyone_to_everyone(128))


@pytest.mark.parametrize("algorithm", ["halving_doubling", "tree"])
def test_fewer_wavelengths_than_partners_are_refused(algorithm: str) -> None:
    """32 nodes have five partners."""
    with pytest.raises(UnsupportedError, match="needs 5 wavelengths a switch, has 4; try oddl:wavelengths=5"):
        _plan("oddl:shape=32,wavelengths=4", algorithm)


def test_a_ring_bonds_all_wavelengths() -> None:
    """A node of a ring has one partner a dimension, which gets all that its laser can do."""
    plan = _plan("oddl:shape=4x4,wavelengths=7", "ring")
    assert (plan.rounds(0)[0].wavelength_n == 7).all()
    verify(plan).raise_if_bad()


def test_a_tree_bonds_what_its_root_leaves() -> None:
    """The root of eight nodes has three partners: of seven wavelengths each gets two neighbouring ones."""
    plan = _plan("oddl:shape=8,wavelengths=7", "tree")
    steps = [plan.rounds(i)[0] for i in range(plan.schedule.num_steps)]
    assert all((c.wavelength_n == 2).all() for c in steps)
    assert {int(lo) for c in steps for lo in c.wavelength_lo} == {0, 2, 4}
    verify(plan).raise_if_bad()


def test_pairs_that_no_switch_joins_are_refused() -> None:
    """All pairs of a grid of two dimensions are not linked."""
    with pytest.raises(UnsupportedError, match=r"no single circuit joins nodes \(0, 0\) and \(1, 1\)"):
        lower(fabric("oddl:shape=2x2"), _everyone_to_everyone(4))


@pytest.mark.parametrize("seed", range(20))
def test_edge_colouring_is_proper_and_least(seed: int) -> None:
    """Random bipartite graphs, parallel edges too: as many colours as the busiest vertex has edges, none twice."""
    random = np.random.default_rng(seed)
    vertices, edges = random.integers(1, 20), random.integers(0, 120)
    left, right = random.integers(0, vertices, (2, edges))
    least = max(np.bincount(left, minlength=1).max(), np.bincount(right, minlength=1).max())
    colour = edge_colouring(left, right, vertices, least)
    for end in (left, right):
        assert len({*zip(end.tolist(), colour.tolist(), strict=True)}) == edges
    assert set(colour.tolist()) <= set(range(least))


# --- times ------------------------------------------------------------------------------------------------------------


def test_time_of_halving_doubling() -> None:
    """1024 nodes, 100 MB: 2(N-1)/N of the message at 100 Gb/s, twenty reconfigurations, equation 1 at 3.2 hops."""
    timeline = opticcl.compile("oddl", "all_reduce", "100 MB", algorithm="halving_doubling").simulate(preset="oddl")
    totals = timeline.totals()
    assert totals["transfer_s"] == pytest.approx(2 * 1023 / 1024 * 100e6 * 8 / 100e9)
    assert totals["reconfiguration_s"] == pytest.approx(20 * 5e-6)
    assert totals["control_s"] == pytest.approx(20 * 2 * 5e-6 * 3.2)
    assert totals["latency_s"] == totals["compute_s"] == 0


def test_the_partner_that_stays_needs_no_retuning() -> None:
    """The middle two steps have the same partners: five settings for six steps, as section 3.A counts them."""
    timeline = opticcl.compile("oddl:shape=8", "all_reduce", "1 MB", algorithm="halving_doubling").simulate()
    assert timeline.totals()["reconfiguration_s"] == pytest.approx(5 * 5e-6)
