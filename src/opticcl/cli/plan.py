"""opticcl plan"""

from __future__ import annotations

from dataclasses import asdict
from math import inf
from pathlib import Path
from typing import Annotated

from opticcl.cli._options import (
    DEFAULT_SET,
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
    make_fabric,
    parse_nodes,
)
from opticcl.cli._output import PICTURE, RECORD, FileKind, Outputs, ProgressLine, out_option, print_json, print_table
from opticcl.cli._parameters import option
from opticcl.errors import ParameterError

PLAN_FILE = FileKind("plan file", (".parquet", ".csv"))


def run(
    fabric: FabricOption,
    nodes: NodesOption = None,
    node_rate: NodeRateOption = None,
    collective: CollectiveOption = "all_reduce",
    optics: OpticsOption = None,
    ignore_light: IgnoreLightOption = False,
    size: SizeOption = "100MB",
    root: RootOption = 0,
    job: JobOption = None,
    assumptions: AssumptionsOption = DEFAULT_SET,
    assume: AssumeOption = [],  # noqa: B006 (the framework copies it)
    start: StartOption = None,
    time_limit: Annotated[
        str | None,
        option("--time-limit", metavar="TIME", help="Return the best plan so far after this time, such as 10s."),
    ] = None,
    overlap: Annotated[
        bool,
        option("--overlap", help="On an ocs: some switches change while others send; timed by the device engine."),
    ] = False,
    streamed: Annotated[
        bool,
        option(
            "--streamed", help="Cut the message: pieces are forwarded while further ones arrive; by the device engine."
        ),
    ] = False,
    imported: Annotated[
        Path | None,
        option(
            "--import",
            metavar="FILE",
            help="A published case for an ocs: a schedule of Harvest (.json), or a matrix of SWOT (.toml).",
        ),
    ] = None,
    out: Annotated[list[Path], out_option(PICTURE, PLAN_FILE, RECORD)] = [],  # noqa: B006
    json: JsonOption = False,
) -> None:
    """Plan a collective: which circuits to hold and where to change them, how far that is from the best, what it rests on."""
    from opticcl.plans.light import light_rule
    from opticcl.plans.plan import read
    from opticcl.plans.planner import plan_collective
    from opticcl.plans.published import as_ocs, plan_published
    from opticcl.plans.streams import plan_streamed
    from opticcl.plans.switch_plans import plan_overlapped
    from opticcl.report.planned import plan_figure, plan_label, plan_tables
    from opticcl.units import quantity

    outputs = Outputs(out, PICTURE, PLAN_FILE, RECORD, read=start)
    assumed = make_assumptions(assumptions, assume)
    limit_s = inf if time_limit is None else quantity(time_limit, "s", "--time-limit")
    where = make_fabric(fabric, nodes, node_rate)
    if overlap and (start is not None or job is not None or root):
        raise ParameterError("plan: --overlap plans a whole ocs from its start; leave --start, --job and --root out")
    if imported is not None and (overlap or start is not None or job is not None or root):
        raise ParameterError(
            "plan: --import reads a case of a whole ocs; leave --overlap, --start, --job and --root out"
        )
    if streamed and (overlap or imported is not None or start is not None or job is not None):
        raise ParameterError(
            "plan: --streamed plans a whole fabric from its start; leave --overlap, --import, --start, --job out"
        )
    if imported is not None and imported.suffix.lower() == ".toml":
        _solve_matrix(imported, json, bool(out))
        return
    with ProgressLine() as progress:
        found = (
            plan_published(as_ocs(where), collective, size, imported, assumptions=assumed, time_limit_s=limit_s)
            if imported is not None
            else plan_overlapped(where, collective, size, assumptions=assumed, time_limit_s=limit_s)
            if overlap
            else plan_streamed(
                where, collective, size, root=root, assumptions=assumed, time_limit_s=limit_s, progress=progress
            )
            if streamed
            else plan_collective(
                where,
                collective,
                size,
                root=root,
                nodes=None if job is None else parse_nodes(job),
                assumptions=assumed,
                start=None if start is None else read(start),
                time_limit_s=limit_s,
                rule=light_rule([where], optics, ignore_light),
                progress=progress,
            )
        )
        outputs.write_pictures(lambda: plan_figure(found), plan_label(found))
        outputs.lines += [found.plan.export(path, progress=progress) for path in outputs.of(PLAN_FILE)]
        outputs.write_record(found.record)
    if json:
        print_json(found.record())
        return
    print_table(*plan_tables(found))
    outputs.print_lines()


def _solve_matrix(path: Path, json: bool, writes: bool) -> None:
    """Print every case of a matrix of SWOT."""
    from opticcl.plans.published import cases, solved
    from opticcl.report.planned import matrix_table

    if writes:
        raise ParameterError("plan: -o writes one plan; a matrix has many cases, use --json")
    with ProgressLine() as progress:
        listed = cases(path)
        found = []
        for done, case in enumerate(listed):
            progress("solve", done, len(listed))
            found.append(solved(case))
    if json:
        print_json(
            [
                {
                    **case._asdict(),
                    "law": asdict(case.law),
                    "seconds": one.seconds,
                    "bound_s": one.bound_s,
                    "proven": one.proven,
                }
                for case, one in zip(listed, found, strict=True)
            ]
        )
        return
    print_table(matrix_table(listed, found))
