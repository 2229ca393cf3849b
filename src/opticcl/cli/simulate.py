"""opticcl simulate"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from opticcl.cli._generated import OptionSource, flag_of, generated_command, given_options
from opticcl.cli._graphs import graph_on_fabric, is_graph_file
from opticcl.cli._options import (
    DEFAULT_SET,
    AlgorithmOption,
    AssumeOption,
    AssumptionsOption,
    CollectiveOption,
    EngineOption,
    FabricOrFileOption,
    FileArgument,
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
    refuse_beside_file,
)
from opticcl.cli._output import PICTURE, RECORD, FileKind, Outputs, ProgressLine, out_option, print_json, print_table
from opticcl.cli._parameters import option
from opticcl.errors import ParameterError

if TYPE_CHECKING:
    from opticcl.report.simulation import Simulation

LINKS = FileKind("links", (".csv", ".parquet", ".json"))
TRACE = FileKind("trace", (".json",))
PROGRAMME = FileKind("programme", (".parquet", ".json", ".csv"), ".csv")


def _engine_options() -> list[OptionSource]:
    """Options of every registered engine."""
    from opticcl.simulate import ENGINES

    return [OptionSource(engine.options, name) for name in ENGINES.names() for engine in (ENGINES.get(name),)]


Command = generated_command(_engine_options)
"""The options of the engines are those of their option classes."""


def run(
    context: click.Context,
    file: FileArgument = None,
    fabric: FabricOrFileOption = None,
    nodes: NodesOption = None,
    node_rate: NodeRateOption = None,
    collective: CollectiveOption = "all_reduce",
    algorithm: AlgorithmOption = "auto",
    optics: OpticsOption = None,
    ignore_light: IgnoreLightOption = False,
    size: SizeOption = "100MB",
    root: RootOption = 0,
    job: JobOption = None,
    engine: EngineOption = "closed_form",
    assumptions: AssumptionsOption = DEFAULT_SET,
    assume: AssumeOption = [],  # noqa: B006 (the framework copies it)
    start: StartOption = None,
    links: Annotated[
        Path | None,
        option("--links", metavar="FILE", help="Write the load of each link or port: .csv, .parquet, .json."),
    ] = None,
    trace: Annotated[
        Path | None,
        option(
            "--trace", metavar="FILE", help="flow, packet: write the timeline of the transfers for Perfetto: .json."
        ),
    ] = None,
    programme: Annotated[
        Path | None,
        option(
            "--programme",
            metavar="FILE",
            help="Write the times of circuits, data, control, devices, for `verify --time`: .parquet, .json, .csv (a folder).",
        ),
    ] = None,
    out: Annotated[list[Path], out_option(PICTURE, RECORD)] = [],  # noqa: B006
    json: JsonOption = False,
) -> None:
    """Time of a plan, step by step, with its bottleneck."""
    from opticcl.plans.plan import load
    from opticcl.plans.ranks import beside
    from opticcl.report import timeline_table
    from opticcl.report.simulation import Simulation
    from opticcl.simulate import engine_options, simulate

    given = given_options(context)
    chosen, options = engine_options(engine, given, flag_of)  # refuses wrong options before a plan is compiled
    assumed = make_assumptions(assumptions, assume, start)
    of_graph = is_graph_file(file)
    if not of_graph:
        refuse_beside_file("simulate", context, file, fabric)
    outputs = Outputs(
        out,
        PICTURE,
        RECORD,
        named={"--links": (links, LINKS), "--trace": (trace, TRACE), "--programme": (programme, PROGRAMME)},
        read=file,
    )
    if trace is not None and chosen.records == "nothing":
        raise ParameterError(f"--trace: engine {chosen.name} simulates no transfers; give --engine flow or packet")
    made_from = (str(fabric), nodes, node_rate, collective, algorithm, size, root, job)
    if of_graph:
        assert file is not None
        plan = graph_on_fabric("simulate", context, file, fabric, nodes, node_rate, size, job)
    else:
        plan = load(file) if file is not None else make_plan(*made_from, assumed, optics, ignore_light)
    asynchronous = getattr(options, "mode", "barrier") == "asynchronous"
    record = asynchronous or chosen.records == "queues" or any((links, trace, outputs.of(PICTURE)))
    with ProgressLine() as progress:
        result = simulate(
            plan.circuits, plan.size_bytes, assumed, engine=engine, progress=progress, record=record, **given
        )
        other = beside(assumed)
        also = simulate(plan.circuits, plan.size_bytes, other.assumed, engine=engine, progress=progress, **given)
        found = Simulation(plan, chosen.name, result, (other.name, also.timeline.total_s))
        if programme is not None:
            from opticcl.formats.programme_file import write_programme_file
            from opticcl.simulate import programme as times_of

            times = times_of(plan.circuits, plan.size_bytes, assumed, engine=engine, progress=progress, **given)
            rows = write_programme_file(programme, plan.circuits, times)
            outputs.report(PROGRAMME, programme, f"{rows:,} rows")
        _write_outputs(found, links, trace, outputs, progress)
    if json:
        print_json(found.record())
        return
    print_table(str(plan), timeline_table(result.timeline), *found.lines())
    outputs.print_lines()


def _write_outputs(
    found: Simulation, links: Path | None, trace: Path | None, outputs: Outputs, progress: ProgressLine
) -> None:
    """Write the files that the options name.

    Args:
        found: the simulated plan.
        links: value of `--links`.
        trace: value of `--trace`.
        outputs: values of `--out`; collects a line a file.
        progress: called before each file.
    """
    if links is not None:
        from opticcl.report.traffic import write_links

        progress("write the links")
        rows = write_links(links, found.plan.fabric, found.loads, found.result.timeline.total_s)
        outputs.report(LINKS, links, f"{rows:,} rows")
    if trace is not None:
        from opticcl.report.transfer_trace import write_transfer_trace

        progress("write the trace")
        outputs.report(TRACE, trace, write_transfer_trace(trace, found.plan, found.result))
    if outputs.of(PICTURE):
        from opticcl.report.load_pictures import write_load_picture

        progress("draw the load")
        outputs.write(PICTURE, lambda path: write_load_picture(path, found))
    outputs.write_record(found.record)
