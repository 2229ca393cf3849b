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

from pathlib import Path

from opticcl.files import write_whole
from opticcl.formats import Format, PlanToWrite, register_format
from opticcl.formats._operations import Operation, rank_operations
from opticcl.formats.encoding.protobuf import LENGTH, VARINT, written
from opticcl.ir import CircuitPlan, ProgressCallback, no_progress

__all__ = ["rank_file", "write_chakra"]

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
    Raises: OutputError: too many nodes, or not writable.
    """
    ranks = rank_operations(path, plan, size_bytes, progress)
    for rank, operations in enumerate(ranks):
        nodes = [_node(number, one) for number, one in enumerate(operations)]
        with write_whole(rank_file(path, rank)) as file:
            file.write(b"".join([_delimited(_metadata()), *map(_delimited, nodes)]))
    return len(ranks), sum(map(len, ranks))


def _node(number: int, one: Operation) -> bytes:
    """The node of an operation."""
    kind = {"send": SEND, "receive": RECEIVE, "add": COMP}[one.kind]
    name = f"step {one.step} send to {one.dst}" if one.kind == "send" else f"step {one.step} {one.kind} from {one.src}"
    parts = [_field(1, VARINT, number), _field(2, LENGTH, name.encode()), _field(3, VARINT, kind)]
    if one.causes:
        parts.append(_field(5, LENGTH, b"".join(map(written, one.causes))))
    attributes = (
        [
            _attribute("num_ops", 9, VARINT, -(-one.size_bytes // BYTES_PER_OPERATION)),
            _attribute("tensor_size", 13, VARINT, one.size_bytes),
        ]
        if one.kind == "add"
        else _ends(kind, one.src, one.dst, one.size_bytes, one.tag)
    )
    parts.append(_field(10, LENGTH, _attribute("is_cpu_op", 27, VARINT, 0)))
    parts += [_field(10, LENGTH, attribute) for attribute in attributes]
    return b"".join(parts)


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
