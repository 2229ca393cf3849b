"""The models that RAMP trains: transformers by target loss (its table 9) and DLRM by devices (its table 10)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from opticcl.errors import ParameterError
from opticcl.files import read_toml
from opticcl.ir.task_graph import TaskGraph
from opticcl.papers.ramp_scaling_laws import critical_batch_tokens, loss_of, steps_to
from opticcl.training.model import Model
from opticcl.training.models import model
from opticcl.training.partition import partition
from opticcl.training.partition.layout import Layout
from opticcl.training.partition.shares import held
from opticcl.training.partition.tables import table_share

__all__ = ["CROSS_ENTROPIES", "DLRM_DEVICES", "DlrmRow", "MegatronRow", "ramp_table9", "ramp_table10"]

_MEGATRON = read_toml("opticcl.training.models", "megatron.toml")
_DLRM = read_toml("opticcl.papers", "dlrm_ramp.toml")
CROSS_ENTROPIES: tuple[float, ...] = tuple(row[0] for row in _MEGATRON["rows"])
DLRM_DEVICES: tuple[int, ...] = tuple(_DLRM["devices"])


@dataclass(frozen=True, slots=True)
class MegatronRow:
    """A row of RAMP's table 9, computed.

    Args:
        cross_entropy: target [nats a token].
        model: blocks without embedding, as RAMP counts.
        job: an iteration on data x tensor devices.
        loss: that its parameters reach by the scaling law [nats a token].
        critical_batch: by the scaling law [sequences].
        steps: to the loss with the batch of the row [count].
        parameters_per_device: [count].
        gradient_bytes: of a device: what a data-parallel all_reduce sums, all tensors together [bytes].
        activation_bytes: of one tensor-parallel all_reduce; 0 where there is none [bytes].
        local_batch: of each copy of the model [sequences].
    """

    cross_entropy: float
    model: Model
    job: TaskGraph
    loss: float
    critical_batch: float
    steps: float
    parameters_per_device: int
    gradient_bytes: int
    activation_bytes: int
    local_batch: int


@cache
def ramp_table9(cross_entropy: float) -> MegatronRow:
    """The transformer that RAMP trains to a cross-entropy, divided as Megatron does.

    Shape, batch and degrees are those of the table, since the text gives no rule for them; all else is computed.

    Args:
        cross_entropy: of a row: 2.5 2.4 2.2 2 1.8 1.7 1.5 1.3 1.2 1.
    Raises: ParameterError: no such row.
    Source: RAMP 7.2.1, 7.3, table 9: half precision, Adam, activations recomputed and offloaded.
    """
    if cross_entropy not in CROSS_ENTROPIES:
        known = " ".join(f"{value:g}" for value in CROSS_ENTROPIES)
        raise ParameterError(f"RAMP table 9: no row with cross_entropy={cross_entropy}; it has {known}")
    values = next(row for row in _MEGATRON["rows"] if row[0] == cross_entropy)
    row = dict(zip(_MEGATRON["columns"], values, strict=True))
    sequence = _MEGATRON["sequence"]
    shape = {key: row[key] for key in ("layers", "hidden", "heads")}
    made = model("transformer", **shape, sequence=sequence, vocabulary=0)
    job = partition(
        made,
        row["data"] * row["tensor"],
        batch=row["batch"],
        data=row["data"],
        tensor=row["tensor"],
        device="a100",
        activations="offloaded",
    )
    loss = loss_of(made.parameters)
    sums = {task.size_bytes for task in job.tasks if task.group == "tensor"}
    layout = Layout(data=row["data"], tensor=row["tensor"])
    parameters = sum(sum(held(layer, layout)) for layer in made.layers)
    return MegatronRow(
        cross_entropy,
        made,
        job,
        loss,
        critical_batch_tokens(loss) / sequence,
        steps_to(loss, row["batch"] * sequence),
        parameters,
        parameters * made.bytes_per_parameter,
        sums.pop() if sums else 0,
        row["batch"] // row["data"],
    )


@dataclass(frozen=True, slots=True)
class DlrmRow:
    """A row of RAMP's table 10, computed.

    Args:
        devices: [count].
        model: its tables and layers.
        job: an iteration.
        table_parameters: of all tables [count].
        tables: that contain them [count].
        parameters_per_device: of tables [count].
        table_batch: samples of each of the devices that have different tables: batch / tables [count].
    """

    devices: int
    model: Model
    job: TaskGraph
    table_parameters: int
    tables: int
    parameters_per_device: int
    table_batch: int


@cache
def ramp_table10(devices: int) -> DlrmRow:
    """The DLRM that RAMP trains on a number of devices.

    Args:
        devices: of a row: 256 1024 4096 16384 65536.
    Raises: ParameterError: no such row.
    Source: RAMP 7.2.2, 7.3, table 10: half precision, sparse SGD.
    """
    if devices not in DLRM_DEVICES:
        raise ParameterError(f"RAMP table 10: no row with {devices} devices; it has {' '.join(map(str, DLRM_DEVICES))}")
    made = model(f"dlrm:preset=ramp_{devices}")
    job = partition(made, devices, batch=_DLRM["batch"], device="a100", optimiser="sgd")
    tables = [layer for layer in made.layers if layer.kind == "table"]
    return DlrmRow(
        devices,
        made,
        job,
        sum(table.parameters for table in tables),
        len(tables),
        table_share(made, len(job.groups["expert"].ranks)).parameters,
        _DLRM["batch"] // len(tables),
    )
