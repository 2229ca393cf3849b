"""Reader of AICB's workloads and logs as CSV: what one rank computes and communicates, a row each.

::

    comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count
    CommType.all_gather,CommGroup.tp_group,2,2048,forward.attention,None,None,,None,None,None,1
    CommType.computation,None,None,((4096, 5120), (5120, 1920)),forward.mlp,None,None,,1.5,None,None,1

Sizes are whole messages, of an all_gather the result; times are in milliseconds. Rows run one after the other, as AICB runs
them; CommType.epoch_end divides them into steps. A computation of two matrices without a time has their operations, for the
roofline of a device. Groups follow Megatron's order of ranks: blocks of TP, every TP-th rank for DP and EP, every (TP * EP)-th
for EP and DP together, and stages of TP * DP ranks. Older files have no comm_group_size.

Source: aliyun/aicb, log_analyzer and workload_applyer.
"""

from __future__ import annotations

import csv
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from opticcl.ir.task_graph import Bound, Phase
from opticcl.reading import DamageError, check_size, lines, printable, reading, title
from opticcl.traces.c10d import collective_of
from opticcl.traces.notes import Omissions
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recording import RankCall, RankTask, RankTrace, RecordedStep
from opticcl.units import counted, format_seconds, number_of

__all__ = ["AicbReader"]

MAX_ROWS = 1 << 21
MAX_GROUP_RANKS = 1 << 20
BYTES_OF_ELEMENT = 2  # AICB's buffers are of bfloat16
_SHAPES = re.compile(r"\(\s*\([0-9,\s]*\)(?:\s*,\s*\([0-9,\s]*\))*\s*,?\s*\)", re.ASCII)
_NEEDED = ("comm_type", "comm_group", "msg_size")
# the ends of a transfer between two stages of a pipeline, as (sender, receiver) of the first two stages
_STAGES = {"send_next": (0, 1), "recv_prev": (0, 1), "send_prev": (1, 0), "recv_next": (1, 0)}


@register_trace("aicb", (), lambda head: 2 * (re.match(rb"(\xef\xbb\xbf)?\s*comm_type,comm_group,", head) is not None))
class AicbReader(TraceReader):
    """Reads a workload or a log of AICB."""

    def read(self, path: Path, options: ReadOptions, *, tasks: bool) -> RankTrace:
        """The rows of one rank, as the base class describes."""
        omissions = Omissions()
        with reading(path, "CSV file of AICB", "line") as file:
            rows = list(_rows(lines(file)))
            sizes = _sizes(rows)
        steps: list[list[RankTask]] = [[]]
        untimed = Counter[bool]()
        for row in rows:
            if row.kind == "epoch_end":
                steps.append([])
            elif row.kind == "computation":
                task = RankTask(row.stage, row.took_s or 0.0, phase=row.phase)
                task.operations, task.memory_bytes = row.work or (0.0, 0.0)
                steps[-1] += [task] * row.times
                untimed[bool(row.work)] += row.times * (row.took_s is None)
            elif call := _call(row, sizes, omissions):
                steps[-1] += [RankTask(row.stage, 0.0, (replace(call),), phase=row.phase) for _ in range(row.times)]
        steps = [step for step in steps if step]
        for step in steps:
            step[:] = [replace(one, after=(i - 1,) if i else ()) for i, one in enumerate(step)]
        world = math.prod(sizes.get(name, 1) for name in ("tp_group", "dp_group", "pp_group"))
        compute_s = sum(task.compute_s for step in steps for task in step)
        notes = list(_notes(rows, compute_s, untimed))
        source = f"AICB workload {printable(path.name)}"
        calls = [call for step in steps for task in step for call in task.calls]
        trace = RankTrace(title(path), source, printable(path.name), calls, compute_s=compute_s, omissions=omissions)
        if sizes and not options.num_ranks:
            trace.world_size, trace.world_source = world, "TP * DP * PP"
        trace.after = notes
        if tasks:
            upper: Bound = "upper" if compute_s else ""
            trace.steps = [
                RecordedStep(f"epoch {number}" if len(steps) > 1 else "", step, bound=upper)
                for number, step in enumerate(steps)
            ]
            trace.after.append("order: rows run one after the other, as AICB runs them")
        return trace


class _Row(NamedTuple):
    """A row.

    Args:
        line: its number.
        kind: comm_type, without CommType.
        group: comm_group, without CommGroup.; empty without one.
        group_size: 0 if not recorded [count].
        size_bytes: of the message; -1 if not recorded [bytes].
        work: operations and bytes of a computation of two matrices without a time; else empty.
        stage: name of the row.
        additional: the direction of a transfer.
        took_s: None if not recorded [s].
        times: such rows [count].
    """

    line: int
    kind: str
    group: str
    group_size: int
    size_bytes: int
    work: tuple[float, ...]
    stage: str
    additional: str
    took_s: float | None
    times: int

    @property
    def phase(self) -> Phase:
        """Forward or backward, if the stage says so."""
        return "forward" if "forward" in self.stage else "backward" if "backward" in self.stage else ""


def _rows(numbered: Iterator[tuple[int, str]]) -> Iterator[_Row]:
    """The rows of a file.

    Raises: DamageError: no such header, or a row that does not fit it.
    """
    number, first = next(numbered, (1, ""))
    names = [name.strip() for name in first.split(",")]
    if missing := [name for name in _NEEDED if name not in names]:
        raise DamageError(number, f"the first line has no {' and '.join(missing)}")
    total = 0
    for number, text in numbered:
        shapes = _SHAPES.search(text)  # AICB does not quote their commas
        plain = text[: shapes.start()] + "shapes" + text[shapes.end() :] if shapes else text
        values = next(csv.reader([plain]), [])
        if len(values) != len(names):
            raise DamageError(number, f"{len(values)} columns, not the {len(names)} of the first line")
        found = _row(number, dict(zip(names, map(str.strip, values), strict=True)), shapes[0] if shapes else "")
        total += found.times
        if total > MAX_ROWS:
            raise DamageError(number, f"more than {MAX_ROWS:,} rows")
        yield found


def _row(number: int, values: Mapping[str, str], shapes: str) -> _Row:
    """A row of its values.

    Raises: DamageError: a value of another form.
    """
    kind = values["comm_type"].removeprefix("CommType.")
    group = values["comm_group"].removeprefix("CommGroup.")
    took_ms = _number(number, values, "_elapsed_time")
    count = _number(number, values, "count")
    size = None if shapes or kind == "computation" else _number(number, values, "msg_size")
    group_size = _number(number, values, "comm_group_size") or 0
    for name, value in (("count", count), ("comm_group_size", group_size), ("msg_size", size)):
        if value is not None and value != int(value):
            raise DamageError(number, f"{name} is {value:g}, not a whole number")
    if group_size > MAX_GROUP_RANKS:
        raise DamageError(number, f"comm_group_size is {group_size:,.0f}, more than {MAX_GROUP_RANKS:,}")
    if count is not None and not 1 <= count <= MAX_ROWS:
        raise DamageError(number, f"count is {count:g}, not 1 to {MAX_ROWS:,}")
    return _Row(
        number,
        kind,
        "" if group in ("None", "") else printable(group),
        int(group_size),
        -1 if size is None else check_size(int(size), number, "the message"),
        _work(shapes) if kind == "computation" and took_ms is None else (),
        printable(values.get("stage") or kind),
        values.get("additional", ""),
        None if took_ms is None else took_ms * 1e-3,
        int(count or 1),
    )


def _number(line: int, values: Mapping[str, str], name: str) -> float | None:
    """A number from 0; None for None, nothing or no such column.

    Raises: DamageError: something else.
    """
    text = values.get(name, "")
    if text in ("None", ""):
        return None
    try:
        found = number_of(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < math.inf:
        raise DamageError(line, f"{name} is {text[:40]!r}, not a number from 0")
    return found


def _work(shapes: str) -> tuple[float, ...]:
    """Operations and bytes of the product of two matrices, such as "((2, 3), (3, 4))"; nothing for other shapes."""
    sides = [[int(side) for side in re.findall("[0-9]{1,12}", one)] for one in re.findall(r"\(([0-9,\s]+)\)", shapes)]
    if len(sides) != 2 or min(map(len, sides)) < 2 or sides[0][-1] != sides[1][-2]:
        return ()
    left, right = map(math.prod, sides)
    result = left // max(1, sides[0][-1]) * sides[1][-1]
    return 2.0 * left * sides[1][-1], float(BYTES_OF_ELEMENT * (left + right + result))


def _sizes(rows: Sequence[_Row]) -> dict[str, int]:
    """Recorded sizes of the groups.

    Raises: DamageError: a group has two.
    """
    found: dict[str, int] = {}
    for row in rows:
        if row.group and row.group_size and found.setdefault(row.group, row.group_size) != row.group_size:
            raise DamageError(
                row.line, f"{row.group} has {row.group_size:,} ranks here, and {found[row.group]:,} before"
            )
    return found


def _call(row: _Row, sizes: Mapping[str, int], omissions: Omissions) -> RankCall | None:
    """The call of a row; None, and counted, if it moves no data or has no size."""
    collective = collective_of(row.kind.removeprefix("i") if row.kind in ("isend", "irecv") else row.kind)
    if not collective or (row.size_bytes < 0 and collective != "barrier"):
        why = "without a size" if collective else "which moves no data"
        omissions.add(f"{printable(row.kind[:40])}, {why}", calls=row.times)
        return None
    tensor, expert, data = (sizes.get(name, 1) for name in ("tp_group", "ep_group", "dp_group"))
    call = RankCall(row.stage, collective, max(0, row.size_bytes), group=row.group, measured_s=row.took_s or 0.0)
    if call.is_transfer:
        stages = _STAGES.get(row.additional)
        call.ranks = (stages[0] * tensor * data, stages[1] * tensor * data) if stages and sizes else (-1, -1)
    elif row.group_size:
        strides = {"tp_group": 1, "dp_group": tensor, "ep_group": tensor, "ep_dp_group": tensor * expert}
        strides["pp_group"] = tensor * data
        call.group_size, stride = row.group_size, strides.get(row.group)
        if stride is not None:
            call.group_stride, call.group_rule = stride, f"{row.group}, in Megatron's order of ranks"
    return call


def _notes(rows: Sequence[_Row], compute_s: float, untimed: Mapping[bool, int]) -> Iterator[str]:
    """What was computed, and what is not known of it."""
    yield f"rows: {sum(row.times for row in rows):,}"
    if compute_s:
        yield f"computation: {format_seconds(compute_s)}, of milliseconds in _elapsed_time"
    if untimed[True]:
        yield f"computation without a time: {counted(untimed[True], 'product')} of matrices; give the device (--device h100)"
    if untimed[False]:
        yield f"left out: {counted(untimed[False], 'computation')} without a time and without two matrices"
    if any(row.kind in ("isend", "irecv") for row in rows):
        yield "transfers between stages of the pipeline are taken to be those of the first two stages"
