"""opticcl compare"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from opticcl.cli._memory import keep_freed_memory
from opticcl.cli._output import PAGE, PICTURE, RECORD, TABLE
from opticcl.cli._request import PlanRequest, option, out_option, shared_option
from opticcl.errors import ParameterError
from opticcl.report.kit.result import ComposedResult, Result, Verbatim

if TYPE_CHECKING:
    from opticcl.ir import Fabric
    from opticcl.plans.division import Division
    from opticcl.plans.sweep import Sweeps


@dataclass(frozen=True, kw_only=True)
class CompareRequest(PlanRequest):
    """What `opticcl compare` is asked: values of its options."""

    FORMATS = (*PlanRequest.FORMATS, "nccl")

    OPTIONS = """fabrics nodes equal as_built collective algorithm optics ignore_light sizes swept workload clock dialect
        kernel_sizes engine assumptions assume at_once sensitivity root out jobs columns notes format json"""

    algorithm: str = shared_option(
        PlanRequest,
        "algorithm",
        default="auto",
        help="An algorithm for every fabric; auto: the fastest of each fabric; main: the fastest and that of the "
        "fabric's paper; all: every algorithm that a fabric supports.",
    )
    sizes: tuple[str, ...] = shared_option(
        PlanRequest,
        "size",
        default=(),
        help="Size of the whole message, such as 100MB. Repeat for several messages in sequence.",
    )
    swept: str | None = option(
        "--sizes",
        metavar="<first>:<last>:<factor>",
        default=None,
        help="Time and bandwidth at each of many sizes instead, such as 1KB:1GB:4; the factor is 2 if it is left out.",
    )
    format: str = shared_option(
        PlanRequest,
        "format",
        default="table",
        help="table; csv: its rows, in units of the SI; md: Markdown; json: as --json; with --sizes also nccl: the columns of "
        "nccl-tests.",
    )
    at_once: int = option(
        "--at-once",
        default=1,
        help="Number of equal groups of adjacent nodes that do the collective at the same time.",
    )
    sensitivity: bool = option(
        "--sensitivity", default=False, help="Halve and double every assumption; list the swaps of rank."
    )
    out: tuple[Path, ...] = out_option(PAGE, PICTURE, TABLE, RECORD)


def run(request: CompareRequest) -> Result:
    """Compare fabrics, fastest first, every plan verified. Exit code 1 if a plan is wrong or not judged."""
    from opticcl.collective import Request, collective_name
    from opticcl.plans.compare import compare_plans
    from opticcl.plans.sentences import answer_record, assumption_lines, headline, ranking_caveats
    from opticcl.report.beside import sensitivity_table
    from opticcl.report.comparison import comparison_blocks
    from opticcl.report.comparison_page import write_page
    from opticcl.report.comparison_pictures import breakdown_figure, breakdown_label
    from opticcl.units import message_size

    if request.swept is not None:
        return _at_sizes(request, request.swept)
    if request.format == "nccl":
        raise ParameterError("compare: --format nccl has a row for each of many sizes; give --sizes 1KB:1GB:4 too")
    assumed = request.assumed()
    division = _division(request)
    name = division.chosen.collective if division else collective_name(request.collective)
    sizes = list(division.sizes) if division else [message_size(one, "--size") for one in request.sizes or ["100MB"]]
    at_scale = division.chosen.group_size or request.nodes if division else request.nodes
    if at_scale is None and not request.fabrics:
        raise ParameterError("compare: the number of nodes is missing; give --nodes N, or fabrics with their shapes")
    ground, contenders, excluded = request.contenders(at_scale)
    fabrics = [_at_once(one.fabric, request.at_once) for one in contenders]
    built = None if ground is None else [_at_once(one.built, request.at_once) for one in contenders]
    processes = request.num_processes(fabrics)
    notes: tuple[str, ...] = ()
    if request.at_once > 1:
        sizes_of = sorted({one.member.num_nodes for one in fabrics})
        each = " or ".join(f"{size:,}" for size in sizes_of)
        notes = (
            f"{request.at_once:,} groups of {each} nodes do it at the same time; one plan has the circuits of all",
        )
    if division:
        first = [division.first_line(n) for n in sorted({one.num_nodes for one in fabrics})]
        notes = (*first, *division.notes(), *division.workload.notes, *notes)
    keep_freed_memory()
    compared = compare_plans(
        fabrics,
        Request(name, request.root),
        sizes,
        algorithm=request.algorithm,
        assumptions=assumed,
        engine=request.engine,
        explain=True,
        vary=request.sensitivity,
        rule=request.rule(fabrics),
        equal=ground,
        built=built,
        jobs=processes,
        progress=request.progress,
    )
    compared = replace(compared, excluded=tuple(excluded), notes=notes, division=division)
    title = f"{compared.collective} on {at_scale} nodes" if at_scale else compared.collective
    swaps = [sensitivity_table(compared)] if request.sensitivity else []
    tables = comparison_blocks(compared, [one.strip() for one in request.columns.split(",") if one.strip()])
    return ComposedResult(
        partial(answer_record, compared),
        lambda: [*tables, *swaps],
        compared.ok,
        compared.rows,
        lambda: breakdown_figure(compared),
        breakdown_label(compared),
        lambda path, progress: write_page(path, compared, title, progress),
        headline(compared),
        [*ranking_caveats(compared), *compared.notes, *assumption_lines(compared), *map(str, compared.left_out)],
    )


def _at_sizes(request: CompareRequest, swept: str) -> Result:
    """Time and bandwidth of each fabric at many sizes.

    Args:
        request: of the call.
        swept: value of `--sizes`.
    """
    from opticcl.collective import as_request
    from opticcl.plans.search import Searches
    from opticcl.plans.sweep import sweep_fabrics
    from opticcl.report.sweep import sweep_answer, sweep_blocks

    if flag := request.first_given("sizes", "workload", "at_once", "sensitivity", "columns"):
        raise ParameterError(f"compare: --sizes is a sequence of messages of its own; leave {flag} out")
    if request.algorithm in ("main", "all"):
        raise ParameterError(
            f"compare: --algorithm {request.algorithm} compares algorithms at one size; leave it or --sizes out"
        )
    if request.nodes is None and not request.fabrics:
        raise ParameterError("compare: the number of nodes is missing; give --nodes N, or fabrics with their shapes")
    sizes = _sizes(swept)
    wanted = as_request(request.collective, request.root)
    ground, contenders, excluded = request.contenders(request.nodes)
    fabrics = [one.fabric for one in contenders]
    processes = request.num_processes(fabrics)
    searches = Searches(
        request.algorithm,
        request.assumed(),
        engine=request.engine,
        rule=request.rule(fabrics),
        progress=request.progress,
    )
    sweeps = sweep_fabrics([(one.text, one.fabric) for one in contenders], wanted, sizes, searches, excluded, processes)
    if request.form == "nccl":
        return ComposedResult(sweeps.record, lambda: map(Verbatim, _in_nccl_columns(sweeps, request.root)), sweeps.ok)
    answer = sweep_answer(sweeps, ground)
    return ComposedResult(
        lambda: {"headline": answer, **sweeps.record()},
        lambda: sweep_blocks(sweeps),
        sweeps.ok,
        sweeps.rows,
        headline=answer,
    )


def _in_nccl_columns(found: Sweeps, root: int) -> list[str]:
    """A line a size in the columns of nccl-tests, for each fabric: times of plans, not measured; in place is out of place.

    Args:
        found: the times.
        root: rank of a collective that has one.
    """
    from opticcl.execute.measure import Measurement
    from opticcl.report.nccl_table import nccl_lines

    lines = []
    for name, one in zip(found.names, found.sweeps, strict=True):
        ranks, wrong = one.fabric.num_nodes, [int(point.verdict != "right") for point in one.points]
        rows = [
            Measurement.of(one.collective, ranks, point.size_bytes, "uint8", root, point.total_s, wrong=bad)
            for point, bad in zip(one.points, wrong, strict=True)
        ]
        lines += [f"# {one.collective} on {name}, {ranks:,} nodes: times of plans, not measured", *nccl_lines(rows, "")]
    return lines


def _sizes(swept: str) -> list[int]:
    """The sizes of "1KB:1GB:4" [bytes].

    Raises: ParameterError, UnitError: no such text, or a wrong value.
    """
    from opticcl.plans.sizes import sizes_by
    from opticcl.units import message_size, number_of

    parts = swept.split(":")
    try:
        first, last, factor = [*parts, "2"] if len(parts) == 2 else parts
        ratio = number_of(factor)
    except ValueError:
        raise ParameterError(f"--sizes: {swept!r} is not first:last:factor; write --sizes 1KB:1GB:4") from None
    return sizes_by(message_size(first, "--sizes"), message_size(last, "--sizes"), ratio, "--sizes")


def _at_once(fabric: Fabric, count: int) -> Fabric:
    """The fabric with its nodes in some groups.

    Raises: ParameterError: a number of groups that does not divide the nodes, or leaves one node in each.
    """
    import numpy as np

    from opticcl.fabrics import groups

    nodes = fabric.num_nodes
    if count < 1 or nodes % count or (count > 1 and nodes // count < 2):
        near = max(at for at in range(1, max(1, min(count, nodes // 2)) + 1) if nodes % at == 0)
        raise ParameterError(
            f"--at-once: {count} groups of equally many nodes, 2 or more, of {nodes} on {fabric.name}; try {near}"
        )
    return groups(fabric, np.arange(nodes).reshape(count, -1)) if count > 1 else fabric


def _division(request: CompareRequest) -> Division | None:
    """The calls of `--workload` that are compared and those that are left out; None without a workload.

    Of the collective only where it is given, else of the one with the most bytes.

    Raises: ParameterError: options that contradict each other, or no such call; WorkloadError: the trace cannot be read, or
        contradicts the number of ranks.
    """
    from opticcl.collective import collective_name

    if not request.workload:
        request.refuse_read_options("give --workload too")
        return None
    wanted = collective_name(request.collective) if "collective" in request.given else None
    if request.sizes:
        raise ParameterError("compare: both --size and --workload are given; give one of them")
    from opticcl.plans.division import divide
    from opticcl.traces import load_workload

    workload = load_workload(request.workload, num_ranks=request.nodes or 0, **request.read_options())
    return divide(workload, wanted)
