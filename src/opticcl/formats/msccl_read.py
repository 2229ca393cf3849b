"""MSCCL XML to a dependency graph.

Counts that a file claims are bounded by the number of its steps before anything is allocated.

    algo        name, collective, number of GPUs and chunks, in place or not
      gpu       sizes of its buffers: i (input), o (output), s (scratch)
        copy    copies a chunk of the input to the output before everything else
        tb      thread block: steps in order, at most one peer that it sends to and one that it receives from, on a channel
          step  one operation on `cnt` consecutive chunks; may wait for a step of another thread block of its GPU

| step | value | stored | sent |
|---|---|---|---|
| s | source | | yes |
| r | message | target | |
| rcs | message | target | yes |
| rrc | source + message | target | |
| rrs | source + message | | yes |
| rrcs | source + message | target | yes |
| cpy | source | target | |
| re | source + target | target | |
| nop | | | |

The k-th send on a connection (sender, receiver, channel) meets its k-th receive. A step with `depid` and `deps` waits for the
first step at or after `deps` of that thread block that has `hasdep="1"`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from opticcl.errors import PlanFileError, printable
from opticcl.ir.dependency_graph import Buffer, DependencyGraph, Operations
from opticcl.xml_elements import LARGEST, FaultError, XmlElement, read_elements

__all__ = ["COLLECTIVES", "STEP_TYPES", "read_msccl"]

COLLECTIVES = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "alltoall": "all_to_all",
    "reduce_scatter": "reduce_scatter",
    "reducescatter": "reduce_scatter",
}
"""Names in the format and here."""


class _Type(NamedTuple):
    receives: bool
    sends: bool
    reads: bool
    writes: bool
    accumulates: bool = False


STEP_TYPES = {
    "s": _Type(False, True, True, False),
    "r": _Type(True, False, False, True),
    "rcs": _Type(True, True, False, True),
    "rrc": _Type(True, False, True, True),
    "rrs": _Type(True, True, True, False),
    "rrcs": _Type(True, True, True, True),
    "cpy": _Type(False, False, True, True),
    "re": _Type(False, False, True, True, True),
    "nop": _Type(False, False, False, False),
}
"""What a step of each type does."""

MOST_CELL_VISITS = 1 << 26  # cells that all steps read and write together
FREE_CELLS, CELLS_PER_STEP = 4096, 1024  # a file of n steps may claim FREE_CELLS + CELLS_PER_STEP n cells
CHILDREN = {"": ("algo",), "algo": ("gpu",), "gpu": ("tb", "copy"), "tb": ("step",)}


def read_msccl(path: Path | str) -> DependencyGraph:
    """Read a schedule.

    Args:
        path: of the XML file.
    Raises: PlanFileError: no XML, a document type declaration, an unknown element or step type, a buffer, chunk, peer or
        thread block that does not exist, a thread block that waits for itself, or sends that do not match the receives; the
        text names the line and the rule.
    """
    path = Path(path)
    root = read_elements(path, CHILDREN)
    try:
        return _Reader(root).graph()
    except FaultError as fault:
        raise PlanFileError(f"{path}: {fault}") from None


# --- elements to a graph ----------------------------------------------------------------------------------------------


class _Reader:
    """Builds the graph of one file."""

    def __init__(self, algo: XmlElement) -> None:
        self.algo = algo
        named = algo.text("coll")
        if named not in COLLECTIVES:
            known = ", ".join(COLLECTIVES)
            raise algo.fault("collective_unknown", f"coll={named[:40]!r} cannot be read here; known: {known}")
        self.collective = COLLECTIVES[named]
        self.num_ranks = algo.number("ngpus", 1)
        self.num_chunks = algo.number("nchunksperloop", 1)
        self.num_channels = algo.number("nchannels", 1, LARGEST)
        self.in_place = algo.flag("inplace", False)
        self.gpus = self._gpus()
        self.blocks = [gpu.of("tb") for gpu in self.gpus]
        self.num_steps = sum(len(tb.of("step")) for blocks in self.blocks for tb in blocks)
        self.buffers: list[dict[str, Buffer]] = []
        self.num_cells = self._allocate()

    def graph(self) -> DependencyGraph:
        steps = _Steps(self)
        inputs, outputs, chunk_of_result = self._promises()
        operations, before, after, stuck = steps.columns()
        return DependencyGraph(
            name=printable(self.algo.attributes.get("name", "unnamed")[:80]),
            collective=self.collective,
            num_ranks=self.num_ranks,
            num_chunks=self.num_chunks,
            num_cells=self.num_cells,
            buffers=tuple(buffer for mine in self.buffers for buffer in mine.values()),
            operations=operations,
            before=before,
            after=after,
            stuck=stuck,
            input_cell=inputs[0],
            input_result=inputs[1],
            output_cell=outputs[0],
            output_result=outputs[1],
            result_chunk=chunk_of_result,
        )

    def _gpus(self) -> list[XmlElement]:
        gpu_of: dict[int, XmlElement] = {}
        for gpu in self.algo.of("gpu"):
            number = gpu.number("id")
            if number in gpu_of or number >= self.num_ranks:
                raise gpu.fault("rank_unknown", f"id={number} is given twice or none of 0 to {self.num_ranks - 1}")
            gpu_of[number] = gpu
        if len(gpu_of) != self.num_ranks:
            raise self.algo.fault("rank_unknown", f"ngpus={self.num_ranks}, but {len(gpu_of)} gpu elements")
        return [gpu_of[rank] for rank in range(self.num_ranks)]

    # --- buffers ---

    def _allocate(self) -> int:
        """Cells of all buffers; those that the collective needs are there, and aliases share cells.

        Returns: cells in all [count].
        """
        per = self.num_chunks // self.num_ranks
        if self.collective != "all_reduce" and self.num_chunks % self.num_ranks:
            raise self.algo.fault(
                "chunk_unknown", f"nchunksperloop={self.num_chunks} is not a multiple of ngpus={self.num_ranks}"
            )
        most = FREE_CELLS + CELLS_PER_STEP * self.num_steps
        claimed = self.num_ranks * self.num_chunks
        claimed += sum(gpu.number(f"{name}_chunks", 0, 0) for gpu in self.gpus for name in "ios")
        if claimed > most:
            raise self.algo.fault(
                "chunk_unknown",
                f"{claimed:,} chunks in all, but a file of {self.num_steps:,} steps has at most {most:,}",
            )
        due = {
            "i": per if self.collective == "all_gather" else self.num_chunks,
            "o": per if self.collective == "reduce_scatter" else self.num_chunks,
        }
        at = 0
        for rank, gpu in enumerate(self.gpus):
            sizes = {name: gpu.number(f"{name}_chunks", 0, 0) for name in "ios"}
            mine, at = self._buffers_of(rank, gpu, sizes, due, at)
            self.buffers.append(mine)
        return at

    def _buffers_of(
        self, rank: int, gpu: XmlElement, sizes: dict[str, int], due: dict[str, int], at: int
    ) -> tuple[dict[str, Buffer], int]:
        """Buffers of a GPU, in place or apart, and the next free cell."""
        buffers = {}
        if self.in_place:
            whole = "o" if due["o"] > due["i"] else "i"  # the longer of the two
            part = "i" if whole == "o" else "o"
            count = max(due[whole], sizes[whole])
            buffers[whole] = Buffer(rank, whole, at, count)
            if due["i"] == due["o"]:
                buffers[part] = Buffer(rank, part, at, count)
            else:
                buffers[part] = Buffer(rank, part, at + rank * due[part], due[part])
            at += count
        else:
            for name in "io":
                if sizes[name] < due[name]:
                    raise gpu.fault(
                        "chunk_unknown", f"{name}_chunks={sizes[name]}, but {self.collective} has {due[name]} there"
                    )
                buffers[name] = Buffer(rank, name, at, sizes[name])
                at += sizes[name]
        buffers["s"] = Buffer(rank, "s", at, sizes["s"])
        return buffers, at + sizes["s"]

    def cells(self, rank: int, element: XmlElement, prefix: str, count: int) -> int:
        """First cell of an operand."""
        return self.cell(rank, element, element.text(f"{prefix}buf"), element.number(f"{prefix}off"), count)

    def cell(self, rank: int, element: XmlElement, name: str, offset: int, count: int) -> int:
        """First cell of `count` chunks of a buffer."""
        buffer = self.buffers[rank].get(name)
        if buffer is None:
            raise element.fault("buffer_unknown", f"buffer {name[:40]!r} of gpu {rank} is none of i, o, s")
        if offset + count > buffer.count:
            raise element.fault(
                "chunk_unknown",
                f"chunks {offset} to {offset + count - 1} of buffer {name} of gpu {rank}, which has {buffer.count}",
            )
        return buffer.first + offset

    # --- what must hold before and after ---

    def _promises(self) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray], np.ndarray]:
        """Cells and results of inputs and outputs, and the chunk of each result."""
        n, chunks = self.num_ranks, self.num_chunks
        per = chunks // n
        first = {name: np.array([mine[name].first for mine in self.buffers], np.int64) for name in "io"}
        rank, chunk = np.repeat(np.arange(n), chunks), np.tile(np.arange(chunks), n)
        if self.collective == "all_reduce":
            return (first["i"][rank] + chunk, chunk), (first["o"][rank] + chunk, chunk), np.arange(chunks)
        own_rank, own = np.repeat(np.arange(n), per), np.tile(np.arange(per), n)
        if self.collective == "all_gather":
            return (
                (first["i"][own_rank] + own, own_rank * per + own),
                (first["o"][rank] + chunk, chunk),
                np.arange(chunks),
            )
        if self.collective == "reduce_scatter":
            return (
                (first["i"][rank] + chunk, chunk),
                (first["o"][own_rank] + own, own_rank * per + own),
                np.arange(chunks),
            )
        source, within = chunk // per, chunk % per  # output chunk k of a rank comes from rank k // per
        inputs = (first["i"][rank] + chunk, rank * chunks + chunk)
        outputs = (first["o"][rank] + chunk, source * chunks + rank * per + within)
        return inputs, outputs, chunk


@dataclass(slots=True)
class _Row:
    rank: int
    block: int
    step: int
    kind: str
    source: int
    target: int
    count: int
    element: XmlElement


class _Steps:
    """Operations, messages and waits of all thread blocks."""

    def __init__(self, reader: _Reader) -> None:
        self.reader = reader
        self.rows: list[_Row] = []
        self.before: list[int] = []
        self.after: list[int] = []
        self.stuck: list[int] = []
        self.sent: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        self.received: dict[tuple[int, int, int], list[int]] = defaultdict(list)
        self.visits = 0
        for rank, blocks in enumerate(reader.blocks):
            self._read_gpu(rank, blocks)

    def columns(self) -> tuple[Operations, np.ndarray, np.ndarray, np.ndarray]:
        """The operations, the edges (before, after) and the operations that wait forever."""
        n = len(self.rows)
        message, sends_on = np.full(n, -1, np.int64), np.full(n, -1, np.int32)
        for number, (connection, sends, receives) in enumerate(self._matched()):
            del connection
            sends_on[sends] = number
            message[receives] = sends
        kinds = tuple(row.kind for row in self.rows)
        operations = Operations(
            rank=np.array([row.rank for row in self.rows], np.int32),
            block=np.array([row.block for row in self.rows], np.int32),
            step=np.array([row.step for row in self.rows], np.int32),
            kind=kinds,
            source=np.array([row.source for row in self.rows], np.int64),
            target=np.array([row.target for row in self.rows], np.int64),
            count=np.array([row.count for row in self.rows], np.int32),
            accumulates=np.array([STEP_TYPES[kind].accumulates for kind in kinds], bool),
            message=message,
            sends_on=sends_on,
        )
        return (
            operations,
            np.array(self.before, np.int64),
            np.array(self.after, np.int64),
            np.array(self.stuck, np.int64),
        )

    def _matched(self) -> Iterator[tuple[tuple[int, int, int], list[int], list[int]]]:
        """Sends and receives of every connection, the k-th of one for the k-th of the other."""
        for connection in sorted({*self.sent, *self.received}):
            sends, receives = self.sent.get(connection, []), self.received.get(connection, [])
            src, dst, channel = connection
            where = f"gpu {src} to gpu {dst} on channel {channel}"
            if len(sends) != len(receives):
                more = sends if len(sends) > len(receives) else receives
                element = self.rows[more[min(len(sends), len(receives))]].element
                raise element.fault(
                    "messages_unmatched", f"{len(sends)} sends and {len(receives)} receives from {where}"
                )
            for send, receive in zip(sends, receives, strict=True):
                if self.rows[send].count != self.rows[receive].count:
                    raise self.rows[receive].element.fault(
                        "messages_unmatched",
                        f"{self.rows[receive].count} chunks received of {self.rows[send].count} sent from {where}",
                    )
            yield connection, sends, receives

    def _read_gpu(self, rank: int, blocks: list[XmlElement]) -> None:
        by_number: dict[int, XmlElement] = {}
        for tb in blocks:
            number = tb.number("id")
            if number in by_number:
                raise tb.fault("thread_block_unknown", f"id={number} is given twice")
            by_number[number] = tb
        first = {}
        copies = self._copies(rank)
        owners: dict[tuple[str, int, int], int] = {}
        for number, tb in by_number.items():
            first[number] = len(self.rows)
            self._read_block(rank, number, tb, owners)
            if copies and len(self.rows) > first[number]:
                self._edge(copies[-1], first[number])
        for number, tb in by_number.items():
            self._read_waits(rank, number, tb, by_number, first)

    def _copies(self, rank: int) -> list[int]:
        """Copies from input to output that precede everything; in a block of their own, numbered -1."""
        rows_of_copies: list[int] = []
        for number, element in enumerate(self.reader.gpus[rank].of("copy")):
            count = element.number("cnt", 1, 1)
            source = self.reader.cell(rank, element, "i", element.number("i_off"), count)
            target = self.reader.cell(rank, element, "o", element.number("o_off"), count)
            self._visit(element, 2 * count)
            if rows_of_copies:
                self._edge(rows_of_copies[-1], len(self.rows))
            rows_of_copies.append(len(self.rows))
            self.rows.append(_Row(rank, -1, number, "cpy", source, target, count, element))
        return rows_of_copies

    def _read_block(self, rank: int, number: int, tb: XmlElement, owners: dict[tuple[str, int, int], int]) -> None:
        peers = {way: self._peer(rank, tb, way) for way in ("send", "recv")}
        connected = any(peer >= 0 for peer in peers.values())
        channel = tb.number("chan", 0 if connected else -1, 0)
        if channel >= self.reader.num_channels:
            raise tb.fault("channel_unknown", f"chan={channel} is none of nchannels={self.reader.num_channels}")
        for expected, element in enumerate(tb.of("step")):
            if element.number("s") != expected:
                raise element.fault("step_unknown", f"s={element.number('s')} where step {expected} is due")
            kind = element.text("type")
            if kind not in STEP_TYPES:
                known = ", ".join(STEP_TYPES)
                raise element.fault("operation_unknown", f"type={kind[:40]!r} is none of {known}")
            does = STEP_TYPES[kind]
            count = element.number("cnt", 0 if kind == "nop" else 1)
            self._visit(element, count * (does.reads + does.writes + does.receives))
            source = self.reader.cells(rank, element, "src", count) if does.reads else -1
            target = self.reader.cells(rank, element, "dst", count) if does.writes else -1
            here = len(self.rows)
            for way, used, messages in (("send", does.sends, self.sent), ("recv", does.receives, self.received)):
                if not used:
                    continue
                peer = peers[way]
                if peer < 0:
                    raise element.fault("rank_unknown", f"type={kind}, but its thread block has {way}=-1")
                if owners.setdefault((way, peer, channel), number) != number:
                    other = owners[way, peer, channel]
                    raise element.fault(
                        "connection_shared",
                        f"thread blocks {other} and {number} of gpu {rank} both {way} with gpu {peer} on channel {channel}",
                    )
                ends = (rank, peer) if way == "send" else (peer, rank)
                messages[(*ends, channel)].append(here)
            if expected:
                self._edge(here - 1, here)
            self.rows.append(_Row(rank, number, expected, kind, source, target, count, element))

    def _peer(self, rank: int, tb: XmlElement, way: str) -> int:
        peer = tb.number(way, -1)
        if peer >= self.reader.num_ranks or peer == rank:
            raise tb.fault("rank_unknown", f"{way}={peer} is no other gpu; there are 0 to {self.reader.num_ranks - 1}")
        return peer

    def _read_waits(
        self, rank: int, number: int, tb: XmlElement, blocks: dict[int, XmlElement], first: dict[int, int]
    ) -> None:
        for step, element in enumerate(tb.of("step")):
            awaited, least = element.number("depid", -1), element.number("deps", -1)
            element.flag("hasdep")
            if awaited < 0:
                continue
            here = first[number] + step
            others = blocks[awaited].of("step") if awaited in blocks else []
            if not 0 <= least < len(others):
                raise element.fault(
                    "dependency_unknown",
                    f"waits for step {least} of thread block {awaited} of gpu {rank}, which is not there",
                )
            raised = next((k for k in range(least, len(others)) if others[k].flag("hasdep")), None)
            if awaited == number and least >= step:
                raise element.fault("deadlock", f"thread block {number} of gpu {rank} waits for itself")
            if raised is None:
                self.stuck.append(here)
            else:
                self._edge(first[awaited] + raised, here)

    def _edge(self, before: int, after: int) -> None:
        self.before.append(before)
        self.after.append(after)

    def _visit(self, element: XmlElement, cells: int) -> None:
        self.visits += cells
        if self.visits > MOST_CELL_VISITS:
            raise element.fault("chunk_unknown", f"all steps together have more than {MOST_CELL_VISITS:,} chunks")
