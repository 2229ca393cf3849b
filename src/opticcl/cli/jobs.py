"""opticcl jobs"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opticcl.cli._options import AlgorithmOption, CollectiveOption, JsonOption, NodesOption, SizeOption, make_fabric
from opticcl.cli._output import Progress, print_json
from opticcl.errors import ParameterError

if TYPE_CHECKING:
    from opticcl.control.arbiter import Arbiter, Job


def run(
    fabric: Annotated[
        str | None,
        typer.Option(
            "--fabric", "-f", help="name:key=value,... such as oddl:shape=8x8; that of the state if left out."
        ),
    ] = None,
    nodes: NodesOption = None,
    place: Annotated[
        list[str], typer.Option("--place", help="Nodes of a job, or name=nodes. Repeat for several.")
    ] = [],  # noqa: B006
    free: Annotated[list[str], typer.Option("--free", help="Name of a job that ends, before any is placed.")] = [],  # noqa: B006
    state: Annotated[
        Path | None, typer.Option("--state", help="File in which the jobs are kept from one call to the next.")
    ] = None,
    collective: CollectiveOption = "all_reduce",
    algorithm: AlgorithmOption = "auto",
    size: SizeOption = "100MB",
    json: JsonOption = False,
) -> None:
    """Place jobs on one machine, compile each, and judge each and all together. Exit code 1 if they are wrong."""
    from opticcl.control.arbiter import Arbiter

    if fabric is None and state is None:
        raise ParameterError(
            "jobs: which machine? Give a fabric, such as opticcl jobs --fabric oddl:shape=8x8 --place 8 --place 16"
        )
    wanted = [_wanted(text) for text in place]
    machine = None if fabric is None else make_fabric(fabric, nodes, None)
    arbiter = Arbiter(machine, state, at_once=False)
    for name in free:
        arbiter.free(name)
    for name, num_nodes in wanted:
        arbiter.place(num_nodes, name or None)
    answer, lines = _judged(arbiter, collective, algorithm, size)
    if answer["ok"] and (free or wanted):
        arbiter.keep()
    if json:
        print_json(answer)
    else:
        print("\n".join(lines))
    raise typer.Exit(0 if answer["ok"] else 1)


def _wanted(text: str) -> tuple[str, int]:
    """Name ("" for none) and nodes of "8" or "bert=8".

    Raises: ParameterError: neither.
    """
    name, equals, number = (part.strip() for part in text.rpartition("="))
    if not number.isdecimal() or (equals and not name):
        raise ParameterError(f"--place: {text!r} is no number of nodes; write --place 8 or --place bert=8")
    return name, int(number)


def _judged(arbiter: Arbiter, collective: str, algorithm: str, size: str) -> tuple[dict[str, Any], list[str]]:
    """Each job compiled and judged, then all together."""
    from opticcl.control.arbiter import switch_ports
    from opticcl.plan import compile
    from opticcl.report.summary import verdict_record
    from opticcl.units import format_seconds
    from opticcl.verify.isolation import verify_together

    lines = [
        f"{'job':<14}{'nodes':>7}{'held':>7}{'ports set':>11}  {'algorithm':<26}{'steps':>6}{'time':>12}  {'verdict':<10}where"
    ]
    rows, plans, ok = [], [], True
    with Progress() as progress:
        for job in arbiter.jobs:
            progress(f"compile {job.name}")
            plan = compile(arbiter.fabric_of(job.name), collective, size, algorithm=algorithm)
            verdict = plan.verify(progress=progress)
            ok &= verdict.ok
            plans.append(plan.circuits)
            ports, total_s = len(switch_ports(arbiter.machine, job.nodes)), plan.simulate().total_s
            rows.append(
                {
                    "job": job.name,
                    "nodes": job.nodes.tolist(),
                    "held": len(job.held),
                    "switch_ports": ports,
                    "algorithm": plan.algorithm,
                    "num_steps": plan.schedule.num_steps,
                    "total_s": total_s,
                    "ok": verdict.ok,
                }
            )
            told = f"{job.name:<14}{len(job.nodes):>7}{len(job.held):>7}{ports:>11}  {plan.algorithm:<26}"
            told += f"{plan.schedule.num_steps:>6}{format_seconds(total_s):>12}  {'verified' if verdict.ok else 'refused':<10}"
            lines.append(told + _where(job))
        answer: dict[str, Any] = {"free": arbiter.num_free, "jobs": rows}
        together = None
        if plans:
            progress("judge all together")
            together = verify_together(plans, [job.name for job in arbiter.jobs])
            ok &= together.ok
            answer["together"] = verdict_record(together)
    answer["ok"] = ok
    free = f"{arbiter.num_free} of {arbiter.machine.num_nodes} nodes of {arbiter.machine.name} are free"
    if together is None:
        return answer, [f"no jobs; {free}"]
    say = (
        "leave each other alone, whatever round stands beside whatever round"
        if together.ok
        else "are in each other's way:"
    )
    lines += ["", f"together: {len(plans)} job(s), {together.circuits:,} circuits, {say}"]
    lines += [f"  {violation}" for violation in together.violations]
    return answer, [*lines, free]


def _where(job: Job) -> str:
    """The nodes in runs: 0-3,16-19."""
    runs: list[list[int]] = []
    for node in sorted(job.nodes.tolist()):
        if runs and runs[-1][1] == node - 1:
            runs[-1][1] = node
        else:
            runs.append([node, node])
    text = ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs[:6])
    return text + (f",... ({len(runs)} runs)" if len(runs) > 6 else "")
