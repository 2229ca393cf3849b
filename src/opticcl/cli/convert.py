"""opticcl convert"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from opticcl.cli._graphs import graph_on_fabric, is_graph_file
from opticcl.cli._output import FileKind, Outputs, ProgressLine
from opticcl.cli._request import PlanRequest, argument, out_option
from opticcl.errors import ParameterError


@dataclass(frozen=True, kw_only=True)
class ConvertRequest(PlanRequest):
    """What `opticcl convert` is asked: values of its options."""

    OPTIONS = "* fabric nodes node_rate size job"

    file: Path = argument(help="A plan file, MSCCL XML or TE-CCL JSON.")
    out: tuple[Path, ...] = out_option("the same in another format; see opticcl list formats")


def run(request: ConvertRequest) -> int:
    """Write a plan in another format. A schedule without a fabric, such as MSCCL XML, needs --fabric."""
    from opticcl.formats import plan_suffixes

    if not request.out:
        raise ParameterError("convert: no file to write is given; write --out plan.parquet")
    plans = FileKind("plan", plan_suffixes())
    outputs = Outputs(request.out, plans, read=request.file)
    if is_graph_file(request.file):
        plan = graph_on_fabric(request)
    else:
        request.refuse_of_file("fabric", "nodes", "node_rate", "size", "job")
        plan = request.plan()
    with ProgressLine() as progress:
        outputs.lines += [plan.export(path, progress=progress) for path in outputs.of(plans)]
    print(plan)
    outputs.print_lines()
    return 0
