"""The fastest plan for every message size; each algorithm is compiled and verified at most once.

The cost of a step is a function of the message size, so one evaluation of a plan serves all sizes, and every size has its own
fastest algorithm. Plans are verified on demand.
"""

from __future__ import annotations

from copy import copy

from opticcl.assumptions import DEFAULT_SET, Assumptions
from opticcl.assumptions import assumptions as assumptions_of
from opticcl.collective import Request
from opticcl.errors import UnsupportedError
from opticcl.ir import CircuitPlan, Fabric, ProgressCallback, Timeline, Verdict, no_progress
from opticcl.ir.step_cache import StepCache
from opticcl.plans.light import DEFAULT_RULE, Light, LightRule
from opticcl.plans.search import Candidate, Candidates
from opticcl.plans.times import timeline_of
from opticcl.registry import canonical, parse_call, write_call
from opticcl.schedule import ALGORITHMS, reason_declined
from opticcl.simulate import engine_options
from opticcl.verify.judge import Judge

__all__ = ["Choice", "Fastest"]


class Choice:
    """The fastest algorithm of a collective on one fabric, for each message size.

    Args:
        where: the fabric.
        wanted: collective and root.
        algorithm: one to prefer, or "auto".
        assumed: time assumptions.
        engine: as in `Fastest`.
        resolution_s: as in `Fastest` [s].
        judge: verifies plans.
        cache: of steps and circuits.
        rule: the light that plans must have.
    """

    def __init__(
        self,
        where: Fabric,
        wanted: Request,
        algorithm: str,
        assumed: Assumptions,
        engine: str,
        resolution_s: float,
        judge: Judge,
        cache: StepCache,
        rule: LightRule,
    ) -> None:
        self.fabric, self.collective, self.declined = where, wanted.name, ""
        self._engine, self._resolution_s, self._judge = engine, resolution_s, judge
        named = canonical(algorithm) != "auto"
        if named and (reason := reason_declined(algorithm, wanted, where)) is not None:
            self.declined, named = reason, False

        algorithms = (algorithm,) if named else None
        self._candidates = Candidates(where, wanted, algorithms, assumed, rule, cache, judge=judge)
        self._rule = rule
        self._best: dict[int, tuple[Timeline, CircuitPlan]] = {}
        self._verdicts: dict[int, Verdict] = {}
        self._lights: dict[int, Light] = {}

    def under(self, assumed: Assumptions) -> Choice:
        """The same candidates under other assumptions."""
        made = Choice.__new__(Choice)
        made.fabric, made.collective, made.declined = self.fabric, self.collective, self.declined
        made._engine, made._resolution_s, made._judge, made._rule = (
            self._engine, self._resolution_s, self._judge, self._rule
        )  # fmt: skip
        made._candidates, made._best, made._verdicts, made._lights = self._candidates.under(assumed), {}, {}, {}
        return made

    def best(self, size_bytes: int) -> tuple[float, CircuitPlan]:
        """Time of the fastest plan [s], and the plan.

        Args: size_bytes: message of every rank [bytes].
        Raises: UnsupportedError: the fabric can carry no algorithm.
        """
        timeline, plan = self.best_timeline(size_bytes)
        return timeline.total_s, plan

    def best_timeline(self, size_bytes: int) -> tuple[Timeline, CircuitPlan]:
        """Timeline of the fastest plan, and the plan.

        Args: size_bytes: message of every rank [bytes].
        Raises: UnsupportedError: the fabric can carry no algorithm.
        """
        if size_bytes not in self._best:
            found = self._candidates.fastest([size_bytes], resolution_s=self._resolution_s)
            if found is None:
                what, where = self.collective, self.fabric
                raise UnsupportedError(f"no algorithm does {what} on {where.name} with {where.num_nodes} nodes")
            self._best[size_bytes] = (timeline_of(found.profile, size_bytes, self._engine), found.profile.plan)
        return self._best[size_bytes]

    def near(self, size_bytes: int, most: int) -> tuple[Candidate, ...]:
        """Plans for which another may make way in a sequence of messages, the one that `best` returns first.

        A plan that holds the circuits of its neighbours saves a change before it and one behind it at most, so those are kept
        that take no more than two first changes longer than the fastest.

        Args:
            size_bytes: message of every rank [bytes].
            most: of them [count].
        Raises: UnsupportedError: the fabric can carry no algorithm.
        """
        _, plan = self.best(size_bytes)
        first = self._candidates.of_plan(plan)
        cold_s = first.lower_bound_s([size_bytes])
        warm = first.profile_under(assumptions_of(first.assumed, initial="warm"))
        change_s = cold_s - warm.timeline(size_bytes, bounded=False).total_s
        found = self._candidates.near(size_bytes, cold_s + 2 * change_s, most) if change_s > 0 else []
        return (first, *(one for one in found[: most - 1] if one is not first))

    def light(self, plan: CircuitPlan) -> Light:
        """Light of one of the plans that `best` returned."""
        if id(plan) not in self._lights:
            self._lights[id(plan)] = self._rule.of(plan)
        return self._lights[id(plan)]

    @property
    def not_tried(self) -> tuple[str, ...]:
        """What was left out so far since evaluating it takes long or much memory, a line each."""
        return self._candidates.not_tried

    @property
    def failures(self) -> tuple[str, ...]:
        """Errors of algorithms that raised an exception so far."""
        return tuple(self._candidates.failures.values())

    def verdict(self, plan: CircuitPlan) -> Verdict:
        """Verdict on one of the plans that `best` returned."""
        if id(plan) not in self._verdicts:
            self._verdicts[id(plan)] = self._judge(plan)
        return self._verdicts[id(plan)]


class Fastest:
    """The fastest plan for any fabric, collective and message size; results are cached.

    Args:
        algorithm: used wherever it can; the fastest for everything else. "auto": the fastest for everything.
        assumptions: named set of time assumptions, or a custom set.
        engine: that times are computed with, "name" or "name:key=value,..."; the fastest plan is found by the closed form
            in any case.
        resolution_s: tolerance: a plan may be slower than the fastest by at most this; 0: always the fastest [s].
        rule: the light that plans must have.
        progress: called with a line of text before each search.
    """

    def __init__(
        self,
        algorithm: str = "auto",
        assumptions: str | Assumptions = DEFAULT_SET,
        *,
        engine: str = "closed_form",
        resolution_s: float = 0.0,
        rule: LightRule = DEFAULT_RULE,
        progress: ProgressCallback = no_progress,
    ) -> None:
        engine_options(engine, {})  # an unknown engine is refused here, not by each fabric
        self._engine, self._resolution_s, self.rule = engine, resolution_s, rule
        self.algorithm, self.assumed, self.progress = algorithm, assumptions_of(assumptions), progress
        self.name = parse_call(algorithm)[0]
        if self.name != "auto":
            ALGORITHMS.get(self.name)  # an unknown name is refused here, not by each fabric
        self._judge, self._cache = Judge(), StepCache()
        self._choices: dict[tuple[str, tuple[int, ...], Request], Choice] = {}
        self._shared: Fastest | None = None

    @property
    def tolerance(self) -> float:
        """Part of the bytes of a transfer that the engine may leave out."""
        return float(getattr(engine_options(self._engine, {})[1], "tolerance", 0.0))

    def under(self, assumed: Assumptions) -> Fastest:
        """The same under other assumptions; both evaluate each schedule and its circuits once."""
        made = copy(self)
        made.assumed, made._choices, made._shared = assumed, {}, self
        return made

    def forget(self) -> None:
        """Release candidates of all fabrics so far, their circuits and the steps that they do not share; verdicts on their data
        are kept."""
        self._choices.clear()
        self._cache.clear_unshared()

    def choice(self, where: Fabric, wanted: Request) -> Choice:
        """The candidates for a collective on a fabric."""
        parameters = {k: v for k, v in where.parameters.items() if v is not None}
        ranks = () if where.node_of_rank is None else tuple(where.node_of_rank.tolist())
        key = write_call(where.name, parameters), ranks, wanted
        if key not in self._choices and self._shared is not None:
            self._choices[key] = self._shared.choice(where, wanted).under(self.assumed)
        if key not in self._choices:
            self.progress(f"search the fastest {wanted.name} of {where.num_nodes:,} nodes on {where.name}")
            self._choices[key] = Choice(
                where, wanted, self.algorithm, self.assumed, self._engine, self._resolution_s, self._judge, self._cache,
                self.rule,
            )  # fmt: skip
        return self._choices[key]
