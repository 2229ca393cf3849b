"""Occupation: which cells circuits take, how much of each, and rows that exceed a capacity in time.

A cell is a unit of a resource on one wavelength, or a unit where wavelengths are not counted apart. Rounds, slots, jobs and
programmes are judged by the same cells: those of circuits that exist together are added up, and where circuits begin and end,
rows are swept in the order of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.ir import Circuits, IntArray, Resource, Usage

__all__ = ["Cells", "cells_of", "exceeding", "largest_so_far", "levels", "loads_of", "runs_of", "slack"]

FloatArray = npt.NDArray[Any]  # float64


def slack(time_s: FloatArray | float) -> FloatArray | float:
    """Tolerance of a comparison of times: 1e-9 of them and 1e-15 s."""
    return 1e-9 * np.abs(time_s) + 1e-15


def runs_of(
    keys: Sequence[npt.NDArray[Any]], then: Sequence[npt.NDArray[Any]] = ()
) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Rows sorted by keys, and which of them are the first of their keys.

    Args:
        keys: columns that make runs, the most important first, (n,) each.
        then: columns that order the rows of a run, likewise.
    Returns: rows, int64 (n,); bool (n,).
    """
    order = np.lexsort((*then[::-1], *keys[::-1]))
    new = np.ones(len(order), bool)
    new[1:] = False
    for column in keys:
        ordered = column[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    return order, new


def largest_so_far(new: npt.NDArray[np.bool_], values: FloatArray) -> FloatArray:
    """Largest value of each row and of those before it in its run, float64 (n,).

    Args:
        new: whether a row is the first of a run, bool (n,).
        values: of the rows, float64 (n,).
    """
    known, place = np.unique(values, return_inverse=True)
    first = (np.cumsum(new) - 1) * len(values)
    return known[np.maximum.accumulate(first + place) - first]


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """What circuits take of a resource: a row for each unit, circuit and wavelength.

    Args:
        resource: that is taken.
        depth: cells of a unit [count].
        cell: number of the cell, int64 (n,).
        row: of the usage, int64 (n,).
        circuit: that takes it, int64 (n,).
        amount: of the capacity, int64 (n,); None: 1 each.
    """

    resource: Resource
    depth: int
    cell: IntArray
    row: IntArray
    circuit: IntArray
    amount: IntArray | None

    def loads(self) -> IntArray:
        """What is taken of every cell of the resource, int64 (cells,)."""
        loads: IntArray = np.bincount(self.cell, self.amount, self.resource.count * self.depth)
        return loads.astype(np.int64, copy=False)

    def name(self, cell: int) -> str:
        """A cell in words."""
        unit, wavelength = divmod(cell, self.depth)
        return f"{self.resource.kind} {unit}" + (f" wavelength {wavelength}" if self.resource.per_wavelength else "")


def loads_of(usage: Usage, circuits: Circuits, num_wavelengths: int) -> IntArray:
    """What circuits take of every cell of a resource, int64 (cells,), as `Cells.loads`, without a list of the cells.

    The wavelengths of a circuit follow each other where cells are counted by their remainder by the distance between these:
    each circuit is added where its first is, and taken off behind its last.

    Args: usage, circuits, num_wavelengths: as of `cells_of`.
    """
    resource, step = usage.resource, circuits.wavelength_step
    if not resource.per_wavelength or usage.amount is not None or (circuits.wavelength_n == 1).all():
        return cells_of(usage, circuits, num_wavelengths).loads()
    after, first = np.divmod(circuits.wavelength_lo.astype(np.int64), step)
    many = -(-num_wavelengths // step)  # of one remainder; one more cell is behind them
    owner = slice(None) if usage.circuit is None else usage.circuit
    place = np.asarray(usage.index, np.int64) * (step * (many + 1)) + (first * (many + 1) + after)[owner]
    size = resource.count * step * (many + 1)
    loads = np.bincount(place, minlength=size)
    loads -= np.bincount(place + circuits.wavelength_n[owner], minlength=size)
    np.cumsum(loads, out=loads)
    by_wavelength = loads.reshape(resource.count, step, many + 1)[:, :, :-1].swapaxes(1, 2).reshape(resource.count, -1)
    return by_wavelength[:, :num_wavelengths].ravel()


def cells_of(usage: Usage, circuits: Circuits, num_wavelengths: int) -> Cells:
    """The cells that circuits take of a resource.

    Args:
        usage: of the resource.
        circuits: of the usage.
        num_wavelengths: of the fabric [count].
    """
    depth = num_wavelengths if usage.resource.per_wavelength else 1
    row, circuit, cell = usage.cells(circuits, num_wavelengths)
    amount = None if usage.amount is None else usage.amount[row]
    return Cells(usage.resource, depth, cell, row, circuit, amount)


def levels(
    cell: IntArray, start_s: FloatArray, end_s: FloatArray, amount: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """What is taken of cells after each start and end of a row, in the order of cells and times; ends come first.

    Args:
        cell: of each row.
        start_s, end_s: its times [s].
        amount: that it takes.
    Returns: event, number of the row, plus the number of rows at its end; what it adds; what is taken then, int64 (2 n,) each.
    """
    change = np.concatenate([amount, -amount]).astype(np.int64)
    order = np.lexsort((change, np.concatenate([start_s, end_s]), np.concatenate([cell, cell])))
    return order, change[order], np.cumsum(change[order])  # every cell ends with as many as it began with


def exceeding(
    cell: IntArray, start_s: FloatArray, left_s: FloatArray, amount: IntArray, capacity: float
) -> tuple[IntArray, FloatArray]:
    """Rows that begin where the capacity is used up, and for all rows the time until one of them ends [s].

    Args:
        cell: of each row.
        start_s, left_s: its times [s].
        amount: of the capacity that it takes.
        capacity: of every cell.
    """
    end_s = np.maximum(left_s - slack(left_s), start_s)
    event, change, taken = levels(cell, start_s, end_s, amount)
    over = np.flatnonzero((taken > capacity) & (change > 0))
    rows = event[over]
    ends = np.flatnonzero(change < 0)
    following = event[ends[np.searchsorted(ends, over)]] - len(cell)  # there is one: every cell ends with none
    missing = np.zeros(len(cell))
    missing[rows] = np.maximum(end_s[following] - start_s[rows], 2e-15)
    return rows, missing
