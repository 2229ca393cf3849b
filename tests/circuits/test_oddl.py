"""ODDL's wavelengths: the rule of the bits, table 1, colourings for other schedules, rounds."""

from __future__ import annotations

import numpy as np
import pytest
from tests.collectives import nothing_required

import opticcl
from opticcl.circuits import lower
from opticcl.circuits.oddl import routing_table
from opticcl.collective import collective
from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric, job
from opticcl.ir import CircuitPlan, Circuits, Op, Schedule, Transfers
from opticcl.papers.oddl import table_1
from opticcl.routing.assign import edge_colouring
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
    setting = routing_table(plan)
    table[setting.src, setting.dst] = setting.wavelength_lo + 1
    return table


def test_routing_table_of_what_compile_returns() -> None:
    """The same as of its circuits; plans for other systems are refused."""
    plan = opticcl.compile("oddl:shape=8", "all_reduce", 1000, algorithm="halving_doubling")
    for column, same in zip(routing_table(plan), routing_table(plan.circuits), strict=True):
        assert column.tolist() == same.tolist()
    with pytest.raises(UnsupportedError, match="sipac"):
        routing_table(opticcl.compile("sipac:radix=2,levels=1", "all_reduce", 1000))


def test_routing_table_of_a_grid() -> None:
    """2 x 4 with two wavelengths: both bonded to the partner in the column, one for each partner in the row."""
    setting = routing_table(_plan("oddl:shape=2x4"))
    assert len(setting.src) == 8 * 3
    first = setting.src == 0
    assert setting.dst[first].tolist() == [1, 2, 4]
    assert setting.dimension[first].tolist() == [1, 1, 0]
    assert setting.wavelength_lo[first].tolist() == [0, 1, 0]
    assert setting.wavelength_n[first].tolist() == [1, 1, 2]


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


@pytest.mark.parametrize("shape", ["8", "4x4", "2x8x2", "3x5", "32x32"])
def test_all_to_all_by_dimension(shape: str) -> None:
    """Section 6 with side - 1 wavelengths: one setting for the job, side - 1 rounds a dimension."""
    sides = [int(side) for side in shape.split("x")]
    where = fabric("oddl", shape=shape, wavelengths=max(sides) - 1)
    plan = lower(where, generate("by_dimension", "all_to_all", where))
    verify(plan).raise_if_bad()
    assert [len(plan.rounds(i)) for i in range(len(sides))] == [side - 1 for side in sides]
    setting = routing_table(plan)
    assert len(setting.src) == where.num_nodes * sum(side - 1 for side in sides)
    assert all(
        (setting.wavelength_n[setting.dimension == d] == (max(sides) - 1) // (side - 1)).all()
        for d, side in enumerate(sides)
    )


@pytest.mark.parametrize("collective", ["reduce_scatter", "all_gather", "all_to_all", "broadcast", "reduce"])
def test_halving_doubling_sets_the_switches_alike(collective: str) -> None:
    """All its collectives share the all-reduce's setting, or part of it: jobs may mix them."""
    where = fabric("oddl:shape=4x8")
    whole = np.stack(routing_table(_plan("oddl:shape=4x8")), axis=1)
    part = np.stack(routing_table(lower(where, generate("halving_doubling", collective, where))), axis=1)
    assert {*map(tuple, part.tolist())} <= {*map(tuple, whole.tolist())}


def test_a_job_has_a_setting_of_its_own() -> None:
    """Four nodes of a row of eight: two partners instead of three, all on their own switch."""
    where = job(fabric("oddl:shape=2x8,wavelengths=4"), [9, 15, 12, 10])
    plan = lower(where, generate("halving_doubling", "all_reduce", where))
    verify(plan).raise_if_bad()
    setting = routing_table(plan)
    assert set(setting.src) == {9, 10, 12, 15}
    assert set(setting.wavelength_n) == {2}


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


def test_time_of_halving_doubling() -> None:
    """1024 nodes, 100 MB: 2(N-1)/N of the message at 100 Gb/s, twenty reconfigurations, equation 1 at 3.2 hops."""
    timeline = opticcl.compile("oddl", "all_reduce", "100 MB", algorithm="halving_doubling").simulate(
        assumptions="oddl"
    )
    totals = timeline.totals()
    assert totals["transfer_s"] == pytest.approx(2 * 1023 / 1024 * 100e6 * 8 / 100e9)
    assert totals["reconfiguration_s"] == pytest.approx(20 * 5e-6)
    assert totals["control_s"] == pytest.approx(20 * 2 * 5e-6 * 3.2)
    assert totals["latency_s"] == totals["compute_s"] == 0


def test_the_partner_that_stays_needs_no_retuning() -> None:
    """The middle two steps have the same partners: five settings for six steps, as section 3.A counts them."""
    timeline = opticcl.compile("oddl:shape=8", "all_reduce", "1 MB", algorithm="halving_doubling").simulate(
        assumptions="published"
    )
    assert timeline.totals()["reconfiguration_s"] == pytest.approx(5 * 5e-6)


def test_time_of_all_to_all_by_dimension() -> None:
    """32 x 32 with 31 wavelengths: 31/32 of the buffer a dimension on one wavelength at 100 Gb/s, 31 rounds each."""
    plan = opticcl.compile("oddl:wavelengths=31", "all_to_all", "100 MB", algorithm="by_dimension")
    timeline = plan.simulate(assumptions="oddl")
    assert timeline.totals()["transfer_s"] == pytest.approx(2 * 31 / 32 * 100e6 * 8 / 100e9)
    assert timeline.totals()["reconfiguration_s"] == pytest.approx(62 * 5e-6)


def test_few_partners_with_more_wavelengths_win() -> None:
    """The figures of docs/papers/oddl.md: halving bonds six wavelengths and beats the all-to-all by dimension."""
    times = [
        opticcl.compile("oddl:wavelengths=31", "all_to_all", "100 MB", algorithm=a).simulate(assumptions="oddl").total_s
        for a in ("halving_doubling", "by_dimension")
    ]
    assert times[0] == pytest.approx(7.0e-3, rel=0.01)
    assert times[1] > 2 * times[0]


# --- times ------------------------------------------------------------------------------------------------------------


# --- circuits that stand ----------------------------------------------------------------------------------------------


def _steps(nodes: int, *steps: list[tuple[int, int]], stands: bool = True) -> Schedule:
    """Pairs of each step, a chunk of their own each."""
    rows = [np.array(step, int).reshape(-1, 2) for step in steps]
    found = [Transfers.of(*row.T, np.arange(len(row)), 1, Op.COPY) for row in rows]
    return Schedule("by hand", nothing_required(nodes, 8), len(steps), lambda i: found[i], stands=stands)


def _carried(plan: CircuitPlan, step: int) -> list[list[tuple[int, int, int]]]:
    """(transfer, src, dst) of each round."""
    rounds = plan.rounds(step)
    return [list(zip(c.transfer.tolist(), c.src.tolist(), c.dst.tolist(), strict=True)) for c in rounds]


def test_circuits_of_nics_with_one_partner_stand() -> None:
    """Nodes 0 and 1 have a partner in each dimension of 2 x 2: circuits of both steps stand, those of the other idle."""
    steps = [(0, 1), (1, 3)], [(0, 2), (1, 0)]
    for where, stands in (("oddl:shape=2x2", True), ("oddl:shape=2x2,failed=transmitter:7", False)):
        plan = lower(fabric(where), _steps(4, *steps, stands=stands))
        assert [_carried(plan, i) for i in (0, 1)] == [
            [[(0, 0, 1), (1, 1, 3), (-1, 0, 2), (-1, 1, 0)]],
            [[(0, 0, 2), (1, 1, 0), (-1, 0, 1), (-1, 1, 3)]],
        ]
        assert verify(plan).ok
    plain = lower(fabric("oddl:shape=2x2"), _steps(4, *steps, stands=False))
    assert _carried(plain, 0) == [[(0, 0, 1), (1, 1, 3)]]
    assert lower(fabric("oddl:shape=2x2"), _steps(4, [])).rounds(0) == ()


def test_circuits_of_nics_with_several_partners_do_not() -> None:
    """A second partner of a sender, of a receiver, and a second transfer of a pair: each round has its own circuits alone."""
    for first, second in (([(0, 1)], [(0, 2)]), ([(0, 2)], [(1, 2)]), ([(0, 1), (0, 1)], [(1, 0)])):
        plan = lower(fabric("oddl:shape=3"), _steps(3, first, second))
        found = [_carried(plan, i) for i in (0, 1)]
        assert sorted(row[1:] for rounds in found for one in rounds for row in one) == sorted(first + second)
        assert verify(plan).ok
