"""How long does it take? One file an engine; each takes a circuit plan and a message size and returns a `Timeline`."""

from __future__ import annotations

from opticcl.simulate.assumptions import PRESETS, Assumptions, assumptions
from opticcl.simulate.bounds import class_bounds, lower_bound_s, moved_share
from opticcl.simulate.closed_form import Cost, Profile, closed_form, costs, profile
from opticcl.simulate.links import link_bytes, link_names
from opticcl.simulate.options import ENGINES, PacketOptions, packet_options, split_options

__all__ = [
    "ENGINES",
    "PRESETS",
    "Assumptions",
    "Cost",
    "PacketOptions",
    "Profile",
    "assumptions",
    "class_bounds",
    "closed_form",
    "costs",
    "link_bytes",
    "link_names",
    "lower_bound_s",
    "moved_share",
    "packet_options",
    "profile",
    "split_options",
]
