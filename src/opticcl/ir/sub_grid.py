"""Parts of a grid: some values of each coordinate, and all nodes where they cross."""

from __future__ import annotations

from math import prod

import numpy as np
import numpy.typing as npt

__all__ = ["sub_grid"]

Nodes = npt.NDArray[np.integer]


def sub_grid(sides: tuple[int, ...], nodes: Nodes) -> tuple[Nodes, ...] | None:
    """Values of each coordinate, in the order in which the nodes have them, int64 (values,) each; None where nodes are no part.

    Args:
        sides: of the grid, whose nodes are numbered row by row.
        nodes: in the order of their coordinates within the part, row by row, int (n,).

    >>> [values.tolist() for values in sub_grid((2, 4), np.array([4, 7, 0, 3]))]
    [[1, 0], [0, 3]]
    >>> sub_grid((2, 4), np.array([0, 1, 4])) is None
    True
    """
    values, stride = list[Nodes](), len(nodes)
    for coordinate, side in zip(np.unravel_index(nodes, sides), sides, strict=True):
        many = int(np.count_nonzero(np.bincount(coordinate, minlength=side)))
        if stride % many:
            return None
        stride //= many
        values.append(coordinate[::stride][:many])
    if prod(map(len, values)) != len(nodes):
        return None
    part = np.ravel_multi_index(np.meshgrid(*values, indexing="ij"), sides).ravel()
    return tuple(values) if np.array_equal(part, nodes) else None
