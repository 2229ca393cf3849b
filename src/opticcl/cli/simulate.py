"""opticcl simulate"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opticcl.cli._options import (
    AlgorithmOption,
    AssumeOption,
    CollectiveOption,
    EngineOption,
    FabricOrFileOption,
    FileArgument,
    JobOption,
    JsonOption,
    NodeRateOption,
    NodesOption,
    PresetOption,
    RootOption,
    SizeOption,
    make_assumptions,
    make_plan,
    refuse_beside_file,
)
from opticcl.cli._output import PICTURES, Progress, check_outputs, print_json
from opticcl.errors import ParameterError

if TYPE_CHECKING:
    from opticcl.report.simulation import Simulation


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
    context: typer.Context,
    file: FileArgument = None,
    fabric: FabricOrFileOption = None,
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
    links: Annotated[
        Path | None,
        typer.Option("--links", help="Write what each link or port carries to this .csv, .parquet or .json file."),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option("--trace", help="flow, packet: write the transfers in time to this .json file, for Perfetto."),
    ] = None,
    picture: Annotated[
        Path | None, typer.Option("--picture", help="Draw the load of the machine to this .svg or .png file.")
    ] = None,
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
    refuse_beside_file("simulate", context, file, fabric)
    _check_outputs(name, file, links, trace, picture)
    from opticcl.plan import load
    from opticcl.report.simulation import Simulation
    from opticcl.simulate.play import play

    made_from = (str(fabric), nodes, node_rate, collective, algorithm, size, root, job)
    plan = load(file) if file is not None else make_plan(*made_from)
    record = name == "packet" or mode is Mode.asynchronous or any((links, trace, picture))
    with Progress() as progress:
        if name != "closed_form":
            given["progress"] = progress
        played = play(
            plan.circuits, plan.size_bytes, assumed, engine=name, mode=mode.value, record=record, **given
        )  # fmt: skip
        found = Simulation(plan, name, mode.value, played)
        written = _write_outputs(found, links, trace, picture, progress)
    if json:
        print_json(found.record())
        return
    print(plan)
    print(played.timeline)
    print("\n".join([*found.lines(), *written]))


def _check_outputs(
    engine: str, plan: Path | None, links: Path | None, trace: Path | None, picture: Path | None
) -> None:
    """Refuse files that could not be written, that would replace each other or the plan, before anything is played.

    Args: plan: the file that is read.
    Raises: OutputError, ParameterError.
    """
    from opticcl.report.traffic import LINK_FILES

    files = {"--links": (links, LINK_FILES), "--trace": (trace, (".json",)), "--picture": (picture, PICTURES)}
    check_outputs(files, read=plan)
    if trace is not None and engine == "closed_form":
        raise ParameterError("--trace: the closed form sees no transfers; give --engine flow or packet")


def _write_outputs(
    found: Simulation, links: Path | None, trace: Path | None, picture: Path | None, progress: Progress
) -> list[str]:
    """Write the files that are asked for; what was written, a line each."""
    total_s, said = found.played.timeline.total_s, []
    if links is not None:
        from opticcl.report.traffic import write_links

        progress("write the links")
        rows = write_links(links, found.plan.fabric, found.loads, total_s)
        said.append(f"links: {links}, {rows:,} rows")
    if trace is not None:
        from opticcl.report.transfer_trace import write_transfer_trace

        progress("write the trace")
        said.append(f"trace: {trace}, {write_transfer_trace(trace, found.plan, found.played)}")
    if picture is not None:
        from opticcl.report.load_picture import write_load_picture

        progress("draw the load")
        write_load_picture(picture, found)
        said.append(f"picture: {picture}")
    return said
