"""Flow lists: a line a flow with source, destination, bytes and start; the plainest input of network simulators.

::

    # src dst bytes start_s
    0 1 250000 0
    1 2 250000 2.6e-05

The start of a flow is the start of its step by the closed form with barriers; a simulator that wants dependencies instead
takes a connection matrix (.cm) or Chakra traces (.et).
"""

from __future__ import annotations

from pathlib import Path

from opticcl.errors import OutputError
from opticcl.files import write_whole
from opticcl.formats import Format, PlanToWrite, register_format
from opticcl.formats._flows import step_flows
from opticcl.ir import ProgressCallback, no_progress

__all__ = ["write_flow_list"]

MOST_FLOWS = 1 << 24


def write_flow_list(path: Path, plan: PlanToWrite, progress: ProgressCallback = no_progress) -> int:
    """Write the flows of a plan, in the order of their starts.

    Args:
        path: file to write.
        plan: to be written.
        progress: called with (what, done, total) after every step.
    Returns: number of flows written.
    Raises: OutputError: more than `MOST_FLOWS` flows, or not writable.
    """
    starts_s = plan.step_starts_s().tolist()
    count = 0
    with write_whole(path) as file:
        file.write(b"# src dst bytes start_s\n")
        for start_s, flows in zip(starts_s, step_flows(plan.circuits, plan.size_bytes), strict=True):
            count += len(flows.src)
            if count > MOST_FLOWS:
                raise OutputError(f"cannot write {path}: more than {MOST_FLOWS:,} flows; write a .parquet plan file")
            rows = zip(*(column.tolist() for column in flows), strict=True)
            file.write("".join(f"{src} {dst} {size} {start_s:.12g}\n" for src, dst, size in rows).encode())
            progress("write the flows", count, 0)
    return count


def _write(path: Path, plan: PlanToWrite, progress: ProgressCallback) -> str:
    count = write_flow_list(path, plan, progress)
    return f"flow list: {path}, {count:,} flows, without chunks, operations and circuits"


register_format(
    Format(
        "flow_list",
        (".flows",),
        "source, destination, bytes and start of each flow",
        writes="a plan's flows, without chunks and light",
        write=_write,
    )
)
