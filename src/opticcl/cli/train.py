"""opticcl train"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from opticcl.cli._generated import OptionSource, flag_of
from opticcl.cli._output import PAGE, PICTURE, RECORD, TIMELINE
from opticcl.cli._request import PlanRequest, check_nodes, make_fabrics, option, out_option, shared_option
from opticcl.errors import ParameterError
from opticcl.report.kit.result import ComposedResult, Result

if TYPE_CHECKING:
    from opticcl.assumptions import Assumptions
    from opticcl.ir import ProgressCallback
    from opticcl.ir.task_graph import TaskGraph
    from opticcl.report.training_faults import TrainingFaults
    from opticcl.training.iteration import Runtime
    from opticcl.training.target import Target
    from opticcl.training.train import TrainingResult


@dataclass(frozen=True, kw_only=True)
class TrainRequest(PlanRequest):
    """What `opticcl train` is asked: values of its options."""

    OPTIONS = """The job: model target_loss max_devices workload clock dialect kernel_sizes samples epochs steps
        Fabrics: nodes fabrics equal as_built algorithm optics ignore_light groups layout together
        Time: engine assumptions assume * straggler recorded_on
        Faults: faults spares
        Output: trace out jobs notes json"""

    model: str | None = option(
        "--model",
        "-m",
        metavar="<model>",
        default=None,
        help="A model, name:key=value,..., or a .toml file; see opticcl list.",
    )
    target_loss: float | None = option(
        "--target-loss",
        default=None,
        help="Cross-entropy that a transformer is to reach, such as 2.0; selects its size, parallelism, batch and steps.",
    )
    max_devices: int | None = option(
        "--max-devices", default=None, help="Devices that --target-loss may use; default: 65,536."
    )
    algorithm: str = shared_option(
        PlanRequest,
        "algorithm",
        default="auto",
        help="Used for each collective that it supports; auto: the fastest for each message.",
    )
    compute_scale: float = option(
        "--compute-scale", default=1.0, help="Speed of the devices relative to the job's: 2 is a GPU twice as fast."
    )
    recorded_on: str | None = option(
        "--recorded-on",
        metavar="<fabric>",
        default=None,
        help="Model of the network on which the trace was recorded, such as ideal:rate=100Gb/s, to compare with it.",
    )
    groups: Literal["scaled", "machine"] = option(
        "--groups",
        default="machine",
        help="machine: all process groups of a kind run at the same time on their nodes of the machine; scaled: a group has a "
        "fabric of its size to itself.",
    )
    layout: str | None = option(
        "--layout",
        metavar="<dimensions>",
        default=None,
        help="Which ranks sit where: dimensions of the parallelism, that of neighbouring nodes first, such as data,tensor; "
        "auto: on each fabric the fastest order. Default: tensor,pipeline,context,expert,data.",
    )
    straggler: tuple[str, ...] = option(
        "--straggler",
        metavar="<device>=<factor>",
        default=(),
        help="Factor on the computation time of a device, such as 3=1.2. Repeat for several.",
    )
    together: bool = option(
        "--together",
        default=False,
        help="Also plan the messages together: circuits stand from one to the next, or change while the job computes.",
    )
    samples: int | None = option("--samples", default=None, help="Samples of an epoch.")
    epochs: float | None = option("--epochs", default=None, help="Epochs of the training; needs --samples.")
    steps: int | None = option("--steps", default=None, help="Iterations of the training, instead of --epochs.")
    faults: Path | None = option(
        "--faults", metavar="FILE", default=None, help="Fault events (.json) to replay: samples a day on every fabric."
    )
    spares: int | None = option(
        "--spares", default=None, help="Devices kept as spares in a second replay of --faults; default: one of 25."
    )
    trace: Path | None = option(
        "--trace", metavar="FILE", default=None, help="Write the timelines for Perfetto: .json.", writes=TIMELINE
    )
    out: tuple[Path, ...] = out_option(PAGE, PICTURE, RECORD)

    @classmethod
    def sources(cls) -> list[OptionSource]:
        """Options of the partition of a model and of the communication runtime."""
        from opticcl.training.partition import partition
        from opticcl.training.runtime import Runtime

        return [
            OptionSource(partition, positional=2, topic="Parallelism and device"),
            OptionSource(
                Runtime, flags={"fusion": "--fusion-mode", "threshold_bytes": "--fusion"}, topic="Communication runtime"
            ),
        ]

    def runtime(self) -> Runtime:
        """The runtime; messages of a trace are not fused unless a threshold is given."""
        from opticcl.training.iteration import Runtime

        unfused = {"fusion": "none"} if self.model is None and "threshold_bytes" not in self.generated else {}
        return Runtime(**{**self.generated_of(Runtime), **unfused})

    def stragglers(self) -> dict[int, float]:
        """Device -> factor on its computation time.

        Raises: ParameterError: no such text, or a device given twice.
        """
        from opticcl.units import number_of, whole_of

        factors: dict[int, float] = {}
        for item in self.straggler:
            rank, equals, factor = (part.strip() for part in item.partition("="))
            try:
                device, value = whole_of(rank), number_of(factor)
            except ValueError:
                device = -1
            if not equals or device < 0:
                raise ParameterError(f"--straggler: {item!r} is not device=factor; write --straggler 3=1.2")
            if device in factors:
                raise ParameterError(f"--straggler: device {rank} is given twice")
            factors[device] = value
        return factors


def run(request: TrainRequest) -> Result:
    """Compare the time of a training iteration on every fabric. Exit code 1 if a plan is wrong."""
    from opticcl.report.training import training_blocks, training_notes
    from opticcl.report.training_page import write_training_page
    from opticcl.report.training_pictures import timeline_figure, timeline_label
    from opticcl.training.train import train

    target = _target(request)
    devices = _num_devices(request) if target is None else None
    job, runtime = _job(request, devices) if target is None else [target.job()], request.runtime()
    ground, contenders, excluded = request.contenders(job[0].num_ranks if devices is None else request.nodes)
    machines = [one.fabric for one in contenders]
    processes = request.num_processes(machines)
    replay = _replay_of_faults(request, min(machine.num_nodes for machine in machines))
    assumed = request.assumed()
    trained = train(
        job,
        machines,
        algorithm=request.algorithm,
        groups=request.groups,
        layout=request.layout,
        runtime=runtime,
        stragglers=request.stragglers(),
        assumptions=assumed,
        engine=request.engine,
        optics=request.optics,
        ignore_light=request.ignore_light,
        samples=request.samples,
        epochs=request.epochs,
        steps=request.steps if target is None else target.steps,
        recorded_on=request.recorded_on,
        compute_scale=request.compute_scale,
        together=request.together,
        equal=ground,
        as_built=None if ground is None else [one.built for one in contenders],
        jobs=processes,
        progress=request.progress,
    )
    trained = replace(trained, left_out=(*trained.left_out, *excluded), target=target)
    faults = replay and replay(trained, assumed, request.progress)
    if request.trace is not None:
        from opticcl.report.training_trace import write_training_trace

        request.progress("write the timelines")
        write_training_trace(request.trace, trained)
        request.outputs.report(TIMELINE, request.trace)
    return ComposedResult(
        lambda: {**trained.record(), **({"faults": faults.record()} if faults else {})},
        lambda: [*training_blocks(trained), *(faults.blocks() if faults else [])],
        all(row.verified for row in trained.rows),
        draw=lambda: timeline_figure(trained),
        label=timeline_label(trained),
        page=lambda path, _: write_training_page(path, trained),
        headline=trained.headline,
        notes=training_notes(trained),
    )


def _replay_of_faults(
    request: TrainRequest, least: int
) -> Callable[[TrainingResult, Assumptions, ProgressCallback], TrainingFaults] | None:
    """The replay of `--faults` on a comparison, whose options are checked now; None without faults.

    Args:
        request: of the call.
        least: devices of the smallest machine [count].
    Raises: ParameterError: spares that do not fit; WorkloadError: no trace of faults.
    """
    if request.faults is None:
        if request.spares is not None:
            raise ParameterError("train: --spares belongs to a replay; give --faults trace.json too")
        return None
    from opticcl.cli._train_faults import check_spares, training_faults
    from opticcl.operations.fault_replay.fault_trace import read_fault_trace

    spares = max(1, least // 25) if request.spares is None else request.spares
    check_spares(spares, least)
    return partial(training_faults, read_fault_trace(request.faults), spares)


def _target(request: TrainRequest) -> Target | None:
    """The model and its division that `--target-loss` chooses; None without it.

    Raises: ParameterError: an option of what it chooses; UnknownNameError: no such device.
    """
    from opticcl.training.partition import partition
    from opticcl.training.target import MAX_DEVICES, train_to

    if request.target_loss is None:
        if request.max_devices is not None:
            raise ParameterError("--max-devices: a bound of --target-loss; give --target-loss 2.0 too, or --nodes")
        return None
    if request.model != "transformer":
        given = "no model" if request.model is None else repr(request.model)
        raise ParameterError(
            f"--target-loss: chooses the size of a transformer, not of {given}; give -m transformer alone"
        )
    options = request.generated_of(train_to)
    others = map(flag_of, request.generated_of(partition).keys() - options.keys())
    if other := request.first_given("workload", "clock", "nodes", "samples", "epochs", "steps") or min(
        others, default=""
    ):
        raise ParameterError(
            f"{other}: --target-loss chooses model, degrees, batch and steps; leave it out, or bound --max-devices"
        )
    check_nodes(request.max_devices, "--max-devices")
    return train_to(request.target_loss, request.max_devices or MAX_DEVICES, **options)


def _num_devices(request: TrainRequest) -> int | None:
    """Devices of the job [count]: those of `--nodes` or, for a model, of fabrics of one size; None: those of the trace."""
    if request.model is None or request.nodes is not None or not request.fabrics:
        return request.nodes
    built, _ = make_fabrics(request.fabrics, None, [])
    sizes = {machine.num_nodes for _, machine in built}
    return sizes.pop() if len(sizes) == 1 else None


def _job(request: TrainRequest, nodes: int | None) -> list[TaskGraph]:
    """Task graph of a model, or those of the steps of a trace.

    Args:
        request: of the call.
        nodes: devices [count].
    Raises: ParameterError: options that contradict each other; WorkloadError: the trace cannot be read.
    """
    if (request.model is None) == (not request.workload):
        wrong = "the job is missing" if request.model is None else "both --model and --workload are given"
        raise ParameterError(f"train: {wrong}; give either --model vgg19 or --workload FILE")
    check_nodes(nodes)
    if request.model is None:
        return _recorded_job(request, nodes)
    from opticcl.training.partition import partition

    request.refuse_read_options("a model is not a trace")
    if nodes is None:
        raise ParameterError("train: the number of devices is missing; give --nodes N, or fabrics of one size")
    return [partition(request.model, nodes, **request.generated_of(partition))]


def _recorded_job(request: TrainRequest, nodes: int | None) -> list[TaskGraph]:
    """Task graphs of the steps of a trace.

    Args:
        request: of the call.
        nodes: ranks [count]; None: those of the trace.
    Raises: ParameterError: options of models, or of a device that is missing; WorkloadError: the trace cannot be read.
    """
    from opticcl.traces import load_steps
    from opticcl.training.partition import partition
    from opticcl.training.rooflines import time_by_roofline

    given = request.generated_of(partition)
    on, precision, efficiency = (given.pop(name, None) for name in ("device", "precision", "efficiency"))
    if given:
        raise ParameterError(f"{flag_of(next(iter(given)))}: an option of models; a trace is used as recorded")
    if on is None and (precision, efficiency) != (None, None):
        raise ParameterError("--precision, --efficiency: of a device, which is missing; give --device h100")
    steps = load_steps(request.workload, num_ranks=nodes or 0, **request.read_options())
    return steps if on is None else time_by_roofline(steps, on, precision, efficiency)
