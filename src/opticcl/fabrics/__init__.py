"""Fabrics: one class a system. `opticcl.fabric("ramp:groups=4,racks=4")` makes one; see the function `fabric`.

To add one, write a file here with a frozen dataclass that implements `Fabric`, decorate it with `register_fabric`, and
put its default values with their sources into a TOML file of the same name; nothing else is edited.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt
from typing import Any, TypeVar

from opticcl.errors import FabricError, ParameterError
from opticcl.fabrics._members import check_class, check_values
from opticcl.fabrics.job import Job, groups, job, survivors
from opticcl.ir import Fabric
from opticcl.ir.light import OpticsTable
from opticcl.registry import Registry, as_text, canonical, convert_arguments, parameter_types, parse_call, whole_number
from opticcl.units import quantity

__all__ = [
    "FABRICS",
    "Job",
    "as_fabric",
    "fabric",
    "fabric_at_scale",
    "groups",
    "job",
    "light_table",
    "near_square",
    "nearest_sizes",
    "register_fabric",
]

FABRICS: Registry[type[Fabric]] = Registry("fabric", __name__)
SUCH_AS = "ramp:groups=4,racks=4,wavelengths=8"

System = TypeVar("System", bound=type[Fabric])


def register_fabric(name: str, algorithm: str = "", *, listed: bool = True) -> Callable[[System], System]:
    """Decorator that registers a class of fabrics.

    Args:
        name: by which users call it.
        algorithm: registered name of the system's own algorithm, "" if it has none.
        listed: whether it can be made of any number of nodes; one that a file describes cannot.
    Raises: FabricError: a class from outside the library lacks a member, or a parameter hides one; ValueError: the name is
        taken.
    """

    def add(system: System) -> System:
        check_class(name, system)
        FABRICS.register(name, listed=listed)(system)
        system.registered_name, system.algorithm = name, algorithm
        return system

    return add


def fabric(
    given: Fabric | str,
    num_nodes: int | None = None,
    node_rate_bits_per_s: str | float | None = None,
    /,
    **parameters: Any,
) -> Fabric:
    """Make the fabric that a text describes; a fabric is returned as it is.

    Args:
        given: a fabric, a registered name, or "name:key=value,...".
        num_nodes: nodes that it must have; a text is scaled to them, and parameters that it gives take precedence; None: as
            given [count].
        node_rate_bits_per_s: rate of each node, "100 Gb/s" or a number [bit/s]; None: as given.
        parameters: of a fabric that a text describes, as its class takes them; texts with units are converted.
    Returns: the fabric; where `failed` names nodes, a job on the others.
    Raises: UnknownNameError, ParameterError; FabricError: no such shape; the text gives the nearest that the fabric has.

    >>> fabric("ramp:groups=3,racks=3,wavelengths=6").num_nodes
    54
    """
    if isinstance(given, Fabric):
        key, made, leave = given.name, given, "nodes out or give its name"
    else:
        key, written = parse_call(as_text(given, "fabric", SUCH_AS), FABRICS.get)
        system, leave = FABRICS.get(key), "its shape or the number out"
        if num_nodes is not None:
            num_nodes = whole_number(num_nodes, f"{key}: num_nodes")
            if num_nodes < 1:
                raise FabricError(f"{key}: {num_nodes} nodes; must be at least 1")
            written = {**system.parameters_at_scale(num_nodes), **written}
        made = _made(key, system, {**written, **parameters})
    if num_nodes is not None and made.num_nodes != num_nodes:
        name = given if isinstance(given, str) else key
        raise FabricError(f"{name}: has {made.num_nodes} nodes, not {num_nodes}; leave {leave}")
    if node_rate_bits_per_s is None:
        return made
    return made.with_node_rate(quantity(node_rate_bits_per_s, "bit/s", f"{key}: node_rate_bits_per_s"))


as_fabric = fabric_at_scale = fabric
"""Other names of `fabric`, for modules in which a fabric has that name."""


def _made(key: str, system: type[Fabric], given: dict[str, Any]) -> Fabric:
    for old, value in given.items():
        if canonical(old) in system.former:
            raise FabricError(f"{key}: {old}={value} is no longer a parameter; write {system.former[canonical(old)]}")
        if canonical(old) == "nodes" and "nodes" not in parameter_types(system):
            raise ParameterError(
                f"{key}: nodes={value}: other parameters give its shape; give the number of nodes with -n {value}, or in "
                f'Python as opticcl.fabric("{key}", {value})'
            )
    made = system(**convert_arguments(system, given, key))
    check_values(key, made)
    return survivors(made)


def light_table(name: str) -> OpticsTable:
    """Values of the optics of a built-in fabric.

    Raises: UnknownNameError: no such fabric. UnsupportedError: its light does not go from end to end.
    """
    from opticcl.optics.values import light_path_of

    return light_path_of(FABRICS.get(name)()).table


def near_square(num_nodes: int) -> tuple[int, int]:
    """Rows and columns of the squarest grid of exactly that many tiles.

    >>> near_square(256), near_square(32), near_square(7)
    ((16, 16), (4, 8), (1, 7))
    """
    rows = next(r for r in range(isqrt(num_nodes), 0, -1) if num_nodes % r == 0)
    return rows, num_nodes // rows


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
    sizes = [str(n) for n in (below, above) if n is not None]
    return "nearest: " + " or ".join(sizes) if sizes else "no size near it fits"
