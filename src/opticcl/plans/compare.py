"""Comparison of fabrics: every plan is compiled, verified and timed for the same messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from opticcl.assumptions import DEFAULT_SET, SETS, Assumptions
from opticcl.assumptions import assumptions as assumptions_of
from opticcl.circuits import lower
from opticcl.collective import Request, as_request
from opticcl.errors import AlgorithmError, ParameterError, UnsupportedError
from opticcl.ir import Fabric, ProgressCallback, Timeline, Verdict, no_progress
from opticcl.ir.step_cache import StepCache
from opticcl.plans.hardware import hardware_of
from opticcl.plans.machines import ExcludedFabric, build_fabrics, num_elements
from opticcl.plans.plan import Plan
from opticcl.plans.ranks import Charge, Decided, Swaps, Variation, beside, keys_between, ranks, sensitivity, swaps
from opticcl.plans.search import Candidates
from opticcl.plans.times import timeline_of
from opticcl.processes import each
from opticcl.registry import as_text, canonical, one_or_more, parse_call, whole_number, write_call
from opticcl.schedule import all_variants, generate
from opticcl.simulate import PlanFacts, Profile, engine_options, moved_share, profile
from opticcl.simulate.bottleneck import Bottleneck, bottleneck, loads
from opticcl.traces.division import Division
from opticcl.units import (
    counted,
    format_bytes,
    format_rate,
    format_seconds,
    in_columns,
    message_size,
    quantity,
)
from opticcl.verify.judge import Judge

if TYPE_CHECKING:
    import polars

__all__ = ["Comparison", "Declined", "Entry", "compare", "compare_plans"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One plan of a comparison.

    Args:
        fabric: that the plan runs on.
        plan: the plan.
        profile: its time for any message size.
        timelines: its time for each message, in the order given.
        verdict: on the plan.
        bottleneck: the busiest part of the machine; None if nothing is sent or the plan is wrong.
        under: time under other assumptions, by the name of the variation.
    """

    fabric: Fabric
    plan: Plan
    profile: Profile
    timelines: tuple[Timeline, ...]
    verdict: Verdict
    bottleneck: Bottleneck | None = None
    under: Mapping[str, Charge] = field(default_factory=dict)

    def __repr__(self) -> str:
        verdict = "verified" if self.verdict.ok else "wrong"
        return f"<Entry {self.plan.algorithm} on {self.fabric.name}: {format_seconds(self.total_s)}, {verdict}>"

    @property
    def total_s(self) -> float:
        """Time of all messages one after the other [s]."""
        return sum(t.total_s for t in self.timelines)

    @property
    def lower_bound_s(self) -> float:
        """Lower bound on the time of any algorithm on this fabric [s]."""
        return sum(t.lower_bound_s for t in self.timelines)

    @property
    def bound_by(self) -> str:
        """What binds the lower bound of the message that takes longest, in words."""
        return max(self.timelines, key=lambda t: t.lower_bound_s).bound_by

    @property
    def gap(self) -> float:
        """Time over its lower bound; 1 where both are 0, infinite where the bound alone is."""
        if self.lower_bound_s:
            return self.total_s / self.lower_bound_s
        return float("inf") if self.total_s else 1.0

    @property
    def algorithm_bytes_per_s(self) -> float:
        """Messages over their time, "algbw" of nccl-tests; 0 if they take no time [byte/s]."""
        return self.plan.size_bytes / self.total_s if self.total_s else 0.0

    @property
    def bus_bytes_per_s(self) -> float:
        """Least rate through a node's ports for that, "busbw" of nccl-tests: comparable with the node rate [byte/s]."""
        return self.algorithm_bytes_per_s * moved_share(self.plan.schedule.collective)

    def totals(self) -> dict[str, float]:
        """Time of each part over all messages [s], by name."""
        return {part: sum(t.totals()[part] for t in self.timelines) for part in Timeline.PARTS}

    def record(self) -> dict[str, Any]:
        """Plain values: one row of `opticcl compare --json`."""
        first, fabric, busiest = self.timelines[0], self.fabric, self.bottleneck
        return {  # in the order in which a print shows the columns
            "fabric": fabric.name,
            "algorithm": self.plan.algorithm,
            "total_s": self.total_s,
            "verified": self.verdict.ok,
            "node_rate_bits_per_s": fabric.node_rate_bits_per_s,
            **{f"{name}_s": charge.total_s for name, charge in self.under.items() if name in SETS},
            **{f"{name}_algorithm": charge.algorithm for name, charge in self.under.items() if name in SETS},
            "specification": write_call(fabric.name, {k: v for k, v in fabric.parameters.items() if v is not None}),
            "total_bytes": self.plan.size_bytes,
            **self.totals(),
            "algorithm_bytes_per_s": self.algorithm_bytes_per_s,
            "bus_bytes_per_s": self.bus_bytes_per_s,
            "bottleneck": busiest and busiest.name,
            "bottleneck_bytes": busiest.carried_bytes if busiest else 0.0,
            "bottleneck_utilisation": busiest.utilisation if busiest else 0.0,
            "num_nodes": fabric.num_nodes,
            "num_steps": first.num_steps,
            "num_rounds": first.num_rounds,
            "lower_bound_s": self.lower_bound_s,
            "bound_by": self.bound_by,
            "gap": self.gap if self.gap < float("inf") else None,
            **hardware_of(fabric).record(),
        }


@dataclass(frozen=True, slots=True)
class Declined:
    """An algorithm that a fabric cannot carry.

    Args:
        fabric: name.
        algorithm: name with parameters.
        reason: why it cannot.
        failed: whether the algorithm raised an exception.
    """

    fabric: str
    algorithm: str
    reason: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """Plans of several fabrics, fastest first.

    Args:
        collective: name.
        sizes: messages of every rank, one after the other [bytes].
        entries: one a plan, fastest first.
        declined: algorithms that fabrics cannot carry.
        algorithm: as `compare_plans` takes it.
        excluded: fabrics that could not be built.
        notes: remarks on where the messages come from.
        division: of the workload that the messages are from; None if they are not from one.
        beside: the set of assumptions whose times stand beside; None: not evaluated.
        flips: keys that swap ranks between both sets, each alone.
        sensitivity: swaps of rank where a value is halved or doubled; None: not evaluated.
        decided: defaults of fabrics that decide their rank.
    """

    collective: str
    sizes: tuple[int, ...]
    entries: tuple[Entry, ...]
    declined: tuple[Declined, ...]
    algorithm: str = "auto"
    excluded: tuple[ExcludedFabric, ...] = ()
    notes: tuple[str, ...] = ()
    division: Division | None = None
    beside: Variation | None = None
    flips: tuple[Swaps, ...] = ()
    sensitivity: tuple[Swaps, ...] | None = None
    decided: tuple[Decided, ...] = ()

    def __repr__(self) -> str:
        fastest = self.entries[0]
        return (
            f"<Comparison {self.collective} of {format_bytes(sum(self.sizes))}: {counted(len(self.entries), 'plan')}, "
            f"fastest {fastest.plan.algorithm} on {fastest.fabric.name} in {format_seconds(fastest.total_s)}>"
        )

    def __str__(self) -> str:
        other = [] if self.beside is None else [self.beside.name]
        head = ("fabric", "algorithm", "nodes", "node rate", "time", *other, "verified")
        return in_columns([head, *(_cells(entry, other) for entry in self.entries)])

    @property
    def assumed(self) -> Assumptions:
        """Time assumptions that chose and charged the plans."""
        return self.entries[0].profile.assumed

    def times_beside(self) -> list[float]:
        """Time of each entry under the set beside [s]; empty if it was not evaluated."""
        return [] if self.beside is None else [entry.under[self.beside.name].total_s for entry in self.entries]

    def ranks(self) -> tuple[list[int], list[int]]:
        """Rank of each entry, and its rank under the set beside (empty if that was not evaluated)."""
        return ranks([entry.total_s for entry in self.entries]), ranks(self.times_beside())

    @property
    def ok(self) -> bool:
        """Whether every plan is right."""
        return all(entry.verdict.ok for entry in self.entries)

    @property
    def left_out(self) -> tuple[ExcludedFabric, ...]:
        """Fabrics without any entry and algorithms that raised an exception, with reasons."""
        found = list(self.excluded)
        present = {entry.fabric.name for entry in self.entries}
        for one in self.declined:
            if one.failed or canonical(self.algorithm) != "all":
                found.append(ExcludedFabric(one.fabric, one.reason))
            elif one.fabric not in present:  # most algorithms decline most fabrics, so one line a fabric
                reason = f"no algorithm does {self.collective} on it; --algorithm NAME gives the reason"
                found.append(ExcludedFabric(one.fabric, reason))
        return tuple(dict.fromkeys(found))

    def rows(self) -> list[dict[str, Any]]:
        """One plain row an entry, fastest first."""
        first, other = self.ranks()
        rows = [{**entry.record(), "rank": rank} for entry, rank in zip(self.entries, first, strict=True)]
        for row, rank in zip(rows, other, strict=False):
            row[f"{self.beside.name if self.beside else ''}_rank"] = rank
        return rows

    def record(self) -> dict[str, Any]:
        """Plain values, as `opticcl compare --json` prints them."""
        names = [entry.fabric.name for entry in self.entries]
        found: dict[str, Any] = {
            "assumptions": self.assumed.record(),
            "rows": self.rows(),
            "left_out": [one.record() for one in self.left_out],
            "notes": list(self.notes),
            "flips": [one.record(names) for one in self.flips],
            "decided": [str(one) for one in self.decided],
        }
        if self.sensitivity is not None:
            found["sensitivity"] = [one.record(names) for one in self.sensitivity]
        return found | ({"workload": self.division.record()} if self.division else {})


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
    judge, cache = Judge(), StepCache()
    other = beside(assumed)
    between = keys_between(assumed, other.assumed) if explain else []
    varied = sensitivity(assumed) if vary else []
    variations = [other, *between, *varied]

    def entry_of(plan: Plan, times: Profile, under: Mapping[str, Profile], progress: ProgressCallback) -> Entry:
        progress(f"verify {plan.fabric.name} with {plan.schedule.name}")
        timelines = tuple(timeline_of(times, size, engine) for size in sizes)
        charges = {
            name: Charge(
                Plan(one.plan, plan.size_bytes).algorithm,
                sum(timeline_of(one, size, engine).total_s for size in sizes),
            )
            for name, one in under.items()
        }
        entry = Entry(plan.fabric, plan, times, timelines, judge(plan.circuits), under=charges)
        if not entry.verdict.ok:  # a wrong plan may occupy resources that do not exist
            return entry
        return replace(
            entry, bottleneck=bottleneck(plan.fabric, loads(plan.circuits, sum(sizes), times.costs), entry.total_s)
        )

    def of_fabric(i: int, progress: ProgressCallback) -> tuple[list[Entry], list[Declined]]:
        made = _entries(fabrics[i], wanted, sizes, canonical(algorithm), assumed, variations, cache, progress, entry_of)
        cache.clear()  # other fabrics have schedules of their own
        return made

    searched = explain and canonical(algorithm) in ("auto", "main")
    alternatives = [*dict.fromkeys(one for fabric in fabrics for one in _alternatives(fabric))] if searched else []

    def of_part(i: int, progress: ProgressCallback) -> tuple[list[Entry], list[Declined], Charge | None]:
        if i < len(fabrics):
            return *of_fabric(i, progress), None
        other = alternatives[i - len(fabrics)]
        progress(f"search the fastest on {other.fabric.name} with {other.parameter}={_yes(other.value)}")
        return [], [], _fastest_charge(other.changed, wanted, sizes, assumed)

    weights = list(map(num_elements, [*fabrics, *(one.fabric for one in alternatives)]))
    parts = each(of_part, len(weights), jobs=jobs, progress=progress, weights=weights)
    found, charges = parts[: len(fabrics)], [charge for _, _, charge in parts[len(fabrics) :]]
    entries = [entry for kept, _, _ in found for entry in kept]
    declined = [one for _, left, _ in found for one in left]
    if not entries:
        raise UnsupportedError(declined[0].reason if len(declined) == 1 else f"no fabric can do {name} that way")
    entries.sort(key=lambda entry: entry.total_s)

    def swapped(variation: Variation) -> Swaps:
        totals = [entry.total_s for entry in entries]
        return swaps(variation, totals, [entry.under[variation.name].total_s for entry in entries])

    flips = tuple(one for one in map(swapped, between) if one.pairs)
    decided = _decided(entries, alternatives, charges)
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
    )


def _entries(
    fabric: Fabric,
    wanted: Request,
    sizes: Sequence[int],
    algorithm: str,
    assumed: Assumptions,
    variations: Sequence[Variation],
    cache: StepCache,
    progress: ProgressCallback,
    entry_of: Callable[[Plan, Profile, Mapping[str, Profile], ProgressCallback], Entry],
) -> tuple[list[Entry], list[Declined]]:
    """Entries of one fabric, and the algorithms that it declines.

    An algorithm may raise an exception in a step that the search did not need: then the next fastest takes its place.

    Args:
        fabric: that carries the collective.
        wanted: collective and root.
        sizes: messages [bytes].
        algorithm: as `compare_plans` takes it.
        assumed: time assumptions.
        variations: other assumptions that each plan is charged under too.
        cache: of steps and circuits.
        progress: called before each part of the work.
        entry_of: verifies and times a plan.
    """
    entries: list[Entry] = []
    declined: list[Declined] = []
    finished: set[str] = set()
    failed: set[str] = set()
    search_again = True
    while search_again:
        search_again = False
        plans, left = _plans(fabric, wanted, sizes, algorithm, assumed, variations, cache, progress, failed)
        declined += [one for one in left if one not in declined]
        for plan, times, under in plans:
            name = write_call(plan.schedule.name, plan.schedule.parameters)
            if name in finished:
                continue
            try:
                entries.append(entry_of(plan, times, under, progress))
                finished.add(name)
            except AlgorithmError as error:
                declined.append(Declined(fabric.name, plan.schedule.name, str(error), failed=True))
                failed.add(plan.schedule.name)
                search_again = algorithm in ("auto", "main")
    return entries, declined


def _plans(
    fabric: Fabric,
    wanted: Request,
    sizes: Sequence[int],
    algorithm: str,
    assumed: Assumptions,
    variations: Sequence[Variation],
    cache: StepCache,
    progress: ProgressCallback,
    without: Collection[str],
) -> tuple[list[tuple[Plan, Profile, Mapping[str, Profile]]], list[Declined]]:
    """The plans of one fabric that a comparison keeps, and the algorithms that it declines.

    Args:
        fabric: that carries the collective.
        wanted: collective and root.
        sizes: messages [bytes].
        algorithm: as `compare_plans` takes it.
        assumed: time assumptions.
        variations: other assumptions that each plan is charged under too.
        cache: of steps and circuits.
        progress: called before each part of the work.
        without: algorithms that a search for the fastest omits.
    """
    kept: list[tuple[Plan, Profile, Mapping[str, Profile]]] = []
    declined: list[Declined] = []
    if algorithm in ("auto", "main"):
        progress(f"search the fastest on {fabric.name}")
        variants = [one for one in all_variants(wanted, fabric) if parse_call(one)[0] not in without]
        also = [one.assumed for one in variations if one.on(fabric) is fabric]
        candidates = Candidates(
            fabric, wanted, variants, assumed, cache=cache, also=also, planned="digit_shifts" not in without
        )
        own = fabric.machine.algorithm
        wishes = (None, own) if algorithm == "main" and own else (None,)
        found = {wish: candidates.fastest(sizes, algorithm=wish) for wish in wishes}
        failed = [Declined(fabric.name, name, why, failed=True) for name, why in candidates.failures.items()]
        fastest = {one.schedule.name: (wish, one.profile) for wish, one in found.items() if one is not None}
        if not fastest:
            why = f"no algorithm does {wanted.name} on {fabric.name}{candidates.why_none()}"
            return [], [Declined(fabric.name, algorithm, why)]
        others: dict[str | None, dict[str, Profile]] = {wish: {} for wish, _ in fastest.values()}
        for variation in variations:
            if not variation.chooses_on(fabric):
                for wish, times in fastest.values():
                    others[wish][variation.name] = replace(times, assumed=variation.assumed)
                continue
            where = variation.on(fabric)
            again = candidates.under(variation.assumed) if where is fabric else None
            again = again or Candidates(
                where, wanted, variants, variation.assumed, cache=cache, planned="digit_shifts" not in without
            )
            for wish, under in others.items():
                one = again.fastest(sizes, algorithm=wish)
                chosen = one.profile.plan if one else next(p.plan for w, p in fastest.values() if w == wish)
                under[variation.name] = one.profile if one else profile(chosen, variation.assumed)
        for wish, times in fastest.values():
            kept.append((Plan(times.plan, sum(sizes)), times, others[wish]))
        return kept, failed
    for candidate in all_variants(wanted, fabric) if algorithm == "all" else (algorithm,):
        progress(f"compile {fabric.name} with {candidate}")
        try:
            schedule = cache.of_schedule(generate(candidate, wanted, fabric))
            circuits = cache.of_plan(lower(fabric, schedule))
            facts = PlanFacts(circuits, [one.assumed for one in variations])
            times = profile(circuits, assumed, facts)
            under = {one.name: _profile_on(one.on(fabric), facts, one.assumed) for one in variations}
            kept.append((Plan(circuits, sum(sizes)), times, under))
        except (AlgorithmError, UnsupportedError) as error:
            declined.append(Declined(fabric.name, candidate, str(error), isinstance(error, AlgorithmError)))
    return kept, declined


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


def _fastest_charge(fabric: Fabric, wanted: Request, sizes: Sequence[int], assumed: Assumptions) -> Charge | None:
    """The fastest algorithm and its time, or None if the fabric can carry none.

    Args:
        fabric: to search on.
        wanted: collective and root.
        sizes: messages [bytes].
        assumed: time assumptions.
    """
    found = Candidates(fabric, wanted, all_variants(wanted, fabric), assumed, planned=True).fastest(sizes)
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
    )
    rows = Rows(found.rows(), infer_schema_length=None)
    rows.notes = tuple(map(str, replace(found, excluded=tuple(excluded)).left_out))
    return rows


def _cells(entry: Entry, other: Sequence[str]) -> tuple[str, ...]:
    """Texts of an entry: fabric, algorithm, nodes, node rate, time, time under other sets, verified."""
    fabric = entry.fabric
    nodes, rate, time = f"{fabric.num_nodes:,}", format_rate(fabric.node_rate_bits_per_s), format_seconds(entry.total_s)
    also = (format_seconds(entry.under[name].total_s) for name in other)
    return fabric.name, entry.plan.algorithm, nodes, rate, time, *also, "yes" if entry.verdict.ok else "NO"
