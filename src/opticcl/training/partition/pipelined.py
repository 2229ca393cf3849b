"""Pipelines in which every stage is simulated: interleaved virtual stages, and ZB-H1 of the zero-bubble schedules.

A device at stage p of P has the layers of the parts p, P + p, 2P + p, ...; a part passes its result to the next part, on the
next device. The order of the work on each device is that of the schedule; when a task starts follows from the simulation::

    interleaved   warm-up of 2 (P - p - 1) + (v - 1) P forward passes, then one forward, one backward
    zero_bubble   warm-up of P - p forward passes; the weight gradients of the last p micro-batches are computed later

Source: Narayanan et al. 2021, section 2.2 (interleaved); Qi et al. 2023, section 2.3 (ZB-H1).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from opticcl.ir.task_graph import Phase, ProcessGroup, Task
from opticcl.training.model import Layer
from opticcl.training.partition.shares import Configuration, device_layers
from opticcl.training.partition.tasks import StageTasks

__all__ = ["Pass", "order_of_device", "pipelined_tasks"]


class Pass(NamedTuple):
    """One pass of a micro-batch through a part of the layers.

    Args:
        kind: F forward, B backward, I the gradients of the inputs alone, W those of the weights.
        micro_batch: from 0.
        part: from 0, in the order of the forward pass.
    """

    kind: str
    micro_batch: int
    part: int


def order_of_device(choices: Configuration, stage: int) -> Iterator[Pass]:
    """The passes of the device at a stage, in the order of the schedule."""
    stages, count, parts = choices.layout.pipeline, choices.micro_batches, choices.virtual_stages
    if choices.schedule == "zero_bubble":
        yield from _zero_bubble(stages, count, stage)
        return
    total = count * parts
    warm_up = (
        min(2 * (stages - stage - 1) + (parts - 1) * stages, total) if parts > 1 else min(stages - stage - 1, total)
    )

    def at(kind: str, number: int) -> Pass:
        turn, place = divmod(number, stages * parts)
        part = place // stages
        part = part if kind == "F" else parts - 1 - part
        return Pass(kind, turn * stages + place % stages, part * stages + stage)

    for number in range(total + warm_up):
        if number < total:
            yield at("F", number)
        if number >= warm_up:
            yield at("B", number - warm_up)


def _zero_bubble(stages: int, count: int, stage: int) -> Iterator[Pass]:
    """As 1F1B, the weight gradients `stage` micro-batches behind the gradients of the inputs."""
    warm_up = min(stages - stage - 1, count)
    for number in range(count + warm_up):
        if number < count:
            yield Pass("F", number, stage)
        done = number - warm_up
        if done >= 0:
            yield Pass("I", done, stage)
            if done >= stage:
                yield Pass("W", done - stage, stage)
    for number in range(max(count - stage, 0), count):
        yield Pass("W", number, stage)


def pipelined_tasks(
    stages: Sequence[Sequence[Layer]], choices: Configuration
) -> tuple[tuple[Task, ...], Mapping[str, ProcessGroup]]:
    """Tasks of a device at each stage, and their process groups.

    Args:
        stages: layers of each part, in the order of the forward pass.
        choices: the configuration.
    """
    made: list[Task] = []
    devices = [StageTasks(stages, choices, made, device) for device in range(choices.layout.pipeline)]
    orders = [list(order_of_device(choices, device)) for device in range(choices.layout.pipeline)]
    arrived: dict[Pass, int] = {}  # transfers, by the pass that waits for them
    groups: dict[str, ProcessGroup] = {}
    nexts = [0] * len(devices)
    while any(at < len(order) for at, order in zip(nexts, orders, strict=True)):
        for device, order in enumerate(orders):
            while nexts[device] < len(order) and _can_start(order[nexts[device]], len(stages), arrived):
                one = order[nexts[device]]
                nexts[device] += 1
                last = not any(other.kind == one.kind and other.part == one.part for other in order[nexts[device] :])
                _run(one, devices[device], arrived, last)
                if (target := _target(one, len(stages))) is not None:
                    arrived[target] = _transfer(one, target, devices, groups)
    for device, tasks in enumerate(devices):
        tasks.update(device_layers(stages, choices, device))
        found = replace(choices.layout, stage=device).groups()
        suffix = f" {device + 1}" if device else ""
        for name, group in found.items():
            if name not in ("forward", "backward"):
                number = max(group.num_groups // len(devices), 1)
                groups[name + suffix] = ProcessGroup(name + suffix, group.ranks, number)
    return tuple(made), groups


def _can_start(one: Pass, parts: int, arrived: Mapping[Pass, int]) -> bool:
    """Whether what a pass needs from another device has been sent."""
    first = one.kind == "F" and one.part == 0
    turns = one.kind in "BI" and one.part == parts - 1
    return first or turns or one.kind == "W" or one in arrived


def _run(one: Pass, tasks: StageTasks, arrived: Mapping[Pass, int], last: bool) -> None:
    """Add the tasks of a pass."""
    if one in arrived:
        tasks.last = (*tasks.last, arrived[one])
    suffix = f" {one.micro_batch + 1}"
    if one.kind == "F":
        tasks.forward(one.part, "", suffix)
    elif one.kind == "B":
        tasks.backward(one.part, "", suffix, last)
    elif one.kind == "I":
        tasks.input_gradients(one.part, suffix)
    else:
        tasks.weight_gradients(one.part, suffix, last)


def _target(one: Pass, parts: int) -> Pass | None:
    """The pass on another device that waits for this one."""
    if one.kind == "F" and one.part + 1 < parts:
        return one._replace(part=one.part + 1)
    if one.kind in "BI" and one.part:
        return one._replace(part=one.part - 1)
    return None


def _transfer(one: Pass, target: Pass, devices: Sequence[StageTasks], groups: dict[str, ProcessGroup]) -> int:
    """Send the result of a pass to the device of the next. Returns: index of the transfer."""
    src, dst = one.part % len(devices), target.part % len(devices)
    tasks = devices[src]
    layout, way = tasks.choices.layout, "forward" if one.kind == "F" else "backward"
    name = f"stage {src + 1} to {dst + 1}"
    groups.setdefault(
        name, ProcessGroup(name, (src * layout.tensor, dst * layout.tensor), layout.num_ranks // layout.pipeline)
    )
    phase: Phase = "forward" if way == "forward" else "backward"
    size = tasks.border(phase, one.part) * tasks.choices.width
    both = tuple(sorted((src, dst)))
    tasks.made.append(
        Task(f"{name}, {one.micro_batch + 1}", 0.0, "send_recv", size, name, tasks.last, phase, devices=both)
    )
    return len(tasks.made) - 1
