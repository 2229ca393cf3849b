"""Computation time on an accelerator: a roofline from its datasheet.

A layer takes the longer of its operations at a share of the peak rate and its memory traffic at the full memory rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

from opticcl.errors import ParameterError, UnknownNameError
from opticcl.files import read_toml
from opticcl.registry import convert_arguments, nearest, parse_call, write_call
from opticcl.units import ByteRate, Bytes

__all__ = ["DEVICES", "Accelerator", "Precision", "Work", "bytes_per_element", "device", "efficiency_of", "roofline_s"]

Precision = Literal["fp32", "tf32", "fp16", "bf16"]
PRECISIONS: tuple[str, ...] = get_args(Precision)
DEVICES: tuple[str, ...] = tuple(sorted(read_toml("opticcl.training", "devices.toml")))
MOST_EFFICIENT: Mapping[str, float] = {
    precision: sheet["most"]
    for precision, sheet in read_toml("opticcl.training", "training.toml")["efficiency"].items()
    if "most" in sheet
}
"""Highest recorded share of the peak, if above 1."""


@dataclass(frozen=True, slots=True)
class Accelerator:
    """An accelerator.

    Args:
        name: with its changed values.
        peak_per_s: peak rate by precision; a multiply-accumulate is two operations [1/s].
        memory_bytes: memory capacity [bytes].
        memory_bytes_per_s: memory bandwidth [byte/s].
    """

    name: str
    peak_per_s: Mapping[str, float]
    memory_bytes: float
    memory_bytes_per_s: float

    def peak(self, precision: str) -> float:
        """Peak rate of a precision [1/s].

        Raises: ParameterError: not in the datasheet.
        """
        if precision not in self.peak_per_s:
            known = ", ".join(self.peak_per_s)
            raise ParameterError(f"{self.name}: its datasheet has no {precision} rate; try precision={known}")
        return self.peak_per_s[precision]


def device(name: str) -> Accelerator:
    """The device of that name.

    Args: name: a100, or with other values: "a100:memory=80GB,memory_rate=2.039TB/s,peak=312e12".
    Raises: UnknownNameError, ParameterError.

    >>> device("a100").peak("fp16"), device("a100:memory=80GB").memory_bytes
    (312000000000000.0, 80000000000.0)
    """
    key, written = parse_call(name)
    key = key.replace(" ", "_")
    if key not in DEVICES:
        raise UnknownNameError(f"unknown device {name!r}; {nearest(key, DEVICES)}")
    sheet = read_toml("opticcl.training", "devices.toml")[key]
    peaks: dict[str, float] = {
        p: float(sheet[f"peak_{p}_per_s"]["value"]) for p in PRECISIONS if f"peak_{p}_per_s" in sheet
    }
    made = Accelerator(key, peaks, sheet["memory_bytes"]["value"], sheet["memory_bytes_per_s"]["value"])
    return _changed(made, written, **convert_arguments(_changed, written, key, positional=2)) if written else made


def _changed(
    made: Accelerator,
    written: Mapping[str, str],
    *,
    memory: Bytes | None = None,
    memory_rate: ByteRate | None = None,
    peak: float | None = None,
) -> Accelerator:
    """The same device with another memory or one rate for all precisions."""
    for key, value in (("memory", memory), ("memory_rate", memory_rate), ("peak", peak)):
        if value is not None and value <= 0:
            raise ParameterError(f"{made.name}: {key}={value:g} is not positive")
    return replace(
        made,
        name=write_call(made.name, written),
        peak_per_s=made.peak_per_s if peak is None else dict.fromkeys(PRECISIONS, peak),
        memory_bytes=made.memory_bytes if memory is None else memory,
        memory_bytes_per_s=made.memory_bytes_per_s if memory_rate is None else memory_rate,
    )


def bytes_per_element(precision: Precision) -> int:
    """Size of a parameter, a gradient or an activation [bytes]."""
    return int(read_toml("opticcl.training", "training.toml")["bytes_per_element"][precision])


def efficiency_of(precision: Precision, given: float | None = None) -> float:
    """Share of the peak rate that layers reach: the given one, or the default of training.toml.

    Raises: ParameterError: not positive, or above 1 (in fp32 above `MOST_EFFICIENT`).
    """
    if given is None:
        return float(read_toml("opticcl.training", "training.toml")["efficiency"][precision]["value"])
    most = MOST_EFFICIENT.get(precision, 1.0)
    if not 0 < given <= most:
        why = "" if most == 1 else ", the most on record: Winograd's convolutions multiply less than is counted"
        raise ParameterError(
            f"efficiency={given:g}: a share of the {precision} peak is above 0 and at most {most:g}{why}; try 0.4"
        )
    return given


@dataclass(frozen=True, slots=True)
class Work:
    """Work of a kernel or layer.

    Args:
        operations: multiplications and additions [count].
        memory_bytes: read and written [bytes].
    """

    operations: float
    memory_bytes: float

    def __mul__(self, times: float) -> Work:
        return Work(self.operations * times, self.memory_bytes * times)


def roofline_s(work: Work, on: Accelerator, precision: Precision, efficiency: float) -> float:
    """Time of some work [s].

    Args:
        work: operations and memory traffic.
        on: device.
        precision: of the operations.
        efficiency: share of the peak rate.
    Raises: ParameterError: the device has no rate of that precision.

    >>> a100 = device("a100")
    >>> roofline_s(Work(312e12, 0), a100, "fp16", 0.5), roofline_s(Work(0, 1.555e12), a100, "fp16", 0.5)
    (2.0, 1.0)
    """
    computing = work.operations / (on.peak(precision) * efficiency) if work.operations else 0.0
    return max(computing, work.memory_bytes / on.memory_bytes_per_s)
