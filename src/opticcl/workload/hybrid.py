"""Groups of m model-parallel devices and d copies of them: the traffic alone, as SiPAC's evaluation has it."""

from __future__ import annotations

import math

from opticcl.errors import WorkloadError
from opticcl.units import Bytes, message_size
from opticcl.workload.job import Group, Job, Task
from opticcl.workload.partition_settle import MOST_RANKS

__all__ = ["hybrid"]


def hybrid(num_nodes: int, *, model_parallel: int, size: Bytes, compute_s: float = 0.0) -> Job:
    """SiPAC's hybrid parallelism: an all_to_all in groups of m devices, then an all_reduce across the d groups.

    Args:
        num_nodes: devices, m x d [count].
        model_parallel: m, devices of a group; neighbours [count].
        size: of both messages [bytes].
        compute_s: computation before them [s].
    Raises: WorkloadError: m does not divide the devices, or a negative time. UnitError.
    Source: SiPAC VI-A, after its figure 12.
    Reading: the text of figure 13 has p = 512 as m = 8, d = 64, the caption as m = 64, d = 8; both can be asked for.

    >>> hybrid(64, model_parallel=8, size="100 MB").groups["data"].ranks
    range(0, 64, 8)
    """
    m = model_parallel
    if not 1 <= num_nodes <= MOST_RANKS or m < 1 or num_nodes % m:
        near = next((n for n in range(min(max(m, 1), max(num_nodes, 1)), 0, -1) if num_nodes % n == 0), 1)
        raise WorkloadError(
            f"hybrid: model_parallel={m} does not divide {num_nodes} devices; try model_parallel={near}"
        )
    if not 0 <= compute_s < math.inf:
        raise WorkloadError(f"hybrid: compute_s={compute_s:g} is no time; 0 s or more")
    message = message_size(size)
    tasks = [Task("computation", compute_s=compute_s)] if compute_s else []
    groups: dict[str, Group] = {}
    if m > 1:
        groups["model"] = Group("model", range(m), num_nodes // m)
        tasks.append(Task("activations", 0.0, "all_to_all", message, "model", tuple(range(len(tasks)))[-1:]))
    if num_nodes > m:
        groups["data"] = Group("data", range(0, num_nodes, m), m)
        tasks.append(Task("gradients", 0.0, "all_reduce", message, "data", tuple(range(len(tasks)))[-1:]))
    return Job(f"hybrid {m} x {num_nodes // m}", "SiPAC VI-A", num_nodes, tuple(tasks), groups)
