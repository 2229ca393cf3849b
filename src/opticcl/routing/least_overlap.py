"""Algorithm 2: routes with as few circuits on the most congested edge as possible, and a lower bound.

    1. row first or column first, whichever has the smaller overlap; for digit exchanges that is optimal, and a cut along
       a row or a column proves it
    2. rip up and reroute: remove one circuit after the other and route it over the least congested edges, at the price
       exp(3 (circuits + 1 - overlap)) an edge, more where the edge was among the most congested in earlier passes
    3. if the cut bound is not met, prices of edges by column generation: a better bound, often a proof of optimality; its
       fractional routing is rounded at random and rerouted once more

Source: LUMORPH section 3.1, appendix A.
Reading: printed as an integer programme; constraints 10 to 16 allow detached loops and 14, 15 are equalities. Integer
programming is not needed: the steps above meet the bound in all cases tried (docs/schedules.md).
"""

from __future__ import annotations

import numpy as np

from opticcl.ir import IntArray
from opticcl.ir.limits import limit
from opticcl.routing._kernels import rip_up_and_reroute
from opticcl.routing.bounds import cut_bound
from opticcl.routing.grid import Grid, Routes, max_overlap
from opticcl.routing.paths import open_dimension_order

__all__ = ["least_overlap"]

MAX_TILE_VISITS = 1e8  # tiles that one local search may visit: about 5 s
MAX_PASSES = limit("least_overlap.MAX_PASSES")
PATIENCE = limit("least_overlap.PATIENCE")
MAX_PROGRAMME_SIZE = limit("least_overlap.MAX_PROGRAMME_SIZE")
NUM_DRAWS = 20  # roundings of its solution


def least_overlap(grid: Grid, src: IntArray, dst: IntArray, *, seed: int = 0) -> Routes:
    """Routes with little overlap, and a lower bound on the overlap.

    Args:
        grid: the grid.
        src, dst: tiles of each circuit, different, int64 (n,).
        seed: seed of the order of rerouting and of the rounding; equal seeds give equal routes.
    Raises: FabricError: no open path joins a pair.

    >>> routes = least_overlap(Grid(2, 2), np.array([0, 1, 2, 3]), np.array([3, 2, 1, 0]))
    >>> routes.max_overlap, routes.bound, routes.certificate
    (1.0, 1.0, 'cut')
    """
    src, dst = np.asarray(src, np.int64), np.asarray(dst, np.int64)
    if not len(src):
        return Routes(np.zeros(0, np.int32), np.zeros(1, np.int64), 0.0, 0.0, "cut")
    bound, prices = cut_bound(grid, src, dst)
    starts = [open_dimension_order(grid, src, dst, first) for first in ("row", "column")]
    overlap, start = min(((max_overlap(grid, s[0]), i) for i, s in enumerate(starts)))
    found = Routes(*starts[start], overlap, bound, "cut", prices)
    if found.optimal:
        return found
    found = _reroute(grid, src, dst, found, seed)
    if found.optimal or len(src) * grid.num_tiles > MAX_PROGRAMME_SIZE:
        return found
    from opticcl.routing.column_generation import generate_columns, round_at_random

    known = [(found.hops, found.offsets), *starts]
    mix = generate_columns(grid, src, dst, known, enough=found.max_overlap, seed=seed)
    if mix.bound > found.bound:
        found = Routes(found.hops, found.offsets, found.max_overlap, mix.bound, "linear programme", mix.prices)
    if found.optimal:
        return found
    hops, offsets = round_at_random(grid, mix, len(src), NUM_DRAWS, seed)
    other = Routes(hops, offsets, max_overlap(grid, hops), found.bound, found.certificate, found.prices)
    other = _reroute(grid, src, dst, other, seed + 1)
    return min(found, other, key=lambda routes: routes.max_overlap)


def _reroute(grid: Grid, src: IntArray, dst: IntArray, start: Routes, seed: int) -> Routes:
    """The best routes that rip-up and reroute finds from `start`."""
    passes = min(MAX_PASSES, int(MAX_TILE_VISITS / (len(src) * grid.num_tiles)))
    if not passes:
        return start
    length = np.diff(start.offsets)
    room = int(max(length.max(), min(grid.num_tiles - 1, 2 * (grid.rows + grid.columns))))
    paths = np.zeros((len(src), room), np.int32)
    kept = np.arange(room) < length[:, None]
    paths[kept] = start.hops
    rng = np.random.default_rng(seed)
    draws = rng.random((passes, len(src)))
    target = start.bound + 1e-9
    overlap, _ = rip_up_and_reroute(
        grid.width(), src, dst, grid.columns, paths, length, draws, target, min(PATIENCE, passes)
    )
    hops = paths[np.arange(room) < length[:, None]]
    offsets = np.concatenate([[0], np.cumsum(length)])
    return Routes(hops, offsets, float(overlap), start.bound, start.certificate, start.prices)
