"""opticcl synthesize"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import click

from opticcl.cli._options import (
    CollectiveOption,
    FabricOption,
    JobOption,
    JsonOption,
    NodesOption,
    RootOption,
    SeedOption,
    SizeOption,
    is_given,
    make_fabric,
    parse_nodes,
)
from opticcl.cli._output import PLAN, Outputs, ProgressLine, out_option, print_json
from opticcl.cli._parameters import option
from opticcl.errors import ParameterError


class Method(StrEnum):
    """Methods that may generate the schedule."""

    auto = "auto"
    constructed = "constructed"
    solver = "solver"


def run(
    context: click.Context,
    fabric: FabricOption,
    nodes: NodesOption = None,
    collective: CollectiveOption = "all_reduce",
    file: Annotated[
        Path | None,
        option("--file", help="A custom collective (.toml, .json), see docs/synthesis.md."),
    ] = None,
    chunks: Annotated[
        int, option("--chunks", help="Chunks of each rank's block, or of the message if ranks have no blocks.")
    ] = 1,
    root: RootOption = 0,
    job: JobOption = None,
    time_limit: Annotated[
        str, option("--time-limit", help="Time after which the best schedule so far is returned.")
    ] = "30s",
    seed: SeedOption = 0,
    method: Annotated[
        Method,
        option(
            "--method",
            help="auto: with a solver if one is installed; constructed: without one; solver: refused without one.",
        ),
    ] = Method.auto,
    routes: Annotated[int, option("--routes", help="Paths available to each pair of nodes, 1 to 8.")] = 2,
    size: SizeOption = "100MB",
    out: Annotated[list[Path], out_option(PLAN)] = [],  # noqa: B006 (the framework copies it)
    json: JsonOption = False,
) -> None:
    """Search the schedule with the fewest rounds on a wafer.

    Ctrl-C ends the search; the best schedule so far is returned.
    """
    from opticcl.plans.plan import Plan
    from opticcl.synthesis import read_collective, synthesize
    from opticcl.units import message_size

    for name in ("collective", "chunks", "root") if file is not None else ():
        if is_given(context, name):
            raise ParameterError(f"--file: {file} defines the collective; leave --{name} out")
    outputs = Outputs(out, PLAN, read=file)
    size_bytes = message_size(size, "--size")
    with ProgressLine() as progress:
        found = synthesize(
            make_fabric(fabric, nodes, None),
            collective if file is None else read_collective(file),
            chunks=chunks,
            root=root,
            nodes=None if job is None else parse_nodes(job),
            time_limit=time_limit,
            seed=seed,
            method=method.value,
            routes=routes,
            progress=progress,
        )
        plan = Plan(found.circuits, size_bytes)
        outputs.write(PLAN, lambda path: f"{plan.save(path, progress=progress):,} circuits")
    if json:
        print_json(found.record())
        return
    print(found)
    if found.trials:
        trials = ", ".join(f"{t.rounds} {t.how}: {t.answer}" for t in found.trials[-6:])
        print(f"  trials       {'... ' * (len(found.trials) > 6)}{trials}")
    note = f"; {found.note}" if found.note else ""
    print(f"  took         {found.seconds:.2f} s{note}")
    outputs.print_lines()
