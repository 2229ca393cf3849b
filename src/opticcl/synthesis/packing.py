"""Light for sends by first fit, round by round; needs no solver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.synthesis.draft import Draft, Send
from opticcl.synthesis.wafer import Path, Wafer

__all__ = ["RoundOfLight", "Wish", "pack", "pack_together"]


class Wish(NamedTuple):
    """A piece that a rank wants, from one of these ranks: the first that has it and has light to spare."""

    piece: int
    senders: Sequence[int]
    dst: int


class RoundOfLight:
    """What is still dark in one round."""

    def __init__(self, wafer: Wafer) -> None:
        self._wafer = wafer
        self._sends, self._hears = wafer.sends.copy(), wafer.hears.copy()
        self._idle_lasers = wafer.sends.sum(axis=1).tolist()
        self._idle_photodiodes = wafer.hears.sum(axis=1).tolist()
        depth = wafer.num_wavelengths if wafer.side_by_side else 1
        self._room = np.repeat(wafer.room[:, None], depth, axis=1)

    def hears_more(self, rank: int) -> bool:
        """Whether a photodiode of the rank is idle."""
        return bool(self._idle_photodiodes[rank])

    def sends_more(self, rank: int) -> bool:
        """Whether a laser of the rank is idle."""
        return bool(self._idle_lasers[rank])

    def lay(self, src: int, dst: int, routes: Sequence[Path] | None = None) -> tuple[int, Path] | None:
        """A circuit on the first wavelength and route that are free; None if there are none.

        Args: routes: to choose from; None: all that the wafer has for the pair.
        """
        idle = self._sends[src] & self._hears[dst]
        if not idle.any():
            return None
        best: tuple[int, Path] | None = None
        for path in self._wafer.routes[src, dst] if routes is None else routes:
            room = self._room[list(path)] > 0
            fits = idle & room.all(axis=0)
            if fits.any():
                wavelength = int(np.argmax(fits))
                if best is None or wavelength < best[0]:
                    best = wavelength, path
        if best is not None:
            self._light(src, dst, *best)
        return best

    def remembered(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
        """What is dark now, for `restore`."""
        return self._sends.copy(), self._hears.copy(), self._room.copy()

    def restore(self, dark: tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_], npt.NDArray[np.int64]]) -> None:
        """Put out everything that was lit since."""
        self._sends, self._hears, self._room = dark
        self._idle_lasers = self._sends.sum(axis=1).tolist()
        self._idle_photodiodes = self._hears.sum(axis=1).tolist()

    def _light(self, src: int, dst: int, wavelength: int, path: Path) -> None:
        self._sends[src, wavelength] = self._hears[dst, wavelength] = False
        self._idle_lasers[src] -= 1
        self._idle_photodiodes[dst] -= 1
        self._room[list(path), wavelength if self._wafer.side_by_side else 0] -= 1


def pack(
    wafer: Wafer, holds: npt.NDArray[np.bool_], wishes: Sequence[Wish], *, adds: bool = False, most: int = 1 << 30
) -> Draft | None:
    """Rounds that fulfil all wishes: in each round those that come first, as far as senders have the piece and light is left.

    Args:
        holds: who has which piece at the start, bool (pieces, ranks).
        wishes: each (piece, receiver) once.
        adds: whether receivers add.
        most: rounds beyond which nobody is interested [count].
    Returns: the rounds; None if they are more than `most`, or a wish cannot be fulfilled.
    """
    holds = holds.copy()
    draft: Draft = []
    waiting = list(wishes)
    while waiting:
        if len(draft) >= most:
            return None
        light, sent, late = RoundOfLight(wafer), [], []
        for wish in waiting:
            laid = None
            if light.hears_more(wish.dst):
                for src in wish.senders:
                    if holds[wish.piece, src] and light.sends_more(src):
                        laid = light.lay(src, wish.dst)
                        if laid is not None:
                            sent.append(Send(wish.piece, src, wish.dst, adds, *laid))
                            break
            if laid is None:
                late.append(wish)
        if not sent:
            return None
        for send in sent:
            holds[send.piece, send.dst] = True
        draft.append(sent)
        waiting = late
    return draft


def pack_together(wafer: Wafer, groups: Sequence[Sequence[Send]], *, most: int = 1 << 30) -> Draft | None:
    """Rounds for groups of sends of which each needs one round for all of its sends, as sums that are exchanged do.

    Args:
        groups: sends without light.
        most: rounds beyond which nobody is interested [count].
    Returns: the rounds; None if they are more than `most`, or a group fits in no round.
    """
    draft: Draft = []
    waiting = list(groups)
    while waiting:
        if len(draft) >= most:
            return None
        light, sent, late = RoundOfLight(wafer), [], []
        for group in waiting:
            before = light.remembered()
            lit = [(send, light.lay(send.src, send.dst)) for send in group]
            if all(laid is not None for _, laid in lit):
                sent += [send._replace(wavelength=laid[0], path=laid[1]) for send, laid in lit if laid]
            else:
                light.restore(before)
                late.append(group)
        if not sent:
            return None
        draft.append(sent)
        waiting = late
    return draft
