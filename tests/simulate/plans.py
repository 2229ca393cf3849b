"""Small plans that several tests of the engines simulate."""

import numpy as np
from tests.collectives import nothing_required

from opticcl.circuits import lower
from opticcl.collective import collective
from opticcl.ir import Op, Schedule, Transfers


def by_hand(where, rows, num_steps=1, chunks=8):
    """A plan of transfers (step, src, dst, chunk_lo, chunk_n, op), right or wrong."""

    def step(i):
        mine = [r[1:] for r in rows if r[0] == i]
        return Transfers.of(*np.array(mine).T) if mine else Transfers.of([], [], [], [], [])

    return lower(where, Schedule("by hand", nothing_required(where.num_nodes, chunks), num_steps, step))


def drawn(seed, nodes, steps=4):
    """Rows of a plan: few chunks, so that they are replaced and summed; some are copied to several nodes at once."""
    draw, rows = np.random.default_rng(seed), []
    for step in range(steps):
        same = None
        for pair in draw.permutation(nodes * (nodes - 1))[: draw.integers(1, 6)].tolist():
            src, other = divmod(pair, nodes - 1)
            lo = int(draw.integers(0, 3))
            row = (step, src, other + (other >= src), lo, int(draw.integers(1, 4 - lo)), int(draw.integers(0, 4)))
            again = same is not None and step % 2 and same[1] != row[2]
            row = (*same[:2], row[2], *same[3:5], 0) if again else row
            same = same or row
            rows.append(row)
    return [row for i, row in enumerate(rows) if row[:3] not in [one[:3] for one in rows[:i]]]


def all_pairs(where):
    """Every node to every other in one step."""
    n = where.num_nodes
    src, dst = np.divmod(np.arange(n * n), n)
    transfers = Transfers.of(src, dst, dst, 1, Op.MOVE)
    return lower(where, Schedule("pairs", collective("all_to_all", n, n), 1, lambda i: transfers))
