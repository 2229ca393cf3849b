"""How long does it take? One file an engine; each takes a circuit plan and a message size and returns a `Timeline`."""

from __future__ import annotations

from opticcl.simulate.assumptions import PRESETS, Assumptions, assumptions
from opticcl.simulate.bounds import lower_bound_s, moved_share, schedule_bound_line, schedule_bound_s
from opticcl.simulate.closed_form import Profile, closed_form, profile
from opticcl.simulate.links import link_bytes, link_names
from opticcl.simulate.options import ENGINES, PacketOptions, packet_options, split_options

__all__ = [
    "ENGINES",
    "PRESETS",
    "Assumptions",
    "PacketOptions",
    "Profile",
    "assumptions",
    "closed_form",
    "link_bytes",
    "link_names",
    "lower_bound_s",
    "moved_share",
    "packet_options",
    "profile",
    "schedule_bound_line",
    "schedule_bound_s",
    "split_options",
]
