"""Transfers of a step, as columns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.ir._common import IntArray, first_rows, numbered
from opticcl.ir.paths import joined_paths, paths_of_rows

__all__ = ["Op", "Transfers", "concatenate_transfers"]


class Op(IntEnum):
    """What the receiver does with a transfer: store it, add it to its own, or (only where contributions are kept apart, as in
    all_to_all) put it beside its own, while the sender gives it up. With REDUCE_MOVE the receiver adds and the sender gives up:
    on directed circuits a node would otherwise count what it holds twice.

    A sum has bit 0 set, a transfer after which the sender has the chunk no more bit 1. All sends of a step see the data
    before it, so one chunk can be given to several receivers.
    """

    COPY = 0
    REDUCE = 1
    MOVE = 2
    REDUCE_MOVE = 3


@dataclass(frozen=True, slots=True)
class Transfers:
    """Transfers that may start together, as columns of equal length.

    Args:
        src: sending rank, int32 (n,).
        dst: receiving rank, int32 (n,).
        chunk_lo: first chunk carried, int32 (n,).
        chunk_n: number of chunks carried, int32 (n,): chunk_lo, chunk_lo + chunk_step, ...
        op: `Op` as uint8 (n,).
        parts: contributions carried of each chunk, int32 (n,), where the collective keeps them apart; else None, one.
        chunk_step: distance between the chunks carried, int32 (n,); None: 1, they are neighbours.
        hops: on a fabric of packets, links of the paths that transfers state, end to end, int32; None: none states one.
        hop_offsets: path of transfer i is hops[hop_offsets[i]:hop_offsets[i + 1]], int64 (n + 1,); where it is empty, the
            fabric routes the transfer. Phases of representatives state no paths: list the steps.
    """

    src: IntArray
    dst: IntArray
    chunk_lo: IntArray
    chunk_n: IntArray
    op: npt.NDArray[np.uint8]
    parts: IntArray | None = None
    chunk_step: IntArray | None = None
    hops: IntArray | None = None
    hop_offsets: IntArray | None = None

    @classmethod
    def of(
        cls,
        src: Any,
        dst: Any,
        chunk_lo: Any,
        chunk_n: Any,
        op: Any,
        parts: Any = None,
        chunk_step: Any = None,
        path: tuple[Any, Any] | None = None,
    ) -> Transfers:
        """Columns from array-likes, without the rows whose source is their destination (src == dst).

        Args:
            src, dst, chunk_lo, chunk_n, op, parts, chunk_step: array-likes of a common shape after broadcasting.
            path: (hops, hop_offsets) of every row, in the order of the flattened columns; None: no row states a path.
        """
        given = [np.asarray(c) for c in (src, dst, chunk_lo, chunk_n, op)]
        more = [None if c is None else np.asarray(c) for c in (parts, chunk_step)]
        given += [c for c in more if c is not None]
        shapes = {c.shape for c in given if c.ndim}
        shape = shapes.pop() if len(shapes) == 1 else np.broadcast(*given).shape  # usually without broadcasting
        differ = given[0] != given[1]
        moves = np.ravel(differ if differ.shape == shape else np.broadcast_to(differ, shape))
        all_move = bool(moves.all())
        n = len(moves) if all_move else int(np.count_nonzero(moves))

        def column(values: IntArray, kind: type = np.int32) -> IntArray:
            if not values.ndim:
                return np.full(n, values, kind)
            flat = np.ravel(values if values.shape == shape else np.broadcast_to(values, shape))
            return np.ascontiguousarray(flat if all_move else flat[moves], dtype=kind)

        ints = [column(c) for c in given[:4]]
        apart, step = (None if c is None else column(c) for c in more)
        hops, offsets = (
            (None, None)
            if path is None
            else paths_of_rows(np.asarray(path[0]), np.asarray(path[1]), np.flatnonzero(moves))
        )
        if hops is not None:
            hops = hops.astype(np.int32)
        return cls(ints[0], ints[1], ints[2], ints[3], column(given[4], np.uint8), apart, step, hops, offsets)

    def __len__(self) -> int:
        return len(self.src)

    def __repr__(self) -> str:
        return f"<Transfers {len(self):,}>"

    def __str__(self) -> str:
        columns = {name: getattr(self, name) for name in ("src", "dst", "chunk_lo", "chunk_n")}
        columns |= {} if self.chunk_step is None else {"chunk_step": self.chunk_step}
        return first_rows({**columns, "op": np.array([op.name for op in Op])[self.op]})

    @property
    def num_bytes(self) -> int:
        """Size of all columns [bytes]."""
        columns = (getattr(self, field.name) for field in fields(self))
        return sum(column.nbytes for column in columns if column is not None)

    def size_chunks(self) -> IntArray:
        """Size of each transfer in chunks, int64 (n,)."""
        amount = self.chunk_n.astype(np.int64)
        return amount if self.parts is None else amount * self.parts

    def take(self, rows: Any) -> Transfers:
        """The given rows (indices, slice or mask)."""
        kept = {name: getattr(self, name)[rows] for name in ("src", "dst", "chunk_lo", "chunk_n", "op")}
        more = (None if column is None else column[rows] for column in (self.parts, self.chunk_step))
        path = () if self.path is None else paths_of_rows(*self.path, np.arange(len(self))[rows])
        return Transfers(*kept.values(), *more, *path)

    @property
    def path(self) -> tuple[IntArray, IntArray] | None:
        """(hops, hop_offsets); None where no transfer states a path."""
        return None if self.hops is None or self.hop_offsets is None else (self.hops, self.hop_offsets)

    def ranges(self) -> tuple[Transfers, IntArray]:
        """The same with neighbouring chunks alone, a row for each chunk of those that carry others, and the row of each."""
        every = np.arange(len(self))
        if self.chunk_step is None:
            return self, every
        apart = self.chunk_step != 1
        many = np.where(apart, self.chunk_n, 1)
        row, nth = numbered(many)
        lo = (self.chunk_lo[row] + nth * self.chunk_step[row]).astype(np.int32)
        count = np.where(apart[row], 1, self.chunk_n[row]).astype(np.int32)
        parts = None if self.parts is None else self.parts[row]
        return Transfers(self.src[row], self.dst[row], lo, count, self.op[row], parts), row


def concatenate_transfers(parts: Iterable[Transfers]) -> Transfers:
    """Several lists of transfers as one, in order."""
    lists = list(parts)
    if len(lists) == 1:
        return lists[0]
    columns = {f: np.concatenate([getattr(p, f) for p in lists]) for f in ("src", "dst", "chunk_lo", "chunk_n", "op")}
    for name in ("parts", "chunk_step"):
        some = [getattr(p, name) for p in lists]
        if any(column is not None for column in some):
            ones = (np.ones(len(p), np.int32) if c is None else c for p, c in zip(lists, some, strict=True))
            columns[name] = np.concatenate(list(ones))
    if any(one.path is not None for one in lists):
        none = np.zeros(0, np.int32)
        paths = [one.path or (none, np.zeros(len(one) + 1, np.int64)) for one in lists]
        columns["hops"], columns["hop_offsets"] = joined_paths(paths)
    return Transfers(**columns)
