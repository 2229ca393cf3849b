"""opticcl verify"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from opticcl.cli._options import (
    AlgorithmOption,
    ChunksOption,
    CollectiveOption,
    FabricOrFileOption,
    FileArgument,
    JobOption,
    JsonOption,
    NodeRateOption,
    NodesOption,
    RootOption,
    SeedOption,
    SizeOption,
    make_plan,
    refuse_beside_file,
)
from opticcl.cli._output import Progress, print_json
from opticcl.cli._settings import parse_settings
from opticcl.errors import ParameterError

if TYPE_CHECKING:
    from opticcl.physics.optics import Optics
    from opticcl.plan import Plan


def run(
    context: typer.Context,
    file: FileArgument = None,
    fabric: FabricOrFileOption = None,
    nodes: NodesOption = None,
    node_rate: NodeRateOption = None,
    collective: CollectiveOption = "all_reduce",
    algorithm: AlgorithmOption = "auto",
    size: SizeOption = "100MB",
    root: RootOption = 0,
    job: JobOption = None,
    chunks: ChunksOption = None,
    seed: SeedOption = 0,
    budget: Annotated[
        str | None,
        typer.Option("--budget", help="Also whether enough light arrives, by this preset: literal, typical, ..."),
    ] = None,
    change: Annotated[
        list[str], typer.Option("--set", help="With --budget another value: launch=10dBm. Repeat for several.")
    ] = [],  # noqa: B006 (the framework copies it)
    json: JsonOption = False,
) -> None:
    """Judge a plan: every contribution exactly once, no two signals collide. Exit code 1 if it is wrong."""
    refuse_beside_file("verify", context, file, fabric)
    if file is not None:
        from opticcl.plan import read

        plan = read(file)
    else:
        plan = make_plan(str(fabric), nodes, node_rate, collective, algorithm, size, root, job)
    values = _values(plan, budget, change)
    with Progress() as progress:
        verdict = plan.verify(num_chunks=chunks, seed=seed, budget=values, progress=progress)
    if json:
        from opticcl.report.summary import verdict_record

        print_json(verdict_record(verdict))
    else:
        print(plan)
        print(verdict)
    raise typer.Exit(0 if verdict.ok else 1)


def _values(plan: Plan, preset: str | None, change: list[str]) -> Optics | None:
    """Values of the light budget that the options ask for."""
    if preset is None:
        if change:
            raise ParameterError("verify: --set is for the light budget; give --budget literal too")
        return None
    from opticcl.physics.light import light_path_of
    from opticcl.physics.optics import optics

    return optics(light_path_of(plan.fabric).sheet, preset, parse_settings(change))
