"""SiPCO's send_recv: every block in L parts, and part g corrects the digits in the order of group g's walk.

A part takes one hop a step and waits where the digit is correct already. So L steps join any two nodes, and the parts of a
block leave by different levels. Two parts never meet on a channel: they would have the same old and new digit there, so
the same carry comes in from the level below and goes out to the one above, and with it all their digits are the same.
"""

from __future__ import annotations

from math import prod

import numpy as np

from opticcl.collective import Request
from opticcl.fabrics.sipac import strides_of
from opticcl.ir import IntArray, Op, Schedule, Transfers, concatenate_transfers

__all__ = ["send_recv"]


def send_recv(collective: Request, radices: tuple[int, ...]) -> Schedule:
    """Every rank's block to the rank `shift` above it, in L steps; no step where it stays."""
    levels, p = len(radices), prod(radices)
    rank = np.arange(p, dtype=np.int64)
    target = (rank + collective.shift) % p
    strides, sides = strides_of(radices)[:, None], np.array(radices)[:, None]
    along = (target // strides % sides - rank // strides % sides) * strides  # the hop at each level

    def reached(group: int, steps: int) -> IntArray:
        """Where that part of each rank's block is after `steps` steps, int64 (nodes,)."""
        walked: IntArray = along[[(group - j) % levels for j in range(steps)]].sum(axis=0)
        return rank + walked

    def step(i: int) -> Transfers:
        return concatenate_transfers(
            Transfers.of(reached(group, i), reached(group, i + 1), rank * levels + group, 1, Op.COPY)
            for group in range(levels)
        )

    return Schedule("sipco", collective.on(p, p * levels), levels if collective.shift % p else 0, step)
