"""A model for training: layers in order, each with its gradient tensors, operations and activations.

Counts are of one sample (an image, a sequence, a click); partitioning chooses batches and devices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

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
KINDS: tuple[Kind, ...] = get_args(Kind)
MOST = 2**60  # of any count


@dataclass(frozen=True, slots=True)
class Layer:
    """A step of the computation. `kind`, `split` and `ways` determine how it is divided among devices.

    Args:
        name: unique in its model.
        kind: attention, feed_forward, embedding and output can be divided among tensor-parallel devices, experts and
            tables among expert-parallel ones; the others stay whole.
        tensors: parameters of each gradient tensor, in order of definition [count].
        macs: multiply-accumulates of the forward pass; of a table the elements of the rows that are looked up and added.
        outputs: elements passed to the next layer.
        activations: elements kept for the backward pass, including the outputs if they are kept.
        split: which tensors are divided; empty for none.
        ways: maximum number of equal parts: heads, columns, rows of a vocabulary, experts.
        exchanged: elements of an all_to_all in each direction if experts or tables are on several devices.
        gathered: elements of keys and values, which context-parallel devices gather from each other; 0 if the layer
            computes each token alone.
        gathered_whole: whether tensor-parallel devices all gather the same ones instead of a part.
    Raises: WorkloadError: a count below 0 or beyond 2**60, or a split tensor that does not divide into `ways` parts.
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
    gathered: int = 0
    gathered_whole: bool = False

    def __post_init__(self) -> None:
        for field in ("tensors", "macs", "outputs", "activations", "exchanged", "gathered"):
            value = getattr(self, field)
            for count in value if isinstance(value, tuple) else (value,):
                if not 0 <= count <= MOST:
                    raise WorkloadError(f"layer {self.name!r}: {field}={count} is not a count from 0 to 2**60")
        if self.split and len(self.split) != len(self.tensors):
            raise WorkloadError(
                f"layer {self.name!r}: split has {len(self.split)} entries for {len(self.tensors)} tensors"
            )
        if self.ways < 1 or any(size % self.ways for size, part in zip(self.tensors, self.split, strict=False) if part):
            raise WorkloadError(f"layer {self.name!r}: ways={self.ways} does not divide the split tensors")

    @property
    def parameters(self) -> int:
        """Of all its tensors [count]."""
        return sum(self.tensors)


@dataclass(frozen=True, slots=True)
class Model:
    """Layers in the order of the forward pass.

    Args:
        name: such as vgg19.
        source: publication of its shape.
        sample: description of a sample.
        layers: at least one, with distinct names.
        bytes_per_parameter: 4 if its papers train in single precision, 2 if in half precision [bytes].
    Raises: WorkloadError: no layers, or two with the same name.
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
            raise WorkloadError(f"{self.name}: two layers are named {twice!r}; names must be distinct")

    @property
    def parameters(self) -> int:
        """Of all layers [count]."""
        return sum(layer.parameters for layer in self.layers)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the forward pass of a sample [count]."""
        return sum(layer.macs for layer in self.layers)

    @property
    def gradient_bytes(self) -> int:
        """One copy of all gradients [bytes]."""
        return self.parameters * self.bytes_per_parameter
