"""Transfers cut into cells, the links that they cross, and what a simulation of them finds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opticcl.ir import IntArray

__all__ = ["CellFlows", "CellLinks", "CellResult", "whole_ticks"]


@dataclass(frozen=True, slots=True)
class CellLinks:
    """The links that cells cross.

    Args:
        capacity: of each, float64 (links,) [byte/s].
        latency_s: from the end of sending a cell to its arrival, float64 (links,) [s].
        base_s: latency of a transfer in addition to that of its links [s].
    """

    capacity: np.ndarray
    latency_s: np.ndarray
    base_s: float


@dataclass(frozen=True, slots=True)
class CellFlows:
    """Transfers cut into cells.

    Args:
        amount: float64 (n,) [bytes].
        delay_s: from their release until the first cell may start, float64 (n,) [s].
        compute_s: from the last cell until others may use what arrived, float64 (n,) [s].
        path_at, path_n: links of flow i are hops[path_at[i] : path_at[i] + path_n[i]], (n,).
    """

    amount: np.ndarray
    delay_s: np.ndarray
    compute_s: np.ndarray
    path_at: IntArray
    path_n: IntArray
    hops: IntArray

    def num_cells(self, cell_bytes: float) -> IntArray:
        """Cells of each, int64 (n,); an empty transfer has one, without bytes."""
        return self._num_cells(cell_bytes).astype(np.int64)

    def num_sent(self, cell_bytes: float) -> int:
        """Cells sent over a link, if none is sent twice [count]; a Python integer, since it may exceed 64 bits."""
        return int((self._num_cells(cell_bytes) * self.path_n).sum())

    def _num_cells(self, cell_bytes: float) -> np.ndarray:
        cells: np.ndarray = np.maximum(1, np.ceil(self.amount / cell_bytes))
        return cells

    def paths(self) -> tuple[IntArray, IntArray]:
        """(links, offsets), one flow after the other."""
        n = self.path_n.astype(np.int64)
        offsets = np.concatenate([[0], np.cumsum(n)])
        return self.hops[np.arange(offsets[-1]) + np.repeat(self.path_at - offsets[:-1], n)], offsets


@dataclass(frozen=True, slots=True)
class CellResult:
    """Result of a simulation of cells; times in seconds, NaN where it never happened.

    Args:
        finished, released, caused_by: as of `_flow_kernels.run`.
        passed: cells sent over a link [count].
        carried, busy_s, queue, dropped: of each link, float64 (links,) [bytes or s].
        rows: rows allocated for cells in flight, a power of two [count].
    """

    finished: np.ndarray
    released: np.ndarray
    caused_by: IntArray
    passed: int
    carried: np.ndarray
    busy_s: np.ndarray
    queue: np.ndarray
    dropped: np.ndarray
    rows: int


def whole_ticks(seconds: np.ndarray, tick_s: float) -> IntArray:
    """Times as whole ticks, rounded up, int64; a thousandth of a tick is rounding."""
    ticks: IntArray = np.ceil(seconds / tick_s - 1e-3).astype(np.int64)
    return ticks
