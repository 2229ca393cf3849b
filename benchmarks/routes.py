"""CPU seconds of least-overlap routes, each beside its mark: `python benchmarks/routes.py`.

A warm-up run comes first, so that what Numba compiles is not counted. Every round of LUMORPH-2 and LUMORPH-4 on 256 GPUs;
overlap and bound are told as found / bound where they differ.
"""

from __future__ import annotations

import time

import numpy as np

from opticcl.routing.column_generation import generate_columns
from opticcl.routing.dimension_order import dimension_order
from opticcl.routing.grid import Grid, Routes
from opticcl.routing.least_overlap import least_overlap
from opticcl.studies.lumorph import RADICES, rounds_of

CASES = (  # shape, numbering, seeds, mark [CPU s], how far from the bound
    ((16, 16), "row", (0,), 2.0, 1.0),
    ((16, 16), "squares", (0,), 2.0, 1.0),
    ((32, 8), "squares", (0,), 2.0, 1.0),
    ((4, 64), "squares", (0,), 2.0, 1.0),
    ((16, 16), "random", tuple(range(8)), 60.0, 1.1),
    ((32, 8), "random", tuple(range(8)), 60.0, 1.1),
    ((4, 64), "random", tuple(range(8)), 60.0, 1.1),
)


def main() -> None:
    """Print a line a case."""
    least_overlap(Grid(4, 4), np.array([0, 1]), np.array([15, 15]))
    generate_columns(Grid(2, 2), np.array([0]), np.array([3]), [dimension_order(np.array([0]), np.array([3]), 2)])
    print(f"{'case':<22}{'CPU s':>8}{'mark':>8}   overlap of each round")
    for shape, numbering, seeds, mark, near in CASES:
        worst_s, all_found = 0.0, []
        for seed in seeds:
            started = time.process_time()
            found = [
                least_overlap(Grid(*shape), src, dst)
                for radix in RADICES
                for src, dst in rounds_of(shape, radix, numbering, seed)
            ]
            worst_s = max(worst_s, time.process_time() - started)
            all_found += found
        furthest = max(routes.max_overlap / routes.bound for routes in all_found)
        good = worst_s <= mark and furthest <= near + 1e-9
        name = f"{shape[0]}x{shape[1]} {numbering}" + (f" x{len(seeds)}" if len(seeds) > 1 else "")
        told = " ".join(map(_told, all_found[:12]))
        print(f"{name:<22}{worst_s:>8.2f}{mark:>8.0f}   {told}{'' if good else '  OVER'}")


def _told(routes: Routes) -> str:
    return f"{routes.max_overlap:g}" + ("" if routes.optimal else f"/{routes.bound:g}")


if __name__ == "__main__":
    main()
