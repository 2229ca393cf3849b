"""Paths as two columns: all hops end to end, and where each path begins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opticcl.ir._common import IntArray
from opticcl.ir.path_kernels import copy_paths

__all__ = ["joined_paths", "paths_of_rows"]


def paths_of_rows(hops: IntArray, offsets: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """(hops, offsets) of some of many paths, in the order of the rows.

    Args:
        hops: all paths end to end.
        offsets: path i is hops[offsets[i]:offsets[i + 1]], int64.
        rows: numbers of paths, int (n,).
    """
    ends = np.concatenate([[0], np.cumsum(np.diff(offsets)[rows])])
    copied = np.empty(ends[-1], np.int32)
    if len(copied):
        copy_paths(np.asarray(hops, np.int32), offsets, np.asarray(rows, np.int64), ends, copied)
    return copied, ends


def joined_paths(parts: Sequence[tuple[IntArray, IntArray]]) -> tuple[IntArray, IntArray]:
    """(hops, offsets) of several lists of paths as one, in order."""
    ends = np.cumsum([0] + [len(hops) for hops, _ in parts])
    offsets = [one[:-1] + end for (_, one), end in zip(parts, ends[:-1], strict=True)]
    return np.concatenate([hops for hops, _ in parts]), np.concatenate([*offsets, ends[-1:]])
