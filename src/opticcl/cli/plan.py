"""opticcl plan"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from opticcl.cli._output import PICTURE, RECORD, FileKind
from opticcl.cli._request import FabricRequest, make_assumptions, option, out_option
from opticcl.errors import ParameterError
from opticcl.report.kit.result import ComposedResult, Result

if TYPE_CHECKING:
    from opticcl.assumptions import Assumptions
    from opticcl.ir import Fabric
    from opticcl.plans.planner import Planned

PLAN_FILE = FileKind("plan file", (".parquet", ".csv"))


@dataclass(frozen=True, kw_only=True)
class PlannerRequest(FabricRequest):
    """What `opticcl plan` is asked: values of its options."""

    READ = "start"
    OPTIONS = """fabric nodes equal collective optics ignore_light size root job
        assumptions assume start * notes json"""

    time_limit: str | None = option(
        "--time-limit", metavar="TIME", default=None, help="Return the best plan so far after this time, such as 10s."
    )
    overlap: bool = option(
        "--overlap",
        default=False,
        help="On an ocs: some switches change while others send; timed by the device engine.",
    )
    streamed: bool = option(
        "--streamed",
        default=False,
        help="Cut the message: pieces are forwarded while further ones arrive; by the device engine.",
    )
    imported: Path | None = option(
        "--import",
        metavar="FILE",
        default=None,
        help="A published case for an ocs: a schedule of Harvest (.json), or a matrix of SWOT (.toml).",
    )
    out: tuple[Path, ...] = out_option(PICTURE, PLAN_FILE, RECORD)


def run(request: PlannerRequest) -> Result:
    """Plan which circuits a collective holds and where it changes them; show how far that is from the best."""
    from opticcl.report.planned import plan_answer, plan_figure, plan_label, plan_tables
    from opticcl.units import quantity

    assumed = make_assumptions(request.assumptions, request.assume)
    limit_s = inf if request.time_limit is None else quantity(request.time_limit, "s", "--time-limit")
    where = request.machine()
    _refuse_contradictions(request)
    if request.imported is not None and request.imported.suffix.lower() == ".toml":
        return _solved_matrix(request, request.imported)
    planned = _planned(request, where, assumed, limit_s)
    outputs = request.outputs
    outputs.lines += [planned.plan.export(path, progress=request.progress) for path in outputs.of(PLAN_FILE)]
    draw = partial(plan_figure, planned)
    shown = plan_tables(planned)
    return ComposedResult(
        planned.record,
        lambda: shown,
        draw=draw,
        label=plan_label(planned),
        headline=plan_answer(planned),
        notes=planned.notes,
    )


def _refuse_contradictions(request: PlannerRequest) -> None:
    """Refuse options that belong to other ways of planning.

    Raises: ParameterError: two of them contradict each other.
    """
    part = request.start is not None or request.job is not None
    if request.overlap and (part or request.root):
        raise ParameterError("plan: --overlap plans a whole ocs from its start; leave --start, --job and --root out")
    if request.imported is not None and (request.overlap or part or request.root):
        raise ParameterError(
            "plan: --import reads a case of a whole ocs; leave --overlap, --start, --job and --root out"
        )
    if request.streamed and (request.overlap or request.imported is not None or part):
        raise ParameterError(
            "plan: --streamed plans a whole fabric from its start; leave --overlap, --import, --start, --job out"
        )


def _planned(request: PlannerRequest, where: Fabric, assumed: Assumptions, limit_s: float) -> Planned:
    """The plan, made in the way that the options select.

    Args:
        request: of the call.
        where: the fabric.
        assumed: time assumptions.
        limit_s: time after which the best plan so far is returned [s].
    """
    from opticcl.plans.plan import read
    from opticcl.plans.planner import plan_collective
    from opticcl.plans.published import as_ocs, plan_published
    from opticcl.plans.streams import plan_streamed
    from opticcl.plans.switch_plans import plan_overlapped

    collective, size, root = request.collective, request.size, request.root
    if request.imported is not None:
        return plan_published(
            as_ocs(where), collective, size, request.imported, assumptions=assumed, time_limit_s=limit_s
        )
    if request.overlap:
        return plan_overlapped(where, collective, size, assumptions=assumed, time_limit_s=limit_s)
    if request.streamed:
        return plan_streamed(
            where, collective, size, root=root, assumptions=assumed, time_limit_s=limit_s, progress=request.progress
        )
    return plan_collective(
        where,
        collective,
        size,
        root=root,
        nodes=request.ranks(),
        assumptions=assumed,
        start=None if request.start is None else read(request.start),
        time_limit_s=limit_s,
        rule=request.rule([where]),
        progress=request.progress,
    )


def _solved_matrix(request: PlannerRequest, path: Path) -> Result:
    """Every case of a matrix of SWOT.

    Args:
        request: of the call.
        path: of the matrix.
    """
    from opticcl.plans.published import cases, solved
    from opticcl.report.planned import matrix_table

    if request.out:
        raise ParameterError("plan: -o writes one plan; a matrix has many cases, use --json")
    listed, solutions = cases(path), []
    for done, case in enumerate(listed):
        request.progress("solve", done, len(listed))
        solutions.append(solved(case))
    rows = [
        {
            **case._asdict(),
            "law": asdict(case.law),
            "seconds": one.seconds,
            "bound_s": one.bound_s,
            "proven": one.proven,
        }
        for case, one in zip(listed, solutions, strict=True)
    ]
    return ComposedResult(lambda: rows, lambda: [matrix_table(listed, solutions)])
