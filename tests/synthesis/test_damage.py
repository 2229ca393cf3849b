"""Jobs on part of a damaged wafer: a schedule that the verifier accepts, or a certificate that a search confirms."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.synthesis.helpers import assert_right

from opticcl.collective import Request
from opticcl.errors import UnsupportedError
from opticcl.fabrics import fabric, job
from opticcl.synthesis import synthesize
from opticcl.synthesis.problem import registered_problem

SHAPE, WAVEGUIDES = (2, 3), 2
EDGES = [(t, t + 1) for t in (0, 1, 3, 4)] + [(t, t + 3) for t in (0, 1, 2)]


@st.composite
def machines(draw):
    """A grid of 2 x 3 tiles with failed tiles, lasers and waveguides, and a job on some of its nodes in any order."""
    ways = draw(st.lists(st.sampled_from([*EDGES, *((b, a) for a, b in EDGES)]), unique=True, max_size=8))
    dead = [f"{a}-{b}:{draw(st.integers(1, WAVEGUIDES))}" for a, b in ways]
    lasers = draw(st.integers(1, 3))
    dark = draw(st.lists(st.tuples(st.integers(0, 5), st.integers(0, lasers - 1)), unique=True, max_size=3))
    tiles = draw(st.lists(st.integers(0, 5), unique=True, max_size=2))
    machine = fabric(
        "lightpath", shape=SHAPE, lasers=lasers, waveguides=WAVEGUIDES,
        dead_tiles="+".join(map(str, tiles)) or None,
        dead_lasers="+".join(f"{t}:{k}" for t, k in dark) or None,
        dead_waveguides="+".join(dead) or None,
    )  # fmt: skip
    alive = [node for node in range(6) if node not in tiles]
    nodes = draw(st.lists(st.sampled_from(alive), unique=True, min_size=1))
    return job(machine, nodes)


def reached(where, sender):
    """Ranks that a light path leads to from a rank, by an independent search."""
    damage = where.machine.damage
    open_edges = damage.waveguides(6, WAVEGUIDES)
    dead_lasers = int((damage.laser_tile == where.node_of_rank[sender]).sum())
    if dead_lasers == where.lasers_per_port:
        return {sender}
    seen, queue = {int(where.node_of_rank[sender])}, deque([int(where.node_of_rank[sender])])
    while queue:
        tile = queue.popleft()
        for way, to in enumerate((tile + 1, tile - 1, tile + 3, tile - 3)):
            beside = 0 <= to < 6 and (way > 1 or to // 3 == tile // 3)
            if beside and to not in seen and to not in damage.tiles and open_edges[4 * tile + way] > 0:
                seen.add(to)
                queue.append(to)
    return {rank for rank, node in enumerate(where.node_of_rank) if int(node) in seen}


@given(machines(), st.sampled_from(["all_gather", "all_to_all", "all_reduce", "reduce_scatter", "broadcast", "gather"]))
@examples(60)
def test_a_schedule_or_a_certificate(where, name):
    """Schedules found are right; for refused problems, no light path leads from some rank to one that needs its part."""
    problem = registered_problem(Request(name), where.num_nodes, 2)
    reaches = [reached(where, rank) for rank in range(where.num_nodes)]
    parts = problem.before[:, :, None] & problem.after[:, None, :]
    needed = {(int(s), int(d)) for _, s, d in np.argwhere(parts) if s != d}
    if any(d not in reaches[s] for s, d in needed):
        with pytest.raises(UnsupportedError, match="no light path leads"):
            synthesize(where, name, chunks=2)
    else:
        assert_right(synthesize(where, name, chunks=2, time_limit=2, method="constructed"))


def test_a_cut_grid_is_reported():
    """Two halves that no light path joins."""
    with pytest.raises(UnsupportedError, match="the grid is cut between tile 0 and tile 2"):
        synthesize("lightpath:shape=1x4,dead_tiles=1", "all_gather")


def test_light_passes_tiles_that_the_job_does_not_have():
    """The two ends of a row communicate through the tiles in between, in both directions."""
    found = synthesize("lightpath:shape=1x5,waveguides=1", "all_to_all", nodes=[0, 4])
    assert found.num_steps == 1
    assert [len(found.circuits.rounds(0)[0].path(i)) for i in range(2)] == [4, 4]


def test_dead_lasers_stay_dark():
    """A sender with one working laser of three needs as many rounds as it has receivers."""
    found = synthesize("lightpath:shape=2x2,lasers=3,dead_lasers=0:0-1", "all_to_all")
    assert (found.num_steps, found.bound.name) == (3, "sends")
    circuits = found.circuits.rounds(0)[0]
    assert set(circuits.wavelength_lo[circuits.src == 0].tolist()) == {2}
