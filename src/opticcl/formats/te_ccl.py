"""Schedules of TE-CCL: JSON with the demands and the flows of a solved collective.

::

    "6-Demand_Met": {"GPU 1": {"GPU 2": {"Chunk 0": 7.4e-07}}, ...}        source, destination, chunk and its arrival [s]
    "7-Flows": ["Chunk 0 from 1 traveled over 1->2 in epoch 0", ...]       with "via switches 0" where it passes some
    "8-Chunk paths": {"Demand at 2 for chunk 0 from 1 met by epoch 36": ...}    the demands where "6-Demand_Met" is absent

A chunk is known by its source and number. GPUs are numbered with gaps, where switches are; here they become ranks in ascending
order. A GPU sends a chunk after it has received it in an earlier epoch; times and switches are left out. A flow that brings
what is already there goes to a cell that nothing reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from opticcl.errors import PlanFileError, printable
from opticcl.formats import Format, register_format
from opticcl.ir.dependency_graph import Buffer, DependencyGraph, Operations

__all__ = ["read_te_ccl"]

MOST_BYTES = 1 << 28
MOST_NUMBER = 10**9
DEMANDS, FLOWS, PATHS = "6-Demand_Met", "7-Flows", "8-Chunk paths"
_FLOW = re.compile(
    r"Chunk ([0-9]{1,9}) from ([0-9]{1,9}) traveled over ([0-9]{1,9})->([0-9]{1,9})(?: with volume ([0-9.eE+-]{1,30}))? "
    r"in epoch ([0-9]{1,9})(?: via switches? [0-9, \->]{1,200})?"
)
_PATH = re.compile(r"Demand at ([0-9]{1,9}) for chunk ([0-9]{1,9}) from ([0-9]{1,9})\b")
_GPU, _CHUNK = re.compile(r"GPU ([0-9]{1,9})"), re.compile(r"Chunk ([0-9]{1,9})")


class _Flow(NamedTuple):
    """A chunk of a source that goes from one GPU to another."""

    epoch: int
    source: int
    chunk: int
    src: int
    dst: int


def read_te_ccl(path: Path | str) -> DependencyGraph:
    """Read a schedule.

    Args:
        path: of the JSON file.
    Raises: PlanFileError: no such JSON, no demands, a flow that cannot be read, or a part of a chunk ("with volume 0.5").
    """
    path = Path(path)
    content = _content(path)
    try:
        paths = _section(content, PATHS)
        demands = list(
            _demands(_section(content, DEMANDS)) if paths is None or _section(content, DEMANDS) else _met(paths)
        )
        if not demands:
            raise ValueError(f"{DEMANDS}: is missing or empty, so what each GPU must receive is unknown")
        flows = sorted(_flow(text, number) for number, text in enumerate(_list(_section(content, FLOWS))))
    except ValueError as error:
        raise PlanFileError(f"{path}: {error}") from None
    return _graph(printable(path.stem), demands, flows)


def _content(path: Path) -> dict[str, Any]:
    if path.is_dir():
        raise PlanFileError(f"{path}: is a directory; give one of the files in it")
    if not path.is_file():
        raise PlanFileError(f"{path}: there is no such file")
    try:
        if path.stat().st_size > MOST_BYTES:
            raise PlanFileError(f"{path}: is larger than {MOST_BYTES >> 20} MiB")
        found = json.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise PlanFileError(f"{path}: cannot be read: {error.strerror or error}") from None
    except RecursionError:
        raise PlanFileError(f"{path}: is nested too deeply for a schedule of TE-CCL") from None
    except ValueError as error:
        raise PlanFileError(f"{path}: no JSON: {error}") from None
    if not isinstance(found, dict):
        raise PlanFileError(f"{path}: is JSON, but no object with {DEMANDS} and {FLOWS}")
    return found


def _section(content: dict[str, Any], name: str) -> Any:
    """A section by its name; some versions number the sections otherwise. None if it is absent."""
    named = name.partition("-")[2].lower()
    return next((value for key, value in content.items() if key.partition("-")[2].lower() == named), None)


def _met(paths: Any) -> Iterable[tuple[int, int, int]]:
    """Source, chunk and destination of each demand, from the names of the paths that meet them."""
    for text in paths if isinstance(paths, dict) else ():
        match = _PATH.match(text)
        if match is None:
            raise ValueError(f"{PATHS}: {text[:60]!r} is none of the form 'Demand at 2 for chunk 0 from 1'")
        destination, chunk, source = map(int, match.groups())
        yield source, chunk, destination


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{FLOWS}: is missing or no list")
    return value


def _demands(value: Any) -> Iterable[tuple[int, int, int]]:
    """Source, chunk and destination of each demand."""
    for source, destinations in value.items() if isinstance(value, dict) else ():
        for destination, chunks in _object(destinations, source).items():
            for chunk in _object(chunks, f"{source}, {destination}"):
                yield _number(_GPU, source), _number(_CHUNK, chunk), _number(_GPU, destination)


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{DEMANDS}: {where[:60]}: is not an object")
    return value


def _number(form: re.Pattern[str], text: str) -> int:
    match = form.fullmatch(text)
    if match is None:
        raise ValueError(f"{DEMANDS}: {text[:60]!r} is none of the form 'GPU 1' or 'Chunk 0'")
    return int(match[1])


def _flow(text: Any, number: int) -> _Flow:
    match = _FLOW.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        form = "Chunk 0 from 1 traveled over 1->2 in epoch 0"
        raise ValueError(f"{FLOWS}: flow {number}: {str(text)[:80]!r} is none of the form {form!r}")
    chunk, source, src, dst, volume, epoch = match.groups()
    try:
        whole = volume is None or abs(float(volume) - 1) < 1e-6
    except ValueError:
        whole = False
    if not whole:
        raise ValueError(
            f"{FLOWS}: flow {number}: volume {volume}: parts of chunks are not supported; solve with whole ones"
        )
    if src == dst:
        raise ValueError(f"{FLOWS}: flow {number}: GPU {src} sends to itself")
    return _Flow(int(epoch), int(source), int(chunk), int(src), int(dst))


def _graph(name: str, demands: list[tuple[int, int, int]], flows: list[_Flow]) -> DependencyGraph:
    ends = {gpu for source, _, gpu in demands for gpu in (source, gpu)}
    gpus = sorted(ends | {gpu for flow in flows for gpu in (flow.source, flow.src, flow.dst)})
    rank = {gpu: k for k, gpu in enumerate(gpus)}
    chunks = sorted({(source, chunk) for source, chunk, _ in demands} | {(flow.source, flow.chunk) for flow in flows})
    result = {pair: k for k, pair in enumerate(chunks)}
    cells = _Cells(rank)
    for source, chunk in chunks:
        cells.first(source, (source, chunk))
    operations, edges, redundant = _operations(flows, rank, cells)
    outputs = sorted({(rank[gpu], result[source, chunk]) for source, chunk, gpu in demands})
    gathers = _gathers(chunks, outputs, len(gpus))
    if gathers:
        outputs = sorted({(r, k) for r in range(len(gpus)) for k in range(len(chunks))})
    where = [cells.first(gpus[r], chunks[k]) for r, k in outputs]
    notes = [f"ranks 0 to {len(gpus) - 1} are GPUs {', '.join(map(str, gpus[:8]))}{', ...' if len(gpus) > 8 else ''}"]
    if redundant:
        notes.append(f"{redundant} flows bring a chunk that is already there")
    before, after = np.array(edges, np.int64).reshape(-1, 2).T
    return DependencyGraph(
        name=name,
        collective="all_gather" if gathers else "custom",
        num_ranks=len(gpus),
        num_chunks=len(chunks),
        num_cells=len(cells.buffers),
        buffers=tuple(cells.buffers),
        operations=operations,
        before=before,
        after=after,
        stuck=np.zeros(0, np.int64),
        input_cell=np.array([cells.first(source, (source, chunk)) for source, chunk in chunks], np.int64),
        input_result=np.arange(len(chunks)),
        output_cell=np.array(where, np.int64),
        output_result=np.array([k for _, k in outputs], np.int64),
        result_chunk=np.arange(len(chunks)),
        notes=tuple(notes),
    )


class _Cells:
    """Cells of GPUs, one for each chunk that a GPU has, numbered as they are needed."""

    def __init__(self, rank: dict[int, int]) -> None:
        self.buffers: list[Buffer] = []
        self._rank = rank
        self._number: dict[tuple[int, tuple[int, int]], int] = {}

    def first(self, gpu: int, chunk: tuple[int, int]) -> int:
        """The cell of a chunk at a GPU."""
        if (gpu, chunk) not in self._number:
            self._number[gpu, chunk] = self.another(gpu, chunk)
        return self._number[gpu, chunk]

    def another(self, gpu: int, chunk: tuple[int, int]) -> int:
        """A further cell for a chunk at a GPU."""
        self.buffers.append(Buffer(self._rank[gpu], f"chunk {chunk[1]} of GPU {chunk[0]}", len(self.buffers), 1))
        return len(self.buffers) - 1


def _operations(
    flows: list[_Flow], rank: dict[int, int], cells: _Cells
) -> tuple[Operations, list[tuple[int, int]], int]:
    """A send and a receive for each flow, the edges between them, and the number of redundant flows."""
    arrivals: dict[tuple[int, tuple[int, int]], tuple[int, int]] = {}  # GPU and chunk -> epoch and receive of the first
    source, target, edges = [], [], []
    redundant = 0
    for number, flow in enumerate(flows):
        chunk = (flow.source, flow.chunk)
        arrived = arrivals.get((flow.src, chunk))
        if arrived is not None and arrived[0] < flow.epoch:
            edges.append((arrived[1], 2 * number))
        source.append(cells.first(flow.src, chunk))
        again = flow.dst == flow.source or (flow.dst, chunk) in arrivals
        redundant += again
        target.append(cells.another(flow.dst, chunk) if again else cells.first(flow.dst, chunk))
        if not again:
            arrivals[flow.dst, chunk] = (flow.epoch, 2 * number + 1)
    n = len(flows)
    ends = np.array([(rank[flow.src], rank[flow.dst]) for flow in flows], np.int32).reshape(n, 2)
    none = np.full(n, -1, np.int64)
    is_send = np.tile([True, False], n)
    operations = Operations(
        rank=ends.ravel(),
        block=np.repeat(np.arange(n, dtype=np.int32), 2),
        step=np.zeros(2 * n, np.int32),
        kind=("send", "receive") * n,
        source=np.stack([np.array(source, np.int64), none], axis=1).ravel(),
        target=np.stack([none, np.array(target, np.int64)], axis=1).ravel(),
        count=np.ones(2 * n, np.int32),
        accumulates=np.zeros(2 * n, bool),
        message=np.where(is_send, -1, np.arange(2 * n) - 1),
        sends_on=np.where(is_send, np.repeat(np.arange(n), 2), -1).astype(np.int32),
    )
    return operations, edges, redundant


def _gathers(chunks: list[tuple[int, int]], outputs: list[tuple[int, int]], num_ranks: int) -> bool:
    """Whether every GPU has equally many chunks and all others want them: an all_gather."""
    if len(chunks) % num_ranks:
        return False
    per = len(chunks) // num_ranks
    return len(outputs) == len(chunks) * (num_ranks - 1) and all(
        chunks[k][0] == chunks[k - k % per][0] for k in range(len(chunks))
    ) and len({source for source, _ in chunks}) == num_ranks  # fmt: skip


register_format(
    Format(
        "te_ccl",
        (".json",),
        "flows of a collective that TE-CCL has solved",
        reads="a dependency graph",
        read=read_te_ccl,
        is_graph=True,
        sniff=lambda head: re.search(rb'"[1-8]-[A-Z][A-Za-z_]+"\s*:', head) is not None,
    )
)
