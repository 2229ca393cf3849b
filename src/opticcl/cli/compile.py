"""opticcl compile"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from opticcl.cli._options import (
    DEFAULT_SET,
    AlgorithmOption,
    AssumeOption,
    AssumptionsOption,
    CollectiveOption,
    FabricOption,
    IgnoreLightOption,
    JobOption,
    JsonOption,
    NodeRateOption,
    NodesOption,
    OpticsOption,
    RootOption,
    SizeOption,
    StartOption,
    make_assumptions,
    make_plan,
    parse_nodes,
)
from opticcl.cli._output import (
    PICTURE,
    FileKind,
    Outputs,
    ProgressLine,
    check_folder,
    out_option,
    print_json,
    print_table,
)
from opticcl.cli._parameters import option
from opticcl.errors import ParameterError

if TYPE_CHECKING:
    from opticcl.plans.tables import TableMaker


def run(
    fabric: FabricOption,
    nodes: NodesOption = None,
    node_rate: NodeRateOption = None,
    collective: CollectiveOption = "all_reduce",
    algorithm: AlgorithmOption = "auto",
    optics: OpticsOption = None,
    ignore_light: IgnoreLightOption = False,
    size: SizeOption = "100MB",
    root: RootOption = 0,
    job: JobOption = None,
    assumptions: AssumptionsOption = DEFAULT_SET,
    assume: AssumeOption = [],  # noqa: B006 (the framework copies it)
    start: StartOption = None,
    out: Annotated[
        list[Path],
        out_option(
            "the plan (.parquet, .csv, .json, .xml, ...; see opticcl list formats)",
            "DIR/: device tables",
            "devices over time (.svg, .png)",
        ),
    ] = [],  # noqa: B006
    node: Annotated[
        str | None,
        option(
            "--node",
            help="Print the instructions of these nodes for each step, such as 3,7-9; with --out DIR/, write the tables of "
            "their devices alone.",
        ),
    ] = None,
    device: Annotated[
        list[str],
        option("--device", help="With --out DIR/: write the tables of these devices alone, such as tx_gate."),
    ] = [],  # noqa: B006
    trace: Annotated[
        Path | None,
        option("--trace", metavar="FILE", help="Write the devices over time for Perfetto: .json."),
    ] = None,
    listed: Annotated[
        bool,
        option("--listed", help="List every step in a plan file, for programs that know no phases, or to edit it."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """Compile a collective to circuits; print or write the plan, or the tables of the devices of the machine."""
    from opticcl.formats import plan_suffixes

    folders = [path for path in out if not path.suffix]
    plan_file = FileKind("plan file", plan_suffixes() if out else ())
    named = {"--trace": (trace, FileKind("trace", (".json",)))}
    outputs = Outputs([path for path in out if path.suffix], plan_file, PICTURE, named=named)
    times = bool(outputs.of(PICTURE) or trace)
    if device and not (folders or times):
        raise ParameterError("compile: --device is for tables, pictures and traces of devices; give --out DIR/ too")
    for folder in folders:
        check_folder(folder)
    of_nodes = None if node is None else parse_nodes(node, "--node")
    assumed = make_assumptions(assumptions, assume, start)
    plan = make_plan(fabric, nodes, node_rate, collective, algorithm, size, root, job, assumed, optics, ignore_light)
    with ProgressLine() as progress:
        outputs.lines += [plan.export(path, listed=listed, progress=progress) for path in outputs.of(plan_file)]
        if folders or times:
            from opticcl.plans.tables import TableMaker, wanted_part

            maker = TableMaker(plan, assumed, wanted_part(of_nodes, device))
            for folder in folders:
                settings, data = maker.write(folder, progress)
                outputs.lines.append(f"tables: {folder}, {settings:,} settings, {data:,} rows of data")
            if times:
                _write_times(maker, trace, outputs)
    if of_nodes is not None and not (folders or times):
        from opticcl.formats.device_tables import instructions_of_node
        from opticcl.report.plan import instructions_table

        times_of = None if plan.fabric.is_packet_switched else plan.programme("closed_form", assumptions=assumed)
        rows = [
            ({"node": one} if len(of_nodes) > 1 else {}) | row
            for one in of_nodes
            for row in instructions_of_node(plan.circuits, plan.size_bytes, one, programme=times_of)
        ]
        print_json(rows) if json else print_table(str(plan), instructions_table(rows))
    else:
        from opticcl.plans.summary import summarize
        from opticcl.report.plan import summary_table

        summary = summarize(plan)
        print_json(summary.record()) if json else print_table(str(plan), summary_table(summary))
    if not json:
        outputs.print_lines()


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
