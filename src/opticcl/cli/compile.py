"""opticcl compile"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opticcl.cli._output import PICTURE, FileKind, Outputs, ProgressLine, check_folder, print_json, print_table
from opticcl.cli._request import FabricRequest, option, out_option, parse_nodes
from opticcl.errors import ParameterError

if TYPE_CHECKING:
    from opticcl.assumptions import Assumptions
    from opticcl.plans.plan import Plan
    from opticcl.plans.tables import TableMaker


@dataclass(frozen=True, kw_only=True)
class CompileRequest(FabricRequest):
    """What `opticcl compile` is asked: values of its options."""

    OPTIONS = """fabric nodes node_rate collective algorithm optics ignore_light size root job
        assumptions assume start * json"""

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
        "--trace", metavar="FILE", default=None, help="Write the devices over time for Perfetto: .json."
    )
    listed: bool = option(
        "--listed",
        default=False,
        help="List every step in a plan file, for programs that know no phases, or to edit it.",
    )


def run(request: CompileRequest) -> int:
    """Compile a collective to circuits; print or write the plan, or the tables of the devices of the machine."""
    from opticcl.formats import plan_suffixes

    folders = [path for path in request.out if not path.suffix]
    plan_file = FileKind("plan file", plan_suffixes() if request.out else ())
    named = {"--trace": (request.trace, FileKind("trace", (".json",)))}
    outputs = Outputs([path for path in request.out if path.suffix], plan_file, PICTURE, named=named)
    times = bool(outputs.of(PICTURE) or request.trace)
    if request.device and not (folders or times):
        raise ParameterError("compile: --device is for tables, pictures and traces of devices; give --out DIR/ too")
    for folder in folders:
        check_folder(folder)
    of_nodes = None if request.node is None else parse_nodes(request.node, "--node")
    assumed = request.assumed()
    plan = request.compiled(assumed)
    with ProgressLine() as progress:
        outputs.lines += [plan.export(path, listed=request.listed, progress=progress) for path in outputs.of(plan_file)]
        if folders or times:
            from opticcl.plans.tables import TableMaker, wanted_part

            maker = TableMaker(plan, assumed, wanted_part(of_nodes, request.device))
            for folder in folders:
                settings, data = maker.write(folder, progress)
                outputs.lines.append(f"tables: {folder}, {settings:,} settings, {data:,} rows of data")
            if times:
                _write_times(maker, request.trace, outputs)
    if of_nodes is not None and not (folders or times):
        _print_instructions(plan, of_nodes, assumed, request.json)
    else:
        from opticcl.plans.summary import summarize
        from opticcl.report.plan import summary_table

        summary = summarize(plan)
        print_json(summary.record()) if request.json else print_table(str(plan), summary_table(summary))
    if not request.json:
        outputs.print_lines()
    return 0


def _print_instructions(plan: Plan, nodes: list[int], assumed: Assumptions, json: bool) -> None:
    """Print what some nodes do in each step.

    Args:
        plan: that they execute.
        nodes: their numbers.
        assumed: time assumptions.
        json: whether to print JSON.
    """
    from opticcl.formats.device_tables import instructions_of_node
    from opticcl.report.plan import instructions_table

    times_of = None if plan.fabric.is_packet_switched else plan.programme("closed_form", assumptions=assumed)
    rows = [
        ({"node": one} if len(nodes) > 1 else {}) | row
        for one in nodes
        for row in instructions_of_node(plan.circuits, plan.size_bytes, one, programme=times_of)
    ]
    print_json(rows) if json else print_table(str(plan), instructions_table(rows))


def _write_times(maker: TableMaker, trace: Path | None, outputs: Outputs) -> None:
    """Write pictures and the trace of devices over time.

    Args:
        maker: of the rows that are shown.
        trace: value of `--trace`.
        outputs: values of `--out`.
    """
    from opticcl.report.device_times import device_times, device_times_figure, write_device_trace

    times = device_times(maker)
    outputs.write_pictures(lambda: device_times_figure(times), times.label)
    if trace is not None:
        outputs.lines.append(f"trace: {trace}, {write_device_trace(trace, times)}")
