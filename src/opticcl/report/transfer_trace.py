"""Timeline of the transfers of a plan, in the Chrome-trace format that Perfetto reads.

    steps           each step from its beginning to its end (with barriers), or the critical path (asynchronously)
    transfers       by sender, one line for each of its concurrent transfers

A trace has at most `MOST_SLICES` transfers on at most `MOST_LINES` lines: of a larger plan those of the first nodes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from opticcl.errors import OutputError, UnsupportedError
from opticcl.formats.perfetto import name_event, slice_event, write_events
from opticcl.ir import IntArray, numbered

if TYPE_CHECKING:
    from opticcl.plans.plan import Plan
    from opticcl.simulate import SimulationResult
    from opticcl.simulate.traffic import TransferTimes

__all__ = ["MOST_LINES", "MOST_SLICES", "write_transfer_trace"]

MOST_SLICES = 50_000
MOST_LINES = 5_000  # a viewer is slow with more
MOST_STEPS = 5_000  # steps that have a slice of their own
_STEPS, _TRANSFERS = 0, 1  # processes


def write_transfer_trace(path: Path, plan: Plan, result: SimulationResult) -> str:
    """Write the trace of a simulation, whole or not at all.

    Args:
        path: of the .json file.
        plan: that was simulated.
        result: of the simulation.
    Returns: which transfers it has, in words.
    Raises: OutputError: another suffix than .json, or not writable; UnsupportedError: the engine has no single transfers.
    """
    if path.suffix.lower() != ".json":
        raise OutputError(f"--trace: cannot write {path}: a trace is a .json file")
    if result.traffic is None:
        raise UnsupportedError("--trace: the closed form has no single transfers; give --engine flow")
    spans, scope = _spans(result.traffic.transfers)
    about = {"plan": str(plan), **{k: str(v) for k, v in result.timeline.assumptions.items()}, "transfers": scope}
    write_events(path, _events(plan, result, spans), about, "ns")
    return scope


class _Span(NamedTuple):
    """One transfer.

    Args:
        line: of its sender, 0 for the first.
        row: of the transfer times.
        turn: index among the repeats of its step.
        start_s, end_s: from the start of the plan [s].
    """

    line: int
    row: int
    turn: int
    start_s: float
    end_s: float


def _events(plan: Plan, result: SimulationResult, spans: list[_Span]) -> Iterator[dict[str, Any]]:
    """Names of processes and threads, and every span."""
    assert result.traffic is not None
    times, critical = result.traffic.transfers, result.traffic.critical
    if len(critical):
        yield name_event("process", _STEPS, 0, "critical path")
        yield name_event("thread", _STEPS, 0, "from the first transfer to the last")
        yield from _chain(critical)
    else:
        yield name_event("process", _STEPS, 0, "steps")
        yield name_event("thread", _STEPS, 0, "steps")
        yield from _steps(result)
    yield name_event("process", _TRANSFERS, 0, "transfers, by sender")
    marked = _in_chain(times, critical) if len(critical) else _last_of_round(times)
    threads: dict[tuple[int, int], int] = {}
    for span in spans:
        src, dst, step = int(times.src[span.row]), int(times.dst[span.row]), int(times.step[span.row] + span.turn)
        line = (src, span.line)
        if line not in threads:
            threads[line] = len(threads)
            yield name_event("thread", _TRANSFERS, threads[line], _line_name(plan, *line))
        name = f"{src} -> {dst}" if src >= 0 else f"step {step}"
        critical_now = bool(marked[span.row])
        about = {"step": step, "bytes": float(times.size_bytes[span.row]), "critical": critical_now}
        kind = "critical" if critical_now else "transfer"
        yield slice_event(name, kind, span.start_s, span.end_s, _TRANSFERS, threads[line], about)


def _spans(times: TransferTimes) -> tuple[list[_Span], str]:
    """The transfers that fit a trace, sender by sender, and which these are, in words."""
    senders = int(times.src.max(initial=-1)) + 1
    spans: list[_Span] = []
    lines = 0
    by_sender = np.argsort(times.src, kind="stable")
    ends = np.searchsorted(times.src[by_sender], np.arange(-1, senders + 1))
    for sender in range(-1, senders):
        mine = _of_sender(times, by_sender[ends[sender + 1] : ends[sender + 2]])
        lines += max((span.line + 1 for span in mine), default=0)
        if sender > 0 and (len(spans) + len(mine) > MOST_SLICES or lines > MOST_LINES):
            senders_shown = "node 0" if sender == 1 else f"nodes 0 to {sender - 1}"
            limits = f"{MOST_SLICES:,} transfers on {MOST_LINES:,} lines at most"
            return spans, f"transfers from {senders_shown} of {senders:,}; a trace has {limits}"
        spans += mine
    if len(spans) > MOST_SLICES:
        return spans[:MOST_SLICES], f"the first {MOST_SLICES:,} transfers"
    scope = "all transfers" if senders else "one slice a run of equal steps, since there are too many"
    return spans, scope if spans else "nothing is sent"


def _of_sender(times: TransferTimes, rows: IntArray) -> list[_Span]:
    """Transfers of one sender, each on the first free line, in the order of their starts; at most `MOST_SLICES` + 1.

    Args:
        times: of all transfers.
        rows: of this sender, int64 (n,).
    """
    repeats = np.minimum(times.repeats[rows], MOST_SLICES + 1)
    of_row, turn = numbered(repeats)
    row = rows[of_row]
    start_s = times.start_s[row] + turn * times.period_s[row]
    order = np.argsort(start_s, kind="stable")[: MOST_SLICES + 1]
    row, turn, start_s = row[order], turn[order], start_s[order]
    end_s = times.end_s[row] + turn * times.period_s[row]
    free: list[tuple[float, int]] = []  # end of the last transfer on each line, and its number
    spans = []
    for columns in zip(row.tolist(), turn.tolist(), start_s.tolist(), end_s.tolist(), strict=True):
        line = heapq.heappop(free)[1] if free and free[0][0] <= columns[2] else len(free)
        heapq.heappush(free, (columns[3], line))
        spans.append(_Span(line, *columns))
    return spans


def _steps(result: SimulationResult) -> Iterator[dict[str, Any]]:
    begin_s, left = 0.0, MOST_STEPS
    for steps, rounds, parts in result.timeline:
        whole_s = sum(parts.values())
        apart = len(steps) if len(steps) <= left else 1
        left -= apart
        about = {"rounds": rounds // apart, **{name: seconds / apart for name, seconds in parts.items()}}
        for k in range(apart):
            name = f"step {steps.start + k}" if apart == len(steps) else f"steps {steps.start} to {steps.stop - 1}"
            start_s, end_s = (begin_s + whole_s * part / apart for part in (k, k + 1))
            yield slice_event(name, "step", start_s, end_s, _STEPS, 0, about)
        begin_s += whole_s


def _chain(critical: TransferTimes) -> Iterator[dict[str, Any]]:
    begin_s = 0.0
    for i in range(min(len(critical), MOST_STEPS)):
        end_s = float(critical.end_s[i])
        name = f"step {critical.step[i]}: {critical.src[i]} -> {critical.dst[i]}"
        about = {"bytes": float(critical.size_bytes[i]), "sent_from_s": float(critical.start_s[i])}
        yield slice_event(name, "critical", begin_s, max(begin_s, end_s), _STEPS, 0, about)
        begin_s = max(begin_s, end_s)


def _line_name(plan: Plan, rank: int, before: int) -> str:
    if rank < 0:
        return "all transfers of a step"
    node = int(plan.fabric.machine_nodes(np.array([rank]))[0])
    return plan.fabric.node_name(node) + (f", {before + 1}" if before else "")


def _last_of_round(times: TransferTimes) -> np.ndarray:
    """Transfers that end last of those that start together in their step, bool (n,)."""
    order = np.lexsort((times.end_s, times.start_s, times.step))
    step, start_s, end_s = (column[order] for column in (times.step, times.start_s, times.end_s))
    last = np.ones(len(order), bool)
    last[:-1] = (np.diff(step) != 0) | (np.diff(start_s) != 0)
    group = np.cumsum(np.r_[0, last[:-1]])[: len(order)]
    marked = np.zeros(len(order), bool)
    marked[order] = end_s == end_s[last][group]
    return marked


def _in_chain(times: TransferTimes, critical: TransferTimes) -> np.ndarray:
    """Transfers that are on the critical path, bool (n,)."""
    nodes = int(max(times.src.max(initial=0), times.dst.max(initial=0))) + 1
    mine, chain = ((r.step.astype(np.int64) * nodes + r.src) * nodes + r.dst for r in (times, critical))
    marked: np.ndarray = np.isin(mine, chain) & np.isin(times.end_s, critical.end_s)
    return marked
