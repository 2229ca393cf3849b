"""What a programme file says of itself, and its columns."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from opticcl import __version__
from opticcl.collective import COLLECTIVES, collective, own_collective
from opticcl.errors import OpticclError, ProgrammeError
from opticcl.fabric import fabric, job
from opticcl.ir import CircuitPlan, Collective, Fabric, IntArray
from opticcl.registry import write_call

__all__ = [
    "COLUMNS",
    "FORMAT",
    "KEY",
    "VERSION",
    "Header",
    "decode_header",
    "encode_header",
    "header_of",
    "where_and_what",
]

FORMAT, VERSION = "opticcl-programme", 1
KEY = "opticcl"  # of the metadata of a Parquet file
MOST_BITS = 1 << 26  # of a collective that is not registered

COLUMNS = (
    "step",
    "round",
    "transfer",
    "src",
    "dst",
    "chunk_lo",
    "chunk_n",
    "parts",
    "op",
    "port",
    "wavelength_lo",
    "wavelength_n",
    "wavelength_step",
)
"""Columns of whole numbers; beside them stands `path`, a list of whole numbers."""


class CollectiveHeader(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A collective by name; `owner` is the little-endian int32 array, deflated, in base 64, or None for rank order.

    One that is not registered says who holds which chunk `before` and `after`: a bit each, chunk by chunk and rank by rank
    (the first in the highest bit), deflated, in base 64; and whether it `reduces`.
    """

    name: str
    num_ranks: int
    num_chunks: int
    root: int = 0
    shift: int = 1
    owner: str | None = None
    reduces: bool | None = None
    before: str | None = None
    after: str | None = None


class Header(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What is needed to judge the rows.

    Args:
        format, version: of this file.
        opticcl: version of the program that wrote it.
        fabric: "name:key=value,...".
        collective: what it claims to do.
        algorithm: what made it, for people.
        num_steps: steps [count].
        size_bytes: message of every rank [bytes].
        nodes: nodes of the machine in the order of the ranks, or None for all.
    """

    format: str
    version: int
    opticcl: str
    fabric: str
    collective: CollectiveHeader
    algorithm: str
    num_steps: int
    size_bytes: int
    nodes: list[int] | None = None


def header_of(plan: CircuitPlan, size_bytes: int, algorithm: str) -> Header:
    """The header of a plan."""
    c, where = plan.schedule.collective, plan.fabric
    parameters = {k: v for k, v in where.parameters.items() if v is not None}
    return Header(
        format=FORMAT,
        version=VERSION,
        opticcl=__version__,
        fabric=write_call(where.name, parameters),
        collective=_collective_header(c),
        algorithm=algorithm,
        num_steps=plan.schedule.num_steps,
        size_bytes=size_bytes,
        nodes=None if where.nodes is None else where.nodes.tolist(),
    )


def _collective_header(c: Collective) -> CollectiveHeader:
    if c.name in COLLECTIVES:
        return CollectiveHeader(c.name, c.num_ranks, c.num_chunks, c.root, c.shift, _pack(c))
    tables = (_pack_table(c, held) for held in (c.before, c.after))
    return CollectiveHeader(c.name, c.num_ranks, c.num_chunks, c.root, c.shift, None, c.reduces, *tables)


def _pack(c: Collective) -> str | None:
    if c.owner is None or np.array_equal(c.owner, np.repeat(np.arange(c.num_ranks), c.num_chunks // c.num_ranks)):
        return None
    return base64.b64encode(zlib.compress(c.owner.astype("<i4").tobytes(), 9)).decode("ascii")


def _pack_table(c: Collective, held: Callable[[IntArray, IntArray], np.ndarray]) -> str:
    table = np.broadcast_to(held(np.arange(c.num_ranks), np.arange(c.num_chunks)[:, None]), (c.num_chunks, c.num_ranks))
    return base64.b64encode(zlib.compress(np.packbits(table).tobytes(), 9)).decode("ascii")


def _unpack_table(text: str | None, num_chunks: int, num_ranks: int) -> np.ndarray:
    if text is None or num_chunks < 1 or num_ranks < 1 or num_chunks * num_ranks > MOST_BITS:
        raise ValueError(
            f"a collective that is not registered needs tables of 1 to {MOST_BITS:,} bits before and after"
        )
    num_bits = num_chunks * num_ranks
    inflate = zlib.decompressobj()
    raw = inflate.decompress(base64.b64decode(text, validate=True), num_bits // 8 + 2)
    if len(raw) != -(-num_bits // 8):
        raise ValueError("not one bit for each chunk and rank")
    return np.unpackbits(np.frombuffer(raw, np.uint8), count=num_bits).astype(bool).reshape(num_chunks, num_ranks)


def _unpack(text: str | None, num_chunks: int) -> IntArray | None:
    if text is None:
        return None
    inflate = zlib.decompressobj()
    raw = inflate.decompress(base64.b64decode(text, validate=True), 4 * num_chunks + 1)
    if len(raw) != 4 * num_chunks:
        raise ValueError("not one owner for each chunk")
    return np.frombuffer(raw, "<i4").astype(np.int32)


def encode_header(header: Header) -> str:
    """As JSON on one line."""
    return msgspec.json.encode(header).decode("utf-8")


def decode_header(text: str | bytes, path: str) -> Header:
    """From JSON.

    Raises: ProgrammeError: no header of ours, or of a version from the future.
    """
    try:
        header = msgspec.json.decode(text, type=Header)
    except msgspec.DecodeError as error:
        raise ProgrammeError(f"{path}: its header is none of {FORMAT} version {VERSION}: {error}") from None
    if header.format != FORMAT:
        raise ProgrammeError(f"{path}: is a {header.format!r} file, not {FORMAT!r}")
    if header.version < 1:
        raise ProgrammeError(f"{path}: header: version={header.version}; versions count from 1")
    if header.version > VERSION:
        raise ProgrammeError(f"{path}: is version {header.version}, this program reads up to {VERSION}; update opticcl")
    for name in ("num_steps", "size_bytes"):
        if getattr(header, name) < 0:
            raise ProgrammeError(f"{path}: header: {name}={getattr(header, name)} is negative")
    return header


def where_and_what(header: Header, path: str) -> tuple[Fabric, Collective]:
    """The fabric and the collective that a header names.

    Raises: ProgrammeError: there are none such, or they do not fit each other.
    """
    c = header.collective
    try:
        where = fabric(header.fabric)
        where = where if header.nodes is None else job(where, _as_nodes(header.nodes))
        if c.reduces is None:
            owner = _unpack(c.owner, c.num_chunks)
            what = collective(c.name, c.num_ranks, c.num_chunks, root=c.root, owner=owner, shift=c.shift)
        else:
            before, after = (_unpack_table(text, c.num_chunks, c.num_ranks) for text in (c.before, c.after))
            what = own_collective(c.name, before, after, c.reduces)
    except (OpticclError, ValueError, zlib.error) as error:
        raise ProgrammeError(f"{path}: header: {error}") from None
    if where.num_nodes != c.num_ranks:
        raise ProgrammeError(f"{path}: header: {c.num_ranks} ranks on {where.num_nodes} nodes of {where.name}")
    return where, what


def _as_nodes(nodes: Sequence[int]) -> Sequence[int]:
    if any(not -(2**31) <= n < 2**31 for n in nodes):
        raise ValueError("a node number that no machine has")
    return nodes
