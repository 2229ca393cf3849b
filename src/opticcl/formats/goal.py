"""GOAL: sends, receives and computation of each rank with dependencies, as ATLAHS and LogGOPSim read them.

::

    num_ranks 2

    rank 0 {
    l1: recv 250000b from 1 tag 0
    l2: calc 0
    l2 requires l1
    }

A reduction is a calc of no time: how long an addition takes is a parameter of the simulator.

Source: spcl/atlahs and LogGOPSim, the text form of GOAL.
"""

from __future__ import annotations

from pathlib import Path

from opticcl.files import write_whole
from opticcl.formats import Format, PlanToWrite, register_format
from opticcl.formats._operations import Operation, rank_operations
from opticcl.ir import ProgressCallback, no_progress

__all__ = ["write_goal"]


def write_goal(path: Path, plan: PlanToWrite, progress: ProgressCallback = no_progress) -> int:
    """Write the operations of all ranks.

    Args:
        path: file to write.
        plan: to be written.
        progress: called with (what, done, total) after every step.
    Returns: number of operations written.
    Raises: OutputError: too many operations, or not writable.
    """
    ranks = rank_operations(path, plan.circuits, plan.size_bytes, progress)
    with write_whole(path) as file:
        file.write(f"num_ranks {len(ranks)}\n".encode())
        for rank, operations in enumerate(ranks):
            lines = [line for number, one in enumerate(operations, 1) for line in _lines(number, one)]
            file.write("\n".join(["", f"rank {rank} {{", *lines, "}", ""]).encode())
    return sum(map(len, ranks))


def _lines(number: int, one: Operation) -> list[str]:
    """The lines of an operation, the first of which has the number 1."""
    if one.kind == "add":
        what = "calc 0"
    else:
        peer = f"to {one.dst}" if one.kind == "send" else f"from {one.src}"
        what = f"{'send' if one.kind == 'send' else 'recv'} {one.size_bytes}b {peer} tag {one.tag}"
    return [f"l{number}: {what}", *(f"l{number} requires l{cause + 1}" for cause in one.causes)]


def _write(path: Path, plan: PlanToWrite, progress: ProgressCallback) -> str:
    count = write_goal(path, plan, progress)
    return f"GOAL: {path}, {count:,} operations, without circuits; reductions take no time"


register_format(
    Format(
        "goal",
        (".goal",),
        "sends, receives and computation of each rank, with dependencies",
        writes="a schedule with sizes, without light",
        write=_write,
    )
)
