"""The answer to failed parts, the first of these that is possible and, of the middle four, the one with the best rate of work:

    kept         no circuit of the plan needs them: nothing changes; or they are weak, and it goes on more slowly
    reassigned   the same schedule, circuits chosen again around them
    rescheduled  another schedule, the fastest of those that are compared
    packed       trees along the links that are left
    shrunk       a restart on fewer ranks, which need none of them
    cut          no data leave a set of ranks whatever the plan is; the judge of cuts confirms it
    unknown      no plan is found, and no cut

Rate of work of a plan on k of N ranks that takes s times as long: (k / N) / ((1 - c) + c s), c the share of communication.

A plan on what is left is from one of these, which the report names:

    as built     the best algorithms of the machine before the failure with all their parameters: that search is made once
    for damage   algorithms made for damage, `packed_trees` and `uneven_exchange`
    full search  all algorithms, on what is left

The first two are timed for every failure. All algorithms are searched where neither has a plan that is verified, and where
`answer` is called with `search`.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from math import inf
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from opticcl.assumptions import Assumptions
from opticcl.collective import Request
from opticcl.errors import FabricError, UnsupportedError
from opticcl.fabrics import job
from opticcl.files import read_toml
from opticcl.ir import CircuitPlan, Condition, Fabric, IntArray, Verdict
from opticcl.ir.step_cache import StepCache
from opticcl.operations.faults.residual import Residual, closed_set, residual, residual_bound_s
from opticcl.plans.candidate import Candidate
from opticcl.plans.light import DEFAULT_RULE, LightRule
from opticcl.plans.plan import Plan, compile
from opticcl.plans.ranks import Variation, beside
from opticcl.plans.search import Search
from opticcl.registry import canonical, parse_call, write_call
from opticcl.schedule import NotTried, variants_of
from opticcl.schedule.packed_trees import forwarding_variants
from opticcl.verify.data.cut import check_cut
from opticcl.verify.judge import Judge

__all__ = [
    "ANSWERS",
    "FULL_SEARCH",
    "MOST_PAIRS",
    "FaultReport",
    "Healthy",
    "Recovery",
    "TimedPlan",
    "answer",
    "recovery_parameters",
]

ANSWERS = ("kept", "reassigned", "rescheduled", "packed", "shrunk", "cut", "unknown")
AS_BUILT, FOR_DAMAGE, FULL_SEARCH = ("as built", "for damage", "full search")
MADE_FOR_DAMAGE = ("packed_trees", "uneven_exchange")
MOST_PAIRS = 1 << 14
"""Of ranks, up to which a restart on those that need no failed part is tried [count]."""

NEAR, MOST_NEAR = 2.0, 6
"""The algorithms of the machine as built that are timed on a damaged one: those that take as many times as long as the fastest,
and their number [count]."""

MOST_BYTES = 1 << 28
"""Of steps and circuits that are cached between failures [bytes]."""

ROWS_OF_GARBAGE = 8
"""Plans after which garbage is collected: candidates refer to each other, and have large arrays [count]."""


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
        plan_from: as built, for damage or full search, "" where there is no plan.
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
    plan_from: str
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
    def label(self) -> str:
        """The failed parts, joined by +."""
        return "+".join(map(str, self.conditions))

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
            "parts": self.label,
            "equal_parts": self.equal_parts,
            "answer": self.answer,
            "algorithm": self.algorithm,
            "plan_from": self.plan_from,
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


class TimedPlan(NamedTuple):
    """A plan and its time.

    Args:
        plan: the plan.
        seconds: its time [s].
        candidate: whose plan it is, if its time is that of the closed form.
    """

    plan: Plan
    seconds: float
    candidate: Candidate | None = None


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
        rule: the light that plans must have.
    """

    fabric: Fabric
    wanted: Request
    size_bytes: int
    algorithm: str
    assumed: Assumptions
    parameters: dict[str, float]
    streamed: bool = False
    rule: LightRule = DEFAULT_RULE

    @cached_property
    def judge(self) -> Judge:
        """Verifies plans; schedules that several of them share are replayed once."""
        return Judge()

    @cached_property
    def _cache(self) -> StepCache:
        return StepCache(MOST_BYTES)

    @cached_property
    def _candidates(self) -> Search:
        """All algorithms on the machine as built, or the one that is requested."""
        return self._on(self.fabric, None)

    @cached_property
    def _before(self) -> TimedPlan:
        return self._fastest(self._candidates)

    @property
    def plan(self) -> Plan:
        """The plan that runs before the failure."""
        return self._before.plan

    @property
    def time_s(self) -> float:
        """Of that plan [s]."""
        return self._before.seconds

    @cached_property
    def best_algorithms(self) -> tuple[str, ...]:
        """The best algorithms of the machine as built, with their parameters, that of the plan first."""
        if self._named:
            return (self.algorithm,)
        sizes = [self.size_bytes]
        first = self._candidates.fastest(sizes)
        assert first is not None
        near = self._candidates.near(self.size_bytes, NEAR * first.lower_bound_s(sizes), MOST_NEAR)
        names = (write_call(one.schedule.name, one.schedule.parameters) for one in near)
        return tuple(dict.fromkeys([self.plan.algorithm, *names]))

    @property
    def _named(self) -> bool:
        """Whether one algorithm is requested."""
        return canonical(self.algorithm) != "auto"

    def fastest(self, where: Fabric) -> TimedPlan:
        """The fastest plan of all algorithms on another fabric; if streamed, of trees in more and fewer pieces too.

        Raises: UnsupportedError: there is none.
        """
        return self._fastest(self._on(where, None))

    @cached_property
    def replanned(self) -> Iterator[int]:
        """Counts the failures that were planned for."""
        return count(1)

    @cached_property
    def plans_of_ranks(self) -> dict[bytes, _Found]:
        """Plans for fewer ranks, whose ways to each other need no failed part, by the nodes of the ranks."""
        return {}

    def survivor(self, where: Fabric, below_s: float = inf) -> TimedPlan:
        """The fastest plan of the best algorithms of the machine as built and of those made for damage.

        Args:
            where: what is left.
            below_s: that it must be faster than: the time of the plan before with other circuits; infinite: there is none [s].
        Raises: UnsupportedError: there is none.
        """
        names = [name for name in self.best_algorithms if below_s == inf or name != self.plan.algorithm]
        best = dict.fromkeys(parse_call(name)[0] for name in self.best_algorithms)
        for name in () if self._named else (*best, *MADE_FOR_DAMAGE):  # other parameters may suit the damage
            made = (one for one in variants_of(name, self.wanted, where) if not isinstance(one, NotTried))
            names += [called for given in made if (called := write_call(name, given)) not in self.best_algorithms]
        return self._fastest(self._on(where, names), inf if self.streamed else below_s)

    def again(self, where: Fabric) -> TimedPlan:
        """The same schedule, with circuits chosen again.

        Args: where: what is left, with the same ranks.
        Raises: UnsupportedError: it does not go around what failed.
        """
        one = Candidate(where, self.plan.schedule, self.assumed, self._cache, [self.other.assumed])
        while not one.complete:
            one.refine([self.size_bytes])
        return self._timed(one)

    def on(self, where: Fabric, plan: Plan) -> TimedPlan:
        """A plan with the same circuits on another fabric."""
        moved = Plan(CircuitPlan(where, plan.schedule, plan.circuits.rounds), self.size_bytes)
        return TimedPlan(moved, self.seconds(moved))

    def _on(self, where: Fabric, names: Sequence[str] | None) -> Search:
        """Candidates on a fabric.

        Args:
            names: of the algorithms; None: all.
        """
        chosen, also = [self.algorithm] if self._named else names, [self.other.assumed]
        return Search(
            where, self.wanted, self.assumed, chosen, rule=self.rule, judge=self.judge, cache=self._cache, also=also
        )

    def _fastest(self, candidates: Search, below_s: float = inf) -> TimedPlan:
        """The fastest of some candidates; if streamed, of trees in more and fewer pieces too.

        Args:
            below_s: that the plan must be faster than by the closed form [s].
        Raises: UnsupportedError: there is none.
        """
        where = candidates.fabric
        one = candidates.fastest([self.size_bytes], below_s=below_s)
        if one is None:
            raise candidates.refusal()
        timed = [self._timed(one)]
        for given in forwarding_variants(self.wanted, where) if self.streamed and not self._named else ():
            name = write_call("packed_trees", given)
            with suppress(UnsupportedError):  # trees are not for this fabric
                plan = compile(where, self.wanted, self.size_bytes, algorithm=name)
                timed.append(TimedPlan(plan, self.seconds(plan)))
        return min(timed, key=lambda each: each.seconds)

    def _timed(self, one: Candidate) -> TimedPlan:
        plan = Plan(one.profile.plan, self.size_bytes)
        if self.streamed:
            return TimedPlan(plan, self.seconds(plan))
        return TimedPlan(plan, one.profile.timeline(self.size_bytes).total_s, one)

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
        return self.times_beside(self._before)

    def times_beside(self, timed: TimedPlan) -> tuple[str, float]:
        """The other set of assumptions, and the time of a plan under it [s]."""
        if timed.candidate is not None:
            return self.other.name, timed.candidate.profile_under(self.other.assumed).timeline(self.size_bytes).total_s
        return self.other.name, float(timed.plan.simulate(self.engine, assumptions=self.other.assumed).total_s)

    def work(self, ranks: int, time_s: float) -> float:
        """Rate of work of a plan on some ranks, over that where nothing has failed."""
        share = self.parameters["communication"]
        return ranks / self.fabric.num_nodes / (1 - share + share * time_s / self.time_s)

    def programme_s(self, where: Fabric) -> float:
        """Control plane once a job, and a change of circuits [s]."""
        return where.control_plane().once_a_job_s + where.reconfiguration_s


def answer(
    healthy: Healthy, conditions: Sequence[Condition], equal_parts: int = 1, *, search: bool = True
) -> FaultReport:
    """What the collective still costs without some parts.

    Args:
        healthy: the collective where they work.
        conditions: the parts that fail.
        equal_parts: parts for which the answer holds [count].
        search: whether all algorithms are searched on what is left; else only where no plan from elsewhere is found.
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
        verdict = None if _needs_failed(same) else healthy.judge(same.circuits)
        goes_on = verdict is not None and verdict.ok
        slower_s = healthy.seconds(same) if goes_on and around is not None else 0.0
        slower = slower_s > healthy.time_s * (1 + 1e-12)
        if goes_on and not slower:
            bound_s = healthy.bound_s(left)
            return replace(
                report, answer="kept", algorithm=healthy.plan.algorithm, plan_from=AS_BUILT, ranks=left.num_nodes,
                time_s=healthy.time_s, bound_s=bound_s, work=1.0, verdict=verdict, beside=healthy.beside,
            )  # fmt: skip
        if verdict is not None and slower:
            going_on.append(_Found(TimedPlan(same, slower_s), "kept", AS_BUILT, verdict))
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
        if whole or around is not None:
            outcome = _replanned(healthy, left, whole, around, going_on, search)
        else:
            outcome = _on_fewer_ranks(healthy, left, all(each.kind == "node" for each in conditions), search)
        took = process_time() - began
        if outcome is not None:
            how, seconds = outcome.how, outcome.timed.seconds
            recovery = Recovery() if how == "kept" else Recovery(detect, took, set_s, 0.0 if whole else restart_s)
            report = replace(
                report, answer=how, algorithm=outcome.timed.plan.algorithm, plan_from=outcome.plan_from,
                ranks=left.num_nodes, time_s=seconds, recovery=recovery, work=healthy.work(left.num_nodes, seconds),
                verdict=_verdict_on(healthy, left, outcome), beside=healthy.times_beside(outcome.timed),
            )  # fmt: skip
    if whole:
        recovery = Recovery(detect, process_time() - began, set_s, restart_s)
        report = _with_restart(healthy, left, around or left, report, recovery, search)
    if next(healthy.replanned) % ROWS_OF_GARBAGE == 0:
        gc.collect()
    return report


def _needs_failed(plan: Plan) -> bool:
    """Whether a circuit needs a failed part, which the judge would name too; false where steps are not listed."""
    circuits = plan.circuits
    if circuits.has_images:
        return False
    return any(
        len(fault.circuits) > 0
        for steps in plan.schedule.step_classes()
        for used in circuits.rounds(steps.start)
        for fault in plan.fabric.part_faults(used)
    )


def _refuse_open(left: Fabric, closed: IntArray) -> None:
    """Raises: FabricError: the judge does not confirm the cut."""
    for violation in check_cut(left, closed):
        raise FabricError(f"{left.name}: the cut of {len(closed)} ranks does not hold: {violation}")


class _Found(NamedTuple):
    """A plan and its time, how it was found, where it is from, and its verdict."""

    timed: TimedPlan
    how: str
    plan_from: str
    verdict: Verdict


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
    healthy: Healthy, left: Fabric, whole: bool, around: Fabric | None, going_on: list[_Found], search: bool
) -> _Found | None:
    """The fastest plan that is verified; None if no plan is found."""
    candidates = list(going_on)
    places = [left] if around is None or around.num_nodes < left.num_nodes else [left, around]
    for place in places if whole else []:
        candidates += _judged(healthy, left, lambda place=place: healthy.again(place), "reassigned", AS_BUILT)  # type: ignore[misc]
    how = "rescheduled" if whole else "shrunk"
    for place in () if search else places:
        best_s = min((each.timed.seconds for each in candidates), default=inf)
        for each in _judged(healthy, left, lambda place=place, s=best_s: healthy.survivor(place, s), how, AS_BUILT):  # type: ignore[misc]
            made = parse_call(each.timed.plan.algorithm)[0] in MADE_FOR_DAMAGE
            candidates.append(each._replace(plan_from=FOR_DAMAGE) if made else each)
    for place in places if search or not candidates else ():
        candidates += _judged(healthy, left, lambda place=place: healthy.fastest(place), how, FULL_SEARCH)  # type: ignore[misc]
    return min(candidates, key=lambda each: each.timed.seconds, default=None)


def _on_fewer_ranks(healthy: Healthy, rest: Fabric, untouched: bool, search: bool) -> _Found | None:
    """The fastest plan on some ranks, which is the same for all failures that none of their ways to each other needs."""
    key = rest.machine_nodes(np.arange(rest.num_nodes)).tobytes()
    known = healthy.plans_of_ranks.get(key) if untouched else None
    if known is not None:
        return known
    outcome = _replanned(healthy, rest, False, None, [], search)
    if outcome is not None and untouched and rest.num_nodes**2 <= MOST_PAIRS:  # of more ranks there are no restarts
        healthy.plans_of_ranks[key] = outcome
    return outcome


def _judged(healthy: Healthy, left: Fabric, planned: Callable[[], TimedPlan], how: str, plan_from: str) -> list[_Found]:
    """A plan with its verdict; empty if there is none, or if it is wrong."""
    try:
        timed = planned()
        if timed.plan.fabric is not left:
            timed = healthy.on(left, timed.plan)
    except UnsupportedError:
        return []
    verdict = healthy.judge(timed.plan.circuits)
    if how == "rescheduled" and timed.plan.schedule.name == "packed_trees":
        how = "packed"
    return [_Found(timed, how, plan_from, verdict)] if verdict.ok else []


def _verdict_on(healthy: Healthy, where: Fabric, found: _Found) -> Verdict:
    """The verdict on a plan that was perhaps made for another failure."""
    plan = found.timed.plan.circuits
    return found.verdict if plan.fabric is where else healthy.judge(CircuitPlan(where, plan.schedule, plan.rounds))


def _with_restart(
    healthy: Healthy, left: Fabric, around: Fabric, report: FaultReport, recovery: Recovery, search: bool
) -> FaultReport:
    """The report with a restart on the ranks that need none of the failed parts, and that as answer if it works more."""
    if around.num_nodes < left.num_nodes:
        ranks: IntArray | None = left.ranks_at(around.machine_nodes(np.arange(around.num_nodes)))
    else:
        ranks = _untouched(around, report.cut)
    if ranks is None or len(ranks) < 2:
        return report
    rest = job(left, left.machine_nodes(ranks))
    restarted = _on_fewer_ranks(healthy, rest, around.num_nodes == left.num_nodes, search)
    if restarted is None:
        return report
    seconds = restarted.timed.seconds
    work = healthy.work(len(ranks), seconds)
    report = replace(report, restart_ranks=len(ranks), restart_s=seconds, restart_work=work)
    if not report.cut and report.work >= work:
        return report
    how = report.answer if report.cut else "shrunk"
    verdict = _verdict_on(healthy, rest, restarted)
    return replace(
        report, answer=how, algorithm=restarted.timed.plan.algorithm, plan_from=restarted.plan_from, ranks=len(ranks),
        time_s=seconds, recovery=recovery, work=work, verdict=verdict, bound_s=healthy.bound_s(rest),
        beside=healthy.times_beside(restarted.timed),
    )  # fmt: skip


def _untouched(left: Fabric, cut: tuple[int, ...]) -> IntArray | None:
    """Ranks none of whose ways to each other need a failed part, at least two and half of all; None if there are none.

    Nodes that lost the most ways are left out first. Packets that are cut off leave the larger side; else routes lead around.
    """
    n = left.num_nodes
    if left.is_packet_switched:
        others = np.setdiff1d(np.arange(n), left.ranks_at(np.array(cut, np.int64)))
        return others if cut and len(others) >= max(2, n / 2) else None
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
