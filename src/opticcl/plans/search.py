"""Best-first search for the fastest algorithm of a collective on a fabric.

Every candidate has a lower bound on its time. The search refines the candidate with the smallest bound, one run of equal
steps at a time: first the bound of the run, then, once all runs have bounds, its circuits and exact cost. It ends when the
candidate with the smallest bound is complete, since no other can be faster. Bounds and costs hold for every message size, so
they are kept between sizes.

Source: Hart, Nilsson and Raphael 1968.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import copy
from functools import cache as once
from heapq import heapify, heappop, heappush
from math import inf, nextafter
from operator import add
from time import perf_counter
from typing import NamedTuple

import numpy as np

from opticcl.assumptions import Assumptions
from opticcl.circuits import lower
from opticcl.collective import Request
from opticcl.errors import AlgorithmError, TooLargeError, UnsupportedError
from opticcl.ir import CircuitPlan, Fabric, Schedule
from opticcl.ir.step_cache import StepCache
from opticcl.plans.direct_parts import algorithm_in_parts
from opticcl.plans.light import DEFAULT_RULE, Light, LightRule, light_differs, step_is_dark
from opticcl.plans.shift_laws import held_algorithm
from opticcl.registry import parse_call
from opticcl.schedule import generate, search_space
from opticcl.simulate import (
    Cost,
    PlanFacts,
    Profile,
    RunBound,
    class_bounds,
    costs,
    ends_of_step,
    least_transfer_s,
    schedule_facts,
)
from opticcl.simulate.route_loads import RouteLoads
from opticcl.verify.judge import Judge

__all__ = ["MOST_DISTINCT_STEPS", "Candidate", "Candidates"]

MOST_DISTINCT_STEPS = 1 << 14
"""Of a schedule that a search evaluates to the end, where there are others; minutes [count]."""


TIE = 1e-9
"""Relative difference below which two times are equal: they are sums of the same terms in another order."""


class Known(NamedTuple):
    """What is known of the time of a candidate, at least.

    Args:
        total_s: all of it [s].
        moving_s: that data moves for [s].
    """

    total_s: float = 0.0
    moving_s: float = 0.0

    def plus(self, other: Known) -> Known:
        """Both, one after the other."""
        return Known(self.total_s + other.total_s, self.moving_s + other.moving_s)

    def at_least(self, moving_s: float) -> float:
        """Lower bound where data moves for at least that long [s]."""
        return self.total_s + max(0.0, moving_s - self.moving_s)


class Candidate:
    """A schedule on a fabric, evaluated as far as the search has needed.

    Args:
        fabric: that runs it.
        schedule: the candidate.
        assumed: time assumptions.
        cache: of its steps and circuits.
        also: other assumptions that it will be evaluated under.
        loads: of routes, which candidates on the same fabric share; None: new.
    """

    def __init__(
        self,
        fabric: Fabric,
        schedule: Schedule,
        assumed: Assumptions,
        cache: StepCache,
        also: Sequence[Assumptions] = (),
        loads: RouteLoads | None = None,
    ) -> None:
        cached = cache.of_schedule(schedule)
        self.fabric, self._uncached, self.schedule = fabric, schedule, cached
        self._facts = schedule_facts(cached, fabric, cache.each(cached, ends_of_step))
        self._plan_facts = once(lambda: PlanFacts(cache.of_plan(lower(fabric, cached)), also, loads))
        self._light: dict[str | None, Light] = {}  # by preset
        self._begin(assumed)

    def _begin(self, assumed: Assumptions) -> None:
        self.assumed = assumed
        self._num_runs = len(self.schedule.step_classes())
        self._next_bound = class_bounds(self.schedule, self.fabric, assumed, self._facts)
        self._bounds: list[RunBound] = []
        self._rest = (0, 0), RunBound(0.0, 0.0, 0.0)  # sum of the bounds of runs without costs, by how many have either
        self._next_cost: Iterator[Cost] | None = None
        self._costs: list[Cost] = []
        self._plan: CircuitPlan | None = None

    def __repr__(self) -> str:
        done = "complete" if self.complete else f"{len(self._costs)} of {self._num_runs} runs of steps evaluated"
        return f"<Candidate {self.schedule.name} on {self.fabric.name}: {done}>"

    def under(self, assumed: Assumptions) -> Candidate:
        """The same schedule and circuits under other assumptions, not yet evaluated."""
        made = copy(self)
        made._begin(assumed)
        return made

    @property
    def complete(self) -> bool:
        """Whether its exact time is known."""
        return self._plan is not None and len(self._costs) == self._num_runs

    def plan(self) -> CircuitPlan:
        """Its circuits without the caches of the search, for a caller that keeps the plan."""
        return lower(self.fabric, self._uncached)

    @property
    def profile(self) -> Profile:
        """Its time for any message size; available once it is complete."""
        assert self._plan is not None
        return Profile(self._plan, self.assumed, tuple(self._costs))

    def light(self, rule: LightRule) -> Light:
        """Light of its circuits; available once it is complete.

        Args: rule: with the preset of the values.
        """
        assert self._plan is not None
        if rule.optics not in self._light:
            self._light[rule.optics] = rule.of(self._plan)
        return self._light[rule.optics]

    def is_dark(self, rule: LightRule) -> bool:
        """Whether the light of a step does not close whose circuits were evaluated last.

        Args: rule: with the preset of the values.
        """
        if self._plan is None or not self._costs:
            return False
        return step_is_dark(self._plan, self.schedule.step_classes()[len(self._costs) - 1], rule.optics)

    def lower_bound_s(self, sizes: Sequence[int]) -> float:
        """Lower bound on the time of these messages one after the other; exact once the candidate is complete [s]."""
        return self.known(sizes).total_s

    def known(self, sizes: Sequence[int]) -> Known:
        """What is known of the time of these messages one after the other; all of it once the candidate is complete."""
        evaluated = len(self._costs), len(self._bounds)
        if self._rest[0] != evaluated:
            rest = self._bounds[len(self._costs) :]
            self._rest = evaluated, RunBound(*map(sum, zip(*rest, strict=True))) if rest else RunBound(0.0, 0.0, 0.0)
        parts = [*self._of_costs(self._costs, sizes), _of_bound(self._rest[1], sizes)]
        return Known(*map(sum, zip(*parts, strict=True)))

    def profile_under(self, assumed: Assumptions) -> Profile:
        """Its time for any message size under other assumptions, evaluated to the end."""
        facts = self._plan_facts()
        return Profile(facts.plan, assumed, tuple(costs(facts.plan, assumed, facts)))

    @property
    def too_long(self) -> str:
        """Why a search sets it aside, once it has taken too long; "" if it has not."""
        if len(self._bounds) <= MOST_DISTINCT_STEPS:
            return ""
        return (
            f"{self.schedule.name} has {self._num_runs:,} distinct steps, a search evaluates {MOST_DISTINCT_STEPS:,} at most; "
            f"it may be faster, and --algorithm {self.schedule.name} evaluates all"
        )

    def refine(self, sizes: Sequence[int]) -> Known:
        """Evaluate the next run of steps.

        Args: sizes: messages one after the other [bytes].
        Returns: what is known in addition.
        Raises: UnsupportedError: the fabric cannot carry the schedule.
        """
        if len(self._bounds) < self._num_runs:
            self._bounds.append(next(self._next_bound))
            if len(self._bounds) == self._num_runs:
                self._next_bound.close()  # releases the last step that the generator holds
            return _of_bound(self._bounds[-1], sizes)
        if self._next_cost is None:  # a generator that refers to the candidate would keep it until garbage is collected
            facts = self._plan_facts()
            self._plan, self._next_cost = facts.plan, costs(facts.plan, self.assumed, facts)
        cost = next(self._next_cost, None)
        if cost is None:  # a schedule without steps
            return Known()
        self._costs.append(cost)
        if self.complete:
            self._next_cost = iter(())  # releases the last step that the generator holds
        ((total_s, moving_s),) = self._of_costs([cost], sizes)
        bound = _of_bound(self._bounds[len(self._costs) - 1], sizes)
        return Known(total_s - bound.total_s, moving_s - bound.moving_s)

    def _of_costs(self, costs: Sequence[Cost], sizes: Sequence[int]) -> list[tuple[float, float]]:
        """What is known of each run by its exact cost: total and moving time [s]."""
        fabric, assumed = self.fabric, self.assumed
        chunk_bytes = [size / self.schedule.collective.num_chunks for size in sizes]
        found = []
        for cost in costs:
            moving_s = [cost.moving_s(fabric, each) for each in chunk_bytes]
            still_s = [cost.still_s(fabric, assumed, each) for each in chunk_bytes]
            found.append((sum(map(add, still_s, moving_s)), sum(moving_s)))
        return found


def _of_bound(bound: RunBound, sizes: Sequence[int]) -> Known:
    num_bytes = sum(sizes)
    total_s = len(sizes) * bound.fixed_s + num_bytes * (bound.moving_s + bound.summing_s)
    return Known(total_s, num_bytes * bound.moving_s)


class Candidates:
    """All algorithms that implement a collective on a fabric.

    Args:
        fabric: to search on.
        wanted: collective and root.
        algorithms: names with parameters, as `generate` takes them; those that decline are skipped. None: all, and those whose
            parameters are found for each message: links to hold on optical circuit switches, and where an all_to_all on a
            RAMP is cut.
        assumed: time assumptions.
        rule: the light that a plan must have to be chosen.
        judge: that plans must not be too large for, shared with other searches; None: a new one.
        cache: shared with other searches; None: a new one.
        also: other assumptions that the fastest is wanted under.
        without: names of algorithms that are not searched.

    Attributes:
        finished: whether the last search ended before its deadline.
    """

    def __init__(
        self,
        fabric: Fabric,
        wanted: Request,
        algorithms: Iterable[str] | None,
        assumed: Assumptions,
        rule: LightRule = DEFAULT_RULE,
        cache: StepCache | None = None,
        also: Sequence[Assumptions] = (),
        *,
        judge: Judge | None = None,
        without: Collection[str] = (),
    ) -> None:
        cache = cache or StepCache()
        schedules = []
        failures: dict[str, str] = {}
        self._planned: set[str] | None = set() if algorithms is None else None
        algorithms, skipped = search_space(wanted, fabric) if algorithms is None else (algorithms, [])
        self._not_tried = [line for line in skipped if line.partition(":")[0].partition(" ")[0] not in without]
        self._without = frozenset(without)
        for algorithm in algorithms:
            if parse_call(algorithm)[0] in without:
                continue
            try:
                schedules.append(generate(algorithm, wanted, fabric))
            except TooLargeError as error:
                self._not_tried.append(f"{algorithm}: {error}")
            except UnsupportedError:
                continue
            except AlgorithmError as error:
                failures.setdefault(algorithm, str(error))
        self.fabric = fabric
        self._wanted, self._assumed, self._cache, self._also = wanted, assumed, cache, also
        loads = RouteLoads()
        self._candidates = [Candidate(fabric, schedule, assumed, cache, also, loads) for schedule in schedules]
        self._num_registered = len(self._candidates)
        self._rule, self._judge, self._hunts = rule, judge or Judge(), False
        self._differs = not rule.ignored and light_differs(fabric, rule.optics)
        self._refusals: dict[int, str] = {}
        self._failures = failures
        self.finished = True

    def under(self, assumed: Assumptions) -> Candidates:
        """The same schedules and circuits under other assumptions."""
        made = Candidates.__new__(Candidates)
        made.fabric, made._failures, made._refusals = self.fabric, dict(self._failures), dict(self._refusals)
        made._not_tried, made._without = list(self._not_tried), self._without
        made.finished, made._wanted, made._assumed = True, self._wanted, assumed
        made._cache, made._also = self._cache, self._also
        made._rule, made._judge, made._hunts, made._differs = self._rule, self._judge, False, self._differs
        made._planned = None if self._planned is None else set(self._planned)
        made._num_registered = self._num_registered
        made._candidates = [candidate.under(assumed) for candidate in self._candidates]
        return made

    def fastest(
        self,
        sizes: Sequence[int],
        *,
        resolution_s: float = 0.0,
        algorithm: str | None = None,
        below_s: float = inf,
        deadline_s: float = inf,
        accepts: Callable[[Candidate], bool] = lambda candidate: True,
    ) -> Candidate | None:
        """The candidate with the least time for these messages one after the other whose light closes and that can be judged.

        Where there is none of these, the one with the least time; None if the fabric can carry none.

        Args:
            sizes: messages of every rank [bytes].
            resolution_s: tolerance: the result may be slower than the fastest by at most this [s].
            algorithm: name of the only algorithm to consider; None: all.
            below_s: only candidates faster than that; None if there are none [s].
            deadline_s: `time.perf_counter` after which the best candidate so far is returned, once there is one, or where
                `below_s` is finite; then `finished` is False [s].
            accepts: whether a complete candidate may be returned at all.
        """
        others: list[Candidate] = []
        for candidate in self.in_order(
            sizes, resolution_s=resolution_s, algorithm=algorithm, below_s=below_s, deadline_s=deadline_s
        ):
            if not accepts(candidate):
                continue
            closes = self._rule.allows(candidate.light(self._rule))
            if closes and self._judged(candidate):
                return candidate
            others.append(candidate)
            if not closes and not self._differs and self._judged(candidate):
                break
            self._hunts = not closes  # candidates with a dark step are evaluated no further
        return next((one for one in others if self._judged(one)), others[0] if others else None)

    def in_order(
        self,
        sizes: Sequence[int],
        *,
        resolution_s: float = 0.0,
        algorithm: str | None = None,
        below_s: float = inf,
        deadline_s: float = inf,
    ) -> Iterator[Candidate]:
        """Candidates in ascending order of their time, each evaluated no further than its place in the order needs.

        Where times are equal, the one that is registered first comes first, whatever was evaluated before.

        Args: sizes, resolution_s, algorithm, below_s, deadline_s: as of `fastest`.
        """
        self.finished, self._hunts = True, False
        if self._planned is not None and algorithm is None:
            self._plan(sizes)
        moving_s = self._moving_s(sizes)
        known = {
            i: candidate.known(sizes)
            for i, candidate in enumerate(self._candidates)
            if i not in self._refusals and algorithm in (None, candidate.schedule.name)
        }
        complete = [(known[i].total_s, i) for i in known if self._candidates[i].complete]
        queue = [(self._bound_s(i, known[i], moving_s), i) for i in known if not self._candidates[i].complete]
        heapify(complete)
        heapify(queue)
        some = False
        while (complete and complete[0][0] < below_s) or (queue and queue[0][0] < below_s - resolution_s):
            late = (complete or some or below_s < inf) and perf_counter() > deadline_s
            if complete and (late or not queue or complete[0][0] * (1 + TIE) < queue[0][0] + resolution_s):
                some, self.finished = True, self.finished and not late
                equal = [heappop(complete)]
                while complete and complete[0][0] <= equal[0][0] * (1 + TIE) and complete[0][0] < below_s:
                    equal.append(heappop(complete))
                first = min(equal, key=lambda one: self._place(one[1]))
                equal.remove(first)
                for other in equal:
                    heappush(complete, other)
                yield self._candidates[first[1]]
                continue
            if late:
                self.finished = False
                return
            _, i = heappop(queue)
            candidate = self._candidates[i]
            if candidate.too_long and (queue or complete or some or below_s < inf):
                self._refusals[i] = candidate.too_long
                self._not_tried.append(candidate.too_long)
                continue
            more = self._refined(i, sizes)
            if more is None:
                continue
            known[i] = candidate.known(sizes) if candidate.complete else known[i].plus(more)
            if self._hunts and candidate.is_dark(self._rule):
                continue
            if candidate.complete:
                heappush(complete, (known[i].total_s, i))
            else:
                heappush(queue, (self._bound_s(i, known[i], moving_s), i))

    def _place(self, i: int) -> tuple[int, str]:
        """Place among candidates of equal times: registered ones in their order, then those made for a size by name."""
        return (i, "") if i < self._num_registered else (self._num_registered, self._candidates[i].schedule.name)

    def _moving_s(self, sizes: Sequence[int]) -> float:
        """Least time in which data moves in any candidate, for these messages one after the other [s]."""
        if not self._candidates:
            return 0.0
        collective = self._candidates[0].schedule.collective
        return sum(least_transfer_s(collective, self.fabric, size, self._assumed) for size in sizes)

    def _bound_s(self, i: int, known: Known, moving_s: float) -> float:
        """Lower bound on the time of a candidate [s].

        Args:
            i: number of the candidate.
            known: of it.
            moving_s: for which data moves at least [s].
        """
        return known.total_s if self._candidates[i].complete else known.at_least(moving_s)

    def near(self, size_bytes: int, limit_s: float, most: int) -> list[Candidate]:
        """Candidates that `fastest` may return and that take no longer than a limit, fastest first.

        Args:
            size_bytes: message of every rank [bytes].
            limit_s: of their times [s].
            most: of them [count].
        """
        found: list[Candidate] = []
        for candidate in self.in_order([size_bytes], below_s=nextafter(limit_s, inf)):
            if len(found) == most:
                break
            if self._rule.allows(candidate.light(self._rule)) and self._judged(candidate):
                found.append(candidate)
        return found

    def _judged(self, candidate: Candidate) -> bool:
        """Whether the verifier can judge a complete candidate."""
        return self._judge.can_judge(candidate.profile.plan)

    def _plan(self, sizes: Sequence[int]) -> None:
        """Add the shifts that are the fastest to hold for these messages, and the cut that suits them, unless they are known.

        Args: sizes: messages one after the other [bytes].
        """
        assert self._planned is not None
        mean = sum(sizes) / max(1, len(sizes))
        for law in (held_algorithm, algorithm_in_parts):
            try:
                name = law(self.fabric, self._wanted, mean, self._assumed)
            except TooLargeError as error:
                if str(error) not in self._not_tried:
                    self._not_tried.append(str(error))
                continue
            if name is None or name in self._planned or parse_call(name)[0] in self._without:
                continue
            self._planned.add(name)
            schedule = generate(name, self._wanted, self.fabric)
            self._candidates.append(Candidate(self.fabric, schedule, self._assumed, self._cache, self._also))

    def release(self) -> None:
        """Forget steps and circuits that were evaluated; plans that `Candidate.plan` returned do not need them."""
        self._cache.clear()

    def of_plan(self, plan: CircuitPlan) -> Candidate:
        """The evaluated candidate that a plan of this search belongs to."""
        return next(one for one in self._candidates if one.complete and one.profile.plan is plan)

    def _refined(self, i: int, sizes: Sequence[int]) -> Known | None:
        """What the next run of steps of a candidate adds to what is known; None where it is refused, which is kept.

        Args:
            i: number of the candidate.
            sizes: messages one after the other [bytes].
        """
        candidate = self._candidates[i]
        try:
            return candidate.refine(sizes)
        except TooLargeError as error:
            self._refusals[i] = str(error)
            self._not_tried.append(str(error))
        except UnsupportedError as error:
            self._refusals[i] = str(error)
        except AlgorithmError as error:
            self._refusals[i] = self._failures[candidate.schedule.name] = str(error)
        return None

    @property
    def failures(self) -> dict[str, str]:
        """Algorithms that raised an exception so far, with the error."""
        return dict(self._failures)

    @property
    def not_tried(self) -> tuple[str, ...]:
        """What was left out so far since evaluating it takes long or much memory, a line each; some of it may be faster."""
        return tuple(dict.fromkeys(self._not_tried))

    def why_none(self) -> str:
        """Reason why `fastest` returned None: "; " and the first refusal of a circuit rule, or two nodes without a circuit
        between them; "" if it is neither."""
        for reason in (*(self._refusals[i] for i in sorted(self._refusals)), *self._failures.values()):
            return f"; {reason}"
        fabric = self.fabric
        ranks = np.arange(1, fabric.num_nodes)
        first = np.zeros_like(ranks)
        for src, dst in ((first, ranks), (ranks, first)):
            apart = np.flatnonzero(~fabric.linked(src, dst))
            if len(apart):
                ends = fabric.machine_nodes(np.array([src[apart[0]], dst[apart[0]]]))
                sender, receiver = (fabric.coordinates(int(node)) for node in ends)
                return f"; no circuit leads from node {sender} to node {receiver}; give a job of nodes that are joined"
        return ""
