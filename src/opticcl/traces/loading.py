"""Loads traces: one file, or the files of several ranks together."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path

from opticcl.errors import ParameterError, UnknownNameError, WorkloadError
from opticcl.ir.task_graph import TaskGraph, Workload, median_step
from opticcl.reading import printable, refusal, title
from opticcl.registry import as_path, canonical, nearest, one_or_more, whole_number
from opticcl.traces.files import files_of, is_archive
from opticcl.traces.foreign import ForeignReader
from opticcl.traces.merge import merged_graphs, merged_workload, order_ranks
from opticcl.traces.reader import TRACES, Dialect, ReadOptions, Recognised, format_of
from opticcl.traces.recording import RankTrace
from opticcl.traces.sidecar import rank_in_name
from opticcl.units import counted

__all__ = ["BUILTIN_WORKLOADS", "builtin", "load_job", "load_steps", "load_traces", "load_workload"]

BUILTIN_WORKLOADS: tuple[str, ...] = tuple(
    sorted(f.name.removesuffix(".toml") for f in files("opticcl.traces").joinpath("builtin").iterdir())
)

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A file, a directory, an archive (.zip, .tar.gz), a glob pattern or the name of a built-in workload; or several."""


def load_workload(
    path: Paths,
    *,
    num_ranks: int = 0,
    clock_hz: float | None = None,
    dialect: Dialect | None = None,
    kernel_sizes: str | os.PathLike[str] | None = None,
) -> Workload:
    """The workload in a trace; its content and its suffix select the format (.et .json .fbuf .toml, also packed).

    Args:
        path: see `Paths`; of several files each is the trace of one rank.
        num_ranks, clock_hz, dialect, kernel_sizes: see `ReadOptions`.
    Raises: WorkloadError: a file cannot be read, there is no call, or two sources contradict each other. ParameterError: no
        path, or no whole number.
    """
    sizes = None if kernel_sizes is None else Path(kernel_sizes)
    options = ReadOptions(whole_number(num_ranks, "load_workload: num_ranks"), clock_hz, dialect, sizes)
    given = _paths(path, "load_workload")
    if (name := _builtin_name(given)) is not None:
        with _builtin_file(name) as file:
            return TRACES.get("sizes").reader.read_workload(file, options)
    with files_of(given) as files:
        known, ignored = _traces_among(files)
        _check_options(known, options)
        if len(known) == 1:
            read = known[0][1].format.reader.read_workload(known[0][0], options)
            return replace(read, notes=(*ignored, *read.notes))
        traces = _read_all(known, options, tasks=False)
        workload = merged_workload(traces, options.num_ranks)
        if not workload.calls:
            raise _without_calls(workload)
        return replace(workload, name=_name(given) or workload.name, notes=(*ignored, *workload.notes))


def load_steps(
    path: Paths,
    *,
    num_ranks: int = 0,
    clock_hz: float | None = None,
    dialect: Dialect | None = None,
    kernel_sizes: str | os.PathLike[str] | None = None,
) -> list[TaskGraph]:
    """The task graphs of all steps in a trace, in order; one if the trace is not divided into steps.

    Args:
        path: see `Paths`; of several files each is the trace of one rank, and the graph has a device for each.
        num_ranks, clock_hz, dialect, kernel_sizes: see `ReadOptions`.
    Raises: WorkloadError: a file cannot be read, there is no call, two sources contradict each other, dependencies are cyclic,
        or the number of devices is unknown. ParameterError: no path, or no whole number.
    """
    sizes = None if kernel_sizes is None else Path(kernel_sizes)
    options = ReadOptions(whole_number(num_ranks, "load_steps: num_ranks"), clock_hz, dialect, sizes)
    given = _paths(path, "load_steps")
    if (name := _builtin_name(given)) is not None:
        with _builtin_file(name) as file:
            return TRACES.get("sizes").reader.read_steps(file, options)
    with files_of(given) as files:
        known, ignored = _traces_among(files)
        _check_options(known, options)
        if len(known) == 1:
            steps = known[0][1].format.reader.read_steps(known[0][0], options)
            return [replace(step, notes=(*ignored, *step.notes)) for step in steps]
        traces = _read_all(known, options, tasks=True)
        steps = merged_graphs(traces, options.num_ranks)
        if not any(step.num_calls for step in steps):
            raise _without_calls(steps[0])
        return [replace(step, name=_name(given) or step.name, notes=(*ignored, *step.notes)) for step in steps]


def load_job(
    path: Paths,
    *,
    num_ranks: int = 0,
    clock_hz: float | None = None,
    dialect: Dialect | None = None,
    kernel_sizes: str | os.PathLike[str] | None = None,
) -> TaskGraph:
    """The task graph of the job in a trace; of several steps the one with the median computation.

    Args:
        path: see `Paths`.
        num_ranks, clock_hz, dialect, kernel_sizes: see `ReadOptions`.
    Raises: WorkloadError, ParameterError: as `load_steps`.
    """
    whole_number(num_ranks, "load_job: num_ranks")
    _paths(path, "load_job")
    return median_step(
        load_steps(path, num_ranks=num_ranks, clock_hz=clock_hz, dialect=dialect, kernel_sizes=kernel_sizes)
    )


def load_traces(
    path: Paths,
    *,
    num_ranks: int = 0,
    clock_hz: float | None = None,
    dialect: Dialect | None = None,
    kernel_sizes: str | os.PathLike[str] | None = None,
) -> list[RankTrace]:
    """What each rank recorded, by rank, with tasks; notes on files that are no traces are before those of the first.

    Args:
        path: see `Paths`; of several files each is the trace of one rank.
        num_ranks, clock_hz, dialect, kernel_sizes: see `ReadOptions`.
    Raises: WorkloadError: a file cannot be read, or two are of the same rank. ParameterError: no path, or no whole number.
    """
    sizes = None if kernel_sizes is None else Path(kernel_sizes)
    options = ReadOptions(whole_number(num_ranks, "load_traces: num_ranks"), clock_hz, dialect, sizes)
    given = _paths(path, "load_traces")
    if (name := _builtin_name(given)) is not None:
        with _builtin_file(name) as file:
            return TRACES.get("sizes").reader.read_ranks(file, options, tasks=True)
    with files_of(given) as files:
        known, ignored = _traces_among(files)
        _check_options(known, options)
        traces = _read_all(known, options, tasks=True)
        traces = traces if len(traces) == 1 else order_ranks(traces)
        traces[0].before[:0] = ignored
        for trace in traces if len(known) > 1 else ():
            trace.name = _name(given) or trace.name
        return traces


def builtin(name: str) -> Workload:
    """A workload that is part of the package.

    >>> builtin("resnet50_ddp").total_bytes
    102228128

    Raises: UnknownNameError: no such workload.
    """
    if canonical(name) not in BUILTIN_WORKLOADS:
        raise UnknownNameError(f"unknown workload {name!r}; {nearest(canonical(name), BUILTIN_WORKLOADS)}")
    with _builtin_file(name) as file:
        return TRACES.get("sizes").reader.read_workload(file, ReadOptions())


def _builtin_file(name: str) -> AbstractContextManager[Path]:
    return as_file(files("opticcl.traces").joinpath("builtin", f"{canonical(name)}.toml"))


def _builtin_name(paths: list[str | os.PathLike[str]]) -> str | None:
    """The name of a built-in workload, if that is given and no such file exists."""
    name = str(paths[0])
    return name if len(paths) == 1 and canonical(name) in BUILTIN_WORKLOADS and not os.path.exists(name) else None


def _paths(path: Paths, what: str) -> list[str | os.PathLike[str]]:
    given = [path] if isinstance(path, os.PathLike) else one_or_more(path)
    if not given:
        raise WorkloadError(f"{what}: no file is given; give a trace such as step.et")
    return [as_path(one, what, "step.et") for one in given]


def _note_on(files: Sequence[tuple[Path, Recognised]]) -> Iterator[str]:
    """A note if files have the suffix of another format than that of their content."""
    wrong = [(path, one) for path, one in files if one.suffix_of]
    if wrong:
        path, one = wrong[0]
        name = printable(path.name)
        yield f"format: {one.name} by content; {counted(len(wrong), 'file')}, such as {name}, named as if {one.suffix_of}"


Known = list[tuple[Path, Recognised]]


def _traces_among(paths: Sequence[Path]) -> tuple[Known, list[str]]:
    """The traces among files, and notes on the others and on wrong suffixes.

    Where a file surely is of a format, those that only may be of one are no traces; nor are those of formats that are refused.

    Raises: WorkloadError: there is no trace, or they are of different formats.
    """
    formats = [(path, format_of(path)) for path in paths]
    known = [(path, one) for path, one in formats if one is not None]
    known = [one for one in known if not isinstance(one[1].format.reader, ForeignReader)] or known
    if not known:
        if len(paths) > 1:
            raise WorkloadError(f"{printable(str(paths[0].parent))}: no file in it has a known trace format")
        what = "has the form of no trace that opticcl reads, and is not a list of sizes (.toml); docs/traces.md lists the forms"
        raise refusal(paths[0], what if paths[0].stat().st_size else "the file is empty")
    surest = max(one.sureness for _, one in known)
    traces = [(path, one) for path, one in known if one.sureness == surest]
    first, chosen = traces[0]
    for path, one in traces:
        if one.format is not chosen.format:
            raise WorkloadError(
                printable(
                    f"{path.name} and {first.name} have different formats; give the traces of one job, a file for each rank"
                )
            )
    used = {path for path, _ in traces}
    ignored = [path.name for path in paths if path not in used]
    notes = (
        [f"ignored: {counted(len(ignored), 'file')} beside the traces, such as {printable(ignored[0])}"]
        if ignored
        else []
    )
    return traces, [*notes, *_note_on(traces)]


def _without_calls(job: Workload | TaskGraph) -> WorkloadError:
    """The refusal of traces that have no call, with what was left out."""
    notes = "; ".join(job.notes)
    return WorkloadError(f"{job.name}: no collective with a size among several ranks in these traces; {notes}")


def _check_options(known: Known, options: ReadOptions) -> None:
    """Raises ParameterError: sizes of kernels are given for a format without kernels.

    Args:
        known: the traces.
        options: what is added to them.
    """
    if options.kernel_sizes is not None and not known[0][1].format.reader.has_kernels:
        raise ParameterError(
            f"kernel_sizes: {printable(known[0][0].name)} is a trace without kernels ({known[0][1].name}); leave it out"
        )


def _read_all(known: Known, options: ReadOptions, *, tasks: bool) -> list[RankTrace]:
    """The traces of all files; of several one that does not record its rank has the number that differs in the names.

    Raises: WorkloadError: a file cannot be read.
    """
    reader = known[0][1].format.reader
    read = [(path, trace) for path, _ in known for trace in reader.read_ranks(path, options, tasks=tasks)]
    ranks = [trace.rank for _, trace in read]
    if min(ranks) < 0 or len(set(ranks)) < len(ranks):
        numbers = _numbers_in([path.name for path, _ in known])
        if len(read) == len(numbers) and not {*ranks} - {-1, *numbers}:
            for (_, trace), number in zip(read, numbers, strict=True):
                trace.rank = number
    return [trace for _, trace in read]


def _numbers_in(names: Sequence[str]) -> list[int]:
    """A number in each name that is the rank; none if there is no such number.

    That behind "rank" or "worker" if all have it; else one that differs between all of them: of several that which counts from
    0, else the last.

    >>> _numbers_in(["n02_0", "n03_1"]), _numbers_in(["rank0_n5.json", "rank1_n7.json"]), _numbers_in(["a"])
    ([0, 1], [0, 1], [])
    """
    said = [rank_in_name(name if "." in name else f"{name}.json") for name in names]
    suffixes = r"(\.(gz|xz|bz2|json|pickle|pkl|pt|et|fbuf|sqlite3?|txt|trace))+$"
    numbers = [re.findall(r"[0-9]{1,9}", re.sub(suffixes, "", name.lower())) for name in names]
    places = range(1, min(map(len, numbers)) + 1)
    columns = [said, *([int(row[-place]) for row in numbers] for place in places)]
    differing = [column for column in columns if len(set(column)) == len(names) > 1 and min(column) >= 0]
    counting = [column for column in differing if set(column) == set(range(len(names)))]
    return next(iter([*(differing if differing[:1] == [said] else counting), *differing]), [])


def _name(paths: Sequence[str | os.PathLike[str]]) -> str:
    """Name of the job in a directory or an archive; empty for other paths."""
    path = Path(paths[0])
    whole = len(paths) == 1 and (path.is_dir() or is_archive(path))
    return title(path).removesuffix(".tar") if whole else ""
