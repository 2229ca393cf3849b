"""Notes on a trace: counts of what a reader leaves out, and remarks that every list of calls has."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from opticcl.ir.task_graph import CallTable, CollectiveCall, Omission, counted_calls
from opticcl.units import format_seconds

__all__ = ["Omissions", "measured", "notes_on"]

MAX_REASONS = 64


class Omissions:
    """Counts what a reader leaves out, by reason, with the bytes where they are known."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._bytes: dict[str, int] = {}
        self._missing: set[str] = set()

    def add(self, what: str, size_bytes: int | None = None, calls: int = 1, *, missing: bool = False) -> None:
        """Count more of that kind.

        Args:
            what: kind and reason.
            size_bytes: sum of their sizes; None if unknown [bytes].
            calls: their number; nothing is added for 0.
            missing: whether they take time on the network.
        """
        if not calls:
            return
        if what not in self._counts and len(self._counts) >= MAX_REASONS:
            what = "of other kinds"
        self._counts[what] = self._counts.get(what, 0) + calls
        if missing:
            self._missing.add(what)
        if size_bytes is not None:
            self._bytes[what] = self._bytes.get(what, 0) + size_bytes

    def add_all(self, other: Omissions) -> None:
        """Add the counts of another one."""
        self._missing |= other._missing
        for what, n in other._counts.items():
            self._counts[what] = self._counts.get(what, 0) + n
        for what, size_bytes in other._bytes.items():
            self._bytes[what] = self._bytes.get(what, 0) + size_bytes

    def records(self) -> tuple[Omission, ...]:
        """The counts, one for each reason."""
        return tuple(
            Omission(what, n, self._bytes.get(what, 0), what in self._missing) for what, n in self._counts.items()
        )

    def notes(self) -> Iterator[str]:
        """A line for each reason."""
        for what, n in self._counts.items():
            size = f", {self._bytes[what]:,} bytes in all" if what in self._bytes else ""
            yield f"left out: {n:,} {what}{size}"


def notes_on(calls: Sequence[CollectiveCall], num_ranks: int = 0) -> Iterator[str]:
    """Remarks on measured times, transfers, small groups and empty messages.

    Args: num_ranks: of the job; 0 if unknown [count].
    """
    measured_s, timed, empty = measured(calls)
    if timed:
        yield f"measured: {format_seconds(measured_s)} in all for {timed:,} of {len(calls):,} calls"
    kinds = list(counted_calls(calls))
    transfers = sum(number for call, number, _ in kinds if call.is_transfer)
    if transfers:
        size = sum(size for call, _, size in kinds if call.is_transfer)
        yield f"transfers from one rank to another: {transfers:,} of {size:,} bytes in all"
    part = sum(
        number for call, number, _ in kinds if call.ranks and len(call.ranks) < num_ranks and not call.is_transfer
    )
    if part:
        yield f"groups smaller than all {num_ranks:,} ranks: {part:,} of {len(calls):,} calls"
    if empty:
        yield f"size of 0 bytes: {empty:,} of {len(calls):,} calls"


def measured(calls: Sequence[CollectiveCall]) -> tuple[float, int, int]:
    """Sum of recorded durations [s], calls that have one, calls without bytes."""
    if isinstance(calls, CallTable):
        took_s = calls.columns.measured_s
        empty = int(np.count_nonzero(calls.columns.size_bytes == 0))
        return math.fsum(took_s), int(np.count_nonzero(took_s)), empty
    times = [call.measured_s for call in calls if call.measured_s]
    return sum(times), len(times), sum(not call.size_bytes for call in calls)
