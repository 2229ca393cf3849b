"""Training time: a job played on every machine, ranked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal

from opticcl.errors import FabricError, ParameterError, UnsupportedError
from opticcl.evaluate.communication import CommunicationTimes, Planner, Used, moved_bytes
from opticcl.evaluate.iteration import COMPUTE, Iteration, Runtime, play
from opticcl.fabric import fabric_at_scale
from opticcl.ir import Fabric
from opticcl.registry import as_text, one_or_more, write_call
from opticcl.simulate import Assumptions
from opticcl.units import counted, format_seconds, in_columns
from opticcl.workload.job import Job
from opticcl.workload.partition import partition
from opticcl.workload.trace_job import network_bytes, num_calls

__all__ = ["LeftOut", "Row", "Training", "train"]

RESOLUTION = 1e-3
"""Of the computation: how much all messages together may take longer than with the very fastest plan for each."""


@dataclass(frozen=True, slots=True)
class Row:
    """A job on one machine.

    Args:
        machine: where.
        iteration: what its queues do.
        plans: that carry its messages, judged; what carries most time first.
        remarks: what was done otherwise than asked.
    """

    machine: Fabric
    iteration: Iteration
    plans: tuple[Used, ...]
    remarks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        took, waits = format_seconds(self.iteration.total_s), f"{self.communication_share:.1%}"
        return f"<Row {self.iteration.job.name} on {self.machine.name}: {took} an iteration, waits {waits} of it>"

    @property
    def verified(self) -> bool:
        """Whether every plan is right."""
        return all(used.verdict.ok for used in self.plans)

    @property
    def algorithms(self) -> tuple[str, ...]:
        """Of the plans, each once."""
        return tuple(dict.fromkeys(used.plan.algorithm for used in self.plans))

    @property
    def communication_share(self) -> float:
        """Share of the iteration in which the device waits for messages."""
        total = self.iteration.total_s
        return self.iteration.exposed_s / total if total else 0.0

    @property
    def bandwidth_utilisation(self) -> float:
        """Share of a node's rate in use while there is communication: what must move over what could have."""
        job, moved = self.iteration.job, 0.0
        for span in self.iteration.spans:
            if span.queue != COMPUTE:
                task = job.tasks[span.tasks[0]]
                moved += moved_bytes(task.collective, len(job.groups[task.group].ranks), span.size_bytes)
        could = self.iteration.communication_s * self.machine.node_rate_bits_per_s / 8
        return moved / could if could else 0.0


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A fabric that cannot carry the job, and why."""

    fabric: str
    reason: str


@dataclass(frozen=True, slots=True)
class Training:
    """A job on many machines, the fastest first.

    Args:
        job: what is trained.
        runtime: fusion, overlap and order.
        assumed: what times of collectives rest on.
        groups: whether groups have fabrics of their own or parts of the machine.
        rows: fastest first.
        left_out: fabrics that cannot carry it.
        iterations_per_epoch: 0 if unknown [count].
        iterations: of the whole training; 0 if unknown [count].
    """

    job: Job
    runtime: Runtime
    assumed: Assumptions
    groups: str
    rows: tuple[Row, ...]
    left_out: tuple[LeftOut, ...]
    iterations_per_epoch: int = 0
    iterations: int = 0

    def __repr__(self) -> str:
        first, fabrics = self.rows[0], counted(len(self.rows), "fabric")
        took = f"{format_seconds(first.iteration.total_s)} an iteration"
        return f"<Training {self.job.name} on {fabrics}: fastest {first.machine.name}, {took}>"

    def __str__(self) -> str:
        return in_columns([("fabric", "iteration", "waits", "algorithms", "verified"), *map(_cells, self.rows)])

    def epoch_s(self, row: Row) -> float | None:
        """Time of an epoch [s]; None if it is not known how many iterations it has."""
        return row.iteration.total_s * self.iterations_per_epoch if self.iterations_per_epoch else None

    def training_s(self, row: Row) -> float | None:
        """Time of the whole training [s]; None if it is not known how many iterations it takes."""
        return row.iteration.total_s * self.iterations if self.iterations else None

    def record(self) -> dict[str, Any]:
        """The job and the rows as plain values."""
        job = self.job
        about = {
            "name": job.name,
            "source": job.source,
            "num_ranks": job.num_ranks,
            "bytes": network_bytes(job),
            "calls": num_calls(job),
            "tasks": len(job.tasks),
            "compute_s": job.compute_s,
            "samples": job.samples,
            "memory_bytes": job.memory_bytes,
            "operations": job.operations,
            "iterations_per_epoch": self.iterations_per_epoch or None,
            "iterations": self.iterations or None,
            "notes": list(job.notes),
        }
        left_out = [{"fabric": one.fabric, "reason": one.reason} for one in self.left_out]
        return {"job": about, "rows": [self._row(row) for row in self.rows], "left_out": left_out}

    def _row(self, row: Row) -> dict[str, Any]:
        iteration, machine = row.iteration, row.machine
        return {
            "fabric": machine.name,
            "num_nodes": machine.num_nodes,
            "node_rate_bits_per_s": machine.node_rate_bits_per_s,
            "algorithms": list(row.algorithms),
            "verified": row.verified,
            "iteration_s": iteration.total_s,
            "epoch_s": self.epoch_s(row),
            "training_s": self.training_s(row),
            "compute_s": iteration.compute_s,
            "communication_s": iteration.communication_s,
            "exposed_s": iteration.exposed_s,
            "bubble_s": iteration.bubble_s,
            "communication_share": row.communication_share,
            "utilisation": iteration.utilisation,
            "bandwidth_utilisation": row.bandwidth_utilisation,
            "messages": iteration.num_messages,
            "plans": [_plan(used) for used in row.plans],
            "specification": write_call(machine.name, {k: v for k, v in machine.parameters.items() if v is not None}),
        }


def _cells(row: Row) -> tuple[str, ...]:
    """A row for people: fabric, iteration, share of it that waits for messages, algorithms, verified."""
    took, waits = format_seconds(row.iteration.total_s), f"{row.communication_share:.1%}"
    return row.machine.name, took, waits, " ".join(row.algorithms), "yes" if row.verified else "NO"


def _plan(used: Used) -> dict[str, Any]:
    return {
        "collective": used.plan.schedule.collective.name,
        "algorithm": used.plan.algorithm,
        "ranks": used.plan.fabric.num_nodes,
        "machine_nodes": used.plan.fabric.num_machine_nodes,
        "verified": used.verdict.ok,
        "messages": used.messages,
        "bytes": used.size_bytes,
        "total_s": used.total_s,
    }


def train(
    job: Job | str,
    machines: Fabric | str | Iterable[Fabric | str],
    *,
    nodes: int | None = None,
    algorithm: str = "auto",
    groups: Literal["scaled", "machine"] = "scaled",
    runtime: Runtime | None = None,
    stragglers: Mapping[int, float] | None = None,
    assumed: Assumptions | None = None,
    samples: int | None = None,
    epochs: float | None = None,
    steps: int | None = None,
    planner: Planner | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Training:
    """A job on every machine, the fastest first; every plan is judged.

    Args:
        job: of a model (`opticcl.workload.partition`) or a trace (`load_job`); or the name of a model, for `nodes` devices.
        machines: each with at least as many nodes as the job has ranks; a text is built for `nodes` nodes. One alone will do.
        nodes: of machines and models that are given as text [count]; None: as many as the job has ranks.
        algorithm: a name for whatever it can do; auto: the fastest for everything, as far as it matters (`RESOLUTION`).
        groups: see `opticcl.evaluate.communication`.
        runtime: fusion, overlap and order; None: the defaults.
        stragglers: device -> what it multiplies its computation by.
        assumed: what times of collectives rest on; None: the defaults.
        samples: of an epoch [count].
        epochs: of the training.
        steps: iterations of the training, in place of epochs [count].
        planner: that remembers plans between calls; it brings `algorithm` and `assumed` along.
        progress: told what is being done.
    Raises: ParameterError: numbers that do not go together. UnsupportedError: no machine can carry the job.
    """
    job = _job(job, nodes)
    size = job.num_ranks if nodes is None else nodes
    built = [given if isinstance(given, Fabric) else fabric_at_scale(given, size) for given in one_or_more(machines)]
    per_epoch, iterations = _iterations(job, samples, epochs, steps)
    algorithm = as_text(algorithm, "train: algorithm", "auto")
    planner = planner or Planner(algorithm, assumed, resolution_s=_resolution_s(job), progress=progress)
    runtime = runtime or Runtime()
    rows: list[Row] = []
    left_out: list[LeftOut] = []
    for machine in built:
        times = CommunicationTimes(machine, planner, groups=groups)
        progress(f"play {job.name} on {machine.name}")
        try:
            iteration = play(job, times, runtime, stragglers)
            remarks = times.declined()
            plans = times.used()
            if remarks and not any(used.plan.schedule.name == planner.name for used in plans):
                raise UnsupportedError(remarks[0])
        except (UnsupportedError, FabricError) as error:
            left_out.append(LeftOut(machine.name, str(error)))
            continue
        rows.append(Row(machine, iteration, plans, remarks))
    if not rows:
        raise UnsupportedError(left_out[0].reason if left_out else "train: no fabric is given")
    rows.sort(key=lambda row: row.iteration.total_s)
    return Training(job, runtime, planner.assumed, groups, tuple(rows), tuple(left_out), per_epoch, iterations)


def _job(given: Job | str, nodes: int | None) -> Job:
    """A job as it is, or that of a model, by its name.

    Raises: ParameterError: neither, or nobody tells on how many devices.
    """
    if isinstance(given, Job):
        return given
    model = as_text(given, "train: job", "vgg19")
    if nodes is None:
        raise ParameterError(f"train: {model} on how many devices? give nodes=64, or a job")
    return partition(model, nodes)


def _resolution_s(job: Job) -> float:
    """What each message may take longer than it must, so that all together stay below `RESOLUTION` of the computation [s]."""
    messages = sum(task.communicates for task in job.tasks)
    return RESOLUTION * job.compute_s / messages if messages else 0.0


def _iterations(job: Job, samples: int | None, epochs: float | None, steps: int | None) -> tuple[int, int]:
    """Iterations of an epoch and of the training; 0 where they are not known."""
    for name, value in (("samples", samples), ("epochs", epochs), ("steps", steps)):
        if value is not None and value <= 0:
            raise ParameterError(f"train: {name}={value} is not positive")
    if steps is not None and epochs is not None:
        raise ParameterError("train: both steps and epochs are given; one of them tells how long the training is")
    if epochs is not None and samples is None:
        raise ParameterError("train: epochs without samples; tell how many samples an epoch has")
    if samples is not None and not job.samples:
        raise ParameterError(f"train: samples={samples}, but {job.name} does not tell its batch; give steps instead")
    per_epoch = ceil(samples / job.samples) if samples is not None else 0
    return per_epoch, steps if steps is not None else ceil(per_epoch * epochs) if epochs is not None else 0
