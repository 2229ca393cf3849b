"""Parser of ASTRA-sim's per-layer text form: the lines of a file as columns, a row a layer.

Two dialects have this form. In ASTRA-sim's the bytes of an ALLGATHER are the share of one rank, and the first line has at most
the size of the model-parallel groups. In SimAI's all bytes are whole messages, and the first line gives every group::

    TP      blocks of k = model_parallel_NPU_group ranks
    DP      all_gpus / (TP * PP) ranks, every (TP * PP)-th
    EP      ep ranks, every TP-th
    DP_EP   DP / EP ranks, every (TP * EP)-th

Source: aliyun/SimAI, MockNcclGroup for the groups and issue 74 for the sizes; aliyun/aicb, which writes such files.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from opticcl.ir import IntArray
from opticcl.ir.call_table import exact_sum
from opticcl.reading import DamageError, check_size, lines, printable, reading, whole_lines
from opticcl.traces.call_rows import CallRows
from opticcl.traces.notes import Omissions
from opticcl.traces.reader import Dialect
from opticcl.traces.recording import Counts

__all__ = ["PHASES", "FirstLine", "Layers", "read_layers"]

MAX_LAYERS = 1_000_000
MAX_CYCLES = 10**18
MAX_PASSES = 10_000_000
_COLLECTIVES = {
    "ALLREDUCE": "all_reduce",
    "ALLGATHER": "all_gather",
    "REDUCESCATTER": "reduce_scatter",
    "ALLTOALL": "all_to_all",
    "BROADCAST": "broadcast",
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

    header: FirstLine
    names: tuple[str, ...]
    cycles: IntArray
    kind: IntArray
    size_bytes: IntArray
    update: int
    calls: CallRows
    extra: int
    omissions: Omissions
    recomputed: Mapping[int, int]


def read_layers(path: Path, dialect: Dialect | None, num_ranks: int) -> Layers:
    """All layers.

    Args:
        path: of the file.
        dialect: by whose law it is read; None: as its first line says.
        num_ranks: of the job, where the first line does not say; 0: unknown [count].
    Raises: WorkloadError: another form, fewer layers than declared, or groups that do not divide the ranks.
    """
    extra = 0
    with reading(path, "ASTRA-sim layer file", "line") as file:
        first_line, num_layers, last = _first_lines(lines(file))
        header = FirstLine.of(first_line, dialect, num_ranks)
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
        recomputed = _recomputed(header.text, num_layers)
        table = np.concatenate(parts)
        calls, omissions = CallRows(), Omissions()
        used = {(word, phase) for phase in range(3) for word in np.unique(table[:, 3 + phase]).tolist()}
        kind = _kinds(header, tuple(words.upper), used, calls)[table[:, 3:6], np.arange(3)]
    _count_omissions(tuple(words.upper), table[:, 3:6], kind, table[:, 6:9], omissions)
    columns = (table[:, :3], kind, table[:, 6:9], exact_sum(table[:, 9]))
    return Layers(header, tuple(names), *columns, calls, extra, omissions, recomputed)


def _first_lines(rows: Iterator[tuple[int, str]]) -> tuple[str, int, int]:
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


class LayerGroup(NamedTuple):
    """The process group of a call.

    Args: name, rule, size, stride: `group`, `group_rule`, `group_size` and `group_stride` of `RankCall`.
    """

    name: str
    rule: str = ""
    size: int = 0
    stride: int = 1


class FirstLine(NamedTuple):
    """The first line of a file, and by whose law the file is read.

    Args:
        text: the line.
        dialect: by whose law.
        why: what says so: a key of the line, or "given"; empty where both laws fit and ASTRA-sim's is taken.
        num_ranks: that the line records; 0 if it does not [count].
        ranks: of the job; 0 if unknown [count].
        tensor, expert, pipeline: sizes of the groups; 0 where the line has none [count].
    """

    text: str
    dialect: Dialect
    why: str
    num_ranks: int
    ranks: int
    tensor: int
    expert: int
    pipeline: int

    @classmethod
    def of(cls, text: str, dialect: Dialect | None, num_ranks: int) -> FirstLine:
        """The header of a first line.

        Args: dialect, num_ranks: as of `read_layers`.
        Raises: DamageError: a key without a number.
        """
        keys = re.search(r"\b(?:ep|pp|all_gpus):|\AMICRO\b", text)
        by_keys: Dialect = "simai" if keys else "astra"
        why = "given" if dialect else keys[0] if keys else ""
        ranks, *sizes = (_number(text, key) for key in ("all_gpus", "model_parallel_NPU_group", "ep", "pp"))
        return cls(text, dialect or by_keys, why, ranks, ranks or num_ranks, *sizes)

    def group(self, label: str, phase: int) -> LayerGroup:
        """The group of a collective by its label and its phase.

        Raises: DamageError: the first line gives SimAI's groups sizes that do not divide the ranks.
        """
        if self.dialect == "simai":
            return self._simai_group(label or ("DP" if phase == 2 else "TP"))
        if self.tensor and not label:
            rule = f"model_parallel_NPU_group: {self.tensor}"
            return LayerGroup(_GROUPS[phase], rule, *((0, self.tensor) if phase == 2 else (self.tensor,)))
        return LayerGroup(label or (_GROUPS[phase] if self.text.startswith(_SPLIT) else ""))

    def _simai_group(self, label: str) -> LayerGroup:
        tensor, expert, pipeline = (max(1, one) for one in (self.tensor, self.expert, self.pipeline))
        data = self.ranks // (tensor * pipeline)
        if label in ("DP", "EP", "DP_EP") and self.ranks % (tensor * pipeline):
            raise DamageError(1, f"{self.ranks:,} ranks are not a multiple of TP {tensor:,} * PP {pipeline:,}")
        if label in ("EP", "DP_EP") and data % expert:
            raise DamageError(
                1, f"ep: {expert:,} does not divide the {data:,} data-parallel ranks, {self.ranks:,} / (TP * PP)"
            )
        if label == "TP" and self.tensor:
            return LayerGroup(label, f"model_parallel_NPU_group: {tensor}", tensor)
        if label == "EP" and self.expert:
            return LayerGroup(label, f"ep: {expert}", expert, tensor)
        if label == "DP":
            return LayerGroup(label, "DP = all ranks / (TP * PP)", data, tensor * pipeline)
        if label == "DP_EP" and self.expert:
            return LayerGroup(label, "DP_EP = DP / EP", data // expert, tensor * expert)
        return LayerGroup(label)


def _number(text: str, key: str) -> int:
    """The number of a key of the first line; 0 without the key.

    Raises: DamageError: it has no number from 1.
    """
    match = re.search(rf"\b{key}:\s*(\S*)", text)
    if match and not re.fullmatch("[1-9][0-9]{0,8}", match[1], re.ASCII):
        raise DamageError(1, f"{key}: {match[1][:40]!r} is not a whole number from 1")
    return int(match[1]) if match else 0


def _kinds(header: FirstLine, words: tuple[str, ...], used: Set[tuple[int, int]], calls: CallRows) -> IntArray:
    """Index of the kind of call of each word in each phase; -1 where there is none.

    Args: used: words and phases that layers have.
    Raises: DamageError: as of `FirstLine.group`.
    """
    kinds = np.full((len(words), 3), -1, np.int64)
    for number, word in enumerate(words):
        base, _, label = word.partition("_")
        for phase in range(3) if base in _COLLECTIVES else ():
            if (number, phase) not in used:
                continue
            group = header.group(label, phase)
            rule: dict[str, Any] = {"group_rule": group.rule, "group_size": group.size, "group_stride": group.stride}
            shares = base == "ALLGATHER" and header.dialect == "astra"
            counts: Counts = "share" if shares else "message"
            kinds[number, phase] = calls.kind(_COLLECTIVES[base], counts=counts, group=printable(group.name), **rule)
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
        what, missing = ("NONE with a size", False) if none[number] else (unknown, True)
        omissions.add(what, exact_sum(part), calls=len(part), missing=missing)


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
    first_of = {layer: checkpoints[bisect_right(checkpoints, layer) - 1] for layer in initiates}
    if (passes := sum(layer - first for layer, first in first_of.items())) > MAX_PASSES:
        raise DamageError(1, f"checkpoints repeat {passes:,} forward passes, more than {MAX_PASSES:,}")
    return first_of


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
    if words[12::13].count(_MARK) == words.count(_MARK) == num_lines:  # the last word is a mark
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
    whole, what = [], _NUMBERS[column]
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
        whole.append(value)
    return whole
