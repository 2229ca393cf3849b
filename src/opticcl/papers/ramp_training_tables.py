"""RAMP's tables 9 and 10: the models that it trains, divided among devices."""

from __future__ import annotations

from collections.abc import Callable

from opticcl.files import read_toml
from opticcl.papers import Found, claim, found
from opticcl.papers.ramp_models import DLRM_DEVICES, MegatronRow, ramp_table9, ramp_table10
from opticcl.training.scaling_laws import EXCESS_LOSS, parameters_for
from opticcl.training.target import CROSS_ENTROPIES

_PRINTED = read_toml("opticcl.papers", "claims/ramp_training_tables.toml")


def _rows(*cross_entropies: float) -> list[MegatronRow]:
    return [ramp_table9(value) for value in cross_entropies]


@claim("ramp", "RAMP-T9-params")
def parameters() -> list[float]:
    return [row.target.model.parameters for row in _rows(*CROSS_ENTROPIES)]


@claim("ramp", "RAMP-T9-566T")
def largest() -> float:
    return float(f"{max(row.target.model.parameters for row in _rows(*CROSS_ENTROPIES)):.3g}")


@claim("ramp", "RAMP-T9-heads")
def heads_divide() -> bool:
    """True if the partitioner, which refuses heads that do not divide, makes a job of every row."""
    return all(row.job.tasks for row in _rows(*CROSS_ENTROPIES))


@claim("ramp", "RAMP-T9-gpus")
def devices() -> list[int]:
    return [row.job.num_ranks for row in _rows(*CROSS_ENTROPIES)]


@claim("ramp", "RAMP-T9-ppgpu", "parameters_per_device", 2.5, 2.4, 2.2, 1.8, 1.5, 1.2, 1.0)
@claim("ramp", "RAMP-T9-dpmsg", "gradient_bytes", 2.4, 2.0, 1.7, 1.5, 1.3, 1.2, 1.0)
@claim("ramp", "RAMP-T9-mpmsg", "activation_bytes", 2.5, 2.4, 1.7, 1.5, 1.3, 1.2, 1.0)
def _of_rows(name: str, *cross_entropies: float) -> list[float]:
    return [getattr(row, name) for row in _rows(*cross_entropies)]


@claim("ramp", "RAMP-T10-params", "table_parameters", *DLRM_DEVICES)
@claim("ramp", "RAMP-T10-part", "parameters_per_device", *DLRM_DEVICES[:-1])
@claim("ramp", "RAMP-T10-batch", "table_batch", *(n for n in DLRM_DEVICES if n != 4096))
def _of_tables(name: str, *devices: int) -> list[float]:
    return [getattr(ramp_table10(n), name) for n in devices]


@claim("ramp", "RAMP-T10-gpus")
def table_devices() -> list[int]:
    """Devices that hold a part of the tables each, no part twice."""
    return [row.table_parameters // row.parameters_per_device for row in map(ramp_table10, DLRM_DEVICES)]


@claim("ramp", "RAMP-T10-part-65536")
def largest_part() -> Found:
    parameters = ramp_table10(65536).parameters_per_device
    return found(parameters, billions=parameters / 1e9)


@claim("ramp", "RAMP-T10-batch-4096")
def third_table_batch() -> Found:
    row = ramp_table10(4096)
    return found(row.table_batch, samples=_PRINTED["RAMP-T10-batch-4096"]["published"] * row.tables)


# The rows that stand alone: what is claimed, and what of a row it is.
_ALONE: dict[str, Callable[[MegatronRow], float]] = {
    "kaplanN": lambda row: row.loss,
    "ppgpu": lambda row: row.parameters_per_device,
    "dpmsg": lambda row: row.gradient_bytes,
    "mpmsg": lambda row: row.activation_bytes,
    "batch": lambda row: row.target.batch,
    "steps": lambda row: row.steps,
}


def _facts(what: str, id: str, row: MegatronRow) -> dict[str, float]:
    """What the reason of a row that stands alone names."""
    if what == "kaplanN":
        factors = [
            parameters_for(row.target.cross_entropy) / row.target.model.parameters for row in _rows(*CROSS_ENTROPIES)
        ]
        return {"least": min(factors), "most": max(factors)}
    if what == "mpmsg":
        return {"sequences": _PRINTED[id]["published"] / (row.activation_bytes / row.local_batch)}
    if what == "batch":
        made, copies = row.target, 2 * row.target.data
        each = int(made.critical_batch) // copies
        return {"loss": made.loss, "sequences": made.local_batch, "copies": copies, "each": each}
    return {"steps": {"excess": 100 * EXCESS_LOSS}, "ppgpu": {"billions": row.parameters_per_device / 1e9}}.get(
        what, {}
    )


def _alone(what: str, id: str, cross_entropy: float) -> Found:
    row = ramp_table9(cross_entropy)
    return found(_ALONE[what](row), **_facts(what, id, row))


for _what in _ALONE:
    for _value in CROSS_ENTROPIES:
        if (_id := f"RAMP-T9-{_what}-{_value}") in _PRINTED:
            claim("ramp", _id, _what, _id, _value)(_alone)
