"""Reader of ASTRA-sim's per-layer text form: computation and communication of each layer in a training step.

::

    parallelism [parameters]          HYBRID_DLRM 4, or name: value pairs as SimAI writes them
    number of layers
    name reserved  cycles collective bytes  cycles collective bytes  cycles collective bytes  update [own parallelism]
                   '------ forward ------'  '-- input gradient ---'  '-- weight gradient --'

Collectives are NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER and ALLTOALL; SimAI adds the group: ALLREDUCE_DP_EP. The bytes are
the whole message, of an ALLGATHER the share of one rank. `model_parallel_NPU_group: k` in the first line makes groups of k
ranks for activations and of every k-th rank for gradients; `checkpoints:` and `checkpoint_initiates:` repeat forward passes.
The step goes forward through the layers and back again, the input gradient of each layer before its weight gradient.

Source: astra-sim/astra-sim 1.0, inputs/workload; mlcommons/chakra, text converter, for the order; aliyun/SimAI for groups.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from opticcl.errors import ParameterError
from opticcl.formats.encoding.reading import DamageError, check_size, lines, printable, reading, title
from opticcl.ir.task_graph import Phase
from opticcl.traces.notes import Omissions
from opticcl.traces.reader import ReadOptions, TraceReader, register_trace
from opticcl.traces.recording import Counts, RankCall, RankTask, RankTrace, RecordedStep
from opticcl.units import format_seconds

__all__ = ["AstraLayer", "AstraReader", "Layers", "read_layers"]

MAX_LAYERS = 1_000_000
_COLLECTIVES = {
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "REDUCESCATTER": "reduce_scatter",
    "ALLTOALL": "all_to_all",
}
PHASES = ("forward", "input gradient", "weight gradient")
_WHEN: tuple[Phase, ...] = ("forward", "backward", "backward")
# Forms that divide layers among model-parallel groups: their first two phases carry activations.
_SPLIT = ("HYBRID_TRANSFORMER", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA", "HYBRID_CUSTOMIZED")
_GROUPS = ("model parallel", "model parallel", "data parallel")


class AstraLayer(NamedTuple):
    """A layer: cycles and, if present, the call of forward, input gradient and weight gradient."""

    name: str
    cycles: tuple[int, ...]
    calls: dict[int, RankCall]
    update: int


class Layers(NamedTuple):
    """A whole file.

    Args:
        header: its first line.
        layers: in its order.
        extra: lines after the last layer [count].
        omissions: collectives that are left out.
        recomputed: layer -> first of the layers before it whose forward pass runs again before its backward pass.
    """

    header: str
    layers: tuple[AstraLayer, ...]
    extra: int
    omissions: Omissions
    recomputed: Mapping[int, int]


def _is_layer_file(head: bytes) -> bool:
    text = head.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
    return re.match(r"[A-Z][A-Z_]*[^\n=]*\n\s*\d+\s*(\n|$)", text) is not None


@register_trace("astra", (), _is_layer_file)
class AstraReader(TraceReader):
    """Reads ASTRA-sim's per-layer text form."""

    def read(self, path: Path, options: ReadOptions, *, tasks: bool) -> RankTrace:
        """The collectives and tasks of one training step, as the base class describes.

        Raises: WorkloadError: also fewer layers than declared. ParameterError: the clock is not positive.
        """
        read = read_layers(path)
        trace = _trace(path, read, options.clock_hz)
        if tasks:
            trace.steps = [RecordedStep("", _tasks(read, options.clock_hz))]
            trace.after.append("order: forward through the layers and back; the next layer depends on activations")
        return trace


def _order(read: Layers) -> Iterator[tuple[int, int]]:
    """Layer and phase of every computation, in the order of the step."""
    for layer in range(len(read.layers)):
        yield layer, 0
    for layer in reversed(range(len(read.layers))):
        for again in range(read.recomputed.get(layer, layer), layer):
            yield again, 0
        yield layer, 1
        yield layer, 2


def _tasks(read: Layers, clock_hz: float | None) -> list[RankTask]:
    """Forward layer by layer, then back. Without a clock computation takes no time.

    A collective of the forward pass or of an input gradient carries what the next layer needs, which depends on it. That of a
    weight gradient may be fused with others; no task of the same iteration depends on it.
    """
    tasks: list[RankTask] = []
    needed: tuple[int, ...] = ()  # dependencies of the next computation

    for index, phase in _order(read):
        layer, gradient = read.layers[index], phase == 2
        waits, when = (() if gradient else needed), _WHEN[phase]  # a weight gradient needs no input gradient
        seconds = 0.0 if clock_hz is None else layer.cycles[phase] / clock_hz
        tasks.append(RankTask(f"{layer.name} {PHASES[phase]}", seconds, after=waits, phase=when))
        if not gradient:
            needed = ()
        if call := layer.calls.get(phase):
            fusible = gradient and call.collective == "all_reduce"
            tasks.append(RankTask(call.name, 0.0, (call,), (len(tasks) - 1,), when, fusible))
            if not gradient:
                needed = (len(tasks) - 1,)
    return tasks


def read_layers(path: Path) -> Layers:
    """All layers.

    Raises: WorkloadError: another form, or fewer layers than declared.
    """
    omissions = Omissions()
    layers: list[AstraLayer] = []
    extra = 0
    with reading(path, "ASTRA-sim layer file", "line") as file:
        rows = lines(file)
        header, num_layers, last = _header(rows)
        split, model_parallel = header.startswith(_SPLIT), _model_parallel(header)
        for last, line in rows:
            if len(layers) < num_layers:
                layers.append(_layer(last, line, split, model_parallel, omissions))
            else:
                extra += 1
        if len(layers) < num_layers:
            raise DamageError(last, f"the file ends after {len(layers):,} of {num_layers:,} layers")
        recomputed = _recomputed(header, num_layers)
    return Layers(header, tuple(layers), extra, omissions, recomputed)


def _trace(path: Path, read: Layers, clock_hz: float | None) -> RankTrace:
    """The calls of the layers of a file.

    Raises: ParameterError: the clock is not positive.
    """
    if clock_hz is not None and not 0 < clock_hz < math.inf:
        raise ParameterError(f"clock_hz: {clock_hz} is not a clock rate; give cycles per second, such as 1e9")
    header, layers, order = read.header, read.layers, list(_order(read))
    cycles = sum(layers[index].cycles[phase] for index, phase in order)
    updates = sum(layer.update for layer in layers)
    calls = [layers[index].calls[phase] for index, phase in order if phase in layers[index].calls]
    after: list[str] = []
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
        world_size=_num_ranks(header),
        world_source="all_gpus",
        compute_s=compute_s,
        omissions=read.omissions,
        before=[f"layers: {len(layers):,}, {printable(header)}"],
        after=after,
    )


def _header(rows: Iterator[tuple[int, str]]) -> tuple[str, int, int]:
    """The first line, the number of layers and the line of that number."""
    number, header = next(rows, (1, ""))
    header = " ".join(header.lstrip("\ufeff").split())
    if not re.match(r"[A-Z][A-Z_]*\b", header):
        raise DamageError(number, "the first line names no parallelism, such as DATA or HYBRID_DLRM")
    number, count = next(rows, (number + 1, ""))
    count = count.split()[0] if count else ""
    if not re.fullmatch(r"\d{1,9}", count, re.ASCII) or not 1 <= int(count) <= MAX_LAYERS:
        raise DamageError(number, f"{count[:40]!r} is not a number of layers")
    return header, int(count), number


def _num_ranks(header: str) -> int:
    match = re.search(r"all_gpus:\s*(\d{1,9})\b", header, re.ASCII)
    return int(match[1]) if match else 0


def _model_parallel(header: str) -> int:
    """Size of the model-parallel groups; 0 if not recorded."""
    match = re.search(r"model_parallel_NPU_group:\s*(\d{1,9})\b", header, re.ASCII)
    return int(match[1]) if match else 0


def _recomputed(header: str, num_layers: int) -> dict[int, int]:
    """Layer before whose backward pass the forward pass is repeated -> the checkpoint from which it starts.

    Raises: DamageError: a number of no layer.
    """
    lists = []
    for key in ("checkpoints", "checkpoint_initiates"):
        match = re.search(rf"\b{key}:\s*((?:\d{{1,9}}\s*)+)", header, re.ASCII)
        length, *rest = map(int, match[1].split()) if match else [0]
        found = rest[:length]
        if any(layer >= num_layers for layer in found):
            raise DamageError(1, f"{key} names layer {max(found):,} of {num_layers:,}")
        lists.append(found)
    checkpoints, initiates = lists
    return {layer: max((c for c in checkpoints if c <= layer), default=0) for layer in initiates}


def _layer(number: int, line: str, split: bool, model_parallel: int, omissions: Omissions) -> AstraLayer:
    """The layer in a line."""
    columns = line.split()
    if len(columns) not in (12, 13):
        raise DamageError(number, f"{len(columns)} columns where a layer has 12, or 13 with its own parallelism")
    name = printable(columns[0])
    cycles: list[int] = []
    calls: dict[int, RankCall] = {}
    for phase, (at, what) in enumerate(zip((2, 5, 8), PHASES, strict=True)):
        cycles.append(_whole(number, columns[at], f"{what} computation"))
        size = check_size(_whole(number, columns[at + 2], f"{what} bytes"), number, f"{what} message")
        if call := _call(name, phase, columns[at + 1].upper(), size, split, model_parallel, omissions):
            calls[phase] = call
    if min(cycles) < 0:
        raise DamageError(number, "negative cycles")
    return AstraLayer(name, tuple(cycles), calls, _whole(number, columns[11], "update delay"))


_NUMBER = re.compile(r"([+-]?\d{1,30})(\.0*)?", re.ASCII).fullmatch


def _whole(number: int, text: str, what: str) -> int:
    match = _NUMBER(text)
    if not match:
        raise DamageError(number, f"{what} is {text[:40]!r}, not a whole number")
    return int(match[1])


def _call(
    name: str, phase: int, kind: str, size_bytes: int, split: bool, model_parallel: int, omissions: Omissions
) -> RankCall | None:
    """The collective of a phase, or None."""
    base, _, label = kind.partition("_")
    if base == "NONE":
        if size_bytes:
            omissions.add("NONE with a size", size_bytes)
        return None
    if base not in _COLLECTIVES:
        omissions.add(f"{printable(kind[:40])}, which is not a known collective", size_bytes)
        return None
    group = label or (_GROUPS[phase] if split else "")
    counts: Counts = "share" if base == "ALLGATHER" else "message"
    call = RankCall(f"{name} {PHASES[phase]}", _COLLECTIVES[base], size_bytes, counts, printable(group))
    if model_parallel and not label:
        model = _GROUPS[phase] == "model parallel"
        call.group_rule = f"model_parallel_NPU_group: {model_parallel}"
        call.group_size, call.group_stride = (model_parallel, 1) if model else (0, model_parallel)
    return call
