"""First-fit assignment of circuits to sends, round by round; needs no solver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.synthesis.partial_schedule import PieceSend, SendRounds
from opticcl.synthesis.wafer import Path, Wafer

__all__ = ["Demand", "RoundOccupancy", "pack", "pack_groups"]


class Demand(NamedTuple):
    """A piece that a rank needs, and the ranks that may send it: the first that holds it and has a free circuit sends it."""

    piece: int
    senders: Sequence[int]
    dst: int


class RoundOccupancy:
    """Lasers, photodiodes and waveguides that are free in one round."""

    def __init__(self, wafer: Wafer) -> None:
        self._wafer = wafer
        self._sends, self._receives = wafer.lasers.copy(), wafer.photodiodes.copy()
        self._idle_lasers = wafer.lasers.sum(axis=1).tolist()
        self._idle_photodiodes = wafer.photodiodes.sum(axis=1).tolist()
        self._room = np.repeat(wafer.room[:, None], wafer.num_wavelengths, axis=1)

    def can_receive(self, rank: int) -> bool:
        """Whether a photodiode of the rank is free."""
        return bool(self._idle_photodiodes[rank])

    def can_send(self, rank: int) -> bool:
        """Whether a laser of the rank is free."""
        return bool(self._idle_lasers[rank])

    def assign(self, src: int, dst: int) -> tuple[int, Path] | None:
        """Assign a circuit on the first free wavelength and route; None if there is none.

        Args: src, dst: ranks.
        Returns: (wavelength, path).
        """
        idle = self._sends[src] & self._receives[dst]
        if not idle.any():
            return None
        best: tuple[int, Path] | None = None
        for path in self._wafer.routes[src, dst]:
            room = self._room[list(path)] > 0
            fits = idle & room.all(axis=0)
            if fits.any():
                wavelength = int(np.argmax(fits))
                if best is None or wavelength < best[0]:
                    best = wavelength, path
        if best is not None:
            self._light(src, dst, *best)
        return best

    def snapshot(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        """The current state, for `restore`."""
        return self._sends.copy(), self._receives.copy(), self._room.copy()

    def restore(self, dark: tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_], npt.NDArray[np.int64]]) -> None:
        """Return to a snapshot."""
        self._sends, self._receives, self._room = dark
        self._idle_lasers = self._sends.sum(axis=1).tolist()
        self._idle_photodiodes = self._receives.sum(axis=1).tolist()

    def _light(self, src: int, dst: int, wavelength: int, path: Path) -> None:
        self._sends[src, wavelength] = self._receives[dst, wavelength] = False
        self._idle_lasers[src] -= 1
        self._idle_photodiodes[dst] -= 1
        self._room[list(path), wavelength] -= 1


def pack(
    wafer: Wafer, holds: npt.NDArray[np.bool_], demands: Sequence[Demand], *, most: int = 1 << 30
) -> SendRounds | None:
    """Rounds that satisfy all demands, in each round the first ones whose senders hold the piece and have a free circuit.

    Args:
        wafer: optical resources of the job.
        holds: which rank holds which piece at the start, bool (pieces, ranks).
        demands: each (piece, receiver) once.
        most: largest number of rounds of interest [count].
    Returns: the rounds; None if they are more than `most` or a demand cannot be satisfied.
    """
    holds = holds.copy()
    schedule: SendRounds = []
    waiting = list(demands)
    while waiting:
        if len(schedule) >= most:
            return None
        light, sent, late = RoundOccupancy(wafer), [], []
        for demand in waiting:
            assigned = None
            if light.can_receive(demand.dst):
                for src in demand.senders:
                    if holds[demand.piece, src] and light.can_send(src):
                        assigned = light.assign(src, demand.dst)
                        if assigned is not None:
                            sent.append(PieceSend(demand.piece, src, demand.dst, False, *assigned))
                            break
            if assigned is None:
                late.append(demand)
        if not sent:
            return None
        for send in sent:
            holds[send.piece, send.dst] = True
        schedule.append(sent)
        waiting = late
    return schedule


def pack_groups(wafer: Wafer, groups: Sequence[Sequence[PieceSend]], *, most: int = 1 << 30) -> SendRounds | None:
    """Rounds for groups of sends of which all sends of a group must be in one round, as in an exchange of sums.

    Args:
        wafer: optical resources of the job.
        groups: sends without circuits.
        most: largest number of rounds of interest [count].
    Returns: the rounds; None if they are more than `most` or a group fits in no round.
    """
    schedule: SendRounds = []
    waiting = list(groups)
    while waiting:
        if len(schedule) >= most:
            return None
        light, sent, late = RoundOccupancy(wafer), [], []
        for group in waiting:
            before = light.snapshot()
            circuits = [(send, light.assign(send.src, send.dst)) for send in group]
            if all(assigned is not None for _, assigned in circuits):
                sent += [
                    send._replace(wavelength=assigned[0], path=assigned[1]) for send, assigned in circuits if assigned
                ]
            else:
                light.restore(before)
                late.append(group)
        if not sent:
            return None
        schedule.append(sent)
        waiting = late
    return schedule
