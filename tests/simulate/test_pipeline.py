"""Cells of one transfer, one after the other over link after link."""

from math import ceil

import numpy as np
import pytest

from opticcl.simulate._cell_flows import CellFlows, CellLinks
from opticcl.simulate._pipeline import share_no_link, unshared_s

TICK_S = 1e-15


def last_arrival_s(links, path, amount, delay_s, cell_bytes, cuts):
    """Every cell begins on a link once it is there (with cut-through: so that no bit lacks) once the link is free."""
    cells = [cell_bytes] * (ceil(amount / cell_bytes) - 1)
    cells.append(amount - sum(cells))
    there = [ceil((delay_s + links.base_s) / TICK_S - 1e-3)] * len(cells)
    before = None
    for link in path:
        ticks = [ceil(cell / (links.capacity[link] * TICK_S) - 1e-3) for cell in cells]
        if cuts and before is not None:  # the last bit is not sent before it is there
            there = [at - min(late, sent) for at, late, sent in zip(there, ticks, before, strict=True)]
        free, begun = 0, []
        for at, sent in zip(there, ticks, strict=True):
            begun.append(max(at, free))
            free = begun[-1] + sent
        latency = ceil(links.latency_s[link] / TICK_S - 1e-3)
        there = [at + sent + latency for at, sent in zip(begun, ticks, strict=True)]
        before = ticks
    return there[-1] * TICK_S


@pytest.mark.parametrize("cuts", [False, True])
def test_cells_one_by_one(cuts):
    """Links of any rate and latency, amounts of less than a cell, of whole cells and of more."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        length = rng.integers(1, 6, 12)
        offsets = np.concatenate([[0], np.cumsum(length)])
        hops = rng.permutation(int(offsets[-1]))
        links = CellLinks(rng.choice([1e9, 2.5e8, 7.7e8], len(hops)), rng.choice([0.0, 3e-9, 1.23e-7], len(hops)), 5e-9)
        amount, delay = rng.choice([1.0, 64, 65, 128, 600.5], 12), rng.choice([0.0, 1e-8, 1.5e-6], 12)
        order = rng.permutation(12)  # paths are not listed in the order of the transfers
        flows = CellFlows(amount, delay, np.zeros(12), offsets[:-1][order], length[order], hops)
        found = unshared_s(links, flows, 64, cuts)
        for i, row in enumerate(order.tolist()):
            path = hops[offsets[row] : offsets[row + 1]].tolist()
            due = last_arrival_s(links, path, amount[i], delay[i], 64, cuts)
            assert found[i] == pytest.approx(due, rel=1e-12, abs=0)


def test_which_links_are_shared():
    """None without transfers; one that two of them cross."""
    assert share_no_link(np.array([], int))
    assert share_no_link(np.array([3, 0, 2]))
    assert not share_no_link(np.array([3, 0, 3]))
