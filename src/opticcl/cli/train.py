"""opticcl train"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from opticcl.cli._clock import ClockOption, parse_clock
from opticcl.cli._options import (
    AssumeOption,
    FabricsOption,
    JsonOption,
    LeftOut,
    NodeRateOption,
    NodesOption,
    PresetOption,
    check_nodes,
    make_assumptions,
    make_fabrics,
)
from opticcl.cli._output import PICTURES, Progress, check_outputs, print_json, print_table
from opticcl.errors import ParameterError

if TYPE_CHECKING:
    from opticcl.evaluate.iteration import Runtime
    from opticcl.workload.job import Job

_OF_MODELS = "of a model only"


def run(
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="A model, its name:key=value,..., or a .toml; see opticcl list.")
    ] = None,
    workload: Annotated[
        str | None, typer.Option("--workload", "-w", help="Instead: a trace, a TOML list of sizes, or resnet50_ddp.")
    ] = None,
    nodes: NodesOption = None,
    fabric: FabricsOption = [],  # noqa: B006 (the framework copies it)
    node_rate: NodeRateOption = None,
    algorithm: Annotated[
        str, typer.Option("--algorithm", "-a", help="For all that it can do; auto takes the fastest for each message.")
    ] = "auto",
    batch: Annotated[
        int | None, typer.Option("--batch", help="Samples of each copy of the model; 16 if left out.")
    ] = None,
    global_batch: Annotated[
        int | None, typer.Option("--global-batch", help="Samples of an iteration on all devices, instead of --batch.")
    ] = None,
    data: Annotated[int | None, typer.Option("--data", help="Copies of the model; as many as fit if left out.")] = None,
    tensor: Annotated[
        int | None, typer.Option("--tensor", help="Devices that share each layer, as Megatron does.")
    ] = None,
    pipeline: Annotated[int | None, typer.Option("--pipeline", help="Stages of consecutive layers.")] = None,
    expert: Annotated[int | None, typer.Option("--expert", help="Devices that share experts or tables.")] = None,
    micro_batches: Annotated[int | None, typer.Option("--micro-batches", help="Parts of a copy's samples.")] = None,
    device: Annotated[str | None, typer.Option("--device", help="Such as a100, h100 or a100:memory=80GB.")] = None,
    precision: Annotated[str | None, typer.Option("--precision", help="fp32, tf32, fp16 or bf16.")] = None,
    efficiency: Annotated[
        float | None,
        typer.Option("--efficiency", help="Share of the device's peak rate that layers reach, such as 0.4."),
    ] = None,
    times: Annotated[
        str | None, typer.Option("--times", help="File of measured times of the layers, instead of --device.")
    ] = None,
    clock: ClockOption = None,
    fusion: Annotated[
        str | None,
        typer.Option("--fusion", help="Most that fused gradients may have, such as 16MB (models) or 0 (traces)."),
    ] = None,
    fusion_mode: Annotated[str, typer.Option("--fusion-mode", help="greedy, static or none.")] = "greedy",
    cycle: Annotated[str, typer.Option("--cycle", help="Gradients leave at multiples of this.")] = "0s",
    latency: Annotated[str, typer.Option("--latency", help="To agree on a message of gradients.")] = "0s",
    overlap: Annotated[
        bool, typer.Option("--overlap/--no-overlap", help="Whether messages run beside computation.")
    ] = True,
    order: Annotated[
        str, typer.Option("--order", help="Which messages go first: transfers_first, ready or job.")
    ] = "transfers_first",
    streams: Annotated[int, typer.Option("--streams", help="Messages at a time.")] = 1,
    groups: Annotated[
        str, typer.Option("--groups", help="scaled: a group has its own fabric; machine: its nodes on the whole one.")
    ] = "scaled",
    straggler: Annotated[
        list[str], typer.Option("--straggler", help="device=factor, such as 3=1.2: it computes so much longer.")
    ] = [],  # noqa: B006
    samples: Annotated[int | None, typer.Option("--samples", help="Of an epoch.")] = None,
    epochs: Annotated[float | None, typer.Option("--epochs", help="Of the training, with --samples.")] = None,
    steps: Annotated[
        int | None, typer.Option("--steps", help="Iterations of the training, instead of --epochs.")
    ] = None,
    preset: PresetOption = "default",
    assume: AssumeOption = [],  # noqa: B006
    html: Annotated[Path | None, typer.Option("--html", help="Write the whole comparison to this page.")] = None,
    trace: Annotated[
        Path | None, typer.Option("--trace", help="Write the timelines for Chrome's tracing page or Perfetto.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Draw the timelines: .svg or .png.")] = None,
    json: JsonOption = False,
) -> None:
    """How long an iteration of training takes on every fabric, and where the time goes. Exit code 1 if a plan is wrong."""
    from opticcl.evaluate.training import train

    check_outputs({"--html": (html, ()), "--trace": (trace, ()), "--out": (out, PICTURES)})
    asked = {
        "local_batch": batch,
        "batch": global_batch,
        "data": data,
        "tensor": tensor,
        "pipeline": pipeline,
        "expert": expert,
        "micro_batches": micro_batches,
        "device": device,
        "precision": precision,
        "efficiency": efficiency,
        "times": times,
    }
    job = _job(model, workload, nodes, clock, {key: value for key, value in asked.items() if value is not None})
    runtime = _runtime(job, bool(model), fusion, fusion_mode, cycle, latency, overlap, order, streams)
    machines, unbuilt = make_fabrics(fabric, job.num_ranks if nodes is None else nodes, node_rate)
    with Progress() as progress:
        found = train(
            job,
            [machine for _, machine in machines],
            algorithm=algorithm,
            groups=_one_of("--groups", groups, ("scaled", "machine")),  # type: ignore[arg-type]
            runtime=runtime,
            stragglers=_stragglers(straggler),
            assumed=make_assumptions(preset, assume),
            samples=samples,
            epochs=epochs,
            steps=steps,
            progress=progress,
        )
        written = []
        if html:
            from opticcl.report.training_page import write_training_page

            progress("draw the page")
            write_training_page(html, found, [str(one) for one in unbuilt])
            written.append(f"page: {html}")
        if trace:
            from opticcl.report.chrome_trace import write_chrome_trace

            write_chrome_trace(trace, found)
            written.append(f"timelines: {trace}")
        if out:
            from opticcl.report.svg import save_picture
            from opticcl.report.training_pictures import timeline_figure, timeline_label

            save_picture(out, lambda: timeline_figure(found), timeline_label(found))
            written.append(f"picture: {out}")
    if json:
        record = found.record()
        record["left_out"] += [one._asdict() for one in unbuilt]
        print_json(record)
    else:
        from opticcl.report.training import training_table

        remarks = [f"{row.machine.name}: {remark}" for row in found.rows for remark in row.remarks]
        left_out = [*unbuilt, *(LeftOut(one.fabric, one.reason) for one in found.left_out)]
        print_table(*job.notes, training_table(found), *remarks, *map(str, left_out))
        for line in written:
            print(line)
    raise typer.Exit(0 if all(row.verified for row in found.rows) else 1)


def _job(model: str | None, workload: str | None, nodes: int | None, clock: str | None, asked: dict[str, Any]) -> Job:
    """The job of a model or a trace."""
    if (model is None) == (workload is None):
        raise ParameterError("train: what is trained? give either --model vgg19 or --workload FILE")
    check_nodes(nodes)
    if model is not None:
        from opticcl.workload.partition import partition

        if clock is not None:
            raise ParameterError("--clock: a model has none; it is for ASTRA-sim files, which count cycles")
        if nodes is None:
            raise ParameterError("train: on how many devices? give --nodes N")
        return partition(model, nodes, **asked)
    if asked:
        key = next(iter(asked))
        option = {"local_batch": "batch", "batch": "global-batch"}.get(key, key.replace("_", "-"))
        raise ParameterError(f"--{option}: a trace is as it was recorded; this is {_OF_MODELS}")
    from opticcl.workload.trace_job import load_job

    assert workload is not None
    return load_job(workload, num_ranks=nodes or 0, clock_hz=None if clock is None else parse_clock(clock))


def _runtime(
    job: Job,
    of_model: bool,
    fusion: str | None,
    mode: str,
    cycle: str,
    latency: str,
    overlap: bool,
    order: str,
    streams: int,
) -> Runtime:
    """What the options say of messages; those of a trace go as they were recorded unless a threshold is given."""
    from opticcl.evaluate.iteration import Runtime
    from opticcl.units import message_size, quantity

    given = {} if fusion is None else {"threshold_bytes": message_size(fusion, "--fusion")}
    mode = _one_of("--fusion-mode", mode, ("greedy", "static", "none"))
    if fusion is None and not of_model:
        mode = "none"
    return Runtime(
        overlap=overlap,
        fusion=mode,  # type: ignore[arg-type]
        cycle_s=quantity(cycle, "s", "--cycle"),
        latency_s=quantity(latency, "s", "--latency"),
        order=_one_of("--order", order, ("transfers_first", "ready", "job")),  # type: ignore[arg-type]
        streams=streams,
        **given,
    )


def _stragglers(given: list[str]) -> dict[int, float]:
    found: dict[int, float] = {}
    for item in given:
        rank, equals, factor = (part.strip() for part in item.partition("="))
        try:
            value = float(factor)
        except ValueError:
            equals = ""
        if not equals or not (rank.isascii() and rank.isdecimal()):
            raise ParameterError(f"--straggler: {item!r} is not device=factor; write --straggler 3=1.2")
        if int(rank) in found:
            raise ParameterError(f"--straggler: device {rank} is given twice")
        found[int(rank)] = value
    return found


def _one_of(option: str, given: str, choices: tuple[str, ...]) -> str:
    from opticcl.registry import canonical, nearest

    if (name := canonical(given)) not in choices:
        raise ParameterError(f"{option}: unknown {given!r}; {nearest(name, choices)}")
    return name
