"""Timelines in the trace-event form that Perfetto, Chrome's tracing page and the PyTorch profiler's viewers read.

A trace has processes, a process has threads, and a thread has events one after or inside the other. This module knows
tracks and events alone; each report makes its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from opticcl.files import write_whole
from opticcl.formats import Format, register_format

__all__ = ["name_event", "slice_event", "write_events"]

register_format(
    Format(
        "perfetto",
        (".json",),
        "timelines of tracks and events, for Perfetto",
        writes="timelines of an iteration or plan",
    )
)


def write_events(
    path: Path | str,
    events: Iterable[dict[str, Any]],
    about: Mapping[str, Any] | None = None,
    unit: Literal["ms", "ns"] = "ms",
) -> None:
    """Write events as one trace.

    Args:
        path: file to write.
        events: made by `name_event` and `slice_event`.
        about: further facts for a reader of the file, by name.
        unit: of the times that a viewer shows.
    Raises: OutputError: the file cannot be written; what stood there stays as it was.
    """
    whole = {"displayTimeUnit": unit, "traceEvents": list(events), **({"otherData": dict(about)} if about else {})}
    with write_whole(Path(path)) as file:
        file.write(json.dumps(whole, allow_nan=False).encode())


def name_event(what: Literal["process", "thread"], process: int, thread: int, name: str) -> dict[str, Any]:
    """The name of a process or of a thread.

    Args:
        what: which of the two is named.
        process, thread: numbers of the track.
        name: shown beside the track.
    """
    return {"name": f"{what}_name", "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def slice_event(
    name: str, kind: str, start_s: float, end_s: float, process: int, thread: int, about: Mapping[str, Any]
) -> dict[str, Any]:
    """An event with a start and an end.

    Args:
        name: shown on the event.
        kind: category, by which viewers filter.
        start_s, end_s: from the start of the trace [s].
        process, thread: numbers of the track.
        about: further facts, shown when the event is selected.
    """
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
