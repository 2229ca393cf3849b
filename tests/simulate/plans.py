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


def all_pairs(where):
    """Every node to every other in one step."""
    n = where.num_nodes
    src, dst = np.divmod(np.arange(n * n), n)
    transfers = Transfers.of(src, dst, dst, 1, Op.MOVE)
    return lower(where, Schedule("pairs", collective("all_to_all", n, n), 1, lambda i: transfers))
