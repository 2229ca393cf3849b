"""Clos networks of switches: modules, whether they block, how many stages light passes, and what a switch is built of.

::

    r ingress modules n x m      m middle modules r x r      r egress modules m x n
    n inputs each ──────────────► one link to each ─────────► n outputs each               n r ports in all

On a plane of one wavelength, a free input can always be joined to a free output without moving others if m >= 2n - 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from opticcl.errors import ParameterError

__all__ = ["StageModules", "ThreeStage", "clos_modules", "clos_stages"]


@dataclass(frozen=True, slots=True)
class ThreeStage:
    """A three-stage Clos network.

    Args:
        ports_per_edge: n inputs of an ingress module, and outputs of an egress module [count].
        edges: r ingress modules, and as many egress modules [count].
        middles: m modules in between [count].
    Raises: ParameterError: fewer than one of anything.
    Source: Clos 1953; ODDL section 3.B.

    >>> switch = ThreeStage(8, 8, 16)
    >>> switch.ports, switch.modules, switch.strict_sense_non_blocking
    (64, 32, True)
    """

    ports_per_edge: int
    edges: int
    middles: int

    def __post_init__(self) -> None:
        if min(self.ports_per_edge, self.edges, self.middles) < 1:
            raise ParameterError(f"clos: n={self.ports_per_edge}, r={self.edges}, m={self.middles}; all are 1 or more")

    @property
    def ports(self) -> int:
        """Inputs, and outputs."""
        return self.ports_per_edge * self.edges

    @property
    def modules(self) -> int:
        """Modules of all three stages."""
        return 2 * self.edges + self.middles

    @property
    def strict_sense_non_blocking(self) -> bool:
        """Whether a free pair can always be joined, whatever stands: m >= 2n - 1."""
        return self.middles >= 2 * self.ports_per_edge - 1


def clos_stages(ports: int, module_ports: int) -> int:
    """Modules that light passes in the smallest folded-out Clos of that many ports: 1, 3, 5, ...

    >>> [clos_stages(ports, 8) for ports in (8, 9, 64, 65)]
    [1, 3, 3, 5]

    Args:
        ports: of the whole switch [count].
        module_ports: ports of the smaller side of a module [count].
    Raises: ParameterError: modules of fewer than two ports, or no ports.
    """
    if ports < 1 or module_ports < 2:
        raise ParameterError(f"clos: {ports} ports of modules with {module_ports}; at least 1 and 2")
    stages, reached = 1, module_ports
    while reached < ports:
        stages, reached = stages + 2, reached * module_ports
    return stages


class StageModules(NamedTuple):
    """The modules of one stage.

    Args: modules, inputs, outputs: modules, and ports of each [count].
    """

    modules: int
    inputs: int
    outputs: int


def clos_modules(ports: int, module_ports: int) -> tuple[StageModules, ...]:
    """What a switch of that many ports is built of, stage by stage; light passes one module of each.

    Modules at both edges have `module_ports` ports outside and twice as many inside, so that no pair ever waits for others to
    be moved; middles of more than `module_ports` ports are built the same way.

    Args: as `clos_stages`.
    Raises: as `clos_stages`.
    Source: ODDL section 3.B: 64 ports of 8 x 16, 8 x 8 and 16 x 8.

    >>> [tuple(stage) for stage in clos_modules(64, 8)], [tuple(stage) for stage in clos_modules(5, 8)]
    ([(8, 8, 16), (16, 8, 8), (8, 16, 8)], [(1, 5, 5)])
    """
    if clos_stages(ports, module_ports) == 1:
        return (StageModules(1, ports, ports),)
    switch = ThreeStage(module_ports, -(-ports // module_ports), 2 * module_ports)
    middle = clos_modules(switch.edges, module_ports)
    return (
        StageModules(switch.edges, module_ports, switch.middles),
        *(stage._replace(modules=stage.modules * switch.middles) for stage in middle),
        StageModules(switch.edges, switch.middles, module_ports),
    )
