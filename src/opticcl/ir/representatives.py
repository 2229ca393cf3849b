"""Steps that are too large to list: the transfers of some senders, and circuits of which all others are images.

A phase defines its transfers by translations of digits (`opticcl.ir.phases`). A rule of circuits may give those of some senders
together with moves of the machine - of its nodes, ports, wavelengths and hops - under which the circuits of all other senders
are their images. The verifier checks that the moves are translations of the phase and that the fabric is what it was after one.
Where circuits are of several kinds, such as those along rows and those along columns, each has senders and moves of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from opticcl.ir._common import IntArray
from opticcl.ir.circuits import Circuits, concatenate_circuits
from opticcl.ir.phases import Steps, TransferEnds
from opticcl.ir.transfers import Transfers, concatenate_transfers

__all__ = ["LightMove", "Represented", "RoutedStep", "StepImages", "SymmetricRounds", "together"]


@dataclass(frozen=True)
class StepImages:
    """A step that is not listed, whose ranks all send as much.

    Args:
        steps: of a schedule.
        number: of the step, whose phase translates every digit.
    """

    steps: Steps
    number: int

    def __len__(self) -> int:
        return self.steps.num_transfers(self.number)

    def __repr__(self) -> str:
        return f"<StepImages of {len(self):,} transfers>"

    def sent_by(self, senders: IntArray) -> Transfers:
        """Transfers of some senders, in the order of the step."""
        return self.steps.sent_by(self.number, senders)

    @cached_property
    def first(self) -> Transfers:
        """Transfers that rank 0 sends."""
        return self.sent_by(np.zeros(1, np.int64))

    def received_by_first(self) -> Transfers:
        """Transfers that rank 0 receives."""
        return self.steps.received_by(self.number, 0)


@dataclass(frozen=True, slots=True, eq=False)
class LightMove:
    """A permutation of what circuits are made of; hops may be left without an image, such as those over the edge of a grid.

    Args:
        nodes: image of each node, int64 (nodes,).
        ports: of each port, int64 (ports_per_node,).
        wavelengths: of each wavelength, int64 (num_wavelengths,).
        hops: of each number that a path may have, -1 for none, int64 (hops,).
    """

    nodes: IntArray
    ports: IntArray
    wavelengths: IntArray
    hops: IntArray

    @property
    def columns(self) -> tuple[IntArray, ...]:
        """All four."""
        return self.nodes, self.ports, self.wavelengths, self.hops

    def of(self, circuits: Circuits) -> Circuits:
        """The image of circuits of one wavelength each, or of which the move keeps wavelengths."""
        return Circuits.of(
            circuits.transfer,
            self.nodes[circuits.src],
            self.nodes[circuits.dst],
            self.ports[circuits.port],
            self.wavelengths[circuits.wavelength_lo],
            circuits.wavelength_n,
            (self.hops[circuits.hops], circuits.hop_offsets),
            circuits.wavelength_step,
        )


@dataclass(frozen=True, slots=True, eq=False)
class SymmetricRounds:
    """Rounds of circuits of a step: those of some senders, and their images under all products of the moves.

    Args:
        senders: one rank of each set of ranks that the moves join, int64 (senders,); or of some of these, where circuits of
            others have other moves.
        rounds: circuits of each round; they carry rows of `StepImages.sent_by(senders)`.
        moves: they commute.
    """

    senders: IntArray
    rounds: tuple[Circuits, ...]
    moves: tuple[LightMove, ...]

    @property
    def images(self) -> int:
        """Circuits that each of them stands for, itself included: products of powers of the moves [count]."""
        count, first = 1, self.senders[0]
        for move in self.moves:
            turns, node = 1, move.nodes[first]
            while node != first:
                turns, node = turns + 1, move.nodes[node]
            count *= turns
        return count

    @property
    def keep_hops(self) -> bool:
        """Whether images of circuits have the same paths."""
        return all(np.array_equal(move.hops, np.arange(len(move.hops))) for move in self.moves)


def together(step: StepImages, sets: Sequence[SymmetricRounds]) -> tuple[Transfers, tuple[Circuits, ...]]:
    """Transfers of the senders of all sets, and circuits of each round, which carry rows of these.

    Args:
        step: that the circuits are of.
        sets: of senders, with as many rounds each.
    """
    transfers = [step.sent_by(one.senders) for one in sets]
    if len(sets) == 1:
        return transfers[0], sets[0].rounds
    first = np.cumsum([0, *map(len, transfers)])
    rounds = [
        concatenate_circuits(
            circuits.carrying_others(circuits.transfer + np.int32(at) * (circuits.transfer >= 0))
            for circuits, at in zip(each, first, strict=False)
        )
        for each in zip(*(one.rounds for one in sets), strict=True)
    ]
    return concatenate_transfers(transfers), tuple(rounds)


@dataclass(frozen=True, slots=True, eq=False)
class RoutedStep:
    """A step of packets too large to list, each of whose transfers has one route.

    Args:
        senders: one rank of each set of ranks that the moves join, int64 (senders,).
        moves: of the machine; they commute, and routes of all other senders are images of those of these.
        circuits: routes of some transfers of the step.
    """

    senders: IntArray
    moves: tuple[LightMove, ...]
    circuits: Callable[[TransferEnds], Circuits]


class Represented(ABC):
    """A rule that gives the circuits of some senders for those of all.

    Where it does, circuits of a step are by definition the images of these; what it lists is a reading of that definition.
    """

    on_routes = False
    """Whether circuits are the fabric's routes, on links that they share."""

    @abstractmethod
    def represents(self, step: int) -> bool:
        """Whether a step is not listed, since it is too large and circuits of some senders define all."""

    @abstractmethod
    def senders(self, step: int) -> IntArray | None:
        """One sender of each set that moves of the machine join; None where circuits of some do not define those of all."""

    @abstractmethod
    def symmetric(self, step: int) -> tuple[SymmetricRounds, ...]:
        """Circuits of some senders of a step, of each set with moves of its own; none where they do not define those of all."""

    def routed(self, step: int) -> RoutedStep | None:
        """The routes of a step of packets that is too large to list; else None."""
        return None
