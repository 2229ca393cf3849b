"""opticcl jobs"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opticcl.cli._options import AlgorithmOption, CollectiveOption, JsonOption, NodesOption, SizeOption, make_fabric
from opticcl.cli._output import Progress, print_json
from opticcl.errors import ParameterError

if TYPE_CHECKING:
    from opticcl.control.arbiter import Arbiter, Job
    from opticcl.ir import Fabric, Verdict
    from opticcl.plan import Plan


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
    if fabric is None and nodes is not None:
        raise ParameterError("jobs: --nodes sizes a fabric; give --fabric too, or leave it out")
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
    from opticcl.plan import compile
    from opticcl.report.summary import verdict_record
    from opticcl.verify.isolation import verify_together

    free = f"{arbiter.num_free} of {arbiter.machine.num_nodes} nodes of {arbiter.machine.name} are free"
    if not arbiter.jobs:
        return {"ok": True, "free": arbiter.num_free, "jobs": []}, [f"no jobs; {free}"]
    rows, plans = [], []
    with Progress() as progress:
        for job in arbiter.jobs:
            progress(f"compile {job.name}")
            plan = compile(arbiter.fabric_of(job.name), collective, size, algorithm=algorithm)
            rows.append(_row(arbiter, job, plan, plan.verify(progress=progress).ok))
            plans.append(plan.circuits)
        progress("judge all together")
        together = verify_together(plans, [job.name for job in arbiter.jobs])
    answer = {
        "ok": together.ok and all(row["ok"] for row in rows),
        "free": arbiter.num_free,
        "jobs": rows,
        "together": verdict_record(together),
    }
    said = f"together: {len(plans)} job(s), {together.circuits:,} circuits, {_say(together, arbiter.machine)}"
    return answer, [*_table(rows), "", said, *(f"  {violation}" for violation in together.violations), free]


def _row(arbiter: Arbiter, job: Job, plan: Plan, ok: bool) -> dict[str, Any]:
    from opticcl.control.arbiter import switch_ports

    return {
        "job": job.name,
        "nodes": job.nodes.tolist(),
        "held": len(job.held),
        "switch_ports": len(switch_ports(arbiter.machine, job.nodes)),
        "algorithm": plan.algorithm,
        "num_steps": plan.schedule.num_steps,
        "total_s": plan.simulate().total_s,
        "ok": ok,
    }


def _table(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    from opticcl.units import format_seconds

    wide = max(14, *(len(row["job"]) + 1 for row in rows))
    head = f"{'nodes':>7}{'held':>7}{'ports set':>11}  {'algorithm':<26}{'steps':>6}{'time':>12}  {'verdict':<10}where"
    yield f"{'job':<{wide}}{head}"
    for row in rows:
        yield (
            f"{row['job']:<{wide}}{len(row['nodes']):>7}{row['held']:>7}{row['switch_ports']:>11}  "
            f"{row['algorithm']:<26}{row['num_steps']:>6}{format_seconds(row['total_s']):>12}  "
            f"{'verified' if row['ok'] else 'refused':<10}{_where(row['nodes'])}"
        )


def _say(together: Verdict, machine: Fabric) -> str:
    """What was found of all jobs together."""
    if not together.ok:
        return "are in each other's way:"
    if machine.is_packet_switched:
        return "have no node in common; packets of all may share links"
    return "leave each other alone, whatever round stands beside whatever round"


def _where(nodes: Sequence[int]) -> str:
    """The nodes in runs.

    >>> _where([0, 1, 2, 3, 16, 18, 17])
    '0-3,16-18'
    """
    runs: list[list[int]] = []
    for node in sorted(nodes):
        if runs and runs[-1][1] == node - 1:
            runs[-1][1] = node
        else:
            runs.append([node, node])
    text = ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs[:6])
    return text + (f",... ({len(runs)} runs)" if len(runs) > 6 else "")
