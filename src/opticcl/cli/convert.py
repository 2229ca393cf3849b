"""opticcl convert"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import click

from opticcl.cli._graphs import graph_on_fabric, is_graph_file
from opticcl.cli._options import FabricOrFileOption, JobOption, NodeRateOption, NodesOption, SizeOption, refuse_options
from opticcl.cli._output import FileKind, Outputs, ProgressLine, out_option
from opticcl.cli._parameters import argument
from opticcl.errors import ParameterError


def run(
    context: click.Context,
    file: Annotated[Path, argument(help="A plan file, MSCCL XML or TE-CCL JSON.")],
    out: Annotated[list[Path], out_option("the same in another format; see opticcl list formats")] = [],  # noqa: B006
    fabric: FabricOrFileOption = None,
    nodes: NodesOption = None,
    node_rate: NodeRateOption = None,
    size: SizeOption = "100MB",
    job: JobOption = None,
) -> None:
    """Write a plan in another format. A schedule without a fabric, such as MSCCL XML, needs --fabric."""
    from opticcl.formats import plan_suffixes

    if not out:
        raise ParameterError("convert: no file to write is given; write --out plan.parquet")
    plans = FileKind("plan", plan_suffixes())
    outputs = Outputs(out, plans, read=file)
    if is_graph_file(file):
        plan = graph_on_fabric("convert", context, file, fabric, nodes, node_rate, size, job)
    else:
        from opticcl.plans.plan import load

        refuse_options("convert", context, file, ("fabric", "nodes", "node_rate", "size", "job"))
        plan = load(file)
    with ProgressLine() as progress:
        outputs.lines += [plan.export(path, progress=progress) for path in outputs.of(plans)]
    print(plan)
    outputs.print_lines()
