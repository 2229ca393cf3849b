"""Models with embedding tables: tables are divided among devices, the other layers are copied.

Whole tables first; with more devices than tables, each table is divided into equal groups of columns. A device looks up the
rows of its part for all samples of its group, and an all_to_all sends every device all columns of its own samples::

    look-up ── all_to_all ──┐                         ┌── all_to_all ── update of the rows
    bottom layers ──────────┴── interaction ── top ───┴── bottom layers, gradients of all layers

Source: RAMP 7.2.2; Mudigere et al. 2022, Software-hardware co-design for DLRM: table-wise, column-wise and data parallelism.
Reading: RAMP prints a batch per GPU of batch / tables, so that devices with columns of the same table would repeat each
    other's dense computation. Here every device has its own samples; message and total are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opticcl.errors import WorkloadError
from opticcl.ir.task_graph import Phase, Task
from opticcl.training.device import Work, roofline_s
from opticcl.training.model import Model
from opticcl.training.partition.shares import Configuration, seconds
from opticcl.training.partition.tasks import update_s

__all__ = ["TableShare", "divides_tables", "has_tables", "table_share", "table_tasks"]


def has_tables(model: Model) -> bool:
    """Whether the model has embedding tables."""
    return any(layer.kind == "table" for layer in model.layers)


@dataclass(frozen=True, slots=True)
class TableShare:
    """Share of one device in the tables.

    Args:
        names: of its tables, or of the table whose columns it has.
        parameters: of its tables or columns [count].
        columns: in all, the elements of an all_to_all per sample [count].
        read: elements looked up and added per sample [count].
    """

    names: tuple[str, ...]
    parameters: int
    columns: int
    read: int


def table_share(model: Model, devices: int, device: int = 0) -> TableShare:
    """The part of one of the devices that share the tables.

    Args:
        model: with tables.
        devices: that share them [count].
        device: index of the device.
    Raises: WorkloadError: the number of devices divides neither the tables nor their columns.
    """
    tables = [layer for layer in model.layers if layer.kind == "table"]
    count = len(tables)
    if not divides_tables(model, devices):
        ways = min(table.ways for table in tables)
        raise WorkloadError(
            f"{model.name}: expert={devices} divides {count} tables of {ways} columns into unequal parts; "
            f"try expert={_near(model, count * ways, devices)}"
        )
    each, cuts = max(count // devices, 1), max(devices // count, 1)
    mine = tables[device * each : (device + 1) * each] if cuts == 1 else [tables[device // cuts]]
    return TableShare(
        tuple(table.name for table in mine),
        sum(table.parameters // cuts for table in mine),
        sum(table.exchanged // cuts for table in mine),
        sum(table.macs // cuts for table in mine),
    )


def _near(model: Model, most: int, devices: int) -> int:
    """The largest number of devices up to `most` that tables divide among."""
    return next(n for n in range(min(devices, most), 0, -1) if divides_tables(model, n))


def divides_tables(model: Model, devices: int) -> bool:
    """Whether tables, or their columns, divide evenly among the devices."""
    tables = [layer for layer in model.layers if layer.kind == "table"]
    cuts = max(devices // len(tables), 1)
    return max(devices, len(tables)) % min(devices, len(tables)) == 0 and all(t.ways % cuts == 0 for t in tables)


def table_tasks(model: Model, choices: Configuration) -> tuple[Task, ...]:
    """Tasks of the first device."""
    layout = choices.layout
    share = table_share(model, layout.expert)
    dense = [layer for layer in model.layers if layer.kind != "table"]
    join = next((i for i, layer in enumerate(dense) if layer.kind == "interaction"), 0)
    made: list[Task] = []

    def compute(name: str, compute_s: float, phase: Phase, after: Sequence[int]) -> int:
        made.append(Task(name, compute_s=compute_s, after=tuple(after), phase=phase))
        return len(made) - 1

    def call(name: str, collective: str, size: int, group: str, phase: Phase, after: int, fusible: bool = False) -> int:
        made.append(Task(name, 0.0, collective, size, group, (after,), phase, fusible))
        return len(made) - 1

    samples = choices.batch // layout.data  # of all devices that share the tables
    exchange = share.columns * samples * choices.width
    arrived = compute("tables look-up", _lookup_s(share, samples, choices), "forward", ())
    if layout.expert > 1:
        arrived = call("tables to samples", "all_to_all", exchange, "expert", "forward", arrived)
    last: list[int] = []
    for i, layer in enumerate(dense):
        after = [*last, arrived] if i == join else last
        last = [compute(f"{layer.name} forward", seconds(layer, choices)[0], "forward", after)]
    back, gradients = arrived, []
    for i, layer in reversed(list(enumerate(dense))):
        last = [compute(f"{layer.name} backward", seconds(layer, choices)[1], "backward", last)]
        if i == join:
            back = last[0]
        if i == join and layout.expert > 1:
            back = call("samples to tables", "all_to_all", exchange, "expert", "backward", back)
        if layout.copies > 1:
            for number, size in reversed(list(enumerate(layer.tensors, 1))):
                name = f"{layer.name} gradient {number}"
                size_bytes = size * choices.width
                gradients.append(call(name, "all_reduce", size_bytes, "data", "backward", last[0], fusible=True))
    if not dense and layout.expert > 1:
        back = call("samples to tables", "all_to_all", exchange, "expert", "backward", back)
    touched = min(share.read * samples, share.parameters)
    if layout.data > 1:  # rows changed by other copies of the tables
        group = "expert_data" if layout.expert > 1 else "data"
        size = layout.data * touched * choices.width
        back = call("table rows of all copies", "all_gather", size, group, "backward", back)
    if choices.optimiser != "none":
        rows = min(layout.data * touched, share.parameters)
        compute("tables update", _rows_update_s(share, samples, rows, choices), "update", [back])
        parameters = sum(layer.parameters for layer in dense)
        if parameters:
            compute("update", update_s(parameters, choices), "update", [*gradients, *last])
    return tuple(made)


def _lookup_s(share: TableShare, samples: int, choices: Configuration) -> float:
    """Rows are read, added and written: memory bounds it."""
    if choices.times is not None:
        return sum(choices.times.forward_s[name] for name in share.names) * samples / choices.times.samples
    work = Work(share.read * samples, (share.read + share.columns) * samples * choices.width)
    return roofline_s(work, choices.device, choices.precision, choices.efficiency)


def _rows_update_s(share: TableShare, samples: int, rows: int, choices: Configuration) -> float:
    """A row and its gradient are read, the row is written."""
    if choices.times is not None:
        return sum(choices.times.backward_s[name] for name in share.names) * samples / choices.times.samples
    return 3 * rows * choices.width / choices.device.memory_bytes_per_s
