"""Rules that light the transfers of each sender by themselves, on machines that moves take to themselves."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opticcl.circuits import Rounds
from opticcl.ir import Circuits, IntArray, Transfers
from opticcl.ir.limits import TRANSFERS_LISTED
from opticcl.ir.phases import Steps
from opticcl.ir.representatives import LightMove, Represented, SymmetricRounds, first_of_orbit

__all__ = ["BySenders"]


class BySenders(Represented):
    """A rule whose circuits of some senders define those of all, as far as the steps have the machine's moves.

    Args:
        steps: of the schedule, whose ranks are the nodes of the machine.
        rounds: the rule; the circuits of a sender depend on its own transfers alone, and those of its image are their images.
        moves: of the machine: of each way to move, the moves of which the first that the steps have is taken.
    """

    def __init__(self, steps: Steps, rounds: Rounds, moves: Sequence[Sequence[LightMove]]) -> None:
        self._steps, self._rounds, self._moves = steps, rounds, moves
        self._by: list[list[tuple[LightMove, IntArray]]] | None = None
        self._senders: dict[tuple[bool, ...], tuple[tuple[LightMove, ...], IntArray]] = {}

    def __call__(self, step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        """Circuits of each round."""
        return self._rounds(step, transfers)

    def represents(self, step: int) -> bool:
        """Whether there are too many transfers to list, and those of one sender define all."""
        return self._steps.num_transfers(step) > TRANSFERS_LISTED and len(self._of_step(step)[1]) == 1

    def senders(self, step: int) -> IntArray | None:
        """One sender of each set that moves of the machine join which are translations of the step; None where none are."""
        moves, senders = self._of_step(step)
        return senders if moves else None

    def symmetric(self, step: int) -> SymmetricRounds | None:
        """Circuits of these senders."""
        moves, senders = self._of_step(step)
        if not moves:
            return None
        return SymmetricRounds(senders, self._rounds(step, self._steps.sent_by(step, senders)), moves)

    def _of_step(self, step: int) -> tuple[tuple[LightMove, ...], IntArray]:
        """Moves of the machine that are translations of a step, and one sender of each set of those that they join."""
        number, _ = self._steps.phase_of(step)
        moved = self._steps.phases[number].moves if self._steps.whole_boxes(step) else ()
        if moved not in self._senders:
            every = self._translations() if any(moved) else []
            mine = [next((move for move, by in some if not by[~np.array(moved)].any()), None) for some in every]
            moves = tuple(move for move in mine if move is not None)
            first = first_of_orbit([move.nodes for move in moves], self._steps.space.num_ranks)
            self._senders[moved] = moves, np.unique(first)
        return self._senders[moved]

    def _translations(self) -> list[list[tuple[LightMove, IntArray]]]:
        """Of each way to move, the moves that translate digits of the ranks, and by how much."""
        if self._by is None:
            space = self._steps.space
            found = [[(move, space.translation(move.nodes)) for move in some] for some in self._moves]
            self._by = [[(move, by) for move, by in some if by is not None] for some in found]
        return self._by
