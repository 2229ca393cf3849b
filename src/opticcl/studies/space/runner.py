"""Points that are not finished, in several processes; the table of results; an estimate of the time."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opticcl.errors import ExecutionError, OutputError, ParameterError
from opticcl.files import write_whole
from opticcl.ir import ProgressCallback, no_progress
from opticcl.processes import Event, events
from opticcl.studies.space.design import MEASURES, DesignPoint, DesignSpace, column_of
from opticcl.studies.space.ledger import Ledger, State, with_values

if TYPE_CHECKING:
    import polars

    from opticcl.studies.space.cluster import Cluster

__all__ = ["RESULTS", "Progressed", "StudyEstimate", "estimate", "query", "read_rows", "read_table", "run_space"]

RESULTS = "results.parquet"

COMMIT_S = 0.25
"""Most time between a result and its record in the ledger [s]."""

ESTIMATE_S = 1.0
"""Time for an estimate; one machine is computed in any case [s]."""

LEAST_PART = 256
"""Points of a machine that are worth another search of its plans [count]."""


@dataclass(frozen=True, slots=True)
class Progressed:
    """A study after a run.

    Args:
        states: points in each state [count].
        computed: points that this run finished [count].
        wrong: done points whose plan is wrong or not judged [count].
        aside: reasons of points that were set aside, by key.
        refusals: reason -> points refused for it [count].
    """

    states: Mapping[State, int]
    computed: int
    wrong: int
    aside: Mapping[str, str]
    refusals: Mapping[str, int]

    @property
    def num_points(self) -> int:
        """All points [count]."""
        return sum(self.states.values())

    @property
    def ok(self) -> bool:
        """Whether every point is done with a right plan, or refused."""
        return not self.wrong and set(self.states) <= {"done", "refused"}

    def record(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "points": self.num_points,
            "states": dict(self.states),
            "computed": self.computed,
            "wrong": self.wrong,
            "set_aside": dict(self.aside),
            "refusals": dict(self.refusals),
        }


def run_space(
    space: DesignSpace,
    folder: Path,
    *,
    jobs: int = 1,
    cluster: Cluster | None = None,
    version: str = "",
    progress: ProgressCallback = no_progress,
) -> Progressed:
    """Compute the points that are not finished yet, and write the table of results.

    Args:
        space: the study.
        folder: of its ledger and results; made if it does not exist.
        jobs: processes; the results are the same with any number [count].
        cluster: whose workers compute the points instead; the results are the same.
        version: of the program; a ledger of another one is refused.
        progress: called with (what, done, total).
    Raises: StateFileError, OutputError: as `Ledger` raises them; what was finished before is kept.
    """
    points = list(space.points())
    with Ledger(folder, f"{version} {space.judged_by}") as ledger:
        states = ledger.states()
        opened = {i for i, point in enumerate(points) if states.get(point.key, "pending") in ("pending", "crashed")}
        table = folder / RESULTS
        done: dict[str, tuple[State, str, dict[str, Any]]] = {}
        if opened:
            left = [some for numbers in space.machines(points) if (some := [i for i in numbers if i in opened])]
            unknown = [point.key for point in points if point.key not in states]
            done = _compute(space, points, ledger, unknown, left, cluster or jobs, progress)
        identity = ledger.table
        if not opened and identity and identity == _identity(table, points):
            return _progressed(points, ledger.outcomes(), 0)
        progress("write the table of results")
        results = ledger.results_before() | done
        _write(table, _columns(space, points, results))
        ledger.table = _identity(table, points)
        outcomes = {
            key: (state, why, row.get("verdict", "right") != "right") for key, (state, why, row) in results.items()
        }
        return _progressed(points, outcomes, len(opened))


def _compute(
    space: DesignSpace,
    points: Sequence[DesignPoint],
    ledger: Ledger,
    unknown: Sequence[str],
    machines: Sequence[list[int]],
    where: Cluster | int,
    progress: ProgressCallback,
) -> dict[str, tuple[State, str, dict[str, Any]]]:
    """Compute points and record them.

    Args:
        where: a cluster, or processes of this computer [count].
        progress: called with (what, done, total).
    Returns: state, reason and values by key of those that are done or refused, as the ledger has them.
    """
    from opticcl.studies.space import measure  # before the processes are forked: each has it then

    waiting, label = deque(machines), "compute points"
    if isinstance(where, int):
        waiting = deque(_parts(machines, where))
    else:
        from opticcl.studies.space.cluster import batches

        waiting = deque(batches(machines, points))
    unfinished = {id(numbers): deque(numbers) for numbers in waiting}
    finished = len(points) - sum(map(len, machines))
    outcomes: dict[str, tuple[str, str]] = {}
    recorded: dict[str, tuple[State, str, dict[str, Any]]] = {}
    due = time.monotonic() + COMMIT_S

    def flush() -> None:
        if outcomes:
            ledger.record(outcomes)
            recorded.update(
                with_values((key, "refused" if why else "done", why, text) for key, (why, text) in outcomes.items())
            )
            outcomes.clear()

    def work(numbers: list[int]) -> Iterator[tuple[int, str, str]]:
        return (one.written() for one in measure.measured(space, points, numbers))

    if isinstance(where, int):
        measure.prepare()
        stream = events(work, waiting, jobs=min(where, len(waiting)), patience_s=COMMIT_S)
    else:
        stream = where.events(space, points, waiting, patience_s=COMMIT_S)
    try:
        for event in stream:
            if unknown:
                ledger.add(unknown)
                unknown = ()
            if event is not None:
                remaining = unfinished[id(event.item)]
                for number, refusal, values in event.values:
                    assert number == remaining.popleft()
                    outcomes[points[number].key] = refusal, values
                finished += len(event.values)
                if event.crash and remaining:
                    flush()
                    finished += _crashed(event, remaining, points, ledger, waiting, unfinished)
                if event.ended:
                    assert event.crash or not remaining
                    del unfinished[id(event.item)]
            if time.monotonic() >= due:
                flush()
                due = time.monotonic() + COMMIT_S
                if not isinstance(where, int):
                    label = f"compute points on {where.num_workers()} workers"
            progress(label, finished, len(points))
    except (KeyboardInterrupt, ExecutionError):
        flush()
        raise
    finally:
        stream.close()
    flush()
    return recorded


def _parts(machines: Sequence[list[int]], jobs: int) -> Iterator[list[int]]:
    """Positions of points, a list an item of a process: the last machines in parts, so that processes end together.

    Args:
        jobs: processes [count].
    """
    left = sum(map(len, machines))
    for numbers in machines:
        begin = 0
        while begin < len(numbers):
            most = max(LEAST_PART, left // (2 * jobs)) if jobs > 1 else len(numbers)
            part = numbers[begin : begin + most]
            begin += len(part)
            left -= len(part)
            yield part


def _crashed(
    event: Event[list[int], tuple[int, str, str]],
    remaining: deque[int],
    points: Sequence[DesignPoint],
    ledger: Ledger,
    waiting: deque[list[int]],
    unfinished: dict[int, deque[int]],
) -> int:
    """Record the point that a process was at, and queue what is left.

    Returns: 1 if the point is set aside, else 0.
    """
    if event.unsure and len(remaining) > 1:  # each alone: one of them ends processes
        for number in remaining:
            waiting.append([number])
            unfinished[id(waiting[-1])] = deque([number])
        return 0
    first, *rest = remaining
    again = ledger.crash(points[first].key, event.crash)
    for numbers in (rest, [first] if again else []):  # alone and last, when fewer processes take memory
        if numbers:
            waiting.append(numbers)
            unfinished[id(numbers)] = deque(numbers)
    return 0 if again else 1


def _columns(
    space: DesignSpace, points: Sequence[DesignPoint], results: Mapping[str, tuple[State, str, dict[str, Any]]]
) -> dict[str, list[Any]]:
    """Columns of the table, a row a point in the order of the file."""
    outcomes = [results[point.key] for point in points]
    table: dict[str, list[Any]] = {}
    for axis in dict.fromkeys(axis for point in (*points[:1], *points[-1:]) for axis in point.values):
        table[column_of(axis)] = [point.values[axis] for point in points]
    table["state"] = [state for state, _, _ in outcomes]
    table["reason"] = [reason for _, reason, _ in outcomes]
    measured = dict.fromkeys(column for name in space.measure for column in MEASURES[name])
    shapes = dict.fromkeys(tuple(values) for _, _, values in outcomes)  # a few, however many points
    for column in measured | dict.fromkeys(column for shape in shapes for column in shape):
        table[column] = [values.get(column) for _, _, values in outcomes]
    return table


def _write(path: Path, table: dict[str, list[Any]]) -> None:
    """Write the table of results, whole or not at all."""
    import polars

    for column, values in table.items():
        if {str} < {type(one) for one in values if one is not None}:  # such as a node rate that is a number or "built"
            table[column] = [None if one is None else str(one) for one in values]
    with write_whole(path, at_once=True) as file:
        polars.DataFrame(table, infer_schema_length=None, strict=False).write_parquet(file, compression="zstd")


def _identity(path: Path, points: Sequence[DesignPoint]) -> str:
    """Size and time of the table of results, and a hash of the points that it is of; "" if there is none."""
    try:
        status = path.stat()
    except OSError:
        return ""
    keys = hashlib.sha256("\n".join(point.key for point in points).encode()).hexdigest()
    return f"{status.st_size} {status.st_mtime_ns} {keys}"


def _progressed(
    points: Sequence[DesignPoint], outcomes: Mapping[str, tuple[State, str, bool]], open_before: int
) -> Progressed:
    """Counts of a study.

    Args:
        open_before: points that were not finished before this run [count].
    """
    known = [outcomes[point.key] for point in points]
    states = Counter(state for state, _, _ in known)
    still_open = states["pending"] + states["crashed"]
    aside = {point.key: reason for point, (state, reason, _) in zip(points, known, strict=True) if state == "set aside"}
    refusals = Counter(reason for state, reason, _ in known if state == "refused")
    wrong = sum(one for _, _, one in known)
    return Progressed(
        dict(states),
        open_before - still_open,
        wrong,
        aside,
        dict(refusals.most_common()),
    )


def read_table(folder: Path) -> polars.DataFrame:
    """The table of results of a study.

    Raises: OutputError: it has none yet, or it cannot be read.
    """
    import polars

    path = folder / RESULTS
    if not path.is_file():
        raise OutputError(f"there is no {path} yet; run opticcl study run FILE.toml first")
    try:
        with path.open("rb") as file:  # a name that is no UTF-8 is none for polars
            return polars.read_parquet(file)
    except (OSError, polars.exceptions.PolarsError) as error:
        raise OutputError(f"cannot read {path}: {' '.join(str(error).split())}; run the study again") from None


def read_rows(folder: Path) -> list[dict[str, Any]]:
    """Rows of the table of results that are done with a right plan.

    Raises: OutputError: it has none yet, or it cannot be read.
    """
    return [
        row
        for row in read_table(folder).to_dicts()
        if row["state"] == "done" and row.get("verdict", "right") == "right"
    ]


def query(folder: Path, sql: str) -> polars.DataFrame:
    """Answer of an SQL query on the table of results, which is called `results` or `study`.

    Args:
        folder: of the study.
        sql: such as "SELECT fabric, min(total_s) FROM results GROUP BY fabric".
    Raises: OutputError: no results. ParameterError: the query, and what is wrong with it.
    """
    import polars

    table = read_table(folder)
    if re.search(r"\bwith\s+recursive\b", sql, re.IGNORECASE):  # polars would follow it without end
        raise ParameterError("query: WITH RECURSIVE is not supported; write WITH, or join the table with itself")
    try:
        context = polars.SQLContext({"results": table, "study": table})
        return context.execute(sql, eager=True)
    except polars.exceptions.PolarsError as error:
        why = " ".join(str(error).partition("\n")[0].partition("; valid columns")[0].split())
        raise ParameterError(f"query: {why}; columns: {', '.join(table.columns)}") from None


@dataclass(frozen=True, slots=True)
class StudyEstimate:
    """Time of a study that has not run.

    Args:
        points: of the study [count].
        finished: of them in the ledger [count].
        machines: sets of points that share plans [count].
        sampled: points that were computed for the estimate [count].
        least_s, most_s: time in the processes: as if machines larger than the sampled ones took no longer, and in
            proportion to their nodes [s].
        jobs: processes [count].
    """

    points: int
    finished: int
    machines: int
    sampled: int
    least_s: float
    most_s: float
    jobs: int

    def record(self) -> dict[str, Any]:
        """Plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


def estimate(space: DesignSpace, folder: Path, *, jobs: int = 1) -> StudyEstimate:
    """Time of the points that are not finished, from some machines, smaller ones first, which are computed here.

    Args:
        space: the study.
        folder: of its ledger, if it has run before.
        jobs: processes [count].
    """
    from opticcl.studies.space import measure

    points = list(space.points())
    done = _finished(folder)
    left = [[i for i in numbers if points[i].key not in done] for numbers in space.machines(points)]
    left = [numbers for numbers in left if numbers]
    if left:
        measure.prepare()  # a run does it once, for all points
    began, sampled, machines, first_s, next_s, largest = time.perf_counter(), 0, 0, 0.0, 0.0, 1
    for numbers in _spread(left, points):
        if machines and time.perf_counter() - began > ESTIMATE_S:
            break
        times = [time.perf_counter()]
        for _ in measure.measured(space, points, numbers[:3]):
            times.append(time.perf_counter())
        took = [later - earlier for earlier, later in pairwise(times)]
        first_s, next_s = first_s + took[0], next_s + sum(took[1:])
        machines, sampled = machines + 1, sampled + len(took)
        largest = max(largest, points[numbers[0]].values["nodes"])
    least = most = 0.0
    for numbers in left:
        each_s = next_s / (sampled - machines) if sampled > machines else 0.0
        took_s = first_s / machines + each_s * (len(numbers) - 1)
        least, most = least + took_s, most + took_s * max(1.0, points[numbers[0]].values["nodes"] / largest)
    open_points = sum(map(len, left))
    processes = max(1, min(jobs, len(left)))
    return StudyEstimate(
        len(points), len(points) - open_points, len(left), sampled, least / processes, most / processes, jobs
    )


def _spread(left: Sequence[list[int]], points: Sequence[DesignPoint]) -> Iterator[list[int]]:
    """Machines, of each number of nodes a different one, the smallest first, then the next of each."""
    by_nodes: dict[int, list[list[int]]] = {}
    for numbers in left[::-1]:
        by_nodes.setdefault(points[numbers[0]].values["nodes"], []).append(numbers)
    for turn in range(max(map(len, by_nodes.values()), default=0)):
        for place, some in enumerate(by_nodes.values()):
            if turn < len(some):
                yield some[(turn + place) % len(some)]


def _finished(folder: Path) -> set[str]:
    """Keys of the finished points of a ledger, which is not changed; none if it does not exist."""
    import sqlite3
    from urllib.parse import quote

    from opticcl.studies.space.ledger import LEDGER

    path = folder / LEDGER
    if not path.is_file():
        return set()
    try:
        connection = sqlite3.connect(f"file:{quote(os.fsencode(path))}?mode=ro", uri=True)
        try:
            rows = connection.execute("SELECT key FROM points WHERE state NOT IN ('pending', 'crashed')").fetchall()
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise OutputError(f"cannot read {path}: {error}") from None
    return {key for (key,) in rows}
