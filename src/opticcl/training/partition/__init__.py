"""Partition a model over devices::

model + degrees of parallelism + device ──► TaskGraph

resolve   degrees, batch, device and precision from the options
layout    which ranks are in which group
shares    parameters, operations and memory of one device
tasks     its tasks, in order
tables    the same for models with embedding tables
fit       whether the model fits the memory, and which change would make it fit
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields

from opticcl.errors import WorkloadError
from opticcl.ir.task_graph import ProcessGroup, Task, TaskGraph
from opticcl.registry import as_path
from opticcl.training.device import Precision
from opticcl.training.model import Model
from opticcl.training.models import load_model
from opticcl.training.partition.fit import memory_needed, too_large
from opticcl.training.partition.pipelined import pipelined_tasks
from opticcl.training.partition.resolve import PartitionOptions, resolve
from opticcl.training.partition.shares import (
    Activations,
    Configuration,
    DeviceMemory,
    Optimiser,
    Schedule,
    device_layers,
    divisible,
    slowest_stage,
    stage_layers,
)
from opticcl.training.partition.tables import has_tables, table_share, table_tasks
from opticcl.training.partition.tasks import chain_tasks
from opticcl.training.times import read_times
from opticcl.units import format_bytes

__all__ = ["partition"]


def partition(
    model: Model | str,
    num_nodes: int,
    *,
    batch: int | None = None,
    local_batch: int | None = None,
    data: int | None = None,
    tensor: int = 1,
    pipeline: int = 1,
    expert: int | None = None,
    micro_batches: int | None = None,
    device: str = "a100",
    precision: Precision | None = None,
    efficiency: float | None = None,
    optimiser: Optimiser | None = None,
    activations: Activations = "kept",
    times: str | None = None,
    context: int = 1,
    sequence_parallel: bool = False,
    zero: int = 0,
    schedule: Schedule = "1f1b",
    virtual_stages: int | None = None,
    fit: bool = True,
) -> TaskGraph:
    """Task graph of one training iteration of a model on `num_nodes` devices.

    Args:
        model: a model, its "name:key=value,...", or a path of a model (.toml, or the config.json of Hugging Face).
        num_nodes: devices, data x tensor x pipeline x context x expert [count].
        batch: samples of an iteration on all devices (global batch); if left out, from the local batch [count].
        local_batch: samples of each copy of the model, that is of tensor x pipeline devices; if left out, 16 [count].
        data: copies of the model (data-parallel degree); if left out, as many as the devices allow.
        tensor: devices that share each layer, as in Megatron.
        pipeline: stages of consecutive layers.
        expert: devices that share experts or tables and hold copies of other layers; if left out, the largest even division.
        micro_batches: parts of the samples of a copy; if left out, 1, or 4 per pipeline stage if that divides the samples.
        device: an accelerator such as h100, or a100:memory=80GB; it also times what a trace records without duration.
        precision: data type of parameters and gradients; if left out, fp32, or fp16 for models that train in half precision.
        efficiency: share of the peak rate that layers reach, such as 0.4; if left out, that of training.toml.
        optimiser: optimiser, whose state takes memory; if left out, momentum in single precision and adam in half.
        activations: activations of the forward pass: kept, recomputed in the backward pass, or offloaded.
        times: file of measured layer times, used instead of the roofline.
        context: devices that share the tokens of a sample and gather keys and values from each other.
        sequence_parallel: whether tensor-parallel devices divide the tokens between their layers.
        zero: ZeRO stage: data-parallel devices divide 1 the optimiser's state, 2 gradients too, 3 parameters too (FSDP).
        schedule: pipeline schedule: 1f1b; interleaved, with several virtual stages on a device; zero_bubble (ZB-H1).
        virtual_stages: virtual stages on a device in the interleaved schedule; if left out, 2 [count].
        fit: whether to refuse a model that does not fit the memory of the device.
    Raises: WorkloadError: a degree or batch that does not divide, or a model that does not fit; the message suggests one that
        does. ParameterError, UnknownNameError.
    Source: RAMP 7.2; Shoeybi et al. 2019, Megatron-LM; Huang et al. 2019, GPipe; Mudigere et al. 2022; Rajbhandari et al. 2020,
        ZeRO; Narayanan et al. 2021; Korthikanti et al. 2022; Qi et al. 2023, Zero bubble pipeline parallelism.

    >>> partition("vgg16", 64, local_batch=16, device="2080_ti").total_bytes
    553430176
    """
    made = model if isinstance(model, Model) else load_model(as_path(model, "partition: model", "vgg19"))
    asked = PartitionOptions(
        batch,
        local_batch,
        data,
        tensor,
        pipeline,
        expert,
        micro_batches,
        device,
        precision,
        efficiency,
        optimiser,
        activations,
        None if times is None else read_times(times),
        context,
        sequence_parallel,
        zero,
        schedule,
        virtual_stages,
    )
    choices = resolve(made, num_nodes, asked)
    memory = memory_needed(made, choices)
    if fit and memory.total_bytes > choices.device.memory_bytes:
        raise WorkloadError(too_large(made, num_nodes, asked, choices, memory))
    device_ranks: tuple[int, ...] = ()
    groups: Mapping[str, ProcessGroup] = choices.layout.groups()
    if has_tables(made):
        tasks = table_tasks(made, choices)
    else:
        choices, stages = slowest_stage(made, choices)
        if choices.schedule != "1f1b":
            tasks, groups = pipelined_tasks(stages, choices)
            device_ranks = tuple(stage * choices.layout.tensor for stage in range(choices.layout.pipeline))
        else:
            tasks, groups = chain_tasks(stages, choices), choices.layout.groups()
    return TaskGraph(
        name=made.name,
        source=made.source,
        num_ranks=num_nodes,
        tasks=tasks,
        groups=_used(groups, tasks),
        samples=choices.batch,
        memory_bytes=memory.total_bytes,
        operations=_operations(made, choices),
        model_operations=3 * _forward_operations(made, choices),
        peak_per_s=0.0 if choices.times is not None else choices.device.peak(choices.precision),
        notes=tuple(_notes(made, choices, memory)),
        device_ranks=device_ranks,
        degrees=choices.layout.degrees,
    )


def _forward_operations(model: Model, choices: Configuration) -> float:
    """Operations of the forward pass of all samples, for each of all devices [count]."""
    if has_tables(model):
        return _operations(model, choices) / 3
    return 2.0 * model.macs * choices.batch / choices.layout.num_ranks


def _operations(model: Model, choices: Configuration) -> float:
    """Operations of the device per iteration: forward, twice that backward, and forward again if recomputed."""
    passes = 3 if choices.activations == "kept" else 4
    local = choices.samples * choices.micro_batches / choices.layout.context
    if has_tables(model):
        read = table_share(model, choices.layout.expert).read * (choices.batch // choices.layout.data)
        return 3 * sum(2.0 * layer.macs * local for layer in model.layers if layer.kind != "table") + read
    layers = device_layers(stage_layers(model, choices), choices, choices.layout.stage)
    return sum(
        passes * 2.0 * layer.macs * local / (choices.layout.tensor if divisible(layer) else 1) for layer in layers
    )


def _used(groups: Mapping[str, ProcessGroup], tasks: tuple[Task, ...]) -> dict[str, ProcessGroup]:
    """The groups with at least one task."""
    called = {task.group for task in tasks if task.communicates}
    return {name: group for name, group in groups.items() if name in called}


def _notes(model: Model, choices: Configuration, memory: DeviceMemory) -> Iterator[str]:
    layout = choices.layout
    degrees = ", ".join(
        f"{field.name} {getattr(layout, field.name)}" for field in fields(layout)[: 4 + (layout.context > 1)]
    )
    yield f"degrees: {degrees}"
    parts = "1 micro-batch" if choices.micro_batches == 1 else f"{choices.micro_batches:,} micro-batches"
    yield f"batch: {choices.batch:,} samples, {choices.samples:,} per micro-batch, {parts}"
    if choices.times is None:
        yield f"computation: roofline of {choices.device.name}, {choices.precision}, efficiency {choices.efficiency:g}"
    else:
        yield f"computation: measured, {choices.times.source}"
    yield (
        f"memory: {format_bytes(memory.state_bytes)} for parameters, gradients and optimiser, "
        f"{format_bytes(memory.activation_bytes)} for activations ({choices.activations})"
    )
    if choices.zero:
        divided = ("the optimiser's state", "and gradients", "and parameters")[: choices.zero]
        yield f"ZeRO-{choices.zero}: {' '.join(divided)} divided among {layout.replicas:,} devices"
    if choices.sequence_parallel:
        yield "sequence parallelism: reduce_scatter and all_gather in place of the all_reduce of tensor groups"
    if layout.pipeline > 1 and choices.schedule != "1f1b":
        parts = f", {choices.virtual_stages} virtual stages on each" if choices.virtual_stages > 1 else ""
        yield f"pipeline: {layout.pipeline} devices, {choices.schedule} schedule{parts}; all stages are simulated"
    elif layout.pipeline > 1:
        yield f"pipeline: stage {layout.stage + 1} of {layout.pipeline}, the slowest; tasks 'wait: ' are work of other stages"
        if any(layer.kind == "output" for layer in model.layers):
            yield "left out: the second copy of the matrix shared by embedding and output layer, and its all_reduce"
