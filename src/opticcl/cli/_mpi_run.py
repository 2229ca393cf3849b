"""What `opticcl execute --transport mpi` does in each process."""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from opticcl.errors import OpticclError, ParameterError, VerificationError
from opticcl.interrupts import RANK_VARIABLES
from opticcl.report.kit.result import ComposedResult, Result, Verbatim

if TYPE_CHECKING:
    from opticcl.cli._execute_request import ExecuteRequest
    from opticcl.execute.measure import Measurement
    from opticcl.execute.paced import PacedRun
    from opticcl.execute.ranks import RankSchedule
    from opticcl.plans.plan import Plan

__all__ = ["run_by_mpi"]

LAUNCHED = (*RANK_VARIABLES, "SLURM_PROCID")
"""Where launchers, that of SLURM too, put the rank of a process."""

BEGIN_S = 10.0
"""In addition to `--time-limit`, until MPI has started: processes of a job begin at different times [s]."""

NEXT_S = 2.0
"""After rank 0, until the other ranks say that not all have started [s]."""

PLAN_S = 300.0
"""Until rank 0 has made the plan, unless `--time-limit` is longer [s]."""


def run_by_mpi(request: ExecuteRequest) -> Result | int:
    """Run a plan with one process a rank: rank 0 reads and verifies it and sends every rank its schedule.

    Args: request: of the call, the same on all ranks.
    Returns: the answer on rank 0, elsewhere an exit code.
    """
    from opticcl.execute.mpi import load_mpi

    limits = _StartLimits(request.time_limit)
    try:
        mpi = load_mpi()
    except OpticclError:
        if _rank_of_launcher():
            return 2
        raise
    comm = mpi.COMM_WORLD
    try:
        limits.started(comm)
        measured = _run_ranks(request, mpi, limits)
        return measured if comm.rank == 0 else int(not measured.ok)
    except OpticclError as error:  # the same on all ranks
        if comm.rank:
            return error.exit_code
        raise
    except BaseException as error:
        print(f"opticcl: rank {comm.rank} of {comm.size}: {type(error).__name__}: {error}", file=sys.stderr, flush=True)
        comm.Abort(130 if isinstance(error, KeyboardInterrupt) else 2)
        raise
    finally:
        limits.end()


def _run_ranks(request: ExecuteRequest, mpi: Any, limits: _StartLimits) -> Result:
    """Make the plan on rank 0 and run it on all ranks.

    Args:
        request: of the call.
        mpi: the library.
        limits: of the time until the plan is there.
    """
    from opticcl.execute.mpi import from_rank_0

    comm = mpi.COMM_WORLD
    sizes, kind, limit_s = _numbers(request)
    if request.pace is None and (request.out or request.mode != "barrier"):
        raise ParameterError("execute: --out and --mode are for --pace; give --pace 1000, or leave them out")
    made: list[Plan] = []  # on rank 0

    def plan() -> tuple[dict[str, Any], list[RankSchedule]]:
        made.append(_right_plan(request))
        return _cut(made[0], comm.size)

    summary, schedule = from_rank_0(comm, plan)
    limits.end()
    of_collective = {"root": summary["root"], "shift": summary["shift"]}
    if request.pace is None:
        from opticcl.execute.measure import MeasuredRun
        from opticcl.execute.mpi import MpiTransport

        transport = MpiTransport(comm.Dup(), limit_s)
        transport.label = schedule.collective
        runner = MeasuredRun(comm, schedule, transport.run, **of_collective)
        measurements = [runner.measure(size, kind, request.repeat, request.seed, request.compare) for size in sizes]
        transport.close()
        return _measured(measurements, summary["plan"], _library(mpi), request.compare)
    from opticcl.execute.paced import run_paced

    def simulated(size_bytes: int) -> dict[str, float]:
        return replace(made[0], size_bytes=size_bytes).simulate().totals()

    circuits, pace = made[0].circuits if made else None, (request.pace, request.mode, limit_s, request.seed)
    paced = [run_paced(comm, schedule, circuits, simulated, size, kind, *pace, **of_collective) for size in sizes]
    return _paced(paced, summary["plan"])


def _right_plan(request: ExecuteRequest) -> Plan:
    """The plan of the file, or a verified one that the options describe.

    Raises: OpticclError: there is none, or it is wrong.
    """
    from opticcl.plans.rank_plans import rejection

    request.refuse_beside_file()
    plan = None
    try:
        plan = request.plan()
        if request.file is None:
            plan.verify().raise_if_bad()
    except VerificationError as error:
        raise rejection(error, str(request.file or plan)) from None
    return plan


class _StartLimits:
    """Limits of time until the plan is there: `--time-limit` for a step begins with the first one.

    Args: time_limit: value of `--time-limit`.
    """

    def __init__(self, time_limit: str) -> None:
        from opticcl.execute.start_guard import StartGuard
        from opticcl.units import quantity

        self._guard: StartGuard | None = None
        with suppress(OpticclError):  # refused once MPI is there, by one rank
            self._limit_s = quantity(time_limit, "s", "--time-limit")
            rank = _rank_of_launcher()
            if self._limit_s > 0 and any(name in os.environ for name in LAUNCHED):
                self._guard = StartGuard(f"rank {rank}")
                patience_s = BEGIN_S + (NEXT_S if rank else 0.0)  # one line is enough
                self._guard.allow(self._limit_s + patience_s, "execute: not all ranks have started MPI")

    def started(self, comm: Any) -> None:
        """All ranks are there, and rank 0 makes the plan."""
        comm.Barrier()
        if self._guard is not None and comm.rank:
            self._guard.allow(max(self._limit_s, PLAN_S), "execute: rank 0 has sent no plan")
        else:
            self.end()

    def end(self) -> None:
        """There is no limit any more."""
        if self._guard is not None:
            self._guard.end()
            self._guard = None


def _library(mpi: Any) -> str:
    """Name and version of the MPI library."""
    return " ".join(str(mpi.Get_library_version()).splitlines()[0].replace("Version:", "").split())[:80]


def _rank_of_launcher() -> int:
    """This process's rank as the launcher has set it; 0 if it has not."""
    given = (os.environ.get(name, "") for name in LAUNCHED)
    return next((int(text) for text in given if re.fullmatch("[0-9]{1,9}", text)), 0)


def _numbers(request: ExecuteRequest) -> tuple[list[int], Any, float]:
    """Sizes [bytes], type and time limit [s].

    Raises: ParameterError: one of them is invalid.
    """
    from opticcl.execute.reference import numeric_type
    from opticcl.units import message_size, quantity

    if request.repeat < 1:
        raise ParameterError(f"--repeat: {request.repeat} is below 1; try 5")
    if request.seed < 0:
        raise ParameterError(f"--seed: {request.seed} is negative; try 0")
    limit_s = quantity(request.time_limit, "s", "--time-limit")
    if limit_s <= 0:
        raise ParameterError(f"--time-limit: {request.time_limit} is not positive; try 300s")
    return [message_size(size, "--size") for size in request.sizes], numeric_type(request.dtype or "float32"), limit_s


def _cut(plan: Plan, size: int) -> tuple[dict[str, Any], list[RankSchedule]]:
    """A summary of a plan, and the schedule of each rank.

    Raises: ParameterError: the number of processes differs from that of the ranks.
    """
    from opticcl.execute.ranks import rank_schedules

    wanted = plan.schedule.collective
    if wanted.num_ranks != size:
        raise ParameterError(
            f"execute: the plan has {wanted.num_ranks} ranks, mpiexec started {size}; try mpiexec -n {wanted.num_ranks}"
        )
    summary = {"root": wanted.root, "shift": wanted.shift, "plan": str(plan), "algorithm": plan.algorithm}
    return summary, rank_schedules(plan.schedule)


def _measured(found: list[Measurement], plan: str, library: str, compare: bool) -> Result:
    """Measurements, a line a size, or in the columns of nccl-tests beside those of the library.

    Args:
        found: one a size.
        plan: in words.
        library: its name.
        compare: whether it was timed too.
    """
    from opticcl.report.nccl_table import measured_lines, nccl_lines

    ok = not any(one.wrong for one in found)
    record = {"ok": ok, "plan": plan, "library": library, "rows": [one.record() for one in found]}
    lines = [f"# {plan}", *nccl_lines(found, library)] if compare else [plan, *measured_lines(found)]
    return ComposedResult(lambda: record, lambda: map(Verbatim, lines), ok)


def _paced(runs: list[PacedRun], plan: str) -> Result:
    """Paced runs.

    Args:
        runs: one a size.
        plan: in words.
    """
    from opticcl.report.paced import gantt, paced_lines

    ok = not any(run.wrong for run in runs)
    return ComposedResult(
        lambda: {"ok": ok, "plan": plan, "runs": [run.record() for run in runs]},
        lambda: map(Verbatim, [plan, *(line for run in runs for line in paced_lines(run))]),
        ok,
        draw=lambda: gantt(runs[-1], plan),
        label=f"Circuits and measured steps: {plan}",
    )
