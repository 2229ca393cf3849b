"""Computation of a trace that records operations and bytes instead of times: the roofline of a device.

Chakra's symbolic generator writes `num_ops` and `tensor_size` of each computation and no duration. Its time is the longer of
its operations at a share of the device's peak rate and its bytes at the memory rate.

Source: Williams et al. 2009, Roofline; ASTRA-sim 2.0, whose compute model divides the same two fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from opticcl.errors import ParameterError
from opticcl.ir.task_graph import Bound, Task, TaskGraph
from opticcl.training.device import Accelerator, Precision, Work, device, efficiency_of, roofline_s
from opticcl.units import counted

__all__ = ["note_untimed", "time_by_roofline", "untimed"]

DEFAULT_PRECISION: Precision = "bf16"
_WITHOUT_TIMES: dict[Bound, Bound] = {"": "lower", "lower": "lower", "upper": "estimate", "estimate": "estimate"}


def untimed(task: Task) -> bool:
    """Whether a computation has operations or bytes and no time."""
    return not task.communicates and not task.compute_s and (task.operations > 0 or task.memory_bytes > 0)


def time_by_roofline(
    steps: Sequence[TaskGraph],
    on: Accelerator | str,
    precision: Precision | None = None,
    efficiency: float | None = None,
) -> list[TaskGraph]:
    """The steps of a trace, with a time for each computation that has none; recorded times stay.

    Args:
        steps: task graphs of one job.
        on: the device, or its name.
        precision: of the operations, which a trace does not record; None: bf16, or the first that the device has.
        efficiency: share of the peak rate that the operations reach; None: the default of training.toml.
    Raises: ParameterError: no computation without a time, or the device has no rate of that precision. UnknownNameError.
    """
    made = on if isinstance(on, Accelerator) else device(on)
    if not any(untimed(task) for step in steps for task in step.tasks):
        name = steps[0].name if steps else "no step"
        raise ParameterError(
            f"device={made.name}: {name} has no computation with operations and without a time; "
            "for a faster device give compute_scale"
        )
    has: list[Precision] = [one for one in get_args(Precision) if one in made.peak_per_s]
    chosen = precision or (DEFAULT_PRECISION if DEFAULT_PRECISION in has else has[0])
    share = efficiency_of(chosen, efficiency)
    made.peak(chosen)
    return [_timed(step, made, chosen, share) for step in steps]


def _timed(step: TaskGraph, on: Accelerator, precision: Precision, efficiency: float) -> TaskGraph:
    """One step."""
    without = sum(map(untimed, step.tasks))
    computations = sum(not task.communicates for task in step.tasks)
    tasks = tuple(
        replace(task, compute_s=roofline_s(Work(task.operations, task.memory_bytes), on, precision, efficiency))
        if untimed(task)
        else task
        for task in step.tasks
    )
    operations = [0.0] * step.num_devices
    for task in step.tasks:
        operations[task.devices[0]] += task.operations
    note = (
        f"computation: {without:,} of {counted(computations, 'task')} by the roofline of {on.name}, {precision}, "
        f"efficiency {efficiency:g}"
    )
    return replace(step, tasks=tasks, operations=max(operations), notes=(*step.notes, note))


def note_untimed(step: TaskGraph) -> TaskGraph:
    """The same step; computation without a time is counted in its notes, and makes the iteration a bound."""
    without = sum(map(untimed, step.tasks))
    if not without:
        return step
    computations = sum(not task.communicates for task in step.tasks)
    note = (
        f"computation: {without:,} of {counted(computations, 'task')} with operations instead of times take no time here; "
        "give a device (--device h100)"
    )
    return replace(step, bound=_WITHOUT_TIMES[step.bound], notes=(*step.notes, note))
