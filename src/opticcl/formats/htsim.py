"""Connection matrices of htsim: flows between nodes, each step started by a barrier on the step before.

::

    Nodes 4
    Connections 4
    Triggers 1
    0->1 id 1 start 0 size 250000 recv_done_trigger 1
    2->3 id 2 start 0 size 250000 recv_done_trigger 1
    1->2 id 3 trigger 1 size 250000
    3->0 id 4 trigger 1 size 250000
    trigger id 1 barrier count 2

A size is a signed 32-bit number of bytes there, so longer flows are cut into several. Empty flows are left out: htsim takes
size 0 for a flow without end.

Source: Broadcom/csg-htsim, the reader of connection matrices.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from opticcl.errors import OutputError
from opticcl.files import write_whole
from opticcl.formats import Format, PlanToWrite, register_format
from opticcl.formats._flows import FlowList, step_flows
from opticcl.ir import ProgressCallback, no_progress

__all__ = ["write_connection_matrix"]

MOST_FLOWS = 1 << 22  # all are counted before the first is written
MOST_BYTES = 1 << 30  # of one flow [bytes]


def write_connection_matrix(path: Path, plan: PlanToWrite, progress: ProgressCallback = no_progress) -> int:
    """Write the flows of a plan with barriers between the steps.

    Args:
        path: file to write.
        plan: to be written.
        progress: called with (what, done, total) after every step.
    Returns: number of flows written.
    Raises: OutputError: more than `MOST_FLOWS` flows, or not writable.
    """
    steps: list[list[tuple[int, int, int]]] = []
    total = 0
    for flows in step_flows(plan.circuits, plan.size_bytes):
        mine = list(_pieces(flows))
        total += len(mine)
        if total > MOST_FLOWS:
            raise OutputError(f"cannot write {path}: more than {MOST_FLOWS:,} flows; write a .parquet plan file")
        if mine:
            steps.append(mine)
        progress("write the connections", total, 0)
    lines = [
        f"Nodes {plan.circuits.fabric.num_machine_nodes}",
        f"Connections {total}",
        f"Triggers {max(0, len(steps) - 1)}",
        *_connections(steps),
        *(f"trigger id {i} barrier count {len(mine)}" for i, mine in enumerate(steps[:-1], 1)),
    ]
    with write_whole(path) as file:
        file.write(("\n".join(lines) + "\n").encode())
    return total


def _pieces(flows: FlowList) -> Iterator[tuple[int, int, int]]:
    """Source, destination and bytes of each flow, long ones cut."""
    for src, dst, size in zip(*(column.tolist() for column in flows), strict=True):
        for first in range(0, size, MOST_BYTES):
            yield src, dst, min(MOST_BYTES, size - first)


def _connections(steps: list[list[tuple[int, int, int]]]) -> Iterator[str]:
    number = 0
    for i, mine in enumerate(steps):
        start = f"trigger {i}" if i else "start 0"
        done = f" recv_done_trigger {i + 1}" if i + 1 < len(steps) else ""
        for src, dst, size in mine:
            number += 1
            yield f"{src}->{dst} id {number} {start} size {size}{done}"


def _write(path: Path, plan: PlanToWrite, progress: ProgressCallback) -> str:
    count = write_connection_matrix(path, plan, progress)
    return f"connection matrix: {path}, {count:,} flows, without chunks, operations and circuits"


register_format(
    Format(
        "htsim",
        (".cm",),
        "flows of each step, with barriers between the steps, for htsim",
        writes="a plan's flows, without chunks and light",
        write=_write,
    )
)
