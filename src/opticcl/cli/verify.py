"""opticcl verify"""

from __future__ import annotations

import typer

from opticcl.cli._options import (
    AlgorithmOption,
    ChunksOption,
    CollectiveOption,
    FabricOption,
    JsonOption,
    NodeRateOption,
    NodesOption,
    SeedOption,
    SizeOption,
    make_plan,
)
from opticcl.cli._output import Progress, print_json


def run(
    fabric: FabricOption,
    nodes: NodesOption = None,
    node_rate: NodeRateOption = None,
    collective: CollectiveOption = "all_reduce",
    algorithm: AlgorithmOption = "auto",
    size: SizeOption = "100MB",
    chunks: ChunksOption = None,
    seed: SeedOption = 0,
    json: JsonOption = False,
) -> None:
    """Judge a plan: every contribution exactly once, no two signals collide. Exit code 1 if it is wrong."""
    plan = make_plan(fabric, nodes, node_rate, collective, algorithm, size)
    with Progress() as progress:
        verdict = plan.verify(num_chunks=chunks, seed=seed, progress=progress)
    if json:
        from opticcl.report.summary import verdict_record

        print_json(verdict_record(verdict))
    else:
        print(plan)
        print(verdict)
    raise typer.Exit(0 if verdict.ok else 1)
