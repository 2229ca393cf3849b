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
from opticcl.cli._output import Progress, print_json
from opticcl.errors import ParameterError

if TYPE_CHECKING:
    from opticcl.control.player import Channel
    from opticcl.plan import Plan


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
    exchange: Annotated[int, typer.Option("--exchange", help="Which exchange the picture shows.")] = 0,
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
    if out is not None and out.suffix.lower() not in (".svg", ".png"):
        raise ParameterError(f"--output: {out} is neither .svg nor .png")
    plan = make_plan(fabric, nodes, None, collective, algorithm, size, job=job)
    from opticcl.control.models import control_plane
    from opticcl.control.player import Channel
    from opticcl.units import format_seconds, quantity

    channel = Channel(loss=loss, duplicate=duplicate, jitter=quantity(jitter, "s", "--jitter"), seed=seed)
    plane = control_plane(plan.fabric)
    answer: dict[str, Any] = {
        "once_a_job": plane.once_a_job,
        "once_a_job_s": plane.once_a_job_s,
        "every_round": plane.every_round,
        "control_s": plan.simulate().totals()["control_s"],
    }
    lines = [
        str(plan),
        f"once a job    {plane.once_a_job}, {format_seconds(plane.once_a_job_s or 0)}",
        f"every round   {plane.every_round}, {format_seconds(answer['control_s'])} in all",
    ]
    good = True
    if plan.fabric.name == "oddl":
        rate = None if memory is None else quantity(memory, "byte/s", "--memory")
        found, told = _played(plan, channel, not from_rest, rate, overlap)
        answer |= found
        lines += told
    elif out or explore or processes:
        raise ParameterError(f"control: {plan.fabric.name} has no control units to look at; they are those of oddl")
    if explore:
        found, told, good = _explored(plan)
        answer |= found
        lines += told
    if processes:
        found, told, right = _run_processes(plan, channel, quantity(timeout, "s", "--timeout"))
        answer |= found
        lines += told
        good &= right
    if out is not None:
        _draw(plan, exchange, channel, out)
        lines.append(f"written: {out}")
    if json:
        print_json(answer)
    else:
        print("\n".join(lines))
    raise typer.Exit(0 if good else 1)


def _played(
    plan: Plan, channel: Channel, follows: bool, memory_bytes_per_s: float | None, overlap: float
) -> tuple[dict[str, Any], list[str]]:
    """The protocol in simulated time, exchange by exchange, beside equation 1."""
    from opticcl.control.player import simulate
    from opticcl.control.script import exchanges_of
    from opticcl.units import format_seconds

    played = simulate(
        plan.circuits, plan.size_bytes, channel, follows=follows, memory_bytes_per_s=memory_bytes_per_s, overlap=overlap
    )
    ask = plan.fabric.control_s
    equation = [ask(src, dst) for src, dst in exchanges_of(plan.circuits)] if ask else []
    step, longest, mean = played.step.tolist(), played.control_s.tolist(), played.mean_control_s.tolist()
    lines = ["", f"{'exchanges':<14}{'steps':<14}{'longest wait':>14}{'mean wait':>14}{'equation 1':>14}"]
    begin = 0
    for i in range(1, len(step) + 1):
        rows = [(longest[k], mean[k], equation[k]) for k in (begin, min(i, len(step) - 1))]
        if i < len(step) and all(abs(a - b) < 1e-12 for a, b in zip(*rows, strict=True)):
            continue
        times = "".join(f"{format_seconds(value):>14}" for value in rows[0])
        lines.append(f"{_range(begin, i - 1):<14}{_range(step[begin], step[i - 1]):<14}{times}")
        begin = i
    sums = "".join(f"{format_seconds(sum(column)):>14}" for column in (longest, mean, equation))
    lines += [
        f"{'all':<28}{sums}",
        f"{played.messages:,} messages ({played.repeated:,} repeated, {played.lost:,} lost); all nodes are done after "
        + format_seconds(played.total_s),
    ]
    answer = {
        "exchanges": len(step),
        "longest_wait_s": longest,
        "mean_wait_s": mean,
        "equation_1_s": equation,
        "total_s": played.total_s,
        "messages": played.messages,
        "repeated": played.repeated,
        "lost": played.lost,
    }
    return answer, lines


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}..{last}"


def _explored(plan: Plan) -> tuple[dict[str, Any], list[str], bool]:
    """All states on a network that loses, doubles, delays and reorders."""
    from opticcl.control.explore import explore
    from opticcl.control.script import scripts

    if plan.fabric.num_nodes > 4:
        raise ParameterError(f"control: {plan.fabric.num_nodes} nodes have too many states to visit; try --nodes 4")
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
    from opticcl.files import write_whole
    from opticcl.report.control import control_figure, control_picture
    from opticcl.report.svg import drawing_style

    if out.suffix.lower() == ".svg":
        text = control_picture(plan, exchange, channel)
        with write_whole(out) as file:
            file.write(text.encode())
        return
    with drawing_style():
        figure = control_figure(plan, exchange, channel)
        with write_whole(out) as file:
            figure.savefig(file, format="png", dpi=150)
