"""Straight parts of routes."""

from __future__ import annotations

from dataclasses import dataclass

from opticcl.ir._common import IntArray

__all__ = ["Pieces"]


@dataclass(frozen=True, slots=True)
class Pieces:
    """Routes as parts of closed lines of links; int (routes, parts) each.

    Part j of route i passes `length[i, j]` links from place `first + start` on, and goes on at place `first` after place
    `first + side - 1`. `Fabric.lines` gives the link at each place.

    Args:
        first: place of the first link of the line.
        side: links of the line [count].
        start: links of the line before the part [count].
        length: links of the part, at most `side` [count].
    """

    first: IntArray
    side: IntArray
    start: IntArray
    length: IntArray
