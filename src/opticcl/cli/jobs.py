"""opticcl jobs"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from opticcl.cli._options import (
    DEFAULT_SET,
    AlgorithmOption,
    AssumeOption,
    AssumptionsOption,
    CollectiveOption,
    IgnoreLightOption,
    JsonOption,
    NodesOption,
    OpticsOption,
    SeedOption,
    SizeOption,
    make_assumptions,
    make_fabric,
)
from opticcl.cli._output import PICTURE, RECORD, TABLE, Outputs, ProgressLine, out_option, print_json, print_table
from opticcl.cli._parameters import option
from opticcl.errors import ParameterError

if TYPE_CHECKING:
    from opticcl.assumptions import Assumptions
    from opticcl.ir import Fabric
    from opticcl.operations.arbiter import Arbiter
    from opticcl.operations.jobs_over_time.arrivals import Arrival
    from opticcl.plans.plan import Plan
    from opticcl.report.jobs import JobReport, JobsReport
    from opticcl.report.jobs_over_time import JobsOverTimeReport


def run(
    fabric: Annotated[
        str | None,
        option("--fabric", "-f", help="The machine, such as oddl:shape=8x8; default: the machine of the state file."),
    ] = None,
    nodes: NodesOption = None,
    place: Annotated[
        list[str], option("--place", help="Place a job: its number of nodes, or name=nodes. Repeat for several.")
    ] = [],  # noqa: B006 (the framework copies it)
    free: Annotated[
        list[str],
        option("--free", help="End the job of this name before new jobs are placed. Repeat for several."),
    ] = [],  # noqa: B006
    state: Annotated[Path | None, option("--state", help="File in which the jobs are kept between calls.")] = None,
    arrivals: Annotated[
        str | None,
        option(
            "--arrivals",
            help="Jobs over time: a list (.csv: time_s,name,nodes,duration_s) or poisson:load=0.85,count=300,mean=3600s,"
            "smallest=2,largest=64.",
        ),
    ] = None,
    policy: Annotated[
        list[str],
        option(
            "--policy",
            help="How nodes are chosen: first, best, buddy, any (light goes around other jobs), exact (up to 64 nodes). With "
            "--arrivals, repeat for several.",
        ),
    ] = ["first"],  # noqa: B006
    communication: Annotated[
        float | None,
        option(
            "--communication",
            help="Share of a job's duration that its collective takes alone, for --arrivals; default: 0.3.",
        ),
    ] = None,
    seed: SeedOption = 0,
    collective: CollectiveOption = "all_reduce",
    algorithm: AlgorithmOption = "auto",
    optics: OpticsOption = None,
    ignore_light: IgnoreLightOption = False,
    size: SizeOption = "100MB",
    assumptions: AssumptionsOption = DEFAULT_SET,
    assume: AssumeOption = [],  # noqa: B006
    out: Annotated[list[Path], out_option(PICTURE, TABLE, RECORD)] = [],  # noqa: B006
    json: JsonOption = False,
) -> None:
    """Place jobs on one machine and verify them together, now or over time. Exit code 1 if they are wrong."""
    from opticcl.operations.arbiter import Arbiter
    from opticcl.registry import canonical
    from opticcl.report.jobs import jobs_table

    if fabric is None and state is None:
        raise ParameterError(
            "jobs: which machine? Give a fabric, such as opticcl jobs --fabric oddl:shape=8x8 --place 8 --place 16"
        )
    if fabric is None and nodes is not None:
        raise ParameterError("jobs: --nodes sizes a fabric; give --fabric too, or leave it out")
    assumed = make_assumptions(assumptions, assume)
    if arrivals is not None:
        if place or free or state is not None or fabric is None:
            raise ParameterError("jobs: --arrivals runs an empty --fabric; leave out --place, --free and --state")
        outputs = Outputs(out, PICTURE, TABLE, RECORD)
        work = JobWork(collective, size, algorithm, assumed, communication, optics, ignore_light)
        over_time = _over_time(make_fabric(fabric, nodes, None), arrivals, policy, seed, work)
        _print_over_time(over_time, outputs, json)
        raise click.exceptions.Exit(0 if over_time.ok else 1)
    if communication is not None or len(policy) > 1:
        raise ParameterError("jobs: --communication and several policies belong to --arrivals; leave them out")
    if state is not None and canonical(policy[0]) == "any":
        raise ParameterError(
            "jobs: --policy any needs the circuits of the running jobs, which --state does not keep; leave one out"
        )
    outputs = Outputs(out, RECORD, read=state)
    wanted = [_parse_place(text) for text in place]
    machine = None if fabric is None else make_fabric(fabric, nodes, None)
    arbiter = Arbiter(machine, state, at_once=False)
    for name in free:
        arbiter.free(name)
    for name, num_nodes in wanted:
        arbiter.place(num_nodes, name or None, policy[0])
    around = canonical(policy[0]) == "any"
    report = _report(arbiter, JobWork(collective, size, algorithm, assumed, None, optics, ignore_light), around=around)
    if report.ok and (free or wanted):
        arbiter.keep()
    outputs.write_record(report.record)
    if json:
        print_json(report.record())
    else:
        print_table(*([jobs_table(report)] if report.jobs else []), *report.lines())
        outputs.print_lines()
    raise click.exceptions.Exit(0 if report.ok else 1)


@dataclass(frozen=True, slots=True)
class JobWork:
    """What every job does over time.

    Args:
        collective: of every job.
        size: message of every rank.
        algorithm: of every job.
        assumed: time assumptions.
        communication: share of a job's duration; None: the default.
        optics, ignore_light: values of the options.
    """

    collective: str
    size: str
    algorithm: str
    assumed: Assumptions
    communication: float | None
    optics: str | None
    ignore_light: bool


def _over_time(machine: Fabric, arrivals: str, policies: list[str], seed: int, work: JobWork) -> JobsOverTimeReport:
    """Run the jobs by every policy.

    Args:
        machine: the whole fabric.
        arrivals, policies, seed: values of the options.
        work: of every job.
    """
    from opticcl.operations.jobs_over_time.arrivals import job_values, make_arrivals
    from opticcl.operations.jobs_over_time.simulation import JobsSetup, simulate_jobs
    from opticcl.operations.policies import check_policy
    from opticcl.report.jobs_over_time import JobsOverTimeReport
    from opticcl.units import message_size

    names = [check_policy(name, machine.cell_grid()) for name in dict.fromkeys(policies)]
    message_size(work.size)
    jobs, notes = make_arrivals(arrivals, machine.num_nodes, seed)
    share = job_values("work")["communication"] if work.communication is None else work.communication

    def setup(policy: str, some: list[Arrival]) -> JobsSetup:
        given = work.collective, work.size, work.algorithm, work.assumed, share, work.optics, work.ignore_light
        return JobsSetup(machine, some, policy, *given)

    with ProgressLine() as progress:
        runs = [simulate_jobs(setup(name, jobs), progress=progress) for name in names]
    known = {"seed": seed, "arrivals": arrivals, "collective": work.collective, "size": work.size}
    return JobsOverTimeReport(runs, {**known, "communication": share, **work.assumed.record()}, notes)


def _print_over_time(report: JobsOverTimeReport, outputs: Outputs, json: bool) -> None:
    """Write the files and print the report.

    Args:
        report: of all runs.
        outputs: files of the call.
        json: whether JSON is printed.
    """
    from opticcl.report.jobs_over_time import jobs_figure, jobs_label, jobs_over_time_table

    outputs.write_pictures(lambda: jobs_figure(report), jobs_label(report))
    outputs.write_record(report.record, report.rows)
    if json:
        print_json(report.record())
    else:
        print_table(jobs_over_time_table(report), *report.lines())
        outputs.print_lines()


def _parse_place(text: str) -> tuple[str, int]:
    """Name ("" for none) and nodes of "8" or "bert=8".

    Raises: ParameterError: neither form.
    """
    name, equals, number = (part.strip() for part in text.rpartition("="))
    if not re.fullmatch("[0-9]{1,18}", number) or (equals and not name):
        raise ParameterError(f"--place: {text!r} is not a number of nodes; write --place 8 or --place bert=8")
    return name, int(number)


def _report(arbiter: Arbiter, work: JobWork, *, around: bool) -> JobsReport:
    """Compile and verify the plan of each job, then verify all of them together.

    Args:
        arbiter: with the jobs.
        work: of every job.
        around: whether circuits go around those of the jobs before, where they would share cells with them.
    """
    from opticcl.operations.arbiter import switch_ports
    from opticcl.plans.ranks import beside
    from opticcl.report.jobs import JobReport, JobsReport
    from opticcl.verify.isolation import verify_together

    if not arbiter.jobs:
        return JobsReport(arbiter.machine, arbiter.num_free)
    other = beside(work.assumed)
    reports: list[JobReport] = []
    with ProgressLine() as progress:
        plans = _plans(arbiter, work, progress, around=around)
        for job, plan in zip(arbiter.jobs, plans, strict=True):
            ports = len(switch_ports(arbiter.machine, job.nodes))
            ok = plan.verify(progress=progress).ok
            took_s = plan.simulate(assumptions=work.assumed).total_s
            also = (other.name, plan.simulate(assumptions=other.assumed).total_s)
            reports.append(JobReport(job, ports, plan.algorithm, plan.schedule.num_steps, took_s, ok, also))
        progress("verify all jobs together")
        together = verify_together([plan.circuits for plan in plans], [job.name for job in arbiter.jobs])
    return JobsReport(arbiter.machine, arbiter.num_free, tuple(reports), together)


def _plans(arbiter: Arbiter, work: JobWork, progress: ProgressLine, *, around: bool) -> list[Plan]:
    """Plan of each job; where the fastest of some leave no way for others, rings of one wavelength for all.

    Args:
        arbiter: with the jobs.
        work: of every job.
        progress: called before each job.
        around: whether circuits go around those of the jobs before, where they would share cells with them.
    Raises: UnsupportedError: no way is left.
    """
    from opticcl.errors import UnsupportedError
    from opticcl.plans.plan import compile
    from opticcl.registry import canonical
    from opticcl.verify.isolation import verify_together

    compiled = partial(
        compile, collective=work.collective, size=work.size, assumptions=work.assumed, optics=work.optics,
        ignore_light=work.ignore_light,
    )  # fmt: skip

    def planned(algorithm: str) -> list[Plan]:
        plans: list[Plan] = []
        for job in arbiter.jobs:
            progress(f"compile {job.name}")
            fabric = arbiter.fabric_of(job.name)
            plan = compiled(fabric, algorithm=algorithm)
            if around and plans and not verify_together([*(each.circuits for each in plans), plan.circuits]).ok:
                plan = compiled(fabric, algorithm=algorithm, beside=plans)
            plans.append(plan)
        return plans

    try:
        return planned(work.algorithm)
    except UnsupportedError as error:
        if not around or canonical(work.algorithm) != "auto":
            raise
        try:
            return planned("ring")
        except UnsupportedError:
            raise error from None
