"""RAMP's tables 9 and 10: the models that it trains, divided among devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from opticcl.data import load
from opticcl.papers import claim
from opticcl.workload.ramp_tables import (
    CROSS_ENTROPIES,
    DLRM_DEVICES,
    DlrmRow,
    MegatronRow,
    ramp_table9,
    ramp_table10,
)

_PRINTED = load("papers/ramp_training_tables.toml")

_megatron: Callable[[float], MegatronRow] = cache(ramp_table9)
_dlrm: Callable[[int], DlrmRow] = cache(ramp_table10)


def _as_printed(id: str, values: Sequence[float]) -> list[float]:
    """Values with as many digits as the table shows."""
    digits = _PRINTED[id]["printed_digits"]
    return [float(f"{value:.{places}g}") for value, places in zip(values, digits, strict=True)]


def _rows(*cross_entropies: float) -> list[MegatronRow]:
    return [_megatron(value) for value in cross_entropies]


@claim("ramp", "RAMP-T9-params")
def parameters() -> list[float]:
    return _as_printed("RAMP-T9-params", [row.model.parameters for row in _rows(*CROSS_ENTROPIES)])


@claim("ramp", "RAMP-T9-566T")
def largest() -> float:
    return float(f"{max(row.model.parameters for row in _rows(*CROSS_ENTROPIES)):.3g}")


@claim("ramp", "RAMP-T9-heads")
def heads_divide() -> bool:
    """True if the partitioner, which refuses heads that do not divide, makes a job of every row."""
    return all(row.job.tasks for row in _rows(*CROSS_ENTROPIES))


@claim("ramp", "RAMP-T9-gpus")
def devices() -> list[int]:
    return [row.job.num_ranks for row in _rows(*CROSS_ENTROPIES)]


@claim("ramp", "RAMP-T9-ppgpu")
def parameters_per_device() -> list[float]:
    rows = _rows(2.5, 2.4, 2.2, 1.8, 1.5, 1.2, 1.0)
    return _as_printed("RAMP-T9-ppgpu", [row.parameters_per_device for row in rows])


@claim("ramp", "RAMP-T9-dpmsg")
def gradient_bytes() -> list[float]:
    rows = _rows(2.4, 2.0, 1.7, 1.5, 1.3, 1.2, 1.0)
    return _as_printed("RAMP-T9-dpmsg", [row.gradient_bytes for row in rows])


@claim("ramp", "RAMP-T9-mpmsg")
def activation_bytes() -> list[float]:
    rows = _rows(2.5, 2.4, 1.7, 1.5, 1.3, 1.2, 1.0)
    return _as_printed("RAMP-T9-mpmsg", [row.activation_bytes for row in rows])


@claim("ramp", "RAMP-T10-params")
def table_parameters() -> list[float]:
    return _as_printed("RAMP-T10-params", [_dlrm(n).table_parameters for n in DLRM_DEVICES])


@claim("ramp", "RAMP-T10-gpus")
def table_devices() -> list[int]:
    """Devices that hold a part of the tables each, no part twice."""
    return [row.table_parameters // row.parameters_per_device for row in map(_dlrm, DLRM_DEVICES)]


@claim("ramp", "RAMP-T10-part")
def part_parameters() -> list[float]:
    return _as_printed("RAMP-T10-part", [_dlrm(n).parameters_per_device for n in DLRM_DEVICES[:-1]])


@claim("ramp", "RAMP-T10-part-65536")
def largest_part() -> int:
    return _dlrm(65536).parameters_per_device


@claim("ramp", "RAMP-T10-batch")
def table_batches() -> list[int]:
    return [_dlrm(n).table_batch for n in DLRM_DEVICES if n != 4096]


@claim("ramp", "RAMP-T10-batch-4096")
def third_table_batch() -> int:
    return _dlrm(4096).table_batch


# The rows that stand alone: what is claimed, and what of a row it is.
_ALONE: dict[str, Callable[[MegatronRow], float]] = {
    "kaplanN": lambda row: row.loss,
    "ppgpu": lambda row: row.parameters_per_device,
    "dpmsg": lambda row: row.gradient_bytes,
    "mpmsg": lambda row: row.activation_bytes,
    "batch": lambda row: round(row.critical_batch),
    "steps": lambda row: row.steps,
}


def _alone(what: str, cross_entropy: float) -> Callable[[], float]:
    return lambda: _ALONE[what](_megatron(cross_entropy))


for _what in _ALONE:
    for _value in CROSS_ENTROPIES:
        if (_id := f"RAMP-T9-{_what}-{_value}") in _PRINTED:
            claim("ramp", _id)(_alone(_what, _value))
