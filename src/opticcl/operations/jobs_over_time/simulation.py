"""Jobs on one machine over time: the first in the queue waits until its policy finds nodes and the judge admits its circuits.

    arrival     the job joins the queue
    placement   the first of the queue gets nodes by the policy, and circuits (around those of the running jobs, policy `any`)
    admission   its plan is verified by itself, then together with those of all running jobs; one that fails waits
    departure   its nodes and cells are free; the queue is tried again

A job that waits keeps those behind it waiting: the order of arrival is kept. A job that not even the empty machine can run is
refused. The work of a job that takes d alone on the empty machine, a share c of it in its collective, takes
d ((1 - c) + c s) where the collective of its placement takes s times as long. With iterations instead of a duration,
d = iterations x time of the collective alone / c.

The judge (`verify.jobs`) sees the plans, not the placement: at every arrival and departure it verifies all running jobs
together, and compares the circuits of each with those of its arrival.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from time import process_time
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.assumptions import Assumptions
from opticcl.errors import FabricError, ParameterError, UnsupportedError
from opticcl.fabrics import job as part_of
from opticcl.ir import Fabric, IntArray, ProgressCallback, Verdict
from opticcl.operations.jobs_over_time.arrivals import Arrival
from opticcl.operations.placement import JobPlace
from opticcl.operations.policies import check_policy, largest_job, place_by
from opticcl.plans.plan import Plan, compile
from opticcl.verify.time.jobs import JobsJudge

__all__ = ["JobRun", "JobsRun", "JobsSetup", "MachineState", "simulate_jobs"]


@dataclass(frozen=True, slots=True, eq=False)
class JobsSetup:
    """What the jobs of a run do, and where.

    Args:
        machine: the whole fabric.
        arrivals: in the order of their times.
        policy: that chooses nodes; see `policies`.
        collective: that every job does.
        size: message of every rank.
        algorithm: of every job; auto: the fastest on its nodes.
        assumptions: of times.
        communication: share c of a job's duration that its collective takes when it runs alone, 0 to 1.
        optics, ignore_light: as of `opticcl.compile`.
        shares: as of `opticcl.fabrics.job`.
    """

    machine: Fabric
    arrivals: Sequence[Arrival]
    policy: str
    collective: str
    size: str
    algorithm: str
    assumptions: Assumptions
    communication: float
    optics: str | None = None
    ignore_light: bool = False
    shares: bool = True

    def compiled(self, fabric: Fabric, algorithm: str, beside: Sequence[Plan] = ()) -> Plan:
        """The plan of a job.

        Args:
            fabric: its part of the machine.
            algorithm: name with parameters, or auto.
            beside: running jobs that its circuits go around.
        Raises: UnsupportedError: there is none.
        """
        return compile(
            fabric, self.collective, self.size, algorithm=algorithm, beside=beside, assumptions=self.assumptions,
            optics=self.optics, ignore_light=self.ignore_light,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class JobRun:
    """A job from its arrival to its end.

    Args:
        arrival: what was requested.
        start_s: when it got its nodes; None: refused [s].
        end_s: when it left; None: refused [s].
        nodes: in the order of its ranks, int64 (n,).
        held: nodes that no other job could use, int64 (m,).
        algorithm: of its plan.
        slow_down: time of its collective over that of the job alone on the empty machine.
        placement_s: CPU time of the placement, the plan and its verification [s].
        blocked: whether it waited at the head of the queue although enough nodes were free.
        reason: why it was refused; "" where it was not.
    """

    arrival: Arrival
    start_s: float | None
    end_s: float | None
    nodes: IntArray
    held: IntArray
    algorithm: str = ""
    slow_down: float = 1.0
    placement_s: float = 0.0
    blocked: bool = False
    reason: str = ""

    @property
    def wait_s(self) -> float | None:
        """From the arrival to the start; None: refused [s]."""
        return None if self.start_s is None else self.start_s - self.arrival.time_s

    def record(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "job": self.arrival.name,
            "arrival_s": self.arrival.time_s,
            "num_nodes": self.arrival.num_nodes,
            "start_s": self.start_s,
            "end_s": self.end_s,
            "wait_s": self.wait_s,
            "nodes": self.nodes.tolist(),
            "held": len(self.held),
            "algorithm": self.algorithm,
            "slow_down": self.slow_down,
            "blocked": self.blocked,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True)
class MachineState:
    """The machine after a change, until the next.

    Args:
        time_s: of the change [s].
        asked: nodes of the running jobs [count].
        held: nodes that no further job may use [count].
        waiting: jobs in the queue [count].
        largest: nodes of the largest job that the policy could place [count].
        blocked: whether the first of the queue waits although enough nodes are free.
    """

    time_s: float
    asked: int
    held: int
    waiting: int
    largest: int
    blocked: bool


@dataclass(frozen=True, slots=True, eq=False)
class JobsRun:
    """All jobs of a run.

    Args:
        setup: of the run.
        jobs: in the order of their arrival.
        states: of the machine, at every change.
        verdict: of the judge on every change.
        changes: arrivals and departures that were judged [count].
        disturbed: runs of equal steps of running jobs whose circuits changed [count].
    """

    setup: JobsSetup
    jobs: Sequence[JobRun]
    states: Sequence[MachineState]
    verdict: Verdict
    changes: int
    disturbed: int

    def over_time(self) -> dict[str, float]:
        """Means from the first arrival to the last departure: utilisation, fragmentation, blocked, held_per_asked.

        Fragmentation is 1 - largest placeable job / free nodes, over the time in which nodes are free; blocked is the share of
        time in which the first of the queue waits although enough nodes are free.
        """
        num_nodes = self.setup.machine.num_nodes
        columns = np.array([(s.time_s, s.asked, s.held, s.largest, s.blocked) for s in self.states], float).T
        length_s = np.diff(columns[0])
        _, asked, held, largest, blocked = columns[:, :-1]
        free = num_nodes - held
        whole_s, free_s = float(length_s.sum()), float(length_s[free > 0].sum())
        split = 1 - largest[free > 0] / free[free > 0]
        node_s = float(length_s @ asked)
        return {
            "utilisation": node_s / (num_nodes * whole_s) if whole_s else 0.0,
            "fragmentation": float(split @ length_s[free > 0]) / free_s if free_s else 0.0,
            "blocked": float(length_s @ blocked) / whole_s if whole_s else 0.0,
            "held_per_asked": float(length_s @ held) / node_s if node_s else 1.0,
        }


@dataclass(slots=True, eq=False)
class _Running:
    """Jobs that run: plans and nodes by name."""

    free: npt.NDArray[np.bool_]
    plans: dict[str, Plan] = field(default_factory=dict)
    held: dict[str, IntArray] = field(default_factory=dict)
    asked: int = 0


class _Plans:
    """Plans of jobs, with the choice of the algorithm for nodes that lie in the same way, and times alone.

    Args: setup: of the run.
    """

    def __init__(self, setup: JobsSetup) -> None:
        self._setup = setup
        self._algorithm: dict[bytes, str] = {}
        self._alone: dict[int, float] = {}

    def plan(self, nodes: IntArray, beside: Sequence[Plan] = ()) -> Plan:
        """The plan of a job.

        Raises: UnsupportedError: there is none.
        """
        setup = self._setup
        fabric = part_of(setup.machine, nodes, shares=setup.shares)
        if beside:
            return setup.compiled(fabric, setup.algorithm, beside)
        lie = (nodes - nodes[0]).tobytes()
        algorithm = self._algorithm.get(lie, setup.algorithm)
        made = setup.compiled(fabric, algorithm)
        self._algorithm[lie] = made.algorithm
        return made

    def time_s(self, plan: Plan) -> float:
        """Time of a plan [s]."""
        return plan.simulate(assumptions=self._setup.assumptions).total_s

    def alone_s(self, num_nodes: int) -> float:
        """Time of the collective of a job that runs alone on the empty machine [s].

        Raises: UnsupportedError, FabricError: not even the empty machine runs it.
        """
        if num_nodes not in self._alone:
            machine = self._setup.machine
            free = _usable(machine)
            grid = machine.cell_grid()
            place = place_by("first", grid, free, num_nodes)
            if place is None or place_by(self._setup.policy, grid, free, num_nodes) is None:
                raise FabricError(f"policy {self._setup.policy}: no place for {num_nodes} nodes on the empty machine")
            alone = self._setup.compiled(part_of(machine, place.nodes), self._setup.algorithm)
            self._alone[num_nodes] = self.time_s(alone)
        return self._alone[num_nodes]


def simulate_jobs(setup: JobsSetup, *, progress: ProgressCallback) -> JobsRun:
    """Run all jobs.

    Args:
        setup: of the run.
        progress: called with (what, done, total).
    Raises: ParameterError: no jobs, one above the machine, or a share that is none; UnknownNameError: no such policy.
    """
    _check(setup)
    judge = JobsJudge(_usable(setup.machine))
    plans, running = _Plans(setup), _Running(_usable(setup.machine))
    queue: deque[Arrival] = deque()
    run_of: dict[str, JobRun] = {}
    ends: list[tuple[float, int, str]] = []
    states: list[MachineState] = []
    waiting_in_vain: set[str] = set()
    coming = deque(setup.arrivals)
    while coming or ends or queue:
        now_s = min(coming[0].time_s if coming else np.inf, ends[0][0] if ends else np.inf)
        while ends and ends[0][0] <= now_s:
            _leave(running, heappop(ends)[2], judge)
        while coming and coming[0].time_s <= now_s:
            queue.append(coming.popleft())
        while queue:
            job = queue[0]
            ran = _start(setup, plans, running, job, judge, now_s, job.name in waiting_in_vain)
            if ran is None:
                break
            queue.popleft()
            run_of[job.name] = ran
            if ran.end_s is not None:
                heappush(ends, (ran.end_s, len(run_of), job.name))
            progress(f"jobs by {setup.policy}", len(run_of), len(setup.arrivals))
        in_vain = bool(queue) and queue[0].num_nodes <= int(running.free.sum())
        if in_vain:
            waiting_in_vain.add(queue[0].name)
        states.append(_state(setup, running, now_s, len(queue), in_vain))
    jobs = [run_of[job.name] for job in setup.arrivals]
    return JobsRun(setup, jobs, states, judge.verdict, judge.changes, judge.disturbed)


def _check(setup: JobsSetup) -> None:
    check_policy(setup.policy, setup.machine.cell_grid())
    if not setup.arrivals:
        raise ParameterError("jobs: no job arrives; give --arrivals poisson:load=0.85,count=300")
    if not 0 < setup.communication <= 1:
        raise ParameterError(
            f"jobs: a communication share of {setup.communication:g} is not above 0 and up to 1; try 0.3"
        )
    for job in setup.arrivals:
        if job.num_nodes > setup.machine.num_nodes:
            raise ParameterError(
                f"jobs: {job.name} has {job.num_nodes:,} nodes and the machine {setup.machine.num_nodes:,}; leave it out"
            )


def _usable(machine: Fabric) -> npt.NDArray[np.bool_]:
    """Nodes of an empty machine that a job may use, bool (machine nodes,)."""
    free = np.zeros(machine.num_machine_nodes, bool)
    free[machine.machine_nodes(np.arange(machine.num_nodes))] = True
    return free


def _start(
    setup: JobsSetup,
    plans: _Plans,
    running: _Running,
    job: Arrival,
    judge: JobsJudge,
    now_s: float,
    blocked: bool,
) -> JobRun | None:
    """Start a job, or refuse it; None: it waits.

    Args:
        running: jobs, changed.
        now_s: time [s].
    """
    none = np.zeros(0, np.int64)
    began_s = process_time()
    try:
        alone_s = plans.alone_s(job.num_nodes)
    except (UnsupportedError, FabricError) as error:
        return JobRun(job, None, None, none, none, reason=str(error))
    got = _admitted(setup, plans, running, job, judge)
    if got is None:
        return None
    place, plan = got
    running.free[place.held] = False
    running.plans[job.name], running.held[job.name] = plan, place.held
    running.asked += len(place.nodes)
    spent_s = process_time() - began_s
    judge.arrive(job.name, plan.circuits, running.held, running.free)
    slow_down = plans.time_s(plan) / alone_s if alone_s else 1.0
    c = setup.communication
    work_s = job.duration_s
    if work_s is None:
        assert job.iterations is not None
        work_s = job.iterations * alone_s / c
    end_s = now_s + work_s * ((1 - c) + c * slow_down)
    return JobRun(job, now_s, end_s, place.nodes, place.held, plan.algorithm, slow_down, spent_s, blocked)


def _admitted(
    setup: JobsSetup, plans: _Plans, running: _Running, job: Arrival, judge: JobsJudge
) -> tuple[JobPlace, Plan] | None:
    """Nodes and plan of a job that the judge admits beside the running ones, or None."""
    place = place_by(setup.policy, setup.machine.cell_grid(), running.free, job.num_nodes)
    if place is None:
        return None
    beside = list(running.plans.values())
    for others in ([], beside) if setup.policy == "any" and beside else ([],):
        try:
            plan = plans.plan(place.nodes, others)
        except UnsupportedError:
            continue
        if judge.admissible(job.name, plan.circuits).ok:
            return place, plan
    return None


def _leave(running: _Running, name: str, judge: JobsJudge) -> None:
    """End a job.

    Args:
        running: jobs, changed.
    """
    held = running.held.pop(name)
    running.free[held] = True
    running.asked -= running.plans.pop(name).fabric.num_nodes
    judge.leave(name, running.held, running.free)


def _state(setup: JobsSetup, running: _Running, now_s: float, waiting: int, blocked: bool) -> MachineState:
    """State of the machine after a change.

    Args:
        now_s: time [s].
        waiting: jobs in the queue [count].
    """
    free = int(running.free.sum())
    largest = largest_job(setup.policy, setup.machine.cell_grid(), running.free)
    held = int(sum(map(len, running.held.values())))
    return MachineState(now_s, running.asked, held, waiting, min(largest, free), blocked)
