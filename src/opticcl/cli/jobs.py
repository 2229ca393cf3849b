"""opticcl jobs"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from opticcl.cli._output import PICTURE, RECORD, TABLE, FileKind
from opticcl.cli._request import PlanRequest, option, out_option, shared_option
from opticcl.errors import ParameterError
from opticcl.report.kit.result import Result

if TYPE_CHECKING:
    from opticcl.assumptions import Assumptions
    from opticcl.operations.arbiter import Arbiter
    from opticcl.operations.jobs_over_time.arrivals import Arrival
    from opticcl.plans.plan import Plan
    from opticcl.report.jobs import JobReport, JobsReport
    from opticcl.report.jobs_over_time import JobsOverTimeReport


@dataclass(frozen=True, kw_only=True)
class JobsRequest(PlanRequest):
    """What `opticcl jobs` is asked: values of its options."""

    READ = "state"
    OPTIONS = """fabric nodes place free state arrivals policy share communication seed collective algorithm optics ignore_light
        size assumptions assume out notes json"""

    fabric: str | None = shared_option(
        PlanRequest,
        "fabric",
        default=None,
        help="The machine, such as oddl:shape=8x8; default: the machine of the state file.",
    )
    place: tuple[str, ...] = option(
        "--place",
        metavar="<nodes>",
        default=(),
        help="Place a job: its number of nodes, or name=nodes. Repeat for several.",
    )
    free: tuple[str, ...] = option(
        "--free",
        metavar="<job>",
        default=(),
        help="End the job of this name before new jobs are placed. Repeat for several.",
    )
    state: Path | None = option("--state", default=None, help="File in which the jobs are kept between calls.")
    arrivals: str | None = option(
        "--arrivals",
        default=None,
        help="Jobs over time: a list (.csv: time_s,name,nodes,duration_s) or poisson:load=0.85,count=300,mean=3600s,"
        "smallest=2,largest=64.",
    )
    policy: tuple[str, ...] = option(
        "--policy",
        default=("first",),
        help="How nodes are chosen: first, best, buddy, any (light goes around other jobs), exact (up to 64 nodes). With "
        "--arrivals, repeat for several.",
    )
    communication: float | None = option(
        "--communication",
        default=None,
        help="Share of a job's duration that its collective takes alone, for --arrivals; default: 0.3.",
    )
    share: Literal["nodes", "all"] = option(
        "--share",
        default="nodes",
        help="nodes: a job uses no more of what all nodes have in common, such as the wavelengths of a ring, than its share of "
        "the nodes; all: all of it, so that others may find none.",
    )
    out: tuple[Path, ...] = out_option(PICTURE, TABLE, RECORD)

    def kinds(self) -> tuple[FileKind, ...]:
        """Records, and of jobs over time pictures and rows."""
        return super().kinds() if self.arrivals is not None else (RECORD,)


def run(request: JobsRequest) -> Result:
    """Place several jobs on one machine and verify them together, now or over time. Exit code 1 if they are wrong."""
    if request.fabric is None and request.state is None:
        raise ParameterError(
            "jobs: which machine? Give a fabric, such as opticcl jobs --fabric oddl:shape=8x8 --place 8 --place 16"
        )
    if request.fabric is None and request.nodes is not None:
        raise ParameterError("jobs: --nodes sizes a fabric; give --fabric too, or leave it out")
    assumed = request.assumed()
    if request.arrivals is None:
        return _place(request, assumed)
    if request.place or request.free or request.state is not None or request.fabric is None:
        raise ParameterError("jobs: --arrivals runs an empty --fabric; leave out --place, --free and --state")
    return _over_time(request, request.arrivals, assumed)


def _place(request: JobsRequest, assumed: Assumptions) -> JobsReport:
    """Place jobs now.

    Args:
        request: of the call.
        assumed: time assumptions.
    """
    from opticcl.operations.arbiter import Arbiter
    from opticcl.registry import canonical

    policy, state = request.policy[0], request.state
    if request.communication is not None or len(request.policy) > 1:
        raise ParameterError("jobs: --communication and several policies belong to --arrivals; leave them out")
    around = canonical(policy) == "any"
    if state is not None and around:
        raise ParameterError(
            "jobs: --policy any needs the circuits of the running jobs, which --state does not keep; leave one out"
        )
    wanted = [_parse_place(text) for text in request.place]
    arbiter = Arbiter(None if request.fabric is None else request.machine(), state, at_once=False)
    for name in request.free:
        arbiter.free(name)
    for name, num_nodes in wanted:
        arbiter.place(num_nodes, name or None, policy)
    report = _report(request, arbiter, assumed, around=around)
    if report.ok and (request.free or wanted):
        arbiter.keep()
    return report


def _over_time(request: JobsRequest, arrivals: str, assumed: Assumptions) -> JobsOverTimeReport:
    """Run the jobs by every policy.

    Args:
        request: of the call.
        arrivals: value of `--arrivals`.
        assumed: time assumptions.
    """
    from opticcl.operations.jobs_over_time.arrivals import job_values, make_arrivals
    from opticcl.operations.jobs_over_time.simulation import JobsSetup, simulate_jobs
    from opticcl.operations.policies import check_policy
    from opticcl.report.jobs_over_time import JobsOverTimeReport
    from opticcl.units import message_size

    machine = request.machine()
    names = [check_policy(name, machine.cell_grid()) for name in dict.fromkeys(request.policy)]
    message_size(request.size)
    jobs, notes = make_arrivals(arrivals, machine.num_nodes, request.seed)
    share = job_values("work")["communication"] if request.communication is None else request.communication

    def setup(policy: str, some: list[Arrival]) -> JobsSetup:
        given = request.collective, request.size, request.algorithm, assumed, share, request.optics
        return JobsSetup(machine, some, policy, *given, request.ignore_light, request.share == "nodes")

    runs = [simulate_jobs(setup(name, jobs), progress=request.progress) for name in names]
    known = {"seed": request.seed, "arrivals": arrivals, "collective": request.collective, "size": request.size}
    return JobsOverTimeReport(runs, {**known, "communication": share, **assumed.record()}, notes)


def _parse_place(text: str) -> tuple[str, int]:
    """Name ("" for none) and nodes of "8" or "bert=8".

    Raises: ParameterError: neither form.
    """
    name, equals, number = (part.strip() for part in text.rpartition("="))
    if not re.fullmatch("[0-9]{1,18}", number) or (equals and not name):
        raise ParameterError(f"--place: {text!r} is not a number of nodes; write --place 8 or --place bert=8")
    return name, int(number)


def _report(request: JobsRequest, arbiter: Arbiter, assumed: Assumptions, *, around: bool) -> JobsReport:
    """Compile and verify the plan of each job, then verify all of them together.

    Args:
        request: of the call.
        arbiter: with the jobs.
        assumed: time assumptions.
        around: whether circuits go around those of the jobs before, where they would share cells with them.
    """
    from opticcl.operations.arbiter import switch_ports
    from opticcl.plans.ranks import beside
    from opticcl.report.jobs import JobReport, JobsReport
    from opticcl.verify.time.isolation import verify_together

    if not arbiter.jobs:
        return JobsReport(arbiter.machine, arbiter.num_free)
    other = beside(assumed)
    reports: list[JobReport] = []
    plans = _plans(request, arbiter, assumed, around=around)
    for job, plan in zip(arbiter.jobs, plans, strict=True):
        ports = len(switch_ports(arbiter.machine, job.nodes))
        ok = plan.verify(progress=request.progress).ok
        took_s = plan.simulate(assumptions=assumed).total_s
        also = (other.name, plan.simulate(assumptions=other.assumed).total_s)
        reports.append(JobReport(job, ports, plan.algorithm, plan.schedule.num_steps, took_s, ok, also))
    request.progress("verify all jobs together")
    together = verify_together([plan.circuits for plan in plans], [job.name for job in arbiter.jobs])
    return JobsReport(arbiter.machine, arbiter.num_free, tuple(reports), together)


def _plans(request: JobsRequest, arbiter: Arbiter, assumed: Assumptions, *, around: bool) -> list[Plan]:
    """Plan of each job; where the fastest of some leave no way for others, rings of one wavelength for all.

    Args:
        request: of the call.
        arbiter: with the jobs.
        assumed: time assumptions.
        around: whether circuits go around those of the jobs before, where they would share cells with them.
    Raises: UnsupportedError: no way is left.
    """
    from opticcl.errors import UnsupportedError
    from opticcl.registry import canonical
    from opticcl.verify.time.isolation import verify_together

    def planned(algorithm: str) -> list[Plan]:
        plans: list[Plan] = []
        for job in arbiter.jobs:
            request.progress(f"compile {job.name}")
            fabric = arbiter.fabric_of(job.name, shares=request.share == "nodes")
            plan = request.compiled(assumed, fabric, algorithm=algorithm)
            if around and plans and not verify_together([*(each.circuits for each in plans), plan.circuits]).ok:
                plan = request.compiled(assumed, fabric, algorithm=algorithm, beside=plans)
            plans.append(plan)
        return plans

    try:
        return planned(request.algorithm)
    except UnsupportedError as error:
        if not around or canonical(request.algorithm) != "auto":
            raise
        try:
            return planned("ring")
        except UnsupportedError:
            raise error from None
