"""A schedule while it is being made: rounds of single sends, with or without light."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from opticcl.synthesis.wafer import Path, Wafer, walked_back

__all__ = ["Draft", "Send", "in_turn", "turned_round"]


class Send(NamedTuple):
    """One piece from one rank to another in one round, on one laser.

    Args:
        piece, src, dst: what, from where, to where.
        adds: whether the receiver adds it to its own; otherwise it stores it.
        wavelength: of its laser; -1 while it has no light.
        path: edges; empty while it has no light.
    """

    piece: int
    src: int
    dst: int
    adds: bool = False
    wavelength: int = -1
    path: Path = ()


Draft = list[list[Send]]
"""Sends of each round."""


def turned_round(draft: Draft, wafer: Wafer) -> Draft:
    """What spread pieces now adds them up: the last round first, every send the other way and added.

    Args: wafer: on which the draft stands.
    """
    opposite = wafer.opposite()
    return [
        [Send(s.piece, s.dst, s.src, True, s.wavelength, walked_back(s.path, opposite)) for s in sends]
        for sends in reversed(draft)
    ]


def in_turn(*drafts: Iterable[Sequence[Send]]) -> Draft:
    """One after the other."""
    return [list(sends) for draft in drafts for sends in draft]
