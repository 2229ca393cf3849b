"""opticcl control"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opticcl.cli._options import (
    AlgorithmOption,
    CollectiveOption,
    FabricOption,
    JobOption,
    JsonOption,
    NodesOption,
    SeedOption,
    SizeOption,
    make_plan,
)
from opticcl.cli._output import PICTURES, Progress, check_outputs, print_json
from opticcl.errors import ParameterError

if TYPE_CHECKING:
    from opticcl.control.player import Channel, ControlRun
    from opticcl.plan import Plan

MOST_EXPLORED = 4  # nodes
SAME_S = 1e-12


def run(
    fabric: FabricOption,
    nodes: NodesOption = None,
    collective: CollectiveOption = "all_reduce",
    algorithm: AlgorithmOption = "auto",
    size: SizeOption = "100MB",
    job: JobOption = None,
    loss: Annotated[float, typer.Option("--loss", help="Share of messages that is lost, such as 0.2.")] = 0.0,
    duplicate: Annotated[float, typer.Option("--duplicate", help="Share that arrives twice.")] = 0.0,
    jitter: Annotated[
        str,
        typer.Option(
            "--jitter", help="Messages are late by up to that much, such as 20us (processes: a thousand times that)."
        ),
    ] = "0s",
    seed: SeedOption = 0,
    from_rest: Annotated[
        bool, typer.Option("--from-rest", help="Nothing ran before, so the first step has no completion to wait for.")
    ] = False,
    memory: Annotated[
        str | None,
        typer.Option("--memory", help="Of the device that adds up, such as 1.5TB/s; takes no time if left out."),
    ] = None,
    overlap: Annotated[
        float, typer.Option("--overlap", help="Share of adding up that runs beside control, 0 to 1.")
    ] = 1.0,
    exchange: Annotated[
        int | None, typer.Option("--exchange", help="Which exchange the picture shows; the first if left out.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--output", "-o", help="Picture of that exchange, .svg or .png.")] = None,
    explore: Annotated[
        bool, typer.Option("--explore", help="Visit every state that up to 4 nodes and a hostile network can reach.")
    ] = False,
    processes: Annotated[
        bool, typer.Option("--processes", help="Run it with a real process a node, over UDP, on random integers.")
    ] = False,
    timeout: Annotated[str, typer.Option("--timeout", help="After which a process gives up.")] = "10s",
    json: JsonOption = False,
) -> None:
    """Who commands the light, and how long that takes. Exit code 1 if states break the protocol or a process fails."""
    check_outputs({"--output": (out, PICTURES)})
    if exchange is not None and out is None:
        raise ParameterError("control: --exchange is what the picture shows; give --output too")
    plan = make_plan(fabric, nodes, None, collective, algorithm, size, job=job)
    from opticcl.control.player import Channel
    from opticcl.units import quantity

    channel = Channel(loss=loss, duplicate=duplicate, jitter=quantity(jitter, "s", "--jitter"), seed=seed)
    rate = None if memory is None else quantity(memory, "byte/s", "--memory")
    patience_s = quantity(timeout, "s", "--timeout")
    answer, lines = _told(plan)
    good = True
    if plan.fabric.name == "oddl":
        if explore and plan.fabric.num_nodes > MOST_EXPLORED:
            raise ParameterError(
                f"control: {plan.fabric.num_nodes} nodes have too many states to visit; try --nodes {MOST_EXPLORED}"
            )
        found, told = _played(plan, channel, not from_rest, rate, overlap)
        answer |= found
        lines += told
    elif any((out, explore, processes, memory, from_rest, loss, duplicate, channel.jitter)):
        raise ParameterError(f"control: {plan.fabric.name} has no control units to look at; they are those of oddl")
    if explore:
        found, told, good = _explored(plan)
        answer |= found
        lines += told
    if processes:
        found, told, right = _run_processes(plan, channel, patience_s)
        answer |= found
        lines += told
        good &= right
    if out is not None:
        _draw(plan, exchange or 0, channel, out)
        lines.append(f"picture: {out}")
    if json:
        print_json(answer)
    else:
        print("\n".join(lines))
    raise typer.Exit(0 if good else 1)


def _told(plan: Plan) -> tuple[dict[str, Any], list[str]]:
    """What the control plane does, and what of it is in the timeline."""
    from opticcl.control.models import control_plane
    from opticcl.units import format_seconds

    plane = control_plane(plan.fabric)
    charged_s = plan.simulate().totals()["control_s"]
    answer = {
        "once_a_job": plane.once_a_job,
        "once_a_job_s": plane.once_a_job_s,
        "every_round": plane.every_round,
        "control_s": charged_s,
    }
    source = f" ({plane.source.partition(':')[0]})" if plane.once_a_job_s else ""
    lines = [
        str(plan),
        f"once a job    {plane.once_a_job}, {format_seconds(plane.once_a_job_s)}{source}",
        f"every round   {plane.every_round}, {format_seconds(charged_s)} in all",
    ]
    return answer, lines


def _played(
    plan: Plan, channel: Channel, follows: bool, memory_bytes_per_s: float | None, overlap: float
) -> tuple[dict[str, Any], list[str]]:
    """The protocol in simulated time, exchange by exchange, beside equation 1."""
    from opticcl.control.player import simulate
    from opticcl.control.script import exchanges_of

    with Progress() as progress:
        progress(f"play the control units of {plan.fabric.num_nodes:,} nodes")
        run = simulate(
            plan.circuits,
            plan.size_bytes,
            channel,
            follows=follows,
            memory_bytes_per_s=memory_bytes_per_s,
            overlap=overlap,
        )
    ask = plan.fabric.control_s
    equation = [ask(src, dst) if ask else 0.0 for src, dst in exchanges_of(plan.circuits)]
    answer = {
        "exchanges": len(run.step),
        "longest_wait_s": run.control_s.tolist(),
        "mean_wait_s": run.mean_control_s.tolist(),
        "equation_1_s": equation,
        "total_s": run.total_s,
        "messages": run.messages,
        "repeated": run.repeated,
        "lost": run.lost,
    }
    hidden = plan.fabric.parameters["control_hidden"]
    return answer, ["", *_waits(run, equation, f"{hidden:.0%} hidden" if hidden else "equation 1")]


def _waits(run: ControlRun, equation: list[float], title: str) -> list[str]:
    """A line for each run of exchanges that wait equally long; `title` is of the column of equation 1."""
    from opticcl.units import format_seconds

    step = run.step.tolist()
    rows = list(zip(run.control_s.tolist(), run.mean_control_s.tolist(), equation, strict=True))
    lines = [f"{'exchanges':<14}{'steps':<14}{'longest wait':>14}{'mean wait':>14}{title:>14}"]
    first = 0
    for after in range(1, len(rows) + 1):
        if after < len(rows) and all(abs(a - b) < SAME_S for a, b in zip(rows[first], rows[after], strict=True)):
            continue
        times = "".join(f"{format_seconds(value):>14}" for value in rows[first])
        lines.append(f"{_range(first, after - 1):<14}{_range(step[first], step[after - 1]):<14}{times}")
        first = after
    sums = (sum(column) for column in zip((0.0, 0.0, 0.0), *rows, strict=True))
    return [
        *lines,
        f"{'all':<28}" + "".join(f"{format_seconds(total):>14}" for total in sums),
        f"{run.messages:,} messages ({run.repeated:,} repeated, {run.lost:,} lost); all nodes are done after "
        + format_seconds(run.total_s),
    ]


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}..{last}"


def _explored(plan: Plan) -> tuple[dict[str, Any], list[str], bool]:
    """All states on a network that loses, doubles, delays and reorders."""
    from opticcl.control.explore import explore
    from opticcl.control.script import scripts

    found = explore(scripts(plan.circuits), "any")
    lines = [
        f"explored: {found.states:,} states, {found.transitions:,} transitions, " + (found.problem or "no violation")
    ]
    lines += [f"  {event}" for event in found.trace]
    answer = {
        "states": found.states,
        "transitions": found.transitions,
        "complete": found.complete,
        "problem": found.problem,
    }
    return {"explored": answer}, lines, found.ok


def _run_processes(plan: Plan, channel: Channel, timeout_s: float) -> tuple[dict[str, Any], list[str], bool]:
    """Real processes on random integers, compared with NumPy's sum."""
    import numpy as np

    from opticcl.control.processes import Faults, run

    elements = min(max(1, plan.size_bytes // 8), 1 << 17)
    arrays = np.random.default_rng(channel.seed).integers(-(10**9), 10**9, (plan.fabric.num_nodes, elements))
    delay_s = min(channel.jitter * 1000, 0.05)  # processes live a thousand times slower than switches
    faults = Faults(loss=channel.loss, duplicate=channel.duplicate, delay_s=delay_s, seed=channel.seed)
    with Progress() as progress:
        progress(f"run {plan.fabric.num_nodes} processes")
        ran = run(plan.circuits, arrays, faults, timeout_s=timeout_s)
    right = all(np.array_equal(result, arrays.sum(axis=0)) for result in ran.results)
    answer = {
        "nodes": len(ran.results),
        "elements": elements,
        "exact": right,
        "messages": ran.messages,
        "repeated": ran.repeated,
        "lost": ran.lost,
        "seconds": ran.seconds,
    }
    line = (
        f"processes: {len(ran.results)} nodes, {elements:,} integers each, {'exactly' if right else 'NOT'} NumPy's sum; "
        f"{ran.messages:,} messages ({ran.repeated:,} repeated, {ran.lost:,} lost) in {ran.seconds:.2f} s"
    )
    return {"processes": answer}, [line], right


def _draw(plan: Plan, exchange: int, channel: Channel, out: Path) -> None:
    from opticcl.report.control import control_figure, control_label
    from opticcl.report.svg import save_picture

    save_picture(out, lambda: control_figure(plan, exchange, channel), control_label(plan, exchange))
