"""What one signal is, however many receivers it reaches.

A lane is a circuit on one wavelength, or a circuit where circuits take shares of a port; its wavelength is then a channel, the
number of the circuit. The lanes of a transfer carry consecutive parts of its bytes, in the order of their
ports and wavelengths, each in proportion to the rate that weak parts leave it.

A signal is a sender, a port, a wavelength, chunks, and the first and the last byte of them. What its receivers do with the
chunks, store or add them, makes no difference. Light of idle circuits is a signal without chunks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opticcl.ir._common import IntArray, numbered, row_numbers
from opticcl.ir.circuits import Circuits
from opticcl.ir.fabric import Fabric
from opticcl.ir.occupied import DIGITS_OF_SHARE
from opticcl.ir.transfers import Transfers

__all__ = ["Signals", "divides_ports", "lanes_of_each", "signals_of"]


@dataclass(frozen=True, slots=True, eq=False)
class Signals:
    """Circuits by wavelength and what they carry, as columns of equal length, in the order of the circuits.

    Args:
        circuit: row of the circuits, int64 (n,).
        wavelength: int64 (n,).
        signal: number from 0, equal for lanes that are one signal, int64 (n,).
        share: first part of its transfer that a lane carries, int64 (n,).
        behind: the part behind the last one that it carries; `share` + 1 where all parts of the machine work at their
            rates, int64 (n,).
        shares: equal parts that the transfer is divided into; 0 for idle circuits, which carry none, int64 (n,).
    """

    circuit: IntArray
    wavelength: IntArray
    signal: IntArray
    share: IntArray
    behind: IntArray
    shares: IntArray

    def __len__(self) -> int:
        return len(self.circuit)

    def of_circuits(self) -> IntArray:
        """A number for each circuit, equal for circuits that are one signal on every wavelength, int64 (circuits,)."""
        count = int(self.circuit[-1]) + 1 if len(self) else 0
        if count == len(self):  # one wavelength each
            return self.signal
        first = np.searchsorted(self.circuit, np.arange(count))
        many = np.diff(first, append=len(self))
        numbers = self.signal[first]
        for nth in range(1, int(many.max())):
            at = np.minimum(first + nth, len(self) - 1)
            numbers = row_numbers([numbers, np.where(many > nth, self.signal[at], -1)])
        return numbers


def divides_ports(fabric: Fabric) -> bool:
    """Whether circuits take shares of the rate of a port, not wavelengths of their own."""
    return any(resource.in_wavelengths for resource in fabric.resources)


def lanes_of_each(fabric: Fabric, circuits: Circuits) -> IntArray:
    """Lanes of each circuit, int64 (circuits,).

    Args: fabric, circuits: as of `signals_of`.
    """
    if divides_ports(fabric):
        return np.ones(len(circuits), np.int64)
    return circuits.wavelength_n.astype(np.int64)


def signals_of(fabric: Fabric, circuits: Circuits, transfers: Transfers) -> Signals:
    """Signals of the circuits of a round.

    Args:
        fabric: that they are on.
        circuits: of the round, of one wavelength or more each.
        transfers: of the step.
    """
    shared = divides_ports(fabric)
    many = lanes_of_each(fabric, circuits)
    circuit, nth = numbered(many)
    wavelength = circuit if shared else circuits.wavelength_lo[circuit] + nth * circuits.wavelength_step
    port = circuits.port[circuit].astype(np.int64)
    carried = circuits.transfer[circuit].astype(np.int64)
    idle = (carried < 0) | (carried >= len(transfers))  # a transfer that does not exist has no chunks
    rate = fabric.wavelengths_carried(circuits)[circuit] / many[circuit]
    weight = np.rint(rate if shared else 10**DIGITS_OF_SHARE * rate).astype(np.int64)
    parts = [np.where(idle, 0, column) for column in _parts(carried, port, wavelength, weight)]
    columns = [circuits.src[circuit], port, wavelength, idle, *parts]
    if len(transfers):
        step = 1 if transfers.chunk_step is None else np.where(transfers.chunk_n > 1, transfers.chunk_step, 1)
        every = np.ones(len(transfers), np.int64)
        apart = every if transfers.parts is None else transfers.parts
        known = np.where(idle, 0, carried)
        chunks = (transfers.chunk_lo, transfers.chunk_n, every * step, apart)
        columns += [np.where(idle, 0, column[known]) for column in chunks]
    return Signals(circuit, wavelength, row_numbers(columns), *parts)


def _parts(
    carried: IntArray, port: IntArray, wavelength: IntArray, weight: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """First part of its transfer that each lane carries, the part behind its last, and how many there are.

    Args:
        carried: transfer of each lane.
        port, wavelength: of each lane.
        weight: what each carries, as of other lanes.
    """
    if not len(carried):
        return carried, carried, carried
    order = np.lexsort((wavelength, port, carried))
    ordered, sizes = carried[order], weight[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    group = np.cumsum(np.append(False, ordered[1:] != ordered[:-1]))
    sizes = sizes // np.maximum(np.gcd.reduceat(sizes, first), 1)[group]
    behind = np.cumsum(sizes)
    behind -= (behind[first] - sizes[first])[group]
    share, upto, whole = np.empty((3, len(carried)), np.int64)
    share[order], upto[order] = behind - sizes, behind
    whole[order] = np.add.reduceat(sizes, first)[group]
    return _least_terms(share, upto, whole)


def _least_terms(share: IntArray, behind: IntArray, shares: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """The same parts where lanes have unequal ones: of as few as describe each lane, so that equal bytes have equal numbers."""
    unequal = behind - share != 1
    if not unequal.any():
        return share, behind, shares
    common = np.maximum(np.gcd(np.gcd(share, behind), shares), 1)
    return share // common, behind // common, shares // common
