"""Schedules with the fewest rounds on a wafer of tiles, found and proven (LUMORPH's Algorithm 1, corrected).

    problem     who holds which piece, and who must get it; from a registered collective or the user's own (`own`)
    wafer       the light: lasers, photodiodes, waveguides, routes
    bounds      rounds that no schedule can do without, each with its reason
    hints, product, alike, hubs    constructed schedules; `packing` lays their circuits
    model, reduction        is there a schedule of R rounds? for pieces that spread, and for sums; `symmetric` makes it smaller
    light       wavelengths for what the solver finds
    spread, sums, gap, search    from both ends until they meet

The judge (`opticcl.verify`) sees every schedule before it is an answer.
"""

from __future__ import annotations

from opticcl.synthesis.own import read_collective
from opticcl.synthesis.search import Synthesis, synthesize

__all__ = ["Synthesis", "read_collective", "synthesize"]
