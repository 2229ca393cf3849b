"""A schedule as MSCCL XML.

For each peer a rank has one sending and one receiving thread block on channel 0. all_reduce and reduce_scatter run in place in
the input buffer, all_gather in the output buffer. all_to_all runs out of place: a contribution is received in its output cell
where that is at the receiver, else in a fresh scratch cell.

The file is what the MSCCL executor for NCCL loads: bounds of the message, of which 0 is none, and its name for reduce_scatter.

Of each step of the schedule, a rank's sends come before its receives. An operation waits for the last operations of other
thread blocks that conflict with it on a cell; where these are several, `nop` steps before it wait for all but one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from opticcl.errors import OutputError
from opticcl.files import write_whole
from opticcl.ir import Collective, IntArray, Op, ProgressCallback, Schedule, Transfers, no_progress
from opticcl.ir.chunk_rows import by_chunk, stored_first

__all__ = ["MOST_PEERS", "write_msccl"]

MOST_PEERS = 32  # thread blocks of a GPU that send, and that receive, on a channel [count]
MOST_COUNT = 64  # chunks of one step of a thread block [count]
MOST_STEPS = 1 << 22  # of all thread blocks [count]
NAMES = {
    "all_reduce": "allreduce",
    "all_gather": "allgather",
    "reduce_scatter": "reducescatter",
    "all_to_all": "alltoall",
}


@dataclass(frozen=True, slots=True)
class _Range:
    """Consecutive cells of a buffer."""

    buffer: str
    offset: int
    count: int


class _Piece(NamedTuple):
    """A contribution that a rank holds, in the order in which messages carry them."""

    buffer: str
    offset: int
    origin: int
    chunk: int


@dataclass(slots=True)
class _Step:
    kind: str
    source: _Range
    target: _Range
    waits: tuple[int, int] | None = None  # thread block and step
    awaited: bool = False


@dataclass(slots=True)
class _Block:
    send: int = -1
    receive: int = -1
    steps: list[_Step] = field(default_factory=list)


def write_msccl(
    path: Path | str, schedule: Schedule, algorithm: str, progress: ProgressCallback = no_progress
) -> tuple[int, int]:
    """Write a schedule; circuits and times have no place in the format.

    Args:
        path: file to write.
        schedule: of an all_reduce, all_gather, reduce_scatter or all_to_all.
        algorithm: what generated it, the name in the file.
        progress: called with (what, done, total) after every step.
    Returns: steps and thread blocks written [count].
    Raises: OutputError: another collective, a rank with more than `MOST_PEERS` peers, or not writable.
    """
    c = schedule.collective
    if c.name not in NAMES:
        raise OutputError(f"cannot write {path}: MSCCL XML holds {', '.join(NAMES)} here, not {c.name}")
    program = _Program(c)
    for i, columns in enumerate(_columns(schedule)):
        program.add_step(zip(*(column.tolist() for column in columns), strict=True), str(path))
        progress("write the schedule", i + 1, schedule.num_steps)
    program.finish(str(path))
    with write_whole(Path(path)) as file:
        file.write("".join(program.lines(algorithm)).encode())
    return program.num_steps, sum(len(rank.blocks) for rank in program.ranks)


def _columns(schedule: Schedule) -> Iterator[tuple[IntArray, ...]]:
    """Source, destination, first chunk, number of chunks and operation of each step's transfers: copies, sums and moves of what
    is kept apart. The format has no sum that its sender gives up; the first to reach such a chunk is stored in its place.
    """
    steps = [schedule.step(i) for i in range(schedule.num_steps)]
    if any((step.op == Op.REDUCE_MOVE).any() for step in steps):
        c = schedule.collective
        for src, dst, chunk, op in stored_first(map(by_chunk, steps), c.num_ranks, c.num_chunks):
            yield src, dst, chunk, np.ones_like(chunk), op
        return
    for step, _ in map(Transfers.ranges, steps):
        yield step.src, step.dst, step.chunk_lo, step.chunk_n, step.op


class _Rank:
    """Thread blocks of a rank, and the operations that last used each cell."""

    def __init__(self) -> None:
        self.blocks: list[_Block] = []
        self._number: dict[tuple[str, int], int] = {}
        self._written: dict[tuple[str, int], tuple[int, int]] = {}  # cell -> thread block and step
        self._read: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)  # cell -> thread block -> its last step
        self.scratch = 0

    def add(self, way: str, peer: int, kind: str, source: _Range, target: _Range) -> int:
        """Append a step to the block of that peer, after `nop` steps for all waits but one. Returns: steps added."""
        number = self._block(way, peer)
        steps = self.blocks[number].steps
        reads = source if kind in ("s", "rrc", "cpy") else None
        writes = target if kind in ("r", "rrc", "cpy") else None
        waits = self._waits(number, reads, writes)
        for wait in waits[:-1]:
            steps.append(_Step("nop", source, target, wait))
        for block, step in waits:
            self.blocks[block].steps[step].awaited = True
        here = (number, len(steps))
        steps.append(_Step(kind, source, target, waits[-1] if waits else None))
        for cell in _cells(reads):
            self._read[cell][number] = here[1]
        for cell in _cells(writes):
            self._written[cell] = here
            self._read.pop(cell, None)
        return len(waits[:-1]) + 1

    def _block(self, way: str, peer: int) -> int:
        if (way, peer) not in self._number:
            self._number[way, peer] = len(self.blocks)
            self.blocks.append(_Block(peer if way == "send" else -1, peer if way == "receive" else -1))
        return self._number[way, peer]

    def _waits(self, own: int, reads: _Range | None, writes: _Range | None) -> list[tuple[int, int]]:
        """The latest conflicting step of every other thread block."""
        latest: dict[int, int] = {}
        for cell in {*_cells(reads), *_cells(writes)}:
            if cell in self._written:
                block, step = self._written[cell]
                latest[block] = max(step, latest.get(block, -1))
        for cell in _cells(writes):
            for block, step in self._read.get(cell, {}).items():
                latest[block] = max(step, latest.get(block, -1))
        return sorted((block, step) for block, step in latest.items() if block != own)


def _cells(cells: _Range | None) -> Iterator[tuple[str, int]]:
    if cells is not None:
        for offset in range(cells.offset, cells.offset + cells.count):
            yield cells.buffer, offset


class _Program:
    """Thread blocks of all ranks, built step by step."""

    def __init__(self, c: Collective) -> None:
        self.collective = c
        self.ranks = [_Rank() for _ in range(c.num_ranks)]
        self.num_steps = 0
        self.per = c.num_chunks // c.num_ranks
        self.cell_of = _positions(c)  # of each chunk in the buffer of the user
        self.owner = np.zeros(c.num_chunks, np.int64) if c.owner is None else c.owner
        self.buffer = "o" if c.name == "all_gather" else "i"
        self.held: list[dict[int, list[_Piece]]] = []  # all_to_all: chunk -> its contributions, rank by rank
        if c.keeps_apart:
            chunks = range(c.num_chunks)
            self.held = [{k: [_Piece("i", int(self.cell_of[k]), r, k)] for k in chunks} for r in range(c.num_ranks)]

    def add_step(self, rows: Iterable[tuple[int, int, int, int, int]], path: str) -> None:
        """Sends of a step of the schedule, then its receives.

        Args:
            rows: source, destination, first chunk, number of chunks and operation of each transfer.
            path: of the file, for messages.
        """
        moves = self._apart(rows, path) if self.held else self._together(rows)
        for src, dst, _, source, target in moves:
            self._add(src, "send", dst, "s", source, target)
        for src, dst, kind, source, target in moves:
            own = target if kind == "rrc" else source
            self._add(dst, "receive", src, kind, own, target)
        if self.num_steps > MOST_STEPS:
            raise OutputError(
                f"cannot write {path}: more than {MOST_STEPS:,} steps of thread blocks; write a plan file"
            )

    def finish(self, path: str) -> None:
        """Own contributions of an all_to_all, and the limit on thread blocks."""
        if self.held:
            for rank in range(len(self.ranks)):
                self._copy_own(rank)
        for rank, mine in enumerate(self.ranks):
            for what in ("send", "receive"):
                peers = sum(getattr(block, what) >= 0 for block in mine.blocks)
                if peers > MOST_PEERS:
                    raise OutputError(
                        f"cannot write {path}: rank {rank} has {peers} thread blocks that {what}, more than {MOST_PEERS}; "
                        f"take an algorithm in which a rank has at most {MOST_PEERS} peers"
                    )

    def _add(self, rank: int, way: str, peer: int, kind: str, source: _Range, target: _Range) -> None:
        self.num_steps += self.ranks[rank].add(way, peer, kind, source, target)

    def _together(self, rows: Iterable[tuple[int, int, int, int, int]]) -> list[tuple[int, int, str, _Range, _Range]]:
        """Messages whose chunks have the same cell at the sender and the receiver."""
        cells: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        for src, dst, lo, n, op in rows:
            cells[src, dst, op] += self.cell_of[lo : lo + n].tolist()
        messages = []
        for (src, dst, op), mine in cells.items():
            there = [(self.buffer, cell) for cell in sorted(mine)]
            for _, cells_of in _runs(there, there):
                messages.append((src, dst, "rrc" if op == Op.REDUCE else "r", cells_of, cells_of))
        return messages

    def _apart(
        self, rows: Iterable[tuple[int, int, int, int, int]], path: str
    ) -> list[tuple[int, int, str, _Range, _Range]]:
        """Messages of contributions that stay apart: taken from all senders first, then placed."""
        taken: dict[tuple[int, int], list[_Piece]] = defaultdict(list)
        for src, dst, lo, n, _ in rows:
            for chunk in range(lo, lo + n):
                pieces = self.held[src].pop(chunk, [])
                if not pieces:
                    raise OutputError(f"cannot write {path}: rank {src} sends chunk {chunk}, of which it has nothing")
                taken[src, dst] += pieces
        messages = []
        for (src, dst), pieces in taken.items():
            pieces.sort()
            places = [self._place(dst, piece) for piece in pieces]
            for source, target in _runs([(piece.buffer, piece.offset) for piece in pieces], places):
                messages.append((src, dst, "r", source, target))
            for piece, (buffer, offset) in zip(pieces, places, strict=True):
                self.held[dst].setdefault(piece.chunk, []).append(_Piece(buffer, offset, piece.origin, piece.chunk))
        return messages

    def _place(self, rank: int, piece: _Piece) -> tuple[str, int]:
        """Where a rank stores a contribution: in its output, or in the next scratch cell."""
        if self.owner[piece.chunk] == rank:
            return "o", piece.origin * self.per + int(self.cell_of[piece.chunk]) % self.per
        mine = self.ranks[rank]
        mine.scratch += 1
        return "s", mine.scratch - 1

    def _copy_own(self, rank: int) -> None:
        """Own contributions from the input to the output."""
        first = rank * self.per
        for at in range(0, self.per, MOST_COUNT):
            count = min(MOST_COUNT, self.per - at)
            self._add(rank, "own", -1, "cpy", _Range("i", first + at, count), _Range("o", first + at, count))

    def lines(self, algorithm: str) -> Iterator[str]:
        """The file, line by line."""
        from xml.sax.saxutils import quoteattr  # imports the clients of the web

        c = self.collective
        apart = int(bool(self.held))
        name = quoteattr(algorithm, {'"': "&quot;"})
        yield (
            f'<algo name={name} proto="Simple" nchannels="1" nchunksperloop="{c.num_chunks}" '
            f'ngpus="{c.num_ranks}" coll="{NAMES[c.name]}" inplace="{1 - apart}" outofplace="{apart}" minBytes="0" '
            'maxBytes="0">\n'
        )
        for rank, mine in enumerate(self.ranks):
            inputs = self.per if c.name == "all_gather" else c.num_chunks
            outputs = {"all_reduce": 0, "reduce_scatter": self.per}.get(c.name, c.num_chunks)
            yield f'  <gpu id="{rank}" i_chunks="{inputs}" o_chunks="{outputs}" s_chunks="{mine.scratch}">\n'
            for number, block in enumerate(mine.blocks):
                yield f'    <tb id="{number}" send="{block.send}" recv="{block.receive}" chan="0">\n'
                for at, step in enumerate(block.steps):
                    yield _line(at, step)
                yield "    </tb>\n"
            yield "  </gpu>\n"
        yield "</algo>\n"


def _line(number: int, step: _Step) -> str:
    block, awaited = step.waits or (-1, -1)
    return (
        f'      <step s="{number}" type="{step.kind}" srcbuf="{step.source.buffer}" srcoff="{step.source.offset}" '
        f'dstbuf="{step.target.buffer}" dstoff="{step.target.offset}" cnt="{0 if step.kind == "nop" else step.source.count}" '
        f'depid="{block}" deps="{awaited}" hasdep="{int(step.awaited)}"/>\n'
    )


def _positions(c: Collective) -> IntArray:
    """Cell of each chunk: the chunks of a rank are in its block of the buffer, in ascending order."""
    if c.owner is None:
        return np.arange(c.num_chunks)
    positions = np.empty(c.num_chunks, np.int64)
    positions[np.argsort(c.owner, kind="stable")] = np.arange(c.num_chunks)
    return positions


def _runs(sources: list[tuple[str, int]], targets: list[tuple[str, int]]) -> Iterator[tuple[_Range, _Range]]:
    """Sources and targets whose cells are consecutive on both sides, `MOST_COUNT` at most."""
    first = 0
    for row in range(1, len(sources) + 1):
        if row < len(sources) and row - first < MOST_COUNT and all(
            ends[row] == (ends[row - 1][0], ends[row - 1][1] + 1) for ends in (sources, targets)
        ):  # fmt: skip
            continue
        yield _Range(*sources[first], row - first), _Range(*targets[first], row - first)
        first = row
