"""The calls of a trace as a table (.parquet), a row a call of a rank, as `opticcl trace -o calls.parquet` writes them.

A row has what the rank recorded: the columns of `RankCall`, with the rank, its step, the number of ranks of the job, and the
members of the group where the file records them apart from the call. Computation is not in it.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from opticcl.collective import collective_name
from opticcl.errors import ParameterError
from opticcl.files import write_whole
from opticcl.ir.task_graph import RecordedTimes
from opticcl.reading import content_of, printable, reading, refusal, title
from opticcl.traces.call_rows import RankCallTable
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recording import MAX_RANKS, Counts, RankCall, RankTask, RankTrace, RecordedStep
from opticcl.units import MAX_MESSAGE_BYTES

if TYPE_CHECKING:
    import polars

__all__ = ["CallFileReader", "write_calls"]

NUMBERS = {
    "rank": (-1, MAX_RANKS - 1),
    "num_ranks": (0, MAX_RANKS),
    "size_bytes": (0, MAX_MESSAGE_BYTES),
    "received_bytes": (-1, MAX_MESSAGE_BYTES),
    "group_size": (0, MAX_RANKS),
    "group_stride": (1, MAX_RANKS),
    "sequence": (-1, 2**62),
    "stream": (0, 2**31),
}
"""Column of whole numbers -> least and largest value."""

LISTS = {
    "ranks": (-1, MAX_RANKS - 1),
    "group_ranks": (0, MAX_RANKS - 1),
    "sent_splits": (0, MAX_MESSAGE_BYTES),
    "received_splits": (0, MAX_MESSAGE_BYTES),
}
"""Column of lists of whole numbers -> least and largest value in them."""

TIMES = ("start_s", "end_s", "measured_s")
TEXTS = ("step", "group", "collective", "name", "counts", "group_rule", "groups_source", "tag")
NEEDED = ("rank", "collective", "size_bytes")
"""Columns without which a table is none of calls; the others may be missing."""

ABSENT: dict[str, Any] = {
    "num_ranks": 0, "received_bytes": -1, "group_size": 0, "group_stride": 1, "sequence": -1, "stream": 0,
    "start_s": -1.0, "end_s": -1.0, "measured_s": 0.0, "counts": "message", "groups_source": "recorded",
}  # fmt: skip
"""Value of a column that is missing or empty; of others an empty text or list."""

MAX_TIME_S = 1e12
MAX_FILE_BYTES = 2**31
MAX_CALLS = 2**24


def write_calls(path: Path, traces: Sequence[RankTrace], num_ranks: int) -> int:
    """Write the calls of all ranks.

    Args:
        path: of the file.
        traces: of each rank, whose groups and ends of transfers are known.
        num_ranks: of the job; 0 if unknown [count].
    Returns: rows written [count].
    Raises: OutputError: the file cannot be written.
    """
    import polars

    schema = _types()
    first = ("rank", "step", "group", "collective", "name", "size_bytes", "ranks", *TIMES)
    order = [*first, *(name for name in schema if name not in first)]
    frame = polars.concat([_rows(trace, num_ranks, schema) for trace in traces]).select(order)
    with write_whole(path) as file:
        frame.write_parquet(file, compression="zstd")
    return frame.height


def _rows(trace: RankTrace, num_ranks: int, schema: Mapping[str, Any]) -> polars.DataFrame:
    """The rows of a rank.

    Args:
        trace: of the rank.
        num_ranks: of the job [count].
        schema: type of each column.
    """
    import polars

    table = trace.calls if isinstance(trace.calls, RankCallTable) else None
    calls: Sequence[RankCall] = trace.calls if table is None else table.kinds
    steps = {id(call): step.name for step in trace.steps for task in step.tasks for call in task.calls}
    members = {name: list(ranks) for name, ranks in trace.groups.items()}
    of_trace = {"rank": trace.rank, "num_ranks": num_ranks, "groups_source": trace.groups_source}
    columns = {name: [getattr(call, name) for call in calls] for name in schema if hasattr(RankCall, name)}
    columns |= {name: [value] * len(calls) for name, value in of_trace.items()}
    columns["step"] = [steps.get(id(call), "") for call in calls]
    columns["group_ranks"] = [[] if call.ranks else members.get(call.group, []) for call in calls]
    frame = polars.DataFrame(columns, schema=schema)
    if table is None:
        return frame
    own = table.columns
    ends = polars.Series("ranks", np.stack([own.src, own.dst], axis=1)).cast(polars.List(polars.Int64))
    groups = [table.groups[group] for group in own.group.tolist()]
    frame = frame[own.kind]
    return frame.with_columns(
        ends.zip_with(polars.Series(own.src >= 0), frame["ranks"]).alias("ranks"),
        polars.Series("name", list(map(table.name_of, own.label.tolist()))),
        polars.Series("size_bytes", own.size_bytes).cast(polars.Int64),
        polars.Series("measured_s", own.measured_s),
        polars.Series("group", [mine or kind for mine, kind in zip(groups, frame["group"], strict=True)]),
    )


@register_trace("calls", (".parquet",), lambda head: 2 * head.startswith(b"PAR1"))
class CallFileReader(TraceReader):
    """Reads a table of calls."""

    def read_ranks(self, path: Path, options: ReadOptions, *, tasks: bool) -> list[RankTrace]:
        """The calls of each rank, and one after the other in its steps, as the base class describes."""
        frame = _checked(path, _frame(path))
        traces = []
        for (rank,), part in sorted(frame.group_by("rank"), key=lambda one: one[0]):
            rows = part.to_dicts()
            calls = [_call(path, row) for row in rows]
            groups = {row["group"]: tuple(row["group_ranks"]) for row in rows if row["group_ranks"]}
            trace = RankTrace(
                title(path),
                f"table of calls {printable(path.name)}",
                printable(path.name),
                calls,
                rank=cast(int, rank),
                world_size=rows[0]["num_ranks"],
                world_source="num_ranks",
                groups=groups,
                groups_source=rows[0]["groups_source"],
                whole_job=rank == -1,
            )
            if tasks:
                trace.steps = list(_steps(rows, calls))
            traces.append(trace)
        if len(traces) > 1 and traces[0].rank < 0:
            raise refusal(path, "column rank: calls of all ranks (-1) beside those of one; give each call its rank")
        return traces


def _frame(path: Path) -> polars.DataFrame:
    """The table of a file.

    Raises: WorkloadError: it is none, or has no calls.
    """
    import polars

    with reading(path, "table of calls") as file:
        content = content_of(path, file, MAX_FILE_BYTES, "divide it by rank")
        try:
            rows = polars.scan_parquet(io.BytesIO(content)).select(polars.len()).collect().item()
            if rows > MAX_CALLS:
                raise refusal(path, f"{rows:,} calls are more than {MAX_CALLS:,}; divide it by rank")
            frame = polars.read_parquet(content)
        except polars.exceptions.PolarsError as error:
            raise refusal(path, f"is not a readable Parquet file: {str(error).splitlines()[0]}") from None
    if missing := [name for name in NEEDED if name not in frame.columns]:
        listed = ", ".join(NEEDED)
        plan = "a plan goes to opticcl verify, simulate or execute"
        raise refusal(path, f"is not a table of calls, which has the columns {listed}: {missing[0]} is missing; {plan}")
    if not frame.height:
        raise refusal(path, "is a table of calls without a row")
    return frame


def _checked(path: Path, frame: polars.DataFrame) -> polars.DataFrame:
    """The table with all columns, each of its type and within its limits.

    Raises: WorkloadError: the column, the row and the value that is wrong.
    """
    import polars

    for name in frame.columns:
        if word := _unfit(name, frame[name].dtype):
            raise refusal(path, f"column {name}: {frame[name].dtype} is not {word}")
    for name in NEEDED:
        if frame[name].null_count():
            raise refusal(path, f"column {name}: row {frame[name].is_null().arg_max()} has no value")
    try:
        made = polars.DataFrame([_whole_column(frame, name, kind) for name, kind in _types().items()])
    except polars.exceptions.PolarsError as error:
        raise refusal(path, f"has a value that is too large: {str(error).splitlines()[0]}") from None
    for name, (least, most) in {**NUMBERS, **dict.fromkeys(TIMES, (-1.0, MAX_TIME_S))}.items():
        _refuse_outside(path, made[name], least, most)
    for name, (least, most) in LISTS.items():
        for reduced in (made[name].list.min(), made[name].list.max()):
            _refuse_outside(path, reduced.fill_null(least), least, most)
    return made


def _whole_column(frame: polars.DataFrame, name: str, kind: Any) -> polars.Series:
    """A column with a value in each row: that which stands for "not recorded" where there is none.

    Args:
        frame: the table.
        name: of the column.
        kind: its type.
    """
    import polars

    absent = ABSENT.get(name, [] if name in LISTS else "" if name in TEXTS else 0)
    blank = polars.Series(name, [absent], dtype=kind).new_from_index(0, frame.height)
    if name not in frame.columns:
        return blank
    given = frame[name].cast(kind)
    filled = given.zip_with(given.is_not_null(), blank)
    return filled.list.drop_nulls() if name in LISTS else filled


def _types() -> dict[str, Any]:
    """Type of each column."""
    import polars

    whole, lists = polars.Int64(), polars.List(polars.Int64)
    types: dict[str, Any] = dict.fromkeys(NUMBERS, whole) | dict.fromkeys(LISTS, lists)
    return types | dict.fromkeys(TIMES, polars.Float64()) | dict.fromkeys(TEXTS, polars.String())


def _unfit(name: str, kind: Any) -> str:
    """What a column has to be and is not; "" if it fits, is empty, or has no meaning here.

    Args:
        name: of the column.
        kind: its type.
    """
    import polars

    inner = kind.inner if isinstance(kind, polars.List) else None
    needed = {
        "whole numbers": name in NUMBERS and not kind.is_integer(),
        "numbers": name in TIMES and not kind.is_numeric(),
        "texts": name in TEXTS and kind != polars.String,
        "lists of whole numbers": name in LISTS
        and not (inner is not None and (inner.is_integer() or inner == polars.Null)),
    }
    return next((word for word, wrong in needed.items() if wrong and kind != polars.Null), "")


def _refuse_outside(path: Path, column: polars.Series, least: float, most: float) -> None:
    """Raises WorkloadError: a value is no number, or not within its limits.

    Args:
        path: of the file.
        column: numbers.
        least, most: limits.
    """
    wrong = ~column.is_between(least, most)
    if wrong.any():
        row = wrong.to_list().index(True)
        raise refusal(path, f"column {column.name}: {column[row]} in row {row} is not {least:,} to {most:,}")


def _call(path: Path, row: dict[str, Any]) -> RankCall:
    """The call of a row.

    Raises: WorkloadError: an unknown collective or convention, or ends that are no two ranks.
    """
    name, counts, ranks = row["collective"], row["counts"], tuple(row["ranks"])
    try:
        collective = name if name in ("send", "recv") else collective_name(name)
    except ParameterError as error:
        raise refusal(path, f"column collective: {error}") from None
    if counts not in ("message", "share"):
        raise refusal(path, f"column counts: {printable(counts)!r} is not message or share")
    is_transfer = name in ("send", "recv")
    if (len(ranks) != 2) if is_transfer else (-1 in ranks or len({*ranks}) < len(ranks)):
        known = "sender and receiver" if is_transfer else "distinct ranks"
        raise refusal(path, f"column ranks: {list(ranks[:8])} of a {collective} are not {known}")
    return RankCall(
        printable(row["name"]) or collective,
        collective,
        row["size_bytes"],
        cast(Counts, counts),
        printable(row["group"]),
        ranks,
        sequence=row["sequence"],
        group_size=row["group_size"],
        group_stride=row["group_stride"],
        group_rule=printable(row["group_rule"]),
        measured_s=max(row["measured_s"], 0.0),
        received_bytes=row["received_bytes"],
        sent_splits=tuple(row["sent_splits"]),
        received_splits=tuple(row["received_splits"]),
        tag=row["tag"],
        start_s=row["start_s"],
        end_s=row["end_s"],
        stream=row["stream"],
    )


def _steps(rows: Sequence[dict[str, Any]], calls: Sequence[RankCall]) -> Iterator[RecordedStep]:
    """The steps of a rank, whose calls follow each other; calls outside of steps are left out.

    Args:
        rows: of the rank.
        calls: of the rows.
    """
    pairs = [(row["step"], call) for row, call in zip(rows, calls, strict=True) if row["step"]]
    order = {name: place for place, name in enumerate(dict.fromkeys(name for name, _ in pairs))}
    for name, named in groupby(sorted(pairs, key=lambda pair: order[pair[0]]), key=lambda pair: pair[0]):
        mine = [call for _, call in named]
        tasks = [RankTask(call.name, 0.0, (call,), (place - 1,) * bool(place)) for place, call in enumerate(mine)]
        measured_s = sum(call.measured_s for call in mine)
        recorded = RecordedTimes(0.0, measured_s) if measured_s else None
        yield RecordedStep(printable(name), tasks, recorded=recorded)
