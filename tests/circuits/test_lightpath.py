"""Lasers, routes and rounds on LIGHTPATH."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import numpy as np
import pytest

import opticcl
from opticcl.assumptions import assumptions
from opticcl.circuits import lower
from opticcl.circuits.lightpath import row_column_routes
from opticcl.collective import collective
from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric, fabric_at_scale, job
from opticcl.fabrics.lightpath import EAST, NORTH, SOUTH, WEST
from opticcl.ir import CircuitPlan, Circuits, Op, Schedule, Transfers, concatenate_transfers, same_columns
from opticcl.schedule import generate, reason_declined
from opticcl.simulate import simulate
from opticcl.simulate.parts import Reconfiguration
from opticcl.verify import verify

NUMBERINGS = ["row", "squares", "random"]


def plan(where: str, algorithm: str, num_nodes: int | None = None, collective: str = "all_reduce") -> CircuitPlan:
    """A verified plan."""
    made = fabric(where) if num_nodes is None else fabric_at_scale(where, num_nodes)
    lowered = lower(made, generate(algorithm, collective, made))
    verify(lowered).raise_if_bad()
    return lowered


def rounds_of_steps(made: CircuitPlan) -> list[tuple[Circuits, ...]]:
    """Rounds of every step."""
    return [made.rounds(i) for i in range(made.schedule.num_steps)]


def edge_load(circuits: Circuits) -> int:
    """Most circuits on an edge."""
    return int(np.bincount(circuits.hops).max())


# --- everything verifies ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("radix", [2, 4, 8])
@pytest.mark.parametrize("numbering", NUMBERINGS)
def test_lumorph_verifies_in_one_round_a_step(radix: int, numbering: str) -> None:
    """Forty waveguides and sixteen lasers are enough for all of them."""
    made = plan(f"lightpath:numbering={numbering}", f"lumorph:radix={radix}", 96)
    assert all(len(rounds) == 1 for rounds in rounds_of_steps(made))


@pytest.mark.parametrize("algorithm", ["tree", "lumorph:radix=4"])
@pytest.mark.parametrize("scarce", ["waveguides=1", "lasers=1", "lasers=3,waveguides=1,switch_unit=waveguide"])
def test_scarce_light_still_verifies(algorithm: str, scarce: str) -> None:
    """Any schedule on the least hardware, in as many rounds as it takes."""
    plan(f"lightpath:{scarce},numbering=random", algorithm, 64)


@pytest.mark.parametrize("algorithm", ["halving_doubling", "recursive_doubling", "tree", "ring"])
def test_other_schedules_take_all_lasers_where_they_can(algorithm: str) -> None:
    """One peer at a time has the whole tile."""
    for rounds in rounds_of_steps(plan("lightpath:shape=4x4", algorithm)):
        assert all((circuits.wavelength_n == 16).all() for circuits in rounds)


# --- lasers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("radix", "lasers"), [(2, 16), (4, 5), (8, 2)])
def test_whole_lasers_for_each_peer(radix: int, lasers: int) -> None:
    """16, 5 and 2 lasers for each of 1, 3 and 7 peers."""
    for (circuits,) in rounds_of_steps(plan("lightpath:shape=8x8", f"lumorph:radix={radix}")):
        assert (circuits.wavelength_n == lasers).all()


@pytest.mark.parametrize(("lasers", "rounds"), [(1, 3), (2, 2), (3, 1), (4, 1)])
def test_more_peers_than_lasers_take_turns(lasers: int, rounds: int) -> None:
    """Three peers on 1, 2, 3 and 4 lasers."""
    made = plan(f"lightpath:shape=4x4,lasers={lasers}", "lumorph:radix=4")
    assert [len(r) for r in rounds_of_steps(made)] == [rounds] * 4


def test_a_prime_takes_turns_too() -> None:
    """36 peers on 16 lasers: three rounds."""
    assert [len(r) for r in rounds_of_steps(plan("lightpath", "lumorph", 37))] == [3, 3]


def test_circuits_of_the_middle_step_stand() -> None:
    """The last step of the reduce-scatter and the first of the all-gather have the same light."""
    (before,), (after,) = rounds_of_steps(plan("lightpath", "lumorph:radix=4"))[3:5]
    for column in Circuits.__slots__[:8]:
        assert np.array_equal(getattr(before, column), getattr(after, column))


# --- all to all, and any other schedule -------------------------------------------------------------------------------


@pytest.mark.parametrize(("nodes", "lasers"), [(2, 16), (8, 8), (13, 5), (17, 16), (18, 16), (64, 16), (256, 16)])
def test_direct_all_to_all_takes_the_fewest_rounds(nodes: int, lasers: int) -> None:
    """ceil((N - 1) / lasers): nobody can send or hear more at once."""
    made = plan(f"lightpath:lasers={lasers}", "mesh", nodes, "all_to_all")
    assert len(made.rounds(0)) == ceil((nodes - 1) / lasers)


@pytest.mark.parametrize("collective", ["reduce_scatter", "all_gather", "all_to_all", "barrier"])
@pytest.mark.parametrize("algorithm", ["mesh", "bruck:radix=5"])
@pytest.mark.parametrize("scarce", ["waveguides=1", "lasers=1", "lasers=3,waveguides=1,switch_unit=waveguide"])
def test_every_collective_verifies_on_scarce_light(collective: str, algorithm: str, scarce: str) -> None:
    """In as many rounds as it takes."""
    where = fabric_at_scale(f"lightpath:{scarce},numbering=random", 12)
    if reason_declined(algorithm, collective, where) is None:
        plan(f"lightpath:{scarce},numbering=random", algorithm, 12, collective)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("algorithm", ["lumorph:radix=16", "mesh", "bruck:radix=13", "bruck:radix=4"])
def test_a_job_takes_the_fewest_rounds(seed: int, algorithm: str) -> None:
    """Tiles anywhere on the wafer, not enough lasers: still ceil(peers / lasers) rounds, by edge colouring."""
    nodes = np.random.default_rng(seed).permutation(64)[:26]
    part = job(fabric("lightpath:shape=8x8,lasers=3"), nodes)
    made = lower(part, generate(algorithm, "all_gather", part))
    verify(made).raise_if_bad()
    for i in range(made.schedule.num_steps):
        step = made.schedule.step(i)
        partners = np.bincount(step.src).max() if algorithm == "bruck:radix=4" else 0  # two transfers for one peer
        partners = max(partners, np.bincount(np.unique(step.src.astype(np.int64) * 64 + step.dst) // 64).max())
        assert len(made.rounds(i)) <= ceil(partners / 3)


def test_transfers_of_a_pair_share_its_lasers() -> None:
    """Bruck's ranges that go round the end: all 16 lasers, and no other split is faster."""
    made = plan("lightpath", "bruck", 30, "all_to_all")
    split = 0
    for i, (circuits,) in enumerate(rounds_of_steps(made)):
        size = made.schedule.step(i).size_chunks()[circuits.transfer]
        for node in range(30):
            rows = np.flatnonzero(circuits.src == node)
            lasers = circuits.wavelength_n[rows]
            assert lasers.sum() == 16
            if len(rows) == 2:
                split += 1
                best = min(max(size[rows[0]] / k, size[rows[1]] / (16 - k)) for k in range(1, 16))
                assert (size[rows] / lasers).max() == pytest.approx(best)
    assert split > 30


def test_stars_are_coloured_without_tables() -> None:
    """A root of 5,999 peers: first fit, as many rounds as its lasers must take."""
    where = fabric("lightpath:shape=60x100")
    part = job(where, range(5_999, -1, -1))
    assert len(lower(part, generate("mesh", "gather", part)).rounds(0)) == ceil(5_999 / 16)


# --- routes -----------------------------------------------------------------------------------------------------------


def test_routes_go_along_the_row_and_then_along_the_column() -> None:
    """All four quadrants from the middle of a 3 x 3 grid."""
    hops, offsets = row_column_routes(np.full(4, 4), np.array([0, 2, 6, 8]), 3)
    assert offsets.tolist() == [0, 2, 4, 6, 8]
    west, east = 4 * 4 + WEST, 4 * 4 + EAST
    up, down = [4 * 3 + NORTH, 4 * 5 + NORTH], [4 * 3 + SOUTH, 4 * 5 + SOUTH]
    assert hops.tolist() == [west, up[0], east, up[1], west, down[0], east, down[1]]


def test_no_routes() -> None:
    """Nothing to join is no error."""
    hops, offsets = row_column_routes(np.zeros(0, int), np.zeros(0, int), 3)
    assert (hops.tolist(), offsets.tolist()) == ([], [0])


@pytest.mark.parametrize(
    ("shape", "radix_2", "radix_4"), [("8x8", 4, 8), ("16x16", 8, 16), ("32x8", 16, 32), ("4x64", 32, 64)]
)
@pytest.mark.parametrize("numbering", ["row", "squares"])
def test_most_circuits_on_an_edge(shape: str, radix_2: int, radix_4: int, numbering: str) -> None:
    """As many as must cross the middle cut of the longer side."""
    for radix, expected in ((2, radix_2), (4, radix_4)):
        where = fabric(f"lightpath:shape={shape},numbering={numbering},waveguides=100")
        steps = rounds_of_steps(lower(where, generate(f"lumorph:radix={radix}", "all_reduce", where)))
        assert max(edge_load(circuits) for (circuits,) in steps) == expected


def test_loads_double_with_the_distance() -> None:
    """Rounds of LUMORPH-4 on 16 x 16 squares: 2, 4, 8 and 16 circuits on the fullest edge."""
    steps = rounds_of_steps(plan("lightpath:numbering=squares", "lumorph:radix=4"))
    assert [edge_load(circuits) for (circuits,) in steps[:4]] == [2, 4, 8, 16]


# --- rounds -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("waveguides", [1, 3])
@pytest.mark.parametrize("radix", [2, 4])
@pytest.mark.parametrize("numbering", NUMBERINGS)
def test_few_waveguides_split_rounds(waveguides: int, radix: int, numbering: str) -> None:
    """At least load / waveguides rounds a step, and in all at most a tenth more."""
    counted = f"lightpath:shape=8x8,numbering={numbering},switch_unit=waveguide"
    roomy = rounds_of_steps(plan(f"{counted},waveguides=1000", f"lumorph:radix={radix}"))
    scarce = rounds_of_steps(plan(f"{counted},waveguides={waveguides}", f"lumorph:radix={radix}"))
    bounds = [ceil(edge_load(circuits) / waveguides) for (circuits,) in roomy]
    found = [len(rounds) for rounds in scarce]
    assert all(f >= b for f, b in zip(found, bounds, strict=True))
    assert sum(found) <= 1.1 * sum(bounds)


@pytest.mark.parametrize(("waveguides", "rounds"), [(16, 1), (15, 2), (8, 2), (4, 4), (1, 16)])
def test_rounds_of_the_fullest_step(waveguides: int, rounds: int) -> None:
    """Sixteen circuits on the fullest edge of LUMORPH-4 on 16 x 16 (appendix C: split, and repeat)."""
    made = plan(f"lightpath:waveguides={waveguides},switch_unit=waveguide", "lumorph:radix=4")
    assert max(len(r) for r in rounds_of_steps(made)) == rounds


def test_wavelengths_share_a_waveguide() -> None:
    """Circuits of LUMORPH-4 have 5 of 16 wavelengths: three share a waveguide, where each wavelength is switched by itself."""

    def count(unit: str) -> int:
        made = plan(f"lightpath:waveguides=1,switch_unit={unit}", "lumorph:radix=4")
        return sum(map(len, rounds_of_steps(made)))

    assert count("wavelength") < count("waveguide")


def test_too_many_edges_are_refused_before_they_fill_the_memory() -> None:
    """A large prime means a path from everybody to everybody along one row."""
    where = fabric_at_scale("lightpath", 1021)
    with pytest.raises(UnsupportedError, match="algorithm=ring"):
        lower(where, generate("lumorph", "all_reduce", where))


def test_so_are_those_of_all_pairs() -> None:
    """A million paths along one row of 1021 tiles."""
    where = fabric_at_scale("lightpath", 1021)
    with pytest.raises(UnsupportedError, match="1,041,420 transfers cross about 354,082,800 edges"):
        lower(where, generate("mesh", "all_to_all", where))


def all_dimensions_of_a_hypercube(nodes, turned):
    """An all_reduce on pieces: in every step a node exchanges one piece along each dimension, listed in turned order or not."""
    dimensions = nodes.bit_length() - 1
    ranks = np.arange(nodes)

    def step(i):
        pieces = []
        for piece in range(dimensions):
            at = (i if i < dimensions else 2 * dimensions - 1 - i) + piece
            pieces.append(Transfers.of(ranks, ranks ^ 1 << at % dimensions, piece * nodes, 1, Op.REDUCE))
        return concatenate_transfers(pieces if turned else sorted(pieces, key=lambda t: int(t.dst[0])))

    return Schedule("by hand", collective("all_reduce", nodes, dimensions * nodes), 2 * dimensions, step)


@pytest.mark.parametrize("turned", [False, True])
def test_light_does_not_depend_on_the_order_of_transfers(turned):
    """The eight circuits of each of 256 nodes stand from the first step on: 3.7 us, and sixteen times 0.7 us."""
    plan = lower(fabric("lightpath:shape=16x16"), all_dimensions_of_a_hypercube(256, turned))
    total_s = simulate(plan, 1000, assumptions("published", compute="none")).timeline.total_s
    assert total_s == pytest.approx(14.9e-6, rel=1e-3)


@pytest.mark.parametrize("algorithm", ["double_tree:pipeline=4", "mesh", "tree", "ring", "halving_doubling", "lumorph"])
@pytest.mark.parametrize("where", ["lightpath:shape=4x4", "lightpath:shape=2x4,waveguides=1,routing=random"])
def test_shuffled_steps_get_the_same_circuits(where, algorithm):
    """The same nodes, lasers and paths in every round."""
    plan = opticcl.compile(where, "all_reduce", "1 MB", algorithm=algorithm).circuits
    rng = np.random.default_rng(7)
    mixed = [plan.schedule.step(i) for i in range(plan.schedule.num_steps)]
    mixed = [step.take(rng.permutation(len(step))) for step in mixed]
    other = lower(plan.fabric, replace(plan.schedule, step=mixed.__getitem__, classes=()))

    def light(circuits):
        paths = [tuple(circuits.path(i).tolist()) for i in range(len(circuits))]
        columns = (circuits.src, circuits.dst, circuits.wavelength_lo, circuits.wavelength_n)
        return sorted(zip(*(column.tolist() for column in columns), paths, strict=True))

    for i in range(plan.schedule.num_steps):
        assert [light(c) for c in other.rounds(i)] == [light(c) for c in plan.rounds(i)]
    assert verify(other).ok


def test_pairs_that_stand_keep_their_lasers():
    """Trees in a pipeline: the steps that end it use pairs of the step before, and nothing is set for them."""
    plan = opticcl.compile("lightpath:shape=8x8", "all_reduce", "1 MB", algorithm="double_tree:pipeline=64").circuits
    charges = Reconfiguration(plan.fabric, assumptions("published"))
    before, needless, changes = set(), 0, 0
    for steps in plan.schedule.step_classes():
        (circuits,) = plan.rounds(steps.start)
        pairs = set(zip(circuits.src.tolist(), circuits.dst.tolist(), strict=True))
        changed = charges.of_round(circuits)[0] > 0
        changes += changed
        needless += changed and pairs <= before
        before = pairs
    assert (changes, needless) == (12, 0)


def test_lasers_do_not_depend_on_what_is_asked_first():
    """Of a step in the middle, in a new plan."""
    plan, other = (
        opticcl.compile("lightpath:shape=4x4", "all_reduce", "1 MB", algorithm="double_tree:pipeline=8").circuits
        for _ in range(2)
    )
    for i in range(plan.schedule.num_steps):
        plan.rounds(i)
    for i in (plan.schedule.num_steps - 1, 3, plan.schedule.num_steps // 2):
        for one, same in zip(plan.rounds(i), other.rounds(i), strict=True):
            assert np.array_equal(one.wavelength_lo, same.wavelength_lo)
            assert np.array_equal(one.wavelength_n, same.wavelength_n)


def test_the_same_pairs_with_other_lasers_have_other_circuits() -> None:
    """Two transfers of a pair share its lasers by their sizes; a step that follows the same pairs with others has its own."""
    where = fabric("lightpath:shape=2x2,lasers=4")
    steps = [Transfers.of([0, 0], [1, 1], [0, 3], sizes, Op.COPY) for sizes in ([1, 1], [3, 1], [3, 1])]
    schedule = Schedule("hand", collective("all_gather", 4, 4), len(steps), steps.__getitem__)
    widths = []
    for i in range(3):
        plans = lower(where, schedule), lower(where, schedule)
        together = [plans[0].rounds(step) for step in range(3)][i]
        alone = plans[1].rounds(i)
        assert all(map(same_columns, together, alone))
        widths.append(together[0].wavelength_n.tolist())
    assert widths == [[2, 2], [3, 1], [3, 1]]
