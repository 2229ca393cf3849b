"""Chakra traces of a plan: a file a rank with its sends, receives and reductions, as ASTRA-sim's custom collectives read them.

`plan.et` becomes `plan.0.et`, `plan.1.et`, ...; the system file of ASTRA-sim names the prefix::

    "all-reduce-implementation-custom": ["plan"]

| node | attributes | depends on |
|---|---|---|
| COMM_SEND | comm_type 5, comm_size, comm_src, comm_dst, comm_tag | the last write of its chunks |
| COMM_RECV | comm_type 6, and the same four | the sends and the last write of the chunks that it replaces |
| COMP (reduction) | num_ops, tensor_size | its receive, and the sends and the last write of its chunks |

Sizes are whole bytes of the message that the plan was compiled for; a transfer of no bytes has no node. Durations are left to
the simulator: a reduction has one operation for each float32.

Source: mlcommons/chakra, schema/protobuf/et_def.proto, release 0.0.4.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from opticcl.errors import OutputError
from opticcl.files import write_whole
from opticcl.formats import Format, PlanToWrite, register_format
from opticcl.formats._flows import transfer_bytes
from opticcl.formats.encoding.protobuf import LENGTH, VARINT, written
from opticcl.ir import CircuitPlan, Op, ProgressCallback, no_progress

__all__ = ["rank_file", "write_chakra"]

MOST_NODES = 1 << 22
SCHEMA = "1.0.2-chakra.0.0.4"
COMP, SEND, RECEIVE = 4, 5, 6  # node types
BYTES_PER_OPERATION = 4  # a reduction adds float32


def rank_file(path: Path, rank: int) -> Path:
    """The file of a rank.

    >>> str(rank_file(Path("out/plan.et"), 3))
    'out/plan.3.et'
    """
    return path.with_name(f"{path.stem}.{rank}{path.suffix}")


def write_chakra(
    path: Path, plan: CircuitPlan, size_bytes: int, progress: ProgressCallback = no_progress
) -> tuple[int, int]:
    """Write a file a rank.

    Args:
        path: ends in .et; its stem is the prefix of the files.
        plan: to be written.
        size_bytes: message of every rank [bytes].
        progress: called with (what, done, total) after every step.
    Returns: files and nodes written [count].
    Raises: OutputError: more than `MOST_NODES` nodes, or not writable.
    """
    schedule = plan.schedule
    c = schedule.collective
    ranks = [_Rank() for _ in range(c.num_ranks)]
    tags: dict[tuple[int, int], int] = {}
    total = 0
    for i in range(schedule.num_steps):
        step = schedule.step(i)
        size = transfer_bytes(step, c.num_chunks, size_bytes)
        kept = np.flatnonzero(size)
        apart = np.ones(len(step), np.int32) if step.chunk_step is None else step.chunk_step
        columns = (step.src, step.dst, step.chunk_lo, step.chunk_n, apart, step.op, size)
        rows = list(zip(*(column[kept].tolist() for column in columns), strict=True))
        total += 3 * len(rows)
        if total > MOST_NODES:
            raise OutputError(f"cannot write {path}: more than {MOST_NODES:,} nodes; take a smaller fabric")
        named = []
        for src, dst, lo, n, by, op, amount in rows:  # sends see the data before the step
            tag = tags[src, dst] = tags.get((src, dst), -1) + 1
            chunks = range(lo, lo + n * by, by)
            named.append((src, dst, chunks, op, amount, tag))
            ranks[src].send(i, src, dst, chunks, amount, tag)
        for src, dst, chunks, op, amount, tag in named:
            ranks[dst].receive(i, src, dst, chunks, amount, tag, Op(op))
        progress("write the traces", i + 1, schedule.num_steps)
    for rank, mine in enumerate(ranks):
        with write_whole(rank_file(path, rank)) as file:
            file.write(b"".join([_delimited(_metadata()), *map(_delimited, mine.nodes)]))
    return len(ranks), sum(len(mine.nodes) for mine in ranks)


class _Rank:
    """Nodes of a rank, and the last of them that used each chunk."""

    def __init__(self) -> None:
        self.nodes: list[bytes] = []
        self._written: dict[int, int] = {}  # chunk -> node
        self._read: dict[int, set[int]] = {}  # chunk -> nodes since then

    def send(self, step: int, src: int, dst: int, chunks: Iterable[int], size: int, tag: int) -> None:
        chunks = list(chunks)
        causes = {self._written[k] for k in chunks if k in self._written}
        node = self._add(f"step {step} send to {dst}", SEND, causes, _ends(SEND, src, dst, size, tag))
        for k in chunks:
            self._read.setdefault(k, set()).add(node)

    def receive(self, step: int, src: int, dst: int, chunks: Iterable[int], size: int, tag: int, op: Op) -> None:
        chunks = list(chunks)
        causes = {node for k in chunks for node in self._read.get(k, ())}
        causes |= {self._written[k] for k in chunks if k in self._written}
        reduces = bool(op & Op.REDUCE)
        name = f"step {step} receive from {src}"
        node = self._add(name, RECEIVE, set() if reduces else causes, _ends(RECEIVE, src, dst, size, tag))
        if reduces:
            amounts = [
                _attribute("num_ops", 9, VARINT, -(-size // BYTES_PER_OPERATION)),
                _attribute("tensor_size", 13, VARINT, size),
            ]
            node = self._add(f"step {step} add from {src}", COMP, causes | {node}, amounts)
        for k in chunks:
            self._written[k] = node
            self._read.pop(k, None)

    def _add(self, name: str, kind: int, causes: set[int], attributes: list[bytes]) -> int:
        number = len(self.nodes)
        parts = [_field(1, VARINT, number), _field(2, LENGTH, name.encode()), _field(3, VARINT, kind)]
        if causes:
            parts.append(_field(5, LENGTH, b"".join(map(written, sorted(causes)))))
        parts.append(_field(10, LENGTH, _attribute("is_cpu_op", 27, VARINT, 0)))
        parts += [_field(10, LENGTH, attribute) for attribute in attributes]
        self.nodes.append(b"".join(parts))
        return number


def _ends(kind: int, src: int, dst: int, size: int, tag: int) -> list[bytes]:
    """Attributes of a send or a receive."""
    numbers = {"comm_src": src, "comm_dst": dst, "comm_tag": tag}
    return [
        _attribute("comm_type", 9, VARINT, kind),
        _attribute("comm_size", 9, VARINT, size),
        *(_attribute(name, 7, VARINT, value) for name, value in numbers.items()),
    ]


def _metadata() -> bytes:
    return _field(1, LENGTH, b"0.0.4") + _field(2, LENGTH, _attribute("schema", 29, LENGTH, SCHEMA.encode()))


def _attribute(name: str, field: int, wire: int, value: int | bytes) -> bytes:
    return _field(1, LENGTH, name.encode()) + _field(field, wire, value)


def _field(number: int, wire: int, value: int | bytes) -> bytes:
    tag = written(number << 3 | wire)
    return tag + (_delimited(value) if isinstance(value, bytes) else written(value))


def _delimited(content: bytes) -> bytes:
    return written(len(content)) + content


def _write(path: Path, plan: PlanToWrite, progress: ProgressCallback) -> str:
    files, nodes = write_chakra(path, plan.circuits, plan.size_bytes, progress)
    name = plan.circuits.schedule.collective.name.replace("_", "-")
    use = f'"{name}-implementation-custom": ["{path.with_suffix("")}"]'
    last = rank_file(path, files - 1)
    return f"Chakra: {rank_file(path, 0)} to {last}, {nodes:,} nodes, without circuits; for ASTRA-sim: {use}"


register_format(
    Format(
        "chakra",
        (".et",),
        "a file a rank with sends, receives and reductions, for ASTRA-sim",
        writes="a schedule with sizes, without light",
        write=_write,
    )
)
