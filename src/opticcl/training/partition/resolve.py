"""Resolves the options of `partition`: degrees, batch, micro-batches, device and precision."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from opticcl.errors import WorkloadError
from opticcl.files import read_toml
from opticcl.training.device import Precision, device, efficiency_of
from opticcl.training.model import Model
from opticcl.training.partition.layout import Layout
from opticcl.training.partition.shares import Activations, Configuration, Optimiser, Schedule, check_degrees
from opticcl.training.partition.tables import divides_tables, has_tables, table_share
from opticcl.training.times import Times, check_times

__all__ = ["DEFAULT_LOCAL_BATCH", "MOST_RANKS", "PartitionOptions", "resolve"]

DEFAULT_LOCAL_BATCH = 16  # ODDL 5.A
MOST_RANKS = 2**30
MOST_SAMPLES = 2**40


@dataclass(frozen=True, slots=True)
class PartitionOptions:
    """The options of `partition`, as documented there."""

    batch: int | None
    local_batch: int | None
    data: int | None
    tensor: int
    pipeline: int
    expert: int | None
    micro_batches: int | None
    device: str
    precision: Precision | None
    efficiency: float | None
    optimiser: Optimiser | None
    activations: Activations
    times: Times | None
    context: int = 1
    sequence_parallel: bool = False
    zero: int = 0
    schedule: Schedule = "1f1b"
    virtual_stages: int | None = None


def resolve(model: Model, num_nodes: int, asked: PartitionOptions) -> Configuration:
    """The configuration that the options describe.

    Args:
        model: to be partitioned.
        num_nodes: devices [count].
        asked: options of the caller; None values are chosen here.
    Raises: WorkloadError, ParameterError, UnknownNameError: invalid options; the message suggests valid ones.
    """
    _check_kinds(model, num_nodes, asked)
    if not 1 <= num_nodes <= MOST_RANKS:
        raise WorkloadError(f"{model.name}: {num_nodes} devices are out of range; give 1 to 2**30")
    layout = _layout(model, num_nodes, asked)
    check_degrees(model, layout)
    if has_tables(model):
        table_share(model, layout.expert)
    batch = _batch(model, layout, asked)
    precision: Precision = asked.precision or ("fp32" if model.bytes_per_parameter == 4 else "fp16")
    on = device(asked.device)
    on.peak(precision)
    if asked.times is not None:
        check_times(asked.times, model)
    return Configuration(
        batch=batch,
        layout=layout,
        micro_batches=_micro_batches(model, batch // layout.copies, layout, asked),
        device=on,
        precision=precision,
        efficiency=efficiency_of(precision, asked.efficiency),
        optimiser=asked.optimiser or ("momentum" if precision in ("fp32", "tf32") else "adam"),
        activations=asked.activations,
        times=asked.times,
        sequence_parallel=asked.sequence_parallel,
        zero=asked.zero,
        schedule=asked.schedule,
        virtual_stages=_virtual_stages(model, layout, asked),
    )


def _check_kinds(model: Model, num_nodes: int, asked: PartitionOptions) -> None:
    """Raises WorkloadError: an option of the wrong type, or not one of the allowed words."""
    degrees = ["data", "tensor", "pipeline", "expert", "context", "batch", "local_batch", "micro_batches", "zero"]
    degrees.append("virtual_stages")
    for name, value in [("devices", num_nodes), *((name, getattr(asked, name)) for name in degrees)]:
        given = value is not None or name == "devices"
        if given and (isinstance(value, bool) or not hasattr(value, "__index__")):
            raise WorkloadError(f"{model.name}: {name}={value!r} is not a whole number")
    if asked.zero not in range(4):
        raise WorkloadError(f"{model.name}: zero={asked.zero} is not 0, 1 (optimiser), 2 (gradients) or 3 (parameters)")
    allowed = {"optimiser": Optimiser, "activations": Activations, "precision": Precision, "schedule": Schedule}
    for name, words in allowed.items():
        value = getattr(asked, name)
        if value not in (None, *get_args(words)):
            raise WorkloadError(f"{model.name}: {name}={value!r} is not one of {', '.join(get_args(words))}")


def _layout(model: Model, num_nodes: int, asked: PartitionOptions) -> Layout:
    for name in ("data", "tensor", "pipeline", "expert", "context"):
        degree = getattr(asked, name)
        if degree is not None and degree < 1:
            raise WorkloadError(f"{model.name}: {name}={degree} is not positive; give at least 1")
    if has_tables(model) and asked.tensor * asked.pipeline * asked.context * (1 + asked.zero) > 1:
        raise WorkloadError(
            f"{model.name}: has tables, which only expert divides; leave tensor, pipeline, context and zero out"
        )
    if asked.context > 1 and not any(layer.gathered for layer in model.layers):
        raise WorkloadError(f"{model.name}: context={asked.context}, but it has no attention; try data")
    if asked.sequence_parallel and asked.tensor == 1:
        raise WorkloadError(f"{model.name}: sequence_parallel divides what tensor leaves whole; give tensor=2 or more")
    shared = asked.tensor * asked.pipeline * asked.context
    left = num_nodes // shared
    if num_nodes % shared:
        degrees = {"tensor": asked.tensor, "pipeline": asked.pipeline, "context": asked.context}
        raise _uneven(model, num_nodes, degrees)
    if asked.data is None:
        expert = _experts(model, left) if asked.expert is None else asked.expert
        data = left // expert
    else:
        data = asked.data
        expert = left // data if asked.expert is None and _sharable(model) else asked.expert or 1
    if data * expert != left:
        given = {"tensor": asked.tensor, "pipeline": asked.pipeline, "context": asked.context}
        raise _uneven(model, num_nodes, given | {"expert": expert, "data": data})
    return Layout(data, asked.tensor, asked.pipeline, expert, asked.context)


def _uneven(model: Model, num_nodes: int, degrees: Mapping[str, int]) -> WorkloadError:
    above = [f"{name}={degree}" for name, degree in degrees.items() if degree > 1] or [f"data={degrees['data']}"]
    product = math.prod(degrees.values())
    text = f"{' x '.join(above)} is {product}, which does not" if len(above) > 1 else f"{above[0]} does not"
    if "data" in degrees:  # all of them
        hint = f"make {num_nodes} devices; try {product} devices, or degrees whose product is {num_nodes}"
    else:
        near = next(n for n in range(min(product, num_nodes), 0, -1) if num_nodes % n == 0)
        fits = num_nodes // product * product or product
        hint = f"divide {num_nodes} devices; try {fits} devices, or degrees whose product is {near}"
    return WorkloadError(f"{model.name}: {text} {hint}")


def _sharable(model: Model) -> bool:
    return any(layer.kind in ("experts", "table") for layer in model.layers)


def _experts(model: Model, left: int) -> int:
    """The largest number of the remaining devices that experts or tables divide among."""
    if has_tables(model):
        return next(n for n in range(left, 0, -1) if left % n == 0 and divides_tables(model, n))
    ways = [layer.ways for layer in model.layers if layer.kind == "experts"]
    return math.gcd(left, *ways) if ways else 1


def _batch(model: Model, layout: Layout, asked: PartitionOptions) -> int:
    if asked.batch is not None and asked.local_batch is not None:
        raise WorkloadError(f"{model.name}: batch={asked.batch} and local_batch={asked.local_batch}; give one of them")
    local = DEFAULT_LOCAL_BATCH if asked.local_batch is None else asked.local_batch
    batch = local * layout.copies if asked.batch is None else asked.batch
    name = "local_batch" if asked.batch is None else "batch"
    if batch < 1:
        raise WorkloadError(f"{model.name}: {name}={batch if asked.batch is not None else local} has no samples")
    if batch > MOST_SAMPLES:
        raise WorkloadError(f"{model.name}: {name} makes {batch} samples per iteration, more than 2**40")
    if batch % layout.copies:
        fits = max(batch // layout.copies, 1) * layout.copies
        raise WorkloadError(
            f"{model.name}: batch={batch} does not divide among {layout.copies} copies of the model; try batch={fits}"
        )
    return batch


def _virtual_stages(model: Model, layout: Layout, asked: PartitionOptions) -> int:
    """Parts of the layers on each device.

    Raises: WorkloadError: a number that does not suit the schedule.
    """
    parts = asked.virtual_stages
    if asked.schedule != "1f1b" and layout.pipeline == 1:
        raise WorkloadError(f"{model.name}: schedule={asked.schedule}, but there is one stage; give pipeline=2 or more")
    if asked.schedule != "interleaved":
        if parts not in (None, 1):
            raise WorkloadError(
                f"{model.name}: virtual_stages={parts}, but only schedule=interleaved has several on a device"
            )
        return 1
    parts = 2 if parts is None else parts
    most = max(len(model.layers) // layout.pipeline, 1)
    if not 1 <= parts <= most:
        raise WorkloadError(
            f"{model.name}: virtual_stages={parts} x pipeline={layout.pipeline} is not 1 to {len(model.layers)} layers; "
            f"try virtual_stages={most}"
        )
    return parts


def _micro_batches(model: Model, local: int, layout: Layout, asked: PartitionOptions) -> int:
    if asked.micro_batches is None:
        if layout.pipeline == 1:
            return 1
        most = read_toml("opticcl.training", "training.toml")["micro_batches_per_stage"]["value"] * layout.pipeline
        each = layout.pipeline if asked.schedule == "interleaved" else 1
        even = [n for n in range(min(most, local), 0, -1) if local % n == 0 and n % each == 0]
        if not even:
            raise WorkloadError(
                f"{model.name}: schedule=interleaved takes a multiple of pipeline={layout.pipeline} micro-batches, and a "
                f"copy has {local} samples; try local_batch={layout.pipeline}"
            )
        return even[0]
    if asked.micro_batches < 1 or local % asked.micro_batches:
        near = next(n for n in range(max(min(asked.micro_batches, local), 1), 0, -1) if local % n == 0)
        raise WorkloadError(
            f"{model.name}: micro_batches={asked.micro_batches} does not divide the {local} samples of a copy; "
            f"try micro_batches={near}"
        )
    if asked.schedule == "interleaved" and asked.micro_batches % layout.pipeline:
        fits = max(asked.micro_batches // layout.pipeline, 1) * layout.pipeline
        raise WorkloadError(
            f"{model.name}: schedule=interleaved takes a multiple of pipeline={layout.pipeline} micro-batches, not "
            f"{asked.micro_batches}; try micro_batches={fits}"
        )
    if has_tables(model) and asked.micro_batches > 1:
        raise WorkloadError(f"{model.name}: has tables, which are looked up once; leave micro_batches out")
    return asked.micro_batches
