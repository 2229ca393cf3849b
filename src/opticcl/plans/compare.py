"""Comparison of fabrics: every plan is compiled, verified and timed for the same messages."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from opticcl.assumptions import DEFAULT_SET, Assumptions
from opticcl.assumptions import assumptions as assumptions_of
from opticcl.collective import Request, as_request
from opticcl.errors import AlgorithmError, ParameterError, UnsupportedError
from opticcl.ir import Fabric, ProgressCallback, Timeline, no_progress
from opticcl.ir.step_cache import StepCache
from opticcl.plans.candidate import Candidate
from opticcl.plans.comparison import Comparison, Declined, Entry
from opticcl.plans.equal import Equal, on_ground
from opticcl.plans.light import DEFAULT_RULE, Light, LightRule, light_rule
from opticcl.plans.machines import build_fabrics, reason_left_out, search_weight
from opticcl.plans.plan import Plan
from opticcl.plans.ranks import Charge, Decided, Swaps, Variation, beside, keys_between, sensitivity, swaps
from opticcl.plans.search import MOST_STEP_BYTES, TIE, Search, at_any_rate
from opticcl.plans.times import timeline_of
from opticcl.processes import each
from opticcl.registry import as_text, canonical, one_or_more, whole_number, write_call
from opticcl.schedule import all_variants, generate
from opticcl.simulate import Profile, engine_options, profile
from opticcl.simulate.bottleneck import bottleneck, loads
from opticcl.units import message_size
from opticcl.verify.judge import Judge

if TYPE_CHECKING:
    from opticcl.plans.compared import Compared

__all__ = ["compare", "compare_plans"]


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
    equal: Equal | None = None,
    built: Sequence[Fabric] | None = None,
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
        equal: what the nodes of the fabrics have in common; None: they are as built.
        built: each fabric as built, whose time stands beside; None: not evaluated.
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
    other = beside(assumed)
    between = keys_between(assumed, other.assumed) if explain else []
    varied = sensitivity(assumed) if vary else []
    as_built = (
        None if built is None else Variation("as_built", assumed, machines=tuple(zip(fabrics, built, strict=True)))
    )
    variations = tuple(filter(None, (other, as_built, *between, *varied)))
    beside_others = any(not one.machine.is_reference for one in fabrics)
    contest = _Contest(wanted, sizes, canonical(algorithm), assumed, variations, rule, engine, beside_others)

    def of_fabric(i: int, progress: ProgressCallback) -> _Found:
        try:
            return contest.entries(fabrics[i], progress)
        except Exception as error:
            reason = reason_left_out(fabrics[i], error)
            return _Found(declined=[Declined(fabrics[i].name, algorithm, reason, failed=True)])

    weights = list(map(search_weight, fabrics))
    compared = each(of_fabric, len(fabrics), jobs=jobs, progress=progress, weights=weights)
    entries = [entry for one in compared for entry in one.entries]
    declined = [left for one in compared for left in one.declined]
    if not entries:
        failed = [one.reason for one in declined if one.failed or len(declined) == 1]
        raise UnsupportedError(failed[0] if failed else f"no fabric can do {name} that way")
    entries.sort(key=lambda entry: (not entry.ranked, not entry.is_reference, entry.total_s))
    ranked = [entry for entry in entries if entry.ranked]

    def swapped(variation: Variation) -> Swaps:
        totals = [entry.total_s for entry in ranked]
        return swaps(variation, totals, [entry.under[variation.name].total_s for entry in ranked])

    flips = tuple(one for one in map(swapped, between) if one.pairs)
    questions = _questions(ranked) if explain and contest.searches else []

    def of_question(i: int, progress: ProgressCallback) -> Decided | None:
        return contest.decided(questions[i], progress)

    decided = each(of_question, len(questions), jobs=jobs, progress=progress)
    return Comparison(
        name,
        tuple(sizes),
        tuple(entries),
        tuple(declined),
        algorithm,
        beside=other,
        flips=flips,
        sensitivity=tuple(map(swapped, varied)) if vary else None,
        decided=tuple(filter(None, decided)),
        not_tried={fabric.name: one.not_tried for fabric, one in zip(fabrics, compared, strict=True) if one.not_tried},
        equal=equal,
        as_built=as_built,
    )


class _Found(NamedTuple):
    """What a comparison finds on a fabric: entries, algorithms that it declines, and what the search left out."""

    entries: Sequence[Entry] = ()
    declined: Sequence[Declined] = ()
    not_tried: tuple[str, ...] = ()


class _Timed(NamedTuple):
    """A plan of a fabric: its time for any message size, the same under other assumptions, and its light if that is known."""

    times: Profile
    under: Mapping[str, Profile]
    light: Light | None = None


class _Contest:
    """Chooses, verifies and times the plans of every fabric by the same rules.

    Args:
        wanted: collective and root.
        sizes: messages, one after the other [bytes].
        algorithm: as `compare_plans` takes it.
        assumed: time assumptions.
        variations: other assumptions that each plan is charged under too.
        rule: the light that a plan must have to be chosen.
        engine: that times the plans.
        beside_others: whether a reference stands beside fabrics that are none.
    """

    def __init__(
        self,
        wanted: Request,
        sizes: Sequence[int],
        algorithm: str,
        assumed: Assumptions,
        variations: Sequence[Variation],
        rule: LightRule,
        engine: str,
        beside_others: bool,
    ) -> None:
        self.wanted, self.sizes, self.algorithm, self.assumed = wanted, sizes, algorithm, assumed
        self.variations, self.rule, self.engine, self.beside_others = variations, rule, engine, beside_others
        self._judge, self._cache = Judge(), StepCache(MOST_STEP_BYTES)

    @property
    def searches(self) -> bool:
        """Whether the fastest algorithm is searched."""
        return self.algorithm in ("auto", "main")

    def entries(self, fabric: Fabric, progress: ProgressCallback) -> _Found:
        """Entries of a fabric, verified and timed.

        An algorithm may raise an exception in a step that the search did not need, or its plan may be too large to be
        verified: then the next fastest takes its place.

        Args:
            fabric: that carries the collective.
            progress: called before each part of the work.
        """
        entries: list[Entry] = []
        declined: list[Declined] = []
        finished: set[str] = set()
        failed: set[str] = set()
        search = None
        if self.searches:
            progress(f"search the fastest on {fabric.name}")
            also = [one.assumed for one in self.variations if one.on(fabric) is fabric]
            search = self._search(fabric, self.assumed, also)
        again = True
        while again:
            again = False
            plans, left = self._named(fabric, progress) if search is None else self._fastest(search, failed)
            declined += [one for one in left if one not in declined]
            for timed in plans:
                schedule = timed.times.plan.schedule
                name = write_call(schedule.name, schedule.parameters)
                if name in finished:
                    continue
                try:
                    entries.append(self._entry(timed, progress))
                    finished.add(name)
                    continue
                except AlgorithmError as error:
                    declined.append(Declined(fabric.name, schedule.name, str(error), failed=True))
                except UnsupportedError as error:
                    declined.append(Declined(fabric.name, schedule.name, f"{name}: {error}"))
                failed.add(schedule.name)
                again = self.searches
        self._cache.clear_unshared()  # circuits, and steps that other fabrics do not have
        return _Found(entries, declined, () if search is None else search.not_tried)

    def decided(self, asked: _Question, progress: ProgressCallback) -> Decided | None:
        """Whether a default of a fabric decides its rank; None where it does not, or the alternative can carry nothing.

        The fastest plan with the alternative is no slower than the same plan. Where that keeps the rank, only plans that gain
        one are searched.

        Args:
            asked: fabric and alternative.
            progress: called before the search.
        """
        entry, other = asked.entry, asked.alternative
        progress(f"search the fastest on {other.fabric.name} with {other.parameter}={_yes(other.value)}")
        rank, where = asked.rank(entry.total_s), other.changed
        same = self._search(where, self.assumed, algorithms=[entry.plan.algorithm])
        plan = same.fastest(self.sizes)
        keeps = plan is not None and same.suits(plan) and asked.rank(plan.lower_bound_s(self.sizes)) <= rank
        fastest = None
        if not keeps or rank > 1:
            search = self._search(where, self.assumed)
            fastest = search.fastest(self.sizes, below_s=asked.gains_below_s if keeps else inf)
            fastest = None if fastest is not None and keeps and not search.suits(fastest) else fastest
        self._cache.clear_unshared()
        if fastest is None:
            return None
        charge = Charge(self._plan(fastest.profile).algorithm, fastest.lower_bound_s(self.sizes))
        if (other_rank := asked.rank(charge.total_s)) == rank:
            return None
        default = _yes(entry.fabric.parameters[other.parameter])
        return Decided(entry.fabric.name, other.parameter, default, _yes(other.value), charge, rank, other_rank)

    def _search(
        self,
        where: Fabric,
        assumed: Assumptions,
        also: Sequence[Assumptions] = (),
        algorithms: Sequence[str] | None = None,
    ) -> Search:
        shared: dict[str, Any] = {"rule": self.rule, "judge": self._judge, "cache": self._cache}
        return Search(where, self.wanted, assumed, algorithms, also=also, **shared)

    def _plan(self, times: Profile) -> Plan:
        return Plan(times.plan, sum(self.sizes))

    def _fastest(self, search: Search, without: Collection[str]) -> tuple[list[_Timed], list[Declined]]:
        """The fastest plan, and that of the fabric's own algorithm if it is requested; algorithms that failed.

        Args:
            search: on the fabric.
            without: algorithms that it omits.
        """
        fabric, own = search.fabric, search.fabric.machine.algorithm
        wishes = (None, own) if self.algorithm == "main" and own else (None,)
        by_wish = {wish: search.fastest(self.sizes, algorithm=wish, without=without) for wish in wishes}
        failed = [Declined(fabric.name, name, why, failed=True) for name, why in search.failures.items()]
        fastest = {one.schedule.name: (wish, one) for wish, one in by_wish.items() if one is not None}
        if not fastest:
            why = f"no algorithm does {self.wanted.name} on {fabric.name}{search.why_none()}"
            return [], [Declined(fabric.name, self.algorithm, why)]
        under: dict[str | None, dict[str, Profile]] = {wish: {} for wish, _ in fastest.values()}
        for variation in self.variations:
            where = variation.on(fabric)
            same = where is fabric and variation.assumed is self.assumed
            if same or not variation.chooses_on(fabric):
                for wish, one in fastest.values():
                    under[wish][variation.name] = replace(one.profile, assumed=variation.assumed)
                continue
            if where is fabric:
                again = search.under(variation.assumed)
            elif at_any_rate(where) == at_any_rate(fabric):
                again = search.under(variation.assumed, where)
            else:
                again = self._search(where, variation.assumed)
            for wish, one in fastest.values():
                other = again.fastest(self.sizes, algorithm=wish, without=without)
                if variation.machines:
                    if other is not None and again.suits(other) and again.verdict(other).ok:
                        under[wish][variation.name] = other.profile
                else:
                    times = other.profile if other else profile(one.profile.plan, variation.assumed)
                    under[wish][variation.name] = times
        return [_Timed(one.profile, under[wish], search.light(one)) for wish, one in fastest.values()], failed

    def _named(self, fabric: Fabric, progress: ProgressCallback) -> tuple[list[_Timed], list[Declined]]:
        """Plans of the requested algorithm, or of all; those that the fabric declines.

        Args:
            fabric: that carries the collective.
            progress: called before each plan.
        """
        kept: list[_Timed] = []
        declined: list[Declined] = []
        also = [one.assumed for one in self.variations]
        for name in all_variants(self.wanted, fabric) if self.algorithm == "all" else (self.algorithm,):
            progress(f"compile {fabric.name} with {name}")
            try:
                one = Candidate(fabric, generate(name, self.wanted, fabric), self.assumed, self._cache, also)
                profiles = {other.name: self._profile_under(one, other) for other in self.variations}
                under = {variation: times for variation, times in profiles.items() if times is not None}
                kept.append(_Timed(one.profile_under(self.assumed), under))
            except (AlgorithmError, UnsupportedError) as error:
                declined.append(Declined(fabric.name, name, str(error), isinstance(error, AlgorithmError)))
        return kept, declined

    def _profile_under(self, one: Candidate, variation: Variation) -> Profile | None:
        """Time of a plan of a named algorithm under a variation.

        Args:
            one: the plan.
            variation: other assumptions, or another machine, which has the algorithm's plan for it.
        Returns: None where the plan for that machine would have no rank.
        Raises: AlgorithmError: the algorithm raised an exception there.
        """
        where = variation.on(one.fabric)
        if not variation.machines or where is one.fabric:
            return one.profile_under(variation.assumed, where)
        name = write_call(one.schedule.name, one.schedule.parameters)
        try:
            if at_any_rate(where) == at_any_rate(one.fabric):
                other = one.under(variation.assumed, where)
            else:
                other = Candidate(where, generate(name, self.wanted, where), variation.assumed, self._cache)
            times = other.profile_under(variation.assumed)
        except UnsupportedError:
            return None
        return times if self._judge(times.plan).ok and self.rule.allows(self.rule.of(times.plan)) else None

    def _entry(self, found: _Timed, progress: ProgressCallback) -> Entry:
        """A plan, verified and then timed.

        Args:
            found: the plan.
            progress: called before it is verified.
        """
        plan, times, sizes = self._plan(found.times), found.times, self.sizes
        progress(f"verify {plan.fabric.name} with {plan.schedule.name}")
        verdict, light = self._judge(plan.circuits), found.light or self.rule.of(plan.circuits)

        def timelines_of(one: Profile) -> tuple[Timeline, ...]:
            if verdict.verdict == "wrong":  # its time may be below the bound, and means nothing to other engines
                return tuple(one.timeline(size, bounded=False) for size in sizes)
            return tuple(timeline_of(one, size, self.engine) for size in sizes)

        timelines = timelines_of(times)
        charges = {
            name: Charge(self._plan(one).algorithm, sum(timeline.total_s for timeline in timelines_of(one)))
            for name, one in found.under.items()
        }
        is_reference = self.beside_others and plan.fabric.machine.is_reference
        ranked = verdict.ok and self.rule.allows(light) and not is_reference
        built = next((one.on(plan.fabric) for one in self.variations if one.machines), plan.fabric)
        entry = Entry(
            plan.fabric,
            plan,
            times,
            timelines,
            verdict,
            light,
            ranked,
            built,
            is_reference,
            self.wanted.root,
            under=charges,
        )
        if not verdict.ok:  # a wrong plan may occupy resources that do not exist
            return entry
        return replace(entry, bottleneck=bottleneck(plan.fabric, loads(plan.circuits, sum(sizes)), entry.total_s))


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


class _Question(NamedTuple):
    """Whether a default of a fabric decides its rank.

    Args:
        entry: the fastest of the fabric.
        alternative: of the fabric.
        others_s: times of the fastest plans of the other fabrics [s].
    """

    entry: Entry
    alternative: _Alternative
    others_s: Sequence[float]

    def rank(self, total_s: float) -> int:
        """Rank of a plan with that time [s] among the other fabrics, 1 for the least."""
        return 1 + sum(map(_is_less(total_s), self.others_s))

    @property
    def gains_below_s(self) -> float:
        """A time that every plan is below which gains a rank [s]."""
        ahead_s = max(filter(_is_less(self.entry.total_s), self.others_s), default=0.0)
        return ahead_s * (1 + 2 * TIE)


def _is_less(total_s: float) -> Callable[[float], bool]:
    """Whether another time is less than one [s]; equal times are not."""
    return lambda other_s: other_s < total_s * (1 - TIE)


def _questions(ranked: Sequence[Entry]) -> list[_Question]:
    """Of all defaults of fabrics whose rank they may decide.

    Args: ranked: fastest first.
    """
    best: dict[str, Entry] = {}
    for entry in ranked:
        best.setdefault(entry.fabric.name, entry)
    return [
        _Question(entry, other, [one.total_s for name, one in best.items() if name != entry.fabric.name])
        for entry in best.values()
        for other in _alternatives(entry.fabric)
        if len(best) > 1
    ]


def _yes(value: Any) -> Any:
    """A switch as users write it."""
    return ("no", "yes")[value] if isinstance(value, bool) else value


def compare(
    fabrics: Fabric | str | Iterable[Fabric | str],
    collective: str | Request,
    size: str | float | Sequence[str | float],
    *,
    nodes: int | None = None,
    equal: str | None = None,
    as_built: bool = False,
    algorithm: str = "auto",
    engine: str = "closed_form",
    assumptions: str | Assumptions = DEFAULT_SET,
    optics: str | None = None,
    ignore_light: bool = False,
    **assumed: Any,
) -> Compared:
    """Compare fabrics; every plan is verified.

    Args:
        fabrics: fabrics, or texts "name:key=value,..."; a single one may stand alone.
        collective: such as "all_reduce".
        size: message of every rank, or several that follow each other: "100 MB" or bytes.
        nodes: of every fabric; a text is scaled to them, and a fabric without such a shape is left out [count].
        equal: what the nodes of all fabrics have in common: "rate=800Gb/s", "cost=9000" (USD) or "power=100" (W); None: a rate
            of 800 Gb/s.
        as_built: rank fabrics at the rates that their papers, or their texts, give.
        algorithm: a name for all, "auto" (the fastest of each fabric), "main" (also that of its paper) or "all".
        engine: that times the plans: closed_form, flow or packet.
        assumptions: named set of time assumptions, or a custom set; it chooses algorithms and charges times.
        optics: preset of the light budget that plans must close to be chosen and ranked, such as "typical"; None: the values
            of the paper where they suffice, else the typical ones.
        ignore_light: choose and rank without regard to light.
        assumed: single assumptions to change, as `Plan.simulate` takes them.
    Returns: the plans, fastest first, with their verdicts and times; its print opens with the answer, and `frame()` has a row
        a plan: fabric, algorithm, total_s, verified, ...
    Raises: ParameterError, UnknownNameError, FabricError; UnsupportedError: no fabric can carry it.
    """
    from opticcl.plans.compared import Compared

    nodes = None if nodes is None else whole_number(nodes, "compare: nodes")
    if nodes is not None and nodes < 1:
        raise ParameterError(f"compare: nodes: {nodes} nodes; must be at least 1")
    built, excluded = build_fabrics(one_or_more(fabrics), nodes)
    ground, contenders, unequal = on_ground(built, equal, as_built)
    ranked = [one.fabric for one in contenders]
    compared = compare_plans(
        ranked,
        collective,
        [message_size(given) for given in one_or_more(size)],
        algorithm=as_text(algorithm, "algorithm", "auto"),
        assumptions=assumptions_of(assumptions, **assumed),
        engine=as_text(engine, "engine", "closed_form"),
        rule=light_rule(ranked, optics, ignore_light),
        equal=ground,
        built=None if ground is None else [one.built for one in contenders],
    )
    return Compared.of(replace(compared, excluded=(*excluded, *unequal)))
