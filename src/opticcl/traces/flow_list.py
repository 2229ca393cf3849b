"""Reader of lists of flows, as Netbench and the SiPAC authors' generators write them: one flow in a line.

::

    0,32,33,125000        start [ns], source, destination, bytes        separated by commas
    32 33 125000 0        source, destination, bytes, start [ns]        separated by spaces

Flows of one start are sent together, those of a later start follow. In these files hosts are often numbered behind the
switches: they are numbered from 0 again, in their order.

Source: netbench, flow_arrivals.txt; brianwuuu/SiPAC, traffic generators.
"""

from __future__ import annotations

import re
from pathlib import Path

from opticcl.formats.encoding.reading import DamageError, check_size, lines, printable, reading, title
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recording import RankCall, RankTrace

__all__ = ["FlowListReader"]

FORM = "write start,source,destination,bytes or source destination bytes start"
_LINE = re.compile(r"\d{1,18}(?:\.\d+)?(?:\s*,\s*\d{1,18}){3}|(?:\d{1,18}\s+){3}\d{1,18}(?:\.\d+)?", re.ASCII)


def _is_flow_list(head: bytes) -> int:
    rows = head.decode("utf-8", "replace").lstrip("\ufeff").splitlines()
    rows = [row.strip() for row in rows[: max(1, len(rows) - 1)] if row.strip() and not row.startswith("#")]
    return 2 if rows and all(_LINE.fullmatch(row) for row in rows[:20]) else 0


@register_trace("flow_list", (), _is_flow_list)
class FlowListReader(TraceReader):
    """Reads a list of flows of all hosts."""

    def read(self, path: Path, options: ReadOptions, *, tasks: bool) -> RankTrace:
        """The flows in the order of their start, as the base class describes."""
        rows: list[tuple[float, int, RankCall]] = []
        with reading(path, "list of flows", "line") as file:
            for number, line in lines(file):
                if not line.startswith("#"):
                    start, call = _flow(number, line)
                    rows.append((start, number, call))
        rows.sort(key=lambda row: row[:2])
        hosts = sorted({rank for _, _, call in rows for rank in call.ranks})
        dense = hosts == list(range(len(hosts)))
        number_of = {host: i for i, host in enumerate(hosts)}
        for _, _, call in rows:
            call.ranks = (number_of[call.ranks[0]], number_of[call.ranks[1]])
        renumbered = [] if dense else [f"hosts {hosts[0]:,} to {hosts[-1]:,} are numbered 0 to {len(hosts) - 1:,} here"]
        starts = len({start for start, _, _ in rows})
        return RankTrace(
            title(path),
            f"list of flows {printable(path.name)}",
            printable(path.name),
            [call for _, _, call in rows],
            whole_job=True,
            after=[
                *renumbered,
                f"flows start at {starts:,} times; those of one time are sent together, one time after the other",
            ],
        )


def _flow(number: int, line: str) -> tuple[float, RankCall]:
    """Start and transfer of a line.

    Raises: DamageError: the line has another form.
    """
    if not _LINE.fullmatch(line):
        raise DamageError(number, f"{line[:60]!r} is not a flow; {FORM}")
    parts = [part.strip() for part in line.split(",")] if "," in line else line.split()
    start, src, dst, size = parts if "," in line else (parts[3], *parts[:3])
    call = RankCall(f"flow of line {number}", "send", check_size(int(size), number, "the flow"))
    call.ranks, call.group = (int(src), int(dst)), f"start {start}"
    return float(start), call
