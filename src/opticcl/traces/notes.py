"""Notes on a trace: counts of what a reader leaves out, and remarks that every list of calls has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opticcl.ir.task_graph import CollectiveCall, Omission
from opticcl.units import format_seconds

__all__ = ["Omissions", "notes_on"]

MAX_REASONS = 64


class Omissions:
    """Counts what a reader leaves out, by reason, with the bytes where they are known."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._bytes: dict[str, int] = {}

    def add(self, what: str, size_bytes: int | None = None) -> None:
        """Count one more of that kind."""
        if what not in self._counts and len(self._counts) >= MAX_REASONS:
            what = "of other kinds"
        self._counts[what] = self._counts.get(what, 0) + 1
        if size_bytes is not None:
            self._bytes[what] = self._bytes.get(what, 0) + size_bytes

    def add_all(self, other: Omissions) -> None:
        """Add the counts of another one."""
        for what, n in other._counts.items():
            self._counts[what] = self._counts.get(what, 0) + n
        for what, size_bytes in other._bytes.items():
            self._bytes[what] = self._bytes.get(what, 0) + size_bytes

    def records(self) -> tuple[Omission, ...]:
        """The counts, one for each reason."""
        return tuple(Omission(what, n, self._bytes.get(what, 0)) for what, n in self._counts.items())

    def notes(self) -> Iterator[str]:
        """A line for each reason."""
        for what, n in self._counts.items():
            size = f", {self._bytes[what]:,} bytes in all" if what in self._bytes else ""
            yield f"left out: {n:,} {what}{size}"


def notes_on(calls: Sequence[CollectiveCall], num_ranks: int = 0) -> Iterator[str]:
    """Remarks on measured times, transfers, small groups and empty messages.

    Args: num_ranks: of the job; 0 if unknown [count].
    """
    if measured := [call.measured_s for call in calls if call.measured_s]:
        yield f"measured: {format_seconds(sum(measured))} in all for {len(measured):,} of {len(calls):,} calls"
    transfers = [call.size_bytes for call in calls if call.is_transfer]
    if transfers:
        yield f"transfers from one rank to another: {len(transfers):,} of {sum(transfers):,} bytes in all"
    part = sum(0 < len(call.ranks) < num_ranks and not call.is_transfer for call in calls)
    if part:
        yield f"groups smaller than all {num_ranks:,} ranks: {part:,} of {len(calls):,} calls"
    if empty := sum(not call.size_bytes for call in calls):
        yield f"size of 0 bytes: {empty:,} of {len(calls):,} calls"
