"""LIGHTPATH's circuits for `chessboard_exchange`: lasers and rounds by formula, in which no edge is overloaded.

A line of n places is two halves of m = n / 2. From place (b, l) to (b', l') of it, in halves and in places of a half, leads

    slot    p + m (b xor b' xor floor(l / 2) mod 2),    p = l xor l' for m = 2^k, else (l' - l) mod m

In a slot every sender of the line has one receiver and every receiver one sender. Half of the senders stay in their half and
half change it, so that the middle of a line on which half of all nodes send is crossed n / 8 times each way, and no edge more
than n / 8 + 3 times, counted for every n = 4 i up to 1,024; the judge of light counts what is longer. A slot is a laser in a
round, the L slots of a round in order: a step takes n / L rounds. With l xor l' no path is longer than m + p, so that
rounds of small p have short ones.

In the second step p is even where a receiver has its sender's colour, so that what comes along rows and what comes along
columns in a slot is for nodes of different colours. Relays of the first step have the colour of their senders.

Circuits along rows are moved by two rows, those along columns by two columns.

Source: our own.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from opticcl.circuits._by_senders import moves_of_digits
from opticcl.errors import TooLargeError
from opticcl.fabrics.lightpath import Lightpath
from opticcl.ir import Circuits, Fabric, IntArray, Schedule, Transfers
from opticcl.ir.limits import limit
from opticcl.ir.representatives import Represented, SymmetricRounds
from opticcl.routing.paths import open_dimension_order

__all__ = ["Chessboard", "fits_chessboard"]

MOST_HOPS = limit("chessboard.MOST_HOPS")
MOST_LISTED = limit("chessboard.MOST_LISTED")
MORE = 3  # circuits that cross an edge in a slot, above n / 8


def fits_chessboard(machine: Lightpath) -> bool:
    """Whether the circuits of a slot fit on the edges, and there is more than one round of them."""
    short = all(side % 4 == 0 and side // 8 + MORE <= machine.waveguides for side in machine.shape)
    return short and max(machine.shape) > machine.lasers


class Chessboard(Represented):
    """The rule for the two steps on a grid that it fits.

    Args:
        fabric: the machine.
        schedule: a chessboard exchange on it.
    """

    def __init__(self, fabric: Fabric, schedule: Schedule) -> None:
        self._fabric, self._machine, self._steps = fabric, fabric.machine_as(Lightpath), schedule.steps
        self._rounds = -(-max(self._machine.shape) // self._machine.lasers)

    def __call__(self, step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        """Circuits of each round.

        Raises: TooLargeError: their paths are too long to be listed.
        """
        if (hops := self._hops(len(transfers))) > MOST_LISTED:
            raise TooLargeError(
                f"chessboard_exchange on lightpath: {len(transfers):,} transfers cross about {hops:,} edges; at most "
                f"{MOST_LISTED:,} are listed; take fewer nodes"
            )
        (rows, columns), lasers = self._machine.grid_shape, self._machine.lasers
        (row, column), (to_row, to_column) = (np.divmod(end, columns) for end in (transfers.src, transfers.dst))
        along_row = (row + column) % 2 == step
        slot = np.where(along_row, _slot(columns, column, to_column), _slot(rows, row, to_row))
        number, laser = np.divmod(slot, lasers)
        rounds = []
        for one in range(self._rounds):
            mine = np.flatnonzero(number == one)
            ends = transfers.src[mine], transfers.dst[mine]
            rounds.append(Circuits.of(mine, *ends, 0, laser[mine], 1, open_dimension_order(self._machine.grid, *ends)))
        return tuple(rounds)

    def represents(self, step: int) -> bool:
        """Whether the circuits of all nodes cross too many edges."""
        return self._hops(self._steps.num_transfers(step)) > MOST_HOPS

    def _hops(self, transfers: int) -> int:
        """Edges that transfers cross, a third of a line each on average [count].

        Args: transfers: number of them.
        """
        return transfers * (max(self._machine.shape) // 3)

    def senders(self, step: int) -> IntArray:
        """Those of two rows that send along them, and of two columns."""
        return np.concatenate(self._first_senders[step])

    def symmetric(self, step: int) -> tuple[SymmetricRounds, ...]:
        """Circuits along rows and along columns, of two lines each."""
        return tuple(
            SymmetricRounds(
                some,
                self(step, self._steps.sent_by(step, some)),
                moves_of_digits(self._fabric, self._steps.space, tuple(digit == across for digit in range(4))),
            )
            for some, across in zip(self._first_senders[step], (0, 2), strict=True)
        )

    @cached_property
    def _first_senders(self) -> list[tuple[IntArray, IntArray]]:
        """Of each step, nodes of the first two rows that send along rows, and of the first two columns along columns."""
        row, column = np.divmod(np.arange(self._machine.num_nodes), self._machine.shape[1])
        along_row = [(row + column) % 2 == step for step in range(2)]
        return [(np.flatnonzero(mine & (row < 2)), np.flatnonzero(~mine & (column < 2))) for mine in along_row]


def _slot(side: int, place: IntArray, to: IntArray) -> IntArray:
    """Slot of circuits along a line, int (n,).

    Args:
        side: places of the line, a multiple of 4.
        place, to: of senders and receivers.
    """
    half = side // 2
    (own, at), (other, there) = np.divmod(place, half), np.divmod(to, half)
    by = at ^ there if half & (half - 1) == 0 else (there - at) % half
    slots: IntArray = by + half * (own ^ other ^ at // 2 % 2)
    return slots
