"""How long an accelerator takes: a roofline of its datasheet.

A layer takes as long as its operations at a share of the peak rate, or as its memory traffic at the full memory rate,
whichever is longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

from opticcl.data import load
from opticcl.errors import ParameterError, UnknownNameError
from opticcl.registry import convert_arguments, nearest, parse_call, write_call
from opticcl.units import ByteRate, Bytes

__all__ = ["DEVICES", "Device", "Precision", "Work", "bytes_per_element", "device", "efficiency_of", "roofline_s"]

Precision = Literal["fp32", "tf32", "fp16", "bf16"]
PRECISIONS: tuple[str, ...] = get_args(Precision)
DEVICES: tuple[str, ...] = tuple(sorted(load("devices.toml")))
MOST_EFFICIENT: Mapping[str, float] = {
    precision: sheet["most"] for precision, sheet in load("training.toml")["efficiency"].items() if "most" in sheet
}
"""Highest share of the peak that is on record, where it is above 1."""


@dataclass(frozen=True, slots=True)
class Device:
    """An accelerator.

    Args:
        name: with what was changed.
        peak_per_s: operations by precision; a multiply-accumulate is two [1/s].
        memory_bytes: that it has [bytes].
        memory_bytes_per_s: that its memory moves [byte/s].
    """

    name: str
    peak_per_s: Mapping[str, float]
    memory_bytes: float
    memory_bytes_per_s: float

    def peak(self, precision: str) -> float:
        """Operations of that precision [1/s].

        Raises: ParameterError: the datasheet gives none.
        """
        if precision not in self.peak_per_s:
            known = ", ".join(self.peak_per_s)
            raise ParameterError(f"{self.name}: its datasheet gives no {precision} rate; try precision={known}")
        return self.peak_per_s[precision]


def device(name: str) -> Device:
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
    sheet = load("devices.toml")[key]
    peaks: dict[str, float] = {
        p: float(sheet[f"peak_{p}_per_s"]["value"]) for p in PRECISIONS if f"peak_{p}_per_s" in sheet
    }
    made = Device(key, peaks, sheet["memory_bytes"]["value"], sheet["memory_bytes_per_s"]["value"])
    return _changed(made, written, **convert_arguments(_changed, written, key, positional=2)) if written else made


def _changed(
    made: Device,
    written: Mapping[str, str],
    *,
    memory: Bytes | None = None,
    memory_rate: ByteRate | None = None,
    peak: float | None = None,
) -> Device:
    """The same device with another memory, or with one rate for all precisions."""
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
    """Of a parameter, a gradient or an activation [bytes]."""
    return int(load("training.toml")["bytes_per_element"][precision])


def efficiency_of(precision: Precision, given: float | None = None) -> float:
    """The share of the peak rate that layers reach: the given one, or the default of data/training.toml.

    Raises: ParameterError: not above 0, or above what such a share can be: 1, and in fp32 what `MOST_EFFICIENT` says.
    """
    if given is None:
        return float(load("training.toml")["efficiency"][precision]["value"])
    most = MOST_EFFICIENT.get(precision, 1.0)
    if not 0 < given <= most:
        why = "" if most == 1 else ", the most on record: Winograd's convolutions multiply less than is counted"
        raise ParameterError(
            f"efficiency={given:g}: a share of the {precision} peak is above 0 and at most {most:g}{why}; try 0.4"
        )
    return given


@dataclass(frozen=True, slots=True)
class Work:
    """What a device has to do.

    Args:
        operations: multiplications and additions [count].
        memory_bytes: read and written [bytes].
    """

    operations: float
    memory_bytes: float

    def __mul__(self, times: float) -> Work:
        return Work(self.operations * times, self.memory_bytes * times)


def roofline_s(work: Work, on: Device, precision: Precision, efficiency: float) -> float:
    """Time of some work [s].

    Args: efficiency: share of the peak rate that is reached.
    Raises: ParameterError: the device has no rate of that precision.

    >>> a100 = device("a100")
    >>> roofline_s(Work(312e12, 0), a100, "fp16", 0.5), roofline_s(Work(0, 1.555e12), a100, "fp16", 0.5)
    (2.0, 1.0)
    """
    computing = work.operations / (on.peak(precision) * efficiency) if work.operations else 0.0
    return max(computing, work.memory_bytes / on.memory_bytes_per_s)
