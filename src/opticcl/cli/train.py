"""opticcl train"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from opticcl.cli._clock import ClockOption, parse_clock
from opticcl.cli._generated import OptionSource, generated_command, given_options
from opticcl.cli._memory import keep_freed_memory
from opticcl.cli._options import (
    DEFAULT_SET,
    LARGE,
    AssumeOption,
    AssumptionsOption,
    EngineOption,
    EqualOption,
    FabricsOption,
    IgnoreLightOption,
    JobsOption,
    JsonOption,
    NodeRateOption,
    NodesOption,
    OpticsOption,
    WorkloadsOption,
    check_nodes,
    equal_machines,
    make_assumptions,
    make_fabrics,
)
from opticcl.cli._output import (
    PAGE,
    PICTURE,
    RECORD,
    TIMELINE,
    Outputs,
    ProgressLine,
    out_option,
    print_json,
    print_table,
)
from opticcl.cli._parameters import option
from opticcl.errors import ParameterError
from opticcl.registry import convert_value

if TYPE_CHECKING:
    from opticcl.ir.task_graph import TaskGraph
    from opticcl.report.training_faults import TrainingFaults
    from opticcl.training.iteration import Runtime
    from opticcl.training.train import TrainingResult


def _runtime_options() -> list[OptionSource]:
    """Options of the communication runtime."""
    from opticcl.training.runtime import Runtime

    return [OptionSource(Runtime, flags={"fusion": "--fusion-mode", "threshold_bytes": "--fusion"})]


Command = generated_command(_runtime_options)
"""The options of the runtime are the fields of its class."""


def run(
    context: click.Context,
    model: Annotated[
        str | None,
        option("--model", "-m", help="A model, name:key=value,..., or a .toml file; see opticcl list."),
    ] = None,
    workload: WorkloadsOption = [],  # noqa: B006
    nodes: NodesOption = None,
    fabric: FabricsOption = [],  # noqa: B006 (the framework copies it)
    node_rate: NodeRateOption = None,
    equal: EqualOption = None,
    algorithm: Annotated[
        str,
        option(
            "--algorithm", "-a", help="Used for each collective that it supports; auto: the fastest for each message."
        ),
    ] = "auto",
    optics: OpticsOption = None,
    ignore_light: IgnoreLightOption = False,
    batch: Annotated[
        int | None, option("--batch", "--global-batch", help="Samples of an iteration on all devices.")
    ] = None,
    local_batch: Annotated[
        int | None,
        option("--local-batch", help="Samples of each copy of the model, instead of --batch; default: 16."),
    ] = None,
    data: Annotated[
        int | None, option("--data", help="Copies of the model; default: as the other degrees permit.")
    ] = None,
    tensor: Annotated[int | None, option("--tensor", help="Devices that share each layer, as in Megatron.")] = None,
    pipeline: Annotated[int | None, option("--pipeline", help="Stages of consecutive layers.")] = None,
    expert: Annotated[int | None, option("--expert", help="Devices that share experts or embedding tables.")] = None,
    context_parallel: Annotated[int | None, option("--context", help="Devices that share a sample's tokens.")] = None,
    sequence_parallel: Annotated[
        bool | None,
        option("--sequence-parallel", help="Tensor-parallel devices divide the tokens between layers."),
    ] = None,
    zero: Annotated[
        int | None,
        option("--zero", help="ZeRO: 1 divides the optimiser's state, 2 gradients too, 3 parameters too (FSDP)."),
    ] = None,
    schedule: Annotated[
        str | None, option("--schedule", help="Of the pipeline: 1f1b, interleaved or zero_bubble.")
    ] = None,
    virtual_stages: Annotated[
        int | None, option("--virtual-stages", help="Of the interleaved schedule, on each device; 2 if left out.")
    ] = None,
    activations: Annotated[
        str | None, option("--activations", help="kept, recomputed or offloaded; kept if left out.")
    ] = None,
    micro_batches: Annotated[
        int | None, option("--micro-batches", help="Parts of the samples of each copy that pass the pipeline.")
    ] = None,
    device: Annotated[
        str | None,
        option(
            "--device",
            help="Device, such as a100, h100 or a100:memory=80GB; times computation that a trace records without duration.",
        ),
    ] = None,
    precision: Annotated[
        str | None, option("--precision", help="Data type of the computation: fp32, tf32, fp16 or bf16.")
    ] = None,
    efficiency: Annotated[
        float | None,
        option("--efficiency", help="Share of the device's peak rate that layers reach, such as 0.4."),
    ] = None,
    times: Annotated[
        str | None, option("--times", help="File of measured times of the layers, instead of --device.")
    ] = None,
    compute_scale: Annotated[
        float,
        option("--compute-scale", help="Speed of the devices relative to the job's: 2 is a GPU twice as fast."),
    ] = 1.0,
    clock: ClockOption = None,
    recorded_on: Annotated[
        str | None,
        option(
            "--recorded-on",
            help="Model of the network on which the trace was recorded, such as ideal:rate=100Gb/s, to compare with it.",
        ),
    ] = None,
    groups: Annotated[
        str,
        option("--groups", help="scaled: a process group has a fabric of its size; machine: its nodes of the machine."),
    ] = "scaled",
    straggler: Annotated[
        list[str],
        option("--straggler", help="Factor on the computation time of a device, such as 3=1.2. Repeat for several."),
    ] = [],  # noqa: B006
    together: Annotated[
        bool,
        option(
            "--together",
            help="Also plan the messages together: circuits stand from one to the next, or change while the job computes.",
        ),
    ] = False,
    samples: Annotated[int | None, option("--samples", help="Samples of an epoch.")] = None,
    epochs: Annotated[float | None, option("--epochs", help="Epochs of the training; needs --samples.")] = None,
    steps: Annotated[int | None, option("--steps", help="Iterations of the training, instead of --epochs.")] = None,
    engine: EngineOption = "closed_form",
    assumptions: AssumptionsOption = DEFAULT_SET,
    assume: AssumeOption = [],  # noqa: B006
    faults: Annotated[
        Path | None,
        option("--faults", metavar="FILE", help="Fault events (.json) to replay: samples a day on every fabric."),
    ] = None,
    spares: Annotated[
        int | None,
        option("--spares", help="Devices kept as spares in a second replay of --faults; default: one of 25."),
    ] = None,
    trace: Annotated[
        Path | None, option("--trace", metavar="FILE", help="Write the timelines for Perfetto: .json.")
    ] = None,
    out: Annotated[list[Path], out_option(PAGE, PICTURE, RECORD)] = [],  # noqa: B006
    jobs: JobsOption = None,
    json: JsonOption = False,
) -> None:
    """Time of a training iteration on every fabric, with its parts. Exit code 1 if a plan is wrong."""
    from opticcl.processes import number_of_jobs
    from opticcl.training.train import train

    outputs = Outputs(out, PAGE, PICTURE, RECORD, named={"--trace": (trace, TIMELINE)})
    asked = {
        "batch": batch,
        "local_batch": local_batch,
        "data": data,
        "tensor": tensor,
        "pipeline": pipeline,
        "expert": expert,
        "context": context_parallel,
        "sequence_parallel": sequence_parallel,
        "zero": zero,
        "schedule": schedule,
        "virtual_stages": virtual_stages,
        "activations": activations,
        "micro_batches": micro_batches,
        "device": device,
        "precision": precision,
        "efficiency": efficiency,
        "times": times,
    }
    devices = _size_of_all(fabric) if model is not None and nodes is None and fabric else nodes
    job = _job(model, workload, devices, clock, {key: value for key, value in asked.items() if value is not None})
    runtime = _runtime(given_options(context), of_model=model is not None)
    machines, excluded, extrapolated = equal_machines(
        *make_fabrics(fabric, job[0].num_ranks if devices is None else nodes, None), equal, node_rate
    )
    processes = number_of_jobs(jobs, large=max(machine.num_nodes for _, machine in machines) >= LARGE)
    if spares is not None and faults is None:
        raise ParameterError("train: --spares belongs to a replay; give --faults trace.json too")
    events = None
    if faults is not None:
        from opticcl.cli._train_faults import check_spares, training_faults
        from opticcl.operations.fault_replay.fault_trace import read_fault_trace

        least = min(machine.num_nodes for _, machine in machines)
        spares = max(1, least // 25) if spares is None else spares
        check_spares(spares, least)
        events = read_fault_trace(faults)
    keep_freed_memory()
    with ProgressLine() as progress:
        found = train(
            job,
            [machine for _, machine in machines],
            algorithm=algorithm,
            groups=convert_value(groups, Literal["scaled", "machine"], "--groups"),
            runtime=runtime,
            stragglers=_stragglers(straggler),
            assumptions=make_assumptions(assumptions, assume),
            engine=engine,
            optics=optics,
            ignore_light=ignore_light,
            samples=samples,
            epochs=epochs,
            steps=steps,
            recorded_on=recorded_on,
            compute_scale=compute_scale,
            together=together,
            jobs=processes,
            progress=progress,
        )
        found = replace(found, left_out=(*found.left_out, *excluded))
        assumed = make_assumptions(assumptions, assume)
        under_faults = None if events is None else training_faults(found, events, spares or 0, assumed, progress)
        _write_outputs(found, trace, outputs, progress, under_faults)
    if json:
        print_json(_record(found, under_faults))
    else:
        from opticcl.report.training import recording_lines, spread_of_steps, together_lines, training_table

        remarks = [f"{row.machine.name}: {remark}" for row in found.rows for remark in row.remarks]
        remarks += [f"{row.machine.name}: {spread}" for row in found.rows if (spread := spread_of_steps(row))]
        remarks += [*together_lines(found), *extrapolated, *recording_lines(found)]
        print_table(*found.job.notes, training_table(found), *remarks, *map(str, found.left_out))
        if under_faults is not None:
            from opticcl.report.training_faults import training_faults_table

            print_table(training_faults_table(under_faults), *under_faults.lines())
        outputs.print_lines()
    raise click.exceptions.Exit(0 if all(row.verified for row in found.rows) else 1)


def _record(found: TrainingResult, under_faults: TrainingFaults | None) -> dict[str, Any]:
    """What `--json` prints."""
    return {**found.record(), **({} if under_faults is None else {"faults": under_faults.record()})}


def _write_outputs(
    found: TrainingResult,
    trace: Path | None,
    outputs: Outputs,
    progress: ProgressLine,
    under_faults: TrainingFaults | None,
) -> None:
    """Write the files that the options name.

    Args:
        found: the results.
        trace: value of `--trace`.
        outputs: values of `--out`; collects a line a file.
        progress: called before each file.
        under_faults: the replay of `--faults`, if any.
    """
    if outputs.of(PAGE):
        from opticcl.report.training_page import write_training_page

        progress("draw the page")
        outputs.write(PAGE, lambda path: write_training_page(path, found))
    if trace:
        from opticcl.report.training_trace import write_training_trace

        progress("write the timelines")
        write_training_trace(trace, found)
        outputs.report(TIMELINE, trace)
    if outputs.of(PICTURE):
        from opticcl.report.training_pictures import timeline_figure, timeline_label

        progress("draw the timelines")
        outputs.write_pictures(lambda: timeline_figure(found), timeline_label(found))
    outputs.write_record(lambda: _record(found, under_faults))


def _size_of_all(given: Sequence[str]) -> int | None:
    """Nodes of each of the fabrics [count]; None where they differ.

    Args: given: values of `--fabric`.
    """
    built, _ = make_fabrics(given, None, None)
    sizes = {machine.num_nodes for _, machine in built}
    return sizes.pop() if len(sizes) == 1 else None


def _job(
    model: str | None, workload: list[str], nodes: int | None, clock: str | None, asked: dict[str, Any]
) -> list[TaskGraph]:
    """Task graph of a model, or those of the steps of a trace."""
    if (model is None) == (not workload):
        wrong = "the job is missing" if model is None else "both --model and --workload are given"
        raise ParameterError(f"train: {wrong}; give either --model vgg19 or --workload FILE")
    check_nodes(nodes)
    if model is not None:
        from opticcl.training.partition import partition

        if clock is not None:
            raise ParameterError("--clock: only for ASTRA-sim files, which count cycles; a model has none")
        if nodes is None:
            raise ParameterError("train: the number of devices is missing; give --nodes N, or fabrics of one size")
        return [partition(model, nodes, **asked)]
    device, precision, efficiency = (asked.pop(name, None) for name in ("device", "precision", "efficiency"))
    if asked:
        key = next(iter(asked))
        raise ParameterError(f"--{key.replace('_', '-')}: an option of models; a trace is used as recorded")
    if device is None and (precision, efficiency) != (None, None):
        raise ParameterError("--precision, --efficiency: of a device, which is missing; give --device h100")
    from opticcl.traces import load_steps
    from opticcl.training.device import Precision
    from opticcl.training.rooflines import time_by_roofline

    found = load_steps(workload, num_ranks=nodes or 0, clock_hz=None if clock is None else parse_clock(clock))
    if device is None:
        return found
    kind = None if precision is None else convert_value(precision, Precision, "--precision")
    return time_by_roofline(found, device, kind, efficiency)


def _runtime(given: dict[str, Any], of_model: bool) -> Runtime:
    """The runtime that the options describe; messages of a trace are not fused unless a threshold is given.

    Args:
        given: fields of `Runtime` on the command line.
        of_model: whether the job is that of a model, not of a trace.
    """
    from opticcl.training.iteration import Runtime

    if "threshold_bytes" not in given and not of_model:
        given = {**given, "fusion": "none"}
    return Runtime(**given)


def _stragglers(given: list[str]) -> dict[int, float]:
    from opticcl.units import number_of, whole_of

    found: dict[int, float] = {}
    for item in given:
        rank, equals, factor = (part.strip() for part in item.partition("="))
        try:
            device, value = whole_of(rank), number_of(factor)
        except ValueError:
            device = -1
        if not equals or device < 0:
            raise ParameterError(f"--straggler: {item!r} is not device=factor; write --straggler 3=1.2")
        if device in found:
            raise ParameterError(f"--straggler: device {rank} is given twice")
        found[device] = value
    return found
