"""A job of N ranks with spares while recorded faults come and go: goodput by new plans, by restarts, by the better of both.

    replan    ranks stay where they are; failed ones move to sound spares, or the job goes on without them, with a new plan.
              Costs detect + replan + reprogram, + spare where a spare comes in
    restart   the job starts again on sound servers: the first free block of them, or all of them, whichever is faster.
              Costs detect + restart + half of the time between checkpoints
    best      at every change the one of the two that does more work until the next change; over the whole record no worse than
              either: where it ends below one of them (a stop may outlast the next change), that one is reported

A job with fewer than N ranks takes servers that are repaired, at the cost of the policy without detection and lost work. A weak
server that no sound spare can replace keeps its rank, with the collective at its rate, or is left out, whichever is faster.
While n of N ranks run, work is done at the rate (n / N) / ((1 - c) + c s): c is the share of communication, s the time of
the collective over that of the N ranks when nothing has failed. Every plan is verified; a plan that fails does no work.

Servers of the record are servers of the machine at random (seeded); those that the record does not name never fail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import inf
from time import process_time
from typing import Any

import numpy as np

from opticcl.assumptions import Assumptions
from opticcl.errors import FabricError, ParameterError, UnsupportedError
from opticcl.fabrics import job as part_of
from opticcl.ir import Fabric, IntArray, ProgressCallback
from opticcl.operations.fault_replay.fault_trace import OUT, SOUND, WEAK, FaultTrace, replay_values, servers_at
from opticcl.operations.policies import largest_job, place_by
from opticcl.plans.plan import compile

__all__ = ["POLICIES", "HealthStretch", "RecoveryTimes", "ReplayRun", "ReplaySetup", "recovery_times", "replay"]

POLICIES = ("replan", "restart", "best")


@dataclass(frozen=True, slots=True)
class RecoveryTimes:
    """What recovery costs, and what a fault does.

    Args:
        detect: until a fault is noticed [s].
        replan: until the new plan is there; None: the CPU time of making and verifying it [s].
        reprogram: until its circuits stand; None: one reconfiguration of the fabric [s].
        spare: until a spare has the state of its rank [s].
        restart: until a job that starts again computes [s].
        checkpoint: time between checkpoints [s].
        communication: share of an iteration in its collective, 0 to 1.
        weak: rate of a weak server over that of a sound one, 0 to 1.
    """

    detect: float
    replan: float | None
    reprogram: float | None
    spare: float
    restart: float
    checkpoint: float
    communication: float
    weak: float

    def __post_init__(self) -> None:
        for name in ("detect", "replan", "reprogram", "spare", "restart", "checkpoint"):
            value = getattr(self, name)
            if value is not None and not 0 <= value < inf:
                raise ParameterError(f"replay: {name}={value:g} s is negative; try {name}=2s")
        if not 0 <= self.communication <= 1:
            raise ParameterError(f"replay: communication={self.communication:g} is not 0 to 1; try 0.3")
        if not 0 < self.weak < 1:
            raise ParameterError(f"replay: weak={self.weak:g} is not between 0 and 1; try 0.5")


def recovery_times(**given: float) -> RecoveryTimes:
    """The values of `replay.toml`, with others in the place of some."""
    return RecoveryTimes(
        **{"replan": None, "reprogram": None, **replay_values("times"), **replay_values("work"), **given}
    )


@dataclass(frozen=True, slots=True, eq=False)
class ReplaySetup:
    """A job and the faults that it meets.

    Args:
        machine: the whole fabric; its first nodes are the ranks, the next the spares.
        trace: recorded faults.
        ranks: of the job, N [count].
        spares: servers besides [count].
        collective: of an iteration.
        size: message of every rank.
        algorithm: of every plan; auto: the fastest.
        assumptions: of times.
        times: of recovery.
        seed: of the choice of servers.
    """

    machine: Fabric
    trace: FaultTrace
    ranks: int
    spares: int
    collective: str
    size: str
    algorithm: str
    assumptions: Assumptions
    times: RecoveryTimes
    seed: int


@dataclass(frozen=True, slots=True)
class HealthStretch:
    """The time between two changes of the servers' health.

    Args:
        start_s, end_s: of it [s].
        ranks: that run [count].
        slow_down: of the collective; inf: no plan.
        stopped_until_s: before this no work is done [s].
        rate: of work afterwards, 1 while nothing has failed.
        action: keep, replan, restart or none (no server is left).
    """

    start_s: float
    end_s: float
    ranks: int
    slow_down: float
    stopped_until_s: float
    rate: float
    action: str

    @property
    def work_s(self) -> float:
        """Work that is done [s of the healthy job]."""
        return self.rate * max(0.0, self.end_s - max(self.start_s, self.stopped_until_s))


@dataclass(frozen=True, slots=True, eq=False)
class ReplayRun:
    """A job by one policy.

    Args:
        policy: its name.
        stretches: in the order of time.
        plans: that were made for it [count].
        by: of `best`: the policy that it follows; else the policy.
    """

    policy: str
    stretches: tuple[HealthStretch, ...]
    plans: int
    by: str

    @property
    def goodput(self) -> float:
        """Work over that of a job that nothing happens to."""
        whole_s = sum(one.end_s - one.start_s for one in self.stretches)
        return sum(one.work_s for one in self.stretches) / whole_s if whole_s else 1.0

    @property
    def longest_outage_s(self) -> float:
        """Longest time in which no work is done [s]."""
        longest = begun_s = 0.0
        idle = False
        for one in self.stretches:
            works_from = one.end_s if one.rate == 0 else min(max(one.start_s, one.stopped_until_s), one.end_s)
            if works_from > one.start_s and not idle:
                begun_s, idle = one.start_s, True
            if idle:
                longest = max(longest, works_from - begun_s)
            idle = idle and works_from == one.end_s
        return longest

    @property
    def stopped_s(self) -> float:
        """Time in which no work is done [s]."""
        return sum(
            one.end_s - one.start_s
            if one.rate == 0
            else min(max(0.0, one.stopped_until_s - one.start_s), one.end_s - one.start_s)
            for one in self.stretches
        )

    def mean_of(self, value: Callable[[HealthStretch], float]) -> float:
        """Mean over the time of the record of a value of a stretch."""
        whole_s = sum(one.end_s - one.start_s for one in self.stretches)
        return sum(value(one) * (one.end_s - one.start_s) for one in self.stretches) / whole_s if whole_s else 0.0

    def record(self) -> dict[str, Any]:
        """Plain values."""
        known = [one.slow_down for one in self.stretches if one.slow_down < inf]
        return {
            "policy": self.policy,
            "by": self.by,
            "goodput": self.goodput,
            "longest_outage_s": self.longest_outage_s,
            "stopped_s": self.stopped_s,
            "plans": self.plans,
            "replans": sum(one.action == "replan" for one in self.stretches),
            "restarts": sum(one.action == "restart" for one in self.stretches),
            "ranks_mean": self.mean_of(lambda one: one.ranks),
            "ranks_least": min((one.ranks for one in self.stretches), default=0),
            "slow_down_mean": self.mean_of(lambda one: min(one.slow_down, 1e9)),
            "slow_down_max": max(known, default=1.0),
        }


class _Plans:
    """Judged slow-downs of the collective on sets of nodes.

    Args: setup: of the replay.
    """

    def __init__(self, setup: ReplaySetup) -> None:
        self._setup = setup
        self._known: dict[bytes, tuple[float, float]] = {}
        self._healthy_s = 0.0
        self._healthy_s = self._time_s(np.arange(setup.ranks))[0]
        if self._healthy_s == inf:
            raise UnsupportedError(
                f"replay: {setup.machine.name} has no plan for {setup.ranks} ranks, even with all parts"
            )

    def _time_s(self, nodes: IntArray) -> tuple[float, float]:
        """Time of the collective, inf without a verified plan, and CPU time of making and verifying the plan [s]."""
        key = np.sort(nodes).tobytes()
        if key not in self._known:
            setup, began_s = self._setup, process_time()
            time_s = inf
            try:
                fabric = part_of(setup.machine, np.sort(nodes))
                plan = compile(
                    fabric, setup.collective, setup.size, algorithm=setup.algorithm, assumptions=setup.assumptions
                )
                if plan.verify().ok:
                    time_s = plan.simulate(assumptions=setup.assumptions).total_s
            except (UnsupportedError, FabricError):
                time_s = inf
            self._known[key] = time_s, process_time() - began_s
        return self._known[key]

    def slow_down(self, nodes: IntArray) -> float:
        """Time of the collective over that of all ranks when nothing has failed; inf: no plan."""
        return self._time_s(nodes)[0] / self._healthy_s if self._healthy_s else 1.0

    def replan_s(self, nodes: IntArray) -> float:
        """Until a plan for these nodes is there [s]."""
        given = self._setup.times.replan
        return self._time_s(nodes)[1] if given is None else given


@dataclass(frozen=True, slots=True, eq=False)
class _Choice:
    """Nodes of a job, what they do and what it costs to get there.

    Args:
        nodes: that run, int64 (n,).
        slow_down: of the collective, weak servers included.
        rate: of work.
        cost_s: stop before it [s].
        action: keep, replan, restart or none.
    """

    nodes: IntArray
    slow_down: float
    rate: float
    cost_s: float
    action: str


@dataclass(slots=True, eq=False)
class _Job:
    """A job on its way through the record."""

    nodes: IntArray
    until_s: float = 0.0
    stretches: list[HealthStretch] = field(default_factory=list)
    used: set[bytes] = field(default_factory=set)


def replay(setup: ReplaySetup, *, progress: ProgressCallback) -> list[ReplayRun]:
    """The job by all policies.

    Args:
        setup: of the replay.
        progress: called with (what, done, total).
    Raises: ParameterError: fewer nodes than ranks and spares, or a record that does not fit. UnsupportedError: no plan for
        the healthy job.
    """
    servers = setup.ranks + setup.spares
    if setup.ranks < 2 or setup.spares < 0:
        raise ParameterError(f"replay: {setup.ranks} ranks and {setup.spares} spares; try --ranks 384 --spares 16")
    if servers > setup.machine.num_nodes:
        raise ParameterError(
            f"replay: {setup.ranks} ranks and {setup.spares} spares are {servers:,} servers, and {setup.machine.name} has "
            f"{setup.machine.num_nodes:,} nodes; try --ranks {max(2, setup.machine.num_nodes - setup.spares)}"
        )
    if setup.seed < 0:
        raise ParameterError(f"seed: {setup.seed} is negative; try 0")
    plans = _Plans(setup)
    states = list(setup.trace.states(servers, servers_at(setup.trace, servers, setup.seed)))
    jobs = {name: _Job(np.arange(setup.ranks)) for name in POLICIES}
    for number, (start_s, end_s, health) in enumerate(states):
        for name, job in jobs.items():
            _step(setup, plans, job, name, start_s, end_s, health)
        progress("replay", number + 1, len(states))
    runs = [ReplayRun(name, tuple(job.stretches), len(job.used), name) for name, job in jobs.items()]
    ahead = max(runs, key=lambda run: run.goodput)
    if ahead.goodput > runs[-1].goodput:
        runs[-1] = replace(ahead, policy="best", by=ahead.policy)
    return runs


def _step(
    setup: ReplaySetup, plans: _Plans, job: _Job, policy: str, start_s: float, end_s: float, health: IntArray
) -> None:
    """One stretch of a job: choose, stop, work.

    Args:
        job: changed.
        start_s, end_s: of the stretch [s].
    """
    choices = []
    for action in ("replan", "restart") if policy == "best" else (policy,):
        choices.append(_kept(setup, plans, job, health) or _CHOOSE[action](setup, plans, job, health))

    def stretch(choice: _Choice) -> HealthStretch:
        until_s = max(job.until_s, start_s + choice.cost_s)
        ranks = len(choice.nodes)
        return HealthStretch(start_s, end_s, ranks, choice.slow_down, until_s, choice.rate, choice.action)

    choice = max(choices, key=lambda one: (stretch(one).work_s, one.rate))
    job.stretches.append(stretch(choice))
    job.until_s = job.stretches[-1].stopped_until_s
    job.nodes = choice.nodes
    if len(choice.nodes):
        job.used.add(np.sort(choice.nodes).tobytes())


def _rate(setup: ReplaySetup, ranks: int, slow_down: float) -> float:
    """Rate of work of some ranks."""
    c = setup.times.communication
    return 0.0 if slow_down == inf else ranks / setup.ranks / ((1 - c) + c * slow_down)


def _kept(setup: ReplaySetup, plans: _Plans, job: _Job, health: IntArray) -> _Choice | None:
    """The job as it is, where all its servers are sound and no more can be had; None: it must change."""
    sound = int((health == SOUND).sum())
    if len(job.nodes) and (health[job.nodes] == SOUND).all() and len(job.nodes) >= min(setup.ranks, sound):
        slow_down = plans.slow_down(job.nodes)
        return _Choice(job.nodes, slow_down, _rate(setup, len(job.nodes), slow_down), 0.0, "keep")
    return None


def _fastest(setup: ReplaySetup, plans: _Plans, options: list[tuple[IntArray, float]], action: str) -> _Choice:
    """The option with the highest rate, before its cost is known; "none" where no option works.

    Args:
        options: nodes, and what share of their rate works.
        action: of the choice.
    """
    rated = [(nodes, plans.slow_down(nodes) / share if len(nodes) > 1 else inf) for nodes, share in options]
    nodes, slow_down = max(rated, key=lambda one: _rate(setup, len(one[0]), one[1]))
    if rate := _rate(setup, len(nodes), slow_down):
        return _Choice(nodes, slow_down, rate, 0.0, action)
    return _Choice(np.zeros(0, np.int64), inf, 0.0, 0.0, "none")


def _replanned(setup: ReplaySetup, plans: _Plans, job: _Job, health: IntArray) -> _Choice:
    """Sound ranks stay, others move to sound spares; weak ones that cannot stay or are left out, whichever is faster."""
    times = setup.times
    stay = job.nodes[health[job.nodes] == SOUND]
    spare = np.setdiff1d(np.flatnonzero(health == SOUND), job.nodes)[: setup.ranks - len(stay)]
    sound = np.concatenate([stay, spare])
    weak = np.flatnonzero(health == WEAK)[: setup.ranks - len(sound)]
    options = [(sound, 1.0)] + ([(np.concatenate([sound, weak]), times.weak)] if len(weak) else [])
    fastest = _fastest(setup, plans, options, "replan")
    nodes, slow_down = fastest.nodes, fastest.slow_down
    if fastest.action == "none":
        return fastest
    if len(nodes) == len(job.nodes) and np.array_equal(np.sort(nodes), np.sort(job.nodes)) and not len(spare):
        lost = (health[job.nodes] == OUT).any()
        if not lost and job.stretches and job.stretches[-1].slow_down == slow_down:  # the same weak servers as before
            return replace(fastest, action="keep")
    reprogram_s = setup.machine.reconfiguration_s if times.reprogram is None else times.reprogram
    detect_s = times.detect if len(stay) < len(job.nodes) else 0.0
    cost_s = detect_s + plans.replan_s(nodes) + reprogram_s + (times.spare if len(spare) else 0.0)
    return replace(fastest, cost_s=cost_s)


def _restarted(setup: ReplaySetup, plans: _Plans, job: _Job, health: IntArray) -> _Choice:
    """The first block of sound servers, or all sound servers, whichever is faster."""
    times = setup.times
    sound = np.flatnonzero(health == SOUND)
    options = [sound[: setup.ranks]]
    grid = setup.machine.cell_grid()
    free = np.zeros(setup.machine.num_machine_nodes, bool)
    free[setup.machine.machine_nodes(sound)] = True
    wanted = min(setup.ranks, largest_job("first", grid, free))
    place = place_by("first", grid, free, wanted) if wanted else None
    if place is not None and setup.machine.node_of_rank is None:
        options.append(place.nodes)
    fastest = _fastest(setup, plans, [(nodes, 1.0) for nodes in options], "restart")
    if fastest.action == "none":
        return fastest
    failed = len(job.nodes) > 0 and (health[job.nodes] != SOUND).any()
    cost_s = times.restart + (times.detect + times.checkpoint / 2 if failed else 0.0)
    return replace(fastest, cost_s=cost_s)


_CHOOSE = {"replan": _replanned, "restart": _restarted}
