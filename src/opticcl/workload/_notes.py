"""What readers say about a trace: counts of what they leave out, and what every list of calls should tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from opticcl.units import format_seconds

if TYPE_CHECKING:
    from opticcl.workload import CollectiveCall

__all__ = ["LeftOut", "notes_on"]

MAX_REASONS = 64  # more would be no report


class LeftOut:
    """Counts what is left out, by reason, with the bytes where they are known."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._bytes: dict[str, int] = {}

    def add(self, what: str, size_bytes: int | None = None) -> None:
        """One more of that kind."""
        if what not in self._counts and len(self._counts) >= MAX_REASONS:
            what = "of other kinds"
        self._counts[what] = self._counts.get(what, 0) + 1
        if size_bytes is not None:
            self._bytes[what] = self._bytes.get(what, 0) + size_bytes

    def total(self) -> int:
        """All that is left out [count]."""
        return sum(self._counts.values())

    def notes(self) -> Iterator[str]:
        """A line for each reason."""
        for what, n in self._counts.items():
            size = f", {self._bytes[what]:,} bytes in all" if what in self._bytes else ""
            yield f"left out: {n:,} {what}{size}"


def notes_on(calls: Sequence[CollectiveCall], num_ranks: int = 0) -> Iterator[str]:
    """What any list of calls should tell: measured times, transfers, groups and empty messages."""
    if measured := [call.measured_s for call in calls if call.measured_s]:
        yield f"measured: {format_seconds(sum(measured))} in all for {len(measured):,} of {len(calls):,} calls"
    transfers = [call.size_bytes for call in calls if call.is_transfer]
    if transfers:
        yield f"transfers from one rank to another: {len(transfers):,} of {sum(transfers):,} bytes in all"
    unknown = sum(not call.group and not call.ranks for call in calls)
    if unknown:
        yield f"no process group recorded for {unknown:,} of {len(calls):,} calls: taken to span all ranks"
    part = sum(0 < len(call.ranks) < num_ranks and not call.is_transfer for call in calls)
    if part:
        yield f"groups smaller than all {num_ranks:,} ranks: {part:,} of {len(calls):,} calls"
    if empty := sum(not call.size_bytes for call in calls):
        yield f"size of 0 bytes: {empty:,} of {len(calls):,} calls"
