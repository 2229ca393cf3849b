"""opticcl simulate"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer

from opticcl.cli._options import (
    AlgorithmOption,
    AssumeOption,
    CollectiveOption,
    EngineOption,
    FabricOption,
    JobOption,
    JsonOption,
    NodeRateOption,
    NodesOption,
    PresetOption,
    RootOption,
    SizeOption,
    make_assumptions,
    make_plan,
)
from opticcl.cli._output import Progress, print_json


class Mode(StrEnum):
    """When a transfer may start."""

    barrier = "barrier"
    asynchronous = "asynchronous"


class Queue(StrEnum):
    """Where cells wait."""

    output = "output"
    input = "input"


class Forwarding(StrEnum):
    """When a cell goes on."""

    store_and_forward = "store_and_forward"
    cut_through = "cut_through"


class Transport(StrEnum):
    """What senders do."""

    paced = "paced"
    windowed = "windowed"


class Order(StrEnum):
    """Whose cell is next."""

    interleaved = "interleaved"
    sequential = "sequential"
    shuffled = "shuffled"


def run(
    fabric: FabricOption,
    nodes: NodesOption = None,
    node_rate: NodeRateOption = None,
    collective: CollectiveOption = "all_reduce",
    algorithm: AlgorithmOption = "auto",
    size: SizeOption = "100MB",
    root: RootOption = 0,
    job: JobOption = None,
    engine: EngineOption = "closed_form",
    mode: Annotated[
        Mode,
        typer.Option("--mode", help="flow, packet: with a barrier after each step, or each transfer when it can."),
    ] = Mode.barrier,
    max_events: Annotated[
        int | None, typer.Option("--max-events", help="flow, packet: refuse what takes more events than that.")
    ] = None,
    cell: Annotated[str | None, typer.Option("--cell", help="packet: bytes sent at once, 4096B if left out.")] = None,
    queue: Annotated[
        Queue | None, typer.Option("--queue", help="packet: where cells wait; output if left out.")
    ] = None,
    forwarding: Annotated[
        Forwarding | None,
        typer.Option("--forwarding", help="packet: when a switch sends a cell on; store_and_forward if left out."),
    ] = None,
    buffer: Annotated[
        str | None, typer.Option("--buffer", help="packet: room of each queue, such as 64KiB; without end if left out.")
    ] = None,
    transport: Annotated[
        Transport | None,
        typer.Option("--transport", help="packet: paced loses nothing, windowed sends again; paced if left out."),
    ] = None,
    window: Annotated[int | None, typer.Option("--window", help="packet, windowed: cells on the way.")] = None,
    retransmit: Annotated[
        str | None, typer.Option("--retransmit", help="packet, windowed: time until a loss is noticed, such as 50us.")
    ] = None,
    order: Annotated[
        Order | None, typer.Option("--order", help="packet: of a node's transfers; interleaved if left out.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="packet: of --order shuffled.")] = None,
    preset: PresetOption = "default",
    assume: AssumeOption = [],  # noqa: B006 (the framework copies it)
    json: JsonOption = False,
) -> None:
    """How long a plan takes, step by step, and why."""
    assumed = make_assumptions(preset, assume)
    options = {
        "max_events": max_events, "cell_bytes": cell, "queue": queue, "forwarding": forwarding, "buffer_bytes": buffer,
        "transport": transport, "window": window, "retransmit_s": retransmit, "order": order, "seed": seed,
    }  # fmt: skip
    given: dict[str, Any] = {
        name: str(value) if isinstance(value, StrEnum) else value for name, value in options.items()
    }
    given = {name: value for name, value in given.items() if value is not None}
    from opticcl.simulate import split_options

    name, _, _ = split_options(engine, given)  # refuses what is not for this engine before anything is made
    plan = make_plan(fabric, nodes, node_rate, collective, algorithm, size, root, job)
    from opticcl.simulate.assumptions import as_dict
    from opticcl.units import format_seconds

    with Progress() as progress:
        if name != "closed_form":
            given["progress"] = progress
        timeline = plan.simulate(name, mode=mode.value, **as_dict(assumed), **given)
    if json:
        print_json(
            {
                "total_s": timeline.total_s,
                "num_steps": timeline.num_steps,
                "num_rounds": timeline.num_rounds,
                **timeline.totals(),
                "lower_bound_s": timeline.lower_bound_s,
                "assumptions": dict(timeline.assumptions),
            }
        )
        return
    print(plan)
    print(timeline)
    print(
        f"lower bound {format_seconds(timeline.lower_bound_s)}; assumed: "
        + ", ".join(f"{key}={value}" for key, value in timeline.assumptions.items())
    )
