"""Circuits, resources, devices and ranks that have equal times at every step of a plan, followed once.

The label of a circuit says when it carries light: its item (circuits that start together), latency and duration. Two resources
that circuits of equal labels occupy in every step are free at equal times; two devices with equal labels and settings are set
at equal times; two ranks that transfers of equal labels reach and leave hold equal chunks since equal times. By induction over
the steps one of each kind is enough, and one circuit for each combination of them: a circuit starts at the latest of what it
waits for, and a maximum does not change when one of two equal terms is left out. Sums count their terms: they are not folded.

Source: ours; equitable partitions, Godsil and Royle 2001 (section 9.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from opticcl.errors import UnsupportedError
from opticcl.ir import Circuits, Fabric, IntArray, Op, Transfers, numbered
from opticcl.ir.limits import limit

__all__ = ["Folded", "FoldedStep", "StepToFold", "device_settings", "fold"]


Touched = tuple[IntArray, IntArray | None]
"""Of each circuit of a round: a resource or a device, and how it is set (None: not)."""

MOST_KINDS = limit("fold.MOST_KINDS")


class StepToFold(NamedTuple):
    """A step that a plan has once or many times.

    Args:
        transfers: of the step.
        rounds: its circuits.
        items: of each round: circuits of one number start together.
        latency_s, duration_s, gap_s: of each round: of its circuits; the duration has the gap.
    """

    transfers: Transfers
    rounds: tuple[Circuits, ...]
    items: tuple[IntArray, ...]
    latency_s: tuple[np.ndarray, ...]
    duration_s: tuple[np.ndarray, ...]
    gap_s: tuple[np.ndarray, ...]


class FoldedStep(NamedTuple):
    """What is left of a step.

    Args:
        transfers: one of each kind, between classes of ranks.
        rows: of each round: circuits that are left.
        transfer: of each round: transfer of each of them, a row of `transfers`.
        units: of each round: classes of the resources of each of them, int64 (circuits, kinds).
        members: of each round: classes of its devices, int64 (circuits, kinds).
    """

    transfers: Transfers
    rows: tuple[IntArray, ...]
    transfer: tuple[IntArray, ...]
    units: tuple[IntArray, ...]
    members: tuple[IntArray, ...]


@dataclass(frozen=True, slots=True)
class Folded:
    """Steps with one of each kind.

    Args:
        steps: what is left of each.
        num_ranks, num_units, num_members: classes of ranks, resources and devices [count].
    """

    steps: tuple[FoldedStep, ...]
    num_ranks: int
    num_units: int
    num_members: int


def fold(fabric: Fabric, num_ranks: int, steps: Sequence[StepToFold]) -> Folded:
    """Follow one of each kind.

    Args:
        fabric: that runs the steps.
        num_ranks: of the collective [count].
        steps: all that differ.
    Raises: UnsupportedError: sums, idle circuits, a resource that circuits of different times occupy in one round, a device of
        which any free member is taken, or a rank that transfers of different times reach in one step.
    """
    labels = [_labels(step) for step in steps]
    of_transfers = [_of_transfers(step, label) for step, label in zip(steps, labels, strict=True)]
    rank = np.zeros(num_ranks, np.int64)
    for step, label in zip(steps, of_transfers, strict=True):
        rank = _refined_by_all(rank, step.transfers.src, label)
        rank = _refined(rank, step.transfers.dst, label, "rank")
    kept = []
    for step in steps:  # the class of its receiver says when a transfer carries light, and which chunks
        number, first = _distinct_rows([rank[step.transfers.src], rank[step.transfers.dst]])
        if len(first) > MOST_KINDS:
            raise UnsupportedError(
                f"device: {len(first):,} kinds of transfers in a step, and at most {MOST_KINDS:,} are followed"
            )
        kept.append((number, first))
    units = _Colours("resource")
    members = _Colours("device")
    for where, touched in ((units, _occupied), (members, _set)):
        some = next((one.take(np.arange(1)) for step in steps for one in step.rounds if len(one)), None)
        for kind in range(
            len(list(touched(fabric, some))) if some else 0
        ):  # one at a time: a step may have millions of circuits
            where.add([[_nth(touched(fabric, one), kind) for one in step.rounds] for step in steps], labels)
    folded = []
    for k, (step, (number, first)) in enumerate(zip(steps, kept, strict=True)):
        rows, transfer, of_units, of_members = [], [], [], []
        for r, circuits in enumerate(step.rounds):
            carried = number[circuits.transfer]
            columns = [carried, *(c[k][r] for c in units.of_circuits), *(c[k][r] for c in members.of_circuits)]
            _, one = _distinct_rows(columns)
            one = np.sort(one)
            rows.append(one)
            transfer.append(carried[one])
            of_units.append(_table([c[k][r][one] for c in units.of_circuits], len(one)))
            of_members.append(_table([c[k][r][one] for c in members.of_circuits], len(one)))
        t = step.transfers.take(first)
        t = Transfers(
            rank[t.src].astype(np.int32), rank[t.dst].astype(np.int32), t.chunk_lo, t.chunk_n, t.op, None, t.chunk_step
        )
        folded.append(FoldedStep(t, tuple(rows), tuple(transfer), tuple(of_units), tuple(of_members)))
    return Folded(tuple(folded), int(rank.max(initial=-1)) + 1, units.count, members.count)


def _distinct_rows(columns: Sequence[np.ndarray]) -> tuple[IntArray, IntArray]:
    """Number of each row among the distinct ones in ascending order, int64 (n,), and the first row of each number.

    Args:
        columns: whole numbers, of equal length.
    """
    key = np.zeros(len(columns[0]), np.int64)
    spans = [1]
    for column in columns:
        low, high = (int(column.min()), int(column.max())) if len(column) else (0, 0)
        if high == low:
            continue
        span = high - low + 1
        if spans[0] * span >= 1 << 62:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64).ravel()
            spans[0] = int(key.max()) + 1  # rows, so that the product of two spans is in range
        key = key * span + (column.astype(np.int64) - low)
        spans[0] *= span
    if spans[0] <= max(1 << 16, 4 * len(key)):  # a table is quicker than a sort
        row = np.full(spans[0], -1, np.int64)
        row[key[::-1]] = np.arange(len(key))[::-1]
        there = np.flatnonzero(row >= 0)
        number = np.zeros(spans[0], np.int64)
        number[there] = np.arange(len(there))
        return number[key], row[there]
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    return number.astype(np.int64).ravel(), first


def _labels(step: StepToFold) -> tuple[IntArray, ...]:
    """Numbers of (item, latency, duration) of the circuits of each round, distinct in the rounds of a step."""
    labels, base = [], 0
    for item, latency, duration in zip(step.items, step.latency_s, step.duration_s, strict=True):
        number, first = _distinct_rows([item, _as_numbers(latency), _as_numbers(duration)])
        labels.append(number + base)
        base += len(first)
    return tuple(labels)


def _as_numbers(values: np.ndarray) -> IntArray:
    """Equal values have equal numbers."""
    if len(values) and values.min() == values.max():
        return np.zeros(len(values), np.int64)
    return np.unique(values, return_inverse=True)[1].astype(np.int64).ravel()


def _of_transfers(step: StepToFold, labels: tuple[IntArray, ...]) -> IntArray:
    """Labels of transfers: when they carry light and which chunks; int64 (transfers,)."""
    t = step.transfers
    if (t.op != Op.COPY).any() or t.parts is not None:
        raise UnsupportedError("device: sums count what they add, so that equal ranks are not followed once")
    of = np.full(len(t), -1, np.int64)
    for circuits, label in zip(step.rounds, labels, strict=True):
        if (circuits.transfer < 0).any():
            raise UnsupportedError("device: idle circuits are not folded")
        if (of[circuits.transfer] >= 0).any():
            raise UnsupportedError("device: a transfer in several rounds is not folded")
        of[circuits.transfer] = label
        if (of[circuits.transfer] != label).any():
            raise UnsupportedError("device: the circuits of one transfer have different times")
    apart = np.zeros(len(t), np.int64) if t.chunk_step is None else t.chunk_step
    return _distinct_rows([of, t.chunk_lo, t.chunk_n, apart])[0]


def _refined(colour: IntArray, at: IntArray, label: IntArray, what: str) -> IntArray:
    """Colours of what a step touches, divided by the label with which it does.

    Args:
        colour: before the step.
        at: what is touched.
        label: of each touch, >= 0.
        what: for the message.
    Raises: UnsupportedError: two labels touch one.
    """
    touched = np.full(len(colour), -1, np.int64)
    touched[at] = label
    if (touched[at] != label).any():
        raise UnsupportedError(f"device: circuits of different times meet at a {what} in one step")
    return _distinct_rows([colour, touched])[0]


def _refined_by_all(colour: IntArray, at: IntArray, label: IntArray) -> IntArray:
    """Colours of what a step touches, divided by all labels with which it does; for what waits for the last of them.

    Args:
        colour: before the step.
        at: what is touched.
        label: of each touch, >= 0.
    """
    if not len(at):
        return colour
    _, first = _distinct_rows([at, label])
    at, label = at[first].astype(np.int64), label[first]
    begins = np.flatnonzero(np.diff(at, prepend=-1))
    _, nth = numbered(np.diff(begins, append=len(at)))
    for k in range(int(nth.max()) + 1):
        colour = _refined(colour, at[nth == k], label[nth == k], "rank")
    return colour


class _Colours:
    """Classes of resources or devices, numbered over all kinds.

    Args: what: for messages.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.count = 0
        self.of_circuits: list[list[list[IntArray]]] = []  # of each kind, step and round

    def add(self, touched: Sequence[Sequence[Touched]], labels: Sequence[tuple[IntArray, ...]]) -> None:
        """Classes of the instances of one kind.

        Args:
            touched: of each step and round, for each circuit: the instance, and how it is set (None: not).
            labels: of the circuits of each step and round.
        """
        known = _distinct(np.concatenate([_distinct(at) for rounds in touched for at, _ in rounds]))
        colour = np.zeros(len(known), np.int64)
        places = []
        for rounds, of_step in zip(touched, labels, strict=True):
            places.append([np.searchsorted(known, at) for at, _ in rounds])
            for place, (_, setting), label in zip(places[-1], rounds, of_step, strict=True):
                how = label if setting is None else _distinct_rows([label, setting])[0]
                colour = _refined(colour, place, how, self.what)
        colour += self.count
        self.count = int(colour.max()) + 1
        self.of_circuits.append([[colour[place].astype(np.int32) for place in of_step] for of_step in places])


def _occupied(fabric: Fabric, circuits: Circuits) -> Iterator[Touched]:
    """Exclusive resources of each circuit, a kind after the other."""
    for usage in fabric.usage(circuits):
        resource = usage.resource
        if resource.shared or resource.once_per_job:
            continue
        index = usage.index.astype(np.int64)
        if usage.circuit is not None:
            raise UnsupportedError("device: circuits that pass several resources of a kind are not folded")
        if resource.per_wavelength:
            if (circuits.wavelength_n != 1).any():
                raise UnsupportedError("device: circuits of several wavelengths are not folded")
            index = index * fabric.num_wavelengths + circuits.wavelength_lo
        yield index, None


def _set(fabric: Fabric, circuits: Circuits) -> Iterator[Touched]:
    """Devices of each circuit and their settings, a kind after the other."""
    return ((index, setting) for _, index, setting in device_settings(fabric, circuits))


def device_settings(fabric: Fabric, circuits: Circuits) -> Iterator[tuple[int, IntArray, IntArray]]:
    """Number of a kind of devices, the device of each circuit and its setting, a kind after the other.

    Args:
        fabric: with the devices.
        circuits: of a round.
    Raises: UnsupportedError: a circuit needs one of several devices, or several, or later than it starts.
    """
    number = {device.kind: at for at, device in enumerate(fabric.devices)}
    for use in fabric.settings(circuits):
        device = fabric.devices[number[use.kind]]
        if device.once_per_job:
            continue
        if device.pool > 1 or use.circuit is not None or np.any(use.offset_s):
            raise UnsupportedError(f"device: devices of kind {use.kind} are not folded")
        yield number[use.kind], np.asarray(use.index, np.int64), np.asarray(use.setting, np.int64)


def _nth(kinds: Iterator[Touched], number: int) -> Touched:
    """What a kind finds, without keeping what the others find."""
    return next(islice(kinds, number, None))


def _distinct(values: IntArray) -> IntArray:
    """Distinct values >= 0, ascending; by a table where they are small."""
    top = int(values.max(initial=-1)) + 1
    if top <= 4 * len(values):
        there = np.zeros(top, bool)
        there[values] = True
        return np.flatnonzero(there)
    ordered = np.sort(values)
    return ordered[np.diff(ordered, prepend=-1) != 0]


def _table(columns: Sequence[IntArray], n: int) -> IntArray:
    """Columns side by side, int64 (n, columns)."""
    return np.column_stack(columns).astype(np.int64) if columns else np.zeros((n, 0), np.int64)
