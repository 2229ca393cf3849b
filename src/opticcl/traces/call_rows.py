"""Calls of a log of all ranks as columns, from the lines to the workload.

A format with short lines and explicit ranks collects its calls in a `CallRows` and returns them as a `RankCallTable`; ranks and
groups are then resolved once for each kind of call instead of once for each call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from opticcl.ir import IntArray
from opticcl.ir.call_table import CallColumns, CallSequence
from opticcl.traces.recording import RankCall

__all__ = ["CallRows", "RankCallTable", "kinds_of"]


_TYPES = (np.int32, np.int64, np.int32, np.int32, np.float64, np.int64, np.int32)  # of the columns


class RankCallTable(CallSequence[RankCall]):
    """Recorded calls as columns, see `CallSequence`."""

    __slots__ = ()

    def make(self, kind: RankCall, row: tuple[str, int, tuple[int, ...], float, str]) -> RankCall:
        """The call of a row."""
        name, size, ends, took, group = row
        return replace(
            kind, name=name, size_bytes=size, group=group or kind.group, ranks=ends or kind.ranks, measured_s=took
        )


def kinds_of(calls: Sequence[RankCall]) -> Sequence[RankCall]:
    """Calls with all groups and the highest rank among `calls`: of a table a call of each kind, otherwise all calls."""
    if not isinstance(calls, RankCallTable) or not len(calls):
        return calls
    columns = calls.columns
    _, rows = np.unique(columns.kind, return_index=True)
    highest = int(np.argmax(np.maximum(columns.src, columns.dst)))
    return [calls[int(row)] for row in dict.fromkeys([*sorted(rows.tolist()), highest])]


@dataclass(slots=True)
class CallRows:
    """Collects calls in the order of a file.

    Attributes:
        kinds: index of each collective and group; a transfer is of the kind ("send", ()).
        calls: a call of each kind, without name and size.
        columns: arrays of kind, size, sender, receiver, duration, label and group.
    """

    kinds: dict[tuple[object, ...], int] = field(default_factory=dict)
    calls: list[RankCall] = field(default_factory=list)
    _held: tuple[bytearray, ...] = field(default_factory=lambda: tuple(bytearray() for _ in _TYPES))

    def kind(self, collective: str, ranks: tuple[int, ...] = (), **more: Any) -> int:
        """Index of a kind.

        Args:
            collective, ranks: see `RankCall`.
            more: further fields of `RankCall`, always the same ones.
        """
        key = (collective, ranks, *more.values())
        if key not in self.kinds:
            self.kinds[key] = len(self.calls)
            self.calls.append(RankCall("", collective, 0, ranks=ranks, **more))
        return self.kinds[key]

    def add(self, *columns: IntArray) -> None:
        """Add rows.

        Args: columns: kind, size_bytes, src, dst, measured_s, label, group, see `CallColumns`.
        """
        for held, column, kind in zip(self._held, columns, _TYPES, strict=True):
            held += np.ascontiguousarray(column, kind).data.cast("B") if len(column) else b""

    def table(self, name_of: Callable[[int], str], groups: Sequence[str] = ("",)) -> RankCallTable:
        """The table of all rows.

        Args:
            name_of: name of a call by its label.
            groups: names of groups.
        """
        columns = (np.frombuffer(held, kind) for held, kind in zip(self._held, _TYPES, strict=True))
        return RankCallTable(self.calls, CallColumns(*columns), name_of, groups)
