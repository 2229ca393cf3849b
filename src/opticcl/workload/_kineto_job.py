"""The job in a trace of the PyTorch profiler, where it tells when kernels ran.

Kernels that compute are taken in the order of their start, as tasks of all that run without a collective in between:

- a collective waits for the kernels that the host issued before it and that had ended when it started;
- a kernel waits for a collective that ended while nothing was computed, if it is the first to start after that;
- kernels issued behind the last collective read what all of them brought: they wait for those that had ended.

A collective that computation hid in the recording holds up nothing but these, which is too little where a trace has several
steps. Times in which the recorded device did nothing are not part of the job.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from opticcl.workload.job import Job, Task
from opticcl.workload.kineto import OnDevice, Trace, read_trace, workload_of
from opticcl.workload.trace_job import Groups, job_of

__all__ = ["read_job"]


def read_job(path: Path, num_ranks: int = 0) -> Job:
    """The job of one rank's trace; where some call has no kernel of known time, all computation stands before all calls.

    Raises: WorkloadError: no such trace, a damaged one, or it does not tell the number of devices.
    """
    trace = read_trace(path)
    workload = workload_of(path, trace)
    timed = [when for when in trace.on_device if when]
    if not trace.compute_s or len(timed) < len(workload.calls):
        return job_of(workload, num_ranks=num_ranks)
    groups = Groups(workload, num_ranks)
    took_s, opens, holds = _by_time(trace, timed)
    calls_at, held_at = _listed(opens), _listed(holds)
    tasks: list[Task] = []
    task_of: dict[int, int] = {}  # by call
    computed: tuple[int, ...] = ()
    cuts = sorted({0, *opens, *holds, len(took_s)})
    for cut, end in zip(cuts, [*cuts[1:], len(took_s)], strict=True):
        for i in calls_at[cut]:
            task_of[i] = len(tasks)
            tasks.append(groups.task([workload.calls[i]], computed))
        if end > cut:
            computed, after = (len(tasks),), tuple(sorted(task_of[i] for i in held_at[cut]))
            name = f"{end - cut:,} kernels" if end > cut + 1 else "1 kernel"
            tasks.append(Task(name, float(took_s[cut:end].sum()), after=after))
    notes = [
        *workload.notes,
        "order: by the times of the kernels; a collective waits for those issued before it that had ended",
        f"order: computation waits for {sum(at < len(took_s) for at in holds):,} of {len(holds):,} calls: it stood still "
        "until they ended, or was issued behind the last",
    ]
    return groups.job(workload, tasks, notes)


def _listed(places: Sequence[int]) -> dict[int, list[int]]:
    """Calls by place, in order."""
    found: dict[int, list[int]] = defaultdict(list)
    for i, place in enumerate(places):
        found[place].append(i)
    return found


def _by_time(trace: Trace, calls: Sequence[OnDevice]) -> tuple[npt.NDArray[np.float64], list[int], list[int]]:
    """Kernels by their start, and for each call how many stand before it and which is the first to wait for it.

    Returns: times of the kernels [s]; kernels that each call waits for; the first kernel that waits for each call, or the
        number of all where none does [index].
    """
    starts, took, issued = (np.array(column) for column in (trace.starts_us, trace.took_us, trace.issued))
    order = np.argsort(starts, kind="stable")
    starts, took, issued = starts[order], took[order], issued[order]
    ended, issued = np.maximum.accumulate(starts + took), np.maximum.accumulate(issued)  # by all so far
    known = min(issued.min(), *(call.issued for call in calls)) >= 0
    if known:
        behind = int(np.searchsorted(issued, max(call.issued for call in calls)))
    else:
        behind = int(np.searchsorted(starts, max(call.end_us for call in calls)))
    opens, holds = [], []
    for call in calls:
        before = int(np.searchsorted(ended, call.start_us, "right"))
        if known:
            before = min(before, int(np.searchsorted(issued, call.issued)))
        after = max(before, int(np.searchsorted(starts, call.end_us)))
        stood_still = after == before or ended[after - 1] <= call.end_us
        opens.append(before)
        holds.append(after if stood_still else max(after, behind))
    return took * 1e-6, opens, holds
