"""The job in ASTRA-sim's per-layer text form: layer by layer forward and back again.

A collective of the forward pass or of an input gradient carries what the next layer needs, which waits for it; that of a
weight gradient is needed by nobody in the same iteration, and may travel with others.
"""

from __future__ import annotations

from pathlib import Path

from opticcl.workload import CollectiveCall, Workload
from opticcl.workload._files import lines, reading
from opticcl.workload._notes import LeftOut
from opticcl.workload.astra import _PHASES, _SPLIT, _calls, _header, _layer
from opticcl.workload.job import Job, Phase, Task
from opticcl.workload.trace_job import Groups

__all__ = ["job_of_layers"]


def job_of_layers(path: Path, workload: Workload, num_ranks: int = 0, clock_hz: float | None = None) -> Job:
    """The job of a file whose collectives have been read as a workload.

    Raises: WorkloadError: it has more devices than that, or nobody tells how many.
    """
    groups = Groups(workload, num_ranks)
    layers: list[tuple[str, list[tuple[int, str, int]], dict[int, CollectiveCall]]] = []
    with reading(path, "ASTRA-sim layer file", "line") as file:
        rows = lines(file)
        header, num_layers, _ = _header(rows)
        for number, line in rows:
            if len(layers) == num_layers:
                break
            name, entries, _ = _layer(number, line)
            layers.append((name, entries, dict(_calls(name, entries, header.startswith(_SPLIT), LeftOut()))))
    tasks: list[Task] = []
    needed: tuple[int, ...] = ()  # what the next computation waits for, its queue aside

    def run(layer: int, phase: int) -> None:
        nonlocal needed
        name, entries, calls = layers[layer]
        when: Phase = "backward" if phase else "forward"
        seconds = 0.0 if clock_hz is None else entries[phase][0] / clock_hz
        tasks.append(Task(f"{name} {_PHASES[phase]}", seconds, after=needed, phase=when))
        needed = ()
        if phase in calls:
            gradient = phase == 2
            fusible = gradient and calls[phase].collective == "all_reduce"
            tasks.append(groups.task([calls[phase]], (len(tasks) - 1,), phase=when, fusible=fusible))
            if not gradient:
                needed = (len(tasks) - 1,)

    for layer in range(len(layers)):
        run(layer, 0)
    for layer in reversed(range(len(layers))):
        run(layer, 1)
        after_input, needed = needed, ()  # the weight gradient of a layer does not need its input gradient
        run(layer, 2)
        needed = after_input
    notes = [*workload.notes, "order: forward through the layers and back; the next layer waits for activations"]
    if any(call.group for call in workload.calls):
        notes.append("the ranks of model-parallel and data-parallel groups are not told: all ranks are taken")
    return groups.job(workload, tasks, notes)
