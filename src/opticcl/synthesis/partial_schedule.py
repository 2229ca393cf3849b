"""A schedule under construction: rounds of single sends, with or without circuits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from opticcl.synthesis.wafer import Path, Wafer, reversed_path

__all__ = ["PieceSend", "SendRounds", "concatenated", "reversed_as_reduction"]


class PieceSend(NamedTuple):
    """One piece from one rank to another in one round, on one laser.

    Args:
        piece, src, dst: the piece, its sender and its receiver.
        adds: whether the receiver adds it to its own; otherwise it stores it.
        wavelength: wavelength of the circuit; -1 where none is assigned.
        path: edges of the circuit; empty where none is assigned.
    """

    piece: int
    src: int
    dst: int
    adds: bool = False
    wavelength: int = -1
    path: Path = ()


SendRounds = list[list[PieceSend]]
"""Sends of each round."""


def reversed_as_reduction(schedule: SendRounds, wafer: Wafer) -> SendRounds:
    """The reduction that a multicast becomes with time reversed: the last round first, every send reversed and added.

    Args:
        schedule: rounds of the multicast.
        wafer: wafer of the multicast.
    """
    opposite = wafer.reverse_edges()
    return [
        [PieceSend(s.piece, s.dst, s.src, True, s.wavelength, reversed_path(s.path, opposite)) for s in sends]
        for sends in reversed(schedule)
    ]


def concatenated(*drafts: Iterable[Sequence[PieceSend]]) -> SendRounds:
    """All rounds in the order given."""
    return [list(sends) for schedule in drafts for sends in schedule]
