"""What holds of the runs of a plan under all assumptions, computed once on first need.

A comparison costs the same plans under several sets of assumptions. Loads, messages and changes of circuits do not depend on
them; the longest latency depends on the law of latency alone. Only numbers are kept, not the circuits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.assumptions import Assumptions
from opticcl.ir import CircuitPlan, Circuits, Fabric, IntArray, Resource, Schedule, Transfers
from opticcl.ir.circuit_plan import listed_plan, same_circuits
from opticcl.ir.device_settings import DeviceSettings
from opticcl.ir.limits import ROUTES_AT_ONCE
from opticcl.ir.recent import Last
from opticcl.ir.representatives import SymmetricRounds
from opticcl.pairs import PairOrbits
from opticcl.simulate.closed_form.ends import StepEnds, StepPairs, ends_of_steps, pairs_of_steps
from opticcl.simulate.closed_form.routes import RoutesOfStep, RoutesOfWaves, longest_of_images_s, routes_of_step
from opticcl.simulate.latency import PathLatency, most_messages, path_latency
from opticcl.simulate.parts import control_s
from opticcl.simulate.standing import Standing

__all__ = [
    "BusiestNode",
    "PlanFacts",
    "RunFacts",
    "ScheduleFacts",
    "circuits_at_once",
    "slowest_load",
]


@dataclass(frozen=True, slots=True)
class BusiestNode:
    """What the busiest node and the pairs of a run of identical steps need, whatever circuits carry them.

    Args:
        most: transfers of the node that sends or receives most of them [count].
        chunks: that the busiest node sends or receives [chunks].
        ends: what senders and receivers have to do.
        link_chunks: chunks times links on their shortest paths; 0 on fabrics without a distance.
        partners: nodes that the node with the most of them sends to or receives from [count].
        changes: whether some pair did not stand in the run before.
        hops: links on shortest paths of all transfers; 0 as above [count].
        pair_hops: the same of different pairs; 0 where some pair has several transfers [count].
    """

    most: int
    chunks: float
    ends: StepEnds
    link_chunks: float = 0.0
    partners: int = 0
    changes: bool = False
    hops: int = 0
    pair_hops: int = 0


def circuits_at_once(fabric: Fabric) -> int:
    """Partners that a node may have at the same time [count]."""
    return fabric.num_nodes if fabric.is_packet_switched else fabric.ports_per_node * fabric.lasers_per_port


class ScheduleFacts:
    """Of the runs of a schedule on a fabric, without circuits.

    Args:
        schedule: of any algorithm.
        fabric: that it would run on.
        distances: whether links on shortest paths are counted.
        ends, pairs: of the first step of a run, by its index, where they are kept; None: evaluated here.
    """

    def __init__(
        self,
        schedule: Schedule,
        fabric: Fabric,
        *,
        distances: bool,
        ends: Callable[[int], StepEnds] | None = None,
        pairs: Callable[[int], StepPairs] | None = None,
    ) -> None:
        self._steps = schedule.steps
        self._ends = ends or (lambda i: ends_of_steps(self._steps, [i])[0])
        self._pairs_of_step = pairs or (lambda i: pairs_of_steps(self._steps, [i])[0])
        self._fabric, self._distances = fabric, distances
        self._classes = schedule.step_classes()
        self._splits = any(r.splits for r in fabric.resources)
        self._standing: PairOrbits | None = None
        # of the last step: translations, ends, and links of each transfer
        self._apart: tuple[tuple[bool, ...], tuple[IntArray, IntArray], IntArray | None] | None = None
        self._links_stay = fabric.links_set(Circuits.of([], [], [])) is not None
        self._found: list[BusiestNode | None] = []

    @cached_property
    def steps_behind(self) -> IntArray:
        """Steps of each run and all behind it that are known to have transfers, int64 (runs + 1,)."""
        sends = self._steps.sends[np.array([run.start for run in self._classes], np.int64)]
        steps = np.array([len(run) for run in self._classes], np.int64) * sends
        return np.concatenate([np.cumsum(steps[::-1])[::-1], [0]])

    def of_run(self, number: int) -> BusiestNode | None:
        """Of a run; None if it sends nothing.

        Args: number: of the run.
        """
        while len(self._found) <= number:
            self._found.append(self._of_step(self._classes[len(self._found)].start))
        if len(self._found) == len(self._classes):
            self._standing = self._apart = None
        return self._found[number]

    def _of_step(self, step: int) -> BusiestNode | None:
        ends = self._ends(step)
        if not ends.sent:
            return None
        # one signal may reach many, not come from many
        most, chunks = (
            (ends.received, ends.chunks_received)
            if self._splits
            else (max(ends.sent, ends.received), max(ends.chunks_sent, ends.chunks_received))
        )
        far, hops, partners, changes, differ = 0.0, 0, 0, False, False
        if self._distances or self._fabric.reconfiguration_s:
            pairs = self._pairs_of_step(step)
            if self._distances:
                far, hops = self._links(pairs)
            if self._fabric.reconfiguration_s:
                partners, changes, differ = self._pairs(step, pairs)
        return BusiestNode(most, float(chunks), ends, far, partners, changes, hops, hops if differ else 0)

    def _links(self, pairs: StepPairs) -> tuple[float, int]:
        """Links on shortest paths of all transfers of a step, times their chunks, and once each."""
        last = self._apart
        if last is None or last[0] != pairs.moves or not all(map(np.array_equal, last[1], (pairs.src, pairs.dst))):
            last = self._apart = pairs.moves, (pairs.src, pairs.dst), self._links_of_images(pairs)
        links = last[2]
        if links is None:
            return 0.0, 0
        return float((pairs.chunks * links.astype(float)).sum()), int((pairs.transfers * links).sum())

    def _links_of_images(self, pairs: StepPairs) -> IntArray | None:
        """Links on shortest paths of all images of each pair, int64 (n,); None where links are not passed one by one."""
        space, moves, images = self._steps.space, pairs.moves, [np.zeros(0, np.int64)]
        many = max(1, ROUTES_AT_ONCE // prod(r for r, moved in zip(space.radices, moves, strict=True) if moved))
        for at in range(0, len(pairs.src), many):
            begin, end = space.images_of_pairs(pairs.src[at : at + many], pairs.dst[at : at + many], moves)
            apart = self._fabric.distance(begin.ravel(), end.ravel())
            if apart is None:
                return None
            images.append(apart.reshape(begin.shape).sum(axis=1))
        return np.concatenate(images)

    def _pairs(self, step: int, some: StepPairs) -> tuple[int, bool, bool]:
        """Most partners of a node, whether some pair did not stand, and whether no pair has several transfers; the pairs of the
        step stand then.

        Args:
            step: its number.
            some: its transfers.
        """
        steps, fabric = self._steps, self._fabric
        pairs = PairOrbits.of(steps.space, some.moves, some.src, some.dst)
        differ = len(pairs) == int(some.transfers.sum())
        pairs = pairs.closed(steps.moves(step))  # boxes that are cut are no other pairs
        ends = pairs.ends[1:] if self._splits else pairs.ends
        partners = max(int(np.bincount(end).max()) for end in ends)
        changes = self._standing is None or not pairs.may_be_within(self._standing)
        if changes or partners > circuits_at_once(fabric):
            old = self._standing if self._links_stay else None
            self._standing = pairs if old is None else pairs.beside(old, fabric.ports_per_node == 1)
        return partners, changes, differ


@dataclass(slots=True)
class _Changes:
    """Changes of circuits, run after run.

    Args:
        standing: circuits that stand after the last of these runs.
        of_runs: of each run, of its first step and of the next one.
        set_by: step and round whose circuits stand.
    """

    standing: Standing
    of_runs: list[tuple[list[bool | None], list[bool | None]]] = field(default_factory=list)
    set_by: tuple[int, int] = (-1, -1)


class PlanFacts:
    """Of the runs of a plan.

    Args:
        plan: schedule, fabric and circuits.
        also: assumptions that it will be costed under, so that very many routes are evaluated once for all of them.
        ends: of a step, by its index, where they are kept; None: evaluated here.
    """

    def __init__(
        self, plan: CircuitPlan, also: Sequence[Assumptions] = (), ends: Callable[[int], StepEnds] | None = None
    ) -> None:
        self.plan = plan
        self.ends = ends or (lambda i: ends_of_steps(plan.schedule.steps, [i])[0])
        self.laws = tuple(path_latency(plan.fabric, assumed) for assumed in also)
        self._classes = plan.schedule.step_classes()
        self._listed = self._listed_plan()
        self._runs = [RunFacts(self, steps) for steps in self._classes]
        self._of_last = partial(Last, partial(_RoundFacts, plan.fabric), same_circuits)
        self.of_rounds = self._of_last()  # of the rounds of a step; the last ones again if they are equal
        self._step: tuple[int, Transfers, tuple[Circuits, ...] | None] | None = None
        self._changes: dict[DeviceSettings | None, _Changes] = {}

    def of_run(self, number: int) -> RunFacts:
        """Of a run.

        Args: number: of the run.
        """
        return self._runs[number]

    def changes(self, number: int, initial: DeviceSettings | None = None) -> Callable[[bool], list[bool | None]]:
        """As `Reconfiguration.of_changes` takes it.

        Args:
            number: of the run.
            initial: what stands at the start.
        """

        def changes(again: bool) -> list[bool | None]:
            known = self._changes.get(initial)
            if known is None:
                known = self._changes[initial] = _Changes(Standing(self.plan.fabric, initial))
            while len(known.of_runs) <= number:
                self._change(known)
            if len(known.of_runs) == len(self._runs):
                known.standing = Standing(self.plan.fabric)  # releases the circuits
            return known.of_runs[number][again]

        return changes

    def _change(self, known: _Changes) -> None:
        """Add the changes of the next run."""
        run = self._runs[len(known.of_runs)]
        twice: tuple[list[bool | None], list[bool | None]] = ([], [])
        for changed in twice[: min(2, len(run.steps))]:
            for number, circuits in enumerate(run.rounds):
                changed.append(known.standing.changes(circuits))
                if changed[-1] is not False:
                    known.set_by = run.steps.start, number
        known.of_runs.append(twice)

    def _listed_plan(self) -> CircuitPlan:
        """The plan, or rows of some senders: no sender has more, or is slower, than those whose images all others are.

        Where setting circuits takes time, or packets share links, those of all senders are compared.
        """
        fabric = self.plan.fabric
        compared = fabric.is_packet_switched or fabric.reconfiguration_s or fabric.shortest_control_s
        return listed_plan(self.plan, all_steps=not compared)

    def transfers(self, step: int) -> Transfers:
        """Transfers of a step, or of the senders that define it, kept until another one is evaluated."""
        kept = self._step
        if kept is None or kept[0] != step:
            kept = self._step = (step, self._listed.schedule.step(step), None)
        return kept[1]

    def rounds(self, step: int) -> tuple[Circuits, ...]:
        """Circuits of each round of a step, kept until another one is evaluated."""
        kept = self._step
        if kept is not None and kept[0] == step and kept[2] is not None:
            return kept[2]
        transfers, rounds = self.transfers(step), self._listed.rounds(step)
        self._step = (step, transfers, rounds)
        return rounds

    def _again(self, step: int, number: int) -> Circuits:
        """Circuits of a round of a step, which are not kept."""
        return self._listed.rounds(step)[number]

    def release(self) -> None:
        """Keep no transfers and no circuits, of those that stand their numbers.

        It may be called at any time, when an evaluation that was given up is collected.
        """
        for known in self._changes.values():
            step, number = known.set_by
            if step >= 0:
                known.standing.let_go(partial(self._again, step, number))
        self._step, self.of_rounds = None, self._of_last()
        self._listed = self._listed_plan()


class _RoundFacts:
    """Of the rounds of one step, which others may share."""

    def __init__(self, fabric: Fabric, rounds: tuple[Circuits, ...]) -> None:
        self._fabric, self.rounds = fabric, rounds
        self._amount: IntArray | None = None
        self._slowest: tuple[float, ...] = ()
        self._longest: dict[PathLatency, list[float]] = {}

    def slowest(self, amount: IntArray) -> tuple[float, ...]:
        """As in `Cost`, for the amount of each transfer [chunks]."""
        if self._amount is None or not np.array_equal(self._amount, amount):
            self._amount = amount
            self._slowest = tuple(slowest_load(self._fabric, amount, circuits.carrying()) for circuits in self.rounds)
        return self._slowest

    def longest_s(self, law: PathLatency) -> list[float]:
        """Latency of the longest path of each round [s]."""
        if law not in self._longest:
            self._longest[law] = [law.longest_s(circuits.carrying()) for circuits in self.rounds]
        return self._longest[law]


class RunFacts:
    """Of a run of identical steps.

    Args:
        facts: of the plan.
        steps: of the run.
    """

    def __init__(self, facts: PlanFacts, steps: range) -> None:
        self._facts, self._plan, self.steps = facts, facts.plan, steps
        self._longest: dict[PathLatency, list[float]] = {}

    @cached_property
    def routes(self) -> RoutesOfStep | RoutesOfWaves | None:
        """Routes of packets that are evaluated without a list of the step; None where they are not."""
        return routes_of_step(self._plan, self.steps.start)

    @property
    def transfers(self) -> Transfers:
        """Of the first step."""
        return self._facts.transfers(self.steps.start)

    @property
    def rounds(self) -> tuple[Circuits, ...]:
        """Circuits of each round of the first step."""
        return self._facts.rounds(self.steps.start)

    @cached_property
    def slowest(self) -> tuple[float, ...]:
        """As in `Cost`."""
        if self.routes is not None:
            return (self.routes.slowest(self._facts.laws),)
        return self._facts.of_rounds(self.rounds).slowest(self.transfers.size_chunks())

    @cached_property
    def messages(self) -> list[int]:
        """Messages of the node that sends most of them in each round [count]."""
        if self.routes is not None:
            return [self._facts.ends(self.steps.start).messages]
        transfers = self.transfers
        return [most_messages(transfers, circuits) for circuits in self.rounds]

    @cached_property
    def control_s(self) -> list[float]:
        """Duration of the control exchange of each round [s]."""
        if self.routes is not None:
            return [self._plan.fabric.shortest_control_s]
        transfers = self.transfers
        return [control_s(self._plan.fabric, transfers, circuits) for circuits in self.rounds]

    def longest_s(self, law: PathLatency) -> list[float]:
        """Latency of the longest path of each round [s].

        Args: law: of latencies.
        """
        if law not in self._longest:
            if law.constant:
                self._longest[law] = [law.base_s] * len(self.slowest)
            elif self.routes is not None:
                self._longest[law] = [self.routes.longest_s(law, self._facts.laws)]
            else:  # by all laws, as long as the circuits are at hand
                rounds, sets = self._facts.of_rounds(self.rounds), self._plan.symmetric(self.steps.start)
                for one in (law, *self._facts.laws):
                    if not one.constant:
                        self._longest[one] = _longest_of_sets(one, sets) if sets else rounds.longest_s(one)
        return self._longest[law]

    def summed_chunks(self, assumed: Assumptions) -> int:
        """Memory traffic of the sums of a step, on the rank with the most of it [chunks].

        Args: assumed: time assumptions.
        """
        return self._facts.ends(self.steps.start).summed_chunks(assumed.compute)


def _longest_of_sets(law: PathLatency, sets: Sequence[SymmetricRounds]) -> list[float]:
    """Latency of the longest path of each round, images of listed circuits included [s].

    Args:
        law: of latencies.
        sets: circuits of some senders, with moves of their own.
    """
    longest = []
    for every in zip(*(one.rounds for one in sets), strict=True):
        longest_s = law.base_s
        by_length = sorted(zip(every, sets, strict=True), key=lambda one: -law.longest_s(one[0]))
        for circuits, one in by_length:  # what is no longer than the longest before is not moved
            longest_s = longest_of_images_s(law, circuits, one.moves, longest_s)
        longest.append(longest_s)
    return longest


def _loads(circuits: Circuits, chunks: np.ndarray, links: int) -> np.ndarray:
    """What routes carry on each link, float64 (links,) [chunks].

    Args:
        circuits: the routes.
        chunks: of each route, float64 (routes,).
        links: number of them [count].
    """
    return np.bincount(circuits.hops, np.repeat(chunks, circuits.num_hops()), links)


def slowest_load(fabric: Fabric, amount: IntArray, circuits: Circuits) -> float:
    """Largest load of one wavelength [chunks], or on a packet fabric the time of the busiest link [s a byte of chunk].

    Args:
        fabric: that the circuits are on.
        amount: of each transfer of the step, int or float (n,) [chunks].
        circuits: of the round.
    """
    if 4 * len(circuits) > len(amount):  # a large part of the step: count in a table of all transfers
        carried, row = np.arange(len(amount)), circuits.transfer
    else:
        carried, row = np.unique(circuits.transfer, return_inverse=True)
    if fabric.is_packet_switched:
        return _busiest_link(fabric, amount[circuits.transfer] / np.bincount(row)[row], circuits)
    wavelengths = np.bincount(row, fabric.wavelengths_carried(circuits), minlength=len(carried))
    served = wavelengths > 0
    return float((amount[carried][served] / wavelengths[served]).max(initial=0))


def _busiest_link(fabric: Fabric, chunks: np.ndarray, circuits: Circuits) -> float:
    """Time of the busiest shared link, where circuit i carries chunks[i] [s a byte of chunk]."""
    each: list[tuple[Resource, npt.NDArray[Any]]]
    hops, links = circuits.hops, sum(r.count for r in fabric.resources)
    if fabric.hops_are_links and (not len(hops) or (hops.min() >= 0 and hops.max() < links)):
        carried = _loads(circuits, chunks, links)
        places = np.cumsum([r.count for r in fabric.resources])[:-1]
        each = [(r, of) for r, of in zip(fabric.resources, np.split(carried, places), strict=True) if r.shared]
    else:
        each = [
            (used.resource, np.bincount(used.index, chunks if used.circuit is None else chunks[used.circuit]))
            for used in fabric.usage(circuits)
            if used.resource.shared
        ]
    return max((float(of.max(initial=0)) * 8 / r.capacity for r, of in each), default=0.0)
