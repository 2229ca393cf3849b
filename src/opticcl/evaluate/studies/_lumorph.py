"""What studies of LUMORPH have in common: who talks to whom in each round, and the names of its algorithms."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opticcl.errors import ParameterError
from opticcl.fabric.lightpath import tile_of_node
from opticcl.ir import IntArray
from opticcl.schedule.lumorph import digits, peers

__all__ = ["LARGEST", "RADICES", "check_power_of_two", "check_seed", "label", "rounds_of"]

RADICES = (2, 4)
LARGEST = 1024  # nodes of a study; local search takes seconds beyond


def label(radix: int) -> str:
    """The paper's name of the algorithm."""
    return f"LUMORPH-{radix}"


def check_seed(what: str, seed: int) -> None:
    """Raises: ParameterError: negative."""
    if seed < 0:
        raise ParameterError(f"{what}={seed}; it is 0 or more")


def check_power_of_two(what: str, nodes: int) -> None:
    """Raises: ParameterError: no power of two from 4 to `LARGEST`."""
    if not 4 <= nodes <= LARGEST or nodes.bit_count() != 1:
        raise ParameterError(f"{what}={nodes}; it is a power of two from 4 to {LARGEST}, try 256")


def rounds_of(shape: tuple[int, int], radix: int, numbering: str, seed: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Sending and receiving tiles of each round of a reduce-scatter; the all-gather has the same, the other way round."""
    tile = tile_of_node(shape, numbering, seed)
    n, stride = len(tile), 1
    for k in digits(n, radix):
        dst = peers(n, k, stride)
        src = np.broadcast_to(np.arange(n)[:, None], dst.shape)
        stride *= k
        yield tile[src[src != dst]], tile[dst[src != dst]]
