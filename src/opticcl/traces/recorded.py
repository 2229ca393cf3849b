"""Times of a step as it was recorded, from the intervals of its kernels: what a simulation of the step is compared with."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from opticcl.ir.task_graph import RecordedTimes

__all__ = ["recorded_times", "union_s"]

Floats = npt.NDArray[np.float64]


def union_s(start_s: Floats, end_s: Floats) -> float:
    """Length of the union of intervals [s].

    >>> union_s(np.array([0.0, 1.0, 5.0]), np.array([2.0, 3.0, 6.0]))
    4.0
    """
    if not len(start_s):
        return 0.0
    order = np.argsort(start_s, kind="stable")
    start_s, until = start_s[order], np.maximum.accumulate(end_s[order])
    covered = np.concatenate([[start_s[0]], until[:-1]])
    return float(np.maximum(0.0, until - np.maximum(start_s, covered)).sum())


def recorded_times(
    compute: tuple[Floats, Floats], calls: tuple[Floats, Floats], total_s: float | None = None
) -> RecordedTimes:
    """Times of a step.

    Args:
        compute: starts and ends of the kernels that compute [s].
        calls: starts and ends of the kernels of collectives [s].
        total_s: duration of the step; None: from the first start to the last end [s].
    """
    busy_s = union_s(*compute)
    start_s, end_s = (np.concatenate(pair) for pair in zip(compute, calls, strict=True))
    both_s = union_s(start_s, end_s)
    if total_s is None:
        total_s = float(end_s.max() - start_s.min()) if len(start_s) else 0.0
    return RecordedTimes(
        float((compute[1] - compute[0]).sum()), float((calls[1] - calls[0]).sum()), both_s - busy_s, total_s, busy_s
    )
