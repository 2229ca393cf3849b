"""Synthesis of schedules with the fewest rounds on a wafer of tiles, with proofs (LUMORPH's Algorithm 1, corrected).

    problem               which rank holds which piece before and after; from a registered or a custom collective
    custom                reader of custom collectives (TOML, JSON)
    wafer                 optical resources: lasers, photodiodes, waveguides, routes
    bounds, counting, cuts                      lower bounds on the number of rounds, each with its reason
    hints, product, symmetry, hub_reduction     constructed schedules; `packing` assigns their circuits
    model, reduction      decision models: is there a schedule of R rounds? for multicasts and for reductions
    symmetric             orbits of a symmetry group, which make the reduction model smaller
    light                 wavelength assignment for schedules that the solver finds
    multicast, reductions, optimality_gap, search    narrow the gap between the bound and the best schedule

Every schedule is verified by `opticcl.verify` before it is returned.
"""

from __future__ import annotations

from opticcl.synthesis.custom import read_collective
from opticcl.synthesis.search import Synthesis, synthesize

__all__ = ["Synthesis", "read_collective", "synthesize"]
