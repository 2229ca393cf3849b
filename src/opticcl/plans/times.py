"""Times of compiled plans by any engine."""

from __future__ import annotations

from opticcl.ir import Timeline
from opticcl.simulate import Profile, engine_options, simulate

__all__ = ["timeline_of"]


def timeline_of(profile: Profile, size_bytes: int, engine: str = "closed_form") -> Timeline:
    """Timeline of a plan that a search has evaluated by the closed form, whose result is reused.

    Args:
        profile: plan, assumptions, and their evaluation by the closed form.
        size_bytes: message of every rank [bytes].
        engine: name, perhaps with options, as `opticcl.simulate.simulate` takes it.
    Raises: UnknownNameError, ParameterError, UnsupportedError, BoundError.
    """
    if engine_options(engine, {})[0].name == "closed_form":
        return profile.timeline(size_bytes)
    return simulate(profile.plan, size_bytes, profile.assumed, engine=engine).timeline
