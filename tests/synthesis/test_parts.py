"""The parts of the synthesis: tables of colours, light for rounds, symmetries, time turned round."""

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from math import gcd

import numpy as np
import pytest
from tests.synthesis.helpers import wafer

from opticcl.collective import Request
from opticcl.fabric import fabric, job
from opticcl.synthesis.alike import alike_draft, moves
from opticcl.synthesis.draft import Send, turned_round
from opticcl.synthesis.hints import candidates, ring_of
from opticcl.synthesis.hubs import exchanged, ways
from opticcl.synthesis.light import coloured_by_solver, lit
from opticcl.synthesis.packing import RoundOfLight, Wish, pack, pack_together
from opticcl.synthesis.problem import asked_for
from opticcl.synthesis.product import line_colours, product_draft
from opticcl.synthesis.reduction import sums_in
from opticcl.synthesis.solver import Clock
from opticcl.synthesis.symmetric import all_alone, translations
from opticcl.synthesis.wafer import wafer_of


def clashes(light, sends):
    """Lasers, photodiodes and (edge, wavelength) pairs of a round that carry too much."""
    lasers = Counter((s.src, s.wavelength) for s in sends)
    photodiodes = Counter((s.dst, s.wavelength) for s in sends)
    edges = Counter((edge, s.wavelength) for s in sends for edge in s.path)
    over = [k for ends in (lasers, photodiodes) for k, count in ends.items() if count > 1]
    return over + [k for k, count in edges.items() if count > light.room[k[0]]]


@pytest.mark.parametrize("waveguides", [1, 2, 4])
@pytest.mark.parametrize("length", range(1, 6))
def test_colours_of_a_line(length, waveguides):
    """Rows and columns without repeats, no edge overfull, and as few colours as the middle edge allows."""
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
    problem = asked_for(Request("all_to_all"), light.num_ranks, 2)
    draft = product_draft(light, problem.before, problem.after)
    assert sorted(s.piece for sends in draft for s in sends) == list(range(len(problem.chunk)))
    assert not [c for sends in draft for c in clashes(light, sends)]


@pytest.mark.parametrize("shape", ["2x3", "3x3", "2x4", "1x5"])
def test_moves_of_a_grid(shape):
    """Each move takes tiles to tiles, no two moves one tile to the same; d and then what it lacks to a is a."""
    rows, columns = map(int, shape.split("x"))
    to, less = moves(rows, columns)
    tiles = np.arange(rows * columns)
    for table in (to, to.T):
        assert all(np.array_equal(np.sort(line), tiles) for line in table)
    for a in tiles:
        for d in tiles:
            assert np.array_equal(to[less[a, d]][to[d]], to[a])


@pytest.mark.parametrize(("shape", "lasers", "chunks"), [("2x4", 3, 1), ("3x3", 2, 2), ("3x5", 2, 1), ("4x4", 5, 1)])
def test_all_ranks_alike(shape, lasers, chunks):
    """Everybody hears everything once from one who has it, without a clash, all equally busy."""
    light = wafer(shape, lasers, 1, numbering="random")
    problem = asked_for(Request("all_gather"), light.num_ranks, chunks)
    draft = alike_draft(light, problem.before, problem.after, 0, 1, 99)
    holds = problem.before.copy()
    for sends in draft:
        assert not clashes(light, sends)
        assert len(set(Counter(s.src for s in sends).values()) | set(Counter(s.dst for s in sends).values())) == 1
        assert all(holds[s.piece, s.src] and not holds[s.piece, s.dst] for s in sends)
        for s in sends:
            holds[s.piece, s.dst] = True
    assert holds.all()
    assert alike_draft(light, problem.before, problem.after, 0, 1, most=1) is None


def test_ranks_that_are_not_alike():
    """A broadcast, and a job on part of a grid."""
    light, part = wafer("2x2", 1), wafer_of(job(fabric("lightpath", shape="2x3", lasers=1), range(4)))
    root, everyone = np.eye(4, dtype=bool)[:1], np.ones((4, 4), bool)
    assert alike_draft(light, root, everyone[:1], 0, 1, 99) is None
    assert alike_draft(part, np.eye(4, dtype=bool), everyone, 0, 1, 99) is None


def test_the_product_wants_a_whole_grid():
    """A dead waveguide that empties an edge, or a dead laser: another construction must do."""
    problem = asked_for(Request("all_to_all"), 4, 1)
    for hurt in ({"dead_waveguides": "0-1:1"}, {"dead_lasers": "0:0"}):
        assert product_draft(wafer("2x2", 2, 1, **hurt), problem.before, problem.after) is None


@pytest.mark.parametrize("shape", ["2x2", "2x3", "3x2", "4x4", "3x4", "2x5"])
def test_the_ring_is_hamiltonian(shape):
    """Neighbours on the ring are neighbours on the grid, the last and the first too."""
    light = wafer(shape, 1)
    ring = ring_of(light)
    assert sorted(ring.tolist()) == list(range(light.num_ranks))
    rows, columns = np.divmod(light.tile[ring], light.shape[1])
    apart = np.abs(rows - np.roll(rows, 1)) + np.abs(columns - np.roll(columns, 1))
    assert (apart == 1).all()


def test_candidates_fulfil_every_wish_once():
    """Each order asks for each (piece, receiver) once, from ranks that may have it."""
    light = wafer("2x4", 2, 1)
    problem = asked_for(Request("all_gather"), 8, 1)
    due = {(p, d) for p in range(8) for d in range(8) if p != d}
    names = []
    for name, wishes in candidates(light, problem.before, problem.after, seed=0, bound=4):
        names.append(name.split()[0])
        assert sorted((w.piece, w.dst) for w in wishes) == sorted(due)
        draft = pack(light, problem.before, wishes)
        assert draft is None or not [c for sends in draft for c in clashes(light, sends)]
    assert set(names) == {"offsets", "colours", "ring", "two", "digits", "greedy"}


def test_pack_gives_up_on_what_nobody_can_send():
    """A piece that its sender never gets."""
    light = wafer("1x3", 1)
    holds = np.array([[True, False, False]])
    assert pack(light, holds, [Wish(0, (1,), 2)]) is None
    assert pack(light, holds, [Wish(0, (0,), 1), Wish(0, (1,), 2)], most=1) is None
    assert len(pack(light, holds, [Wish(0, (1,), 2), Wish(0, (0,), 1)])) == 2


def test_groups_get_light_together():
    """Two exchanges on one laser: a round each, and never half of one."""
    light = wafer("1x2", 1)
    groups = [[Send(p, 0, 1, True), Send(p, 1, 0, True)] for p in range(2)]
    draft = pack_together(light, groups)
    assert [sorted(s.piece for s in sends) for sends in draft] == [[0, 0], [1, 1]]
    assert pack_together(light, [[*groups[0], *groups[1]]]) is None


def test_light_that_is_put_out_is_free_again():
    """`restore` undoes `lay`."""
    light = RoundOfLight(wafer("1x2", 1, 1))
    dark = light.remembered()
    assert light.lay(0, 1) is not None
    assert light.lay(0, 1) is None
    light.restore(dark)
    assert light.lay(0, 1) is not None


@pytest.mark.parametrize("waveguides", [1, 4])
def test_light_for_a_round(waveguides):
    """All pairs of 2 x 4 tiles on eight wavelengths: by colouring if waveguides are plenty, else by first fit or solver."""
    light = wafer("2x4", 8, waveguides)
    sends = [Send(8 * s + d, s, d, path=light.routes[s, d][0]) for s in range(8) for d in range(8) if s != d]
    found = lit(light, [sends], Clock(60), 0, 8.0)
    assert not clashes(light, found[0])
    solved = coloured_by_solver(light, sends, Clock(60), 0, 8.0)
    assert not clashes(light, solved)


def test_there_is_no_light_for_too_many():
    """Two circuits over one waveguide and one wavelength, no way round."""
    light = wafer("1x3", 1, 1)
    sends = [Send(0, 0, 2, path=light.routes[0, 2][0]), Send(1, 1, 2, path=light.routes[1, 2][0])]
    assert lit(light, [sends], Clock(10), 0, 2.0) is None


def test_translations_carry_sends_into_each_other():
    """x[delta, a]: N offsets by N chunks of 8 ranks; with one chunk the offsets alone; no such group for other numbers."""
    for pieces, orbits in ((8, 64), (1, 8), (16, 128), (2, 16)):
        alike = translations(pieces, 8, 8)
        assert len(np.unique(alike.send)) == orbits
        shift = 5
        ranks = np.arange(8) ^ shift
        chunks = (
            np.arange(pieces) - np.arange(pieces) % min(pieces, 8) + (np.arange(pieces) % 8 ^ shift % min(pieces, 8))
        )
        assert np.array_equal(alike.send, alike.send[chunks][:, ranks][:, :, ranks])
        assert np.array_equal(alike.sum, alike.sum[chunks][:, ranks])


@pytest.mark.parametrize(
    ("pieces", "ranks", "order"), [(6, 6, 3), (5, 10, 5), (3, 9, 9), (4, 16, 4), (7, 12, 2), (2, 5, 1)]
)
def test_orbits_of_smaller_groups(pieces, ranks, order):
    """As many alike as the group has members; what a rank keeps is never a send; what leaves a piece in place joins ranks."""
    alike = translations(pieces, ranks, order)
    assert set(Counter(alike.send.ravel().tolist()).values()) == {order}
    assert set(Counter(alike.sum.ravel().tolist()).values()) == {order}
    own = np.einsum("prr->pr", alike.part)
    assert not len(np.intersect1d(own, alike.part[:, ~np.eye(ranks, dtype=bool)]))
    assert len(np.unique(alike.sum[0])) == ranks // (order // gcd(pieces, order))


def test_symmetric_sums_are_a_schedule():
    """Four ranks, four chunks, one laser: six rounds, each with the same offsets for all ranks."""
    light, everyone = wafer("2x2", 1), np.ones((4, 4), bool)
    answer, draft = sums_in(6, light, everyone, everyone, Clock(60), translations(4, 4, 4), effort=20, seed=0)
    assert answer
    for sends in draft:
        assert Counter(s.src for s in sends) == dict.fromkeys(range(4), 1)
        assert len({s.src ^ s.dst for s in sends}) == 1


def test_fewer_ranks_alike_find_more():
    """One piece among 16 with two lasers: three rounds, though not with all ranks alike; who counts adds up each part once."""
    light, everyone = wafer("4x4", 2), np.ones((1, 16), bool)
    some = [
        sums_in(3, light, everyone, everyone, Clock(600), translations(1, 16, q), effort=40, seed=0) for q in (16, 4)
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
    """The notes' infeasible case: 4 GPUs, 4 chunks, one laser, 5 rounds."""
    everyone = np.ones((4, 4), bool)
    answer, _ = sums_in(5, wafer("2x2", 1), everyone, everyone, Clock(600), all_alone(4, 4), effort=20, seed=0)
    assert answer is False


def test_hubs_exchange_in_one_round_a_digit():
    """Eight hubs of one piece, three lasers: digits of 4 and 2."""
    light, everyone = wafer("2x4", 3), np.ones((1, 8), bool)
    best = ways(light, everyone, everyone)[0]
    assert (best.radices, best.least) == ((4, 2), 2)
    assert [len(sends) for sends in exchanged(light, best, 9)] == [24, 8]
    assert exchanged(light, best, 1) is None


def test_time_turned_round_twice_is_time():
    """Paths are walked back, rounds come in the other order, copies become sums."""
    light = wafer("2x3", 2, 2, dead_waveguides="0-1:1")
    there = [[Send(0, 0, 5, False, 1, light.routes[0, 5][0])], [Send(1, 4, 2, False, 0, light.routes[4, 2][0])]]
    back = light.backwards()
    turned = turned_round(there, light)
    assert [s.piece for sends in turned for s in sends] == [1, 0]
    assert all(s.adds and s.path in back.routes[s.src, s.dst] for sends in turned for s in sends)
    again = turned_round(turned, back)
    assert [[s._replace(adds=False) for s in sends] for sends in again] == there
    assert np.array_equal(back.backwards().room, light.room)
    east, west = 4 * 0 + 0, 4 * 1 + 1
    assert (light.room[east], back.room[west], back.room[east]) == (1, 1, 2)


def test_a_wafer_without_lasers_on_one_tile_keeps_its_photodiodes():
    """Dead lasers are the sender's."""
    light = wafer("1x2", 2, dead_lasers="0:0-1")
    assert (light.sends.sum(axis=1).tolist(), light.hears.sum(axis=1).tolist()) == ([0, 2], [2, 2])
    assert replace(light).unhurt is False


def test_both_solvers_live_in_one_process():
    """HiGHS, which routes ask, and OR-Tools, which brings a HiGHS of its own, in either order."""
    pytest.importorskip("ortools")
    for first, second in (("highspy", "ortools.sat.python.cp_model"), ("ortools.sat.python.cp_model", "highspy")):
        code = f"import {first}, {second}; import highspy; highspy.Highs().silent(); print('both')"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.stdout.strip() == "both", done.stderr
