"""opticcl synthesize"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opticcl.cli._options import (
    CollectiveOption,
    FabricOption,
    JobOption,
    JsonOption,
    NodesOption,
    RootOption,
    SeedOption,
    SizeOption,
    make_fabric,
    parse_nodes,
)
from opticcl.cli._output import Progress, check_outputs, print_json
from opticcl.errors import ParameterError

if TYPE_CHECKING:
    from opticcl.plan import Plan
    from opticcl.synthesis import Synthesis


class Method(StrEnum):
    """What may make the schedule."""

    auto = "auto"
    constructed = "constructed"
    solver = "solver"


def run(
    context: typer.Context,
    fabric: FabricOption,
    nodes: NodesOption = None,
    collective: CollectiveOption = "all_reduce",
    file: Annotated[
        Path | None, typer.Option("--file", help="Your own collective (.toml, .json) instead: docs/synthesis.md.")
    ] = None,
    chunks: Annotated[
        int, typer.Option("--chunks", help="Parts of each rank's block, or of the message where ranks have no blocks.")
    ] = 1,
    root: RootOption = 0,
    job: JobOption = None,
    time_limit: Annotated[
        str, typer.Option("--time-limit", help="The best schedule found by then is the answer.")
    ] = "30s",
    seed: SeedOption = 0,
    method: Annotated[
        Method, typer.Option("--method", help="auto, constructed (no solver), or solver (refuse to go on without).")
    ] = Method.auto,
    routes: Annotated[int, typer.Option("--routes", help="Paths that each pair may choose from, 1 to 8.")] = 2,
    size: SizeOption = "100MB",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the programme to this .parquet, .csv or .json file.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Find the schedule with the fewest rounds on a wafer, and prove that there is no better one.

    Ctrl-C ends the search; the best schedule so far is the answer.
    """
    from opticcl.plan import Plan
    from opticcl.programme.write import MOST_ROWS
    from opticcl.synthesis import read_collective, synthesize
    from opticcl.units import message_size

    for name in ("collective", "chunks", "root") if file is not None else ():
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise ParameterError(f"--file: {file} says who holds which chunk and who wants it; leave --{name} out")
    check_outputs({"--out": (out, MOST_ROWS)})
    size_bytes = message_size(size, "--size")
    with Progress() as progress:
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
            told=progress,
        )
        plan = Plan(found.circuits, size_bytes)
        circuits = None if out is None else plan.save(out, progress=progress)
    if json:
        print_json(_record(found, plan))
        return
    print(found)
    if found.trials:
        asked = ", ".join(f"{t.rounds} {t.how}: {t.answer}" for t in found.trials[-6:])
        print(f"  asked        {'... ' * (len(found.trials) > 6)}{asked}")
    note = f"; {found.note}" if found.note else ""
    print(f"  took         {found.seconds:.2f} s{note}")
    if out is not None:
        print(f"programme: {out}, {circuits:,} circuits")


def _record(found: Synthesis, plan: Plan) -> dict[str, Any]:
    """What --json prints."""
    from opticcl.registry import write_call

    c = plan.schedule.collective
    parameters = {k: v for k, v in plan.fabric.parameters.items() if v is not None}
    return {
        "num_steps": found.num_steps,
        "lower_bound": found.lower_bound,
        "optimal": found.optimal,
        "seconds": found.seconds,
        "bound": f"{found.bound.name}: {found.bound.why}",
        "made_by": found.how,
        "note": found.note,
        "interrupted": found.interrupted,
        "fabric": write_call(plan.fabric.name, parameters),
        "collective": c.name,
        "num_nodes": c.num_ranks,
        "chunks": c.num_chunks,
        "num_transfers": sum(len(plan.schedule.step(i)) for i in range(found.num_steps)),
        "tried": [trial._asdict() for trial in found.trials],
    }
