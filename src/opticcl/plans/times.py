"""Times of compiled plans by any engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opticcl.errors import BoundError
from opticcl.ir import CircuitPlan, Timeline
from opticcl.simulate import Profile, engine_options, simulate
from opticcl.verify.judge import Judge

__all__ = ["judged_below_bound", "timeline_of"]


@contextmanager
def judged_below_bound(plan: CircuitPlan) -> Iterator[None]:
    """Judge a plan whose time is below the lower bound: where it is wrong, as those of plugins can be, that is the reason.

    Args: plan: that is timed.
    Raises: VerificationError: it is wrong. BoundError: it is right.
    """
    try:
        yield
    except BoundError:
        Judge()(plan).raise_if_bad(f"{plan.schedule.name} on {plan.fabric.name}")
        raise


def timeline_of(profile: Profile, size_bytes: int, engine: str = "closed_form") -> Timeline:
    """Timeline of a plan that a search has evaluated by the closed form, whose result is reused.

    Args:
        profile: plan, assumptions, and their evaluation by the closed form.
        size_bytes: message of every rank [bytes].
        engine: name, perhaps with options, as `opticcl.simulate.simulate` takes it.
    Raises: UnknownNameError, ParameterError, UnsupportedError; as `judged_below_bound`.
    """
    with judged_below_bound(profile.plan):
        if engine_options(engine, {})[0].name == "closed_form":
            return profile.timeline(size_bytes)
        return simulate(profile.plan, size_bytes, profile.assumed, engine=engine).timeline
