"""What is in a trace, without a fabric: its ranks, groups, steps and calls, and how much of a step is exposed communication."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.errors import WorkloadError
from opticcl.ir import IntArray
from opticcl.ir.call_table import exact_sum
from opticcl.ir.task_graph import CallTable, CollectiveCall, RecordedTimes, TaskGraph, Workload, median_step
from opticcl.traces.graphs import task_graphs
from opticcl.traces.loading import Paths, load_traces
from opticcl.traces.merge import merged_graphs, merged_workload
from opticcl.traces.ranks import workload_from
from opticcl.traces.recording import RankTrace

__all__ = ["TraceContents", "load_contents"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class TraceContents:
    """What is in a trace.

    Args:
        traces: what each rank recorded; one of all ranks if the file has them together.
        workload: the calls of all ranks and steps, each once.
        steps: task graph of each step; none if the file has no tasks, or does not record the number of ranks.
    """

    traces: tuple[RankTrace, ...]
    workload: Workload
    steps: tuple[TaskGraph, ...]

    @property
    def median(self) -> TaskGraph | None:
        """The step that stands for all, with the median computation; None if there is no step."""
        return median_step(self.steps) if self.steps else None

    @cached_property
    def calls(self) -> _Calls:
        """The calls as columns."""
        return _Calls.of(self.workload.calls)

    def by_kind(self) -> list[dict[str, Any]]:
        """Calls of each collective in groups of each size, as plain values: number, bytes, times; most bytes first."""
        calls, count = self.calls, self.workload.num_ranks
        kinds = [(call.collective if not call.is_transfer else "transfer", _size(call, count)) for call in calls.kinds]
        rows = [
            {"collective": name, "ranks": size or None, **calls.sums(rows)}
            for (name, size), rows in calls.grouped(kinds)
        ]
        return sorted(rows, key=lambda row: -row["bytes"])

    def by_group(self) -> list[dict[str, Any]]:
        """Calls of each process group, as plain values; the members are cut after the 64th. Transfers are one group."""
        calls, count = self.calls, self.workload.num_ranks
        keys = [
            ("transfers", (), "") if call.is_transfer else (call.group, call.ranks, call.group_source)
            for call in calls.kinds
        ]
        groups = []
        for (name, ranks, source), rows in calls.grouped(keys):
            members = list(ranks[:64]) if ranks else list(range(min(count, 64)))
            size = 2 if name == "transfers" and not source else len(ranks) or count
            about = {
                "group": name or None,
                "size": size or None,
                "members": [] if size == 2 and not source else members,
            }
            groups.append({**about, "source": source or None, **calls.sums(rows)})
        return groups

    def by_rank(self) -> list[dict[str, Any]]:
        """What each rank recorded, as plain values: calls as it has them, computation and times of the median step.

        Where a rank has no such step, the computation is that of its whole trace.
        """
        return [_rank(trace, self.median) for trace in self.traces]

    def by_step(self) -> list[dict[str, Any]]:
        """Each step as plain values: calls, bytes, bound and recorded times."""
        return [
            {
                "step": step.step or None,
                "calls": step.num_calls,
                "bytes": step.network_bytes,
                "computed_s": step.compute_s,
                "bound": step.bound or None,
                **_recorded(step.recorded),
            }
            for step in self.steps
        ]


@dataclass(frozen=True, slots=True)
class _Calls:
    """Calls as columns.

    Args:
        kinds: a call of each kind.
        kind: index of the kind of each call, int64 (n,).
        size_bytes: of each message, int64 (n,) [bytes].
        measured_s: recorded durations; 0 if not recorded, float64 (n,) [s].
    """

    kinds: Sequence[CollectiveCall]
    kind: IntArray
    size_bytes: IntArray
    measured_s: Floats

    @classmethod
    def of(cls, calls: Sequence[CollectiveCall]) -> _Calls:
        """The columns of calls; a call that is no row of a table is a kind of its own."""
        if isinstance(calls, CallTable):
            columns = calls.columns
            pairs = np.stack([columns.kind, columns.group])
            _, first, kind = np.unique(pairs, axis=1, return_index=True, return_inverse=True)
            kinds = [calls[int(row)] for row in first]
            return cls(kinds, kind.reshape(-1), columns.size_bytes, columns.measured_s)
        size_bytes = np.fromiter((call.size_bytes for call in calls), np.int64, len(calls))
        measured_s = np.fromiter((call.measured_s for call in calls), np.float64, len(calls))
        return cls(calls, np.arange(len(calls)), size_bytes, measured_s)

    def grouped(self, keys: Sequence[Any]) -> list[tuple[Any, IntArray]]:
        """The distinct keys of the kinds, in their order, and the rows of the calls of each.

        Args: keys: one a kind.
        """
        number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        of_kind = np.fromiter((number[key] for key in keys), np.int64, len(keys))[self.kind]
        order = np.argsort(of_kind, kind="stable")
        ends = np.cumsum(np.bincount(of_kind, minlength=len(number)))
        return list(zip(number, np.split(order, ends[:-1]), strict=True))

    def sums(self, rows: IntArray) -> dict[str, Any]:
        """Number, bytes and times of some calls; a rate is of those with a duration."""
        size_bytes, took_s = self.size_bytes[rows], self.measured_s[rows]
        timed = took_s > 0
        total_s = float(took_s.sum())
        return {
            "calls": len(rows),
            "bytes": exact_sum(size_bytes),
            "smallest_bytes": int(size_bytes.min()),
            "largest_bytes": int(size_bytes.max()),
            "timed_calls": int(timed.sum()),
            "measured_s": total_s if timed.any() else None,
            "rate_bits_per_s": 8 * exact_sum(size_bytes[timed]) / total_s if timed.any() else None,
        }


def _size(call: CollectiveCall, count: int) -> int:
    """Ranks of a call; 0 if unknown."""
    return len(call.ranks) or count


def _rank(trace: RankTrace, median: TaskGraph | None) -> dict[str, Any]:
    """What a rank recorded, as plain values."""
    name = median.step if median else ""
    recorded = next((step.recorded for step in trace.steps if step.name == name), None)
    return {
        "rank": trace.rank if trace.rank >= 0 else None,
        "file": trace.file,
        "calls": len(trace.calls),
        "steps": len(trace.steps),
        "computed_s": recorded.compute_s if recorded else trace.compute_s,
        **_recorded(recorded),
    }


def _recorded(recorded: RecordedTimes | None) -> dict[str, Any]:
    """Times of a step as plain values; None where there are none."""
    known = recorded or RecordedTimes(0.0, 0.0)
    return known.record() if recorded else dict.fromkeys(known.record())


def load_contents(path: Paths, **options: Any) -> TraceContents:
    """What is in the traces of one or several ranks.

    Args:
        path: see `opticcl.traces.loading.Paths`.
        options: see `opticcl.traces.load_workload`.
    Raises: WorkloadError: a file cannot be read, there is no call, two sources contradict each other, or the ranks wait for
        each other. ParameterError: no path, or no whole number.
    """
    given = options.get("num_ranks", 0)
    traces = load_traces(path, **options)
    single = len(traces) == 1
    workload = workload_from(traces[0], given) if single else merged_workload(traces, given)
    if not workload.calls:
        notes = "; ".join(workload.notes)
        raise WorkloadError(f"{workload.name}: no collective with a size among several ranks; {notes}")
    known = workload.num_ranks and any(trace.steps for trace in traces)
    steps = (task_graphs(traces[0], given) if single else merged_graphs(traces, given)) if known else []
    return TraceContents(tuple(traces), workload, tuple(steps))
