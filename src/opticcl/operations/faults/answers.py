"""The answer to failed parts, the first of these that is possible and, of the middle four, the one with the best rate of work:

    kept         no circuit of the plan needs them: nothing changes; or they are weak, and it goes on more slowly
    reassigned   the same schedule, circuits chosen again around them
    rescheduled  another schedule, the fastest of all algorithms
    packed       trees along the links that are left
    shrunk       a restart on fewer ranks, which need none of them
    cut          no data leave a set of ranks whatever the plan is; the judge of cuts confirms it
    unknown      no plan is found, and no cut

Rate of work of a plan on k of N ranks that takes s times as long: (k / N) / ((1 - c) + c s), c the share of communication.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import process_time
from typing import Any

import numpy as np

from opticcl.assumptions import Assumptions
from opticcl.circuits import lower
from opticcl.collective import Request
from opticcl.errors import FabricError, UnsupportedError
from opticcl.fabrics import job
from opticcl.files import read_toml
from opticcl.ir import CircuitPlan, Condition, Fabric, IntArray, Verdict
from opticcl.operations.faults.residual import Residual, closed_set, residual, residual_bound_s
from opticcl.plans.plan import Plan, compile
from opticcl.plans.ranks import Variation, beside
from opticcl.registry import write_call
from opticcl.schedule.packed_trees import forwarding_variants
from opticcl.verify.cut import check_cut

__all__ = ["ANSWERS", "FaultReport", "Healthy", "Recovery", "answer", "recovery_parameters"]

ANSWERS = ("kept", "reassigned", "rescheduled", "packed", "shrunk", "cut", "unknown")
MOST_PAIRS = 1 << 14


def recovery_parameters() -> dict[str, float]:
    """Times of a recovery [s] and the share of communication, with their names."""
    return {
        key: entry["value"] for key, entry in read_toml("opticcl.operations.faults", "faults.toml")["recovery"].items()
    }


@dataclass(frozen=True, slots=True)
class Recovery:
    """What passes until the job works again.

    Args:
        detect: the failure is found [s].
        plan: a plan is made, measured [s].
        programme: the machine is set: control plane and circuits [s].
        restart: processes start again from their last checkpoint [s].
    """

    detect: float = 0.0
    plan: float = 0.0
    programme: float = 0.0
    restart: float = 0.0

    @property
    def total_s(self) -> float:
        """All of it [s]."""
        return self.detect + self.plan + self.programme + self.restart


@dataclass(frozen=True, slots=True)
class FaultReport:
    """The answer to one set of failed parts.

    Args:
        conditions: the failed parts.
        equal_parts: parts for which the answer holds [count].
        answer: one of `ANSWERS`.
        algorithm: of the plan, "" where there is none.
        ranks: that take part [count].
        time_s: of the collective; None where there is no plan [s].
        healthy_s: where nothing has failed [s].
        bound_s: no plan for these ranks on what is left is faster [s].
        recovery: until the job works again.
        work: rate of work over that where nothing has failed.
        restart_ranks: ranks after a restart without the nodes that need the parts, 0 if there is no such restart [count].
        restart_s: time of the collective there [s].
        restart_work: rate of work there.
        cut: nodes that no data leave, empty where there is no cut.
        verdict: on the plan.
        beside: another set of assumptions, and the time of the plan under it, None where there is no plan [s].
    """

    conditions: tuple[Condition, ...]
    equal_parts: int
    answer: str
    algorithm: str
    ranks: int
    time_s: float | None
    healthy_s: float
    bound_s: float | None
    recovery: Recovery
    work: float
    restart_ranks: int
    restart_s: float | None
    restart_work: float
    cut: tuple[int, ...]
    verdict: Verdict | None
    beside: tuple[str, float | None]

    @property
    def slow_down(self) -> float | None:
        """Time over that where nothing has failed."""
        return None if self.time_s is None else self.time_s / self.healthy_s

    @property
    def ratio(self) -> float | None:
        """Time over the bound."""
        return None if self.time_s is None or not self.bound_s else self.time_s / self.bound_s

    @property
    def ok(self) -> bool:
        """Whether all ranks that are alive go on, by a plan that was verified."""
        return self.answer != "cut" and self.verdict is not None and self.verdict.ok

    def record(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "parts": "+".join(map(str, self.conditions)),
            "equal_parts": self.equal_parts,
            "answer": self.answer,
            "algorithm": self.algorithm,
            "ranks": self.ranks,
            "time_s": self.time_s,
            f"{self.beside[0]}_s": self.beside[1],
            "healthy_s": self.healthy_s,
            "slow_down": self.slow_down,
            "bound_s": self.bound_s,
            "ratio": self.ratio,
            "recovery_s": self.recovery.total_s,
            "detect_s": self.recovery.detect,
            "plan_s": self.recovery.plan,
            "programme_s": self.recovery.programme,
            "restart_s": self.recovery.restart,
            "work": self.work,
            "ranks_after_restart": self.restart_ranks,
            "time_after_restart_s": self.restart_s,
            "work_after_restart": self.restart_work,
            "cut": list(self.cut),
            "verified": None if self.verdict is None else self.verdict.ok,
        }


@dataclass(frozen=True)
class Healthy:
    """A collective where nothing more has failed, and how failures are answered.

    Args:
        fabric: the machine.
        wanted: collective and root.
        size_bytes: message of every rank [bytes].
        algorithm: "auto", or the only algorithm to plan with.
        assumed: time assumptions.
        parameters: of the recovery, as `recovery_parameters` has them.
        streamed: whether pieces go on as they arrive, by the device engine, and nothing waits for the end of a step.
    """

    fabric: Fabric
    wanted: Request
    size_bytes: int
    algorithm: str
    assumed: Assumptions
    parameters: dict[str, float]
    streamed: bool = False

    @cached_property
    def _before(self) -> tuple[Plan, float]:
        return self.compiled(self.fabric)

    @property
    def plan(self) -> Plan:
        """The plan that runs before the failure."""
        return self._before[0]

    @property
    def time_s(self) -> float:
        """Of that plan [s]."""
        return self._before[1]

    def compiled(self, where: Fabric) -> tuple[Plan, float]:
        """The plan on another fabric and its time [s]; if streamed, the fastest of it and of trees in more and fewer pieces.

        Raises: UnsupportedError: there is none.
        """
        names = [self.algorithm]
        if self.streamed and self.algorithm == "auto":
            names += [write_call("packed_trees", given) for given in forwarding_variants(self.wanted, where)]
        found = []
        for name in names:
            try:
                plan = compile(where, self.wanted, self.size_bytes, algorithm=name, assumptions=self.assumed)
            except UnsupportedError:
                if name == self.algorithm:
                    raise
                continue  # trees are not for this fabric
            found.append((plan, self.seconds(plan)))
        return min(found, key=lambda each: each[1])

    @property
    def engine(self) -> str:
        """By which plans are timed."""
        return "device" if self.streamed else "closed_form"

    def seconds(self, plan: Plan) -> float:
        """Time of a plan [s]."""
        return float(plan.simulate(self.engine, assumptions=self.assumed).total_s)

    def bound_s(self, where: Fabric, left: Residual | None = None) -> float:
        """No plan on another fabric is faster [s].

        Args:
            where: with failed parts.
            left: what is left of it, if it is known.
        """
        return residual_bound_s(where, self.wanted, self.size_bytes, self.assumed, left, streamed=self.streamed)

    @cached_property
    def other(self) -> Variation:
        """The assumptions whose times stand beside."""
        return beside(self.assumed)

    @cached_property
    def beside(self) -> tuple[str, float]:
        """The other set of assumptions, and the time of the plan before the failure under it [s]."""
        return self.times_beside(self.plan)

    def times_beside(self, plan: Plan) -> tuple[str, float]:
        """The other set of assumptions, and the time of a plan under it [s]."""
        return self.other.name, float(plan.simulate(self.engine, assumptions=self.other.assumed).total_s)

    def work(self, ranks: int, time_s: float) -> float:
        """Rate of work of a plan on some ranks, over that where nothing has failed."""
        share = self.parameters["communication"]
        return ranks / self.fabric.num_nodes / (1 - share + share * time_s / self.time_s)

    def programme_s(self, where: Fabric) -> float:
        """Control plane once a job, and a change of circuits [s]."""
        return where.control_plane().once_a_job_s + where.reconfiguration_s


def answer(healthy: Healthy, conditions: Sequence[Condition], equal_parts: int = 1) -> FaultReport:
    """What the collective still costs without some parts.

    Args:
        healthy: the collective where they work.
        conditions: the parts that fail.
        equal_parts: parts for which the answer holds [count].
    Raises: FabricError: no such parts, or no node is left.
    """
    left = healthy.fabric.without(conditions)
    around = _without_weak(healthy.fabric, conditions)
    going_on: list[_Found] = []
    whole = left.num_nodes == healthy.fabric.num_nodes
    report = FaultReport(
        tuple(conditions),
        equal_parts,
        "unknown",
        "",
        0,
        None,
        healthy.time_s,
        None,
        Recovery(),
        0.0,
        0,
        None,
        0.0,
        (),
        None,
        (healthy.other.name, None),
    )
    if whole:
        same = Plan(CircuitPlan(left, healthy.plan.schedule, healthy.plan.circuits.rounds), healthy.size_bytes)
        verdict = same.verify()
        slower = verdict.ok and around is not None and healthy.seconds(same) > healthy.time_s * (1 + 1e-12)
        if verdict.ok and not slower:
            bound_s = healthy.bound_s(left)
            return replace(
                report, answer="kept", algorithm=healthy.plan.algorithm, ranks=left.num_nodes, time_s=healthy.time_s,
                bound_s=bound_s, work=1.0, verdict=verdict, beside=healthy.beside,
            )  # fmt: skip
        if slower:
            going_on.append((healthy.seconds(same), "kept", same, verdict))
    detect, restart_s = healthy.parameters["detect"], healthy.parameters["restart"]
    set_s = healthy.programme_s(left)
    closed = closed_set(left) if left.num_nodes > 1 else None
    began = process_time()
    if closed is not None:
        _refuse_open(left, closed)
        report = replace(report, answer="cut", cut=tuple(left.machine_nodes(closed).tolist()))
    else:
        bound_s = healthy.bound_s(left, residual(left))
        report = replace(report, bound_s=bound_s)
        found = _replanned(healthy, left, whole, around, going_on)
        took = process_time() - began
        if found is not None:
            how, plan, seconds, verdict = found
            recovery = Recovery() if how == "kept" else Recovery(detect, took, set_s, 0.0 if whole else restart_s)
            report = replace(
                report, answer=how, algorithm=plan.algorithm, ranks=left.num_nodes, time_s=seconds, recovery=recovery,
                work=healthy.work(left.num_nodes, seconds), verdict=verdict,
                beside=healthy.times_beside(plan),
            )  # fmt: skip
    if whole:
        recovery = Recovery(detect, process_time() - began, set_s, restart_s)
        report = _with_restart(healthy, left, around or left, report, recovery)
    return report


def _refuse_open(left: Fabric, closed: IntArray) -> None:
    """Raises: FabricError: the judge does not confirm the cut."""
    for violation in check_cut(left, closed):
        raise FabricError(f"{left.name}: the cut of {len(closed)} ranks does not hold: {violation}")


_Found = tuple[float, str, Plan, Verdict]
"""Time of a plan [s], how it was found, the plan, its verdict."""


def _without_weak(fabric: Fabric, conditions: Sequence[Condition]) -> Fabric | None:
    """The fabric as if weak parts were dead, for plans that leave them out; None without weak parts or nodes that are left."""
    if not any(each.mode == "weak" for each in conditions):
        return None
    try:
        return fabric.without(
            [replace(each, mode="dead", value=0) if each.mode == "weak" else each for each in conditions]
        )
    except FabricError:
        return None


def _replanned(
    healthy: Healthy, left: Fabric, whole: bool, around: Fabric | None, going_on: list[_Found]
) -> tuple[str, Plan, float, Verdict] | None:
    """How, by which plan, its time and its verdict; None if no plan is found.

    Args:
        healthy: the collective before.
        left: fabric without the parts.
        whole: whether all ranks are there.
        around: the fabric as if weak parts were dead, if there are any.
        going_on: the plan before, if it goes on more slowly.
    """
    found = list(going_on)
    places = [left] if around is None or around.num_nodes < left.num_nodes else [left, around]
    for how in ("reassigned", "rescheduled") if whole else ("shrunk",):
        for place in places:
            try:
                again = how == "reassigned"
                circuits = lower(place, healthy.plan.schedule) if again else healthy.compiled(place)[0].circuits
                plan = Plan(CircuitPlan(left, circuits.schedule, circuits.rounds), healthy.size_bytes)
                seconds = healthy.seconds(plan)
            except UnsupportedError:
                continue
            verdict = plan.verify()
            if verdict.ok:
                packed = how == "rescheduled" and plan.schedule.name == "packed_trees"
                found.append((seconds, "packed" if packed else how, plan, verdict))
    if not found:
        return None
    seconds, how, plan, verdict = min(found, key=lambda each: each[0])
    return how, plan, seconds, verdict


def _with_restart(
    healthy: Healthy, left: Fabric, around: Fabric, report: FaultReport, recovery: Recovery
) -> FaultReport:
    """The report with a restart on the ranks that need none of the failed parts, and that as answer if it works more.

    Args:
        healthy: the collective before.
        left: fabric without the parts.
        around: the same as if weak parts were dead.
        report: so far.
        recovery: of the restart.
    """
    if around.num_nodes < left.num_nodes:
        ranks: IntArray | None = left.ranks_at(around.machine_nodes(np.arange(around.num_nodes)))
    else:
        ranks = _untouched(around, report.cut)
    if ranks is None or len(ranks) < 2:
        return report
    rest = job(left, left.machine_nodes(ranks))
    try:
        plan, seconds = healthy.compiled(rest)
    except UnsupportedError:
        return report
    verdict = plan.verify()
    if not verdict.ok:
        return report
    work = healthy.work(len(ranks), seconds)
    report = replace(report, restart_ranks=len(ranks), restart_s=seconds, restart_work=work)
    if not report.cut and report.work >= work:
        return report
    how = report.answer if report.cut else "shrunk"
    return replace(
        report, answer=how, algorithm=plan.algorithm, ranks=len(ranks), time_s=seconds, recovery=recovery, work=work,
        verdict=verdict, bound_s=healthy.bound_s(rest),
        beside=healthy.times_beside(plan),
    )  # fmt: skip


def _untouched(left: Fabric, cut: tuple[int, ...]) -> IntArray | None:
    """Ranks none of whose ways to each other need a failed part, at least two and half of all; None if there are none.

    Nodes that lost the most ways are left out first.

    Args:
        left: fabric without the parts.
        cut: nodes that no data leave.
    """
    n = left.num_nodes
    pairs = np.arange(n * n)
    pairs = pairs[pairs // n != pairs % n]
    if len(pairs) > MOST_PAIRS:
        return None
    src, dst = np.divmod(pairs, n)
    ways = left.options(left.machine_nodes(src), left.machine_nodes(dst)).circuits
    lost = np.zeros(len(ways), bool)
    for fault in left.part_faults(ways):
        lost[fault.circuits] = True
    table = np.bincount(pairs[ways.transfer[lost]], minlength=n * n).reshape(n, n)
    kept = np.ones(n, bool)
    while table[np.ix_(kept, kept)].any():
        weight = np.where(kept, (table * kept).sum(axis=1) + (table.T * kept).sum(axis=1), -1)
        kept[int(weight.argmax())] = False
        if kept.sum() < max(2, n / 2):
            return None
    return None if kept.all() else np.flatnonzero(kept)
