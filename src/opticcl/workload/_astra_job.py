"""The job in ASTRA-sim's per-layer text form: layer by layer forward and back again.

A collective of the forward pass or of an input gradient carries what the next layer needs, which waits for it; that of a
weight gradient is needed by nobody in the same iteration, and may travel with others.
"""

from __future__ import annotations

from pathlib import Path

from opticcl.workload.astra import PHASES, read_layers, workload_of
from opticcl.workload.job import Job, Phase, Task
from opticcl.workload.trace_job import Groups

__all__ = ["read_job"]


def read_job(path: Path, num_ranks: int = 0, *, clock_hz: float | None = None) -> Job:
    """The job of a file.

    Args: clock_hz: clock of the device; None: its computation takes no time [1/s].
    Raises: WorkloadError: another form, no layer communicates, it has more devices than that, or nobody tells how many.
        ParameterError: no clock.
    """
    read = read_layers(path)
    layers, workload = read.layers, workload_of(path, read, clock_hz)
    groups = Groups(workload, num_ranks)
    tasks: list[Task] = []
    needed: tuple[int, ...] = ()  # what the next computation waits for, its queue aside

    def run(layer: int, phase: int) -> None:
        nonlocal needed
        name, cycles, calls, _ = layers[layer]
        when: Phase = "backward" if phase else "forward"
        seconds = 0.0 if clock_hz is None else cycles[phase] / clock_hz
        tasks.append(Task(f"{name} {PHASES[phase]}", seconds, after=needed, phase=when))
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
