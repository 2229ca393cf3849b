"""Measured times of layers instead of a roofline, as TOML or CSV::

device = "NVIDIA A100"                # optional
samples = 16                          # samples that the times are for

[[layers]]
layer = "conv1"
forward = "1.2 ms"                    # or a number of seconds
backward = "2.4 ms"

or a .csv with the header layer,forward_s,backward_s and a line per layer, whose times are for one sample. The file has every
layer of the model once. Times are for one device: if a layer is divided among devices, for its part.
"""

from __future__ import annotations

import csv
import io
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from opticcl.errors import UnitError, WorkloadError
from opticcl.files import write_whole
from opticcl.reading import content_of, converted, printable, reading, refusal
from opticcl.registry import nearest
from opticcl.training.model import Model
from opticcl.units import quantity, toml_number

__all__ = ["Times", "check_times", "read_times", "write_times"]

MAX_FILE_BYTES = 2**24
FORM = "write samples and [[layers]] with layer, forward, backward"
HEADER = ["layer", "forward_s", "backward_s"]


@dataclass(frozen=True, slots=True)
class Times:
    """Times of layers of one model on one device.

    Args:
        source: file or device.
        samples: samples that the times are for [count].
        forward_s, backward_s: by layer [s].
    """

    source: str
    samples: int
    forward_s: Mapping[str, float]
    backward_s: Mapping[str, float]


class _Layer(msgspec.Struct, forbid_unknown_fields=True):
    layer: str
    forward: float | str
    backward: float | str


class _Times(msgspec.Struct, forbid_unknown_fields=True):
    samples: int
    layers: list[_Layer]
    device: str = ""


def read_times(path: str | os.PathLike[str]) -> Times:
    """The times in a file; .csv is read as CSV, any other suffix as TOML.

    Raises: WorkloadError: another form, a duplicate layer, or an invalid time.
    """
    path = Path(path)
    with reading(path, "file of measured times") as file:
        content = content_of(path, file, MAX_FILE_BYTES, "is it a list of layers?")
    try:
        text = content.decode("utf-8-sig")
        rows, samples, source = _csv(path, text) if path.suffix.lower() == ".csv" else _toml(path, text)
    except (ValueError, RecursionError, csv.Error) as error:
        raise refusal(path, f"cannot be read: {error}; {FORM}") from None
    forward: dict[str, float] = {}
    backward: dict[str, float] = {}
    for where, name, ahead, back in rows:
        if name in forward:
            raise refusal(path, f"{where}: duplicate layer {name!r}")
        try:
            forward[name], backward[name] = quantity(ahead, "s", "forward"), quantity(back, "s", "backward")
        except UnitError as error:
            raise refusal(path, f"{where}: {error}") from None
        if min(forward[name], backward[name]) < 0:
            raise refusal(path, f"{where}: layer {name!r} has a negative time")
    return Times(source, samples, forward, backward)


Rows = list[tuple[str, str, float | str, float | str]]  # where, layer, forward, backward


def _csv(path: Path, text: str) -> tuple[Rows, int, str]:
    lines = csv.reader(io.StringIO(text), strict=True)
    if (header := next(lines, [])) != HEADER:
        raise refusal(path, f"line 1: expected {','.join(HEADER)}, found {','.join(header)[:60]!r}")

    rows: Rows = []
    for line in lines:
        if len(line) != len(HEADER):
            raise refusal(path, f"line {lines.line_num}: {len(line)} columns; expected {','.join(HEADER)}")
        rows.append((f"line {lines.line_num}", line[0], line[1], line[2]))
    return rows, 1, printable(path.name)


def _toml(path: Path, text: str) -> tuple[Rows, int, str]:
    read = converted(tomllib.loads(text, parse_float=toml_number), _Times, path, FORM)
    if not 1 <= read.samples <= 2**40:
        raise refusal(path, f"samples: {read.samples} is not a number of samples; give at least 1")
    rows: Rows = [(f"layers[{i}]", entry.layer, entry.forward, entry.backward) for i, entry in enumerate(read.layers)]
    return rows, read.samples, printable(read.device or path.name)


def check_times(times: Times, model: Model) -> None:
    """Raises WorkloadError: a layer of the model has no time, or a time is for an unknown layer."""
    names = {layer.name for layer in model.layers}
    if missing := [layer.name for layer in model.layers if layer.name not in times.forward_s]:
        raise WorkloadError(
            f"{times.source}: no times for {len(missing):,} of {len(names):,} layers of {model.name}, "
            f"first {missing[0]!r}; {nearest(missing[0], times.forward_s) if times.forward_s else FORM}"
        )
    if unknown := [name for name in times.forward_s if name not in names]:
        raise WorkloadError(f"{times.source}: {model.name} has no layer {unknown[0]!r}; {nearest(unknown[0], names)}")


def write_times(times: Times, path: str | os.PathLike[str]) -> None:
    """Write the times as TOML, atomically.

    Raises: OutputError: the file cannot be written.
    """
    entries = [
        f"\n[[layers]]\nlayer = {_text(name)}\nforward = {times.forward_s[name]!r}\nbackward = {times.backward_s[name]!r}\n"
        for name in times.forward_s
    ]
    head = f"device = {_text(times.source)}\nsamples = {times.samples}\n"
    with write_whole(Path(path)) as file:
        file.write((head + "".join(entries)).encode())


def _text(value: str) -> str:
    """A TOML string; the escapes of JSON are valid TOML."""
    return msgspec.json.encode(value).decode()
