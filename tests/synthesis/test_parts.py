"""Parts of the synthesis: tables of colours, wavelengths of rounds, symmetries, time reversal."""

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from math import gcd

import numpy as np
import pytest
from tests.synthesis.helpers import wafer

from opticcl.collective import Request
from opticcl.fabrics import fabric, job
from opticcl.synthesis.hints import candidates, ring_of
from opticcl.synthesis.hub_reduction import exchange_rounds, hub_candidates
from opticcl.synthesis.light import assign_by_solver, assign_wavelengths
from opticcl.synthesis.packing import Demand, RoundOccupancy, pack, pack_groups
from opticcl.synthesis.partial_schedule import PieceSend, reversed_as_reduction
from opticcl.synthesis.problem import registered_problem
from opticcl.synthesis.product import line_colours, product_rounds
from opticcl.synthesis.reduction import solve_reduction
from opticcl.synthesis.solver import Clock
from opticcl.synthesis.symmetric import translation_orbits, trivial_orbits
from opticcl.synthesis.symmetry import grid_translations, symmetric_rounds
from opticcl.synthesis.wafer import wafer_of


def clashes(light, sends):
    """Lasers, photodiodes and (edge, wavelength) pairs of a round over their capacity."""
    lasers = Counter((s.src, s.wavelength) for s in sends)
    photodiodes = Counter((s.dst, s.wavelength) for s in sends)
    edges = Counter((edge, s.wavelength) for s in sends for edge in s.path)
    over = [k for ends in (lasers, photodiodes) for k, count in ends.items() if count > 1]
    return over + [k for k, count in edges.items() if count > light.room[k[0]]]


@pytest.mark.parametrize("waveguides", [1, 2, 4])
@pytest.mark.parametrize("length", range(1, 6))
def test_colours_of_a_line(length, waveguides):
    """Rows and columns without repeats, no edge over capacity, and as few colours as the middle edge allows."""
    table = np.array(line_colours(length, waveguides))
    colours = max(length, -(-(length // 2) * (length - length // 2) // waveguides))
    assert table.max() < colours
    for lines in (table, table.T):
        assert all(len(set(line)) == length for line in lines.tolist())
    for edge in range(length - 1):
        for side in (table[: edge + 1, edge + 1 :], table[edge + 1 :, : edge + 1]):
            assert max(Counter(side.ravel().tolist()).values()) <= waveguides


@pytest.mark.parametrize("shape", ["2x2", "3x4", "4x4", "1x5", "5x2"])
def test_all_pairs_by_rows_and_columns(shape):
    """Every pair once, no clash, in as many slots as the product of the two tables has."""
    light = wafer(shape, 3, 1)
    problem = registered_problem(Request("all_to_all"), light.num_ranks, 2)
    schedule = product_rounds(light, problem.before, problem.after)
    assert sorted(s.piece for sends in schedule for s in sends) == list(range(len(problem.chunk)))
    assert not [c for sends in schedule for c in clashes(light, sends)]


@pytest.mark.parametrize("shape", ["2x3", "3x3", "2x4", "1x5"])
def test_translations_of_a_grid(shape):
    """Each translation is a permutation of the tiles, and the second part of a composition is what the table says."""
    rows, columns = map(int, shape.split("x"))
    to, less = grid_translations(rows, columns)
    tiles = np.arange(rows * columns)
    for table in (to, to.T):
        assert all(np.array_equal(np.sort(line), tiles) for line in table)
    for a in tiles:
        for d in tiles:
            assert np.array_equal(to[less[a, d]][to[d]], to[a])


@pytest.mark.parametrize(("shape", "lasers", "chunks"), [("2x4", 3, 1), ("3x3", 2, 2), ("3x5", 2, 1), ("4x4", 5, 1)])
def test_symmetric_all_gather(shape, lasers, chunks):
    """Every rank receives everything once from a holder, without a clash, with equal numbers of sends."""
    light = wafer(shape, lasers, 1, numbering="random")
    problem = registered_problem(Request("all_gather"), light.num_ranks, chunks)
    schedule = symmetric_rounds(light, problem.before, problem.after, 0, 1, 99)
    holds = problem.before.copy()
    for sends in schedule:
        assert not clashes(light, sends)
        assert len(set(Counter(s.src for s in sends).values()) | set(Counter(s.dst for s in sends).values())) == 1
        assert all(holds[s.piece, s.src] and not holds[s.piece, s.dst] for s in sends)
        for s in sends:
            holds[s.piece, s.dst] = True
    assert holds.all()
    assert symmetric_rounds(light, problem.before, problem.after, 0, 1, most=1) is None


def test_ranks_without_symmetry():
    """A broadcast, and a job on part of a grid."""
    light, part = wafer("2x2", 1), wafer_of(job(fabric("lightpath", shape="2x3", lasers=1), range(4)))
    root, everyone = np.eye(4, dtype=bool)[:1], np.ones((4, 4), bool)
    assert symmetric_rounds(light, root, everyone[:1], 0, 1, 99) is None
    assert symmetric_rounds(part, np.eye(4, dtype=bool), everyone, 0, 1, 99) is None


def test_the_product_wants_a_whole_grid():
    """A failed waveguide that closes an edge, or a failed laser: another construction is needed."""
    problem = registered_problem(Request("all_to_all"), 4, 1)
    for hurt in ({"dead_waveguides": "0-1:1"}, {"dead_lasers": "0:0"}):
        assert product_rounds(wafer("2x2", 2, 1, **hurt), problem.before, problem.after) is None


@pytest.mark.parametrize("shape", ["2x2", "2x3", "3x2", "4x4", "3x4", "2x5"])
def test_the_ring_is_hamiltonian(shape):
    """Neighbours on the ring are neighbours on the grid, the last and the first too."""
    light = wafer(shape, 1)
    ring = ring_of(light)
    assert sorted(ring.tolist()) == list(range(light.num_ranks))
    rows, columns = np.divmod(light.tile[ring], light.shape[1])
    apart = np.abs(rows - np.roll(rows, 1)) + np.abs(columns - np.roll(columns, 1))
    assert (apart == 1).all()


def test_candidates_have_every_demand_once():
    """Each candidate has each (piece, receiver) once, from ranks that may hold it."""
    light = wafer("2x4", 2, 1)
    problem = registered_problem(Request("all_gather"), 8, 1)
    due = {(p, d) for p in range(8) for d in range(8) if p != d}
    names = []
    for name, demands in candidates(light, problem.before, problem.after, seed=0, bound=4):
        names.append(name.split()[0])
        assert sorted((w.piece, w.dst) for w in demands) == sorted(due)
        schedule = pack(light, problem.before, demands)
        assert schedule is None or not [c for sends in schedule for c in clashes(light, sends)]
    assert set(names) == {"offsets", "colours", "ring", "two", "digits", "greedy"}


def test_pack_refuses_what_no_rank_can_send():
    """A piece that its sender never receives."""
    light = wafer("1x3", 1)
    holds = np.array([[True, False, False]])
    assert pack(light, holds, [Demand(0, (1,), 2)]) is None
    assert pack(light, holds, [Demand(0, (0,), 1), Demand(0, (1,), 2)], most=1) is None
    assert len(pack(light, holds, [Demand(0, (1,), 2), Demand(0, (0,), 1)])) == 2


def test_groups_are_assigned_together():
    """Two exchanges on one laser: one round each, never half of one."""
    light = wafer("1x2", 1)
    groups = [[PieceSend(p, 0, 1, True), PieceSend(p, 1, 0, True)] for p in range(2)]
    schedule = pack_groups(light, groups)
    assert [sorted(s.piece for s in sends) for sends in schedule] == [[0, 0], [1, 1]]
    assert pack_groups(light, [[*groups[0], *groups[1]]]) is None


def test_restored_circuits_are_free_again():
    """`restore` undoes `assign`."""
    light = RoundOccupancy(wafer("1x2", 1, 1))
    dark = light.snapshot()
    assert light.assign(0, 1) is not None
    assert light.assign(0, 1) is None
    light.restore(dark)
    assert light.assign(0, 1) is not None


@pytest.mark.parametrize("waveguides", [1, 4])
def test_light_for_a_round(waveguides):
    """All pairs of 2 x 4 tiles on eight wavelengths: by colouring with enough waveguides, else by first fit or the solver."""
    light = wafer("2x4", 8, waveguides)
    sends = [PieceSend(8 * s + d, s, d, path=light.routes[s, d][0]) for s in range(8) for d in range(8) if s != d]
    found = assign_wavelengths(light, [sends], Clock(60), 0, 8.0)
    assert not clashes(light, found[0])
    solved = assign_by_solver(light, sends, Clock(60), 0, 8.0)
    assert not clashes(light, solved)


def test_there_is_no_light_for_too_many():
    """Two circuits over one waveguide and one wavelength, without a detour."""
    light = wafer("1x3", 1, 1)
    sends = [PieceSend(0, 0, 2, path=light.routes[0, 2][0]), PieceSend(1, 1, 2, path=light.routes[1, 2][0])]
    assert assign_wavelengths(light, [sends], Clock(10), 0, 2.0) is None


def test_translations_carry_sends_into_each_other():
    """x[delta, a]: N offsets by N chunks of 8 ranks; with one chunk only the offsets."""
    for pieces, num_orbits in ((8, 64), (1, 8), (16, 128), (2, 16)):
        orbits = translation_orbits(pieces, 8, 8)
        assert len(np.unique(orbits.send)) == num_orbits
        shift = 5
        ranks = np.arange(8) ^ shift
        chunks = (
            np.arange(pieces) - np.arange(pieces) % min(pieces, 8) + (np.arange(pieces) % 8 ^ shift % min(pieces, 8))
        )
        assert np.array_equal(orbits.send, orbits.send[chunks][:, ranks][:, :, ranks])
        assert np.array_equal(orbits.sum, orbits.sum[chunks][:, ranks])


@pytest.mark.parametrize(
    ("pieces", "ranks", "order"), [(6, 6, 3), (5, 10, 5), (3, 9, 9), (4, 16, 4), (7, 12, 2), (2, 5, 1)]
)
def test_orbits_of_smaller_groups(pieces, ranks, order):
    """Orbits have as many members as the group; what a rank keeps is never a send; fixing a piece joins ranks."""
    orbits = translation_orbits(pieces, ranks, order)
    assert set(Counter(orbits.send.ravel().tolist()).values()) == {order}
    assert set(Counter(orbits.sum.ravel().tolist()).values()) == {order}
    own = np.einsum("prr->pr", orbits.part)
    assert not len(np.intersect1d(own, orbits.part[:, ~np.eye(ranks, dtype=bool)]))
    assert len(np.unique(orbits.sum[0])) == ranks // (order // gcd(pieces, order))


def test_symmetric_sums_are_a_schedule():
    """Four ranks, four chunks, one laser: six rounds, each with the same offsets for all ranks."""
    light, everyone = wafer("2x2", 1), np.ones((4, 4), bool)
    answer, schedule = solve_reduction(
        6, light, everyone, everyone, Clock(60), translation_orbits(4, 4, 4), effort=20, seed=0
    )
    assert answer
    for sends in schedule:
        assert Counter(s.src for s in sends) == dict.fromkeys(range(4), 1)
        assert len({s.src ^ s.dst for s in sends}) == 1


def test_a_smaller_symmetry_finds_more():
    """One piece among 16 with two lasers: three rounds, but not with a symmetry of 16; each part is added exactly once."""
    light, everyone = wafer("4x4", 2), np.ones((1, 16), bool)
    some = [
        solve_reduction(3, light, everyone, everyone, Clock(600), translation_orbits(1, 16, q), effort=40, seed=0)
        for q in (16, 4)
    ]
    assert [answer for answer, _ in some] == [False, True]
    has = np.eye(16, dtype=int)
    for sends in some[1][1]:
        then = has * np.array([all(s.adds for s in sends if s.dst == rank) for rank in range(16)])[:, None]
        for s in sends:
            then[s.dst] += has[s.src]
        has = then
    assert (has == 1).all()


def test_one_round_fewer_has_no_sums():
    """An infeasible case: 4 GPUs, 4 chunks, one laser, 5 rounds."""
    everyone = np.ones((4, 4), bool)
    answer, _ = solve_reduction(
        5, wafer("2x2", 1), everyone, everyone, Clock(600), trivial_orbits(4, 4), effort=20, seed=0
    )
    assert answer is False


def test_hubs_exchange_in_one_round_a_digit():
    """Eight hubs of one piece, three lasers: digits of 4 and 2."""
    light, everyone = wafer("2x4", 3), np.ones((1, 8), bool)
    best = hub_candidates(light, everyone, everyone)[0]
    assert (best.radices, best.least) == ((4, 2), 2)
    assert [len(sends) for sends in exchange_rounds(light, best, 9)] == [24, 8]
    assert exchange_rounds(light, best, 1) is None


def test_time_reversal_is_an_involution():
    """Paths are reversed, rounds are in reverse order, copies become sums."""
    light = wafer("2x3", 2, 2, dead_waveguides="0-1:1")
    there = [
        [PieceSend(0, 0, 5, False, 1, light.routes[0, 5][0])],
        [PieceSend(1, 4, 2, False, 0, light.routes[4, 2][0])],
    ]
    back = light.time_reversed()
    reversed_sends = reversed_as_reduction(there, light)
    assert [s.piece for sends in reversed_sends for s in sends] == [1, 0]
    assert all(s.adds and s.path in back.routes[s.src, s.dst] for sends in reversed_sends for s in sends)
    again = reversed_as_reduction(reversed_sends, back)
    assert [[s._replace(adds=False) for s in sends] for sends in again] == there
    assert np.array_equal(back.time_reversed().room, light.room)
    east, west = 4 * 0 + 0, 4 * 1 + 1
    assert (light.room[east], back.room[west], back.room[east]) == (1, 1, 2)


def test_a_wafer_without_lasers_on_one_tile_keeps_its_photodiodes():
    """Failed lasers concern the sender only."""
    light = wafer("1x2", 2, dead_lasers="0:0-1")
    assert (light.lasers.sum(axis=1).tolist(), light.photodiodes.sum(axis=1).tolist()) == ([0, 2], [2, 2])
    assert replace(light).undamaged is False


def test_both_solvers_live_in_one_process():
    """HiGHS, which routing uses, and OR-Tools, which contains a HiGHS of its own, imported in either order."""
    pytest.importorskip("ortools")
    for first, second in (("highspy", "ortools.sat.python.cp_model"), ("ortools.sat.python.cp_model", "highspy")):
        code = f"import {first}, {second}; import highspy; highspy.Highs().silent(); print('both')"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.stdout.strip() == "both", done.stderr
