"""Reader of ASTRA-sim's per-layer text form: computation and communication of each layer in a training step.

::

    parallelism [parameters]          HYBRID_DLRM 4, or name: value pairs as SimAI writes them
    number of layers
    name reserved  cycles collective bytes  cycles collective bytes  cycles collective bytes  update [own parallelism]
                   '------ forward ------'  '-- input gradient ---'  '-- weight gradient --'

Collectives are NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER and ALLTOALL, of AICB also BROADCAST; SimAI adds the group:
ALLREDUCE_DP_EP. The bytes are the whole message, in ASTRA-sim's dialect of an ALLGATHER the share of one rank.
`model_parallel_NPU_group: k` in the first line makes groups of k ranks for activations and of every k-th rank for gradients;
keys of SimAI (`ep:`, `pp:`, `all_gpus:`, MICRO) select its law for sizes and groups (_astra_layers.py). `checkpoints:` and
`checkpoint_initiates:` repeat forward passes.
The step goes forward through the layers and back again, the input gradient of each layer before its weight gradient.

Source: astra-sim/astra-sim 1.0, inputs/workload; mlcommons/chakra, text converter, for the order; aliyun/SimAI for groups.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from opticcl.ir import IntArray
from opticcl.ir.call_table import exact_sum
from opticcl.ir.task_graph import Phase
from opticcl.reading import printable, title
from opticcl.traces._astra_layers import PHASES, Layers, read_layers
from opticcl.traces.call_rows import RankCallTable
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recording import RankCall, RankTask, RankTrace, RecordedStep
from opticcl.units import format_seconds

__all__ = ["AstraReader"]

_WHEN: tuple[Phase, ...] = ("forward", "backward", "backward")


@dataclass(frozen=True, slots=True)
class _Names:
    """Names of calls and computations by 3 * layer + phase."""

    layers: tuple[str, ...]

    def __call__(self, label: int) -> str:
        return f"{self.layers[label // 3]} {PHASES[label % 3]}"


def _is_layer_file(head: bytes) -> bool:
    text = head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    return re.match(r"[A-Z][A-Z_]*+[^\n=]*\n\s*[0-9]+\s*(\n|$)", text) is not None


@register_trace("astra", (), _is_layer_file)
class AstraReader(TraceReader):
    """Reads ASTRA-sim's per-layer text form."""

    def read(self, path: Path, options: ReadOptions, *, tasks: bool) -> RankTrace:
        """The collectives and tasks of one training step, as the base class describes.

        Raises: WorkloadError: also fewer layers than declared.
        """
        read = read_layers(path, options.dialect, options.num_ranks)
        trace = _trace(path, read, options.clock_hz)
        if tasks:
            trace.calls, steps = _tasks(read, options.clock_hz)
            trace.steps = [RecordedStep("", steps)]
            trace.after.append("order: forward through the layers and back; the next layer depends on activations")
        return trace


def _order(read: Layers) -> IntArray:
    """3 * layer + phase of every computation, in the order of the step."""
    n = len(read.names)
    back = np.arange(n)[::-1]
    begin = np.arange(n)
    begin[list(read.recomputed)] = list(read.recomputed.values())
    again = (np.arange(n) - begin)[::-1]  # forward passes before each backward pass
    first = np.cumsum(again + 2) - again - 2
    at = np.arange(int(again.sum()) + 2 * n)
    layer, place = np.repeat(back, again + 2), at - np.repeat(first, again + 2)
    behind = place - np.repeat(again, again + 2)
    repeated = 3 * (np.repeat(begin[::-1], again + 2) + place)
    return np.concatenate([3 * np.arange(n), np.where(behind < 0, repeated, 3 * layer + 1 + behind)])


def _tasks(read: Layers, clock_hz: float | None) -> tuple[list[RankCall], list[RankTask]]:
    """The calls, and tasks: forward layer by layer, then back. Without a clock computation takes no time.

    A collective of the forward pass or of an input gradient carries what the next layer needs, which depends on it. That of a
    weight gradient may be fused with others; no task of the same iteration depends on it.
    """
    tasks: list[RankTask] = []
    calls: list[RankCall] = []
    needed: tuple[int, ...] = ()  # dependencies of the next computation
    name_of = _Names(read.names)
    made: dict[int, RankCall] = {}
    cycles, kinds, sizes = (one.ravel().tolist() for one in (read.cycles, read.kind, read.size_bytes))
    for label in _order(read).tolist():
        phase = label % 3
        name, gradient = name_of(label), phase == 2
        waits, when = (() if gradient else needed), _WHEN[phase]  # a weight gradient needs no input gradient
        seconds = 0.0 if clock_hz is None else cycles[label] / clock_hz
        tasks.append(RankTask(name, seconds, after=waits, phase=when))
        if not gradient:
            needed = ()
        if kinds[label] >= 0:
            known = read.calls.calls[kinds[label]]
            call = made.setdefault(label, replace(known, name=name, size_bytes=sizes[label]))
            calls.append(call)
            fusible = gradient and call.collective == "all_reduce"
            tasks.append(RankTask(name, 0.0, (call,), (len(tasks) - 1,), when, fusible))
            if not gradient:
                needed = (len(tasks) - 1,)
    return calls, tasks


def _trace(path: Path, read: Layers, clock_hz: float | None) -> RankTrace:
    """The calls of the layers of a file."""
    header, order = read.header.text, _order(read)
    cycles, updates = exact_sum(read.cycles.ravel()[order]), read.update
    kind = read.kind.ravel()[order]
    called = order[kind >= 0]
    kind, size_bytes, no_rank = kind[kind >= 0], read.size_bytes.ravel()[called], np.full(len(called), -1)
    read.calls.add(kind, size_bytes, no_rank, no_rank, np.zeros(len(called)), called, np.zeros(len(called), np.int64))
    calls = read.calls.table(_Names(read.names))
    after = list(_dialect_notes(read, calls))
    if read.extra:
        after.append(f"left out: {read.extra:,} lines after the last layer")
    if (match := re.search(r"pp_comm:?\s+(\S+)", header)) and match[1].strip("0."):
        after.append(f"left out: {printable(match[0])}, transfers between pipeline stages, which no layer lists")
    compute_s = 0.0 if clock_hz is None else cycles / clock_hz
    known = (
        "unknown time: give the clock (--clock 1GHz, clock_hz=1e9)"
        if clock_hz is None
        else f"{format_seconds(compute_s)} at {clock_hz:g} Hz"
    )
    after.append(f"computation: {cycles:,} cycles, {known}; update delays of {updates:,} cycles are not counted in it")
    return RankTrace(
        title(path),
        f"ASTRA-sim layer file {printable(path.name)}",
        printable(path.name),
        calls,
        world_size=read.header.num_ranks,
        world_source="all_gpus",
        compute_s=compute_s,
        omissions=read.omissions,
        before=[f"layers: {len(read.names):,}, {printable(header)}"],
        after=after,
    )


def _dialect_notes(read: Layers, calls: RankCallTable) -> Iterator[str]:
    """By whose law a file with all_gathers, or of SimAI, is read, and what the other makes of one that both fit."""
    if read.header.dialect == "simai":
        why = "as given" if read.header.why == "given" else f"by {read.header.why!r} in the first line"
        yield f"dialect: SimAI's, {why}: bytes are whole messages"
        return
    gathers = [kind for kind, call in enumerate(calls.kinds) if call.collective == "all_gather"]
    rows = np.isin(calls.columns.kind, gathers)
    if not read.header.why and rows.any():
        yield (
            f"dialect: ASTRA-sim's, where bytes of an all_gather are one rank's share; by SimAI's law its {int(rows.sum()):,} "
            f"all_gathers are {exact_sum(calls.columns.size_bytes[rows]):,} bytes in all (--dialect simai, dialect=)"
        )
