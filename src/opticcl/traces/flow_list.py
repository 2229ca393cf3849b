"""Reader of lists of flows, as Netbench and the SiPAC authors' generators write them: one flow in a line.

::

    0,32,33,125000        start [ns], source, destination, bytes        separated by commas
    32 33 125000 0        source, destination, bytes, start [ns]        separated by spaces
    0 1 250000 6.5e-06    the same with the start in seconds, as `opticcl compile -o plan.flows` writes it

Flows of one start are sent together, those of a later start follow; how much later, and in which unit, does not count. In these
files hosts are often numbered behind the switches: they are numbered from 0 again, in their order.

Source: netbench, flow_arrivals.txt; brianwuuu/SiPAC, traffic generators.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.reading import DamageError, check_size, head_of, printable, reading, title
from opticcl.traces.call_rows import CallRows
from opticcl.traces.line_scan import NUMBERS, Lines, line_blocks
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recording import RankTrace
from opticcl.units import counted

__all__ = ["FlowListReader"]

FORM = "write start,source,destination,bytes or source destination bytes start"
_START = r"[0-9]{1,18}(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?"
_LINE = re.compile(_START + r"(?:\s*,\s*[0-9]{1,18}){3}|(?:[0-9]{1,18}\s+){3}" + _START, re.ASCII)
_LIKE = re.compile(_LINE.pattern.replace("{1,18}", "+"), re.ASCII)
"""A line of this form, with numbers of any length; the reader refuses long ones with their line."""


def _is_flow_list(head: bytes) -> int:
    rows = head.decode("utf-8", "replace").lstrip("\ufeff").splitlines()
    rows = [row.strip() for row in rows[: max(1, len(rows) - 1)] if row.strip() and not row.startswith("#")]
    return 2 if rows and all(_LIKE.fullmatch(row) for row in rows[:20]) else 0


@register_trace("flow_list", (), _is_flow_list)
class FlowListReader(TraceReader):
    """Reads a list of flows of all hosts."""

    def read(self, path: Path, options: ReadOptions, *, tasks: bool) -> RankTrace:
        """The flows in the order of their start, as the base class describes."""
        with reading(path, "list of flows", "line") as file:
            form = _Order.of(head_of(path))
            parts = [_columns(lines, form) for lines in line_blocks(file, False, form.separator, 4)]
        columns = _Columns(*map(np.concatenate, zip(*parts, strict=True)))
        columns = columns.take(np.argsort(columns.start, kind="stable"))  # as they stand in the file
        starts, group = np.unique(columns.start, return_inverse=True)
        hosts, number = np.unique(np.concatenate([columns.src, columns.dst]), return_inverse=True)
        src, dst = number.reshape(2, -1)
        rows = CallRows()
        kind = np.full(len(src), rows.kind("send"))
        rows.add(kind, columns.size_bytes, src, dst, np.zeros(len(src)), columns.line, group)
        dense = hosts[-1] == len(hosts) - 1
        renumbered = [] if dense else [f"hosts {hosts[0]:,} to {hosts[-1]:,} are numbered 0 to {len(hosts) - 1:,} here"]
        return RankTrace(
            title(path),
            f"list of flows {printable(path.name)}",
            printable(path.name),
            rows.table(_name, [f"start {start:.17g}" for start in starts.tolist()]),
            whole_job=True,
            after=[
                *renumbered,
                f"flows start at {counted(len(starts), 'time')}; those of one time are sent together, one time after the other",
            ],
        )


def _name(line: int) -> str:
    """Name of the flow of a line."""
    return f"flow of line {line}"


class _Order(NamedTuple):
    """Separator, and which columns are start, source, destination and bytes."""

    separator: str
    columns: tuple[int, int, int, int]

    @classmethod
    def of(cls, head: bytes) -> _Order:
        """By the first line that is not a remark."""
        rows = (row for row in head.decode("utf-8", "replace").splitlines() if not row.startswith("#"))
        return cls(",", (0, 1, 2, 3)) if "," in next(rows, "") else cls(" ", (3, 0, 1, 2))


class _Columns(NamedTuple):
    """Flows: start, ends, bytes, and the number of the line."""

    start: npt.NDArray[np.float64]
    src: IntArray
    dst: IntArray
    size_bytes: IntArray
    line: IntArray

    def take(self, rows: IntArray) -> _Columns:
        """Some of the rows."""
        return _Columns(*(column[rows] for column in self))


def _columns(lines: Lines, form: _Order) -> _Columns:
    """The flows in some lines.

    Raises: DamageError: a line has another form.
    """
    start, src, dst, size_bytes = (lines.numbers[:, i].copy() for i in form.columns)
    begin, kept = start.astype(np.float64), lines.found == NUMBERS
    for line in np.flatnonzero(~kept).tolist():
        text = lines.line(line)
        if text and not text.startswith("#"):
            begin[line], src[line], dst[line], size_bytes[line] = _flow(lines.first + line, text)
            kept[line] = True
    number = lines.first + np.arange(len(kept))
    return _Columns(begin, src, dst, size_bytes, number).take(np.flatnonzero(kept))


def _flow(number: int, line: str) -> tuple[float, int, int, int]:
    """Start, source, destination and bytes of a line.

    Raises: DamageError: the line has another form.
    """
    if not _LINE.fullmatch(line):
        raise DamageError(number, f"{line[:60]!r} is not a flow; {FORM}")
    parts = [part.strip() for part in line.split(",")] if "," in line else line.split()
    start, src, dst, size = parts if "," in line else (parts[3], *parts[:3])
    return float(start), int(src), int(dst), check_size(int(size), number, "the flow")
