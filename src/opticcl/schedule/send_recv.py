"""Every rank sends its block to the rank `shift` above it, in one step."""

from __future__ import annotations

import numpy as np

from opticcl.collective import Request
from opticcl.ir import Fabric, Op, Schedule, Transfers
from opticcl.ir.symmetry import Digits, Symmetry
from opticcl.schedule import register_algorithm
from opticcl.schedule._grid import reason_not_linked


def accepts(collective: Request, fabric: Fabric) -> str | None:
    """None, or the reason why not."""
    if collective.name != "send_recv":
        return "it does send_recv only"
    rank = np.arange(fabric.num_nodes)
    return reason_not_linked(fabric, rank, (rank + collective.shift) % fabric.num_nodes)


@register_algorithm("send_recv", accepts)
def send_recv(collective: Request, fabric: Fabric) -> Schedule:
    """One step; none where the shift is a multiple of the number of ranks."""
    n = fabric.num_nodes
    rank = np.arange(n, dtype=np.int32)

    def step(i: int) -> Transfers:
        return Transfers.of(rank, (rank + collective.shift) % n, rank, 1, Op.COPY)

    rotation = Symmetry(Digits((n,), 0, 1), Digits((n,), 0, 1))
    chunks, num_steps = collective.on(n, n), 1 if collective.shift % n else 0
    return Schedule("send_recv", chunks, num_steps, step, symmetries=(rotation,))
