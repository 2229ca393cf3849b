"""Share of one device in each layer: parameters, operations, memory."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from opticcl.errors import WorkloadError
from opticcl.files import read_toml
from opticcl.training.device import Accelerator, Precision, Work, bytes_per_element, roofline_s
from opticcl.training.model import Layer, Model
from opticcl.training.partition.layout import Layout
from opticcl.training.times import Times

__all__ = [
    "Activations",
    "Configuration",
    "DeviceMemory",
    "Optimiser",
    "Schedule",
    "check_degrees",
    "device_layers",
    "held",
    "held_apart",
    "memory_of",
    "seconds",
    "stage_layers",
]

Optimiser = Literal["none", "sgd", "momentum", "adam"]
Activations = Literal["kept", "recomputed", "offloaded"]
Schedule = Literal["1f1b", "interleaved", "zero_bubble"]

# Kinds that divide into equal parts only, and their name; embeddings and output layers may be uneven by a row.
_PARTS = {"attention": "heads", "feed_forward": "columns", "experts": "experts"}
_DIVISIBLE = (*_PARTS, "embedding", "output")


@dataclass(frozen=True, slots=True)
class Configuration:
    """Resolved options of a partitioned model.

    Args:
        batch: samples of an iteration on all devices [count].
        layout: degrees of parallelism.
        micro_batches: parts of the samples of a copy [count].
        device: accelerator.
        precision: of parameters, gradients and activations.
        efficiency: share of the peak rate that layers reach.
        optimiser: none leaves the update out.
        activations: kept for the backward pass, recomputed from the outputs of layers, or moved to the host.
        times: measured times, used instead of the roofline.
        sequence_parallel: whether tensor-parallel devices divide also the tokens between their layers.
        zero: what data-parallel devices divide: 1 the optimiser's state, 2 gradients too, 3 parameters too; 0 nothing.
        schedule: of the pipeline.
        virtual_stages: parts of the layers on each device of a pipeline [count].
    """

    batch: int
    layout: Layout
    micro_batches: int
    device: Accelerator
    precision: Precision
    efficiency: float
    optimiser: Optimiser
    activations: Activations
    times: Times | None = None
    sequence_parallel: bool = False
    zero: int = 0
    schedule: Schedule = "1f1b"
    virtual_stages: int = 1

    @property
    def samples(self) -> int:
        """Samples of a micro-batch [count]."""
        return self.batch // self.layout.copies // self.micro_batches

    @property
    def width(self) -> int:
        """Size of an element [bytes]."""
        return bytes_per_element(self.precision)

    @property
    def in_flight(self) -> float:
        """Micro-batches whose activations the device keeps at the same time [count].

        Source: Narayanan et al. 2021, section 2.2, for the interleaved schedule; Qi et al. 2023, section 2.3, for ZB-H1.
        """
        stages, behind = self.layout.pipeline, self.layout.pipeline - self.layout.stage
        if self.schedule == "interleaved":
            ahead = 2 * (behind - 1) + (self.virtual_stages - 1) * stages + 1
            return min(self.micro_batches, ahead / self.virtual_stages)
        return min(self.micro_batches, stages if self.schedule == "zero_bubble" else behind)

    def elements(self, per_sample: float, share: int = 1) -> int:
        """Elements of a micro-batch on one of the devices that divide its tokens [count].

        Args:
            per_sample: of a whole sample [count].
            share: devices that divide them further [count].
        """
        return int(per_sample * self.samples // (self.layout.context * share))


def divisible(layer: Layer) -> bool:
    """Whether tensor-parallel devices can share the layer."""
    return layer.kind in _DIVISIBLE and layer.ways > 1


def check_degrees(model: Model, layout: Layout) -> None:
    """Raises WorkloadError: a degree does not divide the parts of a layer, or no layer can be divided."""
    if layout.tensor > 1 and not any(map(divisible, model.layers)):
        raise WorkloadError(
            f"{model.name}: tensor={layout.tensor}, but none of its layers can be divided; try data or pipeline"
        )
    if layout.expert > 1 and not any(layer.kind in ("experts", "table") for layer in model.layers):
        raise WorkloadError(f"{model.name}: expert={layout.expert}, but it has neither experts nor tables; try data")
    if layout.pipeline > len(model.layers):
        raise WorkloadError(
            f"{model.name}: pipeline={layout.pipeline}, but it has {len(model.layers)} layers; "
            f"try pipeline={len(model.layers)} at most"
        )
    for layer in model.layers:
        if layer.kind == "experts":
            _check(model, layer, "expert", layout.expert, layer.ways, layout.num_ranks)
            split = layer.split or (False,) * len(layer.tensors)
            inside = [size // layer.ways for size, part in zip(layer.tensors, split, strict=True) if part]
            _check(model, layer, "tensor", layout.tensor, math.gcd(*inside) or 1, layout.num_ranks, "columns")
        elif layer.kind in _PARTS and divisible(layer):
            _check(model, layer, "tensor", layout.tensor, layer.ways, layout.num_ranks)


def _check(model: Model, layer: Layer, what: str, degree: int, ways: int, num_ranks: int, parts: str = "") -> None:
    if ways % degree:
        both = math.gcd(ways, num_ranks)
        near = next(n for n in range(min(degree, both), 0, -1) if both % n == 0)
        raise WorkloadError(
            f"{model.name}: {what}={degree} does not divide the {ways} {parts or _PARTS[layer.kind]} of {layer.name}; "
            f"try {what}={near}"
        )


def held(layer: Layer, layout: Layout, tensor_rank: int = 0) -> tuple[int, ...]:
    """Parameters of each tensor of a layer that one device of its stage holds.

    Args:
        layer: of the model.
        layout: degrees of parallelism.
        tensor_rank: of the device in its tensor group; the rank in other groups does not matter.
    """
    split = layer.split or (False,) * len(layer.tensors)
    if layer.kind == "experts":
        share = layout.expert * layout.tensor
        return tuple(size // share if part else size for size, part in zip(layer.tensors, split, strict=True))
    if layout.tensor == 1 or not divisible(layer):
        return layer.tensors
    rows = layer.ways // layout.tensor + (tensor_rank < layer.ways % layout.tensor)
    return tuple(size // layer.ways * rows if part else size for size, part in zip(layer.tensors, split, strict=True))


def kept(layer: Layer, layout: Layout, sequence_parallel: bool = False) -> float:
    """Elements of a sample that one device keeps for the backward pass, before context-parallel devices divide them.

    Tensor-parallel devices divide what lies between the two matrices of a block's half; its input, normalisation and dropout
    are whole on each, 2.5 elements for each of the sequence, or with sequence parallelism divided too.

    Args:
        layer: of the model.
        layout: degrees of parallelism.
        sequence_parallel: see `Configuration`.
    Source: Korthikanti et al. 2022, sections 4.2.1 and 4.2.2.
    """
    if sequence_parallel:
        return layer.activations / layout.tensor
    if not divisible(layer) or layer.kind == "embedding":
        return layer.activations
    whole = layer.activations - layer.outputs if layer.kind == "output" else 2.5 * layer.outputs
    whole = min(max(whole, 0), layer.activations)
    return whole + (layer.activations - whole) / layout.tensor


def work(layer: Layer, choices: Configuration) -> Work:
    """The forward pass of a micro-batch on one device: each kept element is written and read once, parameters are read once.

    An embedding reads the rows that it looks up, not the whole. Experts are chosen equally often.
    """
    layout, samples = choices.layout, choices.samples / choices.layout.context
    share = layout.tensor if divisible(layer) else 1
    parameters = 0 if layer.kind == "embedding" else sum(held(layer, layout))
    moved = parameters + 2 * kept(layer, layout, choices.sequence_parallel) * samples
    return Work(2 * layer.macs * samples / share, choices.width * moved)


def seconds(layer: Layer, choices: Configuration) -> tuple[float, float]:
    """Forward and backward time of a micro-batch on one device [s].

    Backward is twice forward: gradients by the input and by the parameters, the first layer's too.
    """
    if choices.times is not None:
        scale = choices.samples / choices.times.samples / choices.layout.context
        return choices.times.forward_s[layer.name] * scale, choices.times.backward_s[layer.name] * scale
    forward = roofline_s(work(layer, choices), choices.device, choices.precision, choices.efficiency)
    return forward, 2 * forward


def stage_layers(model: Model, choices: Configuration) -> tuple[tuple[Layer, ...], ...]:
    """Consecutive layers of each stage, at least one, that minimise the time of the slowest stage."""
    count = choices.layout.pipeline * choices.virtual_stages
    if count == 1:
        return (model.layers,)
    costs = [sum(seconds(layer, choices)) for layer in model.layers]
    low, high = max(costs), sum(costs)
    for _ in range(60):  # a bisection: to the last digit of a float
        middle = (low + high) / 2
        low, high = (low, middle) if _stages_needed(costs, middle) <= count else (middle, high)
    ends = _cut(costs, high, count)
    return tuple(model.layers[a:b] for a, b in zip([0, *ends], [*ends, len(costs)], strict=True))


def _stages_needed(costs: list[float], limit: float) -> int:
    return len(_cut(costs, limit, 0)) + 1


def _cut(costs: list[float], limit: float, count: int) -> list[int]:
    """Ends of stages whose cost is at most `limit`; with `count`, that many non-empty stages."""
    ends: list[int] = []
    filled = 0.0
    for i, cost in enumerate(costs):
        must = count and len(costs) - i <= count - 1 - len(ends) and i > (ends[-1] if ends else 0)
        if i and (filled + cost > limit or must):
            ends.append(i)
            filled = 0.0
        filled += cost
    return ends


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """Memory of a device.

    Args:
        state_bytes: parameters, gradients and the optimiser's state [bytes].
        activation_bytes: of the backward pass [bytes].
    """

    state_bytes: float
    activation_bytes: float

    @property
    def total_bytes(self) -> float:
        """Sum of both [bytes]."""
        return self.state_bytes + self.activation_bytes


def state_bytes_per_parameter(choices: Configuration) -> int:
    """Parameter, gradient and optimiser's state [bytes].

    In half precision the optimiser has its own parameters in single precision: 16 bytes with Adam.

    Source: Rajbhandari et al. 2020, ZeRO, section 3.1.
    """
    states = read_toml("opticcl.training", "training.toml")["optimiser_states"][choices.optimiser]
    own = choices.width == 2 and choices.optimiser != "none"
    return int(2 * choices.width + 4 * (states + own))


def memory_of(layers: Iterable[Layer], choices: Configuration) -> DeviceMemory:
    """Memory of a device that holds these layers, without workspace and communication buffers."""
    layers = tuple(layers)
    unit: float = choices.width * choices.samples
    if choices.layout.context > 1:
        unit /= choices.layout.context
    keeps = [kept(layer, choices.layout, choices.sequence_parallel) for layer in layers]
    largest = unit * max(keeps, default=0.0)
    if choices.activations == "kept":
        needed = choices.in_flight * unit * sum(keeps)
    elif choices.activations == "recomputed":
        share = choices.layout.tensor if choices.sequence_parallel else 1
        needed = choices.in_flight * unit * sum(layer.outputs for layer in layers) / share + largest
    else:
        needed = largest
    return DeviceMemory(
        sum(_state_bytes(layer, choices) for layer in layers) + _gathered_bytes(layers, choices), needed
    )


def _state_bytes(layer: Layer, choices: Configuration) -> float:
    """Parameters, gradients and optimiser's state of a layer on one device, divided as ZeRO divides them [bytes].

    Source: Rajbhandari et al. 2020, ZeRO, section 5.
    """
    layout, whole = choices.layout, state_bytes_per_parameter(choices)
    if not choices.zero:
        return sum(held(layer, layout)) * whole
    found = 0.0
    for size, apart in held_apart(layer, layout):
        copies = layout.expert_replicas if apart else layout.replicas
        parts = (choices.width, choices.width, whole - 2 * choices.width)  # parameters, gradients, optimiser
        found += size * sum(part / (copies if i >= 3 - choices.zero else 1) for i, part in enumerate(parts))
    return found


def _gathered_bytes(layers: Iterable[Layer], choices: Configuration) -> float:
    """Whole parameters of two layers, which ZeRO-3 has gathered at a time: one in use, one on its way [bytes]."""
    if choices.zero < 3:
        return 0
    sizes = sorted(sum(held(layer, choices.layout)) for layer in layers)
    return float(sum(sizes[-2:]) * choices.width)


def held_apart(layer: Layer, layout: Layout) -> tuple[tuple[int, bool], ...]:
    """Parameters of each tensor of a layer on one device, and whether other ranks of `expert` have other parts of it."""
    split = layer.split or (False,) * len(layer.tensors)
    apart = layer.kind == "experts" and layout.expert > 1
    return tuple((size, apart and part) for size, part in zip(held(layer, layout), split, strict=True))


def device_layers(stages: Sequence[Sequence[Layer]], choices: Configuration, stage: int) -> tuple[Layer, ...]:
    """Layers of the device at a stage of the pipeline, of all its virtual stages.

    Args:
        stages: layers of each virtual stage in the order of the forward pass.
        choices: the configuration.
        stage: of the device.
    """
    return tuple(layer for part in stages[stage :: choices.layout.pipeline] for layer in part)


def slowest_stage(model: Model, choices: Configuration) -> tuple[Configuration, tuple[tuple[Layer, ...], ...]]:
    """The configuration of the first of the slowest stages, and the layers of all stages."""
    stages = stage_layers(model, choices)
    parts = [device_layers(stages, choices, stage) for stage in range(choices.layout.pipeline)]
    costs = [sum(sum(seconds(layer, choices)) for layer in layers) for layers in parts]
    layout = replace(choices.layout, stage=costs.index(max(costs)))
    return replace(choices, layout=layout), stages
