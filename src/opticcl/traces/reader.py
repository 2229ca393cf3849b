"""Trace formats: a reader for each, found by discovery, chosen by content and suffix."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar

from opticcl.errors import ParameterError
from opticcl.ir.task_graph import TaskGraph, Workload
from opticcl.reading import head_of, plain_name, refusal
from opticcl.registry import Registry
from opticcl.traces.graphs import task_graphs
from opticcl.traces.merge import merged_graphs, merged_workload
from opticcl.traces.ranks import workload_from
from opticcl.traces.recording import RankTrace

__all__ = [
    "TRACES",
    "Dialect",
    "ReadOptions",
    "Recognised",
    "TraceFormat",
    "TraceReader",
    "format_of",
    "register_trace",
]

Dialect = Literal["astra", "simai"]
"""By whose law a layer file is read."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the caller adds to a file.

    Args:
        num_ranks: devices of the job, for files that do not record it; 0: as recorded [count].
        clock_hz: clock of ASTRA-sim's text form, which counts computation in cycles of an unnamed clock; None: the
            computation stays unknown [1/s].
        dialect: by whose law a layer file is read, "astra" or "simai"; None: as its first line says.
        kernel_sizes: list of the sizes of kernels that communicate without a record, see `kernel_names`; None: there is none.
    Raises: ParameterError: fewer than no ranks, no clock rate, or no such dialect.
    """

    num_ranks: int = 0
    clock_hz: float | None = None
    dialect: Dialect | None = None
    kernel_sizes: Path | None = None

    def __post_init__(self) -> None:
        if self.num_ranks < 0:
            raise ParameterError(f"num_ranks={self.num_ranks} is negative; try 0: as recorded")
        clock = self.clock_hz
        if clock is not None and not (isinstance(clock, Real) and 0 < clock < math.inf):
            raise ParameterError(f"clock_hz: {clock!r} is not a clock rate; give cycles per second, such as 1e9")
        if self.dialect not in (None, "astra", "simai"):
            raise ParameterError(f"dialect: {self.dialect!r} is not astra or simai; try None: as the file says")


class TraceReader:
    """Reads one format. A format implements `read`, or `read_ranks` if a file may be of several ranks; the rest follows.

    Attributes:
        has_kernels: whether its files have kernels by name, whose sizes may be given.
    """

    has_kernels = False

    def __init_subclass__(cls) -> None:
        if cls.read is TraceReader.read and cls.read_ranks is TraceReader.read_ranks:
            raise TypeError(f"{cls.__name__} implements neither read nor read_ranks")

    def read(self, path: Path, options: ReadOptions, *, tasks: bool) -> RankTrace:
        """A whole file of one rank.

        Args:
            path: the file.
            options: what the caller adds to it.
            tasks: whether tasks are wanted beside the calls, for formats that record them.
        Raises: WorkloadError: the file cannot be read or contains no call.
        """
        (trace,) = self.read_ranks(path, options, tasks=tasks)
        return trace

    def read_ranks(self, path: Path, options: ReadOptions, *, tasks: bool) -> list[RankTrace]:
        """The traces of all ranks in a file.

        Args:
            path, options, tasks: as of `read`.
        Raises: WorkloadError: as `read`.
        """
        return [self.read(path, options, tasks=tasks)]

    def read_workload(self, path: Path, options: ReadOptions) -> Workload:
        """The calls in a file.

        Raises: WorkloadError: the file cannot be read, contains no call among several ranks, or contradicts the options.
        """
        traces = self.read_ranks(path, options, tasks=False)
        single = len(traces) == 1
        found = workload_from(traces[0], options.num_ranks) if single else merged_workload(traces, options.num_ranks)
        if not found.calls:
            raise refusal(
                path, f"no collective with a size among several ranks in this trace; {'; '.join(found.notes)}"
            )
        return found

    def read_steps(self, path: Path, options: ReadOptions) -> list[TaskGraph]:
        """The task graph of each step in a file; without recorded tasks the calls one after the other, after all computation.

        Raises: WorkloadError: as `read_workload`, or the number of devices is unknown.
        """
        traces = self.read_ranks(path, options, tasks=True)
        single = len(traces) == 1
        found = task_graphs(traces[0], options.num_ranks) if single else merged_graphs(traces, options.num_ranks)
        if not any(step.num_calls for step in found):
            notes = "; ".join(found[0].notes) if found else "no step"
            raise refusal(path, f"no collective with a size among several ranks in this trace; {notes}")
        return found


class TraceFormat(NamedTuple):
    """A registered format.

    Args:
        suffixes: of its files, in lower case, without that of a packing (.gz, .xz, .bz2).
        sniff: how surely the first bytes of a file (unpacked) are of this format: 0 no, 1 perhaps, 2 surely.
        reader: reads it.
    """

    suffixes: tuple[str, ...]
    sniff: Callable[[bytes], int]
    reader: TraceReader


TRACES: Registry[TraceFormat] = Registry("trace format", "opticcl.traces")

Reader = TypeVar("Reader", bound=type[TraceReader])


def register_trace(
    name: str, suffixes: Sequence[str] = (), sniff: Callable[[bytes], int] = lambda head: 0
) -> Callable[[Reader], Reader]:
    """Decorator that registers a `TraceReader`.

    Args:
        name: of the format.
        suffixes: of its files, such as (".et",).
        sniff: see `TraceFormat`; by default only the suffix selects the format.
    """

    def add(reader: Reader) -> Reader:
        TRACES.register(name)(TraceFormat(tuple(suffixes), sniff, reader()))
        return reader

    return add


class Recognised(NamedTuple):
    """The format of a file.

    Args:
        name: of the format.
        format: the format.
        sureness: of its `sniff`; 0: only the suffix selects it.
        suffix_of: name of the format whose suffix the file has although its content is not of that format; else empty.
    """

    name: str
    format: TraceFormat
    sureness: int
    suffix_of: str


def format_of(path: Path) -> Recognised | None:
    """The format of a file: by content, of equals by suffix, then by suffix alone; None if no format claims it.

    Raises: WorkloadError: the file cannot be read.
    """
    head = head_of(path)
    suffix = Path(plain_name(path.name.lower())).suffix
    formats = {name: TRACES.get(name) for name in TRACES.names()}
    ranked = {name: (int(one.sniff(head)), suffix in one.suffixes) for name, one in formats.items()}
    best = max(ranked, key=lambda name: ranked[name])
    sureness, right = ranked[best]
    if not sureness and not right:
        return None
    others = [name for name, (likely, claims) in ranked.items() if claims and not likely]
    return Recognised(best, formats[best], sureness, others[0] if others and not right else "")
