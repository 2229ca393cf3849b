"""Fabrics: one class a system. `opticcl.fabric("ramp:groups=4,racks=4")` makes one; see the function `fabric`.

To add one, write a file here with a frozen dataclass that implements `Fabric`, decorate it with `register_fabric`, and
put its default values with their sources into a TOML file of the same name; nothing else is edited.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from opticcl.errors import FabricError
from opticcl.fabrics.job import Job, job, survivors
from opticcl.ir import Fabric
from opticcl.ir.light import OpticsTable
from opticcl.registry import Registry, as_text, canonical, convert_arguments, parse_call, whole_number
from opticcl.units import quantity

__all__ = [
    "FABRICS",
    "Job",
    "as_fabric",
    "fabric",
    "fabric_at_scale",
    "job",
    "light_table",
    "nearest_sizes",
    "register_fabric",
]

FABRICS: Registry[type[Fabric]] = Registry("fabric", __name__)
SUCH_AS = "ramp:groups=4,racks=4,wavelengths=8"

System = TypeVar("System", bound=type[Fabric])


def register_fabric(name: str, algorithm: str = "") -> Callable[[System], System]:
    """Decorator that registers a class of fabrics.

    Args:
        name: by which users call it.
        algorithm: registered name of the system's own algorithm, "" if it has none.
    """

    def add(system: System) -> System:
        FABRICS.register(name)(system)
        system.registered_name, system.algorithm = name, algorithm
        return system

    return add


def fabric(name: str, **parameters: Any) -> Fabric:
    """The fabric of that name.

    Args:
        name: registered name, or the whole "name:key=value,...".
        parameters: as its class takes them; texts with units are converted.
    Returns: the fabric; where `failed` names nodes, a job on the others.
    Raises: UnknownNameError, ParameterError, FabricError.

    >>> fabric("ramp:groups=3,racks=3,wavelengths=6").num_nodes
    54
    """
    key, written = parse_call(as_text(name, "fabric", SUCH_AS))
    system, given = FABRICS.get(key), {**written, **parameters}
    for old, value in given.items():
        if canonical(old) in system.former:
            raise FabricError(f"{key}: {old}={value} is no parameter any more; write {system.former[canonical(old)]}")
    return survivors(system(**convert_arguments(system, given, key)))


def as_fabric(given: Fabric | str) -> Fabric:
    """A fabric as it is, or the one that a text describes.

    Raises: ParameterError: neither of them; and as `fabric` does.
    """
    return given if isinstance(given, Fabric) else fabric(given)


def fabric_at_scale(name: str, num_nodes: int, node_rate_bits_per_s: str | float | None = None) -> Fabric:
    """The fabric of that name with that many nodes; parameters written behind the name take precedence.

    Args:
        name: "ramp" or "ramp:slot=0s".
        num_nodes: nodes, >= 1 [count].
        node_rate_bits_per_s: rate of each node, "100 Gb/s" or a number [bit/s]; None keeps the paper's.
    Raises: FabricError: it has no such shape; the text gives the nearest that it has. ParameterError.
    """
    key, written = parse_call(as_text(name, "fabric", SUCH_AS))
    num_nodes = whole_number(num_nodes, f"{key}: num_nodes")
    if num_nodes < 1:
        raise FabricError(f"{key}: {num_nodes} nodes; there is at least 1")
    made = fabric(key, **{**FABRICS.get(key).parameters_at_scale(num_nodes), **written})
    if made.num_nodes != num_nodes:
        raise FabricError(f"{name}: has {made.num_nodes} nodes, not {num_nodes}; leave its shape or the number out")
    if node_rate_bits_per_s is None:
        return made
    return made.with_node_rate(quantity(node_rate_bits_per_s, "bit/s", f"{key}: node_rate_bits_per_s"))


def light_table(name: str) -> OpticsTable:
    """Values of the optics of a built-in fabric.

    Raises: UnknownNameError: no such fabric. UnsupportedError: its light does not go from end to end.
    """
    from opticcl.optics.values import light_path_of

    return light_path_of(FABRICS.get(name)()).table


def nearest_sizes(num_nodes: int, fits: Callable[[int], bool], reach: int = 4096) -> str:
    """Text with the nearest sizes of 1 or more below and above for which `fits` holds.

    Args:
        num_nodes: wanted [count].
        fits: whether a size exists.
        reach: sizes tried in each direction [count].

    >>> nearest_sizes(10, lambda n: n & (n - 1) == 0)
    'nearest: 8 or 16'
    """
    steps = range(1, reach + 1)
    below = next((num_nodes - step for step in steps if step < num_nodes and fits(num_nodes - step)), None)
    above = next((num_nodes + step for step in steps if fits(num_nodes + step)), None)
    found = [str(n) for n in (below, above) if n is not None]
    return "nearest: " + " or ".join(found) if found else "no size near it fits"
