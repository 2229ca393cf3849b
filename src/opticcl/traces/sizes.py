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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from opticcl.collective import collective_name
from opticcl.errors import ParameterError, UnitError
from opticcl.reading import content_of, printable, reading, refusal
from opticcl.traces.call_rows import CallRows
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recording import RankTrace
from opticcl.units import MAX_MESSAGE_BYTES, message_size, toml_number

__all__ = ["Listed", "SizesReader", "parsed", "scanned"]

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
    return re.match(rb"(\xef\xbb\xbf)?([ \t\r]*+(#[^\n]*)?\n)*+[ \t]*+(\w+\s*=|\[\[\s*calls)", head) is not None


@register_trace("sizes", (".toml",), _is_list_of_sizes)
class SizesReader(TraceReader):
    """Reads a list of sizes."""

    def read(self, path: Path, options: ReadOptions, *, tasks: bool) -> RankTrace:
        """The calls of the list, as the base class describes."""
        with reading(path, "list of sizes (.toml)") as file:
            content = content_of(path, file, MAX_FILE_BYTES, "use count for repeated calls, or write a LUMORPH log")
        try:
            text = content.decode("utf-8-sig").replace("\r\n", "\n")
            listed = scanned(text, path) or parsed(text, path)
        except (ValueError, RecursionError) as error:
            raise refusal(path, f"is not valid TOML: {error}; {FORM}") from None
        return _trace(listed, path)


class Listed(NamedTuple):
    """A list of sizes, as columns."""

    name: str
    source: str
    collective: Sequence[str]
    size: Sequence[int | str]
    names: Sequence[str]
    counts: Sequence[int]


def parsed(text: str, where: Path) -> Listed:
    """The list in a text, by the parser of TOML.

    Raises: ValueError: no TOML. WorkloadError: an unknown or missing key.
    """
    read = _converted(tomllib.loads(text, parse_float=toml_number), where)
    columns = ([getattr(call, key) for call in read.calls] for key in ("collective", "size", "name", "count"))
    return Listed(read.name, read.source, *columns)


def _converted(table: dict[str, Any], where: Path) -> _Sizes:
    try:
        return msgspec.convert(table, _Sizes, strict=True)
    except msgspec.ValidationError as error:
        what, _, field = str(error).partition(" - at `$.")
        raise refusal(where, f"{field.rstrip('`') or 'file'}: {what}; {FORM}") from None


_START = re.compile(r"^\[\[calls\]\][ \t]*$", re.MULTILINE)
_KEY = re.compile(r"^[ \t]*(\w+)[ \t]*=", re.MULTILINE | re.ASCII)
_TEXT, _WHOLE = r'"([^"\\\x00-\x1f\x7f]*)"', r"([1-9][0-9]{0,17}|0)"
_VALUES = {"collective": _TEXT, "size": rf"(?:{_WHOLE}|{_TEXT})", "name": _TEXT, "count": _WHOLE}
_END = r"[ \t]*(?:\n|\Z)"


def scanned(text: str, where: Path) -> Listed | None:
    """The same for a list as a program writes it: keys in the order of the first call, plain texts and numbers, no remarks.

    Returns: None if any part has another form. Then the parser of TOML, which takes ten times as long, must read it.
    Raises: WorkloadError: an unknown or missing key before the calls.
    """
    first = _START.search(text)
    if first is None:
        return None
    second = _START.search(text, first.end())
    keys = _KEY.findall(text, first.end(), second.start() if second else len(text))
    if not _VALUES.keys() >= set(keys) or len(set(keys)) < len(keys):
        return None
    usual = [key for key in _VALUES if key in keys] == keys
    order = list(_VALUES) if usual else [*keys, *(key for key in _VALUES if key not in keys)]
    lines = "".join(rf"(?:[ \t]*{key}[ \t]*=[ \t]*{_VALUES[key]}{_END})?" for key in order)
    rows = re.compile(rf"(\[\[calls\]\]{_END}{lines}(?:[ \t]*\n)*)").findall(text, first.start())
    whole, *columns = zip(*rows, strict=True)
    if sum(map(len, whole)) < len(text) - first.start():
        return None  # something else stands between two calls
    groups = [group for key in order for group in ((key, "written size") if key == "size" else (key,))]
    column_of = dict(zip(groups, columns, strict=True))
    sizes = [int(n) if n else text for n, text in zip(column_of["size"], column_of["written size"], strict=True)]
    if "" in column_of["collective"] or "" in sizes:
        return None
    try:
        head = tomllib.loads(text[: first.start()])
    except ValueError:  # perhaps the first call is within a text
        return None
    if "calls" in head:
        return None
    about = _converted({**head, "calls": []}, where)
    counts = [int(n) if n else 1 for n in column_of["count"]]
    return Listed(about.name, about.source, column_of["collective"], sizes, column_of["name"], counts)


@dataclass(frozen=True, slots=True)
class _Names:
    """Names of calls by their place in the list."""

    names: Sequence[str]

    def __call__(self, label: int) -> str:
        return printable(self.names[label]) or f"call {label + 1}"


def _trace(listed: Listed, where: Path) -> RankTrace:
    """The calls of a list.

    Raises: WorkloadError: no call, no such collective or size, or too many calls.
    """
    if not listed.size:
        raise refusal(where, f"calls: the list is empty; {FORM}")
    rows, kinds, sizes, left = CallRows(), list[int](), list[int](), MAX_CALLS
    known: dict[str, int] = {}
    written: dict[int | str, int] = {}
    for i, (collective, size, count) in enumerate(zip(listed.collective, listed.size, listed.counts, strict=True)):
        try:
            if collective not in known:
                known[collective] = rows.kind(collective_name(collective), group_rule="the list")
            if not isinstance(size, int) and size not in written:
                written[size] = message_size(size, f"calls[{i}].size")
        except UnitError as error:
            raise refusal(where, str(error)) from None
        except ParameterError as error:
            raise refusal(where, f"calls[{i}].collective: {error}") from None
        kinds.append(known[collective])
        sizes.append(_whole(size, i, where) if isinstance(size, int) else written[size])
        left -= count
        if count < 1 or left < 0:
            raise refusal(where, f"calls[{i}].count: at least 1, and at most {MAX_CALLS:,} calls in all")
    times = np.array(listed.counts)
    label = np.repeat(np.arange(len(times)), times)
    kind, size_bytes, no_rank = np.array(kinds)[label], np.array(sizes)[label], np.full(len(label), -1)
    rows.add(kind, size_bytes, no_rank, no_rank, np.zeros(len(label)), label, np.zeros(len(label), np.int64))
    source = printable(listed.source or str(where))
    return RankTrace(printable(listed.name), source, printable(where.name), rows.table(_Names(listed.names)))


def _whole(size: int, i: int, where: Path) -> int:
    """A whole number of bytes, exactly.

    Args:
        size: as written.
    Raises: WorkloadError: no message has that size.
    """
    if 0 <= size <= MAX_MESSAGE_BYTES:
        return size
    try:
        return message_size(size, f"calls[{i}].size")
    except UnitError as error:
        raise refusal(where, str(error)) from None
