"""Calls of a trace as columns: a log of a million calls takes tens of megabytes instead of hundreds.

A table is a sequence of calls: a call is made when it is read from the table. What all calls of a kind share, such as the
members of their group, is stored once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt

from opticcl.ir._common import IntArray

__all__ = ["CallColumns", "CallSequence", "exact_sum"]

Call = TypeVar("Call")


def exact_sum(column: IntArray) -> int:
    """The sum of whole numbers, of any size: those of the upper and of the lower 30 bits.

    >>> exact_sum(np.array([2**62, 2**62, 2**62])) == 3 * 2**62
    True
    """
    return (int((column >> 30).sum()) << 30) + int((column & (2**30 - 1)).sum())


@dataclass(frozen=True, slots=True, eq=False)
class CallColumns:
    """A row a call.

    Args:
        kind: index of its kind.
        size_bytes: the message [bytes].
        src, dst: sender and receiver of a transfer; -1 for a collective.
        measured_s: recorded duration; 0 if not recorded [s].
        label: number from which its name is made.
        group: index of the name of its group.
    """

    kind: IntArray
    size_bytes: IntArray
    src: IntArray
    dst: IntArray
    measured_s: npt.NDArray[np.float64]
    label: IntArray
    group: IntArray

    def take(self, rows: npt.NDArray[np.bool_] | IntArray) -> CallColumns:
        """Some of the rows."""
        return CallColumns(*(getattr(self, name)[rows] for name in self.__slots__))


class CallSequence(Sequence[Call], Generic[Call]):
    """Calls as columns; a call is made when it is read.

    Args:
        kinds: calls that stand for all of their kind; size, name, group and ends are those of the row.
        columns: a row a call.
        name_of: name of a call by its label; picklable.
        groups: names of groups.
    """

    __slots__ = ("columns", "groups", "kinds", "name_of")

    def __init__(
        self, kinds: Sequence[Call], columns: CallColumns, name_of: Callable[[int], str], groups: Sequence[str] = ("",)
    ) -> None:
        self.kinds, self.columns, self.name_of, self.groups = tuple(kinds), columns, name_of, tuple(groups)

    @abstractmethod
    def make(self, kind: Call, row: tuple[str, int, tuple[int, ...], float, str]) -> Call:
        """The call of a row.

        Args:
            kind: that stands for it.
            row: its name, size, sender and receiver (none for a collective), duration and group (empty: that of the kind).
        """

    def __len__(self) -> int:
        return len(self.columns.kind)

    def __iter__(self) -> Iterator[Call]:
        chunk = 65_536  # rows as Python numbers at a time
        for first in range(0, len(self), chunk):
            part = self.columns.take(np.arange(first, min(first + chunk, len(self))))
            rows = zip(*(getattr(part, name).tolist() for name in CallColumns.__slots__), strict=True)
            for kind, size, src, dst, took, label, group in rows:
                ends = (src, dst) if src >= 0 else ()
                yield self.make(self.kinds[kind], (self.name_of(label), size, ends, took, self.groups[group]))

    @overload
    def __getitem__(self, index: int) -> Call: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Call]: ...
    def __getitem__(self, index: int | slice) -> Call | Sequence[Call]:
        if isinstance(index, slice):
            return type(self)(self.kinds, self.columns.take(np.arange(len(self))[index]), self.name_of, self.groups)
        row = range(len(self))[index]
        columns = CallColumns(*(getattr(self.columns, name)[row : row + 1] for name in CallColumns.__slots__))
        return next(iter(type(self)(self.kinds, columns, self.name_of, self.groups)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (CallSequence, tuple, list)):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __hash__(self) -> int:
        return hash(tuple(self))
