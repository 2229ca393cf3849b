"""opticcl sweep"""

from __future__ import annotations

from typing import Annotated

import typer

from opticcl.cli._options import (
    AlgorithmOption,
    AssumeOption,
    CollectiveOption,
    FabricsOption,
    JsonOption,
    LeftOut,
    NodeRateOption,
    NodesOption,
    PresetOption,
    RootOption,
    make_assumptions,
    make_fabrics,
)
from opticcl.cli._output import Progress, print_json, print_table
from opticcl.errors import ParameterError, UnsupportedError


def run(
    fabric: FabricsOption = [],  # noqa: B006 (the framework copies it)
    nodes: NodesOption = None,
    node_rate: NodeRateOption = None,
    collective: CollectiveOption = "all_reduce",
    algorithm: AlgorithmOption = "auto",
    smallest: Annotated[str, typer.Option("--from", help="Smallest message of every rank.")] = "1KB",
    largest: Annotated[str, typer.Option("--to", help="No message is larger.")] = "1GB",
    factor: Annotated[float, typer.Option("--factor", help="From each size to the next.")] = 4.0,
    preset: PresetOption = "default",
    assume: AssumeOption = [],  # noqa: B006
    root: RootOption = 0,
    json: JsonOption = False,
) -> None:
    """A row a message size: time and bandwidth, each by its fastest algorithm. Exit code 1 if a plan is wrong."""
    from opticcl.collective import Request, collective_name
    from opticcl.evaluate.planner import Planner
    from opticcl.evaluate.sweep import Sweep, sizes_by, sweep
    from opticcl.units import message_size

    if nodes is None and not fabric:
        raise ParameterError("sweep: how many nodes? give --nodes N, or fabrics with their shapes")
    sizes = sizes_by(message_size(smallest, "--from"), message_size(largest, "--to"), factor)
    wanted = Request(collective_name(collective), root)
    made, left_out = make_fabrics(fabric, nodes, node_rate)
    found: list[tuple[str, Sweep]] = []
    with Progress() as progress:
        planner = Planner(algorithm, make_assumptions(preset, assume), progress=progress)
        for name, where in made:
            try:
                found.append((name, sweep(where, wanted, sizes, planner=planner)))
            except UnsupportedError as error:
                left_out.append(LeftOut(name, str(error)))
    if not found:
        raise UnsupportedError(left_out[0].reason)
    if json:
        rows = [row for _, one in found for row in one.rows()]
        print_json({"rows": rows, "left_out": [one._asdict() for one in left_out]})
    else:
        from opticcl.report.sweep import sweep_table

        print_table(sweep_table([one for _, one in found], [name for name, _ in found]), *map(str, left_out))
    raise typer.Exit(0 if all(point.verified for _, one in found for point in one.points) else 1)
