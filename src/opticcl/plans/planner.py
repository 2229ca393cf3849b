"""Plan a collective: which algorithm, what its circuits hold and where they change, and how far from the best that is.

    ocs              the segments of `opticcl.plans.held_shifts`, and every registered algorithm that may be faster
    other fabrics    every registered algorithm; circuits that stand from one step to the next are not changed

Every answer is a plan with circuits. Its time is that of the closed form; what it costs to be wrong about the time of a change,
and from where on another plan is faster, come from the same search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, sqrt
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from opticcl.assumptions import DEFAULT_SET, Assumptions
from opticcl.assumptions import assumptions as assumptions_of
from opticcl.circuits import lower
from opticcl.collective import Request, as_request
from opticcl.errors import ParameterError
from opticcl.fabrics import as_fabric, job
from opticcl.fabrics.ocs import Ocs
from opticcl.ir import CircuitPlan, Fabric, ProgressCallback, Timeline, no_progress
from opticcl.ir.device_settings import DeviceSettings
from opticcl.ir.limits import limit
from opticcl.plans.direct_parts import in_short
from opticcl.plans.light import DEFAULT_RULE, LightRule
from opticcl.plans.plan import Plan
from opticcl.plans.search import TIE, Searches
from opticcl.plans.shift_laws import held_shifts
from opticcl.registry import whole_number
from opticcl.schedule import generate
from opticcl.schedule.digit_shifts import COLLECTIVES
from opticcl.schedule.held_graph import patched_links
from opticcl.simulate.closed_form.engine import Profile, profile
from opticcl.simulate.standing import Standing
from opticcl.units import Seconds, counted, message_size

__all__ = [
    "PART_NAMES",
    "BreakEven",
    "PlanTask",
    "Planned",
    "Regret",
    "Segment",
    "plan_collective",
    "segments_of",
    "with_change",
]

PART_NAMES = {
    "reconfiguration_s": "changes of circuits",
    "latency_s": "latency",
    "transfer_s": "transfer",
    "compute_s": "sums",
    "control_s": "control messages",
}
"""Part of a timeline -> what it is called where it dominates."""

SIZES = (1_000, 10_000_000_000)
"""Range in which break-even sizes are searched [bytes]."""

FINEST, COARSE = 1.02, 1.6
"""Ratio to which a break-even is located, and on more than `MANY` nodes."""

MANY = limit("planner.MANY")


class Segment(NamedTuple):
    """Steps that follow each other without a change of circuits.

    Args:
        first: step.
        steps: number of them [count].
        holds: what stands, in words.
        changes: changes of circuits within it and before it [count].
        total_s: time of its steps, with its changes [s].
    """

    first: int
    steps: int
    holds: str
    changes: int
    total_s: float


class Regret(NamedTuple):
    """What a plan costs if a change takes another time than assumed.

    Args:
        factor: of the time of a change.
        kept_s: time of the plan then [s].
        best_s: time of the plan that is then the fastest [s].
        algorithm: of that.
    """

    factor: float
    kept_s: float
    best_s: float
    algorithm: str


class BreakEven(NamedTuple):
    """Where another plan becomes the fastest.

    Args:
        at: size [bytes] or time of a change [s].
        below, above: the fastest on either side.
    """

    at: float
    below: str
    above: str


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan and how good it is.

    Args:
        plan: with its circuits.
        assumed: time assumptions.
        timeline: by the closed form.
        bound_s: no plan is faster [s].
        bound_by: what binds that, in words.
        segments: of its steps.
        finished: whether the search ended by itself, and not by the time limit.
        seconds: that the search took [s].
        notes: what cannot be changed, what was left out.
        regrets: if a change takes half or twice as long; empty where nothing changes, or the time limit was reached.
        sizes, delays: break-even sizes and times of a change, ascending.
    """

    plan: Plan
    assumed: Assumptions
    timeline: Timeline
    bound_s: Seconds
    bound_by: str
    segments: tuple[Segment, ...]
    finished: bool
    seconds: float
    notes: tuple[str, ...] = ()
    regrets: tuple[Regret, ...] = ()
    sizes: tuple[BreakEven, ...] = ()
    delays: tuple[BreakEven, ...] = ()

    @property
    def total_s(self) -> float:
        """Time of the plan [s]."""
        return self.timeline.total_s

    @property
    def gap(self) -> float:
        """Its time over the bound; 1 where both are 0."""
        return self.total_s / self.bound_s if self.bound_s else (inf if self.total_s else 1.0)

    @property
    def dominates(self) -> str:
        """The largest part of the time."""
        totals = self.timeline.totals()
        return PART_NAMES[max(totals, key=lambda part: totals[part])] if self.total_s else "nothing"

    def record(self) -> dict[str, Any]:
        """Plain values, as `opticcl plan --json` prints them."""
        collective = self.plan.schedule.collective
        return {
            "fabric": self.plan.fabric.name,
            "num_nodes": self.plan.fabric.num_nodes,
            "collective": collective.name,
            "size_bytes": self.plan.size_bytes,
            "algorithm": self.plan.algorithm,
            **self.timeline.record(),
            "lower_bound_s": self.bound_s,
            "bound_by": self.bound_by,
            "gap": self.gap if isfinite(self.gap) else None,
            "dominates": self.dominates,
            "segments": [one._asdict() for one in self.segments],
            "regrets": [
                {**one._asdict(), "regret": one.kept_s / one.best_s if one.best_s else 1.0} for one in self.regrets
            ],
            "break_even_sizes": [one._asdict() for one in self.sizes],
            "break_even_changes": [one._asdict() for one in self.delays],
            "finished": self.finished,
            "seconds": self.seconds,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class PlanTask:
    """Request for a plan, with a deadline.

    Args:
        fabric: that runs it.
        wanted: collective and root.
        size_bytes: message of every rank, 0 of a barrier [bytes].
        assumed: time assumptions.
        begin_s: `time.perf_counter` at the start [s].
        deadline_s: the same after which the best plan so far is the answer [s].
    """

    fabric: Fabric
    wanted: Request
    size_bytes: int
    assumed: Assumptions
    begin_s: float
    deadline_s: float

    @classmethod
    def of(
        cls,
        fabric: Fabric | str,
        collective: str | Request,
        size: str | float,
        *,
        root: int = 0,
        nodes: list[int] | None = None,
        assumptions: str | Assumptions = DEFAULT_SET,
        time_limit_s: float = inf,
    ) -> PlanTask:
        """The task as a caller writes it.

        Args: fabric, collective, size, root, nodes, assumptions, time_limit_s: as of `plan_collective`.
        Raises: UnknownNameError, FabricError; ParameterError: a negative limit of time.
        """
        begin_s = perf_counter()
        if not time_limit_s >= 0:
            raise ParameterError(f"plan: time_limit_s={time_limit_s:g} is negative; try 10")
        where = as_fabric(fabric)
        where = where if nodes is None else job(where, nodes)
        wanted = as_request(collective, whole_number(root, "root"))
        size_bytes = message_size(size)
        size_bytes = 0 if wanted.name == "barrier" else size_bytes
        return cls(where, wanted, size_bytes, assumptions_of(assumptions), begin_s, begin_s + time_limit_s)

    @property
    def late(self) -> bool:
        """Whether the deadline has passed."""
        return perf_counter() > self.deadline_s

    def answer(
        self,
        plan: Plan,
        timeline: Timeline,
        bound: tuple[float, str],
        notes: Sequence[str],
        finished: bool,
        segments: tuple[Segment, ...] | None = None,
        **further: Any,
    ) -> Planned:
        """A plan as the answer.

        Args:
            plan: with its circuits.
            timeline: of it.
            bound: no plan is faster [s], and what binds that.
            notes: what cannot be changed, what was left out.
            finished: whether the search ended by itself.
            segments: of its steps; None: cut where circuits are charged a change.
            further: regrets and break-evens, as of `Planned`.
        """
        late = [] if finished else ["the time limit was reached: another plan may be faster, by no more than the gap"]
        segments = segments_of(plan.circuits, timeline) if segments is None else segments
        seconds = perf_counter() - self.begin_s
        return Planned(plan, self.assumed, timeline, *bound, segments, finished, seconds, (*notes, *late), **further)


def with_change(fabric: Fabric, change_s: float) -> Fabric:
    """The same fabric where a change of circuits takes that long [s]."""
    if change_s == fabric.reconfiguration_s:
        return fabric
    whole = replace(fabric.machine, reconfiguration=change_s)  # type: ignore[type-var]
    return whole if fabric.node_of_rank is None else job(whole, fabric.node_of_rank)


class _Times:
    """Time of the fastest plan of a collective for any size and any time of a change; results are kept.

    Args:
        asked: fabric, collective, assumptions and deadline.
        rule: the light that plans must have.

    Attributes:
        finished: whether all searches ended before the deadline.
        untried: choices of links to hold that were left out, in words; "": none.
        profiles: of plans of algorithms that a search found, by size and time of a change.
    """

    def __init__(self, asked: PlanTask, rule: LightRule) -> None:
        self._asked, self.searches = asked, Searches(assumptions=asked.assumed, rule=rule)
        self.finished, self.untried = True, ""
        self.profiles: dict[tuple[int, float], Profile] = {}
        self._known: dict[tuple[int, float], tuple[float, str]] = {}

    def fastest(self, size_bytes: int, change_s: float | None = None) -> tuple[float, str]:
        """Time of the fastest plan [s], and its algorithm; links to hold have the time of their law, without circuits.

        Args:
            size_bytes: message of every rank [bytes].
            change_s: of a change, in place of the fabric's [s].
        Raises: UnsupportedError: the fabric can carry no algorithm.
        """
        fabric = self._asked.fabric
        change_s = fabric.reconfiguration_s if change_s is None else change_s
        if (size_bytes, change_s) not in self._known:
            self._known[size_bytes, change_s] = self._fastest(size_bytes, with_change(fabric, change_s))
        return self._known[size_bytes, change_s]

    def _fastest(self, size_bytes: int, where: Fabric) -> tuple[float, str]:
        asked, search = self._asked, self.searches.of(where, self._asked.wanted)
        left_s = max(0.0, asked.deadline_s - perf_counter())
        held = held_shifts(where, asked.wanted, size_bytes, asked.assumed, time_limit_s=left_s)
        below_s = inf if held is None else held.seconds * (1 - TIE)
        without = () if held is None else ("digit_shifts", "balanced_digits")
        fastest = search.fastest([size_bytes], below_s=below_s, deadline_s=asked.deadline_s, without=without)
        self.finished = self.finished and search.finished and (held is None or held.proven)
        if held is not None and held.untried:
            self.untried = f"balanced_digits with {held.untried}"
        if fastest is not None:
            self.profiles[size_bytes, where.reconfiguration_s] = fastest.profile
            return fastest.lower_bound_s([size_bytes]), Plan(fastest.profile.plan, size_bytes).algorithm
        if held is None:
            raise search.refusal()
        return held.seconds, held.algorithm

    def break_even_sizes(self, around: int | None = None) -> tuple[BreakEven, ...]:
        """Sizes at which another plan becomes the fastest, from 1 KB to 10 GB.

        Args: around: only within a decade of that size, coarsely [bytes].
        """
        decades = round(np.log10(SIZES[1] / SIZES[0]))
        sizes = np.geomspace(*SIZES, 2 * decades + 1) if around is None else max(10, around) * np.array([0.1, 1, 10])
        finest = FINEST if around is None else COARSE
        return self._break_evens(sizes.tolist(), lambda size: in_short(self.fastest(round(size))[1]), finest)

    def break_even_changes(self, size_bytes: int, *, around: bool = False) -> tuple[BreakEven, ...]:
        """Times of a change at which another plan becomes the fastest, from a thousandth of the fabric's to a thousand times.

        Args:
            size_bytes: message of every rank [bytes].
            around: only within a decade, coarsely.
        """
        factors = np.array([0.1, 1, 10]) if around else np.geomspace(1e-3, 1e3, 13)
        delays = (self._asked.fabric.reconfiguration_s * factors).tolist()
        finest = COARSE if around else FINEST
        return self._break_evens(delays, lambda change: self.fastest(size_bytes, change)[1], finest)

    def _break_evens(
        self, values: list[float], name_at: Callable[[float], str], finest: float
    ) -> tuple[BreakEven, ...]:
        """Where the name changes between values, each located by bisection.

        Args:
            values: ascending.
            name_at: value -> algorithm.
            finest: ratio to which a change is located.
        """

        def between(low: float, below: str, high: float, above: str) -> list[BreakEven]:
            if below == above:
                return []
            if high / low <= finest or self._asked.late:
                return [BreakEven(sqrt(low * high), below, above)]
            middle = sqrt(low * high)
            name = name_at(middle)
            return between(low, below, middle, name) + between(middle, name, high, above)

        break_evens: list[BreakEven] = []
        last: tuple[float, str] | None = None
        for value in values:
            if self._asked.late:
                break
            name = name_at(value)
            break_evens += between(*last, value, name) if last else []
            last = value, name
        return tuple(break_evens)


def plan_collective(
    fabric: Fabric | str,
    collective: str | Request,
    size: str | float,
    *,
    root: int = 0,
    nodes: list[int] | None = None,
    assumptions: str | Assumptions = DEFAULT_SET,
    start: Plan | None = None,
    time_limit_s: float = inf,
    break_evens: bool = True,
    rule: LightRule = DEFAULT_RULE,
    progress: ProgressCallback = no_progress,
) -> Planned:
    """Plan a collective.

    Args:
        fabric: a fabric, or "name:key=value,...".
        collective: such as "all_to_all".
        size: message of every rank: "100 MB" or bytes.
        root: rank that a rooted collective starts or ends at.
        nodes: the nodes of the fabric that take part, in the order of the ranks; None: all.
        assumptions: named set of time assumptions, or a custom set.
        start: plan whose last circuits stand at the start.
        time_limit_s: after which the best plan so far is returned [s].
        break_evens: whether sizes and times of a change are searched at which another plan becomes the fastest.
        rule: the light that the plan must have.
        progress: called with a line of text before each part of the work.
    Returns: the plan with circuits, its bound, its segments, and when another would be faster.
    Raises: UnknownNameError, ParameterError, FabricError; UnsupportedError: the fabric can carry no algorithm.
    """
    asked = PlanTask.of(
        fabric, collective, size, root=root, nodes=nodes, assumptions=assumptions, time_limit_s=time_limit_s
    )
    where, wanted, size_bytes, assumed = asked.fabric, asked.wanted, asked.size_bytes, asked.assumed
    if not isfinite(where.reconfiguration_s):
        raise ParameterError(
            f"plan: reconfiguration={where.reconfiguration_s:g} on {where.name} never ends; give a finite time"
        )
    notes = []
    if start is not None:
        initial = start.configuration
        initial.require(where)
        if assumed.initial == "warm":
            notes.append("the first circuits are set before the start anyway (initial=warm)")
        else:
            assumed = assumptions_of(assumed, initial=initial)
            asked = replace(asked, assumed=assumed)
    times = _Times(asked, rule)
    progress(f"plan {wanted.name} on {where.name}")
    _, algorithm = times.fastest(size_bytes)
    long = where.num_nodes > MANY
    plan = Plan(lower(where, generate(algorithm, wanted, where)), size_bytes)
    if assumed.configuration is not None:
        notes.append(_on_start(plan, assumed.configuration))
    known = times.profiles.get((size_bytes, where.reconfiguration_s)) or profile(plan.circuits, assumed)
    timeline = known.timeline(size_bytes)
    segments = segments_of(known.plan, timeline)
    has_delays = isinstance(where, Ocs) and wanted.name in COLLECTIVES
    regrets: list[Regret] = []
    changes = "reconfiguration" in where.parameters and where.reconfiguration_s > 0
    if not changes:
        why = (
            "it has packets, no circuits"
            if where.is_packet_switched
            else "a change of its circuits takes no time of its own"
        )
        notes.append(f"nothing to hold on {where.name}: {why}")
    else:
        progress("regret and break-evens")
        changes_s = float(timeline.reconfiguration_s.sum())
        for factor in (0.5, 2.0):
            if not asked.late:
                delay_s, best = factor * where.reconfiguration_s, (timeline.total_s, algorithm)
                if changes_s or delay_s < min(timeline.total_s, where.reconfiguration_s):
                    best = times.fastest(size_bytes, delay_s)  # else a plan with a change takes longer
                kept_s = timeline.total_s + (factor - 1) * changes_s
                regrets.append(Regret(factor, max(kept_s, best[0]), best[0], best[1]))
    sizes = times.break_even_sizes(size_bytes if long else None) if break_evens and wanted.name != "barrier" else ()
    delays = times.break_even_changes(size_bytes, around=long) if break_evens and has_delays and changes else ()
    if long and break_evens:
        notes.append(
            f"break-evens are searched within a decade alone, since a search takes long on {where.num_nodes:,} nodes"
        )
    if plan.schedule.name == "held_graph" and (patch := patched_links(plan.schedule, where.ports_per_node)):
        notes.append(patch)
    notes += [f"not tried: {line}" for line in (times.untried, *times.searches.not_tried) if line]
    done = times.finished and not asked.late
    bound = timeline.lower_bound_s, timeline.bound_by
    return asked.answer(
        plan, timeline, bound, notes, done, segments, regrets=tuple(regrets), sizes=sizes, delays=delays
    )


def _on_start(plan: Plan, initial: DeviceSettings) -> str:
    """Whether a plan begins with circuits that stand, in words.

    Args:
        plan: that was chosen.
        initial: what stands at the start.
    """
    rounds = next(filter(None, map(plan.circuits.rounds, range(min(1, plan.schedule.num_steps)))), ())
    if rounds and not Standing(plan.fabric, initial).changes(rounds[0]):
        return "its first circuits stand at the start"
    return "other circuits than those of the start are faster"


def segments_of(plan: CircuitPlan, timeline: Timeline) -> tuple[Segment, ...]:
    """Runs of steps, cut where circuits are charged a change."""
    change_s = plan.fabric.reconfiguration_s
    segments: list[Segment] = []
    step_s = timeline.step_s
    for at, steps in enumerate(timeline.steps):
        changes = round(float(timeline.reconfiguration_s[at]) / change_s) if change_s else 0
        if segments and not changes:
            last = segments[-1]
            segments[-1] = last._replace(steps=last.steps + len(steps), total_s=last.total_s + float(step_s[at]))
        else:
            segments.append(Segment(steps.start, len(steps), _holds(plan, steps.start), changes, float(step_s[at])))
    return tuple(segments)


def _holds(plan: CircuitPlan, step: int) -> str:
    """The circuits of a step in words: the distances that its links lead, or their number."""
    if plan.fabric.is_packet_switched:
        return "packets on their routes"
    circuits = plan.num_circuits(step)
    if not circuits:
        return "nothing"
    links = plan.fabric.links_set(plan.rounds(step)[0]) if plan.images(step) is None else None
    if links is not None:
        ports, n = plan.fabric.ports_per_node, plan.fabric.num_machine_nodes
        ahead = np.unique((links[1] // ports - links[0] // ports) % n)
        shown = ", ".join(map(str, ahead[:4].tolist())) + (", ..." if len(ahead) > 4 else "")
        here = f"links {shown} ahead"
    else:
        here = counted(circuits[0], "circuit")
    return here + (f", the first of {len(circuits)} rounds" if len(circuits) > 1 else "")
