"""A model on many devices: what each computes, and what they send one another::

model + degrees of parallelism + device ──► Job

partition_settle   what is decided first: degrees, batch, device
partition_layout   which ranks are in which group
partition_shares   what one device has of each layer
partition_tasks    what it does with it, in order
partition_tables   the same where there are embedding tables
partition_fit      whether it fits, and what would
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from opticcl.errors import WorkloadError
from opticcl.registry import as_path
from opticcl.units import format_bytes
from opticcl.workload.device import Precision
from opticcl.workload.job import Group, Job, Task
from opticcl.workload.model import Model
from opticcl.workload.models import load_model
from opticcl.workload.partition_fit import memory_needed, too_large
from opticcl.workload.partition_layout import Layout
from opticcl.workload.partition_settle import Asked, settle
from opticcl.workload.partition_shares import (
    Activations,
    Choices,
    Memory,
    Optimiser,
    divisible,
    slowest_stage,
    stage_layers,
)
from opticcl.workload.partition_tables import has_tables, table_share, table_tasks
from opticcl.workload.partition_tasks import chain_tasks
from opticcl.workload.times import read_times

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
    fit: bool = True,
) -> Job:
    """One iteration of training a model on so many devices, as one of them does it.

    Args:
        model: a model, its "name:key=value,...", or a path of a model (.toml).
        num_nodes: devices, data x tensor x pipeline x expert [count].
        batch: samples of an iteration on all devices together; None: from `local_batch` [count].
        local_batch: samples of each copy of the model (of the tensor x pipeline devices that share one); None: 16 [count].
        data: copies of the model; None: as many as there are devices for.
        tensor: devices that divide each layer, as Megatron does.
        pipeline: stages of consecutive layers.
        expert: devices that divide experts or tables and hold copies of all else; None: as many as divide evenly.
        micro_batches: parts of a copy's samples; None: 1, or 4 a stage of a pipeline where they divide.
        device: such as h100, or "a100:memory=80GB".
        precision: of parameters, gradients and messages; None: fp32, or fp16 for models that train in half precision.
        efficiency: share of the peak rate that layers reach; None: the default of data/training.toml.
        optimiser: none, sgd, momentum or adam; None: momentum in single precision and adam in half.
        activations: kept, recomputed in the backward pass, or offloaded and recomputed.
        times: file of measured times of the layers in place of the roofline.
        fit: refuse what does not fit the device's memory.
    Raises: WorkloadError: a degree or batch that does not divide, or a model that does not fit; the text tells what would.
        ParameterError, UnknownNameError.
    Source: RAMP 7.2; Shoeybi et al. 2019, Megatron-LM; Huang et al. 2019, GPipe; Mudigere et al. 2022.

    >>> partition("vgg16", 64, local_batch=16, device="2080_ti").total_bytes
    553430176
    """
    made = model if isinstance(model, Model) else load_model(as_path(model, "partition: model", "vgg19"))
    asked = Asked(
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
    )
    choices = settle(made, num_nodes, asked)
    memory = memory_needed(made, choices)
    if fit and memory.total_bytes > choices.device.memory_bytes:
        raise WorkloadError(too_large(made, num_nodes, asked, choices, memory))
    if has_tables(made):
        tasks = table_tasks(made, choices)
    else:
        choices, stages = slowest_stage(made, choices)
        tasks = chain_tasks(stages, choices)
    return Job(
        name=made.name,
        source=made.source,
        num_ranks=num_nodes,
        tasks=tasks,
        groups=_used(choices.layout, tasks),
        samples=choices.batch,
        memory_bytes=memory.total_bytes,
        operations=_operations(made, choices),
        notes=tuple(_notes(made, choices, memory)),
    )


def _operations(model: Model, choices: Choices) -> float:
    """Of the device in an iteration: forward, twice that backward, and forward again where nothing is kept."""
    passes = 3 if choices.activations == "kept" else 4
    local = choices.samples * choices.micro_batches
    if has_tables(model):
        read = table_share(model, choices.layout.expert).read * (choices.batch // choices.layout.data)
        return 3 * sum(2.0 * layer.macs * local for layer in model.layers if layer.kind != "table") + read
    layers = stage_layers(model, choices)[choices.layout.stage]
    return sum(
        passes * 2.0 * layer.macs * local / (choices.layout.tensor if divisible(layer) else 1) for layer in layers
    )


def _used(layout: Layout, tasks: tuple[Task, ...]) -> dict[str, Group]:
    """The groups that some task calls."""
    called = {task.group for task in tasks if task.communicates}
    return {name: group for name, group in layout.groups().items() if name in called}


def _notes(model: Model, choices: Choices, memory: Memory) -> Iterator[str]:
    layout = choices.layout
    degrees = ", ".join(f"{field.name} {getattr(layout, field.name)}" for field in fields(layout)[:4])
    ranks = f"; rank = tensor + {layout.tensor} x (stage + {layout.pipeline} x copy)"
    yield f"degrees: {degrees}{ranks if layout.tensor * layout.pipeline > 1 else ''}"
    parts = "1 micro-batch" if choices.micro_batches == 1 else f"{choices.micro_batches:,} micro-batches"
    yield f"batch: {choices.batch:,} samples, {choices.samples:,} a micro-batch, {parts}"
    if choices.times is None:
        yield f"computation: roofline of {choices.device.name}, {choices.precision}, efficiency {choices.efficiency:g}"
    else:
        yield f"computation: measured, {choices.times.source}"
    yield (
        f"memory: {format_bytes(memory.state_bytes)} for parameters, gradients and optimiser, "
        f"{format_bytes(memory.activation_bytes)} for activations ({choices.activations})"
    )
    if layout.pipeline > 1:
        yield f"pipeline: stage {layout.stage + 1} of {layout.pipeline}, a slowest one; 'wait: ' is work of the others"
        if any(layer.kind == "output" for layer in model.layers):
            yield "left out: the second copy of a matrix that embedding and output layer share, and its all_reduce"
