"""Fabrics for a comparison: built from text, scaled to a number of nodes, with the node rate that the caller gives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from opticcl.errors import BoundError, FabricError, OpticclError, ParameterError, UnknownNameError
from opticcl.fabrics import as_fabric
from opticcl.fabrics.ocs import Ocs
from opticcl.fabrics.topoopt import TopoOpt
from opticcl.ir import Fabric
from opticcl.registry import failure_of, is_of_library, write_call

__all__ = ["ExcludedFabric", "build_fabrics", "reason_left_out", "search_weight", "specification"]

ASSIGNED, PLANNED = 3, 12
"""What a part of an optical fabric weighs in a search, and where its links are planned too, or passed by long routes."""


@dataclass(frozen=True, slots=True)
class ExcludedFabric:
    """A requested fabric without a result.

    Args:
        fabric: its text or name.
        reason: why it has none.
    """

    fabric: str
    reason: str

    def __str__(self) -> str:
        """One line; a reason that begins with the name of the fabric is not prefixed with it again."""
        words = self.reason.replace(":", " ").split()
        named = words[:1] == [self.fabric.partition(":")[0]]
        return f"left out: {self.reason}" if named else f"left out: {self.fabric}: {self.reason}"

    def record(self) -> dict[str, str]:
        """Plain values."""
        return {"fabric": self.fabric, "reason": self.reason}


def build_fabrics(
    given: Iterable[Fabric | str], nodes: int | None = None, node_rate_bits_per_s: float | None = None
) -> tuple[list[tuple[str, Fabric]], list[ExcludedFabric]]:
    """Fabrics at scale, without those that have no shape with this number of nodes.

    Args:
        given: fabrics, or texts "name:key=value,...".
        nodes: of every fabric; None: as given [count].
        node_rate_bits_per_s: of every node; None: as given [bit/s].
    Returns: text and fabric of each that could be built; the others with their reasons.
    Raises: UnknownNameError, ParameterError; FabricError: none could be built, or a shape that the text itself gives.
    """
    built: list[tuple[str, Fabric]] = []
    excluded: list[ExcludedFabric] = []
    for one in given:
        name = one if isinstance(one, str) else getattr(one, "name", str(one))
        try:
            built.append((name, as_fabric(one, nodes, node_rate_bits_per_s)))
        except FabricError as error:
            if nodes is None:
                raise
            excluded.append(ExcludedFabric(name, str(error)))
    if excluded and not built:
        raise FabricError(excluded[0].reason)
    return built, excluded


def specification(fabric: Fabric) -> str:
    """Text from which a fabric can be built."""
    return write_call(fabric.name, {k: v for k, v in fabric.parameters.items() if v is not None})


def reason_left_out(fabric: Fabric, error: Exception) -> str:
    """Why a fabric has no result beside others, in a line: an error of its plans, or an exception of its plugin.

    Args:
        fabric: that was to be compared.
        error: that was raised.
    Raises: the error itself, where the question is wrong for every fabric, or this library fails.
    """
    system = type(fabric.machine)
    if isinstance(error, (UnknownNameError, ParameterError, MemoryError)):
        raise error
    if isinstance(error, BoundError) and is_of_library(system):
        raise error
    if isinstance(error, OpticclError):
        return "; ".join(line.strip() for line in str(error).splitlines()[:2])
    if is_of_library(system):
        raise error
    return failure_of(system, fabric.name, error)


def search_weight(fabric: Fabric) -> int:
    """About how long a search on a fabric takes, beside others: its lasers, links, switches, ... [count].

    Args: fabric: parts of optical ones count `ASSIGNED` times. Links of optical circuit switches count `PLANNED` times, since
        a search plans which of them to hold for every message; those of TopoOpt too, whose routes are long.
    """
    elements = sum(resource.count for resource in fabric.resources)
    if fabric.light_path is None:
        return elements
    return elements * (PLANNED if isinstance(fabric.machine, Ocs | TopoOpt) else ASSIGNED)
