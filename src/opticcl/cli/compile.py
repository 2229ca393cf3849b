"""opticcl compile"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opticcl.cli._options import (
    DEFAULT_SET,
    AlgorithmOption,
    AssumeOption,
    AssumptionsOption,
    CollectiveOption,
    FabricOption,
    JobOption,
    JsonOption,
    NodeRateOption,
    NodesOption,
    RootOption,
    SizeOption,
    StartOption,
    make_assumptions,
    make_plan,
)
from opticcl.cli._output import FileKind, Outputs, ProgressLine, out_option, print_json, print_table


def run(
    fabric: FabricOption,
    nodes: NodesOption = None,
    node_rate: NodeRateOption = None,
    collective: CollectiveOption = "all_reduce",
    algorithm: AlgorithmOption = "auto",
    size: SizeOption = "100MB",
    root: RootOption = 0,
    job: JobOption = None,
    assumptions: AssumptionsOption = DEFAULT_SET,
    assume: AssumeOption = [],  # noqa: B006 (the framework copies it)
    start: StartOption = None,
    out: Annotated[
        list[Path], out_option("the plan (.parquet, .csv, .json, .xml, ...; see opticcl list formats)")
    ] = [],  # noqa: B006
    node: Annotated[
        int | None, typer.Option("--node", help="Print the instructions of this node for each step.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Compile a collective to circuits; print or write the plan."""
    from opticcl.formats import plan_suffixes

    plan_file = FileKind("plan file", plan_suffixes() if out else ())
    outputs = Outputs(out, plan_file)
    plan = make_plan(
        fabric, nodes, node_rate, collective, algorithm, size, root, job, make_assumptions(assumptions, assume, start)
    )
    with ProgressLine() as progress:
        outputs.lines += [plan.export(path, progress=progress) for path in outputs.of(plan_file)]
    if node is not None:
        from opticcl.formats.device_tables import instructions_of_node
        from opticcl.report.plan import instructions_table

        rows = instructions_of_node(plan.circuits, plan.size_bytes, node)
        print_json(rows) if json else print_table(str(plan), instructions_table(rows))
    else:
        from opticcl.plans.summary import summarize
        from opticcl.report.plan import summary_table

        summary = summarize(plan)
        print_json(summary.record()) if json else print_table(str(plan), summary_table(summary))
    if not json:
        outputs.print_lines()
