"""What light can do: one file a fabric.

To add one, write a file here with a keyword-only function that returns a `Fabric`, and register it; nothing else is
edited. `at_scale` is the second function of the file: parameters for a given number of nodes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from opticcl.errors import FabricError
from opticcl.ir import Fabric
from opticcl.registry import Registry, convert_arguments, parse_call

__all__ = ["FABRICS", "FabricMaker", "fabric", "fabric_at_scale", "nearest_sizes", "register_fabric"]


class FabricMaker(NamedTuple):
    """The two functions of a fabric's file.

    Args:
        make: keyword-only parameters -> Fabric.
        at_scale: (num_nodes, node_rate_bits_per_s or None) -> parameters for `make`; raises FabricError if it has no such
            shape. None keeps the paper's rate.
    """

    make: Callable[..., Fabric]
    at_scale: Callable[[int, float | None], dict[str, Any]]


FABRICS: Registry[FabricMaker] = Registry("fabric", __name__)

Maker = TypeVar("Maker", bound=Callable[..., Fabric])


def register_fabric(name: str, at_scale: Callable[[int, float | None], dict[str, Any]]) -> Callable[[Maker], Maker]:
    """Decorator that registers a fabric function."""

    def add(make: Maker) -> Maker:
        FABRICS.register(name)(FabricMaker(make, at_scale))
        return make

    return add


def fabric(name: str, **parameters: Any) -> Fabric:
    """The fabric of that name.

    Args:
        name: registered name, or the whole "name:key=value,...".
        parameters: as its function takes them; texts with units are converted.
    Raises: UnknownNameError, ParameterError, FabricError.

    >>> fabric("ramp:groups=3,racks=3,wavelengths=6").num_nodes
    54
    """
    key, written = parse_call(name)
    make = FABRICS.get(key).make
    arguments = convert_arguments(make, {**written, **parameters}, key)
    return dataclasses.replace(make(**arguments), name=key, parameters=MappingProxyType(arguments))


def fabric_at_scale(name: str, num_nodes: int, node_rate_bits_per_s: float | None = None) -> Fabric:
    """The fabric of that name with that many nodes; parameters written behind the name win.

    Args:
        name: "ramp" or "ramp:slot=0s".
        num_nodes: nodes, >= 1 [count].
        node_rate_bits_per_s: what each node may send [bit/s]; None keeps the paper's.
    Raises: FabricError: it has no such shape; the text gives the nearest that it has.
    """
    key, written = parse_call(name)
    if num_nodes < 1:
        raise FabricError(f"{key}: {num_nodes} nodes; there is at least 1")
    made = fabric(key, **{**FABRICS.get(key).at_scale(num_nodes, node_rate_bits_per_s), **written})
    if made.num_nodes != num_nodes:
        raise FabricError(f"{name}: has {made.num_nodes} nodes, not {num_nodes}; leave its shape or the number out")
    return made


def nearest_sizes(num_nodes: int, fits: Callable[[int], bool], reach: int = 4096) -> str:
    """Text with the nearest sizes below and above for which `fits` holds.

    >>> nearest_sizes(10, lambda n: n & (n - 1) == 0)
    'nearest: 8 or 16'
    """

    def first(candidates: Iterable[int]) -> list[int]:
        return [next(c for c in candidates if fits(c))] if any(fits(c) for c in candidates) else []

    found = first(range(num_nodes, max(0, num_nodes - reach), -1)) + first(range(num_nodes + 1, num_nodes + reach))
    return "nearest: " + " or ".join(map(str, found)) if found else "no size near it fits"
