"""LUMORPH's claims about Algorithm 1: what an exact search for the fewest rounds can do."""

from __future__ import annotations

from opticcl.papers import Found, claim, found
from opticcl.synthesis import Synthesis, synthesize

COLLECTIVES = ("all_gather", "all_to_all", "all_reduce")


def synthesized(shape: str, collective: str, chunks: int = 1, lasers: int = 16, waveguides: int = 40) -> Synthesis:
    """The synthesized schedule with the fewest rounds on a grid, after at most 60 s of search.

    Args:
        shape: rows and columns of the grid, such as "2x4".
        collective: canonical name.
        chunks: of the message of each rank [count].
        lasers: of a tile [count].
        waveguides: of an edge, in each direction [count].
    """
    where = f"lightpath:shape={shape},lasers={lasers},waveguides={waveguides}"
    return synthesize(where, collective, chunks=chunks, time_limit=60)


def all_optimal(shape: str, num_gpus: int) -> bool:
    """Whether each of three collectives is proven optimal, with a chunk for each GPU."""
    return all(synthesized(shape, name, num_gpus if name == "all_reduce" else 1).optimal for name in COLLECTIVES)


@claim("lumorph", "L17")
def largest_grid() -> int:
    """GPUs of the largest of these grids on which all are optimal; no larger one is tried."""
    grids = {8: "2x4", 16: "4x4", 32: "4x8"}
    return max((gpus for gpus, shape in grids.items() if all_optimal(shape, gpus)), default=0)


@claim("lumorph", "L17.eight")
def eight_gpus_fail() -> bool:
    """Whether any of the collectives on 8 GPUs is left without a proof, at 1 to 16 lasers and one waveguide or forty."""
    return not all(
        synthesized("2x4", name, 1, lasers, waveguides).optimal
        for name in COLLECTIVES[:2]
        for lasers in (1, 2, 4, 8, 16)
        for waveguides in (1, 40)
    )


@claim("lumorph", "L16.waveguide")
def one_waveguide() -> Found:
    """Rounds of the all-to-all of 8 GPUs with 8 lasers where every edge has one waveguide."""
    with_seven = synthesized("2x4", "all_to_all", 1, 7, 1).num_steps
    return found(synthesized("2x4", "all_to_all", 1, 8, 1).num_steps, with_seven=with_seven)
