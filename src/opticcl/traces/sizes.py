"""A list of sizes written by hand, as TOML::

name = "my job"
source = "profile of 2024-05-01"     # optional

[[calls]]
collective = "all_reduce"
size = "25 MB"                       # or a whole number of bytes
name = "gradients"                   # optional
count = 4                            # optional: number of such calls
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec

from opticcl.collective import collective_name
from opticcl.errors import ParameterError, UnitError
from opticcl.formats.encoding.reading import content_of, printable, reading, refusal
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recording import RankCall, RankTrace
from opticcl.units import message_size

__all__ = ["SizesReader"]

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


def _is_list_of_sizes(head: bytes) -> bool:
    return re.match(rb"(\xef\xbb\xbf)?(\s*(#[^\n]*)?\n)*\s*(\w+\s*=|\[\[\s*calls)", head) is not None


@register_trace("sizes", (".toml",), _is_list_of_sizes)
class SizesReader(TraceReader):
    """Reads a list of sizes."""

    def read(self, path: Path, options: ReadOptions, *, tasks: bool) -> RankTrace:
        """The calls of the list, as the base class describes."""
        with reading(path, "list of sizes (.toml)") as file:
            content = content_of(file, MAX_FILE_BYTES)
        if len(content) > MAX_FILE_BYTES:
            raise refusal(path, f"more than {MAX_FILE_BYTES:,} bytes; use count for repeated calls")
        try:
            table = tomllib.loads(content.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise refusal(path, f"is not valid TOML: {error}; {FORM}") from None
        return _calls_of(table, path)


def _calls_of(table: dict[str, Any], where: Path) -> RankTrace:
    """The calls of a parsed list of sizes.

    Raises: WorkloadError: an unknown or missing key, or no such collective or size.
    """
    try:
        sizes = msgspec.convert(table, _Sizes, strict=True)
    except msgspec.ValidationError as error:
        what, _, field = str(error).partition(" - at `$.")
        raise refusal(where, f"{field.rstrip('`') or 'file'}: {what}; {FORM}") from None
    if not sizes.calls:
        raise refusal(where, f"calls: the list is empty; {FORM}")
    calls: list[RankCall] = []
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
        name = printable(entry.name) or f"call {i + 1}"
        calls += [RankCall(name, collective, size_bytes, group_rule="the list") for _ in range(entry.count)]
    return RankTrace(printable(sizes.name), printable(sizes.source or str(where)), printable(where.name), calls)


def _size(value: int | str, what: str) -> int:
    try:
        size_bytes = message_size(value, what)
    except OverflowError:  # an integer that no float holds
        raise UnitError(f"{what}: out of range; a message has 0 to 2**60 bytes") from None
    return value if isinstance(value, int) else size_bytes
