"""How long does it take? One file an engine; each takes a circuit plan and a message size and returns a `Timeline`."""

from __future__ import annotations

from opticcl.simulate.assumptions import PRESETS, Assumptions, assumptions
from opticcl.simulate.bounds import lower_bound_s, moved_share, schedule_bound_s
from opticcl.simulate.closed_form import Profile, closed_form, profile

__all__ = [
    "PRESETS",
    "Assumptions",
    "Profile",
    "assumptions",
    "closed_form",
    "lower_bound_s",
    "moved_share",
    "profile",
    "schedule_bound_s",
]
