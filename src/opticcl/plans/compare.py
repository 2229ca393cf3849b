"""Comparison of fabrics: every plan is compiled, verified and timed for the same messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from opticcl.assumptions import DEFAULT_SET, Assumptions
from opticcl.assumptions import assumptions as assumptions_of
from opticcl.collective import Request, as_request
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.ir import Fabric, ProgressCallback, no_progress
from opticcl.ir.step_cache import StepCache
from opticcl.plans.comparison import Comparison, Declined, Entry
from opticcl.plans.fabric_plans import Criteria, FabricPlan, entries_of
from opticcl.plans.light import DEFAULT_RULE, LightRule, light_rule
from opticcl.plans.machines import build_fabrics, search_weight
from opticcl.plans.plan import Plan
from opticcl.plans.ranks import Charge, Decided, Swaps, Variation, beside, keys_between, sensitivity, swaps
from opticcl.plans.search import Candidates
from opticcl.plans.times import timeline_of
from opticcl.processes import each
from opticcl.registry import as_text, canonical, one_or_more, whole_number
from opticcl.simulate import engine_options
from opticcl.simulate.bottleneck import bottleneck, loads
from opticcl.units import (
    message_size,
    quantity,
)
from opticcl.verify.judge import Judge

if TYPE_CHECKING:
    import polars

__all__ = ["compare", "compare_plans"]

MOST_STEP_BYTES = 640_000_000
"""Of the steps and circuits of a fabric: on 16,384 nodes most of what a search generated is still there when it is verified
[bytes]."""


def compare_plans(
    fabrics: Iterable[Fabric],
    collective: str | Request,
    sizes: Sequence[int],
    *,
    algorithm: str = "auto",
    assumptions: str | Assumptions = DEFAULT_SET,
    engine: str = "closed_form",
    explain: bool = False,
    vary: bool = False,
    rule: LightRule = DEFAULT_RULE,
    jobs: int = 1,
    progress: ProgressCallback = no_progress,
) -> Comparison:
    """Compile, verify and time plans on every fabric.

    Args:
        fabrics: to compare.
        collective: its name, or a request with a root.
        sizes: messages of every rank, one after the other [bytes].
        algorithm: a name for all; "auto": the fastest of each fabric; "main": also the one of the fabric's paper; "all": every
            algorithm that the fabric can carry.
        assumptions: named set of time assumptions, or a custom set; it chooses algorithms and charges times.
        engine: that times the plans; the fastest algorithm is always chosen by the closed form.
        explain: whether to find the single keys that swap ranks between the set and the one beside it.
        vary: whether to halve and double every value and list the swaps of rank.
        rule: the light that a plan must have to be chosen and ranked.
        jobs: processes; the result is the same with any number of them [count].
        progress: called with a line of text before each part of the work.
    Raises: ParameterError: no fabrics or no sizes. UnsupportedError: no fabric can carry it.
    """
    wanted = as_request(collective)
    name, fabrics = wanted.name, list(fabrics)
    if not fabrics:
        raise ParameterError("compare: no fabric is given; give at least one, such as 'ideal:nodes=8'")
    if not sizes:
        raise ParameterError("compare: no message sizes; give at least one")
    engine_options(engine, {})  # an unknown engine is refused before any work
    assumed = assumptions_of(assumptions)
    if name == "barrier":
        sizes = [0]  # it carries no data
    judge, cache = Judge(), StepCache(MOST_STEP_BYTES)
    other = beside(assumed)
    between = keys_between(assumed, other.assumed) if explain else []
    varied = sensitivity(assumed) if vary else []
    variations = [other, *between, *varied]

    criteria = Criteria(wanted, sizes, canonical(algorithm), assumed, variations, rule, judge)

    def entry_of(found: FabricPlan, progress: ProgressCallback) -> Entry:
        plan, times = found.plan, found.times
        progress(f"verify {plan.fabric.name} with {plan.schedule.name}")
        timelines = tuple(timeline_of(times, size, engine) for size in sizes)
        charges = {
            name: Charge(
                Plan(one.plan, plan.size_bytes).algorithm,
                sum(timeline_of(one, size, engine).total_s for size in sizes),
            )
            for name, one in found.under.items()
        }
        verdict, light = judge(plan.circuits), rule.of(plan.circuits)
        entry = Entry(
            plan.fabric, plan, times, timelines, verdict, light, verdict.ok and rule.allows(light), under=charges
        )
        if not entry.verdict.ok:  # a wrong plan may occupy resources that do not exist
            return entry
        return replace(
            entry, bottleneck=bottleneck(plan.fabric, loads(plan.circuits, sum(sizes), times.costs), entry.total_s)
        )

    def of_fabric(i: int, progress: ProgressCallback) -> tuple[list[Entry], list[Declined], tuple[str, ...]]:
        made = entries_of(criteria, fabrics[i], cache, entry_of, progress)
        cache.clear_unshared()  # circuits, and steps that other fabrics do not have
        return made

    searched = explain and criteria.searches
    alternatives = [*dict.fromkeys(one for fabric in fabrics for one in _alternatives(fabric))] if searched else []

    def of_part(
        i: int, progress: ProgressCallback
    ) -> tuple[list[Entry], list[Declined], tuple[str, ...], Charge | None]:
        if i < len(fabrics):
            return *of_fabric(i, progress), None
        other = alternatives[i - len(fabrics)]
        progress(f"search the fastest on {other.fabric.name} with {other.parameter}={_yes(other.value)}")
        return [], [], (), _fastest_charge(other.changed, criteria, cache)

    weights = list(map(search_weight, [*fabrics, *(one.fabric for one in alternatives)]))
    parts = each(of_part, len(weights), jobs=jobs, progress=progress, weights=weights)
    found, charges = parts[: len(fabrics)], [charge for *_, charge in parts[len(fabrics) :]]
    entries = [entry for kept, *_ in found for entry in kept]
    declined = [one for _, left, *_ in found for one in left]
    if not entries:
        raise UnsupportedError(declined[0].reason if len(declined) == 1 else f"no fabric can do {name} that way")
    entries.sort(key=lambda entry: (not entry.ranked, entry.total_s))
    ranked = [entry for entry in entries if entry.ranked]

    def swapped(variation: Variation) -> Swaps:
        totals = [entry.total_s for entry in ranked]
        return swaps(variation, totals, [entry.under[variation.name].total_s for entry in ranked])

    flips = tuple(one for one in map(swapped, between) if one.pairs)
    decided = _decided(ranked, alternatives, charges)
    return Comparison(
        name,
        tuple(sizes),
        tuple(entries),
        tuple(declined),
        algorithm,
        beside=other,
        flips=flips,
        sensitivity=tuple(map(swapped, varied)) if vary else None,
        decided=tuple(decided),
        not_tried={fabric.name: lines for fabric, (_, _, lines, _) in zip(fabrics, found, strict=True) if lines},
    )


class _Alternative(NamedTuple):
    """A fabric with another value of a parameter whose default may decide a rank."""

    fabric: Fabric
    parameter: str
    value: Any

    @property
    def changed(self) -> Fabric:
        """The fabric with that value."""
        return replace(self.fabric, **{self.parameter: self.value})  # type: ignore[type-var]


def _alternatives(fabric: Fabric) -> list[_Alternative]:
    """Those of a whole machine that differ from its defaults."""
    if fabric.machine is not fabric:
        return []
    known = fabric.parameters
    return [_Alternative(fabric, *one) for one in fabric.alternatives.items() if known[one[0]] != one[1]]


def _fastest_charge(fabric: Fabric, criteria: Criteria, cache: StepCache) -> Charge | None:
    """The fastest algorithm and its time, or None if the fabric can carry none.

    Args:
        fabric: to search on.
        criteria: of the comparison.
        cache: of steps and circuits.
    """
    wanted, sizes, rule, judge = criteria.wanted, criteria.sizes, criteria.rule, criteria.judge
    candidates = Candidates(fabric, wanted, None, criteria.assumed, rule, cache, judge=judge)
    found = candidates.fastest(sizes)
    cache.clear_unshared()
    if found is None:
        return None
    return Charge(Plan(found.profile.plan, sum(sizes)).algorithm, found.lower_bound_s(sizes))


def _decided(
    entries: Sequence[Entry], alternatives: Sequence[_Alternative], charges: Sequence[Charge | None]
) -> Iterator[Decided]:
    """Defaults of the fabrics that decide their rank.

    Args:
        entries: fastest first.
        alternatives: of all fabrics.
        charges: the fastest with each of them.
    """
    best: dict[str, Entry] = {}
    for entry in entries:
        best.setdefault(entry.fabric.name, entry)
    for name, entry in best.items():
        for other, charge in zip(alternatives, charges, strict=True):
            if other.fabric != entry.fabric or charge is None:
                continue
            rank, other_rank = (
                1 + sum(one.total_s < took_s * (1 - 1e-9) for key, one in best.items() if key != name)
                for took_s in (entry.total_s, charge.total_s)
            )
            if rank != other_rank:
                default = entry.fabric.parameters[other.parameter]
                yield Decided(name, other.parameter, _yes(default), _yes(other.value), charge, rank, other_rank)


def _yes(value: Any) -> Any:
    """A switch as users write it."""
    return ("no", "yes")[value] if isinstance(value, bool) else value


def compare(
    fabrics: Fabric | str | Iterable[Fabric | str],
    collective: str | Request,
    size: str | float | Sequence[str | float],
    *,
    nodes: int | None = None,
    node_rate: str | float | None = None,
    algorithm: str = "auto",
    engine: str = "closed_form",
    assumptions: str | Assumptions = DEFAULT_SET,
    optics: str | None = None,
    ignore_light: bool = False,
    **assumed: Any,
) -> polars.DataFrame:
    """Compare fabrics; every plan is verified.

    Args:
        fabrics: fabrics, or texts "name:key=value,..."; a single one may stand alone.
        collective: such as "all_reduce".
        size: message of every rank, or several that follow each other: "100 MB" or bytes.
        nodes: of every fabric; a text is scaled to them, and a fabric without such a shape is left out [count].
        node_rate: rate of every node, "800 Gb/s" or a number [bit/s]; None: that of the fabric's paper.
        algorithm: a name for all, "auto" (the fastest of each fabric), "main" (also that of its paper) or "all".
        engine: that times the plans: closed_form, flow or packet.
        assumptions: named set of time assumptions, or a custom set; it chooses algorithms and charges times.
        optics: preset of the light budget that plans must close to be chosen and ranked, such as "typical"; None: the values
            of the paper where they suffice, else the typical ones.
        ignore_light: choose and rank without regard to light.
        assumed: single assumptions to change, as `Plan.simulate` takes them.
    Returns: one row a plan, fastest first: fabric, algorithm, total_s, verified, ...; its print shows quantities with units
        and names the fabrics that were left out.
    Raises: ParameterError, UnknownNameError, FabricError; UnsupportedError: no fabric can carry it.
    """
    from opticcl.plans.rows import Rows

    nodes = None if nodes is None else whole_number(nodes, "compare: nodes")
    rate = None if node_rate is None else quantity(node_rate, "bit/s", "compare: node_rate")
    if nodes is not None and nodes < 1:
        raise ParameterError(f"compare: nodes: {nodes} nodes; there is at least 1")
    if rate is not None and rate <= 0:
        raise ParameterError(f"compare: node_rate: {node_rate!r} is not positive; try '800 Gb/s'")
    built, excluded = build_fabrics(one_or_more(fabrics), nodes, rate)
    found = compare_plans(
        [fabric for _, fabric in built],
        collective,
        [message_size(given) for given in one_or_more(size)],
        algorithm=as_text(algorithm, "algorithm", "auto"),
        assumptions=assumptions_of(assumptions, **assumed),
        engine=as_text(engine, "engine", "closed_form"),
        rule=light_rule([fabric for _, fabric in built], optics, ignore_light),
    )
    rows = Rows(found.rows(), infer_schema_length=None)
    rows.notes = tuple(map(str, replace(found, excluded=tuple(excluded)).left_out))
    return rows
