"""Timelines of training iterations for Chrome's tracing page or Perfetto: a process per fabric, a thread per queue.

If the traces of several devices are known, a thread is a queue of one of them, and a message is on the queue of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticcl.formats.perfetto import name_event, slice_event, write_events

if TYPE_CHECKING:
    from opticcl.ir.task_graph import TaskGraph
    from opticcl.training.iteration import Span
    from opticcl.training.train import TrainingResult, TrainingRow

__all__ = ["training_events", "write_training_trace"]


def write_training_trace(path: str | Path, training: TrainingResult) -> None:
    """Write the timelines of all rows.

    Raises: OutputError: the file cannot be written; an existing file is left unchanged.
    """
    write_events(Path(path), training_events(training))


def training_events(training: TrainingResult) -> Iterator[dict[str, Any]]:
    """Names of processes and threads, then every span as a complete event."""
    for process, row in enumerate(training.rows):
        yield name_event("process", process, 0, f"{process + 1}. {row.machine.name}")
        ranks, queues = training.job.device_ranks, 1 + max((span.queue for span in row.iteration.spans), default=0)
        for device, queue in sorted({(device, span.queue) for span in row.iteration.spans for device in span.devices}):
            name = (f"rank {ranks[device]}, " if ranks else "") + (f"communication {queue}" if queue else "computation")
            yield name_event("thread", process, queues * device + queue, name)
        critical = set(row.iteration.critical_path())
        for number, span in enumerate(row.iteration.spans):
            kind = "communication" if span.queue else "computation"
            about = _about(row, span) | {"critical": number in critical}
            title = _title(training.job, span)
            for device in span.devices:
                thread = queues * device + span.queue
                yield slice_event(title, kind, span.start_s, span.end_s, process, thread, about)


def _title(job: TaskGraph, span: Span) -> str:
    """Name of the task, or the fused collective."""
    first = job.tasks[span.tasks[0]]
    return first.name if len(span.tasks) == 1 else f"{first.collective} of {len(span.tasks)} gradients"


def _about(row: TrainingRow, span: Span) -> dict[str, Any]:
    """Arguments of the event of a span."""
    job = row.iteration.job
    first = job.tasks[span.tasks[0]]
    if not first.communicates:
        return {"phase": first.phase} if first.phase else {}
    return {
        "collective": first.collective,
        "bytes": span.size_bytes,
        "group": first.group,
        "ranks": len(job.groups[first.group].ranks),
        "tasks": [job.tasks[i].name for i in span.tasks],
    }
