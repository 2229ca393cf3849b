"""Every rank sends its block to the rank `shift` above it, in one step."""

from __future__ import annotations

import numpy as np

from opticcl.collective import Request
from opticcl.ir import Fabric, Schedule
from opticcl.ir.phases import Phase, PhaseRows, Space, Steps, part
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
    """Every rank sends to the one that is a shift ahead, in one step."""
    n, space = fabric.num_nodes, Space((fabric.num_nodes,))
    phases = [Phase(PhaseRows.of(1, 0, collective.shift % n, 0), (True,))] if collective.shift % n else []
    return Schedule.of("send_recv", collective.on(n, n), Steps(space, [part(space.radices, (0,))], phases))
