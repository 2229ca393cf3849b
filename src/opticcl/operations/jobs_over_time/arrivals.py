"""Jobs that arrive: from a list in a file, or Poisson arrivals with a seed.

A list is CSV with a header; the columns may stand in any order, and others are ignored (`jobs.toml` has all names)::

    time_s,name,nodes,duration_s
    0,bert,16,3600
    120.5,dlrm,8,900

Times are seconds or dates such as 2020-04-01 00:00:06, counted from the first. A column `iterations` in place of the duration
gives the number of collectives of the job. Jobs of 0 nodes, as logs have them, are left out and counted.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from datetime import datetime
from math import inf, log
from pathlib import Path
from typing import Any

import numpy as np

from opticcl.errors import ParameterError, printable
from opticcl.files import read_toml
from opticcl.reading import DamageError, lines, reading
from opticcl.registry import convert_arguments, parse_call
from opticcl.units import Seconds, number_of

__all__ = ["Arrival", "job_values", "make_arrivals", "poisson_arrivals", "read_arrivals"]

MOST_JOBS = 100_000
"""Jobs of a list or a run [count]."""

LONGEST_S = 1e12
"""Latest time and longest duration: 30,000 years [s]."""

LONGEST_NAME = 64


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job that arrives.

    Args:
        time_s: of its arrival, 0 or more [s].
        name: of the job.
        num_nodes: requested [count].
        duration_s: of its work when it runs alone on the empty machine; None: `iterations` gives it [s].
        iterations: collectives of its work; None: `duration_s` gives it [count].
    """

    time_s: float
    name: str
    num_nodes: int
    duration_s: float | None
    iterations: int | None = None


def job_values(table: str) -> dict[str, Any]:
    """Values of a table of `jobs.toml` by key."""
    return {
        k: entry["value"] for k, entry in read_toml("opticcl.operations.jobs_over_time", "jobs.toml")[table].items()
    }


def make_arrivals(text: str, num_nodes: int, seed: int) -> tuple[list[Arrival], list[str]]:
    """Arrivals by name, "poisson:load=0.85,count=300", or of a file.

    Args:
        text: of the option.
        num_nodes: of the machine [count].
        seed: of the random arrivals.
    Returns: jobs in the order of their arrival, and notes.
    Raises: ParameterError, WorkloadError: in one line.
    """
    name = text.partition(":")[0].strip().lower()
    if name == "poisson":
        return poisson_arrivals(num_nodes, seed, **convert_arguments(_poisson, parse_call(text)[1], "poisson")), []
    return read_arrivals(Path(text), num_nodes)


_POISSON = job_values("poisson")


def _poisson(
    *,
    load: float,
    count: int = _POISSON["count"],
    mean: Seconds = _POISSON["mean"],
    smallest: int = _POISSON["smallest"],
    largest: int | None = None,
) -> None:
    """The parameters of "poisson:..." with their types."""


def poisson_arrivals(
    num_nodes: int,
    seed: int,
    *,
    load: float,
    count: int,
    mean: float,
    smallest: int,
    largest: int | None = None,
) -> list[Arrival]:
    """Jobs with exponential gaps and durations, and sizes whose logarithms are even.

    Args:
        num_nodes: of the machine [count].
        seed: the same seed gives the same jobs.
        load: nodes that the jobs would keep busy on average, over those of the machine.
        count: jobs.
        mean: mean duration [s].
        smallest, largest: nodes of a job; None: a quarter of the machine [count].
    Raises: ParameterError: a value out of its range.
    """
    if largest is None:
        largest = max(smallest, int(num_nodes * job_values("poisson")["largest_share"]))
    if not load > 0:
        raise ParameterError(f"poisson: load={load:g} is not above 0; try load=0.85")
    if not 1 <= count <= MOST_JOBS:
        raise ParameterError(f"poisson: count={count} is not 1 to {MOST_JOBS:,}; try count=300")
    if not 0 < mean <= LONGEST_S:
        raise ParameterError(f"poisson: mean={mean:g} is not above 0 s; try mean=3600s")
    if not 1 <= smallest <= largest:
        raise ParameterError(f"poisson: smallest={smallest}, largest={largest}; try smallest=2,largest={num_nodes}")
    if largest > num_nodes:
        raise ParameterError(f"poisson: largest={largest} is above the {num_nodes} nodes; try largest={num_nodes}")
    if seed < 0:
        raise ParameterError(f"seed: {seed} is negative; try 0")
    draw = np.random.default_rng(seed)
    sizes = np.arange(smallest, largest + 1)
    share = np.log((sizes + 0.5) / (sizes - 0.5)) / log((largest + 0.5) / (smallest - 0.5))
    gap_s = float(share @ sizes) * mean / (load * num_nodes)
    times = np.cumsum(draw.exponential(gap_s, count))
    nodes = draw.choice(sizes, count, p=share / share.sum())
    duration = draw.exponential(mean, count)
    columns = zip(times.tolist(), nodes.tolist(), duration.tolist(), strict=True)
    return [Arrival(t, f"job-{k}", n, d) for k, (t, n, d) in enumerate(columns, 1)]


def read_arrivals(path: Path, num_nodes: int) -> tuple[list[Arrival], list[str]]:
    """The jobs of a CSV file, plain or gzip, in the order of their times.

    Args:
        path: of the file.
        num_nodes: of the machine [count].
    Returns: jobs, and a note on those that were left out.
    Raises: WorkloadError: no such file, or the line that is wrong.
    """
    arrivals: list[Arrival] = []
    names: set[str] = set()
    empty, first_s = 0, None
    with reading(path, "list of jobs", "line") as file:
        rows = lines(file)
        number, header = next(rows, (1, ""))
        columns = _columns(number, header)
        for number, line in rows:
            cells = _cells(number, line, columns)
            if cells["nodes"].strip().lstrip("0") == "" and cells["nodes"].strip():
                empty += 1
                continue
            job, dated = _arrival(number, cells, len(arrivals) + 1, num_nodes)
            if job.name in names:
                raise DamageError(number, f"a job {job.name!r} exists already; names differ")
            if dated:
                first_s = job.time_s if first_s is None else min(first_s, job.time_s)
            elif job.time_s < 0:
                raise DamageError(number, f"the time {job.time_s:g} is negative")
            names.add(job.name)
            arrivals.append(job)
            if len(arrivals) > MOST_JOBS:
                raise DamageError(number, f"more than {MOST_JOBS:,} jobs; give a part of the list")
        if not arrivals:
            raise DamageError(number, "no jobs; write time_s,name,nodes,duration_s and a line for each job")
    jobs = [Arrival(j.time_s - (first_s or 0), j.name, j.num_nodes, j.duration_s, j.iterations) for j in arrivals]
    notes = [f"{empty:,} jobs of 0 nodes are left out"] if empty else []
    return sorted(jobs, key=lambda job: job.time_s), notes


def _columns(number: int, header: str) -> dict[str, int]:
    """Place of each known column.

    Raises: DamageError: a required one is missing, or one is there twice.
    """
    given = [cell.strip().lower() for cell in next(csv.reader([header]), [])]
    place_of: dict[str, int] = {}
    known = job_values("columns")
    for what, names in known.items():
        places = [place for place, name in enumerate(given) if name in names]
        if len(places) > 1:
            raise DamageError(number, f"two columns for {what}: {', '.join(given[p] for p in places)!r}; leave one out")
        if places:
            place_of[what] = places[0]
    if "duration" not in place_of and "iterations" in place_of:
        known["duration"] = known["iterations"]
        place_of["duration"] = -1
    for what in ("time", "nodes", "duration"):
        if what not in place_of:
            raise DamageError(
                number, f"no column for {what}; write time_s,name,nodes,duration_s (or {', '.join(known[what])})"
            )
    return place_of


def _cells(number: int, line: str, columns: dict[str, int]) -> dict[str, str]:
    """Cells of a line by column.

    Raises: DamageError: it has too few.
    """
    try:
        given = next(csv.reader([line], strict=True))
    except csv.Error as error:
        raise DamageError(number, f"is not a line of CSV: {error}") from None
    if len(given) <= max(columns.values()):
        raise DamageError(number, f"{len(given)} cells; the header has more columns")
    return {what: given[place] for what, place in columns.items() if place >= 0}


def _arrival(number: int, cells: dict[str, str], nth: int, num_nodes: int) -> tuple[Arrival, bool]:
    """The job of a line, and whether its time is a date.

    Args:
        num_nodes: of the machine [count].
    Raises: DamageError: a value out of its range.
    """
    time_s, dated = _time(number, cells["time"].strip())
    nodes = _number(number, cells["nodes"], "the number of nodes")
    if nodes != int(nodes) or nodes < 1:
        raise DamageError(number, f"{cells['nodes'].strip()!r} nodes; a job has a whole number of at least 1")
    if nodes > num_nodes:
        raise DamageError(number, f"a job of {int(nodes):,} nodes; the machine has {num_nodes:,}")
    name = cells.get("name", "").strip() or f"job-{nth}"
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise DamageError(
            number, f"{printable(name)[:80]!r} is not the name of a job; use 1 to {LONGEST_NAME} characters"
        )
    duration_s = iterations = None
    if "duration" in cells:
        duration_s = _number(number, cells["duration"], "the duration")
        if not 0 <= duration_s <= LONGEST_S:
            raise DamageError(number, f"the duration {duration_s:g} s is not 0 to {LONGEST_S:g}")
    else:
        count = _number(number, cells["iterations"], "the number of iterations")
        if count != int(count) or not 0 <= count < 2**53:
            raise DamageError(number, f"{cells['iterations'].strip()!r} iterations; write a whole number")
        iterations = int(count)
    return Arrival(time_s, name, int(nodes), duration_s, iterations), dated


def _time(number: int, text: str) -> tuple[float, bool]:
    if "-" in text[1:] and ":" in text:
        try:
            return datetime.fromisoformat(text).timestamp(), True
        except (ValueError, OverflowError, OSError):
            raise DamageError(number, f"{text[:40]!r} is not a time; write seconds or 2020-04-01 00:00:06") from None
    return _number(number, text, "the time"), False


def _number(number: int, text: str, what: str) -> float:
    try:
        value = number_of(text)
    except ValueError:
        value = inf
    if not abs(value) <= LONGEST_S:
        raise DamageError(number, f"{what} is {text.strip()[:40]!r}; write a number")
    return value
