"""Options that several verbs share, and what they stand for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from opticcl.errors import FabricError, ParameterError

if TYPE_CHECKING:
    from opticcl.ir import Fabric
    from opticcl.plan import Plan
    from opticcl.simulate import Assumptions

MOST_NODES = 1 << 22
"""Of the largest machine that a verb makes; on a larger one no verb ends while one waits [count]."""

FileArgument = Annotated[
    Path | None,
    typer.Argument(help="A programme (.parquet, .csv, .json), whoever wrote it; else give --fabric."),
]
FabricOption = Annotated[
    str, typer.Option("--fabric", "-f", help="name:key=value,... such as ramp:groups=4,racks=4,wavelengths=8")
]
FabricOrFileOption = Annotated[
    str | None, typer.Option("--fabric", "-f", help="name:key=value,... such as ramp:groups=4,racks=4,wavelengths=8")
]
FabricsOption = Annotated[
    list[str], typer.Option("--fabric", "-f", help="Repeat for several; all registered fabrics if left out.")
]
NodesOption = Annotated[int | None, typer.Option("--nodes", "-n", help="Size the fabric to this many nodes.")]
NodeRateOption = Annotated[
    str | None, typer.Option("--node-rate", help="Give every node this rate, such as 2.4Tb/s; the paper's if left out.")
]
CollectiveOption = Annotated[str, typer.Option("--collective", "-c")]
AlgorithmOption = Annotated[
    str, typer.Option("--algorithm", "-a", help="name:key=value,...; auto takes the fastest that fits.")
]
RootOption = Annotated[
    int, typer.Option("--root", help="Rank that a broadcast, scatter, reduce or gather starts or ends at.")
]
JobOption = Annotated[
    str | None,
    typer.Option("--job", help="Nodes that take part, in the order of their ranks: 0-7,16,18. All if left out."),
]
SizeOption = Annotated[str, typer.Option("--size", "-s", help="Message of every rank, such as 100MB.")]
EngineOption = Annotated[
    str,
    typer.Option("--engine", help="closed_form; flow: packets share links fairly; packet: cells wait in queues."),
]
PresetOption = Annotated[
    str, typer.Option("--preset", help="Whose assumptions: default, ramp, sipac, wrht, oddl, lumorph.")
]
AssumeOption = Annotated[
    list[str],
    typer.Option(
        "--assume", help="key=value over the preset: reconfiguration_charge, initial, compute, ... Repeat for several."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="One JSON value on standard output, and nothing else.")]
ChunksOption = Annotated[
    int | None,
    typer.Option("--chunks", help="Chunks to follow; all of a small plan and 64 of a large one if left out."),
]
SeedOption = Annotated[int, typer.Option("--seed", help="Of every random choice.")]


def make_fabric(specification: str, nodes: int | None, node_rate: str | None) -> Fabric:
    """The fabric that the options describe.

    Raises: UnknownNameError, FabricError; ParameterError: also more or fewer nodes than a machine may have.
    """
    from opticcl.fabric import fabric, fabric_at_scale, with_node_rate
    from opticcl.units import quantity

    rate = None if node_rate is None else quantity(node_rate, "bit/s", "--node-rate")
    if rate is not None and rate <= 0:
        raise ParameterError(f"--node-rate: {node_rate!r} is not positive; try 2.4Tb/s")
    check_nodes(nodes)
    if nodes is None:
        made = fabric(specification)
        if made.num_nodes > MOST_NODES:
            raise ParameterError(f"--fabric: {specification} has {made.num_nodes:,} nodes, more than {MOST_NODES:,}")
        return made if rate is None else with_node_rate(made, rate)
    return fabric_at_scale(specification, nodes, rate)


def check_nodes(nodes: int | None) -> None:
    """Refuse a number of nodes that no machine has, whatever the fabric.

    Raises: ParameterError: none, or more than `MOST_NODES`.
    """
    if nodes is not None and nodes < 1:
        raise ParameterError(f"--nodes: {nodes} nodes; there is at least 1")
    if nodes is not None and nodes > MOST_NODES:
        raise ParameterError(f"--nodes: {nodes:,} nodes are more than {MOST_NODES:,}; try {MOST_NODES} or fewer")


class LeftOut(NamedTuple):
    """A fabric that was asked for and has no row, and why."""

    fabric: str
    reason: str

    def __str__(self) -> str:
        """A line for people; many reasons begin with the fabric, which is not said twice."""
        said = self.reason.replace(":", " ").split()[:1] == [self.fabric.partition(":")[0]]
        return f"left out: {self.reason}" if said else f"left out: {self.fabric}: {self.reason}"


def make_fabrics(
    given: Sequence[str], nodes: int | None, node_rate: str | None
) -> tuple[list[tuple[str, Fabric]], list[LeftOut]]:
    """The fabrics that the options name, or all that are registered, and those that have no machine of that size.

    Returns: text and fabric of each that there is; the others with their reasons.
    Raises: UnknownNameError, ParameterError; FabricError: none of them can be made, or a shape that was written out.
    """
    from opticcl.fabric import FABRICS

    made: list[tuple[str, Fabric]] = []
    left_out: list[LeftOut] = []
    for specification in given or FABRICS.names():
        try:
            made.append((specification, make_fabric(specification, nodes, node_rate)))
        except FabricError as error:
            if nodes is None:
                raise
            left_out.append(LeftOut(specification, str(error)))
    if not made:
        raise FabricError(left_out[0].reason)
    return made, left_out


def make_plan(
    fabric: str,
    nodes: int | None,
    node_rate: str | None,
    collective: str,
    algorithm: str,
    size: str,
    root: int = 0,
    job: str | None = None,
) -> Plan:
    """The plan that the options describe."""
    from opticcl.plan import compile

    taking_part = None if job is None else parse_nodes(job)
    made = make_fabric(fabric, nodes, node_rate)
    return compile(made, collective, size, algorithm=algorithm, root=root, nodes=taking_part)


_OF_A_PLAN = ("nodes", "node_rate", "collective", "algorithm", "size", "root", "job")


def refuse_beside_file(verb: str, context: typer.Context, file: Path | None, fabric: str | None) -> None:
    """A plan comes from a file or from options, never from both.

    Raises: ParameterError: neither is given, or an option of what the file says already.
    """
    if (file is None) == (fabric is None):
        raise ParameterError(f"{verb}: give either a programme file or --fabric")
    for name in _OF_A_PLAN if file is not None else ():
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            option = "--" + name.replace("_", "-")
            raise ParameterError(
                f"{verb}: {option} beside {file}, which has its own; leave {option} out, or give --fabric"
            )


def parse_nodes(text: str) -> list[int]:
    """Node numbers of "0-3,8,12", in that order.

    >>> parse_nodes("0-3,8")
    [0, 1, 2, 3, 8]

    Raises: ParameterError: not numbers and ranges.
    """
    found: list[int] = []
    for part in text.split(","):
        low, dash, high = (piece.strip() for piece in part.partition("-"))
        if not low.isdecimal() or (dash and not high.isdecimal()) or (dash and int(high) < int(low)):
            raise ParameterError(f"--job: {part!r} is no node and no range; write 0-7,16,18")
        if dash and int(high) - int(low) > MOST_NODES:
            raise ParameterError(f"--job: {part!r} is more than {MOST_NODES:,} nodes")
        found += range(int(low), int(high) + 1) if dash else [int(low)]
    return found


def make_assumptions(preset: str, assume: list[str]) -> Assumptions:
    """The assumptions that the options describe.

    Raises: ParameterError: not key=value, or no such key or value.
    """
    from opticcl.registry import parse_call
    from opticcl.simulate import assumptions

    given: dict[str, Any] = {}
    for item in assume:
        if "=" not in item:
            raise ParameterError(f"--assume: {item!r} is not key=value; write --assume compute=none")
        given |= parse_call(f"--assume:{item}")[1]
    return assumptions(preset, **given)
