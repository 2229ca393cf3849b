"""Circuits on the most congested edge against the number of GPUs, for random routes and routes of least overlap."""

from __future__ import annotations

import numpy as np

from opticcl.errors import ParameterError
from opticcl.fabrics.lightpath import Numbering, near_square
from opticcl.ir import ProgressCallback
from opticcl.routing.grid import Grid, max_overlap
from opticcl.routing.least_overlap import least_overlap
from opticcl.routing.paths import random_shortest
from opticcl.studies import Chart, Study, register_study
from opticcl.studies.lumorph import RADICES, check_power_of_two, check_seed, label, rounds_of

__all__ = ["overlap", "random_overlaps"]

MOST_DRAWS = 1000


@register_study("overlap")
def overlap(
    progress: ProgressCallback, *, largest: int = 256, numbering: Numbering = "random", draws: int = 10, seed: int = 0
) -> Study:
    """How many circuits must share an edge (figure 5 left)?

    Args:
        progress: called with (what, done, total).
        largest: numbers of GPUs are 4, 8, ... up to this [count].
        numbering: of the GPUs on the tiles.
        draws: draws of random routes, of which mean and maximum are reported [count].
        seed: of the random numbering and of all draws.
    Source: LUMORPH section 5, figure 5 left.
    """
    check_power_of_two("overlap: largest", largest)
    check_seed("overlap: seed", seed)
    if not 1 <= draws <= MOST_DRAWS:
        raise ParameterError(f"overlap: draws={draws}; try 1 to {MOST_DRAWS}")
    counts = [1 << k for k in range(2, largest.bit_length())]
    rows = []
    for done, nodes in enumerate(counts):
        shape = near_square(nodes)
        for radix in RADICES:
            progress("find routes", 2 * done + (radix == 4), 2 * len(counts))
            randomly = random_overlaps(shape, radix, numbering, draws, seed)
            found = [least_overlap(Grid(*shape), s, d, seed=seed) for s, d in rounds_of(shape, radix, numbering, seed)]
            bound = max(routes.bound for routes in found)
            least = max(routes.max_overlap for routes in found)
            same = {"gpus": nodes, "algorithm": label(radix)}
            rows.append(same | {"routes": "random", "overlap": float(np.mean(randomly)), "worst": max(randomly)})
            rows[-1]["at_least"] = bound
            rows.append(same | {"routes": "least overlap", "overlap": least, "worst": least, "at_least": bound})
    return Study(
        f"overlap:largest={largest},numbering={numbering},draws={draws},seed={seed}",
        f"Circuits on the most congested edge of an all-reduce, {numbering} numbering",
        "LUMORPH figure 5 left",
        rows,
        Chart("gpus", "overlap", ("algorithm", "routes"), "GPUs", "circuits on the most congested edge", "x"),
        (f"random: mean and maximum of {draws} draws; no routes have fewer than at_least",),
    )


def random_overlaps(shape: tuple[int, int], radix: int, numbering: str, draws: int, seed: int) -> list[float]:
    """Circuits on the most congested edge of all rounds, for each draw of random shortest paths.

    Args:
        shape: rows and columns of tiles.
        radix: of LUMORPH.
        numbering: of the GPUs on the tiles.
        draws: number of draws [count].
        seed: of the random numbering and of the first draw; draw k has seed + k.
    """
    grid = Grid(*shape)
    rounds = list(rounds_of(shape, radix, numbering, seed))
    return [
        max(max_overlap(grid, random_shortest(grid, src, dst, seed + draw)[0]) for src, dst in rounds)
        for draw in range(draws)
    ]
