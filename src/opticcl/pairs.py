"""Distinct pairs of sender and receiver, grouped by sender: no sort and no table of all pairs.

Rows are counted by sender and laid beside each other; within a sender, an entry for each receiver remembers who saw it last.
Both take time in proportion to rows and nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from opticcl.ir import IntArray
from opticcl.kernels import njit

__all__ = ["Pairs", "among", "distinct"]


@dataclass(frozen=True, eq=False)
class Pairs:
    """Distinct pairs.

    Args:
        starts: receivers of sender s are dst[starts[s]:starts[s + 1]], int64 (nodes + 1,).
        dst: receivers, int32 (pairs,), in any order within a sender.
    """

    starts: IntArray
    dst: IntArray

    @classmethod
    def of(cls, src: IntArray, dst: IntArray, num_nodes: int) -> Pairs:
        """The distinct pairs of some rows.

        Args:
            src, dst: of each row, below num_nodes.
            num_nodes: nodes [count].
        """
        if _all_below(src, num_nodes) and _all_below(dst, num_nodes):
            starts, receivers = np.empty(num_nodes + 1, np.int64), np.empty(len(src), np.int32)
            count = _group(np.asarray(src, np.int32), np.asarray(dst, np.int32), num_nodes, starts, receivers)
            return cls(starts, receivers[:count] if 2 * count > len(src) else receivers[:count].copy())
        numbers = distinct(np.asarray(src, np.int64) * num_nodes + dst)
        of_sender = np.bincount(numbers // num_nodes, minlength=num_nodes)
        return cls(np.concatenate([[0], np.cumsum(of_sender)]), (numbers % num_nodes).astype(np.int32))

    def __len__(self) -> int:
        return len(self.dst)

    @property
    def num_nodes(self) -> int:
        """Nodes [count]."""
        return len(self.starts) - 1

    @cached_property
    def most_sent(self) -> int:
        """Receivers of the sender with the most of them [count]."""
        return int(np.diff(self.starts).max(initial=0))

    @cached_property
    def most_received(self) -> int:
        """Senders of the receiver with the most of them [count]."""
        return int(np.bincount(self.dst, minlength=1).max(initial=0))

    def within(self, others: Pairs) -> bool:
        """Whether all pairs are among others of the same nodes."""
        return bool(_within(self.starts, self.dst, others.starts, others.dst))

    @property
    def src(self) -> IntArray:
        """Senders, int64 (pairs,), beside `dst`."""
        return np.repeat(np.arange(self.num_nodes), np.diff(self.starts))


def _all_below(numbers: IntArray, count: int) -> bool:
    """Whether all numbers are within 0 .. count - 1."""
    return bool(numbers.min() >= 0 and numbers.max() < count) if len(numbers) else True


def distinct(numbers: IntArray) -> IntArray:
    """Distinct numbers, ascending; quicker than a table of hashes where they are nearly in order."""
    ascending = numbers if (numbers[1:] >= numbers[:-1]).all() else np.sort(numbers)
    again = ascending[1:] == ascending[:-1]
    return ascending[np.append(True, ~again)] if again.any() else ascending


def among(numbers: IntArray, ascending: IntArray) -> np.ndarray:
    """Which numbers are among ascending ones, bool (numbers,)."""
    if not len(ascending):
        return np.zeros(len(numbers), bool)
    place = np.minimum(np.searchsorted(ascending, numbers), len(ascending) - 1)
    return np.asarray(ascending[place] == numbers)


@njit(writes=("starts", "receivers"))
def _group(src, dst, num_nodes, starts, receivers):  # type: ignore[no-untyped-def]
    """Write the distinct receivers of each sender; returns how many there are in all.

    Args:
        src, dst: of each row, int32.
        num_nodes: nodes [count].
        starts: first place of each sender, int64 (num_nodes + 1,), written.
        receivers: int32 (rows,), written.
    """
    ends = np.zeros(num_nodes + 1, np.int64)
    for i in range(len(src)):
        ends[src[i] + 1] += 1
    for s in range(num_nodes):
        ends[s + 1] += ends[s]
    for s in range(num_nodes + 1):
        starts[s] = ends[s]
    for i in range(len(src)):
        receivers[ends[src[i]]] = dst[i]
        ends[src[i]] += 1
    seen_by = np.empty(num_nodes, np.int32)
    for s in range(num_nodes):
        seen_by[s] = -1
    count = 0
    for s in range(num_nodes):
        first, end = starts[s], ends[s]
        starts[s] = count
        for i in range(first, end):
            d = receivers[i]
            if seen_by[d] != s:
                seen_by[d] = s
                receivers[count] = d
                count += 1
    starts[num_nodes] = count
    return count


@njit(writes=())
def _within(starts, dst, other_starts, other_dst):  # type: ignore[no-untyped-def]
    """Whether all pairs are among others.

    Args:
        starts, dst: of the pairs, as `Pairs` has them.
        other_starts, other_dst: of the others.
    """
    num_nodes = len(starts) - 1
    seen_by = np.full(num_nodes, -1, np.int32)
    for s in range(num_nodes):
        if starts[s] == starts[s + 1]:
            continue
        for i in range(other_starts[s], other_starts[s + 1]):
            seen_by[other_dst[i]] = s
        for i in range(starts[s], starts[s + 1]):
            if seen_by[dst[i]] != s:
                return False
    return True
