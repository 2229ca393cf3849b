"""Header and columns of a plan file."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from opticcl.collective import COLLECTIVES, collective, custom_collective
from opticcl.errors import OpticclError, PlanFileError, printable
from opticcl.fabrics import fabric, job
from opticcl.fabrics.networks.contents import digest_of, keep, kept
from opticcl.fabrics.networks.file_graph import MOST_BYTES
from opticcl.files import program_version
from opticcl.formats.plan_phases import StepsHeader, header_of_steps, states_paths
from opticcl.formats.plan_runs import RunHeader, SymmetryHeader, num_file_steps
from opticcl.ir import CircuitPlan, Collective, Fabric, IntArray, Schedule
from opticcl.registry import parse_call, write_call
from opticcl.units import MAX_MESSAGE_BYTES, number_of, whole_of

__all__ = [
    "CHUNK_STEP",
    "COLUMNS",
    "FORMAT",
    "KEY",
    "VERSION",
    "WAVEGUIDE",
    "Header",
    "check_claims",
    "decode_header",
    "encode_header",
    "fabric_and_collective",
    "header_of",
    "strided",
]

FORMAT, VERSION = (
    "opticcl-plan",
    5,
)  # 4: no stated paths, no file of a network; 3, 2, 1: runs in place of phases; 2: no column chunk_step; 1: no runs
FORMER_FORMAT = "opticcl-programme"  # the same content under its former name
KEY = "opticcl"  # of the metadata of a Parquet file
_WHERE_NEEDED = ("runs", "symmetries", "steps", "content")
MOST_BITS = 1 << 26  # of a collective that is not registered
MOST_NODES = 1 << 22  # of a machine
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?(e[+-]?[0-9]+)?")
FREE_COUNT, COUNT_PER_ROW = 1024, 64  # a file of n rows may claim FREE_COUNT + COUNT_PER_ROW n ranks and chunks

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

CHUNK_STEP = "chunk_step"
"""One more column, where a transfer carries chunks that are no neighbours."""

WAVEGUIDE = "waveguide"
"""One more column, where the fabric numbers its waveguides."""


class CollectiveHeader(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """A collective.

    Args:
        name: registered name, or that of a custom collective.
        num_ranks: ranks that take part [count].
        num_chunks: equal pieces of the message [count].
        root: of a rooted collective.
        shift: of a send_recv [ranks].
        owner: rank of each chunk, little-endian int32, deflated, in base 64; None for rank order.
        reduces: of a custom collective: whether contributions are summed.
        before, after: of a custom collective: which rank holds which chunk, a bit each, chunk by chunk and rank by rank (the
            first in the highest bit), deflated, in base 64.
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
    """Everything that the rows of a plan file need to be verified.

    Args:
        format, version: of the file.
        opticcl: version of the program that wrote it.
        fabric: "name:key=value,...".
        collective: what the plan claims to do.
        algorithm: what generated it, in words.
        num_steps: steps [count].
        size_bytes: message of every rank [bytes].
        nodes: nodes of the machine in the order of the ranks, or None for all.
        runs: steps of the file that stand for several steps, up to version 3.
        symmetries: claims, up to version 3; they are not read.
        steps: phases that define the steps, from version 4 on; None: the rows list every step.
        content: of the file of a network, deflated, in base 64, from version 5 on; None: the fabric has no file.
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
    runs: list[RunHeader] = []
    symmetries: list[SymmetryHeader] = []
    steps: StepsHeader | None = None
    content: str | None = None

    @property
    def num_file_steps(self) -> int:
        """Steps that have rows [count]; of phases as many as there are phases at least.

        Raises: ValueError: runs that no plan has.
        """
        if self.steps is not None:
            return len(self.steps.phases)
        return num_file_steps(self.num_steps, self.runs, (self.collective.num_ranks, self.collective.num_chunks))


def strided(schedule: Schedule) -> bool:
    """Whether a transfer of a schedule carries chunks that are no neighbours."""
    return any(schedule.step(steps.start).chunk_step is not None for steps in schedule.step_classes())


def header_of(plan: CircuitPlan, size_bytes: int, algorithm: str) -> Header:
    """The header of a plan.

    Args:
        plan: any plan.
        size_bytes: message of every rank [bytes].
        algorithm: what generated it, in words.
    """
    c, where = plan.schedule.collective, plan.fabric
    parameters = {k: v for k, v in where.parameters.items() if v is not None}
    steps, content = header_of_steps(plan), kept(parameters.get("content"))
    former = 4 if steps is not None else 3 if strided(plan.schedule) else 1
    newest = content is not None or states_paths(plan)
    return Header(
        format=FORMAT,
        version=VERSION if newest else former,
        opticcl=program_version(),
        fabric=write_call(where.name, parameters),
        collective=_collective_header(c),
        algorithm=algorithm,
        num_steps=plan.schedule.num_steps,
        size_bytes=size_bytes,
        nodes=None if where.node_of_rank is None else where.node_of_rank.tolist(),
        steps=steps,
        content=None if content is None else base64.b64encode(zlib.compress(content, 9)).decode("ascii"),
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
        raise ValueError(f"a custom collective needs tables of 1 to {MOST_BITS:,} bits before and after")
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
    """As JSON on one line; without runs, symmetries and phases if there are none."""
    return json.dumps({k: v for k, v in msgspec.to_builtins(header).items() if k not in _WHERE_NEEDED or v})


def decode_header(text: str | bytes, path: str) -> Header:
    """From JSON.

    Args:
        text: JSON of the header.
        path: of the file, for messages.
    Raises: PlanFileError: no header of a plan file, or of a later version.
    """
    try:
        header = msgspec.json.decode(text, type=Header)
    except RecursionError:
        raise PlanFileError(f"{path}: its header is nested too deeply for {FORMAT} version {VERSION}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PlanFileError(f"{path}: its header is not {FORMAT} of version {VERSION}: {error}") from None
    if header.format not in (FORMAT, FORMER_FORMAT):
        raise PlanFileError(f"{path}: is a {header.format!r} file, not {FORMAT!r}")
    if header.version < 1:
        raise PlanFileError(f"{path}: header: version={header.version}; versions count from 1")
    if header.version > VERSION:
        raise PlanFileError(f"{path}: is version {header.version}, this program reads up to {VERSION}; update opticcl")
    for name in ("num_steps", "size_bytes"):
        if getattr(header, name) < 0:
            raise PlanFileError(f"{path}: header: {name}={getattr(header, name)} is negative")
    if header.size_bytes > MAX_MESSAGE_BYTES:
        raise PlanFileError(f"{path}: header: size_bytes={header.size_bytes} is more than 2**60")
    return header


def check_claims(header: Header, num_rows: int, path: str) -> None:
    """Refuse counts that the rows of the file cannot bear out, before anything of that size is allocated.

    Every step has a circuit, so there are at most as many steps as rows, those that a run repeats not counted. Ranks and chunks
    that appear in no row are few: at most `FREE_COUNT` + `COUNT_PER_ROW` x `num_rows` of each.

    Args:
        header: of the file.
        num_rows: circuits in the file [count].
        path: of the file, for messages.
    Raises: PlanFileError: more steps, chunks or ranks than the rows allow.
    """
    c, most = header.collective, FREE_COUNT + COUNT_PER_ROW * num_rows
    steps = _file_steps(header, path)
    counted = "num_steps" if steps == header.num_steps else f"num_steps={header.num_steps:,}, without repetitions"
    for name, claimed, limit in (
        (counted, steps, num_rows),
        ("collective.num_chunks", c.num_chunks, most),
        ("collective.num_ranks", c.num_ranks, min(most, MOST_NODES)),
        ("nodes", len(header.nodes or ()), min(most, MOST_NODES)),
    ):
        if claimed > limit:
            raise PlanFileError(
                f"{path}: header: {name}={claimed:,}, but a file of {num_rows:,} circuits has at most {limit:,}"
            )


def _file_steps(header: Header, path: str) -> int:
    try:
        return header.num_file_steps
    except ValueError as error:
        raise PlanFileError(f"{path}: header: {error}") from None


def fabric_and_collective(header: Header, path: str) -> tuple[Fabric, Collective]:
    """The fabric and the collective that a header names.

    Args:
        header: of the file; `check_claims` has accepted it.
        path: of the file, for messages.
    Raises: PlanFileError: they do not exist, or do not fit each other.
    """
    c = header.collective
    try:
        name, given = parse_call(header.fabric)
        if header.content is not None:
            _keep_content(header.content, given.get("content", ""))
        machine = fabric(name, **{key: _as_number(text) for key, text in given.items()})
        if machine.num_machine_nodes > MOST_NODES:
            raise ValueError(f"{printable(header.fabric)} has more than {MOST_NODES:,} nodes")
        machine = machine if header.nodes is None else job(machine, _as_nodes(header.nodes))
        if c.reduces is None:
            owner = _unpack(c.owner, c.num_chunks)
            promised = collective(c.name, c.num_ranks, c.num_chunks, root=c.root, owner=owner, shift=c.shift)
        else:
            before, after = (_unpack_table(text, c.num_chunks, c.num_ranks) for text in (c.before, c.after))
            promised = custom_collective(printable(c.name), before, after, c.reduces)
    except (OpticclError, ValueError, zlib.error) as error:
        raise PlanFileError(f"{path}: header: {error}") from None
    if machine.num_nodes != c.num_ranks:
        raise PlanFileError(f"{path}: header: {c.num_ranks} ranks on {machine.num_nodes} nodes of {machine.name}")
    return machine, promised


def _keep_content(text: str, digest: str) -> None:
    """Remember the file of a network that a header holds.

    Args:
        text: its content, deflated, in base 64.
        digest: that it must have.
    Raises: ValueError: it is larger than a network may be, or another content.
    """
    content = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise ValueError(f"content: a network of more than {MOST_BYTES >> 20} MiB")
    if digest_of(content) != digest:
        raise ValueError(f"content: its digest is {digest_of(content)}, and that of the fabric {digest[:16]!r}")
    keep(content)


def _as_number(text: str) -> str | int | float:
    """A number where the text is one: in a header, numbers are in SI units."""
    if not _NUMBER.fullmatch(text):
        return text
    try:
        return whole_of(text)
    except ValueError:
        return number_of(text)


def _as_nodes(nodes: Sequence[int]) -> Sequence[int]:
    if any(not -(2**31) <= n < 2**31 for n in nodes):
        raise ValueError("a node number that no machine has")
    return nodes
