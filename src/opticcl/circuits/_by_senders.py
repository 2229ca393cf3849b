"""Rules that give the transfers of each sender circuits by themselves, on machines that moves take to themselves."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from opticcl.ir import Circuits, Fabric, IntArray, Transfers
from opticcl.ir.limits import TRANSFERS_LISTED
from opticcl.ir.orbits import first_of_orbit
from opticcl.ir.phase_rows import Space
from opticcl.ir.phases import Steps
from opticcl.ir.representatives import LightMove, Represented, SymmetricRounds

__all__ = ["BySenders", "Rounds", "moves_of_digits"]

Rounds = Callable[[int, Transfers], tuple[Circuits, ...]]
"""(step index, its transfers) -> circuits of each round."""


class BySenders(Represented):
    """A rule whose circuits of some senders define those of all, as far as the steps have the machine's moves.

    Args:
        fabric: the machine; where ranks are others than its nodes, or parts have failed, no moves are taken.
        steps: of the schedule.
        rounds: the rule; the circuits of a sender depend on its own transfers alone, and those of its image are their images.
        moved: which digits of the ranks may be translated in a step for that to hold, bool (digits,); None: all.
    """

    def __init__(
        self,
        fabric: Fabric,
        steps: Steps,
        rounds: Rounds,
        moved: Callable[[int], npt.NDArray[np.bool_]] | None = None,
    ) -> None:
        self._fabric, self._steps, self._rounds, self._moved = fabric, steps, rounds, moved
        self._whole = fabric.node_of_rank is None and not fabric.conditions
        self._known: dict[tuple[bool, ...] | None, tuple[tuple[LightMove, ...], IntArray]] = {}

    def __call__(self, step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        """Circuits of each round."""
        return self._rounds(step, transfers)

    def represents(self, step: int) -> bool:
        """Whether there are too many transfers to list, and those of one sender define all."""
        return self._steps.num_transfers(step) > TRANSFERS_LISTED and len(self.of_step(step)[1]) == 1

    def senders(self, step: int) -> IntArray | None:
        """One sender of each set that moves of the machine join which the step has too; None where none are."""
        moves, senders = self.of_step(step)
        return senders if moves else None

    def symmetric(self, step: int) -> tuple[SymmetricRounds, ...]:
        """Circuits of these senders."""
        moves, senders = self.of_step(step)
        if not moves:
            return ()
        return (SymmetricRounds(senders, self._rounds(step, self._steps.sent_by(step, senders)), moves),)

    def of_step(self, step: int) -> tuple[tuple[LightMove, ...], IntArray]:
        """Moves of the machine that take a step to itself, and one sender of each set of those that they join."""
        moved = self._steps.group(step) if self._whole else ()
        if self._moved is not None and any(moved):
            moved = tuple((np.array(moved) & self._moved(step)).tolist())
        key = None if self._moved is None and any(moved) and self._steps.joins_all(step) else moved
        if key not in self._known:
            moves = (
                _moves_of_nodes(self._fabric) if key is None else moves_of_digits(self._fabric, self._steps.space, key)
            )
            first = first_of_orbit([move.nodes for move in moves], self._steps.space.num_ranks)
            self._known[key] = moves, np.unique(first)
        return self._known[key]


@lru_cache(4)
def moves_of_digits(fabric: Fabric, space: Space, moved: tuple[bool, ...]) -> tuple[LightMove, ...]:
    """Moves of a machine that are translations of digits of its nodes: of each digit the one by the least number.

    Those by its multiples, and no others, the machine has as well.

    Args:
        fabric: the machine.
        space: digits of the nodes.
        moved: which digits may be translated.
    """
    moves = []
    for digit in np.flatnonzero(moved).tolist():
        for by in _divisors(space.radices[digit])[:-1]:
            nodes, ahead = space.images(0, by * space.strides[digit], (True,) * len(space.radices))
            images = np.empty(len(nodes), np.int64)
            images[nodes] = ahead
            move = fabric.move_of(images)
            if move is not None:
                moves.append(move)
                break
    return tuple(moves)


@lru_cache(4)
def _moves_of_nodes(fabric: Fabric) -> tuple[LightMove, ...]:
    """Moves of a machine that translate digits of the numbers of its nodes, whatever digits these are; they commute.

    Args: fabric: the machine.
    """
    nodes, moves, stride = np.arange(fabric.num_machine_nodes), list[LightMove](), 1
    while stride < len(nodes):
        sides = _divisors(len(nodes) // stride)[1:]
        for side in reversed(sides):
            digit = nodes // stride % side
            move = fabric.move_of(nodes + ((digit + 1) % side - digit) * stride)
            if move is not None:
                moves.append(move)
                stride *= side
                break
        else:
            stride *= sides[0]
    return tuple(moves)


def _divisors(number: int) -> list[int]:
    """Of a number, ascending, itself included."""
    numbers = np.arange(1, number + 1)
    return [*map(int, numbers[number % numbers == 0])]
