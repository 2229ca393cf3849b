"""Whether a model fits the memory of its devices, and the smallest change that makes it fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from opticcl.errors import OpticclError
from opticcl.training.model import Model
from opticcl.training.partition.resolve import DEFAULT_LOCAL_BATCH, MOST_RANKS, PartitionOptions, resolve
from opticcl.training.partition.shares import (
    Configuration,
    DeviceMemory,
    device_layers,
    memory_of,
    stage_layers,
    state_bytes_per_parameter,
)
from opticcl.training.partition.tables import has_tables, table_share
from opticcl.units import format_bytes

__all__ = ["memory_needed", "too_large"]

MOST_LAYERS = 100_000  # evaluated by the search for a fitting change, over all tries; about a second of CPU


def memory_needed(model: Model, choices: Configuration) -> DeviceMemory:
    """Memory of the device that needs most."""
    if has_tables(model):
        dense = [layer for layer in model.layers if layer.kind != "table"]
        share = table_share(model, choices.layout.expert)
        needed = memory_of(dense, choices)
        # Sparse SGD has no state beside the table; looked-up rows are sent on, received rows are kept.
        arriving = sum(layer.exchanged for layer in model.layers) * choices.samples
        looked_up = share.columns * (choices.batch // choices.layout.data)
        return DeviceMemory(
            needed.state_bytes + share.parameters * choices.width,
            needed.activation_bytes + (arriving + looked_up) * choices.width,
        )
    stages = stage_layers(model, choices)
    needs = [
        memory_of(device_layers(stages, choices, stage), replace(choices, layout=replace(choices.layout, stage=stage)))
        for stage in range(choices.layout.pipeline)
    ]
    return max(needs, key=lambda need: need.total_bytes)


def too_large(
    model: Model, num_nodes: int, asked: PartitionOptions, choices: Configuration, memory: DeviceMemory
) -> str:
    """Message: memory needed, memory available, and a change that would fit.

    Args:
        model: that does not fit.
        num_nodes: devices [count].
        asked: options of the caller.
        configuration: resolved from them.
        memory: needed by the configuration.
    """
    has = choices.device
    tries = iter(range(max(MOST_LAYERS // len(model.layers), 1)))
    return (
        f"{model.name}: needs {format_bytes(memory.total_bytes)} on each of {num_nodes} devices "
        f"({format_bytes(memory.state_bytes)} for parameters, gradients and optimiser, "
        f"{format_bytes(memory.activation_bytes)} for activations), {has.name} has {format_bytes(has.memory_bytes)}; "
        + (_what_fits(model, num_nodes, asked, tries) or _how_many_fit(model, num_nodes, asked, choices, tries))
    )


def _what_fits(model: Model, num_nodes: int, asked: PartitionOptions, tries: Iterator[int]) -> str:
    """The smallest change that fits, as text; empty if none was found."""
    for change, _ in zip(_changes(num_nodes, asked), tries, strict=False):
        try:
            choices = resolve(model, num_nodes, replace(asked, **change))
            memory = memory_needed(model, choices)
        except OpticclError:
            continue
        if memory.total_bytes <= choices.device.memory_bytes:
            said = ", ".join(f"{name}={value}" for name, value in change.items() if value is not None)
            return f"{said} would fit ({format_bytes(memory.total_bytes)})"
    return ""


def _how_many_fit(
    model: Model, num_nodes: int, asked: PartitionOptions, choices: Configuration, tries: Iterator[int]
) -> str:
    """A larger number of devices that fits, as text."""
    alone = replace(asked, data=None, expert=None, activations="recomputed")
    each = choices.width if has_tables(model) else state_bytes_per_parameter(choices)
    while (num_nodes := 2 * num_nodes) <= MOST_RANKS:
        if model.parameters * each > num_nodes * choices.device.memory_bytes:
            continue  # even without replication
        try:
            choices = resolve(model, num_nodes, alone)
            fits = memory_needed(model, choices).total_bytes <= choices.device.memory_bytes
        except OpticclError:
            continue
        if fits:
            return f"no degree on this number of devices fits; on {num_nodes} devices activations=recomputed would fit"
        if said := _what_fits(model, num_nodes, alone, tries):
            return f"no degree on this number of devices fits; on {num_nodes} devices activations=recomputed, {said}"
        if next(tries, None) is None:
            return "no tried change fits; try many more devices, or activations=offloaded and a smaller batch"
    return "no degree fits; try activations=offloaded, a smaller batch or another device"


def _changes(num_nodes: int, asked: PartitionOptions) -> Iterator[dict[str, Any]]:
    """Changes to try, smallest first."""
    recomputed: dict[str, Any] = {"activations": "recomputed"}
    if asked.activations == "kept":
        yield recomputed
    if not asked.zero:
        yield from ({"zero": stage} for stage in (1, 2, 3))
    local = asked.local_batch or DEFAULT_LOCAL_BATCH
    batches = [{"local_batch": local >> i} for i in range(1, local.bit_length())] if asked.batch is None else []
    yield from batches
    doubles = [2**i for i in range(1, num_nodes.bit_length())]
    for extra in ({}, recomputed) if asked.activations == "kept" else ({},):
        yield from ({"data": None, "tensor": asked.tensor * n} | extra for n in doubles)
        yield from ({"data": None, "pipeline": asked.pipeline * n} | extra for n in doubles)
        for n in doubles:
            yield from (
                {"data": None, "tensor": asked.tensor * n, "pipeline": asked.pipeline * m} | extra for m in doubles
            )
    if asked.batch is None:
        yield {"data": None, "tensor": num_nodes, "local_batch": 1} | recomputed
