"""Strategies for grids and demands, and an independent walker of paths."""

from __future__ import annotations

from collections import Counter

import networkx
import numpy as np
from hypothesis import strategies as st

from opticcl.routing.grid import Grid

STEPS = {0: (0, 1), 1: (0, -1), 2: (1, 0), 3: (-1, 0)}  # east, west, south, north: rows down, columns right


@st.composite
def grids(draw, most: int = 6, damaged: bool = True) -> Grid:
    """A small grid, with a few closed tiles and edges that work in part or not at all if `damaged`."""
    rows, columns = draw(st.integers(1, most)), draw(st.integers(1, most))
    tiles = rows * columns
    if not damaged or tiles < 3:
        return Grid(rows, columns)
    shut = draw(st.lists(st.integers(0, tiles - 1), max_size=2, unique=True))
    hurt = draw(st.dictionaries(st.integers(0, 4 * tiles - 1), st.sampled_from([0.0, 0.25, 0.5]), max_size=5))
    share = np.ones(4 * tiles)
    share[list(hurt)] = list(hurt.values())
    return Grid(rows, columns, np.array(sorted(shut), np.int64), share if hurt else None)


def graph_of(grid: Grid) -> networkx.DiGraph:
    """The open tiles and edges as a networkx graph; edges have their number and share."""
    graph = networkx.DiGraph()
    shut = set(grid.shut.tolist())
    graph.add_nodes_from(set(range(grid.num_tiles)) - shut)
    for tile in range(grid.num_tiles):
        row, column = divmod(tile, grid.columns)
        for d, (down, right) in STEPS.items():
            r, c = row + down, column + right
            to = r * grid.columns + c
            share = 1.0 if grid.share is None else float(grid.share[4 * tile + d])
            if 0 <= r < grid.rows and 0 <= c < grid.columns and share > 0 and not {tile, to} & shut:
                graph.add_edge(tile, to, number=4 * tile + d, share=share)
    return graph


@st.composite
def demands(draw, grid: Grid, most: int = 12) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of tiles that some open path joins."""
    graph = graph_of(grid)
    pairs = [(a, b) for a in graph for b in networkx.descendants(graph, a)]
    if not pairs:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    chosen = draw(st.lists(st.sampled_from(sorted(pairs)), min_size=1, max_size=most))
    src, dst = np.array(chosen, np.int64).T
    return src, dst


def recount(grid: Grid, src: np.ndarray, dst: np.ndarray, hops: np.ndarray, offsets: np.ndarray) -> float:
    """Load of the most congested edge, after walking every path from its sender to its receiver over open edges."""
    graph = graph_of(grid)
    end_of = {data["number"]: (a, b, data["share"]) for a, b, data in graph.edges(data=True)}
    load: Counter[int] = Counter()
    assert len(offsets) == len(src) + 1
    assert offsets[-1] == len(hops)
    for i, (tile, goal) in enumerate(zip(src.tolist(), dst.tolist(), strict=True)):
        seen = {tile}
        for hop in hops[offsets[i] : offsets[i + 1]].tolist():
            start, to, _ = end_of[hop]  # a shut edge is no key
            assert start == tile
            assert to not in seen, "through a tile twice"
            seen.add(to)
            tile = to
            load[hop] += 1
        assert tile == goal
    return max((count / end_of[hop][2] for hop, count in load.items()), default=0.0)
