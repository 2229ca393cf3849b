"""A model written by hand, as TOML::

name = "my model"
source = "profile of 2024-05-01"      # optional
sample = "image of 224x224x3"         # optional
bytes_per_parameter = 4               # optional: 4, or 2 for half precision

[[layers]]
name = "conv1"                        # with count, a number is appended to the name
tensors = [9408, 64]                  # parameters of each gradient tensor; none if left out
macs = 118013952                      # multiply-accumulates of a sample, forward
outputs = 802816                      # elements of a sample passed to the next layer
kind = "conv"                         # optional: conv linear norm embedding attention feed_forward experts output table ...
activations = 1605632                 # optional: elements of a sample kept for the backward pass; default: outputs
count = 1                             # optional: number of such layers

[[layers]]
name = "block"
kind = "attention"                    # can be divided among tensor-parallel devices
tensors = [1024, 1024, 3145728, 3072, 1048576, 1024]
split = [false, false, true, true, true, false]   # which tensors are divided
ways = 16                             # maximum number of parts: its heads
# exchanged = 524288                  # of experts and tables: elements of an all_to_all; default: outputs
macs = 2684354560
outputs = 524288
count = 24
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from opticcl.errors import WorkloadError
from opticcl.reading import content_of, converted, printable, reading, refusal
from opticcl.training.config_file import is_config, model_from_config
from opticcl.training.model import Kind, Layer, Model
from opticcl.units import toml_number

__all__ = ["model_from_table", "read_model"]

MAX_FILE_BYTES = 2**24
MAX_LAYERS = 100_000
FORM = "write name and [[layers]] with name, tensors, macs, outputs"


class _Layer(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    macs: int
    outputs: int
    tensors: list[int] = []
    kind: Kind = "other"
    activations: int | None = None
    split: list[bool] = []
    ways: int = 1
    exchanged: int | None = None
    count: int = 1


class _Model(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    layers: list[_Layer]
    source: str = ""
    sample: str = "a sample"
    bytes_per_parameter: int = 4


def read_model(path: Path) -> Model:
    """The model in a TOML file.

    Raises: WorkloadError: invalid TOML, an unknown or missing key, or a count out of range.
    """
    with reading(path, "model (.toml)") as file:
        content = content_of(path, file, MAX_FILE_BYTES, "use count for repeated layers")
    try:
        table = tomllib.loads(content.decode("utf-8-sig"), parse_float=toml_number)
    except (ValueError, RecursionError) as error:
        raise refusal(path, f"is not valid TOML: {error}; {FORM}") from None
    return model_from_config(table, path) if is_config(table) else model_from_table(table, path)


def model_from_table(table: dict[str, Any], where: Path | str) -> Model:
    """The model of a parsed file.

    Args: where: the file, for messages.
    Raises: WorkloadError: an unknown or missing key, or a count out of range.
    """
    read = converted(table, _Model, where, FORM)
    if read.bytes_per_parameter not in (2, 4):
        raise refusal(where, f"bytes_per_parameter: {read.bytes_per_parameter} is neither 2 nor 4")
    try:
        layers = tuple(_layers(read, where))
        return Model(
            printable(read.name), printable(read.source) or str(where), read.sample, layers, read.bytes_per_parameter
        )
    except WorkloadError as error:
        raise error if str(error).startswith(f"{where}: ") else refusal(where, str(error)) from None


def _layers(read: _Model, where: Path | str) -> Iterator[Layer]:
    left = MAX_LAYERS
    for i, entry in enumerate(read.layers):
        if not 1 <= entry.count <= left:
            raise refusal(where, f"layers[{i}].count: at least 1, and at most {MAX_LAYERS:,} layers in all")
        left -= entry.count
        carried = entry.outputs if entry.kind in ("experts", "table") else 0
        kept = entry.outputs if entry.activations is None else entry.activations
        for number in range(1, entry.count + 1):
            yield Layer(
                printable(entry.name) + (str(number) if entry.count > 1 else ""),
                entry.kind,
                tuple(entry.tensors),
                entry.macs,
                entry.outputs,
                kept,
                tuple(entry.split),
                entry.ways,
                carried if entry.exchanged is None else entry.exchanged,
            )
