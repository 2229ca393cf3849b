"""Reader of ASTRA-sim's per-layer text form: what each layer of a model computes and communicates in a training step.

::

    parallelism [parameters]          HYBRID_DLRM 4, or name: value pairs as SimAI writes them
    number of layers
    name reserved  cycles collective bytes  cycles collective bytes  cycles collective bytes  update [own parallelism]
                   '------ forward ------'  '-- input gradient ---'  '-- weight gradient --'

Collectives are NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER and ALLTOALL; SimAI adds the group: ALLREDUCE_DP_EP. The step
goes forward through the layers and back again, the input gradient of each layer before its weight gradient.

Source: astra-sim/astra-sim 1.0, inputs/workload; mlcommons/chakra, text converter, for the order; aliyun/SimAI for groups.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from opticcl.errors import ParameterError
from opticcl.units import format_seconds
from opticcl.workload import CollectiveCall, Workload
from opticcl.workload._files import DamageError, check_size, lines, printable, reading, refusal, title
from opticcl.workload._notes import LeftOut, notes_on

__all__ = ["PHASES", "Layer", "Layers", "read_layers", "read_workload", "workload_of"]

MAX_LAYERS = 1_000_000
_COLLECTIVES = {
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "REDUCESCATTER": "reduce_scatter",
    "ALLTOALL": "all_to_all",
}
PHASES = ("forward", "input gradient", "weight gradient")
# Where layers are split among model-parallel groups, these carry activations and those gradients.
_SPLIT = ("HYBRID_TRANSFORMER", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA", "HYBRID_CUSTOMIZED")
_GROUPS = ("model parallel", "model parallel", "data parallel")


class Layer(NamedTuple):
    """A layer: of forward, input gradient and weight gradient the cycles and, where there is one, the call."""

    name: str
    cycles: tuple[int, ...]
    calls: dict[int, CollectiveCall]
    update: int


class Layers(NamedTuple):
    """A whole file.

    Args:
        header: its first line.
        layers: in its order.
        extra: lines after the last layer [count].
        left_out: collectives that are no calls.
    """

    header: str
    layers: tuple[Layer, ...]
    extra: int
    left_out: LeftOut


def read_workload(path: Path, *, clock_hz: float | None = None) -> Workload:
    """The collectives of one training step, in the order of the step.

    Args: clock_hz: clock of the device, whose cycles the file counts; None: the computation stays unknown [1/s].
    Raises: WorkloadError: another form, fewer layers than it says, or no layer communicates. ParameterError: no clock.
    """
    return workload_of(path, read_layers(path), clock_hz)


def read_layers(path: Path) -> Layers:
    """All layers.

    Raises: WorkloadError: another form, or fewer layers than it says.
    """
    left_out = LeftOut()
    layers: list[Layer] = []
    extra = 0
    with reading(path, "ASTRA-sim layer file", "line") as file:
        rows = lines(file)
        header, num_layers, last = _header(rows)
        for last, line in rows:
            if len(layers) < num_layers:
                layers.append(_layer(last, line, header.startswith(_SPLIT), left_out))
            else:
                extra += 1
        if len(layers) < num_layers:
            raise DamageError(last, f"the file ends after {len(layers):,} of {num_layers:,} layers")
    return Layers(header, tuple(layers), extra, left_out)


def workload_of(path: Path, read: Layers, clock_hz: float | None = None) -> Workload:
    """The calls of layers that have been read from that file.

    Raises: WorkloadError: no layer communicates. ParameterError: no clock.
    """
    if clock_hz is not None and not 0 < clock_hz < math.inf:
        raise ParameterError(f"clock_hz: {clock_hz} is no clock; give cycles a second, such as 1e9")
    header, layers = read.header, read.layers
    cycles, updates = sum(sum(layer.cycles) for layer in layers), sum(layer.update for layer in layers)
    calls = [layer.calls[0] for layer in layers if 0 in layer.calls]
    calls += [layer.calls[phase] for layer in reversed(layers) for phase in (1, 2) if phase in layer.calls]
    notes = [f"layers: {len(layers):,}, {printable(header)}", *notes_on(calls), *read.left_out.notes()]
    if read.extra:
        notes.append(f"left out: {read.extra:,} lines after the last layer")
    if (match := re.search(r"pp_comm:?\s+(\S+)", header)) and match[1].strip("0."):
        notes.append(f"left out: {printable(match[0])}, transfers between pipeline stages, which no layer lists")
    compute_s = 0.0 if clock_hz is None else cycles / clock_hz
    known = (
        "unknown time: give the clock (--clock 1GHz, clock_hz=1e9)"
        if clock_hz is None
        else f"{format_seconds(compute_s)} at {clock_hz:g} Hz"
    )
    notes.append(f"computation: {cycles:,} cycles, {known}; update delays of {updates:,} cycles are not counted in it")
    if not calls:
        raise refusal(path, f"no layer communicates; {'; '.join(notes)}")
    source = f"ASTRA-sim layer file {printable(path.name)}"
    return Workload(title(path), source, tuple(calls), tuple(notes), _num_ranks(header), compute_s)


def _header(rows: Iterator[tuple[int, str]]) -> tuple[str, int, int]:
    """The first line, the number of layers and where it stands."""
    number, header = next(rows, (1, ""))
    header = " ".join(header.lstrip("\ufeff").split())
    if not re.match(r"[A-Z][A-Z_]*\b", header):
        raise DamageError(number, "the first line names no parallelism, such as DATA or HYBRID_DLRM")
    number, count = next(rows, (number + 1, ""))
    count = count.split()[0] if count else ""
    if not re.fullmatch(r"\d{1,9}", count, re.ASCII) or not 1 <= int(count) <= MAX_LAYERS:
        raise DamageError(number, f"{count[:40]!r} is no number of layers")
    return header, int(count), number


def _num_ranks(header: str) -> int:
    match = re.search(r"all_gpus:\s*(\d{1,9})\b", header, re.ASCII)
    return int(match[1]) if match else 0


def _layer(number: int, line: str, split: bool, left_out: LeftOut) -> Layer:
    """The layer in a line."""
    columns = line.split()
    if len(columns) not in (12, 13):
        raise DamageError(number, f"{len(columns)} columns where a layer has 12, or 13 with its own parallelism")
    name = printable(columns[0])
    cycles: list[int] = []
    calls: dict[int, CollectiveCall] = {}
    for phase, (at, what) in enumerate(zip((2, 5, 8), PHASES, strict=True)):
        cycles.append(_whole(number, columns[at], f"{what} computation"))
        size = check_size(_whole(number, columns[at + 2], f"{what} bytes"), number, f"{what} message")
        if call := _call(name, phase, columns[at + 1].upper(), size, split, left_out):
            calls[phase] = call
    if min(cycles) < 0:
        raise DamageError(number, "computation of less than 0 cycles")
    return Layer(name, tuple(cycles), calls, _whole(number, columns[11], "update delay"))


def _whole(number: int, text: str, what: str) -> int:
    match = re.fullmatch(r"([+-]?\d{1,30})(\.0*)?", text, re.ASCII)
    if not match:
        raise DamageError(number, f"{what} is {text[:40]!r}, no whole number")
    return int(match[1])


def _call(name: str, phase: int, kind: str, size_bytes: int, split: bool, left_out: LeftOut) -> CollectiveCall | None:
    """The collective of a phase, if there is one."""
    base, _, label = kind.partition("_")
    if base == "NONE":
        if size_bytes:
            left_out.add("NONE with a size", size_bytes)
        return None
    if base not in _COLLECTIVES:
        left_out.add(f"{printable(kind[:40])}, which is no collective known here", size_bytes)
        return None
    group = label or (_GROUPS[phase] if split else "")
    return CollectiveCall(f"{name} {PHASES[phase]}", _COLLECTIVES[base], size_bytes, printable(group))
