"""opticcl simulate"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opticcl.cli._graphs import graph_on_fabric, is_graph_file
from opticcl.cli._output import PICTURE, RECORD, FileKind
from opticcl.cli._request import PlanRequest, option, out_option
from opticcl.errors import ParameterError
from opticcl.report.kit.result import ComposedResult, Result

if TYPE_CHECKING:
    from opticcl.report.simulation import Simulation

LINKS = FileKind("links", (".csv", ".parquet", ".json"))
TRACE = FileKind("trace", (".json",))
PROGRAMME = FileKind("programme", (".parquet", ".json", ".csv"), ".csv")


@dataclass(frozen=True, kw_only=True)
class SimulateRequest(PlanRequest):
    """Values of the options of `opticcl simulate`."""

    OPTIONS = """The plan: file fabric nodes equal collective algorithm optics ignore_light size root job
        Time: engine assumptions assume start
        Output: links trace programme out json"""

    links: Path | None = option(
        "--links",
        metavar="FILE",
        default=None,
        help="Write the load of each link or port: .csv, .parquet, .json.",
        writes=LINKS,
    )
    trace: Path | None = option(
        "--trace",
        metavar="FILE",
        default=None,
        help="flow, packet: write the timeline of the transfers for Perfetto: .json.",
        writes=TRACE,
    )
    programme: Path | None = option(
        "--programme",
        metavar="FILE",
        default=None,
        help="Write the times of circuits, data, control, devices, for `verify --time`: .parquet, .json, .csv (a folder).",
        writes=PROGRAMME,
    )
    out: tuple[Path, ...] = out_option(PICTURE, RECORD)


def run(request: SimulateRequest) -> Result:
    """Compute the time of a plan, step by step, and its bottleneck."""
    from opticcl.plans.ranks import beside
    from opticcl.report.comparison import timeline_table
    from opticcl.report.load_pictures import load_picture
    from opticcl.report.simulation import Simulation
    from opticcl.simulate import engine_options, simulate

    engine = request.engine
    chosen, options = engine_options(engine, {})  # refuses wrong options before a plan is compiled
    assumed = request.assumed()
    of_graph = is_graph_file(request.file)
    if not of_graph:
        request.refuse_beside_file()
    if request.trace is not None and chosen.records == "nothing":
        raise ParameterError(f"--trace: engine {chosen.name} simulates no transfers; give --engine flow or packet")
    plan = graph_on_fabric(request) if of_graph else request.plan(assumed)
    asynchronous = getattr(options, "mode", "barrier") == "asynchronous"
    record = (
        asynchronous or chosen.records == "queues" or any((request.links, request.trace, request.outputs.of(PICTURE)))
    )
    progress = request.progress
    result = simulate(plan.circuits, plan.size_bytes, assumed, engine=engine, progress=progress, record=record)
    other = beside(assumed)
    also = simulate(plan.circuits, plan.size_bytes, other.assumed, engine=engine, progress=progress)
    simulated = Simulation(plan, chosen.name, result, (other.name, also.timeline.total_s))
    if request.programme is not None:
        from opticcl.formats.programme_file import write_programme_file
        from opticcl.simulate import programme as times_of

        times = times_of(plan.circuits, plan.size_bytes, assumed, engine=engine, progress=progress)
        rows = write_programme_file(request.programme, plan.circuits, times)
        request.outputs.report(PROGRAMME, request.programme, f"{rows:,} rows")
    _write_outputs(simulated, request)
    draw, label = load_picture(simulated) if request.outputs.of(PICTURE) else (None, "")
    shown = [timeline_table(result.timeline), *simulated.lines()]
    return ComposedResult(simulated.record, lambda: shown, draw=draw, label=label, headline=simulated.answer())


def _write_outputs(found: Simulation, request: SimulateRequest) -> None:
    """Write the loads and the timeline, if the options name files.

    Args:
        found: the simulated plan.
        request: of the call.
    """
    if request.links is not None:
        from opticcl.report.traffic import write_links

        request.progress("write the links")
        rows = write_links(request.links, found.plan.fabric, found.loads, found.result.timeline.total_s)
        request.outputs.report(LINKS, request.links, f"{rows:,} rows")
    if request.trace is not None:
        from opticcl.report.transfer_trace import write_transfer_trace

        request.progress("write the trace")
        about = write_transfer_trace(request.trace, found.plan, found.result)
        request.outputs.report(TRACE, request.trace, about)
