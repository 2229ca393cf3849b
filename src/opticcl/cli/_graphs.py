"""Files of other programs as the argument of a verb: schedules with dependencies, which have no fabric."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opticcl.cli._request import PlanRequest
from opticcl.errors import ParameterError

if TYPE_CHECKING:
    from opticcl.ir.dependency_graph import DependencyGraph
    from opticcl.plans.plan import Plan

__all__ = ["graph_on_fabric", "is_graph_file", "read_graph"]


def is_graph_file(file: Path | None) -> bool:
    """Whether a file is in a format that holds a dependency graph.

    Raises: PlanFileError: no such file, a directory, or an unknown suffix.
    """
    if file is None:
        return False
    from opticcl.formats import format_of

    return format_of(file).is_graph


def read_graph(file: Path) -> DependencyGraph:
    """The graph in a file.

    Raises: PlanFileError: it is malformed.
    """
    from opticcl.formats import format_of

    read = format_of(file).read
    assert read is not None
    graph: DependencyGraph = read(file)
    return graph


def graph_on_fabric(request: PlanRequest) -> Plan:
    """The plan of the graph in a file on the fabric that the options describe.

    Args: request: of the verb.
    Raises: ParameterError: no fabric, or an option that the file answers; VerificationError: the graph is wrong;
        UnsupportedError: the fabric cannot carry it.
    """
    from opticcl.fabrics import job as part_of
    from opticcl.plans.graph_schedule import plan_of_graph
    from opticcl.units import message_size

    assert request.file is not None
    if request.fabric is None:
        raise ParameterError(
            f"{request.verb}: {request.file} has no fabric; give --fabric, such as --fabric ideal:nodes=8"
        )
    request.refuse_of_file("collective", "algorithm", "root")
    graph = read_graph(request.file)
    machine, ranks = request.machine(), request.ranks()
    return plan_of_graph(graph, machine if ranks is None else part_of(machine, ranks), message_size(request.size))
