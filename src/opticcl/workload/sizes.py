"""A list of sizes written by hand, as TOML::

name = "my job"
source = "profile of 2024-05-01"     # optional

[[calls]]
collective = "all_reduce"
size = "25 MB"                       # or a whole number of bytes
name = "gradients"                   # optional
count = 4                            # optional: that many such calls
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from opticcl.collective import collective_name
from opticcl.errors import ParameterError, UnitError
from opticcl.units import message_size
from opticcl.workload import CollectiveCall, Workload
from opticcl.workload._files import reading, refusal

__all__ = ["read_sizes", "workload_from_table"]

MAX_FILE_BYTES = 2**24
MAX_CALLS = 1_000_000
FORM = "write name, source, and [[calls]] with collective, size, name, count"


class _Call(msgspec.Struct, forbid_unknown_fields=True):
    collective: str
    size: int | str
    name: str = ""
    count: int = 1


class _Sizes(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    calls: list[_Call]
    source: str = ""


def read_sizes(path: Path) -> Workload:
    """The list of sizes in a TOML file.

    Raises: WorkloadError: no TOML, an unknown or missing key, no collective of that name or no size.
    """
    with reading(path, "list of sizes (.toml)") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise refusal(path, f"more than {MAX_FILE_BYTES:,} bytes; use count for calls that repeat")
    try:
        table = tomllib.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise refusal(path, f"is no TOML: {error}; {FORM}") from None
    return workload_from_table(table, path)


def workload_from_table(table: dict[str, Any], where: Path | str) -> Workload:
    """The workload of a parsed list of sizes.

    Args: where: the file, for messages.
    Raises: WorkloadError: an unknown or missing key, no collective of that name or no size.
    """
    try:
        sizes = msgspec.convert(table, _Sizes, strict=True)
    except msgspec.ValidationError as error:
        what, _, field = str(error).partition(" - at `$.")
        raise refusal(where, f"{field.rstrip('`') or 'file'}: {what}; {FORM}") from None
    if not sizes.calls:
        raise refusal(where, f"calls: there is none; {FORM}")
    calls: list[CollectiveCall] = []
    for i, entry in enumerate(sizes.calls):
        field = f"calls[{i}]"
        try:
            collective = collective_name(entry.collective)
            size_bytes = _size(entry.size, f"{field}.size")
        except UnitError as error:
            raise refusal(where, str(error)) from None
        except ParameterError as error:
            raise refusal(where, f"{field}.collective: {error}") from None
        if not 1 <= entry.count <= MAX_CALLS - len(calls):
            raise refusal(where, f"{field}.count: at least 1, and at most {MAX_CALLS:,} calls in all")
        calls += [CollectiveCall(entry.name or f"call {i + 1}", collective, size_bytes)] * entry.count
    return Workload(sizes.name, sizes.source or str(where), tuple(calls))


def _size(value: int | str, what: str) -> int:
    try:
        size_bytes = message_size(value, what)
    except OverflowError:  # an integer that no float holds
        raise UnitError(f"{what}: out of range; a message has 0 to 2**60 bytes") from None
    return value if isinstance(value, int) else size_bytes
