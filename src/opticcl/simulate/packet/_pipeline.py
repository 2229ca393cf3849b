"""Cells of transfers that share no link: a formula, equal to the simulation tick by tick."""

from __future__ import annotations

import numpy as np

from opticcl.ir import IntArray
from opticcl.simulate.packet.cells import CellFlows, CellLinks

__all__ = ["share_no_link", "unshared_s"]

TICK_S = 1e-15
SLACK = 1e-3


def unshared_s(links: CellLinks, flows: CellFlows, cell_bytes: float, cuts: bool) -> np.ndarray:
    """When the last cell of each transfer arrives if no other transfer uses its links, float64 (n,) [s].

    Cells of one size follow each other as closely as the slowest link so far allows; the last cell, which may be smaller,
    begins on a link once it has arrived (with cut_through: its head) and the cell before it has been sent.

    Args:
        links: that the cells cross.
        flows: of the transfers.
        cell_bytes: size of a cell [bytes].
        cuts: whether switches cut through.
    """
    cells = flows.num_cells(cell_bytes)
    tail = flows.amount - (cells - 1) * cell_bytes
    per_byte = 1 / (links.capacity * TICK_S)
    full_ticks = np.ceil(cell_bytes * per_byte - SLACK)
    late = np.ceil(links.latency_s / TICK_S - SLACK)
    n = len(flows.amount)
    first, slowest, behind = np.zeros((3, n))  # begin of the first full cell; gap between cells; begin of the last cell
    before_full, before_tail, before_late = np.zeros((3, n))
    for hop in range(int(flows.path_n.max(initial=0))):
        on = np.flatnonzero(flows.path_n > hop)
        link = flows.hops[flows.path_at[on] + hop]
        full, last = full_ticks[link], np.ceil(tail[on] * per_byte[link] - SLACK)
        gone, of_tail = before_full[on], before_tail[on]  # 0 in front of the first link
        first[on] += before_late[on] + (np.maximum(0, gone - full) if cuts else gone)
        behind[on] += before_late[on] + (np.maximum(0, of_tail - last) if cuts else of_tail)
        slowest[on] = np.maximum(slowest[on], full)
        many = cells[on] > 1
        sent = first[on] + (cells[on] - 2) * slowest[on] + full
        behind[on] = np.where(many, np.maximum(behind[on], sent), behind[on])
        before_full[on], before_tail[on], before_late[on] = full, last, late[link]
    start = np.ceil((flows.delay_s + links.base_s) / TICK_S - SLACK)
    return (start + behind + before_tail + before_late) * TICK_S


def share_no_link(hops: IntArray) -> bool:
    """Whether no link is crossed by two transfers."""
    return not len(hops) or int(np.bincount(hops).max()) == 1
