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

from opticcl.errors import ParameterError
from opticcl.units import format_seconds
from opticcl.workload import CollectiveCall, Workload
from opticcl.workload._files import DamageError, check_size, lines, printable, reading, refusal, title
from opticcl.workload._notes import LeftOut, notes_on

__all__ = ["read_workload"]

MAX_LAYERS = 1_000_000
_COLLECTIVES = {
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "REDUCESCATTER": "reduce_scatter",
    "ALLTOALL": "all_to_all",
}
_PHASES = ("forward", "input gradient", "weight gradient")
# Where layers are split among model-parallel groups, these carry activations and those gradients.
_SPLIT = ("HYBRID_TRANSFORMER", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA", "HYBRID_CUSTOMIZED")
_GROUPS = ("model parallel", "model parallel", "data parallel")


def read_workload(path: Path, *, clock_hz: float | None = None) -> Workload:
    """The collectives of one training step, in the order of the step.

    Args: clock_hz: clock of the device, whose cycles the file counts; None: the computation stays unknown [1/s].
    Raises: WorkloadError: another form, fewer layers than it says, or no layer communicates. ParameterError: no clock.
    """
    if clock_hz is not None and not 0 < clock_hz < math.inf:
        raise ParameterError(f"clock_hz: {clock_hz} is no clock; give cycles a second, such as 1e9")
    left_out = LeftOut()
    forward: list[CollectiveCall] = []
    backward: list[list[CollectiveCall]] = []
    cycles = updates = extra = 0
    with reading(path, "ASTRA-sim layer file", "line") as file:
        rows = lines(file)
        header, num_layers, last = _header(rows)
        split = header.startswith(_SPLIT)
        for last, line in rows:
            if len(backward) == num_layers:
                extra += 1
                continue
            name, entries, update = _layer(last, line)
            cycles += sum(entry[0] for entry in entries)
            updates += update
            calls = list(_calls(name, entries, split, left_out))
            forward += [call for phase, call in calls if phase == 0]
            backward.append([call for phase, call in calls if phase > 0])
        if len(backward) < num_layers:
            raise DamageError(last, f"the file ends after {len(backward):,} of {num_layers:,} layers")
    calls_in_order = [*forward, *(call for layer in reversed(backward) for call in layer)]
    notes = [f"layers: {num_layers:,}, {printable(header)}", *notes_on(calls_in_order), *left_out.notes()]
    if extra:
        notes.append(f"left out: {extra:,} lines after the last layer")
    if (match := re.search(r"pp_comm:?\s+(\S+)", header)) and match[1].strip("0."):
        notes.append(f"left out: {printable(match[0])}, transfers between pipeline stages, which no layer lists")
    compute_s = 0.0 if clock_hz is None else cycles / clock_hz
    known = "unknown time: give clock_hz" if clock_hz is None else f"{format_seconds(compute_s)} at {clock_hz:g} Hz"
    notes.append(f"computation: {cycles:,} cycles, {known}; update delays of {updates:,} cycles are not counted in it")
    if not calls_in_order:
        raise refusal(path, f"no layer communicates; {'; '.join(notes)}")
    source = f"ASTRA-sim layer file {printable(path.name)}"
    return Workload(title(path), source, tuple(calls_in_order), tuple(notes), _num_ranks(header), compute_s)


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


def _layer(number: int, line: str) -> tuple[str, list[tuple[int, str, int]], int]:
    """Name of a layer, (cycles, collective, bytes) of its three phases and its update delay."""
    columns = line.split()
    if len(columns) not in (12, 13):
        raise DamageError(number, f"{len(columns)} columns where a layer has 12, or 13 with its own parallelism")
    entries = []
    for at, phase in zip((2, 5, 8), _PHASES, strict=True):
        cycles = _whole(number, columns[at], f"{phase} computation")
        size = check_size(_whole(number, columns[at + 2], f"{phase} bytes"), number, f"{phase} message")
        entries.append((cycles, columns[at + 1].upper(), size))
    if min(entry[0] for entry in entries) < 0:
        raise DamageError(number, "computation of less than 0 cycles")
    return printable(columns[0]), entries, _whole(number, columns[11], "update delay")


def _whole(number: int, text: str, what: str) -> int:
    match = re.fullmatch(r"([+-]?\d{1,30})(\.0*)?", text, re.ASCII)
    if not match:
        raise DamageError(number, f"{what} is {text[:40]!r}, no whole number")
    return int(match[1])


def _calls(
    name: str, entries: list[tuple[int, str, int]], split: bool, left_out: LeftOut
) -> Iterator[tuple[int, CollectiveCall]]:
    """The collectives of a layer with the number of their phase."""
    for phase, (_, kind, size_bytes) in enumerate(entries):
        base, _, label = kind.partition("_")
        if base == "NONE":
            if size_bytes:
                left_out.add("NONE with a size", size_bytes)
        elif base not in _COLLECTIVES:
            left_out.add(f"{printable(kind[:40])}, which is no collective known here", size_bytes)
        else:
            group = label or (_GROUPS[phase] if split else "")
            yield phase, CollectiveCall(f"{name} {_PHASES[phase]}", _COLLECTIVES[base], size_bytes, printable(group))
