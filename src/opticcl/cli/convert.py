"""opticcl convert"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from opticcl.cli._graphs import graph_on_fabric, is_graph_file
from opticcl.cli._output import FileKind
from opticcl.cli._request import PlanRequest, argument, out_option
from opticcl.errors import ParameterError
from opticcl.report.kit.result import ComposedResult, Result, Verbatim


@dataclass(frozen=True, kw_only=True)
class ConvertRequest(PlanRequest):
    """What `opticcl convert` is asked: values of its options."""

    OPTIONS = "* fabric nodes equal size job"

    file: Path = argument(help="A plan file, MSCCL XML or TE-CCL JSON.")
    out: tuple[Path, ...] = out_option("the same in another format; see opticcl list formats")

    def kinds(self) -> tuple[FileKind, ...]:
        """Every format of plans that is known."""
        from opticcl.formats import plan_suffixes

        return (FileKind("plan", plan_suffixes()),)


def run(request: ConvertRequest) -> Result:
    """Write a plan in another format. A schedule without a fabric, such as MSCCL XML, needs --fabric."""
    if not request.out:
        raise ParameterError("convert: no file to write is given; write --out plan.parquet")
    if is_graph_file(request.file):
        plan = graph_on_fabric(request)
    else:
        request.refuse_of_file("fabric", "nodes", "equal", "size", "job")
        plan = request.plan()
    outputs = request.outputs
    outputs.lines += [plan.export(path, progress=request.progress) for path in outputs.of(*request.kinds())]
    return ComposedResult(lambda: None, lambda: [Verbatim(plan)])
