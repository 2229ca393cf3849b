"""A schedule on a fabric, evaluated as far as a search needs: first bounds of its runs of equal steps, then their exact costs.

Bounds and costs hold for every message size, so they are kept between sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import cache as once
from operator import add
from typing import NamedTuple

from opticcl.assumptions import Assumptions
from opticcl.circuits import lower
from opticcl.ir import CircuitPlan, Fabric, Schedule, Verdict
from opticcl.ir.limits import limit
from opticcl.ir.step_cache import StepCache
from opticcl.plans.light import Light, LightRule, no_circuits_close, step_is_dark
from opticcl.simulate import (
    Cost,
    PlanFacts,
    Profile,
    RunBound,
    class_bounds,
    costs,
    ends_of_steps,
    least_fixed_s,
    pairs_of_steps,
    profile,
    schedule_facts,
)
from opticcl.verify.judge import Judge

__all__ = ["MOST_DISTINCT_STEPS", "Candidate", "Known"]

MOST_DISTINCT_STEPS = limit("candidate.MOST_DISTINCT_STEPS")


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
    """

    def __init__(
        self,
        fabric: Fabric,
        schedule: Schedule,
        assumed: Assumptions,
        cache: StepCache,
        also: Sequence[Assumptions] = (),
    ) -> None:
        cached = cache.of_schedule(schedule)
        self.fabric, self._uncached, self.schedule = fabric, schedule, cached
        ends, pairs = cache.each(cached, ends_of_steps), cache.each(cached, pairs_of_steps)
        plan = self._plan = once(lambda: cache.of_plan(lower(fabric, cached)))
        self._cache, self._facts = cache, schedule_facts(cached, fabric, ends, pairs)
        self._plan_facts = once(lambda: PlanFacts(plan(), also, ends))
        self._light: dict[str | None, Light] = {}  # by preset
        self._dark: dict[tuple[str | None, int], bool] = {}  # by preset and run
        self._cannot_close: dict[str | None, tuple[int, bool]] = {}  # by preset: of how many runs, and the answer
        self._verdict: Verdict | None = None
        self._begin(assumed)

    def _begin(self, assumed: Assumptions) -> None:
        self.assumed = assumed
        self._num_runs = len(self.schedule.step_classes())
        self._next_bound = class_bounds(self.schedule, self.fabric, assumed, self._facts)
        # by the number of runs that have bounds
        self._least_s: list[float] = least_fixed_s(self._facts, self.fabric, assumed).tolist()
        self._bounds: list[RunBound] = []
        self._rest = (0, 0), RunBound(0.0, 0.0, 0.0)  # sum of the bounds of runs without costs, by how many have either
        self._next_cost: Iterator[Cost] | None = None
        self._costs: list[Cost] = []

    def __repr__(self) -> str:
        done = "complete" if self.complete else f"{len(self._costs)} of {self._num_runs} runs of steps evaluated"
        return f"<Candidate {self.schedule.name} on {self.fabric.name}: {done}>"

    def under(self, assumed: Assumptions, where: Fabric | None = None) -> Candidate:
        """The same schedule and circuits under other assumptions, not yet evaluated.

        Args:
            assumed: time assumptions.
            where: the same fabric at another node rate, whose plan is verified by itself; None: as it is.
        """
        made = copy(self)
        if where is not None:
            cache, cached, made.fabric, made._verdict = self._cache, self.schedule, where, None
            made._plan = once(lambda: cache.of_plan(lower(where, cached)))
        made._begin(assumed)
        return made

    @property
    def complete(self) -> bool:
        """Whether its exact time is known."""
        return self._next_cost is not None and len(self._costs) == self._num_runs

    def release(self) -> None:
        """Keep no step and no circuits but those that stand."""
        if self._next_cost is not None:
            self._plan_facts().release()

    def plan(self) -> CircuitPlan:
        """Its circuits without the caches of the search, for a caller that keeps the plan."""
        return lower(self.fabric, self._uncached)

    @property
    def profile(self) -> Profile:
        """Its time for any message size; available once it is complete."""
        assert self.complete
        return Profile(self._plan(), self.assumed, tuple(self._costs))

    def light(self, rule: LightRule) -> Light:
        """Light of its circuits; available once it is complete.

        Args: rule: with the preset of the values.
        """
        assert self.complete
        if rule.optics not in self._light:
            self._light[rule.optics] = rule.of(self._plan())
        return self._light[rule.optics]

    def verdict(self, judge: Judge) -> Verdict:
        """Verdict on its plan; available once it is complete.

        Args: judge: of all plans of the search.
        """
        assert self.complete
        if self._verdict is None:
            self._verdict = judge(self._plan())
        return self._verdict

    def cannot_close(self, rule: LightRule) -> bool:
        """Whether the light of no circuits closes that it could have, as far as the runs with bounds and the next one show.

        Args: rule: with the preset of the values.
        Raises: UnsupportedError: the fabric cannot carry the schedule.
        """
        if self._next_cost is not None:
            return False
        if len(self._bounds) == self._num_runs:
            self._plan_facts()
        due = min(len(self._bounds) + 1, self._num_runs)
        asked, dark = self._cannot_close.get(rule.optics, (0, False))
        if not dark and asked < due:
            dark = no_circuits_close(self.fabric, self.schedule, self.schedule.step_classes()[asked:due], rule.optics)
            self._cannot_close[rule.optics] = due, dark
        return dark

    def is_dark(self, rule: LightRule) -> bool:
        """Whether the light of a step does not close whose circuits were evaluated last.

        Args: rule: with the preset of the values.
        """
        if not self._costs:
            return False
        run = len(self._costs) - 1
        asked = rule.optics, run
        if asked not in self._dark:
            self._dark[asked] = step_is_dark(self._plan(), self.schedule.step_classes()[run], rule.optics)
        return self._dark[asked]

    def lower_bound_s(self, sizes: Sequence[int]) -> float:
        """Lower bound on the time of these messages one after the other; exact once the candidate is complete [s]."""
        return self.known(sizes).total_s

    def known(self, sizes: Sequence[int]) -> Known:
        """What is known of the time of these messages one after the other; all of it once the candidate is complete."""
        evaluated = len(self._costs), len(self._bounds)
        if self._rest[0] != evaluated:
            rest = self._bounds[len(self._costs) :]
            self._rest = evaluated, RunBound(*map(sum, zip(*rest, strict=True))) if rest else RunBound(0.0, 0.0, 0.0)
        least = Known(len(sizes) * self._least_s[len(self._bounds)])
        parts = [*self._of_costs(self._costs, sizes), _of_bound(self._rest[1], sizes), least]
        return Known(*map(sum, zip(*parts, strict=True)))

    def profile_under(self, assumed: Assumptions, where: Fabric | None = None) -> Profile:
        """Its time for any message size under other assumptions, evaluated to the end without a search.

        Args:
            assumed: time assumptions.
            where: the same fabric with other times; None: as it is.
        """
        if where is None or where is self.fabric:
            return profile(self._plan(), assumed, self._plan_facts())
        return profile(replace(self._plan(), fabric=where), assumed)

    @property
    def too_long(self) -> str:
        """Why a search sets it aside once it would evaluate it; "" if it does not."""
        if self._num_runs <= MOST_DISTINCT_STEPS:
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
            before_s, left_s = self._least_s[len(self._bounds) - 1 : len(self._bounds) + 1]
            return _of_bound(self._bounds[-1], sizes).plus(Known(len(sizes) * (left_s - before_s)))
        if self._next_cost is None:  # a generator that refers to the candidate would keep it until garbage is collected
            self._next_cost = costs(self._plan_facts(), self.fabric, self.assumed)
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
        sums = []
        for cost in costs:
            moving_s = [cost.moving_s(fabric, each) for each in chunk_bytes]
            still_s = [cost.still_s(fabric, assumed, each) for each in chunk_bytes]
            sums.append((sum(map(add, still_s, moving_s)), sum(moving_s)))
        return sums


def _of_bound(bound: RunBound, sizes: Sequence[int]) -> Known:
    num_bytes = sum(sizes)
    total_s = len(sizes) * bound.fixed_s + num_bytes * (bound.moving_s + bound.summing_s)
    return Known(total_s, num_bytes * bound.moving_s)
