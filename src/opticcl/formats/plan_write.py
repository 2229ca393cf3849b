"""Plan to file: Parquet for large plans, CSV to read or edit, JSON for other programs."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from opticcl.errors import OutputError
from opticcl.files import write_whole
from opticcl.formats._polars_sources import sink_parquet
from opticcl.formats.plan_header import (
    CHUNK_STEP,
    COLUMNS,
    KEY,
    WAVEGUIDE,
    check_claims,
    encode_header,
    header_of,
    strided,
)
from opticcl.formats.plan_phases import file_steps
from opticcl.ir import CircuitPlan, Circuits, IntArray, ProgressCallback, Schedule, Transfers, no_progress

if TYPE_CHECKING:
    import polars

__all__ = ["MOST_ROWS", "write_plan_file"]

MOST_ROWS = {".parquet": 1 << 28, ".csv": 1 << 24, ".json": 1 << 22}
"""Circuits that a file of each suffix can hold [count]."""


def write_plan_file(
    path: Path | str,
    plan: CircuitPlan,
    size_bytes: int,
    algorithm: str,
    progress: ProgressCallback = no_progress,
    *,
    listed: bool = False,
) -> int:
    """Write every circuit of a plan, step by step; the file appears when it is complete.

    Steps with the same circuits are written once; phases in the header say what they carry.

    Args:
        path: ends in .parquet, .csv or .json.
        plan: to be written.
        size_bytes: message of every rank [bytes].
        algorithm: what generated it, in words.
        progress: called with (what, done, total) after every step.
        listed: whether every step is listed in rows, for programs that know no phases.
    Returns: number of circuits written.
    Raises: OutputError: another suffix, more circuits than that kind of file can hold, or not writable. PlanFileError: far
        more ranks or chunks than circuits.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in MOST_ROWS:
        raise OutputError(f"cannot write {path}: it must end in " + ", ".join(MOST_ROWS))
    if listed:
        plan = _listed(plan)
    rows = _num_rows(plan)
    if rows > MOST_ROWS[suffix]:
        hint = "; write .parquet" if suffix != ".parquet" else "; take a smaller fabric or an algorithm of fewer steps"
        raise OutputError(f"cannot write {path}: {rows:,} circuits are more than {MOST_ROWS[suffix]:,}{hint}")
    about = header_of(plan, size_bytes, algorithm)
    check_claims(about, rows, str(path))
    header = encode_header(about)
    with write_whole(path) as file:
        {".parquet": _write_parquet, ".csv": _write_csv, ".json": _write_json}[suffix](file, plan, header, progress)
    return rows


def _listed(plan: CircuitPlan) -> CircuitPlan:
    """The plan with every step by itself."""
    step = StepsOneByOne(plan.schedule)
    return replace(plan, schedule=replace(plan.schedule, step=step, classes=()), rounds=plan.rounds)


@dataclass(frozen=True)
class StepsOneByOne:
    """The step function of a schedule, without its phases.

    Args: schedule: any.
    """

    schedule: Schedule

    def __call__(self, i: int) -> Transfers:
        return self.schedule.step(i)


def _num_rows(plan: CircuitPlan) -> int:
    """Circuits of the steps that are written; those of a class have equally many."""
    count: dict[int, int] = {}
    total, classes = 0, plan.schedule.step_classes()
    starts = [steps.start for steps in classes]
    for steps in file_steps(plan):
        first = starts[bisect_right(starts, steps.start) - 1]
        if first not in count:
            count[first] = sum(map(len, plan.rounds(first)))
        total += count[first]
    return total


def _frames(plan: CircuitPlan, progress: ProgressCallback) -> Iterator[polars.DataFrame]:
    """Rows of one round after the other."""
    more = _columns(plan)[len(COLUMNS) :]
    for number, steps in enumerate(file_steps(plan)):
        transfers = plan.schedule.step(steps.start)
        for place, circuits in enumerate(plan.rounds(steps.start)):
            yield _frame(number, place, transfers, circuits, more)
        progress("write the plan", steps.stop, plan.schedule.num_steps)


def _columns(plan: CircuitPlan) -> tuple[str, ...]:
    """Columns of whole numbers; waveguides have numbers where one setting of a switch holds for all that they carry."""
    steps = (CHUNK_STEP,) if strided(plan.schedule) else ()
    return (*COLUMNS, *steps, *((WAVEGUIDE,) if _numbered(plan) else ()))


def _numbered(plan: CircuitPlan) -> bool:
    return any(resource.one_setting for resource in plan.fabric.resources)


def _frame(step: int, number: int, transfers: Transfers, circuits: Circuits, more: tuple[str, ...]) -> polars.DataFrame:
    """Rows of a round.

    Args:
        step, number: of the file.
        transfers: of the step.
        circuits: of the round.
        more: columns beside those that every file has.
    """
    import polars as pl

    n = len(circuits)
    carries = circuits.transfer >= 0

    def carried(column: IntArray | None, idle: int) -> IntArray:
        values = np.full(n, idle, np.int32)
        if column is not None:
            values[carries] = column[circuits.transfer[carries]]
        return values

    columns = {
        "step": np.full(n, step),
        "round": np.full(n, number),
        "transfer": circuits.transfer,
        "src": circuits.src,
        "dst": circuits.dst,
        "chunk_lo": carried(transfers.chunk_lo, 0),
        "chunk_n": carried(transfers.chunk_n, 0),
        "parts": carried(transfers.parts, 1),
        "op": carried(transfers.op, 0),
        "port": circuits.port,
        "wavelength_lo": circuits.wavelength_lo,
        "wavelength_n": circuits.wavelength_n,
        "wavelength_step": np.full(n, circuits.wavelength_step),
    }
    if CHUNK_STEP in more:
        columns[CHUNK_STEP] = carried(transfers.chunk_step, 1)
    if WAVEGUIDE in more:
        columns[WAVEGUIDE] = np.full(n, -1) if circuits.waveguide is None else circuits.waveguide
    frame = pl.DataFrame({name: np.asarray(column, np.int32) for name, column in columns.items()})
    return frame.with_columns(_paths(circuits).alias("path"))


def _paths(circuits: Circuits) -> polars.Series:
    import polars as pl

    counts = circuits.num_hops()
    if len(counts) and (counts == counts[0]).all() and counts[0]:  # one length, so the column is a plain matrix
        return pl.Series(circuits.hops.reshape(len(circuits), -1)).cast(pl.List(pl.Int32))
    owner = pl.DataFrame({"at": circuits.hop_owner().astype(np.int32), "hop": circuits.hops})
    grouped = owner.group_by("at", maintain_order=True).agg("hop")
    every = pl.DataFrame({"at": np.arange(len(circuits), dtype=np.int32)}).join(
        grouped, on="at", how="left", maintain_order="left"
    )
    return every["hop"].cast(pl.List(pl.Int32)).fill_null([])


def _schema(plan: CircuitPlan) -> polars.Schema:
    import polars as pl

    types: dict[str, pl.DataType] = {name: pl.Int32() for name in _columns(plan)}
    return pl.Schema({**types, "path": pl.List(pl.Int32)})


def _write_parquet(file: IO[bytes], plan: CircuitPlan, header: str, progress: ProgressCallback) -> None:
    sink_parquet(file, _frames(plan, progress), _schema(plan), {KEY: header})


def _write_csv(file: IO[bytes], plan: CircuitPlan, header: str, progress: ProgressCallback) -> None:
    import polars as pl

    file.write(f"# {header}\n".encode())
    file.write((",".join((*_columns(plan), "path")) + "\n").encode())
    for frame in _frames(plan, progress):
        text = frame.with_columns(pl.col("path").cast(pl.List(pl.String)).list.join(" "))
        file.write(text.write_csv(include_header=False).encode())


def _write_json(file: IO[bytes], plan: CircuitPlan, header: str, progress: ProgressCallback) -> None:
    columns: dict[str, list[object]] = {name: [] for name in (*_columns(plan), "path")}
    for frame in _frames(plan, progress):
        for name, values in columns.items():
            values += frame[name].to_list()
    file.write(b'{"header": ' + header.encode() + b',\n"columns": {\n')
    lines = [f'"{name}": {json.dumps(values, separators=(",", ":"))}' for name, values in columns.items()]
    file.write(",\n".join(lines).encode() + b"}}\n")
