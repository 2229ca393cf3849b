"""What a comparison of fabrics finds: an entry for each plan, the algorithms that fabrics decline, ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isclose
from shlex import quote
from typing import Any

from opticcl.assumptions import SETS, Assumptions
from opticcl.ir import Fabric, Timeline, Verdict
from opticcl.ir.verdict import VERDICTS, VERIFIED, Judgement
from opticcl.plans.division import Division
from opticcl.plans.equal import Equal
from opticcl.plans.hardware import bill_record
from opticcl.plans.light import Light
from opticcl.plans.machines import ExcludedFabric, specification
from opticcl.plans.plan import Plan
from opticcl.plans.ranks import Charge, Decided, Swaps, Variation, is_tie, ranks
from opticcl.registry import canonical
from opticcl.simulate import Profile, moved_share
from opticcl.simulate.bottleneck import Bottleneck
from opticcl.units import counted, format_bytes, format_rate, format_seconds, in_columns

__all__ = ["Comparison", "Declined", "Entry", "reason_unranked"]


def reason_unranked(verdict: Judgement, light: Light, is_reference: bool) -> str:
    """Why plans have no rank.

    >>> reason_unranked("right", Light(-3.0, "typical", "plan"), False)
    'light does not close: -3.0 dB (typical)'

    Args:
        verdict: on them.
        light: with the least margin.
        is_reference: whether their fabric cannot be built.
    """
    if verdict != "right":
        return "the plan is wrong" if verdict == "wrong" else "not judged"
    if is_reference:
        return "a reference: it cannot be built"
    return f"light does not close: {light.margin_db:+.1f} dB ({light.optics})"


BESIDE = (*SETS, "as_built")
"""Variations whose times stand in the rows; those of single keys do not."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One plan of a comparison.

    Args:
        fabric: that the plan runs on.
        plan: the plan.
        profile: its time for any message size.
        timelines: its time for each message, in the order given.
        verdict: on the plan.
        light: margin of the circuits of the plan.
        ranked: whether it has a rank: the plan is right, its light closes or is ignored, and the fabric is no reference.
        built: the fabric as built, where it is ranked at another rate.
        is_reference: whether the fabric stands beside others as what cannot be built.
        root: rank that the collective starts or ends at; 0 where it has none.
        bottleneck: the busiest part of the machine; None if nothing is sent or the plan is wrong.
        under: time under other assumptions, by the name of the variation.
    """

    fabric: Fabric
    plan: Plan
    profile: Profile
    timelines: tuple[Timeline, ...]
    verdict: Verdict
    light: Light
    ranked: bool
    built: Fabric
    is_reference: bool = False
    root: int = 0
    bottleneck: Bottleneck | None = None
    under: Mapping[str, Charge] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Entry {self.plan.algorithm} on {self.fabric.name}: {format_seconds(self.total_s)}, {self.verdict.verdict}>"

    @property
    def total_s(self) -> float:
        """Time of all messages one after the other [s]."""
        return sum(t.total_s for t in self.timelines)

    @property
    def rate_factor(self) -> float:
        """Rate of a node over that of the fabric as built."""
        return self.fabric.node_rate_bits_per_s / self.built.node_rate_bits_per_s

    @property
    def no_rank(self) -> str:
        """Why it has no rank; "" if it has one."""
        return "" if self.ranked else reason_unranked(self.verdict.verdict, self.light, self.is_reference)

    @property
    def command(self) -> str:
        """The command that compiles the plan, beside the plugins of this call; "" for groups, which no command compiles."""
        if self.fabric.num_members > 1:
            return ""
        collective = self.plan.schedule.collective.name
        size = f" -s {self.plan.size_bytes}" if self.plan.size_bytes else ""
        root = f" --root {self.root}" if self.root else ""
        where = quote(specification(self.fabric))
        return f"opticcl compile -f {where} -c {collective} -a {quote(self.plan.algorithm)}{size}{root}"

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
            "verified": VERIFIED[self.verdict.verdict],
            "node_rate_bits_per_s": fabric.node_rate_bits_per_s,
            "verdict": self.verdict.verdict,
            "no_rank": self.no_rank or None,
            "built_node_rate_bits_per_s": self.built.node_rate_bits_per_s,
            "rate_factor": self.rate_factor,
            **{f"{name}_s": charge.total_s for name, charge in self.under.items() if name in BESIDE},
            **{f"{name}_algorithm": charge.algorithm for name, charge in self.under.items() if name in BESIDE},
            "specification": specification(fabric),
            "command": self.command or None,
            "total_bytes": self.plan.size_bytes,
            **self.totals(),
            "algorithm_bytes_per_s": self.algorithm_bytes_per_s,
            "bus_bytes_per_s": self.bus_bytes_per_s,
            "bottleneck": busiest and busiest.name,
            "bottleneck_bytes": busiest.carried_bytes if busiest else 0.0,
            "bottleneck_utilisation": busiest.utilisation if busiest else 0.0,
            "num_nodes": fabric.num_nodes,
            "groups": fabric.num_members,
            "num_steps": first.num_steps,
            "num_rounds": first.num_rounds,
            "lower_bound_s": self.lower_bound_s,
            "bound_by": self.bound_by,
            "gap": self.gap if self.gap < float("inf") else None,
            **self.light.record(),
            **bill_record(fabric),
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
        entries: one a plan: those with a rank, fastest first, then the others, fastest first.
        declined: algorithms that fabrics cannot carry.
        algorithm: as `compare_plans` takes it.
        excluded: fabrics that could not be built.
        notes: remarks on where the messages come from.
        division: of the workload that the messages are from; None if they are not from one.
        beside: the set of assumptions whose times stand beside; None: not evaluated.
        flips: keys that swap ranks between both sets, each alone.
        sensitivity: swaps of rank where a value is halved or doubled; None: not evaluated.
        decided: defaults of fabrics that decide their rank.
        not_tried: fabric -> what searches on it left out, a line each.
        equal: what the nodes of the fabrics have in common; None: they are as built.
        as_built: under which the times of the fabrics as built stand beside; None: not evaluated.
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
    not_tried: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    equal: Equal | None = None
    as_built: Variation | None = None

    def __repr__(self) -> str:
        fastest = self.entries[0]  # of those with a rank, if there are any
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

    def times_under(self, other: Variation | None) -> list[float | None]:
        """Time of each entry under a variation [s], None where it has none; empty if it was not evaluated."""
        if other is None:
            return []
        return [entry.under[other.name].total_s if other.name in entry.under else None for entry in self.entries]

    @property
    def ranked(self) -> tuple[Entry, ...]:
        """Entries that have a rank; they are the first."""
        return tuple(entry for entry in self.entries if entry.ranked)

    def stays_as_built(self, entry: Entry) -> bool:
        """Whether an entry is as built where the others are equal, as a network from a file is that has another rate."""
        equal, fabric = self.equal, entry.fabric
        if equal is None or not fabric.machine.is_fixed:
            return False
        return equal.kind != "rate" or not isclose(fabric.node_rate_bits_per_s, equal.value)

    def ranks(self) -> list[int | None]:
        """Rank of each entry; None: it has none."""
        return self._ranks_of([entry.total_s for entry in self.entries])

    def ranks_under(self, other: Variation | None) -> list[int | None]:
        """Rank of each entry under a variation, None where it has none; empty if it was not evaluated."""
        return self._ranks_of(self.times_under(other))

    def _ranks_of(self, times: Sequence[float | None]) -> list[int | None]:
        """Ranks of times among those of the entries that have one."""
        known = [i for i, entry in enumerate(self.entries) if entry.ranked and times and times[i] is not None]
        placed = dict(zip(known, ranks([float(times[i] or 0.0) for i in known]), strict=True))
        return [placed.get(i) for i in range(len(times))]

    @property
    def ties(self) -> tuple[Entry, ...]:
        """Entries with a rank that are within 5 % of the fastest of them."""
        ranked = self.ranked
        return tuple(entry for entry in ranked if is_tie(entry.total_s, ranked[0].total_s))

    @property
    def ok(self) -> bool:
        """Whether every plan is right."""
        return all(entry.verdict.ok for entry in self.entries)

    @property
    def left_out(self) -> tuple[ExcludedFabric, ...]:
        """Fabrics without any entry and algorithms that raised an exception, with reasons."""
        reasons = list(self.excluded)
        present = {entry.fabric.name for entry in self.entries}
        for one in self.declined:
            if one.failed or canonical(self.algorithm) != "all":
                reasons.append(ExcludedFabric(one.fabric, one.reason))
            elif one.fabric not in present:  # most algorithms decline most fabrics, so one line a fabric
                reason = f"no algorithm does {self.collective} on it; --algorithm NAME gives the reason"
                reasons.append(ExcludedFabric(one.fabric, reason))
        return tuple(dict.fromkeys(reasons))

    def rows(self) -> list[dict[str, Any]]:
        """One plain row an entry, in their order; `rank` is None where an entry has none.

        A row of which `stays_as_built` is true has not what the others have in common.
        """
        tied = {id(entry) for entry in self.ties}
        rows = [
            {**entry.record(), "rank": rank, "ties_with_fastest": id(entry) in tied}
            | ({"stays_as_built": True} if self.stays_as_built(entry) else {})
            for entry, rank in zip(self.entries, self.ranks(), strict=True)
        ]
        for other in filter(None, (self.beside, self.as_built)):
            for row, rank in zip(rows, self.ranks_under(other), strict=True):
                row[f"{other.name}_rank"] = rank
        return rows

    def record(self) -> dict[str, Any]:
        """Plain values, of which `opticcl compare --json` prints the answer in words too."""
        names = [entry.fabric.name for entry in self.entries]
        values: dict[str, Any] = {
            "equal": self.equal and self.equal.record(),
            "assumptions": self.assumed.record(),
            "rows": self.rows(),
            "left_out": [one.record() for one in self.left_out],
            "notes": list(self.notes),
            "not_tried": {fabric: list(lines) for fabric, lines in self.not_tried.items()},
            "flips": [one.record(names) for one in self.flips],
            "decided": [str(one) for one in self.decided],
        }
        if self.sensitivity is not None:
            values["sensitivity"] = [one.record(names) for one in self.sensitivity]
        return values | ({"workload": self.division.record()} if self.division else {})


def _cells(entry: Entry, other: Sequence[str]) -> tuple[str, ...]:
    """Texts of an entry: fabric, algorithm, nodes, node rate, time, time under other sets, verified."""
    fabric = entry.fabric
    nodes, rate, time = f"{fabric.num_nodes:,}", format_rate(fabric.node_rate_bits_per_s), format_seconds(entry.total_s)
    also = (format_seconds(entry.under[name].total_s) for name in other)
    return fabric.name, entry.plan.algorithm, nodes, rate, time, *also, VERDICTS[entry.verdict.verdict]
