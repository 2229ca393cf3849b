"""Fabrics side by side: every plan compiled, judged and timed for the same messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from opticcl.candidates import Candidates
from opticcl.circuits import lower
from opticcl.collective import Request, as_request
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.fabric import FABRICS, as_fabric
from opticcl.ir import Fabric, Timeline, Verdict
from opticcl.memory import Memory
from opticcl.plan import Plan
from opticcl.registry import as_text, canonical, one_or_more, write_call
from opticcl.schedule import all_variants, generate
from opticcl.simulate import Assumptions, Profile, assumptions, moved_share, profile
from opticcl.simulate.assumptions import as_dict
from opticcl.simulate.bottleneck import Bottleneck, bottleneck, loads
from opticcl.units import counted, format_bytes, format_rate, format_seconds, in_columns, message_size
from opticcl.verify.judge import Judge

if TYPE_CHECKING:
    import polars

__all__ = ["Comparison", "Declined", "Entry", "compare", "compare_plans"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One plan of a comparison.

    Args:
        fabric: where.
        plan: what.
        profile: its time for any message size.
        timelines: its time for each message, in the order given.
        verdict: whether it is right.
        bottleneck: the part of the machine that is busy longest; None if nothing is, or if the plan is wrong.
    """

    fabric: Fabric
    plan: Plan
    profile: Profile
    timelines: tuple[Timeline, ...]
    verdict: Verdict
    bottleneck: Bottleneck | None = None

    def __repr__(self) -> str:
        judged = "verified" if self.verdict.ok else "wrong"
        return f"<Entry {self.plan.algorithm} on {self.fabric.name}: {format_seconds(self.total_s)}, {judged}>"

    @property
    def total_s(self) -> float:
        """Time of all messages one after the other [s]."""
        return sum(t.total_s for t in self.timelines)

    @property
    def lower_bound_s(self) -> float:
        """No algorithm on this fabric can take less [s]."""
        return sum(t.lower_bound_s for t in self.timelines)

    @property
    def algorithm_bytes_per_s(self) -> float:
        """Messages over their time, "algbw" of nccl-tests; 0 if they take none [byte/s]."""
        return self.plan.size_bytes / self.total_s if self.total_s else 0.0

    @property
    def bus_bytes_per_s(self) -> float:
        """What a node's ports carry at least for that, "busbw" of nccl-tests: comparable with their rate [byte/s]."""
        return self.algorithm_bytes_per_s * moved_share(self.plan.schedule.collective)

    def totals(self) -> dict[str, float]:
        """Time of each part over all messages [s], by name."""
        return {part: sum(t.totals()[part] for t in self.timelines) for part in Timeline.PARTS}


@dataclass(frozen=True, slots=True)
class Declined:
    """A pair of fabric and algorithm that do not go together, and why."""

    fabric: str
    algorithm: str
    reason: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Entries, fastest first, and what was declined.

    Args:
        collective: what is compared.
        sizes: messages [bytes].
        entries: fastest first.
        declined: pairs left out, with reasons.
    """

    collective: str
    sizes: tuple[int, ...]
    entries: tuple[Entry, ...]
    declined: tuple[Declined, ...]

    def __repr__(self) -> str:
        fastest = self.entries[0]
        return (
            f"<Comparison {self.collective} of {format_bytes(sum(self.sizes))}: {counted(len(self.entries), 'plan')}, "
            f"fastest {fastest.plan.algorithm} on {fastest.fabric.name} in {format_seconds(fastest.total_s)}>"
        )

    def __str__(self) -> str:
        head = ("fabric", "algorithm", "nodes", "node rate", "time", "verified")
        return in_columns([head, *map(_cells, self.entries)])

    def rows(self) -> list[dict[str, Any]]:
        """One plain row an entry, fastest first."""
        return [_row(entry, self.sizes) for entry in self.entries]


def compare_plans(
    fabrics: Iterable[Fabric],
    collective: str | Request,
    sizes: Sequence[int],
    *,
    algorithm: str = "auto",
    assumed: Assumptions | None = None,
    engine: str = "closed_form",
    progress: Callable[[str], None] = lambda text: None,
) -> Comparison:
    """Compile, judge and time every fabric.

    Args:
        fabrics: what to compare.
        collective: its name, or a request with a root.
        sizes: messages of every rank, one after the other [bytes].
        algorithm: a name for all; "auto" keeps each fabric's fastest; "main" keeps beside it the one that its paper brings
            along; "all" keeps every algorithm it can carry.
        assumed: what times rest on.
        engine: what times are taken with; the fastest algorithm is chosen by the closed form all the same.
        progress: told what is being done.
    Raises: ParameterError: no fabrics or no sizes. UnsupportedError: no fabric can carry it.
    """
    wanted = as_request(collective)
    name, fabrics = wanted.name, list(fabrics)
    if not fabrics:
        raise ParameterError("compare: no fabric is given; give at least one, such as 'ideal:nodes=8'")
    if not sizes:
        raise ParameterError("compare: no message sizes; give at least one")
    assumed = assumed or assumptions()
    if name == "barrier":
        sizes = [0]  # it tells that all are there, and nothing else

    def look(fabric: Fabric) -> tuple[list[tuple[Plan, Profile]], list[Declined]]:
        return _plans(fabric, wanted, sizes, canonical(algorithm), assumed, memory, progress)

    def judge(pair: tuple[Plan, Profile]) -> Entry:
        plan, times = pair
        progress(f"verify {plan.fabric.name} with {plan.schedule.name}")
        timelines = tuple(_timeline(plan, times, size, engine) for size in sizes)
        entry = Entry(plan.fabric, plan, times, timelines, verdict_on(plan.circuits))
        if not entry.verdict.ok:  # what a wrong plan occupies may not exist
            return entry
        return replace(entry, bottleneck=bottleneck(plan.fabric, loads(plan.circuits, sum(sizes)), entry.total_s))

    verdict_on, memory = Judge(), Memory()
    found = list(map(look, fabrics))
    kept = [pair for pairs, _ in found for pair in pairs]
    declined = [one for _, left in found for one in left]
    if not kept:
        raise UnsupportedError(declined[0].reason if len(declined) == 1 else f"no fabric can do {name} that way")
    entries = list(map(judge, kept))
    entries.sort(key=lambda e: e.total_s)
    return Comparison(name, tuple(sizes), tuple(entries), tuple(declined))


def _plans(
    fabric: Fabric,
    wanted: Request,
    sizes: Sequence[int],
    algorithm: str,
    assumed: Assumptions,
    memory: Memory,
    progress: Callable[[str], None],
) -> tuple[list[tuple[Plan, Profile]], list[Declined]]:
    """The plans of one fabric that a comparison keeps, and what it declines."""
    kept: list[tuple[Plan, Profile]] = []
    declined: list[Declined] = []
    if algorithm in ("auto", "main"):
        progress(f"look for the fastest on {fabric.name}")
        candidates = Candidates(fabric, wanted, all_variants(wanted, fabric), assumed, memory=memory)
        found = [candidates.fastest(sizes)]
        own = FABRICS.get(fabric.name).own
        if algorithm == "main" and own:
            found.append(candidates.fastest(sizes, algorithm=own))
        profiles = {one.schedule.name: one.profile for one in found if one is not None}
        if not profiles:
            why = f"no algorithm does {wanted.name} on {fabric.name}{candidates.why_none()}"
            return [], [Declined(fabric.name, algorithm, why)]
        return [(Plan(times.plan, sum(sizes)), times) for times in profiles.values()], []
    for candidate in all_variants(wanted, fabric) if algorithm == "all" else (algorithm,):
        progress(f"compile {fabric.name} with {candidate}")
        try:
            schedule = memory.of_schedule(generate(candidate, wanted, fabric))
            circuits = memory.of_plan(lower(fabric, schedule))
            kept.append((Plan(circuits, sum(sizes)), profile(circuits, assumed)))
        except UnsupportedError as error:
            declined.append(Declined(fabric.name, candidate, str(error)))
    return kept, declined


def _timeline(plan: Plan, times: Profile, size_bytes: int, engine: str) -> Timeline:
    if canonical(engine) == "closed_form":
        return times.timeline(size_bytes)
    return replace(plan, size_bytes=size_bytes).simulate(engine, **as_dict(times.assumed))


def compare(
    fabrics: Fabric | str | Iterable[Fabric | str],
    collective: str | Request,
    size: str | float | Sequence[str | float],
    *,
    algorithm: str = "auto",
    engine: str = "closed_form",
    preset: str = "default",
    **assumed: Any,
) -> polars.DataFrame:
    """Fabrics side by side, fastest first, every plan verified.

    Args:
        fabrics: fabrics, or texts "name:key=value,..."; one alone will do.
        collective: "all_reduce".
        size: message of every rank, or several that follow each other: "100 MB" or bytes.
        algorithm: a name for all, "auto" (each fabric's fastest), "main" (and its paper's own) or "all".
        engine: what times are taken with: closed_form, flow or packet.
        preset, assumed: what times rest on, as `Plan.simulate` takes them.
    Returns: one row a plan: fabric, algorithm, total_s, node_rate_bits_per_s, verified, ...
    Raises: ParameterError, UnknownNameError, FabricError; UnsupportedError: no fabric can carry it.
    """
    import polars

    found = compare_plans(
        [as_fabric(given) for given in one_or_more(fabrics)],
        collective,
        [message_size(given) for given in one_or_more(size)],
        algorithm=as_text(algorithm, "algorithm", "auto"),
        assumed=assumptions(as_text(preset, "preset", "default"), **assumed),
        engine=as_text(engine, "engine", "closed_form"),
    )
    return polars.DataFrame(found.rows())


def _cells(entry: Entry) -> tuple[str, ...]:
    """An entry for people: fabric, algorithm, nodes, node rate, time, verified."""
    fabric = entry.fabric
    nodes, rate, time = f"{fabric.num_nodes:,}", format_rate(fabric.node_rate_bits_per_s), format_seconds(entry.total_s)
    return fabric.name, entry.plan.algorithm, nodes, rate, time, "yes" if entry.verdict.ok else "NO"


def _row(entry: Entry, sizes: Sequence[int]) -> dict[str, Any]:
    first, fabric, fullest = entry.timelines[0], entry.fabric, entry.bottleneck
    return {  # polars prints the first four and the last four
        "fabric": fabric.name,
        "algorithm": entry.plan.algorithm,
        "total_s": entry.total_s,
        "verified": entry.verdict.ok,
        "node_rate_bits_per_s": fabric.node_rate_bits_per_s,
        "specification": write_call(fabric.name, {k: v for k, v in fabric.parameters.items() if v is not None}),
        "total_bytes": sum(sizes),
        **entry.totals(),
        "algorithm_bytes_per_s": entry.algorithm_bytes_per_s,
        "bus_bytes_per_s": entry.bus_bytes_per_s,
        "bottleneck": fullest and fullest.name,
        "bottleneck_bytes": fullest.carried_bytes if fullest else 0.0,
        "bottleneck_utilisation": fullest.utilisation if fullest else 0.0,
        "num_nodes": fabric.num_nodes,
        "num_steps": first.num_steps,
        "num_rounds": first.num_rounds,
        "lower_bound_s": entry.lower_bound_s,
    }
