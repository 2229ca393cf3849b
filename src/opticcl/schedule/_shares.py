"""Work shared among those who can do it, so that the largest load is the least possible; wavelengths, so that time is saved."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray

__all__ = ["least_shares", "widths_of_circuits"]


def least_shares(can: npt.NDArray[np.bool_], amount: IntArray) -> IntArray:
    """Whole units of each kind that each worker does, int64 (kinds, workers).

    Every kind is first cut evenly. Then units go from the worker with the largest load to the nearest one with at least two
    fewer, along a path of workers where each can take over a unit of the one before it; the load is least where there is no
    such path.

    Args:
        can: whether a worker can do a kind, bool (kinds, workers); at least one for each kind.
        amount: units of each kind, int64 (kinds,).

    >>> least_shares(np.array([[True, False], [True, True]]), np.array([4, 6])).tolist()
    [[4, 0], [1, 5]]
    """
    able = can.sum(1)
    rank = np.cumsum(can, 1) - 1
    shares: IntArray = np.where(can, amount[:, None] // able[:, None] + (rank < (amount % able)[:, None]), 0)
    shares = shares.astype(np.int64)
    while True:
        loads = shares.sum(0)
        path = _path(can, shares, loads)
        if not path:
            return shares
        start, end = path[0][1], path[-1][2]
        moved = min((loads[start] - loads[end]) // 2, *(shares[kind, giver] for kind, giver, _ in path))
        for kind, giver, taker in path:
            shares[kind, giver] -= moved
            shares[kind, taker] += moved


def _path(can: npt.NDArray[np.bool_], shares: IntArray, loads: IntArray) -> list[tuple[int, int, int]]:
    """Kind, giver and taker of each move from the largest load to one smaller by 2 or more; empty where there is none."""
    start = int(loads.argmax())
    came: dict[int, tuple[int, int]] = {start: (-1, -1)}
    waiting = deque([start])
    while waiting:
        giver = waiting.popleft()
        if loads[giver] <= loads[start] - 2:
            path = []
            while giver != start:
                kind, before = came[giver]
                path.append((kind, before, giver))
                giver = before
            return path[::-1]
        for kind in np.flatnonzero(shares[:, giver]).tolist():
            for taker in np.flatnonzero(can[kind]).tolist():
                if taker not in came:
                    came[taker] = kind, giver
                    waiting.append(taker)
    return []


def widths_of_circuits(needs: Sequence[int], gains: Sequence[float], wavelengths: int) -> tuple[int, ...]:
    """Wavelengths of a circuit of each kind: one, and each of the others goes where it saves most [count].

    Args:
        needs: wavelengths of each kind with one a circuit; one that needs none keeps one [count].
        gains: time of each kind with one a circuit.
        wavelengths: of a fibre [count].
    """
    widths, left = [1] * len(needs), wavelengths - sum(needs)
    while fitting := [at for at, need in enumerate(needs) if 0 < need <= left]:
        best = max(fitting, key=lambda at: gains[at] * (1 / widths[at] - 1 / (widths[at] + 1)) / needs[at])
        widths[best] += 1
        left -= needs[best]
    return tuple(widths)
