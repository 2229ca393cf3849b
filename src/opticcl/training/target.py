"""From a target loss to a model, its division among devices, its batch and its steps::

    loss ──► width, layers ──► tensor degree ──► data degree, batch ──► steps
             table 9           memory            critical batch         scaling law

Source: RAMP 7.2.1 and table 9.
Reading: table 9 prints cross-entropies with one digit; its batches are the critical ones of multiples of 1/6, so 2.4 is trained
    to 2.333. Targets are on the printed scale. Between two rows the loss is linear in it, width and layers are geometric.
Reading: a degree is the smallest power of two with which what a device has to hold fits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from opticcl.errors import ParameterError
from opticcl.files import read_toml
from opticcl.ir.task_graph import TaskGraph
from opticcl.registry import convert_value, whole_number
from opticcl.training.device import Accelerator, Precision
from opticcl.training.device import device as accelerator
from opticcl.training.model import Model
from opticcl.training.models import model
from opticcl.training.partition import partition
from opticcl.training.partition.fit import memory_needed
from opticcl.training.partition.layout import Layout
from opticcl.training.partition.resolve import MOST_RANKS, PartitionOptions, resolve
from opticcl.training.partition.shares import Activations, Optimiser, held
from opticcl.training.scaling_laws import critical_batch_tokens, steps_to
from opticcl.units import format_bytes

__all__ = ["CROSS_ENTROPIES", "MAX_DEVICES", "Target", "device_parameters", "train_to"]

_VALUES = read_toml("opticcl.training", "target.toml")
_ROWS: list[list[float]] = _VALUES["table"]["rows"]
_TABLE = dict(zip(_VALUES["table"]["columns"], np.array(_ROWS[::-1]).T, strict=True))
CROSS_ENTROPIES: tuple[float, ...] = tuple(row[0] for row in _ROWS)
"""Of the rows of RAMP's table 9, as printed [nats a token]."""

MAX_DEVICES: int = _VALUES["max_devices"]


@dataclass(frozen=True)
class Target:
    """A model that reaches a loss, and how it is trained.

    Args:
        cross_entropy: target on the scale of table 9 [nats a token].
        loss: by the scaling law [nats a token].
        model: its blocks, without embedding.
        layers: blocks [count].
        hidden: width [elements].
        tensor: devices that share each layer [count].
        data: copies of the model [count].
        local_batch: samples of each copy [count].
        options: of `partition`, for the devices.
    """

    cross_entropy: float
    loss: float
    model: Model
    layers: int
    hidden: int
    tensor: int
    data: int
    local_batch: int
    options: Mapping[str, Any]

    @property
    def num_devices(self) -> int:
        """Tensor x data degree [count]."""
        return self.tensor * self.data

    @property
    def batch(self) -> int:
        """Samples of all copies in a step [count]."""
        return self.data * self.local_batch

    @property
    def critical_batch(self) -> float:
        """Batch beyond which more samples save few steps [samples]."""
        return critical_batch_tokens(self.loss) / _VALUES["sequence"]

    @cached_property
    def steps(self) -> int:
        """Steps to the loss [count]."""
        return math.ceil(self.steps_with(self.batch))

    def steps_with(self, batch: int) -> float:
        """Steps to the loss with another batch [count].

        Args: batch: of all copies [samples].
        """
        return steps_to(self.loss, batch * _VALUES["sequence"])

    def job(self, batch: int | None = None) -> TaskGraph:
        """Task graph of a step.

        Args: batch: of all copies; None: its own [samples].
        """
        samples = self.batch if batch is None else batch
        return partition(
            self.model, self.num_devices, batch=samples, data=self.data, tensor=self.tensor, **self.options
        )

    def record(self) -> dict[str, Any]:
        """Plain values, as `opticcl train --json` prints them."""
        return {
            "target_loss": self.cross_entropy,
            "loss": self.loss,
            "layers": self.layers,
            "hidden": self.hidden,
            "parameters": self.model.parameters,
            "tensor": self.tensor,
            "data": self.data,
            "devices": self.num_devices,
            "batch": self.batch,
            "critical_batch": self.critical_batch,
            "steps": self.steps,
        }


def train_to(
    cross_entropy: float,
    max_devices: int = MAX_DEVICES,
    *,
    device: str = "a100",
    precision: Precision | None = None,
    efficiency: float | None = None,
    optimiser: Optimiser | None = None,
    activations: Activations = "offloaded",
) -> Target:
    """The transformer that reaches a loss, divided among devices as RAMP does.

    The tensor degree is the smallest power of two with which the parameters of a device are no more than it takes. The data
    degree is the smallest with which all samples of the critical batch fit, or the largest that the devices allow; each copy
    has as many samples as fit.

    Args:
        cross_entropy: target, from 2.5 to 1 [nats a token].
        max_devices: that may be used [count].
        device, precision, efficiency, optimiser, activations: as of `partition`.
    Raises: ParameterError: a target beyond the table, or too few or too small devices; UnknownNameError: no such device.

    >>> found = train_to(2.0)
    >>> found.layers, found.hidden, found.tensor, found.data, found.batch
    (50, 4096, 8, 64, 7168)
    """
    least, most = min(CROSS_ENTROPIES), max(CROSS_ENTROPIES)
    cross_entropy = convert_value(cross_entropy, float, "target_loss")
    if not least <= cross_entropy <= most:
        raise ParameterError(
            f"target_loss={cross_entropy:g} is not from {most:g} to {least:g}, which RAMP's table 9 covers; try target_loss=2"
        )
    if not 1 <= whole_number(max_devices, "max_devices") <= MOST_RANKS:
        raise ParameterError(f"max_devices={max_devices} is not from 1 to 2**30; try max_devices={MAX_DEVICES}")
    options: dict[str, Any] = {
        "device": device,
        "precision": precision,
        "efficiency": efficiency,
        "optimiser": optimiser,
        "activations": activations,
    }
    on = accelerator(device)
    made, layers, hidden, tensor = _model(cross_entropy, on)
    if tensor > max_devices:
        raise ParameterError(
            f"target_loss={cross_entropy:g}: its {made.parameters:,} parameters need {tensor} devices ({on.name}), more "
            f"than max_devices={max_devices}; try max_devices={tensor}, or a larger loss"
        )
    most_samples = _most_samples(made, hidden, tensor, options)
    loss = _between(cross_entropy, _TABLE["sixths"]) / 6
    critical = int(critical_batch_tokens(loss) / _VALUES["sequence"])
    data = 1
    while critical // data > most_samples and 2 * data * tensor <= max_devices:
        data *= 2
    local_batch = max(1, min(critical // data, most_samples))
    return Target(cross_entropy, loss, made, layers, hidden, tensor, data, local_batch, options)


def device_parameters(made: Model, tensor: int) -> int:
    """Parameters that one of the devices that share a model holds [count].

    Args:
        made: the model.
        tensor: devices that share each layer [count].
    """
    layout = Layout(tensor=tensor)
    return sum(sum(held(layer, layout)) for layer in made.layers)


def _between(cross_entropy: float, values: Any) -> float:
    """Value at a cross-entropy, linear between those of the rows."""
    return float(np.interp(cross_entropy, _TABLE["cross_entropy"], values))


def _model(cross_entropy: float, on: Accelerator) -> tuple[Model, int, int, int]:
    """The model that reaches a loss; its layers, its width and the tensor degree with which it fits devices.

    Raises: ParameterError: even divided among as many as its width allows, it does not fit.
    """
    width, depth = (math.exp(_between(cross_entropy, np.log(_TABLE[name]))) for name in ("hidden", "layers"))
    limit = _VALUES["device_parameters"]["value"] * _relative_memory(on)
    layers = round(depth)
    least = 12 * layers * width**2 / (4 * limit)  # a degree that is surely too small
    tensor = 2 ** max(0, math.floor(math.log2(least)))
    while tensor <= round(width):
        step = max(tensor, _VALUES["hidden_step"]["value"])
        hidden = step * round(width / step)
        shape = {"layers": layers, "hidden": hidden, "heads": _heads(hidden, tensor)}
        made = model("transformer", **shape, sequence=_VALUES["sequence"], vocabulary=0)
        if device_parameters(made, tensor) <= limit:
            return made, layers, hidden, tensor
        tensor *= 2
    raise ParameterError(
        f"{on.name}: takes {limit:.3g} parameters, and no tensor degree leaves so few of the model of "
        f"target_loss={cross_entropy:g} on a device; try a larger memory or a larger loss"
    )


def _heads(hidden: int, tensor: int) -> int:
    """Heads that divide the width and are divided by the tensor degree, of a width as near to the usual one as may be."""
    columns = hidden // tensor
    usual = columns / _VALUES["head_width"]["value"]
    divisors = (n for n in range(1, columns + 1) if columns % n == 0)
    return tensor * min(divisors, key=lambda n: abs(math.log(n / usual)))


def _relative_memory(on: Accelerator) -> float:
    """Memory in units of that of RAMP's device."""
    return float(on.memory_bytes / _VALUES["device_parameters"]["memory_bytes"])


def _most_samples(made: Model, hidden: int, tensor: int, options: Mapping[str, Any]) -> int:
    """Samples of a copy that a device takes: by its memory, and by the message of a tensor-parallel all_reduce [count].

    Raises: ParameterError: not one.
    """
    others: dict[str, Any] = {"local_batch": None, "pipeline": 1, "expert": None, "micro_batches": None, "times": None}
    choices = resolve(made, tensor, PartitionOptions(batch=1, data=1, tensor=tensor, **others, **options))
    needed = memory_needed(made, choices)
    bounds = [
        _VALUES["local_batch"]["value"] * _relative_memory(choices.device),
        (choices.device.memory_bytes - needed.state_bytes) / needed.activation_bytes,
    ]
    if tensor > 1:
        bounds.append(_VALUES["message_bytes"]["value"] / (_VALUES["sequence"] * hidden * choices.width))
    if min(bounds) < 1:
        raise ParameterError(
            f"{choices.device.name}: has {format_bytes(choices.device.memory_bytes)}; {made.name} needs "
            f"{format_bytes(needed.total_bytes)} for one sample; try activations=offloaded, a larger memory or a larger loss"
        )
    return int(min(bounds))
