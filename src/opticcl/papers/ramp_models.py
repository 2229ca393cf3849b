"""The models that RAMP trains: transformers by target loss (its table 9) and DLRM by devices (its table 10)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from opticcl.errors import ParameterError
from opticcl.files import read_toml
from opticcl.ir.task_graph import TaskGraph
from opticcl.training.model import Model
from opticcl.training.models import model
from opticcl.training.partition import partition
from opticcl.training.partition.tables import table_share
from opticcl.training.scaling_laws import loss_of
from opticcl.training.target import CROSS_ENTROPIES, Target, device_parameters, train_to

__all__ = ["DLRM_DEVICES", "DlrmRow", "MegatronRow", "ramp_table9", "ramp_table10"]

_PRINTED = read_toml("opticcl.papers", "claims/ramp_training_tables.toml")
_DLRM = read_toml("opticcl.papers", "dlrm_ramp.toml")
DLRM_DEVICES: tuple[int, ...] = tuple(_DLRM["devices"])


@dataclass(frozen=True, slots=True)
class MegatronRow:
    """A row of RAMP's table 9, computed.

    Args:
        target: model, degrees and batch, as the loss and 65,536 devices give them.
        job: an iteration with the batch that the table prints.
        loss: that its parameters reach by the scaling law [nats a token].
        steps: to the loss with the printed batch [count].
        parameters_per_device: [count].
        gradient_bytes: of a device: what a data-parallel all_reduce sums, all tensors together [bytes].
        activation_bytes: of one tensor-parallel all_reduce; 0 where there is none [bytes].
        local_batch: of each copy of the model, printed [sequences].
    """

    target: Target
    job: TaskGraph
    loss: float
    steps: float
    parameters_per_device: int
    gradient_bytes: int
    activation_bytes: int
    local_batch: int


@cache
def ramp_table9(cross_entropy: float) -> MegatronRow:
    """The transformer that RAMP trains to a cross-entropy, divided as Megatron does.

    Width and layers are those of the table, since the text gives no rule for them, and so is the batch of the job, which is the
    computed one in all rows but one; all else is computed.

    Args:
        cross_entropy: of a row: 2.5 2.4 2.2 2 1.8 1.7 1.5 1.3 1.2 1.
    Raises: ParameterError: no such row.
    Source: RAMP 7.2.1, 7.3, table 9: half precision, Adam, activations recomputed and offloaded.
    """
    if cross_entropy not in CROSS_ENTROPIES:
        known = " ".join(f"{value:g}" for value in CROSS_ENTROPIES)
        raise ParameterError(f"RAMP table 9: no row with cross_entropy={cross_entropy}; it has {known}")
    target = train_to(cross_entropy)
    batch = _PRINTED[f"RAMP-T9-batch-{float(cross_entropy)}"]["published"]
    job = target.job(batch)
    sums = {task.size_bytes for task in job.tasks if task.group == "tensor"}
    parameters = device_parameters(target.model, target.tensor)
    return MegatronRow(
        target,
        job,
        loss_of(target.model.parameters),
        target.steps_with(batch),
        parameters,
        parameters * target.model.bytes_per_parameter,
        sums.pop() if sums else 0,
        batch // target.data,
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
