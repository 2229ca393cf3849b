"""opticcl jobs"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opticcl.cli._options import (
    DEFAULT_SET,
    AlgorithmOption,
    AssumeOption,
    AssumptionsOption,
    CollectiveOption,
    JsonOption,
    NodesOption,
    SizeOption,
    make_assumptions,
    make_fabric,
)
from opticcl.cli._output import RECORD, Outputs, ProgressLine, out_option, print_json, print_table
from opticcl.errors import ParameterError

if TYPE_CHECKING:
    from opticcl.assumptions import Assumptions
    from opticcl.operations.arbiter import Arbiter
    from opticcl.report.jobs import JobsReport


def run(
    fabric: Annotated[
        str | None,
        typer.Option(
            "--fabric", "-f", help="The machine, such as oddl:shape=8x8; default: the machine of the state file."
        ),
    ] = None,
    nodes: NodesOption = None,
    place: Annotated[
        list[str], typer.Option("--place", help="Place a job: its number of nodes, or name=nodes. Repeat for several.")
    ] = [],  # noqa: B006 (the framework copies it)
    free: Annotated[
        list[str],
        typer.Option("--free", help="End the job of this name before new jobs are placed. Repeat for several."),
    ] = [],  # noqa: B006
    state: Annotated[
        Path | None, typer.Option("--state", help="File in which the jobs are kept between calls.")
    ] = None,
    collective: CollectiveOption = "all_reduce",
    algorithm: AlgorithmOption = "auto",
    size: SizeOption = "100MB",
    assumptions: AssumptionsOption = DEFAULT_SET,
    assume: AssumeOption = [],  # noqa: B006
    out: Annotated[list[Path], out_option(RECORD)] = [],  # noqa: B006
    json: JsonOption = False,
) -> None:
    """Place jobs on one machine and verify them together. Exit code 1 if they are wrong."""
    from opticcl.operations.arbiter import Arbiter
    from opticcl.report.jobs import jobs_table

    if fabric is None and state is None:
        raise ParameterError(
            "jobs: which machine? Give a fabric, such as opticcl jobs --fabric oddl:shape=8x8 --place 8 --place 16"
        )
    if fabric is None and nodes is not None:
        raise ParameterError("jobs: --nodes sizes a fabric; give --fabric too, or leave it out")
    outputs = Outputs(out, RECORD, read=state)
    assumed = make_assumptions(assumptions, assume)
    wanted = [_parse_place(text) for text in place]
    machine = None if fabric is None else make_fabric(fabric, nodes, None)
    arbiter = Arbiter(machine, state, at_once=False)
    for name in free:
        arbiter.free(name)
    for name, num_nodes in wanted:
        arbiter.place(num_nodes, name or None)
    report = _report(arbiter, collective, algorithm, size, assumed)
    if report.ok and (free or wanted):
        arbiter.keep()
    outputs.write_record(report.record)
    if json:
        print_json(report.record())
    else:
        print_table(*([jobs_table(report)] if report.jobs else []), *report.lines())
        outputs.print_lines()
    raise typer.Exit(0 if report.ok else 1)


def _parse_place(text: str) -> tuple[str, int]:
    """Name ("" for none) and nodes of "8" or "bert=8".

    Raises: ParameterError: neither form.
    """
    name, equals, number = (part.strip() for part in text.rpartition("="))
    if not number.isdecimal() or (equals and not name):
        raise ParameterError(f"--place: {text!r} is not a number of nodes; write --place 8 or --place bert=8")
    return name, int(number)


def _report(arbiter: Arbiter, collective: str, algorithm: str, size: str, assumed: Assumptions) -> JobsReport:
    """Compile and verify the plan of each job, then verify all of them together.

    Args:
        arbiter: with the jobs.
        collective: that every job does.
        algorithm: of every job.
        size: message of every rank.
        assumed: time assumptions.
    """
    from opticcl.operations.arbiter import switch_ports
    from opticcl.plans.plan import compile
    from opticcl.report.jobs import JobReport, JobsReport
    from opticcl.verify.isolation import verify_together

    if not arbiter.jobs:
        return JobsReport(arbiter.machine, arbiter.num_free)
    reports, plans = [], []
    with ProgressLine() as progress:
        for job in arbiter.jobs:
            progress(f"compile {job.name}")
            plan = compile(arbiter.fabric_of(job.name), collective, size, algorithm=algorithm, assumptions=assumed)
            ports = len(switch_ports(arbiter.machine, job.nodes))
            ok = plan.verify(progress=progress).ok
            took_s = plan.simulate(assumptions=assumed).total_s
            reports.append(JobReport(job, ports, plan.algorithm, plan.schedule.num_steps, took_s, ok))
            plans.append(plan.circuits)
        progress("verify all jobs together")
        together = verify_together(plans, [job.name for job in arbiter.jobs])
    return JobsReport(arbiter.machine, arbiter.num_free, tuple(reports), together)
