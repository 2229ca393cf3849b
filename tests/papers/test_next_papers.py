"""The later papers of LUMORPH's group: what their claims count, against searches of graphs."""

import numpy as np
import pytest

from opticcl.operations.arbiter import Arbiter
from opticcl.papers.morphlux import SERVER, largest_joined


def reached(start, free):
    """Servers that a walk from one to neighbours on the torus reaches, each with a free chip."""
    sides = [side // own for side, own in zip(free.shape, SERVER, strict=True)]

    def chips(server):
        return free[tuple(slice(at * own, (at + 1) * own) for at, own in zip(server, SERVER, strict=True))].sum()

    seen, left = set(), [start]
    while left:
        server = left.pop()
        if server in seen or not chips(server):
            continue
        seen.add(server)
        for axis, side in enumerate(sides):
            left += [(*server[:axis], (server[axis] + way) % side, *server[axis + 1 :]) for way in (1, -1)]
    return int(sum(chips(server) for server in seen))


@pytest.mark.parametrize("share", [0.05, 0.1, 0.2, 0.5, 1.0])
def test_the_largest_set_of_servers_is_that_of_a_walk(share):
    """From every server of a rack, with random chips free."""
    for seed in range(20):
        free = np.random.default_rng(seed).random((4, 4, 4)) < share
        if free.any():
            assert largest_joined(free) == max(reached(server, free) for server in np.ndindex(2, 2, 4))


def test_a_job_on_a_torus_gets_a_block():
    """Of neighbours in every dimension: 8 chips of a rack are a cube."""
    nodes = Arbiter("torus:shape=4x4x4").place(8).nodes
    assert sorted(zip(*(np.unravel_index(nodes, (4, 4, 4))), strict=True)) == list(np.ndindex(2, 2, 2))
