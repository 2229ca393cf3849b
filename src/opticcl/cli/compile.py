"""opticcl compile"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opticcl.cli._options import (
    AlgorithmOption,
    CollectiveOption,
    FabricOption,
    JobOption,
    JsonOption,
    NodeRateOption,
    NodesOption,
    RootOption,
    SizeOption,
    make_plan,
)
from opticcl.cli._output import Progress, check_outputs, print_json, print_table


def run(
    fabric: FabricOption,
    nodes: NodesOption = None,
    node_rate: NodeRateOption = None,
    collective: CollectiveOption = "all_reduce",
    algorithm: AlgorithmOption = "auto",
    size: SizeOption = "100MB",
    root: RootOption = 0,
    job: JobOption = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the whole programme to this .parquet, .csv or .json file.")
    ] = None,
    node: Annotated[int | None, typer.Option("--node", help="Print this node's instructions, step by step.")] = None,
    json: JsonOption = False,
) -> None:
    """Compile a collective to light; tell what came out, write the programme, or print one node's part of it."""
    from opticcl.programme.write import MOST_ROWS

    check_outputs({"--out": (out, MOST_ROWS)})
    plan = make_plan(fabric, nodes, node_rate, collective, algorithm, size, root, job)
    if out is not None:
        with Progress() as progress:
            circuits = plan.save(out, progress=progress)
    if node is not None:
        from opticcl.programme import instructions_of_node
        from opticcl.report.summary import instructions_table

        rows = instructions_of_node(plan.circuits, plan.size_bytes, node)
        print_json(rows) if json else print_table(str(plan), instructions_table(rows))
        return
    from opticcl.report.summary import summary, summary_table

    if json:
        print_json(summary(plan))
        return
    print_table(str(plan), summary_table(plan))
    if out is not None:
        print(f"programme: {out}, {circuits:,} circuits")
