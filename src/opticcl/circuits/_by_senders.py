"""Rules that light the transfers of each sender by themselves, on machines that moves take to themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache as once

import numpy as np
import numpy.typing as npt

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
        moves: of the machine for circuits of a step: of each way to move, the moves of which the first that the step has is
            taken.
    """

    def __init__(self, steps: Steps, rounds: Rounds, moves: Callable[[int], Sequence[Sequence[LightMove]]]) -> None:
        self._steps, self._rounds, self._moves = steps, rounds, moves
        self._by = once(lambda move: steps.space.translation(move.nodes))
        self._senders: dict[tuple[LightMove, ...], IntArray] = {}

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
        still = ~np.array(self._steps.phases[number].moves if self._steps.whole_boxes(step) else (), bool)
        every = self._moves(step) if not still.all() else ()
        mine = [next((move for move in some if self._keeps(move, still)), None) for some in every]
        moves = tuple(move for move in mine if move is not None)
        if moves not in self._senders:
            first = first_of_orbit([move.nodes for move in moves], self._steps.space.num_ranks)
            self._senders[moves] = np.unique(first)
        return moves, self._senders[moves]

    def _keeps(self, move: LightMove, digits: npt.NDArray[np.bool_]) -> bool:
        """Whether a move translates digits of the ranks, but none of these, bool (digits,)."""
        by = self._by(move)
        return by is not None and not by[digits].any()
