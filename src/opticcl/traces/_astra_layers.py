"""Parser of ASTRA-sim's per-layer text form: the lines of a file as columns, a row a layer."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from opticcl.ir import IntArray
from opticcl.ir.call_table import exact_sum
from opticcl.reading import DamageError, check_size, lines, printable, reading, whole_lines
from opticcl.traces.call_rows import CallRows
from opticcl.traces.notes import Omissions
from opticcl.traces.recording import Counts

__all__ = ["PHASES", "Layers", "read_layers"]

MAX_LAYERS = 1_000_000
MAX_CYCLES = 10**18
MAX_PASSES = 10_000_000
_COLLECTIVES = {
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "REDUCESCATTER": "reduce_scatter",
    "ALLTOALL": "all_to_all",
}
PHASES = ("forward", "input gradient", "weight gradient")
# Forms that divide layers among model-parallel groups: their first two phases carry activations.
_SPLIT = ("HYBRID_TRANSFORMER", "HYBRID_DATA_MODEL", "HYBRID_MODEL_DATA", "HYBRID_CUSTOMIZED")
_GROUPS = ("model parallel", "model parallel", "data parallel")


class Layers(NamedTuple):
    """A whole file, as columns of a row a layer and a column a phase.

    Args:
        header: its first line.
        names: of the layers.
        cycles: of computation.
        kind: index in `calls` of the collective; -1: there is none.
        size_bytes: as recorded.
        update: cycles of all update delays [count].
        calls: a call of each kind.
        extra: lines after the last layer [count].
        omissions: collectives that are left out.
        recomputed: layer -> first of the layers before it whose forward pass runs again before its backward pass.
    """

    header: str
    names: tuple[str, ...]
    cycles: IntArray
    kind: IntArray
    size_bytes: IntArray
    update: int
    calls: CallRows
    extra: int
    omissions: Omissions
    recomputed: Mapping[int, int]


def read_layers(path: Path) -> Layers:
    """All layers.

    Raises: WorkloadError: another form, or fewer layers than declared.
    """
    extra = 0
    with reading(path, "ASTRA-sim layer file", "line") as file:
        header, num_layers, last = _header(lines(file))
        words, names = _Words(), list[str]()
        parts = [np.zeros((0, 10), np.int64)]
        for first, data in whole_lines(file, last + 1):
            block = _block(first, data.decode("utf-8", "replace"), num_layers - len(names))
            extra += block.extra
            if block.numbers:
                last = block.numbers[-1]
                names += _printable(block.columns[0])
                parts.append(_table(block, words))
        if len(names) < num_layers:
            raise DamageError(last, f"the file ends after {len(names):,} of {num_layers:,} layers")
        recomputed = _recomputed(header, num_layers)
    table = np.concatenate(parts)
    calls, omissions = CallRows(), Omissions()
    kind = _kinds(header, tuple(words.upper), calls)[table[:, 3:6], np.arange(3)]
    _count_omissions(tuple(words.upper), table[:, 3:6], kind, table[:, 6:9], omissions)
    columns = (table[:, :3], kind, table[:, 6:9], exact_sum(table[:, 9]))
    return Layers(header, tuple(names), *columns, calls, extra, omissions, recomputed)


def _header(rows: Iterator[tuple[int, str]]) -> tuple[str, int, int]:
    """The first line, the number of layers and the line of that number."""
    number, header = next(rows, (1, ""))
    header = " ".join(header.lstrip("\ufeff").split())
    if not re.match(r"[A-Z][A-Z_]*\b", header):
        raise DamageError(number, "the first line names no parallelism, such as DATA or HYBRID_DLRM")
    number, count = next(rows, (number + 1, ""))
    count = count.split()[0] if count else ""
    if not re.fullmatch(r"[0-9]{1,9}", count, re.ASCII) or not 1 <= int(count) <= MAX_LAYERS:
        raise DamageError(number, f"{count[:40]!r} is not a number of layers")
    return header, int(count), number


def _kinds(header: str, words: tuple[str, ...], calls: CallRows) -> IntArray:
    """Index of the kind of call of each word in each phase; -1 where there is none."""
    split, model_parallel = header.startswith(_SPLIT), _model_parallel(header)
    kinds = np.full((len(words), 3), -1, np.int64)
    for number, word in enumerate(words):
        base, _, label = word.partition("_")
        for phase in range(3) if base in _COLLECTIVES else ():
            rule: dict[str, Any] = {"group_rule": "", "group_size": 0, "group_stride": 1}
            if model_parallel and not label:
                model = _GROUPS[phase] == "model parallel"
                rule["group_rule"] = f"model_parallel_NPU_group: {model_parallel}"
                rule["group_size"], rule["group_stride"] = (model_parallel, 1) if model else (0, model_parallel)
            counts: Counts = "share" if base == "ALLGATHER" else "message"
            group = printable(label or (_GROUPS[phase] if split else ""))
            kinds[number, phase] = calls.kind(_COLLECTIVES[base], counts=counts, group=group, **rule)
    return kinds


def _count_omissions(
    words: tuple[str, ...], word: IntArray, kind: IntArray, size_bytes: IntArray, omissions: Omissions
) -> None:
    """Count unknown collectives, and NONE with a size."""
    none = np.array([one.partition("_")[0] == "NONE" for one in words], bool)
    lost = (kind < 0) & ~(none[word] & (size_bytes == 0))
    of, sizes = word[lost], size_bytes[lost]
    order = np.argsort(of, kind="stable")
    numbers, starts = np.unique(of[order], return_index=True)
    for number, part in zip(numbers.tolist(), np.split(sizes[order], starts[1:]), strict=len(of) > 0):
        unknown = f"{printable(words[number][:40])}, which is not a known collective"
        omissions.add("NONE with a size" if none[number] else unknown, exact_sum(part), calls=len(part))


def _model_parallel(header: str) -> int:
    """Size of the model-parallel groups; 0 if not recorded."""
    match = re.search(r"model_parallel_NPU_group:\s*([0-9]{1,9})\b", header, re.ASCII)
    return int(match[1]) if match else 0


def _recomputed(header: str, num_layers: int) -> dict[int, int]:
    """Layer before whose backward pass the forward pass is repeated -> the checkpoint from which it starts.

    Raises: DamageError: a number of no layer.
    """
    lists = []
    for key in ("checkpoints", "checkpoint_initiates"):
        match = re.search(rf"\b{key}:\s*((?:[0-9]{{1,9}}\s*)+)", header, re.ASCII)
        length, *rest = map(int, match[1].split()) if match else [0]
        named = rest[:length]
        if any(layer >= num_layers for layer in named):
            raise DamageError(1, f"{key} names layer {max(named):,} of {num_layers:,}")
        lists.append(named)
    checkpoints, initiates = lists
    checkpoints = sorted({0, *checkpoints})
    found = {layer: checkpoints[bisect_right(checkpoints, layer) - 1] for layer in initiates}
    if (passes := sum(layer - first for layer, first in found.items())) > MAX_PASSES:
        raise DamageError(1, f"checkpoints repeat {passes:,} forward passes, more than {MAX_PASSES:,}")
    return found


class _Words(dict[str, int]):
    """Index of each collective by its text in the file, and the texts in capitals."""

    def __init__(self) -> None:
        self.upper: dict[str, int] = {}

    def __missing__(self, text: str) -> int:
        self[text] = number = self.upper.setdefault(text.upper(), len(self.upper))
        return number


class _Block(NamedTuple):
    """Layers in a part of the file.

    Args:
        numbers: of their lines.
        columns: the 12 columns of each, as text.
        extra: lines after the last layer [count].
    """

    numbers: Sequence[int]
    columns: Sequence[Sequence[str]]
    extra: int


_MARK = "\0"


def _block(first: int, text: str, left: int) -> _Block:
    """The layers in some lines.

    Args:
        left: layers that may follow; other lines are counted [count].
    Raises: DamageError: a layer with another number of columns.
    """
    text = text if text.endswith("\n") else f"{text}\n"
    words = text.replace("\n", f" {_MARK} ").split()
    num_lines = len(words) // 13
    if len(words) == 13 * num_lines and words[12::13].count(_MARK) == words.count(_MARK) == num_lines:
        taken = min(num_lines, left)  # all lines have 12 columns: the usual case
        return _Block(range(first, first + taken), [words[k : 13 * taken : 13] for k in range(12)], num_lines - taken)
    rows = [(number, row) for number, line in enumerate(text.split("\n"), first) if (row := line.split())]
    for number, row in rows[:left]:
        if len(row) not in (12, 13):
            raise DamageError(number, f"{len(row)} columns where a layer has 12, or 13 with its own parallelism")
    columns = list(zip(*(row for _, row in rows[:left]), strict=False))[:12]
    return _Block([number for number, _ in rows[:left]], columns, max(0, len(rows) - left))


def _printable(names: Sequence[str]) -> Sequence[str]:
    return names if "".join(names).isprintable() else [printable(name) for name in names]


def _table(block: _Block, words: _Words) -> IntArray:
    """Cycles, words and bytes of the three phases of each layer, and its update delay.

    Raises: DamageError: a number of another form.
    """
    table = np.empty((len(block.numbers), 10), np.int64)
    for place, column in zip((0, 6, 1, 7, 2, 8, 9), _NUMBERS, strict=True):
        table[:, place] = _whole_numbers(block.numbers, block.columns[column], column)
    for place, column in ((3, 3), (4, 6), (5, 9)):
        table[:, place] = list(map(words.__getitem__, block.columns[column]))
    return table


# Columns of a layer with numbers, and what they are.
_NUMBERS = {
    2: "forward computation",
    4: "forward bytes",
    5: "input gradient computation",
    7: "input gradient bytes",
    8: "weight gradient computation",
    10: "weight gradient bytes",
    11: "update delay",
}
_NUMBER = re.compile(r"([+-]?[0-9]{1,30})(\.0*)?", re.ASCII).fullmatch


def _whole_numbers(numbers: Sequence[int], texts: Sequence[str], column: int) -> list[int]:
    """The numbers of a column.

    Raises: DamageError: one is not a whole number, or not from 0 to 10**18 cycles or 2**60 bytes.
    """
    together = "".join(texts)
    if re.fullmatch("[0-9]+", together):
        with suppress(ValueError):  # of more digits than Python converts
            values = list(map(int, texts))
            if max(values) <= MAX_CYCLES:
                return values
    found, what = [], _NUMBERS[column]
    for number, text in zip(numbers, texts, strict=True):
        match = _NUMBER(text)
        if not match:
            raise DamageError(number, f"{what} is {text[:40]!r}, not a whole number")
        value = int(match[1])
        if what.endswith("bytes"):
            check_size(value, number, what.replace("bytes", "message"))
        elif value < 0 and what != "update delay":
            raise DamageError(number, f"negative cycles: {what} is {text[:40]}")
        elif abs(value) > MAX_CYCLES:
            raise DamageError(number, f"{what} is {text[:40]} cycles, more than {MAX_CYCLES:.0e}")
        found.append(value)
    return found
