"""Timelines in the form that Chrome's tracing page, Perfetto and the PyTorch profiler's viewers read.

One process a fabric, one thread a queue; times in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from opticcl.files import write_whole

if TYPE_CHECKING:
    from opticcl.evaluate.iteration import Span
    from opticcl.evaluate.training import Row, Training
    from opticcl.workload.job import Job

__all__ = ["name_event", "slice_event", "trace_events", "write_chrome_trace", "write_events"]


def write_chrome_trace(path: str | Path, training: Training) -> None:
    """Write the timelines of all rows.

    Raises: OutputError: the file cannot be written; what stood there stays as it was.
    """
    write_events(Path(path), trace_events(training))


def write_events(
    path: Path,
    events: Iterable[dict[str, Any]],
    about: Mapping[str, Any] | None = None,
    unit: Literal["ms", "ns"] = "ms",
) -> None:
    """Write events as one trace.

    Args:
        about: what a reader of the file should know.
        unit: of the times that a viewer shows.
    Raises: OutputError: the file cannot be written; what stood there stays as it was.
    """
    whole = {"displayTimeUnit": unit, "traceEvents": list(events), **({"otherData": dict(about)} if about else {})}
    with write_whole(path) as file:
        file.write(json.dumps(whole, allow_nan=False).encode())


def name_event(what: str, process: int, thread: int, name: str) -> dict[str, Any]:
    """Name of a process or a thread. Args: what: "process" or "thread"."""
    return {"name": f"{what}_name", "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def slice_event(
    name: str, kind: str, start_s: float, end_s: float, process: int, thread: int, about: Mapping[str, Any]
) -> dict[str, Any]:
    """A span of a thread. Args: start_s, end_s: from the start of all [s]."""
    return {
        "name": name,
        "cat": kind,
        "ph": "X",
        "ts": start_s * 1e6,
        "dur": (end_s - start_s) * 1e6,
        "pid": process,
        "tid": thread,
        "args": dict(about),
    }


def trace_events(training: Training) -> Iterator[dict[str, Any]]:
    """Names of processes and threads, then every span as a complete event."""
    for process, row in enumerate(training.rows):
        yield name_event("process", process, 0, f"{process + 1}. {row.machine.name}")
        for queue in sorted({span.queue for span in row.iteration.spans}):
            yield name_event("thread", process, queue, f"communication {queue}" if queue else "computation")
        critical = set(row.iteration.critical_path())
        for number, span in enumerate(row.iteration.spans):
            kind = "communication" if span.queue else "computation"
            about = _about(row, span) | {"critical": number in critical}
            title = _title(training.job, span)
            yield slice_event(title, kind, span.start_s, span.end_s, process, span.queue, about)


def _title(job: Job, span: Span) -> str:
    """What the span does, in a few words."""
    first = job.tasks[span.tasks[0]]
    return first.name if len(span.tasks) == 1 else f"{first.collective} of {len(span.tasks)} gradients"


def _about(row: Row, span: Span) -> dict[str, Any]:
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
