"""A schedule without steps: operations of ranks, and which must end before which begins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from opticcl.ir._common import IntArray

__all__ = ["Buffer", "DependencyGraph", "Operations"]


@dataclass(frozen=True, slots=True)
class Buffer:
    """A named range of cells; two buffers may share cells.

    Args:
        rank: that owns it.
        name: such as "i", "o" or "s".
        first: its first cell.
        count: cells [count].
    """

    rank: int
    name: str
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Operations:
    """Operations as columns of equal length.

    An operation works on `count` consecutive cells. It computes a value for each: the sum of the message that it receives, of
    its source cell and, if it accumulates, of its target cell. Then it stores the value in its target cell and sends it.

    Args:
        rank: that executes it, int32 (n,).
        block: thread block of the rank; the operations of a block run in order, int32 (n,).
        step: number within the block, int32 (n,).
        kind: name of the operation in its format, for messages, (n,).
        source: first cell read, -1 for none, int64 (n,).
        target: first cell written, -1 for none, int64 (n,).
        count: cells of source and target, and pieces of the message, int32 (n,).
        accumulates: whether the content of the target is added, bool (n,).
        message: operation whose message it receives, -1 for none, int64 (n,).
        sends_on: connection on which it sends the value, -1 for none, int32 (n,).
    """

    rank: IntArray
    block: IntArray
    step: IntArray
    kind: tuple[str, ...]
    source: IntArray
    target: IntArray
    count: IntArray
    accumulates: npt.NDArray[np.bool_]
    message: IntArray
    sends_on: IntArray

    def __len__(self) -> int:
        return len(self.rank)

    @property
    def num_messages(self) -> int:
        """Operations that send [count]."""
        return int(np.count_nonzero(self.sends_on >= 0))


@dataclass(frozen=True, slots=True)
class DependencyGraph:
    """A schedule whose order is given by dependencies alone, as other programs write it.

    A cell holds one chunk. At the start, each input cell holds a contribution to one result; at the end, each output cell must
    hold its result, the sum of all contributions to it, each exactly once.

    Args:
        name: of the schedule.
        collective: its name, such as "all_reduce".
        num_ranks: ranks that take part [count].
        num_chunks: equal parts of the message [count].
        num_cells: cells of all ranks [count].
        buffers: names of the cells.
        operations: of all ranks.
        before, after: operation before[k] ends before operation after[k] begins, int64 (m,); messages are not among them.
        stuck: operations that wait for an event that never happens, int64 (k,).
        input_cell, input_result: cell and result of each contribution, int64 (p,).
        output_cell, output_result: cell and result due in it, int64 (q,).
        result_chunk: chunk of the message that each result is, int64 (num_results,).
        notes: remarks on what the format left open, a line each.
    """

    name: str
    collective: str
    num_ranks: int
    num_chunks: int
    num_cells: int
    buffers: tuple[Buffer, ...]
    operations: Operations
    before: IntArray
    after: IntArray
    stuck: IntArray
    input_cell: IntArray
    input_result: IntArray
    output_cell: IntArray
    output_result: IntArray
    result_chunk: IntArray
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<DependencyGraph {self}>"

    def __str__(self) -> str:
        from opticcl.units import counted

        return (
            f"{self.name}: {self.collective} among {counted(self.num_ranks, 'rank')}, "
            f"{counted(self.num_chunks, 'chunk')}, {counted(len(self.operations), 'operation')}, "
            f"{counted(self.operations.num_messages, 'message')}"
        )

    def cell_name(self, cell: int) -> str:
        """Rank and name of a cell, such as "rank 3 i[5]"."""
        for buffer in self.buffers:
            if buffer.first <= cell < buffer.first + buffer.count:
                return f"rank {buffer.rank} {buffer.name}[{cell - buffer.first}]"
        return f"cell {cell}"

    def rank_of_cell(self) -> IntArray:
        """Rank that owns each cell, int32 (num_cells,)."""
        ranks = np.full(self.num_cells, -1, np.int32)
        for buffer in self.buffers:
            ranks[buffer.first : buffer.first + buffer.count] = buffer.rank
        return ranks

    def operation_name(self, i: int) -> str:
        """Rank, thread block and kind of an operation, such as "rank 3 thread block 1 rrc"."""
        ops = self.operations
        return f"rank {ops.rank[i]} thread block {ops.block[i]} {ops.kind[i]}"

    def edges(self) -> tuple[IntArray, IntArray]:
        """All edges (before, after), those of messages included."""
        received = np.flatnonzero(self.operations.message >= 0)
        before = np.concatenate([self.before, self.operations.message[received]])
        return before, np.concatenate([self.after, received])
