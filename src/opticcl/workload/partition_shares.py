"""What one device has of each layer: its parameters, its operations, its memory."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from opticcl.data import load
from opticcl.errors import WorkloadError
from opticcl.workload.device import Device, Precision, Work, bytes_per_element, roofline_s
from opticcl.workload.model import Layer, Model
from opticcl.workload.partition_layout import Layout
from opticcl.workload.times import Times

__all__ = [
    "Activations",
    "Choices",
    "Memory",
    "Optimiser",
    "check_degrees",
    "held",
    "memory_of",
    "seconds",
    "stage_layers",
]

Optimiser = Literal["none", "sgd", "momentum", "adam"]
Activations = Literal["kept", "recomputed", "offloaded"]

# Whose parts must be equal, in words; embeddings and output layers may have a row more on some devices.
_PARTS = {"attention": "heads", "feed_forward": "columns", "experts": "experts"}
_DIVISIBLE = (*_PARTS, "embedding", "output")


@dataclass(frozen=True, slots=True)
class Choices:
    """How a model is trained; all that a partitioner decides on, settled.

    Args:
        batch: samples of an iteration on all devices [count].
        layout: degrees of parallelism.
        micro_batches: parts that a device's samples are cut into [count].
        device: what computes.
        precision: of parameters, gradients and activations.
        efficiency: share of the peak rate that layers reach.
        optimiser: none leaves the update out.
        activations: kept for the backward pass, recomputed from the outputs of layers, or moved to the host.
        times: measured times in place of the roofline.
    """

    batch: int
    layout: Layout
    micro_batches: int
    device: Device
    precision: Precision
    efficiency: float
    optimiser: Optimiser
    activations: Activations
    times: Times | None = None

    @property
    def samples(self) -> int:
        """Of a micro-batch [count]."""
        return self.batch // self.layout.copies // self.micro_batches

    @property
    def width(self) -> int:
        """Of an element [bytes]."""
        return bytes_per_element(self.precision)

    @property
    def in_flight(self) -> int:
        """Micro-batches whose activations the device keeps at once, one forward and one backward in turn [count]."""
        return min(self.micro_batches, self.layout.pipeline - self.layout.stage)


def divisible(layer: Layer) -> bool:
    """Whether tensor-parallel devices share it."""
    return layer.kind in _DIVISIBLE and layer.ways > 1


def check_degrees(model: Model, layout: Layout) -> None:
    """Raises WorkloadError: a degree does not divide what it should, or there is nothing to divide."""
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

    Args: tensor_rank: of the device in its tensor group; ranks of other groups hold equally many.
    """
    split = layer.split or (False,) * len(layer.tensors)
    if layer.kind == "experts":
        share = layout.expert * layout.tensor
        return tuple(size // share if part else size for size, part in zip(layer.tensors, split, strict=True))
    if layout.tensor == 1 or not divisible(layer):
        return layer.tensors
    rows = layer.ways // layout.tensor + (tensor_rank < layer.ways % layout.tensor)
    return tuple(size // layer.ways * rows if part else size for size, part in zip(layer.tensors, split, strict=True))


def kept(layer: Layer, layout: Layout) -> float:
    """Elements of a sample that one device keeps for the backward pass.

    Tensor-parallel devices divide what lies between the two matrices of a block's half; its input, normalisation and dropout
    are whole on each: 2.5 elements for each of the sequence.

    Source: Korthikanti et al. 2022, section 4.2.1.
    """
    if not divisible(layer) or layer.kind == "embedding":
        return layer.activations
    whole = layer.activations - layer.outputs if layer.kind == "output" else 2.5 * layer.outputs
    whole = min(max(whole, 0), layer.activations)
    return whole + (layer.activations - whole) / layout.tensor


def work(layer: Layer, choices: Choices) -> Work:
    """The forward pass of a micro-batch on one device: each kept element is written and read once, parameters are read once.

    An embedding reads the rows that it looks up, not the whole. Experts are chosen equally often.
    """
    layout, samples = choices.layout, choices.samples
    share = layout.tensor if divisible(layer) else 1
    parameters = 0 if layer.kind == "embedding" else sum(held(layer, layout))
    moved = parameters + 2 * kept(layer, layout) * samples
    return Work(2 * layer.macs * samples / share, choices.width * moved)


def seconds(layer: Layer, choices: Choices) -> tuple[float, float]:
    """Forward and backward time of a micro-batch on one device [s].

    Backward is twice forward: gradients by the input and by the parameters, the first layer's too.
    """
    if choices.times is not None:
        scale = choices.samples / choices.times.samples
        return choices.times.forward_s[layer.name] * scale, choices.times.backward_s[layer.name] * scale
    forward = roofline_s(work(layer, choices), choices.device, choices.precision, choices.efficiency)
    return forward, 2 * forward


def stage_layers(model: Model, choices: Choices) -> tuple[tuple[Layer, ...], ...]:
    """Layers of each stage: consecutive, at least one, such that the slowest stage is as fast as it can be."""
    count = choices.layout.pipeline
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
    """Where stages of at most `limit` end; with `count` so many stages that none is empty."""
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
class Memory:
    """What a device needs.

    Args:
        state_bytes: parameters, gradients and the optimiser's state [bytes].
        activation_bytes: of the backward pass [bytes].
    """

    state_bytes: float
    activation_bytes: float

    @property
    def total_bytes(self) -> float:
        """Of both [bytes]."""
        return self.state_bytes + self.activation_bytes


def state_bytes_per_parameter(choices: Choices) -> int:
    """Parameter, gradient and optimiser's state [bytes].

    In half precision the optimiser has its own parameters in single precision: 16 bytes with Adam.

    Source: Rajbhandari et al. 2020, ZeRO, section 3.1.
    """
    states = load("training.toml")["optimiser_states"][choices.optimiser]
    own = choices.width == 2 and choices.optimiser != "none"
    return int(2 * choices.width + 4 * (states + own))


def memory_of(layers: Iterable[Layer], choices: Choices) -> Memory:
    """Of a device that holds these layers, without workspace and buffers of communication."""
    layers = tuple(layers)
    parameters = sum(sum(held(layer, choices.layout)) for layer in layers)
    unit = choices.width * choices.samples
    largest = unit * max((kept(layer, choices.layout) for layer in layers), default=0.0)
    if choices.activations == "kept":
        needed = choices.in_flight * unit * sum(kept(layer, choices.layout) for layer in layers)
    elif choices.activations == "recomputed":
        needed = choices.in_flight * unit * sum(layer.outputs for layer in layers) + largest
    else:
        needed = largest
    return Memory(parameters * state_bytes_per_parameter(choices), needed)


def slowest_stage(model: Model, choices: Choices) -> tuple[Choices, tuple[tuple[Layer, ...], ...]]:
    """The choices with the stage that takes longest, the first of several, and the layers of all stages."""
    stages = stage_layers(model, choices)
    costs = [sum(sum(seconds(layer, choices)) for layer in layers) for layers in stages]
    layout = replace(choices.layout, stage=costs.index(max(costs)))
    return replace(choices, layout=layout), stages
