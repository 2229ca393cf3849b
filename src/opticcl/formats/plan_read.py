"""File to plan: everything is derived from the rows, whichever program wrote them.

The rows of a step with the same transfer number, nodes, chunks and operation are the circuits of one transfer. A changed cell
therefore changes the data that is sent or the circuit that carries it, and the verifier names the rule that this breaks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from opticcl.errors import PlanFileError, printable
from opticcl.formats._json_columns import cells_as_series
from opticcl.formats._polars_errors import reading
from opticcl.formats._polars_sources import source_of
from opticcl.formats.plan_header import (
    CHUNK_STEP,
    COLUMNS,
    KEY,
    WAVEGUIDE,
    check_claims,
    decode_header,
    fabric_and_collective,
)
from opticcl.formats.plan_phases import read_steps
from opticcl.formats.plan_runs import read_runs
from opticcl.formats.plan_write import MOST_ROWS
from opticcl.ir import CircuitPlan, Circuits, Fabric, IntArray, Schedule, Transfers
from opticcl.ir.circuit_plan import ClassRounds
from opticcl.ir.paths import paths_of_rows

if TYPE_CHECKING:
    import polars

__all__ = ["PlanFile", "read_plan_file"]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
MOST_HEADER_BYTES = 1 << 26
TRANSFER_COLUMNS = ("transfer", "src", "dst", "chunk_lo", "chunk_n", "parts", "op")
OPTIONAL = (CHUNK_STEP, WAVEGUIDE)


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan that was read.

    Args:
        plan: its schedule and circuits, not yet verified.
        size_bytes: message of every rank [bytes].
        algorithm: what generated it, as its header says.
        written_by: version of opticcl that its header names.
    """

    plan: CircuitPlan
    size_bytes: int
    algorithm: str
    written_by: str


def read_plan_file(path: Path | str) -> PlanFile:
    """Read a plan file; its rows are read step by step when they are needed.

    Args:
        path: ends in .parquet, .csv or .json.
    Raises: PlanFileError: no such file, another kind, truncated, columns missing or of another type, steps out of order, or
        a header that claims more than the rows bear out.
    """
    path = Path(path)
    rows, text = _open(path)
    header = decode_header(text, str(path))
    num_rows = int(_collect(rows.select(_row_count()), path).item())
    if num_rows > (most := MOST_ROWS[path.suffix.lower()]):
        raise PlanFileError(f"{path}: {num_rows:,} circuits are more than {most:,}")
    check_claims(header, num_rows, str(path))
    fabric, promised = fabric_and_collective(header, str(path))
    num_steps = header.num_file_steps
    algorithm = printable(header.algorithm)

    @lru_cache(maxsize=2)
    def rows_of(step: int) -> _Step:
        return _Step.read(rows, int(starts[step]), int(starts[step + 1]), fabric, path)

    try:
        if header.steps is not None:
            steps, ranges = read_steps(header.steps, promised, lambda i, stated: rows_of(i).listed(stated))
            if steps.num_steps != header.num_steps:
                raise ValueError(f"num_steps={header.num_steps:,}, but the phases have {steps.num_steps:,}")
            schedule = Schedule.of(algorithm, promised, steps)
            if ranges != steps.classes:  # circuits of each step are its own
                schedule = replace(schedule, classes=ranges)
        else:
            step, ranges, grows = read_runs(
                header.runs, num_steps, lambda i: (rows_of(i).transfers, rows_of(i).numbers), promised
            )
            same = ranges if header.runs and not grows else ()
            schedule = Schedule(algorithm, promised, header.num_steps, step, same)
    except ValueError as error:
        raise PlanFileError(f"{path}: header: {error}") from None
    starts = _starts(rows, len(ranges), path)
    number_of = {steps.start: number for number, steps in enumerate(ranges)}

    def rounds(i: int) -> tuple[Circuits, ...]:
        """Circuits of a step of the plan that the file has."""
        number = number_of[i]
        if header.steps is None:
            return rows_of(number).rounds
        return rows_of(number).rounds_of(schedule.step(i), int(starts[number]), path)

    plan = CircuitPlan(fabric, schedule, ClassRounds(ranges, rounds))
    return PlanFile(plan, header.size_bytes, algorithm, printable(header.opticcl))


# --- files to lazy rows -----------------------------------------------------------------------------------------------


def _open(path: Path) -> tuple[polars.LazyFrame, str]:
    """Rows and header of a file."""
    import polars as pl

    if path.is_dir():
        raise PlanFileError(f"{path}: is a directory; give one of the files in it")
    readers = {".parquet": _open_parquet, ".csv": _open_csv, ".json": _open_json}
    suffix = path.suffix.lower()
    if suffix not in readers:
        raise PlanFileError(f"{path}: a plan file ends in " + ", ".join(readers))
    if not path.is_file():
        raise PlanFileError(f"{path}: there is no such file")
    if not path.stat().st_size:
        raise PlanFileError(f"{path}: is empty; was it written to its end?")
    try:
        with reading(path, "cannot be read as a plan file", ValueError, KeyError, TypeError):
            rows, header = readers[suffix](path)
            schema = rows.collect_schema()
    except RecursionError:
        raise PlanFileError(f"{path}: is nested too deeply for a plan file") from None
    more = tuple(name for name in OPTIONAL if name in schema)
    for name in (*COLUMNS, *more, "path"):
        if name not in schema:
            raise PlanFileError(f"{path}: column {name!r} is missing")
        kind = schema[name]
        if name == "path":
            inner = kind.inner if isinstance(kind, pl.List) else None
            whole = inner is not None and (inner == pl.Null or pl.Series([], dtype=inner).dtype.is_integer())
        else:
            whole = kind.is_integer()
        if not whole:
            due = "lists of whole numbers" if name == "path" else "whole numbers"
            raise PlanFileError(f"{path}: column {name!r} holds {str(kind)[:80]}, not {due}")
    return rows.select(*COLUMNS, *more, "path"), header


def _open_parquet(path: Path) -> tuple[polars.LazyFrame, str]:
    import polars as pl

    header = pl.read_parquet_metadata(source_of(path)).get(KEY)
    if header is None:
        raise PlanFileError(f"{path}: is a Parquet file without the header of a plan")
    return pl.scan_parquet(source_of(path)), header


def _open_csv(path: Path) -> tuple[polars.LazyFrame, str]:
    import polars as pl

    with path.open("rb") as file:
        first = file.readline(MOST_HEADER_BYTES).removeprefix(BYTE_ORDER_MARK)
    if not first.startswith(b"# "):
        raise PlanFileError(f"{path}: its first line is not a header of a plan file, which begins with '# '")
    there = pl.read_csv(source_of(path), skip_lines=1, n_rows=0).columns
    more = tuple(name for name in OPTIONAL if name in there)
    schema = {**dict.fromkeys((*COLUMNS, *more), pl.Int64), "path": pl.String}
    frame = pl.read_csv(source_of(path), skip_lines=1, schema_overrides=schema)
    if "path" in frame.columns:
        hops = pl.col("path").fill_null("").str.split(" ").list.eval(pl.element().filter(pl.element() != ""))
        frame = frame.with_columns(hops.cast(pl.List(pl.Int64)).alias("path"))
    return frame.lazy(), first[2:].decode("utf-8")


_OTHERS = {
    "gpus": "a plan of MSCCL++: give the XML of MSCCL-tools",
    "msccl_type": "of MSCCL-tools: give a topology to --fabric network:file=, of an algorithm its XML",
    "TopologyParams": "an input of TE-CCL: give the schedule that it writes",
    "traceEvents": "a trace of a job: give it to opticcl trace, or to opticcl train --workload",
}
"""Other files in JSON, by a key, and what to give instead."""


def _open_json(path: Path) -> tuple[polars.LazyFrame, str]:
    import json

    import polars as pl

    whole = json.loads(path.read_text("utf-8-sig"))
    if not isinstance(whole, dict) or set(whole) != {"header", "columns"} or not isinstance(whole["columns"], dict):
        kinds = [what for key, what in _OTHERS.items() if isinstance(whole, dict) and key in whole]
        hint = f"; it is {kinds[0]}" if kinds else ""
        raise PlanFileError(f"{path}: is JSON, but not an object of header and columns{hint}")
    given = whole["columns"]
    known = {**dict.fromkeys((*COLUMNS, *OPTIONAL), "whole"), "path": "list"}
    try:
        columns = [cells_as_series(name, given[name], kind) for name, kind in known.items() if name in given]
    except ValueError as error:
        raise PlanFileError(f"{path}: {error}") from None
    other = next((one for one in columns if len(one) != len(columns[0])), None)
    if other is not None:
        first = columns[0]
        raise PlanFileError(f"{path}: {first.name!r} has {len(first):,} rows, but {other.name!r} has {len(other):,}")
    return pl.DataFrame(columns).lazy(), json.dumps(whole["header"])


def _starts(rows: polars.LazyFrame, num_steps: int, path: Path) -> IntArray:
    """Row at which each step of the file begins, int64 (num_steps + 1,)."""
    order = _collect(rows.select("step", "round"), path)
    if order["step"].null_count() or order["round"].null_count():
        raise PlanFileError(f"{path}: column 'step' or 'round' has empty cells")
    step, number = order["step"].to_numpy(), order["round"].to_numpy()
    if len(step) and (step.min() < 0 or step.max() >= num_steps):
        wrong = int(np.flatnonzero((step < 0) | (step >= num_steps))[0])
        raise PlanFileError(f"{path}: row {wrong}: step {step[wrong]} is none of 0 to {num_steps - 1}")
    if len(number) and number.min() < 0:
        wrong = int(np.argmin(number))
        raise PlanFileError(f"{path}: row {wrong}: round {number[wrong]} is negative; rounds count from 0")
    falls = (np.diff(step) < 0) | ((np.diff(step) == 0) & (np.diff(number) < 0))
    if falls.any():
        row = int(np.flatnonzero(falls)[0]) + 1
        raise PlanFileError(
            f"{path}: row {row}: step {step[row]} round {number[row]} comes late; sort by step and round"
        )
    return np.searchsorted(step, np.arange(num_steps + 1))


def _row_count() -> polars.Expr:
    import polars as pl

    return pl.len()


def _collect(rows: polars.LazyFrame, path: Path) -> polars.DataFrame:
    with reading(path, "is damaged"):
        return rows.collect()


# --- rows of a step ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Step:
    """Transfers of one step, the paths of their circuits, their numbers in the file, and the circuits of its rounds."""

    transfers: Transfers
    paths: tuple[IntArray, IntArray]
    numbers: IntArray
    rounds: tuple[Circuits, ...]

    def listed(self, stated: bool) -> Transfers:
        """The transfers, with the paths of their circuits if these are stated."""
        hops, offsets = self.paths
        return replace(self.transfers, hops=hops, hop_offsets=offsets) if stated else self.transfers

    def rounds_of(self, transfers: Transfers, first_row: int, path: Path) -> tuple[Circuits, ...]:
        """Circuits of the transfers that phases define, which the rows of the file repeat.

        Args:
            transfers: of the step.
            first_row: of the step in the file.
            path: of the file, for messages.
        Raises: PlanFileError: rows with other transfers.
        """
        mine, there = self.transfers, self.numbers < len(transfers)
        said = transfers.take(np.where(there, self.numbers, 0))
        differ = ~there
        for name in ("src", "dst", "chunk_lo", "chunk_n", "op"):
            differ |= getattr(mine, name) != getattr(said, name)
        for name in ("parts", "chunk_step"):
            one, other = (
                np.ones(len(mine), np.int32) if c is None else c for c in (getattr(mine, name), getattr(said, name))
            )
            differ |= (one != other) & ((said.chunk_n > 1) if name == "chunk_step" else True)
        differ[1:] |= np.diff(self.numbers) < 1
        if differ.any():
            number = int(self.numbers[np.flatnonzero(differ)[0]])
            raise PlanFileError(
                f"{path}: the step of row {first_row}: transfer {number} is not what the phases in its header say; "
                f"write a file to be changed with --listed"
            )
        if len(self.numbers) == len(transfers):
            return self.rounds
        place = np.append(self.numbers, -1).astype(np.int32)
        return tuple(circuits.carrying_others(place[circuits.transfer]) for circuits in self.rounds)

    @classmethod
    def read(cls, rows: polars.LazyFrame, start: int, stop: int, fabric: Fabric, path: Path) -> _Step:
        frame = _collect(rows.slice(start, stop - start), path)
        cells = {name: _whole_numbers(frame, name, start, path) for name in COLUMNS}
        hops, offsets = _hops(frame, start, path)
        if CHUNK_STEP in frame.columns:
            cells[CHUNK_STEP] = _whole_numbers(frame, CHUNK_STEP, start, path)
        if len(frame) and cells["transfer"].min() < -1:
            wrong = int(np.argmin(cells["transfer"]))
            number = cells["transfer"][wrong]
            raise PlanFileError(
                f"{path}: row {start + wrong}: transfer {number} is negative; they count from 0, -1 is idle"
            )
        carries = np.flatnonzero(cells["transfer"] != -1)
        transfer = np.full(len(frame), -1, np.int32)
        transfer[carries], first = _number_transfers({name: column[carries] for name, column in cells.items()})
        first = carries[first]
        ranks = fabric.ranks_at(np.stack([cells["src"][first], cells["dst"][first]]))
        chosen = {name: cells[name][first] for name in ("chunk_lo", "chunk_n", "parts")}
        op = np.where((cells["op"] < 0) | (cells["op"] > 255), 255, cells["op"])[first].astype(np.uint8)  # 255: unknown
        parts = chosen["parts"] if (chosen["parts"] != 1).any() else None
        apart = cells[CHUNK_STEP][first] if CHUNK_STEP in cells else np.ones(len(first), np.int32)
        transfers = Transfers(
            ranks[0], ranks[1], chosen["chunk_lo"], chosen["chunk_n"], op, parts, apart if (apart != 1).any() else None
        )
        circuits = Circuits(
            transfer,
            cells["src"],
            cells["dst"],
            cells["port"],
            cells["wavelength_lo"],
            cells["wavelength_n"],
            hops,
            offsets,
            waveguide=_whole_numbers(frame, WAVEGUIDE, start, path) if WAVEGUIDE in frame.columns else None,
        )
        rounds = _split(circuits, cells["round"], cells["wavelength_step"])
        return cls(transfers, paths_of_rows(hops, offsets, first), cells["transfer"][first], rounds)


def _whole_numbers(frame: polars.DataFrame, name: str, start: int, path: Path) -> IntArray:
    column = frame[name]
    if column.null_count():
        row = start + int(column.is_null().arg_max() or 0)
        raise PlanFileError(f"{path}: row {row}: column {name!r} is empty")
    values = column.to_numpy()
    if len(values) and (values.min() < -(2**31) or values.max() >= 2**31):
        row = start + int(np.flatnonzero((values < -(2**31)) | (values >= 2**31))[0])
        raise PlanFileError(f"{path}: row {row}: {name}={values[row - start]} is beyond 32 bits")
    return values.astype(np.int32)


def _hops(frame: polars.DataFrame, start: int, path: Path) -> tuple[IntArray, IntArray]:
    import polars as pl

    column = frame["path"].cast(pl.List(pl.Int64)).fill_null([])
    counts = column.list.len().to_numpy().astype(np.int64)
    hops = column.explode().drop_nulls().to_numpy()
    if len(hops) != counts.sum() or (len(hops) and (hops.min() < -(2**31) or hops.max() >= 2**31)):
        raise PlanFileError(f"{path}: rows {start} to {start + len(frame) - 1}: a path has an empty or impossible hop")
    return hops.astype(np.int32), np.concatenate([[0], np.cumsum(counts)])


def _number_transfers(cells: dict[str, IntArray]) -> tuple[IntArray, IntArray]:
    """Transfer of each row, and the first row of each transfer, in the order of the numbers in the file.

    Rows of one number that differ are transfers of their own, in the order of the rows.
    """
    key = np.stack([cells[name] for name in (*TRANSFER_COLUMNS, CHUNK_STEP) if name in cells], axis=1)
    if not len(key):
        return np.zeros(0, np.int32), np.zeros(0, np.int64)
    order = np.argsort(cells["transfer"], kind="stable")
    begins = np.r_[True, (key[order[1:]] != key[order[:-1]]).any(axis=1)]
    first = order[begins]
    transfer = np.empty(len(key), np.int32)
    if (np.diff(cells["transfer"][first]) > 0).all():
        transfer[order] = np.cumsum(begins) - 1
        return transfer, first
    _, first, inverse = np.unique(key, axis=0, return_index=True, return_inverse=True)
    by_number = np.lexsort((first, cells["transfer"][first]))
    place = np.empty_like(by_number)
    place[by_number] = np.arange(len(by_number))
    return place[inverse.ravel()].astype(np.int32), first[by_number]


def _split(circuits: Circuits, number: IntArray, wavelength_step: IntArray) -> tuple[Circuits, ...]:
    """Circuits of each round."""
    cuts = np.flatnonzero(np.diff(number)) + 1
    if len(circuits) and not len(cuts):
        return (replace(circuits, wavelength_step=_common(wavelength_step)),)
    parts = np.split(np.arange(len(circuits)), cuts) if len(circuits) else []
    return tuple(replace(circuits.take(rows), wavelength_step=_common(wavelength_step[rows])) for rows in parts)


def _common(wavelength_step: IntArray) -> int:
    """The wavelength step of all circuits of a round, or 0, which the verifier refuses, where they differ."""
    return int(wavelength_step[0]) if (wavelength_step == wavelength_step[0]).all() else 0
