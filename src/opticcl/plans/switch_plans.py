"""Plan a collective on optical circuit switches of which some change while others send, timed by the device engine."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from time import perf_counter
from typing import NamedTuple

import numpy as np

from opticcl.assumptions import DEFAULT_SET, Assumptions
from opticcl.errors import UnsupportedError
from opticcl.fabrics.ocs import Ocs
from opticcl.ir import CircuitPlan, Fabric, Timeline
from opticcl.ir.limits import limit
from opticcl.plans.held_sets import factorisations
from opticcl.plans.overlap import Overlapped, SwitchLaw, overlap, plan_on_switches, settings_of
from opticcl.plans.plan import Plan
from opticcl.plans.planner import Planned, PlanTask, Regret, Segment, plan_collective
from opticcl.plans.search import TIE
from opticcl.schedule import generate, reason_declined
from opticcl.simulate import simulate
from opticcl.simulate.bounds import lower_bound
from opticcl.simulate.held_links import shift_law

__all__ = ["plan_overlapped"]

MOST_RADICES = 32
"""Factorisations that are tried, those with the fewest digits first [count]."""

MOST_STEPS = limit("switch_plans.MOST_STEPS")

EXACT_S = 2.0
"""Time of the exact programme of the schedule that the list schedule finds the fastest [s]."""


class _Found(NamedTuple):
    """A schedule divided among switches, its plan and its times."""

    algorithm: str
    divided: Overlapped
    plan: CircuitPlan
    timeline: Timeline


def plan_overlapped(
    fabric: Fabric | str,
    collective: str,
    size: str | float,
    *,
    assumptions: str | Assumptions = DEFAULT_SET,
    time_limit_s: float = inf,
) -> Planned:
    """Plan a collective on optical circuit switches that change while others send.

    Args:
        fabric: an `ocs`, or "ocs:key=value,...".
        collective: such as "all_to_all".
        size: message of every rank: "100 MB" or bytes.
        assumptions: named set of time assumptions, or a custom set.
        time_limit_s: after which no further schedule is tried [s].
    Raises: UnsupportedError: another fabric, or no algorithm in which every node has one partner a step.
    """
    asked = PlanTask.of(fabric, collective, size, assumptions=assumptions, time_limit_s=time_limit_s)
    where, size_bytes, assumed = asked.fabric, asked.size_bytes, asked.assumed
    if not isinstance(where, Ocs):
        raise UnsupportedError(
            f"plan: {where.name} has no switches that change one by one; --overlap is for a whole ocs"
        )
    fastest = _fastest(asked, where)
    regrets = []
    for factor in (0.5, 2.0):
        if where.reconfiguration and not asked.late:
            other = replace(where, reconfiguration=factor * where.reconfiguration)
            kept_s = _device(replace(fastest.plan, fabric=other), size_bytes, assumed).total_s
            best = _fastest(asked, other)
            regrets.append(Regret(factor, kept_s, min(kept_s, best.timeline.total_s), best.algorithm))
    notes = [f"steps of {fastest.algorithm}, divided among {where.planes} switches; timed by the device engine"]
    least = lower_bound(fastest.plan.schedule.collective, where, size_bytes, assumed, starts="devices")
    bound = least.seconds, least.name
    left_s = max(0.0, asked.deadline_s - perf_counter())
    together = plan_collective(
        where, asked.wanted, size_bytes, assumptions=assumed, break_evens=False, time_limit_s=left_s
    )
    timeline = min(together.timeline, _device(together.plan.circuits, size_bytes, assumed), key=lambda one: one.total_s)
    if timeline.total_s < fastest.timeline.total_s * (1 - TIE):
        note = f"switches that change together are faster than {fastest.algorithm} divided among them"
        notes = [note, *together.notes]
        ended = not asked.late
        return asked.answer(together.plan, timeline, bound, notes, ended, together.segments, regrets=together.regrets)
    return asked.answer(
        Plan(fastest.plan, size_bytes),
        fastest.timeline,
        bound,
        notes,
        not asked.late,
        _segments(fastest),
        regrets=tuple(regrets),
    )


def _fastest(asked: PlanTask, where: Ocs) -> _Found:
    """The fastest of the schedules in which every node has one partner a step.

    Args:
        asked: collective, size, assumptions and deadline.
        where: with its switches.
    Raises: UnsupportedError: there is none.
    """
    wanted, size_bytes, assumed = asked.wanted, asked.size_bytes, asked.assumed
    one = shift_law(where, assumed)
    law = SwitchLaw(where.planes, where.rate / 8, one.change_s, one.alpha_s + one.delta_s, one.first_free)
    radices = factorisations(where.nodes)[:MOST_RADICES]
    names = ["halving_doubling", *(f"digit_shifts:radices={'x'.join(map(str, r))}" for r in radices if r), "ring"]
    best: tuple[float, str, Overlapped] | None = None
    steps: tuple[list[int], list[float]] = ([], [])
    for name in names:
        if reason_declined(name, wanted, where) is not None or (best and asked.late):
            continue
        schedule = generate(name, wanted, where)
        if schedule.num_steps > MOST_STEPS:
            continue
        try:
            settings, chunks = settings_of(schedule)
        except UnsupportedError:
            continue
        sizes = [size_bytes / schedule.collective.num_chunks * amount for amount in chunks]
        divided = overlap(settings, sizes, law, exact=False)
        if best is None or divided.seconds < best[0]:
            best, steps = (divided.seconds, name, divided), (settings, sizes)
    if best is None:
        raise UnsupportedError(
            f"plan: no algorithm does {wanted.name} on this ocs with one partner a node and step, at most {MOST_STEPS} steps"
        )
    _, name, divided = best
    divided = overlap(*steps, law, time_limit_s=max(0.1, min(EXACT_S, asked.deadline_s - perf_counter())))
    plan = plan_on_switches(where, generate(name, wanted, where), divided)
    return _Found(name, divided, plan, _device(plan, size_bytes, assumed))


def _device(plan: CircuitPlan, size_bytes: int, assumed: Assumptions) -> Timeline:
    """Times by the device engine."""
    return simulate(plan, size_bytes, assumed, engine="device").timeline


def _segments(found: _Found) -> tuple[Segment, ...]:
    """One segment a step: its links and the switches that carry it, and how many of these change for it."""
    where = found.plan.fabric.machine_as(Ocs)
    standing: dict[int, bytes] = {}
    segments = []
    for at, steps in enumerate(found.timeline.steps):
        (circuits,) = found.plan.rounds(steps.start) or (None,)
        if circuits is None:
            continue
        changes, ahead = 0, np.unique((circuits.dst - circuits.src) % where.nodes)
        planes = np.unique(circuits.port).tolist()
        for plane in planes:
            mine = circuits.port == plane
            links = np.unique(circuits.src[mine].astype(np.int64) * where.nodes + circuits.dst[mine]).tobytes()
            changes += standing.get(plane) != links
            standing[plane] = links
        shown = ", ".join(map(str, ahead[:3].tolist())) + (", ..." if len(ahead) > 3 else "")
        holds = f"links {shown} ahead on switch{'es' * (len(planes) > 1)} {', '.join(map(str, planes))}"
        segments.append(Segment(steps.start, len(steps), holds, changes, float(found.timeline.step_s[at])))
    return tuple(segments)
