"""Ring all-reduce: each chunk goes round once to be added up and once to be told.

Source: Patarasuk and Yuan 2009; RAMP section 5, WRHT section 3.3 count it as 2(N-1) steps.
"""

from __future__ import annotations

import numpy as np

from opticcl.collective import collective as make_collective
from opticcl.ir import Fabric, Op, Schedule, Transfers
from opticcl.schedule import register_algorithm


def accepts(collective: str, fabric: Fabric) -> str | None:
    """None, or the reason why not."""
    if collective != "all_reduce":
        return "it does all_reduce only"
    order = fabric.ring()
    if fabric.num_nodes > 1 and not fabric.linked(order, np.roll(order, -1)).all():
        return "no order of its nodes links each with the next"
    return None


@register_algorithm("ring", accepts)
def ring(collective: str, fabric: Fabric) -> Schedule:
    """Ring all-reduce in 2(N-1) steps of one chunk of N a node; two classes of steps.

    In step s the node at position p of the ring passes on chunk p - s: N - 1 steps add, then N - 1 steps store.
    """
    order = fabric.ring().astype(np.int32)
    n = len(order)
    position, following = np.arange(n), np.roll(order, -1)

    def step(i: int) -> Transfers:
        op = Op.REDUCE if i < n - 1 else Op.COPY
        return Transfers.of(order, following, (position - i) % n, 1, op)

    return Schedule(
        "ring",
        make_collective(collective, n, n),
        2 * (n - 1),
        step,
        classes=tuple(r for r in (range(n - 1), range(n - 1, 2 * (n - 1))) if r),
    )
