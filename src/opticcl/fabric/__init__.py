"""What light can do: one file a fabric. `opticcl.fabric("ramp:groups=4,racks=4")` makes one; see the function `fabric`.

To add one, write a file here with a keyword-only function that returns a `Fabric`, and register it; nothing else is
edited. `at_scale` is the second function of the file: parameters for a given number of nodes.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterable
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from opticcl.errors import FabricError
from opticcl.ir import Fabric, IntArray
from opticcl.registry import Registry, as_list, as_text, convert_arguments, parse_call, whole_number
from opticcl.units import quantity

__all__ = [
    "FABRICS",
    "FabricMaker",
    "as_fabric",
    "fabric",
    "fabric_at_scale",
    "job",
    "nearest_sizes",
    "register_fabric",
    "with_node_rate",
]


AtScale = Callable[[int], dict[str, Any]]


class FabricMaker(NamedTuple):
    """What a fabric's file offers.

    Args:
        make: keyword-only parameters -> Fabric.
        at_scale: number of nodes -> the parameters of `make` that set its shape; raises FabricError if it has none such.
        rate: the parameter that a node's rate is proportional to.
        own: the algorithm that its paper brings along, "" for none.
    """

    make: Callable[..., Fabric]
    at_scale: AtScale
    rate: str
    own: str = ""


FABRICS: Registry[FabricMaker] = Registry("fabric", __name__)
SUCH_AS = "ramp:groups=4,racks=4,wavelengths=8"

Maker = TypeVar("Maker", bound=Callable[..., Fabric])


def register_fabric(name: str, at_scale: AtScale, rate: str, own: str = "") -> Callable[[Maker], Maker]:
    """Decorator that registers a fabric function; see `FabricMaker`."""

    def add(make: Maker) -> Maker:
        FABRICS.register(name)(FabricMaker(make, at_scale, rate, own))
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
    key, written = parse_call(as_text(name, "fabric", SUCH_AS))
    make = FABRICS.get(key).make
    arguments = convert_arguments(make, {**written, **parameters}, key)
    return dataclasses.replace(make(**arguments), name=key, parameters=MappingProxyType(arguments))


def as_fabric(given: Fabric | str) -> Fabric:
    """A fabric as it is, or the one that a text describes.

    Raises: ParameterError: neither of them; and as `fabric` does.
    """
    return given if isinstance(given, Fabric) else fabric(given)


def fabric_at_scale(name: str, num_nodes: int, node_rate_bits_per_s: str | float | None = None) -> Fabric:
    """The fabric of that name with that many nodes; parameters written behind the name win.

    Args:
        name: "ramp" or "ramp:slot=0s".
        num_nodes: nodes, >= 1 [count].
        node_rate_bits_per_s: what each node may send, "100 Gb/s" or a number [bit/s]; None keeps the paper's.
    Raises: FabricError: it has no such shape; the text gives the nearest that it has. ParameterError.
    """
    key, written = parse_call(as_text(name, "fabric", SUCH_AS))
    num_nodes = whole_number(num_nodes, f"{key}: num_nodes")
    if num_nodes < 1:
        raise FabricError(f"{key}: {num_nodes} nodes; there is at least 1")
    maker = FABRICS.get(key)
    made = fabric(key, **{**maker.at_scale(num_nodes), **written})
    if made.num_nodes != num_nodes:
        raise FabricError(f"{name}: has {made.num_nodes} nodes, not {num_nodes}; leave its shape or the number out")
    if node_rate_bits_per_s is None:
        return made
    return with_node_rate(made, quantity(node_rate_bits_per_s, "bit/s", f"{key}: node_rate_bits_per_s"))


def with_node_rate(made: Fabric, node_rate_bits_per_s: float) -> Fabric:
    """The same fabric with other transmitters: each node may send that much in all [bit/s]."""
    rate = FABRICS.get(made.name).rate
    scaled = made.parameters[rate] * node_rate_bits_per_s / made.node_rate_bits_per_s
    return fabric(made.name, **{**made.parameters, rate: scaled})


def job(machine: Fabric, nodes: Iterable[int] | IntArray) -> Fabric:
    """The part of a machine that a job has: its ranks are these nodes, in this order.

    Args:
        machine: the whole.
        nodes: node numbers, each at most once.
    Raises: ParameterError: anything but a list of whole numbers. FabricError: no nodes, one twice, or one that is not
        there or cannot be had.
    """
    if isinstance(nodes, np.ndarray) and nodes.ndim == 1 and nodes.dtype.kind in "iu":
        ranks = nodes.astype(np.int64)
    else:
        ranks = np.array([whole_number(node, "nodes") for node in as_list(nodes, "nodes", "range(8)")], np.int64)
    limit = machine.num_machine_nodes
    if not len(ranks):
        raise FabricError(f"{machine.name}: a job needs at least one node")
    outside = ranks[(ranks < 0) | (ranks >= limit)]
    if len(outside):
        raise FabricError(f"{machine.name}: there is no node {outside[0]}; try 0 to {limit - 1}")
    if len(np.unique(ranks)) < len(ranks):
        twice = np.flatnonzero(np.bincount(ranks) > 1)[0]
        raise FabricError(f"{machine.name}: node {twice} is given twice; a job has each node once")
    chosen = ranks.astype(np.int32)
    inner, far = _ranks_of(machine, chosen), machine.distance

    def control_s(src: IntArray, dst: IntArray) -> float:
        assert machine.control_s is not None
        return machine.control_s(inner[src], inner[dst])

    return dataclasses.replace(
        machine,
        num_nodes=len(chosen),
        nodes=chosen,
        machine_size=limit,
        linked=machine.linked if machine.links_all else lambda src, dst: machine.linked(inner[src], inner[dst]),
        distance=None if far is None else lambda src, dst: far(inner[src], inner[dst]),
        ring_order=None,
        control_s=control_s if machine.control_s else None,
    )


def _ranks_of(machine: Fabric, nodes: IntArray) -> IntArray:
    """Ranks that nodes have on a machine of which some nodes cannot be had.

    Raises: FabricError: one of them is such a node.
    """
    if machine.nodes is None:
        return nodes
    rank = np.full(machine.num_machine_nodes, -1, np.int32)
    rank[machine.nodes] = np.arange(machine.num_nodes)
    missing = nodes[rank[nodes] < 0]
    if len(missing):
        raise FabricError(
            f"{machine.name}: node {machine.coordinates(int(missing[0]))} is dead or not in the job; leave it out"
        )
    return rank[nodes]


def nearest_sizes(num_nodes: int, fits: Callable[[int], bool], reach: int = 4096) -> str:
    """Text with the nearest sizes below and above for which `fits` holds.

    >>> nearest_sizes(10, lambda n: n & (n - 1) == 0)
    'nearest: 8 or 16'
    """

    below = next((n for n in range(num_nodes, max(0, num_nodes - reach), -1) if fits(n)), None)
    above = next((n for n in range(num_nodes + 1, num_nodes + reach) if fits(n)), None)
    found = [str(n) for n in (below, above) if n is not None]
    return "nearest: " + " or ".join(found) if found else "no size near it fits"


class _CallableRoom(ModuleType):
    """`opticcl.fabric` is this room and, as the public contract has it, the function of the same name."""

    def __call__(self, name: str, **parameters: Any) -> Fabric:
        """The fabric of that name: fabric("ramp", groups=4, racks=4), or the whole as text: "ramp:groups=4,racks=4"."""
        return fabric(name, **parameters)


sys.modules[__name__].__class__ = _CallableRoom
