"""Least-overlap routes: every round of LUMORPH-2 and LUMORPH-4 on 256 GPUs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from measure import Run, register

from opticcl.routing.column_generation import generate_columns
from opticcl.routing.dimension_order import dimension_order
from opticcl.routing.grid import Grid
from opticcl.routing.least_overlap import least_overlap
from opticcl.studies.lumorph import RADICES, rounds_of

CASES = [((16, 16), "row", 0), ((16, 16), "squares", 0), ((32, 8), "squares", 0), ((4, 64), "squares", 0)]
CASES += [(shape, "random", seed) for shape in ((16, 16), (32, 8), (4, 64)) for seed in (0, 1)]


def prepared(shape: tuple[int, int], numbering: str, seed: int) -> Callable[[], Run]:
    """Kernels compiled by a small grid; the result has the largest ratio of the overlap found to its bound.

    Args:
        shape: rows and columns of the grid.
        numbering: of its tiles.
        seed: of a random numbering.
    """

    def prepare() -> Run:
        least_overlap(Grid(4, 4), np.array([0, 1]), np.array([15, 15]))
        generate_columns(Grid(2, 2), np.array([0]), np.array([3]), [dimension_order(np.array([0]), np.array([3]), 2)])

        def run() -> dict[str, float]:
            rounds = [one for radix in RADICES for one in rounds_of(shape, radix, numbering, seed)]
            found = [least_overlap(Grid(*shape), src, dst) for src, dst in rounds]
            return {"overlap_to_bound": max(routes.max_overlap / routes.bound for routes in found)}

        return run

    return prepare


for _shape, _numbering, _seed in CASES:
    _at = f"{_shape[0]}x{_shape[1]}"
    register(
        f"routes.{_at}_{_numbering}" + (f"_{_seed}" if _numbering == "random" else ""),
        f"least-overlap routes of LUMORPH on {_at}, tiles numbered by {_numbering}"
        + (f", seed {_seed}" if _seed else ""),
        prepared(_shape, _numbering, _seed),
    )
