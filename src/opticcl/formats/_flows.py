"""The flows of a plan: bytes from node to node in each step, for formats that know no chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from opticcl.ir import CircuitPlan, IntArray, Transfers

__all__ = ["FlowList", "step_flows", "transfer_bytes"]


class FlowList(NamedTuple):
    """Flows of a step, one a pair of nodes.

    Args:
        src, dst: nodes of the machine, int64 (n,).
        size_bytes: sum of the transfers between the two, int64 (n,) [bytes].
    """

    src: IntArray
    dst: IntArray
    size_bytes: IntArray


def transfer_bytes(transfers: Transfers, num_chunks: int, size_bytes: int) -> IntArray:
    """Whole bytes of each transfer, int64 (n,) [bytes]; chunk k is the bytes from k S // C up to (k + 1) S // C.

    Args:
        transfers: of one step.
        num_chunks: C, equal parts of the message [count].
        size_bytes: S, message of every rank [bytes].
    """
    ranges, row = transfers.ranges()
    lo = ranges.chunk_lo.astype(object)  # the product may be beyond 64 bits
    ends = [((lo + extra) * size_bytes) // num_chunks for extra in (ranges.chunk_n.astype(object), 0)]
    size = np.zeros(len(transfers), np.int64)
    np.add.at(size, row, np.array(ends[0] - ends[1], np.int64))
    return size if transfers.parts is None else size * transfers.parts


def step_flows(plan: CircuitPlan, size_bytes: int) -> Iterator[FlowList]:
    """Flows of each step, without empty ones.

    Args:
        plan: any plan.
        size_bytes: message of every rank [bytes].
    """
    fabric, num_nodes = plan.fabric, plan.fabric.num_machine_nodes
    for i in range(plan.schedule.num_steps):
        step = plan.schedule.step(i)
        size = transfer_bytes(step, plan.schedule.collective.num_chunks, size_bytes)
        src, dst = (fabric.machine_nodes(ranks).astype(np.int64) for ranks in (step.src, step.dst))
        pairs, row = np.unique(src * num_nodes + dst, return_inverse=True)
        total = np.zeros(len(pairs), np.int64)
        np.add.at(total, row.ravel(), size)
        kept = total > 0
        yield FlowList(pairs[kept] // num_nodes, pairs[kept] % num_nodes, total[kept])
