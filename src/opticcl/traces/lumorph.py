"""Reader of LUMORPH's logs: one line for each all-reduce and layer-to-layer transfer of an iteration::

    AR;bytes;gpu,gpu,...                            all-reduce in a group
    L2L;bytes;layer;direction;source;destination    direction 0 forward, 1 backward

After `|` a line may have its duration [ms]. The logs contain many groups of one GPU and transfers from a GPU to itself,
which do not use the network and are left out.

Source: lumorphnetwork/code, logs/*/comms_*.log, as `comms_4` to `comms_256` are written.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from opticcl.reading import DamageError, check_size, printable, reading, title
from opticcl.traces.call_rows import CallRows
from opticcl.traces.line_scan import NUMBERS, TEXT, Lines, line_blocks
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recording import RankCall, RankTrace
from opticcl.units import number_of

__all__ = ["LumorphReader"]

FORM = "write AR;bytes;gpu,gpu,... or L2L;bytes;layer;direction;source;destination"
_WAYS = ("forward", "backward")
_DIRECTIONS = dict(zip("01", _WAYS, strict=True))
_MOST = 10**9  # GPUs and layers below have a number
_OTHER = 2 * _MOST  # label of the first layer without one


def _is_log(head: bytes) -> bool:
    return re.match(rb"(\xef\xbb\xbf)?\s*(AR|L2L)\s*;", head) is not None


@register_trace("lumorph", (".log",), _is_log)
class LumorphReader(TraceReader):
    """Reads a LUMORPH log."""

    def read(self, path: Path, options: ReadOptions, *, tasks: bool) -> RankTrace:
        """The all-reduces and transfers of a log of all GPUs, in its order, as the base class describes."""
        rows, names = CallRows(), _Names({})
        with reading(path, "LUMORPH log", "line") as file:
            for lines in line_blocks(file, True, ";", 5):
                _add(lines, rows, names)
        source = f"LUMORPH log {printable(path.name)}"
        return RankTrace(title(path), source, printable(path.name), rows.table(names), whole_job=True)


@dataclass(frozen=True, slots=True)
class _Names:
    """Names of calls by their labels: -n is line n, 2 l + d direction d of layer l; other layers have names of their own."""

    other: dict[str, int]

    def label(self, name: str) -> int:
        """Label of a layer that is not a number."""
        return _OTHER + self.other.setdefault(name, len(self.other))

    def __call__(self, label: int) -> str:
        if label < 0:
            return f"line {-label}"
        if label >= _OTHER:
            return next(name for name, number in self.other.items() if number == label - _OTHER)
        return f"layer {label // 2} {_WAYS[label % 2]}"


def _add(lines: Lines, rows: CallRows, names: _Names) -> None:
    """Add the calls of some lines.

    Raises: DamageError: a line has another form.
    """
    size, layer, way, src, dst = lines.numbers.T
    usual = (lines.found == NUMBERS) & (way < 2) & (np.maximum(src, dst) < _MOST) & (layer < _MOST)
    kind = np.full(len(usual), rows.kind("send"), np.int32)
    took_s, label = lines.took_ms * 1e-3, 2 * layer + way
    kept = usual.copy()
    for line in np.flatnonzero(~usual).tolist():
        number = lines.first + line
        if lines.found[line] == TEXT:
            ranks = _group(lines.text(line))
            if ranks:
                kind[line], src[line], dst[line], label[line] = rows.kind("all_reduce", ranks), -1, -1, -number
                kept[line] = True
                continue
        if not (text := lines.line(line)):
            continue
        call = _call(number, text)
        kept[line] = True
        size[line], took_s[line] = call.size_bytes, call.measured_s
        if call.is_transfer:
            src[line], dst[line] = call.ranks
            label[line] = names.label(call.name)
        else:
            kind[line], src[line], dst[line], label[line] = rows.kind("all_reduce", call.ranks), -1, -1, -number
    rows.add(*(one[kept] for one in (kind, size, src, dst, took_s, label, np.zeros(len(kind), np.int32))))


def _call(number: int, line: str) -> RankCall:
    """The call in a line.

    Raises: DamageError: the line has another form.
    """
    record, _, took = line.partition("|")
    kind, *rest = (part.strip() for part in record.split(";"))
    if kind == "AR" and len(rest) == 2:
        ranks = _group(rest[1])
        if not ranks:
            raise DamageError(number, f"{_short(rest[1])!r} is not a list of distinct GPUs; {FORM}")
        size_bytes, took_s = _size(number, rest[0]), _took(number, took)
        return RankCall(f"line {number}", "all_reduce", size_bytes, measured_s=took_s, ranks=ranks)
    if kind == "L2L" and len(rest) == 5 and rest[2] in _DIRECTIONS:
        ends = _group(f"{rest[3]},{rest[4]}", pair=True)
        if len(ends) != 2:
            raise DamageError(number, f"{_short(rest[3])!r} to {_short(rest[4])!r} is not a pair of GPUs; {FORM}")
        name = printable(f"layer {rest[1]} {_DIRECTIONS[rest[2]]}")
        return RankCall(name, "send", _size(number, rest[0]), measured_s=_took(number, took), ranks=ends)
    raise DamageError(number, f"{_short(line)!r} is not a record; {FORM}")


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:60] + "..."


@lru_cache(maxsize=256)
def _group(text: str, pair: bool = False) -> tuple[int, ...]:
    """The GPUs of "0,1,2"; empty if the text is not such a list."""
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch("[0-9]{1,9}", part) for part in parts):
        return ()
    ranks = tuple(map(int, parts))
    return ranks if pair or len(set(ranks)) == len(ranks) else ()


def _size(number: int, text: str) -> int:
    digits = text.removeprefix("-")
    if not re.fullmatch("[0-9]{1,40}", digits):
        raise DamageError(number, f"{_short(text)!r} is not a whole number of bytes; {FORM}")
    return check_size(int(text), number, "the message")


def _took(number: int, text: str) -> float:
    if not text.strip():
        return 0.0
    try:
        took_s = number_of(text) * 1e-3
    except ValueError:
        took_s = -1.0
    if not 0 <= took_s < math.inf:
        raise DamageError(number, f"{_short(text)!r} after | is not a time in milliseconds")
    return took_s
