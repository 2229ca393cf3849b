"""The plans of one fabric that a comparison keeps: the fastest, the one of its paper, or all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from opticcl.assumptions import Assumptions
from opticcl.circuits import lower
from opticcl.collective import Request
from opticcl.errors import AlgorithmError, UnsupportedError
from opticcl.ir import Fabric, ProgressCallback
from opticcl.ir.step_cache import StepCache
from opticcl.plans.comparison import Declined, Entry
from opticcl.plans.light import LightRule
from opticcl.plans.plan import Plan
from opticcl.plans.ranks import Variation
from opticcl.plans.search import Candidates
from opticcl.registry import write_call
from opticcl.schedule import all_variants, generate
from opticcl.simulate import PlanFacts, Profile, profile
from opticcl.verify.judge import Judge

__all__ = ["Criteria", "FabricPlan", "entries_of"]


@dataclass(frozen=True, slots=True)
class Criteria:
    """By what a comparison chooses and times the plans of every fabric.

    Args:
        wanted: collective and root.
        sizes: messages, one after the other [bytes].
        algorithm: as `compare_plans` takes it.
        assumed: time assumptions.
        variations: other assumptions that each plan is charged under too.
        rule: the light that a plan must have to be chosen.
        judge: that plans must not be too large for.
    """

    wanted: Request
    sizes: Sequence[int]
    algorithm: str
    assumed: Assumptions
    variations: Sequence[Variation]
    rule: LightRule
    judge: Judge

    @property
    def searches(self) -> bool:
        """Whether the fastest algorithm is searched."""
        return self.algorithm in ("auto", "main")


class FabricPlan(NamedTuple):
    """A plan of a fabric.

    Args:
        plan: the plan.
        times: its time for any message size.
        under: the same under other assumptions, by the name of the variation; perhaps of another plan.
    """

    plan: Plan
    times: Profile
    under: Mapping[str, Profile]


def entries_of(
    criteria: Criteria,
    fabric: Fabric,
    cache: StepCache,
    entry_of: Callable[[FabricPlan, ProgressCallback], Entry],
    progress: ProgressCallback,
) -> tuple[list[Entry], list[Declined], tuple[str, ...]]:
    """Entries of one fabric, the algorithms that it declines, and what the search left out.

    An algorithm may raise an exception in a step that the search did not need, or its plan may be too large to be verified:
    then the next fastest takes its place.

    Args:
        criteria: of the comparison.
        fabric: that carries the collective.
        cache: of steps and circuits.
        entry_of: verifies and times a plan.
        progress: called before each part of the work.
    """
    not_tried: tuple[str, ...] = ()
    entries: list[Entry] = []
    declined: list[Declined] = []
    finished: set[str] = set()
    failed: set[str] = set()
    search_again = True
    while search_again:
        search_again = False
        if criteria.searches:
            plans, left, not_tried = _fastest(criteria, fabric, cache, failed, progress)
        else:
            plans, left = _named(criteria, fabric, cache, progress)
        declined += [one for one in left if one not in declined]
        for found in plans:
            schedule = found.plan.schedule
            name = write_call(schedule.name, schedule.parameters)
            if name in finished:
                continue
            try:
                entries.append(entry_of(found, progress))
                finished.add(name)
            except AlgorithmError as error:
                declined.append(Declined(fabric.name, schedule.name, str(error), failed=True))
            except UnsupportedError as error:
                declined.append(Declined(fabric.name, schedule.name, f"{name}: {error}"))
            if name not in finished:
                failed.add(schedule.name)
                search_again = criteria.searches
    return entries, declined, not_tried


def _fastest(
    criteria: Criteria, fabric: Fabric, cache: StepCache, without: Collection[str], progress: ProgressCallback
) -> tuple[list[FabricPlan], list[Declined], tuple[str, ...]]:
    """The fastest plan, and that of the fabric's own algorithm if it is requested; algorithms that failed; what was left out.

    Args:
        criteria: of the comparison.
        fabric: that carries the collective.
        cache: of steps and circuits.
        without: algorithms that the search omits.
        progress: called before the search.
    """
    wanted, sizes, variations = criteria.wanted, criteria.sizes, criteria.variations
    progress(f"search the fastest on {fabric.name}")
    also = [one.assumed for one in variations if one.on(fabric) is fabric]

    def search(where: Fabric, assumed: Assumptions, also: Sequence[Assumptions] = ()) -> Candidates:
        judge = criteria.judge
        return Candidates(where, wanted, None, assumed, criteria.rule, cache, also, judge=judge, without=without)

    candidates = search(fabric, criteria.assumed, also)
    own = fabric.machine.algorithm
    wishes = (None, own) if criteria.algorithm == "main" and own else (None,)
    found = {wish: candidates.fastest(sizes, algorithm=wish) for wish in wishes}
    failed = [Declined(fabric.name, name, why, failed=True) for name, why in candidates.failures.items()]
    fastest = {one.schedule.name: (wish, one.profile) for wish, one in found.items() if one is not None}
    if not fastest:
        why = f"no algorithm does {wanted.name} on {fabric.name}{candidates.why_none()}"
        return [], [Declined(fabric.name, criteria.algorithm, why)], candidates.not_tried
    others: dict[str | None, dict[str, Profile]] = {wish: {} for wish, _ in fastest.values()}
    for variation in variations:
        if not variation.chooses_on(fabric):
            for wish, times in fastest.values():
                others[wish][variation.name] = replace(times, assumed=variation.assumed)
            continue
        where = variation.on(fabric)
        again = candidates.under(variation.assumed) if where is fabric else None
        again = again or search(where, variation.assumed)
        for wish, under in others.items():
            one = again.fastest(sizes, algorithm=wish)
            chosen = one.profile.plan if one else next(p.plan for w, p in fastest.values() if w == wish)
            under[variation.name] = one.profile if one else profile(chosen, variation.assumed)
    found_plans = [FabricPlan(Plan(p.plan, sum(sizes)), p, others[wish]) for wish, p in fastest.values()]
    return found_plans, failed, candidates.not_tried


def _named(
    criteria: Criteria, fabric: Fabric, cache: StepCache, progress: ProgressCallback
) -> tuple[list[FabricPlan], list[Declined]]:
    """Plans of the requested algorithm, or of all; those that the fabric declines.

    Args:
        criteria: of the comparison.
        fabric: that carries the collective.
        cache: of steps and circuits.
        progress: called before each plan.
    """
    kept: list[FabricPlan] = []
    declined: list[Declined] = []
    for candidate in all_variants(criteria.wanted, fabric) if criteria.algorithm == "all" else (criteria.algorithm,):
        progress(f"compile {fabric.name} with {candidate}")
        try:
            schedule = cache.of_schedule(generate(candidate, criteria.wanted, fabric))
            circuits = cache.of_plan(lower(fabric, schedule))
            facts = PlanFacts(circuits, [one.assumed for one in criteria.variations])
            times = profile(circuits, criteria.assumed, facts)
            under = {one.name: _profile_on(one.on(fabric), facts, one.assumed) for one in criteria.variations}
            kept.append(FabricPlan(Plan(circuits, sum(criteria.sizes)), times, under))
        except (AlgorithmError, UnsupportedError) as error:
            declined.append(Declined(fabric.name, candidate, str(error), isinstance(error, AlgorithmError)))
    return kept, declined


def _profile_on(fabric: Fabric, facts: PlanFacts, assumed: Assumptions) -> Profile:
    """The same plan on a fabric that may have other times.

    Args:
        fabric: with these times.
        facts: of the plan.
        assumed: time assumptions.
    """
    if fabric is facts.plan.fabric:
        return profile(facts.plan, assumed, facts)
    return profile(replace(facts.plan, fabric=fabric), assumed)
