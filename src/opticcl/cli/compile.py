"""opticcl compile"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticcl.cli._graphs import graph_on_fabric, is_graph_file
from opticcl.cli._output import PICTURE, FileKind, check_folder
from opticcl.cli._request import PlanRequest, option, out_option, parse_nodes, shared_option
from opticcl.errors import ParameterError
from opticcl.report.kit.result import ComposedResult, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from opticcl.assumptions import Assumptions
    from opticcl.plans.plan import Plan

TRACE = FileKind("trace", (".json",))


@dataclass(frozen=True, kw_only=True)
class CompileRequest(PlanRequest):
    """What `opticcl compile` is asked: values of its options."""

    OPTIONS = """file fabric nodes equal collective algorithm optics ignore_light size root job
        assumptions assume start * json"""

    file: Path | None = shared_option(
        PlanRequest,
        "file",
        default=None,
        help="A plan file, MSCCL XML or TE-CCL JSON, to be written in another form; one without a fabric needs --fabric.",
    )

    out: tuple[Path, ...] = out_option(
        "the plan (.parquet, .csv, .json, .xml, ...; see opticcl list formats)",
        "DIR/: device tables",
        "devices over time (.svg, .png)",
    )
    node: str | None = option(
        "--node",
        default=None,
        help="Print the instructions of these nodes for each step, such as 3,7-9; with --out DIR/, write the tables of "
        "their devices alone.",
    )
    device: tuple[str, ...] = option(
        "--device",
        metavar="<device>",
        default=(),
        help="With --out DIR/: write the tables of these devices alone, such as tx_gate.",
    )
    trace: Path | None = option(
        "--trace", metavar="FILE", default=None, help="Write the devices over time for Perfetto: .json.", writes=TRACE
    )
    listed: bool = option(
        "--listed",
        default=False,
        help="List every step in a plan file, for programs that know no phases, or to edit it.",
    )

    def files(self) -> list[Path]:
        """Values of `--out` with a suffix; the others are folders of tables."""
        return [path for path in self.out if path.suffix]

    def kinds(self) -> tuple[FileKind, ...]:
        """Formats of plans, and pictures."""
        from opticcl.formats import plan_suffixes

        return FileKind("plan file", plan_suffixes() if self.out else ()), PICTURE


def run(request: CompileRequest) -> Result:
    """Compile a collective to circuits; print or write the plan, or tables of the settings of all devices.

    The plan of a file is written in another form: opticcl compile plan.parquet -o plan.xml.
    """
    from opticcl.report.plan import instructions_table

    outputs, progress = request.outputs, request.progress
    folders = [path for path in request.out if not path.suffix]
    drawn = bool(outputs.of(PICTURE) or request.trace)
    if request.device and not (folders or drawn):
        raise ParameterError("compile: --device is for tables, pictures and traces of devices; give --out DIR/ too")
    for folder in folders:
        check_folder(folder)
    of_nodes = None if request.node is None else parse_nodes(request.node, "--node")
    assumed = request.assumed()
    of_graph = is_graph_file(request.file)
    if not of_graph:
        request.refuse_beside_file()
    plan = graph_on_fabric(request) if of_graph else request.plan(assumed)
    for path in outputs.of(request.kinds()[0]):
        outputs.lines.append(plan.export(path, listed=request.listed, progress=progress))
    if not (folders or drawn):
        if of_nodes is None:
            return _steps(plan)
        rows = _instructions(plan, of_nodes, assumed)
        return ComposedResult(lambda: rows, lambda: [str(plan), instructions_table(rows)])
    from opticcl.plans.tables import TableMaker, TablePart
    from opticcl.report.device_times import device_times, device_times_figure, write_device_trace

    maker = TableMaker(plan, assumed, TablePart(of_nodes, request.device or None))
    for folder in folders:
        settings, data = maker.write(folder, progress)
        outputs.lines.append(f"tables: {folder}, {settings:,} settings, {data:,} rows of data")
    if not drawn:
        return _steps(plan)
    times = device_times(maker)
    if request.trace is not None:
        outputs.report(TRACE, request.trace, write_device_trace(request.trace, times))
    return _steps(plan, partial(device_times_figure, times), times.label)


def _steps(plan: Plan, draw: Callable[[], Figure] | None = None, label: str = "") -> Result:
    """The steps of a plan.

    Args:
        plan: that was compiled.
        draw: returns the picture.
        label: of it.
    """
    from opticcl.plans.summary import summarize
    from opticcl.report.plan import summary_table

    summary = summarize(plan)
    shown = [str(plan), summary_table(summary)]
    return ComposedResult(summary.record, lambda: shown, draw=draw, label=label, headline=summary.answer())


def _instructions(plan: Plan, nodes: list[int], assumed: Assumptions) -> list[dict[str, Any]]:
    """What some nodes do in each step.

    Args:
        plan: that they execute.
        nodes: their numbers.
        assumed: time assumptions.
    """
    from opticcl.formats.device_tables import instructions_of_node

    times_of = None if plan.fabric.is_packet_switched else plan.programme("closed_form", assumptions=assumed)
    return [
        ({"node": one} if len(nodes) > 1 else {}) | row
        for one in nodes
        for row in instructions_of_node(plan.circuits, plan.size_bytes, one, programme=times_of)
    ]
