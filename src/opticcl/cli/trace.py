"""opticcl trace"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from opticcl.cli._output import PAGE, PICTURE, RECORD, FileKind
from opticcl.cli._request import PlanRequest, argument, check_nodes, out_option, shared_option
from opticcl.report.kit.result import Result

CALLS = FileKind("calls", (".parquet",))


@dataclass(frozen=True, kw_only=True)
class TraceRequest(PlanRequest):
    """What `opticcl trace` is asked: values of its options."""

    READ = "traces"
    OPTIONS = "traces nodes clock dialect kernel_sizes * json"

    traces: tuple[str, ...] = argument(
        metavar="FILE",
        help="A trace (.et, .json, .sqlite, .log, .goal, .csv, .fbuf, .txt, .parquet), a list of sizes (.toml), a directory, a "
        ".zip or .tar.gz, or a pattern; several are the traces of several ranks.",
    )
    nodes: int | None = shared_option(
        PlanRequest, "nodes", default=None, help="Number of ranks, where the trace does not record it."
    )
    out: tuple[Path, ...] = out_option(PAGE, PICTURE, CALLS, RECORD)


def run(request: TraceRequest) -> Result:
    """Show what is in a trace: ranks, groups, steps, calls with bytes and times, and exposed communication."""
    from opticcl.report.trace import TraceReport
    from opticcl.traces.call_file import write_calls
    from opticcl.traces.contents import load_contents
    from opticcl.units import counted

    outputs = request.outputs
    check_nodes(request.nodes)
    request.progress("read the trace")
    contents = load_contents(request.traces, num_ranks=request.nodes or 0, **request.read_options())
    num_ranks = contents.workload.num_ranks
    outputs.write(CALLS, lambda path: counted(write_calls(path, contents.traces, num_ranks), "row"))
    return TraceReport(contents)
