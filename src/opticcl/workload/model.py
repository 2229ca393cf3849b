"""A model as training sees it: layers in order, each with its gradient tensors, operations and activations.

Counts are of one sample (an image, a sequence, a click), so that partitioning decides on batches and devices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from opticcl.errors import WorkloadError

__all__ = ["KINDS", "Kind", "Layer", "Model"]

Kind = Literal[
    "conv",
    "linear",
    "norm",
    "embedding",
    "attention",
    "feed_forward",
    "experts",
    "output",
    "table",
    "interaction",
    "other",
]
KINDS: tuple[Kind, ...] = (
    "conv",
    "linear",
    "norm",
    "embedding",
    "attention",
    "feed_forward",
    "experts",
    "output",
    "table",
    "interaction",
    "other",
)
MOST = 2**60  # of any count: no machine has more


@dataclass(frozen=True, slots=True)
class Layer:
    """A step of the computation. What is divided among devices is told by `kind`, `split` and `ways`.

    Args:
        name: unique in its model.
        kind: attention, feed_forward, embedding and output can be divided among tensor-parallel devices, experts and
            tables among expert-parallel ones; the others stay whole.
        tensors: parameters of each gradient tensor, in the order in which they are defined [count].
        macs: multiply-accumulates of the forward pass; of a table the elements of the rows that are looked up and added.
        outputs: elements handed to the next layer.
        activations: elements kept for the backward pass, the outputs among them where they are.
        split: which tensors are divided; empty for none.
        ways: parts that it can be divided into: heads, columns, rows of a vocabulary, experts.
        exchanged: elements that an all_to_all carries each way where experts or tables stand on several devices.
    Raises: WorkloadError: a count below 0 or beyond 2**60, or a split tensor that has not that many equal parts.
    """

    name: str
    kind: Kind
    tensors: tuple[int, ...]
    macs: int
    outputs: int
    activations: int
    split: tuple[bool, ...] = ()
    ways: int = 1
    exchanged: int = 0

    def __post_init__(self) -> None:
        for field in ("tensors", "macs", "outputs", "activations", "exchanged"):
            value = getattr(self, field)
            for count in value if isinstance(value, tuple) else (value,):
                if not 0 <= count <= MOST:
                    raise WorkloadError(f"layer {self.name!r}: {field} of {count} is no count from 0 to 2**60")
        if self.split and len(self.split) != len(self.tensors):
            raise WorkloadError(
                f"layer {self.name!r}: split tells of {len(self.split)} tensors, there are {len(self.tensors)}"
            )
        if self.ways < 1 or any(size % self.ways for size, part in zip(self.tensors, self.split, strict=False) if part):
            raise WorkloadError(f"layer {self.name!r}: ways={self.ways} does not divide the tensors that are split")

    @property
    def parameters(self) -> int:
        """Of all its tensors [count]."""
        return sum(self.tensors)


@dataclass(frozen=True, slots=True)
class Model:
    """Layers in the order of the forward pass.

    Args:
        name: such as vgg19.
        source: where its shape comes from.
        sample: what a sample is.
        layers: at least one, with names that differ.
        bytes_per_parameter: 4 where its papers train in single precision, 2 where in half [bytes].
    Raises: WorkloadError: no layers, or two of one name.
    """

    name: str
    source: str
    sample: str
    layers: tuple[Layer, ...]
    bytes_per_parameter: int = 4

    def __post_init__(self) -> None:
        names = [layer.name for layer in self.layers]
        if not names:
            raise WorkloadError(f"{self.name}: a model has at least one layer")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise WorkloadError(f"{self.name}: two layers are called {twice!r}; give each its own name")

    @property
    def parameters(self) -> int:
        """Of all layers [count]."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def num_tensors(self) -> int:
        """Gradient tensors [count]."""
        return sum(len(layer.tensors) for layer in self.layers)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the forward pass of a sample [count]."""
        return sum(layer.macs for layer in self.layers)

    @property
    def gradient_bytes(self) -> int:
        """Of one copy of all gradients [bytes]."""
        return self.parameters * self.bytes_per_parameter
