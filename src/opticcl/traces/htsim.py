"""Reader of connection matrices of htsim (`.cm`): the flows of all nodes, each with a start or with a trigger that starts it.

::

    Nodes 4
    Connections 3
    Triggers 1
    0->1 id 1 start 0 size 250000 send_done_trigger 1     or recv_done_trigger
    2->3 id 2 start 0 size 250000 send_done_trigger 1
    1->2 id 3 trigger 1 size 250000
    trigger id 1 barrier count 2

Flows of one start are sent together, those of a later start follow; a flow with a trigger follows the flows that fire it. How
much later does not count. Flows without a size, which htsim never ends, are left out; failures of its switches are no flows.

Source: Broadcom/csg-htsim and ultraethernet/uet-htsim, the reader of connection matrices; `compile -o plan.cm` writes them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from opticcl.reading import DamageError, check_size, lines, printable, reading, title
from opticcl.traces.call_rows import CallRows
from opticcl.traces.notes import Omissions
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recording import RankTrace
from opticcl.units import counted

__all__ = ["HtsimReader"]

FORM = "write 0->1 id 1 start 0 size 250000, with trigger 1 in place of the start, and send_done_trigger 1"
MAX_NODES = 1 << 20
_HEAD = re.compile(r"(Nodes|Connections|Triggers|Failures)\s+([0-9]{1,9})", re.ASCII)
_FLOW = re.compile(r"([0-9]{1,9})\s*->\s*([0-9]{1,9})((?:\s+[a-z_]+\s+[0-9][0-9.eE+-]{0,30})+)", re.ASCII)
_WORDS = ("id", "start", "size", "trigger", "send_done_trigger", "recv_done_trigger", "prio", "msg")


def _is_connections(head: bytes) -> int:
    return 2 * all(
        re.search(rb"(?m)^[ \t]*%s[ \t]+[0-9]+[ \t\r]*$" % word, head) for word in (b"Nodes", b"Connections")
    )


@register_trace("htsim", (".cm",), _is_connections)
class HtsimReader(TraceReader):
    """Reads a connection matrix."""

    def read(self, path: Path, options: ReadOptions, *, tasks: bool) -> RankTrace:
        """The flows in the order of their starts and triggers, as the base class describes."""
        flows: list[_Flow] = []
        head: dict[str, int] = {}
        with reading(path, "connection matrix of htsim", "line") as file:
            for number, line in lines(file):
                if match := _HEAD.fullmatch(line):
                    head[match[1]] = int(match[2])
                elif not line.startswith(("#", "trigger", "failure")):
                    flows.append(_flow(number, line, head.get("Nodes", 0)))
            if "Nodes" not in head:
                raise DamageError(1, "Nodes is missing")
            if len(flows) != head.get("Connections"):
                raise DamageError(1, f"{len(flows):,} flows, and Connections says {head.get('Connections', 0):,}")
            levels = _levels(flows)
        omissions, rows = Omissions(), CallRows()
        omissions.add(
            "flows without a size, which do not end", calls=sum(not one.size_bytes for one in flows), missing=True
        )
        kept = [i for i in np.argsort(levels, kind="stable").tolist() if flows[i].size_bytes]
        turns, turn = np.unique(np.array([levels[i] for i in kept], np.int64), return_inverse=True)
        columns = np.array([flows[i][:4] for i in kept], np.int64).reshape(-1, 4).T
        line_of, src, dst, size_bytes = columns
        rows.add(np.full(len(kept), rows.kind("send")), size_bytes, src, dst, np.zeros(len(kept)), line_of, turn)
        return RankTrace(
            title(path),
            f"connection matrix of htsim {printable(path.name)}",
            printable(path.name),
            rows.table(_name, [f"turn {k + 1}" for k in range(len(turns))]),
            world_size=head["Nodes"],
            world_source="Nodes",
            whole_job=True,
            omissions=omissions,
            after=[f"flows start in {counted(len(turns), 'turn')}, by starts and triggers; one turn after the other"],
        )


class _Flow(NamedTuple):
    """A flow: its line, ends, bytes and start, the trigger that starts it and those that it fires."""

    line: int
    src: int
    dst: int
    size_bytes: int
    start: float
    trigger: str
    fires: tuple[str, ...]


def _name(line: int) -> str:
    """Name of the flow of a line."""
    return f"flow of line {line}"


def _flow(number: int, line: str, nodes: int) -> _Flow:
    """The flow of a line.

    Args:
        number: of the line.
        line: its text.
        nodes: of the file [count].
    Raises: DamageError: another form, or a node that the file does not have.
    """
    match = _FLOW.fullmatch(line)
    words = dict(re.findall(r"([a-z_]+)\s+(\S+)", match[3])) if match else {}
    if match is None or not words.keys() <= set(_WORDS) or ("trigger" in words) == ("start" in words):
        raise DamageError(number, f"{line[:60]!r} is not a flow; {FORM}")
    src, dst = int(match[1]), int(match[2])
    if max(src, dst) >= min(nodes, MAX_NODES):
        raise DamageError(
            number, f"node {max(src, dst):,} of {nodes:,}, numbered from 0; at most {MAX_NODES:,} are read"
        )
    try:
        size, start = int(words.get("size", "0")), float(words.get("start", "0"))
    except ValueError:
        raise DamageError(number, f"{line[:60]!r} has a size or a start that is no number; {FORM}") from None
    fires = tuple(words[key] for key in ("send_done_trigger", "recv_done_trigger") if key in words)
    return _Flow(number, src, dst, check_size(size, number, "the flow"), start, words.get("trigger", ""), fires)


def _levels(flows: Sequence[_Flow]) -> list[int]:
    """Turn of each flow: by its start, or one behind the flows that fire its trigger.

    Raises: DamageError: a trigger that no flow fires, or that waits for itself.
    """
    order = {start: k for k, start in enumerate(sorted({one.start for one in flows if not one.trigger}))}
    firing: dict[str, list[int]] = defaultdict(list)
    started: dict[str, list[int]] = defaultdict(list)
    for i, one in enumerate(flows):
        for trigger in one.fires:
            firing[trigger].append(i)
        started[one.trigger].append(i)
    levels = [order[one.start] if not one.trigger else -1 for one in flows]
    left = {trigger: len(by) for trigger, by in firing.items()}
    behind: dict[str, int] = defaultdict(int)
    ready = [i for i, one in enumerate(flows) if not one.trigger]
    while ready:
        i = ready.pop()
        for trigger in flows[i].fires:
            left[trigger] -= 1
            behind[trigger] = max(behind[trigger], levels[i] + 1)
            for j in started[trigger] if not left[trigger] else ():
                levels[j] = behind[trigger]
                ready.append(j)
    if -1 in levels:
        one = flows[levels.index(-1)]
        raise DamageError(one.line, f"no flow that has started fires trigger {one.trigger[:20]}")
    return levels
