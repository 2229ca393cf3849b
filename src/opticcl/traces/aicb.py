"""Reader of AICB's workloads and logs as CSV: what ranks compute and communicate, a row each.

::

    [ pp_stage0: [rank0, rank1, rank2, rank3] ]     the ranks whose rows follow, or [rank0 ~ rank127]; may be missing
    comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count
    CommType.all_gather,CommGroup.tp_group,2,2048,forward.attention,None,None,,None,None,None,1
    CommType.computation,None,None,((4096, 5120), (5120, 1920)),forward.mlp,None,None,,1.5,None,None,1

Sizes are whole messages, of an all_gather the result; times are in milliseconds. Rows run one after the other, as AICB runs
them; transfers start at once, and what follows an irecv waits for it. CommType.epoch_end divides rows into steps; what is
before the first one is initialisation. A computation of two matrices without a time has their operations, for the roofline
of a device. Groups follow Megatron's order of ranks: blocks of TP, every TP-th rank for DP and EP, every (TP * EP)-th for
EP and DP together, and stages of TP * DP ranks. The first rank of a stage stands for all of them. A row without comm_group_size
is of a group as large as in other rows; older files have none.

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
from opticcl.units import counted, number_of

__all__ = ["AicbReader"]

MAX_ROWS = 1 << 21
MAX_GROUP_RANKS = 1 << 20
BYTES_OF_ELEMENT = 2  # AICB's buffers are of bfloat16
_SHAPES = re.compile(r"\(\s*\([0-9,\s]*\)(?:\s*,\s*\([0-9,\s]*\))*\s*,?\s*\)", re.ASCII)
_NEEDED = ("comm_type", "comm_group", "msg_size")
# Stages from that of the rank to that of the other end of a transfer.
_STAGES = {"send_next": 1, "recv_next": 1, "send_prev": -1, "recv_prev": -1}


def _is_aicb(head: bytes) -> int:
    return 2 * (re.match(rb"(\xef\xbb\xbf)?\s*(\[[^\n]*\]\s*\n)?comm_type,comm_group,", head) is not None)


@register_trace("aicb", (), _is_aicb)
class AicbReader(TraceReader):
    """Reads a workload or a log of AICB."""

    def read_ranks(self, path: Path, options: ReadOptions, *, tasks: bool) -> list[RankTrace]:
        """The rows of the first rank of each stage, as the base class describes."""
        with reading(path, "CSV file of AICB", "line") as file:
            sections = list(_sections(lines(file)))
            sizes = [_sizes(section.rows) for section in sections]
        traces = [_trace(path, *both) for both in zip(sections, sizes, strict=True)]
        listed = max(section.last + 1 for section in sections)
        product = math.prod(sizes[0].get(name, 1) for name in ("tp_group", "dp_group", "pp_group"))
        staged = any(row.kind in ("isend", "irecv") for row in sections[0].rows)
        known = listed or ("pp_group" in sizes[0] if staged else sizes[0])
        for trace in traces if known and not options.num_ranks else ():
            trace.world_size, trace.world_source = (
                (listed, "the list of ranks") if listed else (product, "TP * DP * PP")
            )
        return traces


class _Section(NamedTuple):
    """Rows of some ranks: the first and the last of them, -1 if they are not listed."""

    first: int
    last: int
    rows: list[_Row]


def _trace(path: Path, section: _Section, sizes: Mapping[str, int]) -> RankTrace:
    """The calls and tasks of the first rank of a section."""
    omissions = Omissions()
    ends = [i for i, row in enumerate(section.rows) if row.kind == "epoch_end"]
    begin = ends[0] + 1 if ends and ends[0] + 1 < len(section.rows) else 0
    steps: list[list[RankTask]] = [[]]
    last: tuple[int, ...] = ()  # the task before, but for transfers
    received: tuple[int, ...] = ()  # since then
    untimed = Counter[bool]()
    for row in section.rows[begin:]:
        if row.kind == "epoch_end":
            steps.append([])
            last = received = ()
            continue
        made: list[RankTask] = []
        if row.kind == "computation":
            task = RankTask(row.stage, row.took_s or 0.0, phase=row.phase)
            task.operations, task.memory_bytes = row.work or (0.0, 0.0)
            made = [task] * row.times
            untimed[bool(row.work)] += row.times * (row.took_s is None)
        elif call := _call(row, section.first, sizes, omissions):
            made = [RankTask(row.stage, 0.0, (replace(call),), phase=row.phase) for _ in range(row.times)]
        for task in made:
            own = (len(steps[-1]),)
            if row.kind in ("isend", "irecv"):
                steps[-1].append(replace(task, after=last))
                received += own if row.kind == "irecv" else ()
            else:
                steps[-1].append(replace(task, after=last + received))
                last, received = own, ()
    steps = [step for step in steps if step]
    compute_s = math.fsum(task.compute_s for step in steps for task in step)
    transfers = any(row.kind in ("isend", "irecv") for row in section.rows[begin:])
    bound: Bound = "upper" if compute_s and not transfers else ""
    trace = RankTrace(
        title(path),
        f"AICB workload {printable(path.name)}",
        printable(path.name),
        [call for step in steps for task in step for call in task.calls],
        [RecordedStep(f"epoch {i}" if len(steps) > 1 else "", step, bound=bound) for i, step in enumerate(steps, 1)],
        rank=section.first,
        compute_s=compute_s,
        omissions=omissions,
    )
    if begin:
        trace.after.append("left out: rows of the initialisation, before the first epoch_end")
    if transfers and section.first < 0:
        trace.after.append("transfers between stages of the pipeline are taken to be those of the first two stages")
    trace.after += _notes(compute_s, untimed)
    return trace


class _Row(NamedTuple):
    """A row.

    Args:
        line: its number.
        kind: comm_type, without CommType.
        group: comm_group, without CommGroup.; empty without one.
        group_size: 0 if not recorded [count].
        size_bytes: of the message; -1 if not recorded [bytes].
        work: operations and bytes of the product of two matrices whose shapes it has instead of a time; else empty.
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


def _sections(numbered: Iterator[tuple[int, str]]) -> Iterator[_Section]:
    """The rows of a file, by the ranks that they are of.

    Raises: DamageError: no such header, or a row that does not fit it.
    """
    names: list[str] = []
    section = _Section(-1, -1, [])
    total = 0
    for number, text in numbered:
        if text.startswith("["):
            if section.rows:
                yield section
            ranks = list(map(int, re.findall("rank([0-9]{1,9})", text)))
            if not ranks:
                raise DamageError(number, f"{text[:60]!r} lists no ranks, such as [rank0 ~ rank7]")
            section, names = _Section(min(ranks), max(ranks), []), []
            continue
        if not names:
            names = [name.strip() for name in text.split(",")]
            if missing := [name for name in _NEEDED if name not in names]:
                raise DamageError(number, f"the line before the rows has no {' and '.join(missing)}")
            continue
        shapes = _SHAPES.search(text)  # AICB does not quote their commas
        plain = text[: shapes.start()] + "shapes" + text[shapes.end() :] if shapes else text
        values = next(csv.reader([plain]), [])
        if len(values) != len(names):
            raise DamageError(number, f"{len(values)} columns, not the {len(names)} of the line before the rows")
        made = _row(number, dict(zip(names, map(str.strip, values), strict=True)), shapes[0] if shapes else "")
        total += made.times
        if total > MAX_ROWS:
            raise DamageError(number, f"more than {MAX_ROWS:,} rows")
        section.rows.append(made)
    yield section


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
        "" if group == "None" else printable(group),
        int(group_size),
        -1 if size is None else check_size(int(size), number, "the message"),
        _work(shapes) if took_ms is None else (),
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
        value = number_of(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < math.inf:
        raise DamageError(line, f"{name} is {text[:40]!r}, not a number from 0")
    return value


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
    sizes: dict[str, int] = {}
    for row in rows:
        if row.kind in ("isend", "irecv") and row.group_size == 1:
            continue
        if row.group and row.group_size and sizes.setdefault(row.group, row.group_size) != row.group_size:
            raise DamageError(
                row.line, f"{row.group} has {row.group_size:,} ranks here, and {sizes[row.group]:,} before"
            )
    return sizes


def _call(row: _Row, rank: int, sizes: Mapping[str, int], omissions: Omissions) -> RankCall | None:
    """The call of a row; None, and counted, if it moves no data or has no size."""
    collective = collective_of(row.kind.removeprefix("i") if row.kind in ("isend", "irecv") else row.kind)
    if not collective or (row.size_bytes < 0 and collective != "barrier"):
        why = "without a size" if collective else "which moves no data"
        omissions.add(f"{printable(row.kind[:40])}, {why}", calls=row.times)
        return None
    tensor, expert, data = (sizes.get(name, 1) for name in ("tp_group", "ep_group", "dp_group"))
    call = RankCall(row.stage, collective, max(0, row.size_bytes), group=row.group, measured_s=row.took_s or 0.0)
    if call.is_transfer:
        call.ranks = (-1, -1)
        if (away := _STAGES.get(row.additional, 0) * tensor * data) and sizes:
            own = rank if rank >= 0 else max(0, -away)
            call.ranks = (own, own + away) if collective == "send" else (own + away, own)
            if own + away < 0:
                omissions.add(f"{row.kind} to or from a stage before the first", row.size_bytes, row.times)
                return None
    elif size := row.group_size or sizes.get(row.group, 0):
        strides = {"tp_group": 1, "dp_group": tensor, "ep_group": tensor, "ep_dp_group": tensor * expert}
        strides["pp_group"] = tensor * data
        call.group_size, stride = size, strides.get(row.group)
        if stride is not None:
            call.group_stride, call.group_rule = stride, f"{row.group}, in Megatron's order of ranks"
    return call


def _notes(compute_s: float, untimed: Mapping[bool, int]) -> Iterator[str]:
    """What was computed, and what is not known of it."""
    if compute_s:
        yield "computation: of milliseconds in _elapsed_time"
    if untimed[True]:
        yield f"computation without a time: {counted(untimed[True], 'product')} of matrices; give the device (--device h100)"
    if untimed[False]:
        yield f"left out: {counted(untimed[False], 'computation')} without a time and without two matrices"
    yield "order: rows run one after the other, as AICB runs them; transfers start at once"
