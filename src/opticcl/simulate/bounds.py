"""Lower bounds of times: a result below its bound is an error, never a good result."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import ceil, floor
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.assumptions import Assumptions
from opticcl.ir import Collective, Fabric, IntArray, Schedule
from opticcl.ir.capacity import Axis, Cut
from opticcl.ir.limits import limit
from opticcl.simulate._ring_trees import MOST_POSITIONS, ring_tree_lengths
from opticcl.simulate._set_routes import busy_of_routes
from opticcl.simulate.closed_form.ends import StepEnds, StepPairs
from opticcl.simulate.closed_form.facts import ScheduleFacts, circuits_at_once
from opticcl.simulate.held_links import bound_of_held_links
from opticcl.simulate.latency import PathLatency, in_line_on, path_latency
from opticcl.simulate.parts import memory_traffic
from opticcl.units import counted

__all__ = [
    "LowerBound",
    "RunBound",
    "Starts",
    "class_bounds",
    "least_fixed_s",
    "least_transfer_s",
    "lower_bound",
    "lower_bound_s",
    "moved_share",
    "schedule_facts",
]


def moved_share(collective: Collective) -> float:
    """Share of the message that some rank must send or receive, whatever the schedule.

    An all-reduce is a reduce-scatter and an all-gather; in these, and in an all-to-all, a scatter and a gather, all but one
    block of N moves over one rank's ports; a broadcast or a reduce brings the whole message to or from every other rank.
    In a collective of the user's own, a rank must receive each chunk that it needs and does not hold, or not alone.
    """
    n = collective.num_ranks
    known = _shares(n).get(collective.name)
    if known is not None:
        return known if n > 1 else 0.0
    ranks, chunks = np.arange(n), np.arange(collective.num_chunks)[:, None]
    before, after = (
        np.broadcast_to(held(ranks, chunks), (len(chunks), n)) for held in (collective.before, collective.after)
    )
    lacks = before.sum(axis=1)[:, None] > before if collective.reduces else ~before
    return float((after & lacks).sum(axis=0).max()) / collective.num_chunks


def _shares(num_ranks: int) -> dict[str, float]:
    """`moved_share` of the registered collectives, by name."""
    others = (num_ranks - 1) / num_ranks
    blocks = dict.fromkeys(("all_gather", "reduce_scatter", "all_to_all", "scatter", "gather"), others)
    whole = {"all_reduce": 2 * others, "broadcast": 1.0, "reduce": 1.0}
    return {**blocks, **whole, "barrier": 0.0, "send_recv": 1 / num_ranks}


@dataclass(frozen=True, slots=True)
class LowerBound:
    """Time below which no schedule of a collective on a fabric can be.

    Args:
        seconds: [s].
        name: what binds, in words: "one change of circuits", "bisection of the ring", "contributions".
    """

    seconds: float
    name: str


def lower_bound(
    collective: Collective,
    fabric: Fabric,
    size_bytes: int,
    assumed: Assumptions,
    *,
    starts: Starts = "steps",
    overlap: bool = True,
) -> LowerBound:
    """Lower bound on the time of every schedule and every assignment of circuits.

    first + min over the number t of dependent steps of (t x step + links(t) + messages(t) + transfer(t)), where

    first      a control exchange and a change of circuits where they are charged on change, from a cold start; what the
               exchange between ranks far apart takes longer, where circuits join all ranks
    step       latency apart from links; a control exchange and a change of circuits where they are charged in every step
    links      the quickest link a step
    t          at least as many as circuits between the two nodes that are farthest apart, and as many as it takes until all
               know of all, if in a step every node receives from its partners alone
    messages   the gap of one message a step, and where all must know of a rank, of as many as it takes to reach them in t
               steps: each of those who know sends k of them, so that the product of all k + 1 is N at least
    transfer   the largest of: what one node must send or receive over its rate; what must cross a cut over its capacity;
               blocks of an all_to_all in each direction of circuits; those that are relayed since t steps do not meet all
               partners; contributions that an all_reduce must collect, of which a byte brings no more than its sender can
               have; the least length of trees round a ring; slots

    Where links add latency, also that of the shortest path to the farthest node: alone, or, where each step takes the latency
    of its longest path and then the time of its busiest link, as links(t) if that is more. Without barriers transfers of one
    step overlap with latencies of another, so the larger of t steps and their links and one of them with transfer(t) counts.
    Where a step adds when its data is there, also the least time of sums, beside the rest. Where circuits share links that
    stand until they change, at least what sets of links one after the other reach: `opticcl.simulate.held_links`.

    Args:
        collective: what is computed.
        fabric: on which machine.
        size_bytes: message of every rank [bytes].
        assumed: what is charged.
        starts: when a circuit starts. steps: after the step before has ended; data: once its data and the ports are
            there; devices: also on devices that stand, so that a node may have any number of partners in a step.
        overlap: whether within a step one transfer may still be on its way while another moves data, as in engines that
            follow each transfer; in closed form a step takes the longest latency, then the longest transfer, then its sums.
    Source: Chan et al. 2007 for ports; LUMORPH section 4 for p partners at once; the others are ours, docs/time.md.
    """
    fabric = fabric.member  # no group is faster beside others than alone
    n = collective.num_ranks
    own = collective.name not in _shares(n)
    if _idle(collective) or (own and not moved_share(collective)):
        return LowerBound(0.0, "nothing to send")
    reach = _reach(fabric)
    barriers, law = starts == "steps", path_latency(fabric, assumed)
    charge = _charge(fabric, assumed, starts, joins=collective.name in (*GATHERING, *SPREADING))
    in_line = in_line_on(fabric, assumed) or starts == "devices"
    gap_s = law.message_gap_s
    forms = _Forms(collective, fabric, reach, size_bytes, charge, gap_s, in_line=in_line, barriers=barriers)
    steps, why_steps = (1, "latency") if own else _fewest_steps(collective, reach, in_line)
    base_s = max(0.0, law.base_s)
    link_s = law.least_s - base_s
    path_s = link_s if own or overlap else _farthest_s(collective, fabric, law) - base_s
    step_s = base_s + charge.control_every_s + charge.change_every_s
    times = _StepTimes(step_s, link_s, path_s, gap_s)
    t, rest_s, transfer_s, name = _best_steps(forms, steps, times)
    messages_s = gap_s * float(forms.messages(np.array([t]))[0])
    sums_s = 0.0 if overlap else _least_sums_s(collective, size_bytes, assumed)
    rest_s += sums_s
    links_s = max(0.0, path_s - t * link_s)
    parts = {name: transfer_s, "messages of a node": messages_s, PATH: links_s, "sums": sums_s}
    parts[counted(t, "dependent step") + f" ({why_steps if t == steps else 'latency'})"] = t * law.least_s
    if not own:
        for why, seconds in _by_reach(collective, fabric, reach, size_bytes, assumed):
            if seconds > rest_s:
                rest_s, parts = seconds, {why: seconds}
    parts["one control exchange"], parts["one change of circuits"] = charge.control_first_s, charge.change_first_s
    parts["control exchanges"], parts["changes of circuits"] = t * charge.control_every_s, t * charge.change_every_s
    first_s = charge.control_first_s + charge.change_first_s
    bound = first_s + rest_s, max(parts, key=lambda part: parts[part])
    held = bound_of_held_links(collective, fabric, size_bytes, assumed, apart=overlap or not barriers)
    return LowerBound(*max(bound, held or bound))


def _least_sums_s(collective: Collective, size_bytes: int, assumed: Assumptions) -> float:
    """Least time in which ranks add, of all steps of any schedule together [s].

    Each chunk has a contribution of every rank, so sums of it take in N - 1 arrivals, at best at once and on one rank. A step
    takes as long as the rank with most to add, which is at least the mean of all ranks.

    Args:
        collective: what is computed.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
    """
    n = collective.num_ranks
    if collective.name not in REDUCING:
        return 0.0
    return float(memory_traffic(assumed.compute, n - 1, 1)) / n * size_bytes / assumed.memory_bytes_per_s


def _idle(collective: Collective) -> bool:
    """Whether every rank has all that it needs."""
    n = collective.num_ranks
    return n == 1 or (collective.name == "send_recv" and collective.shift % n == 0)


class _Charge(NamedTuple):
    """Times of changes of circuits and of control exchanges: once, and in every step at least [s]."""

    change_first_s: float
    change_every_s: float
    control_first_s: float
    control_every_s: float


def _charge(fabric: Fabric, assumed: Assumptions, starts: Starts, *, joins: bool = False) -> _Charge:
    """What the assumptions charge on a fabric; by devices, only what does not stand.

    Args:
        fabric: with its times.
        assumed: time assumptions.
        starts: as in `lower_bound`.
        joins: whether the circuits of a plan join all ranks: with barriers all wait for the exchange of those far apart.
    """
    change_s, cold = fabric.reconfiguration_s, assumed.initial == "cold"

    def exchange_s(seconds: float) -> float:
        seconds *= assumed.control == "charged"
        return max(0.0, seconds - change_s) if assumed.control_order == "beside_setting" else seconds

    control_s = exchange_s(fabric.shortest_control_s)
    farthest_s = exchange_s(_joining_control_s(fabric)) if joins and starts == "steps" else control_s
    change_every, control_every = (
        charge == "every_step" and starts != "devices"
        for charge in (assumed.reconfiguration_charge, assumed.control_charge)
    )
    return _Charge(
        change_s if cold and not change_every else 0.0,
        change_s if change_every else 0.0,
        farthest_s - control_s if control_every else farthest_s if cold else 0.0,
        control_s if control_every else 0.0,
    )


@lru_cache(maxsize=64)
def _joining_control_s(fabric: Fabric) -> float:
    """Longest control exchange of circuits that join all ranks, at least [s].

    Control networks are trees: of ranks that are joined, two neighbours are as far apart as any two of them.
    """
    ranks = np.arange(fabric.num_nodes)
    return fabric.control_s(0 * ranks[1:], ranks[1:])


def lower_bound_s(collective: Collective, fabric: Fabric, size_bytes: int, assumed: Assumptions) -> float:
    """Seconds of `lower_bound`, with barriers [s].

    Args:
        collective: what is computed.
        fabric: on which machine.
        size_bytes: message of every rank [bytes].
        assumed: what is charged.
    """
    return lower_bound(collective, fabric, size_bytes, assumed).seconds


def least_transfer_s(collective: Collective, fabric: Fabric, size_bytes: int, assumed: Assumptions) -> float:
    """Least time in which data moves, of all steps of any schedule together [s].

    It is the largest form of `lower_bound` that holds for any number of steps.

    Args:
        collective: what is computed.
        fabric: on which machine.
        size_bytes: message of every rank [bytes].
        assumed: what is charged.
    """
    if _idle(collective) or collective.name not in _shares(collective.num_ranks):
        return 0.0
    fabric = fabric.member
    charge = _charge(fabric, assumed, "steps")
    in_line = in_line_on(fabric, assumed)
    forms = _Forms(collective, fabric, _reach(fabric), size_bytes, charge, 0.0, in_line=in_line, barriers=True)
    return max(seconds for _, seconds in forms.of_any_number())


GATHERING = ("all_reduce", "all_gather", "all_to_all", "reduce_scatter", "reduce", "gather", "barrier")
"""Some rank needs something of every other."""
SPREADING = ("all_reduce", "all_gather", "all_to_all", "reduce_scatter", "broadcast", "scatter", "barrier")
"""Every rank needs something of some rank."""
REDUCING = ("all_reduce", "reduce_scatter", "reduce")
"""Contributions of all ranks are added."""
ON_RINGS = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce")
"""Trees join all ranks."""
FLOWING = {
    "all_to_all": "flow between all pairs",
    "all_gather": "flow over links that both ways share",
    "reduce_scatter": "flow over links that both ways share",
}
"""What the flow of a collective is called."""
PATH = "latency of the longest path"
MOST_STEPS = limit("bounds.MOST_STEPS")
ROUNDING = 1e-9

Starts = Literal["steps", "data", "devices"]
Seconds = float | npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class _Reach:
    """What bounds need to know of a fabric, computed once.

    Args:
        axes: directions of circuits in which some ranks differ.
        cuts: between the ranks.
        rate_bits_per_s: of one rank towards others [bit/s].
        receives_from: ranks that one can receive from in a round [count].
        sends_to: ranks that one can send to in a round, all of them where signals are split [count].
    """

    axes: tuple[Axis, ...]
    cuts: tuple[Cut, ...]
    rate_bits_per_s: float
    receives_from: int
    sends_to: int


@lru_cache(maxsize=64)
def _reach(fabric: Fabric) -> _Reach:
    """Directions, cuts, rate and partners of a fabric."""
    nodes = fabric.machine_nodes(np.arange(fabric.num_nodes))
    axes = tuple(axis for axis in fabric.axes(nodes) if np.ptp(axis.coordinate))
    payload = fabric.slot_payload_bytes * 8 / (fabric.slot_s * fabric.rate_bits_per_s) if fabric.slot_s else 1.0
    rate, partners = fabric.node_rate_bits_per_s * payload, fabric.ports_per_node * fabric.lasers_per_port
    others = fabric.num_nodes - 1
    if axes:
        rate, partners = min(rate, sum(a.rate_bits_per_s for a in axes)), sum(a.partners for a in axes)
    if fabric.is_packet_switched:
        partners = others
    splits = any(r.splits for r in fabric.resources)
    cuts = tuple(fabric.cuts(nodes))
    return _Reach(axes, cuts, rate, min(others, partners), others if splits else min(others, partners))


@lru_cache(maxsize=64)
def _rates_of_set_routes(fabric: Fabric) -> tuple[tuple[str, float], ...]:
    """Most of an all_to_all that nodes send in a time, where each wavelength leads to one partner for the whole job [bit/s].

    Of every set of axes that are bound so, with its name; sending along the other axes takes no time.
    """
    axes, rates = [axis for axis in _reach(fabric).axes if axis.routes], list[tuple[str, float]]()
    for number in range(1, len(axes) + 1):
        for chosen in combinations(axes, number):
            coordinates = np.stack([axis.coordinate for axis in chosen])
            held = int(np.unique(coordinates, axis=1, return_counts=True)[1].max())
            rate, routes = max(axis.rate_bits_per_s for axis in chosen), max(axis.routes for axis in chosen)
            blocks = held / number * busy_of_routes(fabric.num_nodes / held, held * number, routes)
            name = "routes of " + " and ".join(axis.name for axis in chosen) + ", set once a job"
            rates.append((name, fabric.num_nodes / blocks * rate))
    return tuple(rates)


def _fewest_steps(collective: Collective, reach: _Reach, in_line: bool) -> tuple[int, str]:
    """Dependent steps that every schedule has, and why.

    Args:
        collective: what is computed.
        reach: of the fabric.
        in_line: whether a node may send to any number of partners in a step.
    """
    n, name = collective.num_ranks, collective.name
    if name == "send_recv":
        root, ends = 0, np.array([collective.shift % n])
    else:
        root, ends = collective.root, np.arange(n)
    apart = sum((axis.coordinate[ends] != axis.coordinate[root] for axis in reach.axes), np.zeros(len(ends), np.int64))
    far = max(1, int(apart.max(initial=1)))
    partners = [reach.receives_from] * (name in GATHERING) + [reach.sends_to] * (name in SPREADING)
    known, steps = 1, 0
    while partners and known < n and not in_line:
        known, steps = known * (min(partners) + 1), steps + 1
    if far >= steps:
        return far, "circuits to the farthest node" if far > 1 else "latency"
    return steps, f"{counted(min(partners), 'partner')} at once"


class _Forms:
    """Lower bounds on the transfer time as functions of the number of dependent steps, by what they rest on.

    Args:
        collective: what is computed.
        fabric: on which machine.
        reach: of the fabric.
        size_bytes: message of every rank [bytes].
        charge: of changes of circuits.
        gap_s: of each message of a node [s].
        in_line: whether a node may have any number of partners in a step.
        barriers: as in `lower_bound`.
    """

    def __init__(
        self,
        collective: Collective,
        fabric: Fabric,
        reach: _Reach,
        size_bytes: int,
        charge: _Charge,
        gap_s: float,
        *,
        in_line: bool,
        barriers: bool,
    ) -> None:
        self.collective, self.name, self.n = collective, collective.name, collective.num_ranks
        self.fabric, self.reach, self.in_line, self.barriers = fabric, reach, in_line, barriers
        self.change_s = 0.0 if charge.change_every_s or in_line else fabric.reconfiguration_s
        self.bits, self.gap_s = 8.0 * size_bytes, gap_s
        self.has_ring = fabric.double_ring_bits_per_s > 0 and self.n <= MOST_POSITIONS and self.name in ON_RINGS
        self.has_partners = self.name == "all_to_all" and not reach.axes and not fabric.is_packet_switched

    @property
    def most_steps(self) -> int:
        """Steps beyond which no form falls any more [count]."""
        if self.has_ring:
            return max(2 + self.n.bit_length(), self.n // 2)
        return 2 + max(self.n // self.reach.receives_from if self.has_partners else 0, self.n.bit_length())

    def messages(self, steps: IntArray) -> npt.NDArray[np.float64]:
        """Least number of messages that nodes send one after the other, float64 (k,) [count].

        Args: steps: numbers of dependent steps, int64 (k,).
        """
        t = steps.astype(np.float64)
        return np.maximum(t, t * (self.n ** (1 / t) - 1)) if self.name in SPREADING else t

    def of(self, steps: IntArray) -> Iterator[tuple[str, Seconds]]:
        """Name and least transfer time of each form [s].

        Args: steps: numbers of dependent steps, int64 (k,).
        """
        yield from self.of_any_number()
        if self.fabric.slot_s and self.bits:
            yield "one slot a step", steps * self.fabric.slot_s
        one_to_all = self.name == "broadcast" and self.reach.sends_to < self.n - 1
        if self.name in ("all_reduce", "reduce") or one_to_all:
            more = float(self.n) if self.in_line else self.reach.receives_from + 1.0
            held = np.minimum(float(self.n), more ** np.minimum(steps - 1, 64))
            yield "contributions", (self.n - 1) * self.bits / (held * self.reach.rate_bits_per_s)
        if self.has_partners:
            yield "blocks that are relayed", self._relayed_s(steps)
        if self.name == "all_to_all" and self.barriers and self.gap_s:
            yield "blocks that are relayed, or messages", self._in_messages_s(steps)
        if self.has_ring:
            lengths = ring_tree_lengths(self.n)
            length = lengths[np.minimum(steps, len(lengths)) - 1] + (self.n - 1) * (self.name == "all_reduce")
            yield "distance on the ring", length * self.bits / (2 * self.n * self.fabric.double_ring_bits_per_s)

    def of_any_number(self) -> Iterator[tuple[str, float]]:
        """Forms that do not depend on the number of steps."""
        collective, fabric, reach, n = self.collective, self.fabric, self.reach, self.n
        yield "ports of a node", moved_share(collective) * self.bits / reach.rate_bits_per_s
        for cut in reach.cuts:
            for share, rate in zip(_crossing(collective, cut), (cut.out_bits_per_s, cut.in_bits_per_s), strict=True):
                if share and rate:
                    yield cut.where, share * self.bits / rate
        if self.name in FLOWING and (s_per_bit := _flow_s_per_bit(fabric, self.name)):
            yield FLOWING[self.name], s_per_bit * self.bits / n * (1 - ROUNDING)  # of equal bounds, a cut has the name
        if self.name != "all_to_all":
            return
        for axis in reach.axes:
            held = np.unique(axis.coordinate, return_counts=True)[1].astype(np.float64)
            apart = 1 - float((held**2).sum()) / n**2  # share of the pairs that differ in it
            yield f"circuits of {axis.name}", apart * self.bits / axis.rate_bits_per_s
        for name, rate in _rates_of_set_routes(fabric):
            yield name, self.bits / rate
        if fabric.slot_s:
            payload, block = fabric.slot_payload_bytes, self.bits / 8 / n
            slots = ceil(2 * (n - 1) * block / (reach.receives_from * (payload + block)) - ROUNDING)
            yield "slots of direct and relayed blocks", slots * fabric.slot_s

    def _relayed_s(self, steps: IntArray) -> npt.NDArray[np.float64]:
        """A node has a number of partners in that many steps; other blocks move twice, or circuits change."""
        others, at_once = self.n - 1, self.reach.receives_from
        block_s = self.bits / self.n / self.reach.rate_bits_per_s
        met = np.minimum(others, at_once * steps) if self.barriers and not self.in_line else np.full(len(steps), others)
        changed_s = np.maximum(0, met - at_once) / at_once * self.change_s + (2 * others - met) * block_s
        standing_s = (2 * others - min(others, at_once)) * block_s
        relayed: npt.NDArray[np.float64] = np.minimum(changed_s, standing_s)
        return relayed

    def _in_messages_s(self, steps: IntArray) -> npt.NDArray[np.float64]:
        """A block that moves once takes a message of its own, others move twice; less the gaps of `messages`."""
        others, block_s, least = self.n - 1, self.bits / self.n / self.reach.rate_bits_per_s, self.messages(steps)
        own_s = others * block_s + np.maximum(0, others - least) * self.gap_s
        relayed_s = (2 * others - np.minimum(others, least)) * block_s
        times_s: npt.NDArray[np.float64] = np.minimum(own_s, relayed_s) * (
            1 - ROUNDING
        )  # a port alone goes by its own name
        return times_s


@lru_cache(maxsize=64)
def _flow_s_per_bit(fabric: Fabric, collective: str) -> float:
    """`Fabric.flow_s_per_bit` of all ranks."""
    return fabric.flow_s_per_bit(fabric.machine_nodes(np.arange(fabric.num_nodes)), collective)


class _StepTimes(NamedTuple):
    """What dependent steps take in addition to transfers [s].

    Args:
        step_s: each of them, apart from links.
        link_s: over one link.
        path_s: links of all of them together at least.
        gap_s: each message.
    """

    step_s: float
    link_s: float
    path_s: float
    gap_s: float


def _best_steps(forms: _Forms, fewest: int, times: _StepTimes) -> tuple[int, float, float, str]:
    """Number of dependent steps with the least time, that time and the transfer time in it [s], and what binds the latter.

    Args:
        forms: transfer time by the number of steps.
        fewest: steps.
        times: of steps, links and messages.
    """
    step_s, link_s, path_s, gap_s = times
    most = max(fewest, forms.most_steps)
    steps = np.arange(fewest, min(most, fewest + MOST_STEPS) + 1)
    counted_steps = steps.copy()
    counted_steps[-1] = most  # more steps than these are bounded by the last
    parts = list(forms.of(counted_steps))
    transfer_s = np.full(len(steps), max(seconds for _, seconds in parts if isinstance(seconds, float)))
    for _, seconds in parts:
        if not isinstance(seconds, float):
            np.maximum(transfer_s, seconds, out=transfer_s)
    if forms.barriers:
        whole_s = steps * step_s + np.maximum(path_s, steps * link_s) + gap_s * forms.messages(steps) + transfer_s
    else:  # a message waits for its gap once, also where a later part of it is what the next step needs
        whole_s = np.maximum(steps * (step_s + link_s), step_s + link_s + gap_s + transfer_s)
    best = int(whole_s.argmin())
    at_best = [(name, seconds if isinstance(seconds, float) else float(seconds[best])) for name, seconds in parts]
    name, most_s = max(at_best, key=lambda form: form[1])
    return int(steps[best]), float(whole_s[best]), most_s, name


def _crossing(collective: Collective, cut: Cut) -> tuple[float, float]:
    """Share of the message that must leave the inside of a cut, and that must enter it."""
    n, name = collective.num_ranks, collective.name
    inside = int(np.count_nonzero(cut.inside))
    beyond = n - inside
    if not inside or not beyond:
        return 0.0, 0.0
    root = bool(cut.inside[collective.root])
    match name:
        case "all_to_all":
            return inside * beyond / n, inside * beyond / n
        case "all_gather":
            return inside / n, beyond / n
        case "reduce_scatter":
            return beyond / n, inside / n
        case "all_reduce":
            share = 2 * (cut.parts - 1) / cut.parts  # every part but one passes on what it has, and receives the sum
            return share, share
        case "broadcast":
            return float(root), float(not root)
        case "reduce":
            return float(not root), float(root)
        case "scatter":
            return root * beyond / n, (not root) * inside / n
        case "gather":
            return (not root) * inside / n, root * beyond / n
        case "send_recv":
            to = np.roll(cut.inside, -collective.shift)
            return float((cut.inside & ~to).sum()) / n, float((~cut.inside & to).sum()) / n
    return 0.0, 0.0


def _by_reach(
    collective: Collective, fabric: Fabric, reach: _Reach, size_bytes: int, assumed: Assumptions
) -> Iterator[tuple[str, float]]:
    """Name and least time until the farthest rank can know of the others, however little is sent [s].

    Args:
        collective: what is computed.
        fabric: on which machine.
        reach: of the fabric.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
    """
    law = path_latency(fabric, assumed)
    if not law.constant:
        yield PATH, law.message_gap_s + _farthest_s(collective, fabric, law)
    if fabric.slot_s and size_bytes and collective.name in GATHERING:
        late = floor(law.least_s / fabric.slot_s + ROUNDING) + 1
        known = _slots_until_known(collective.num_ranks, reach.receives_from, late)
        yield "slots until all know of all", known * fabric.slot_s


def _farthest_s(collective: Collective, fabric: Fabric, law: PathLatency) -> float:
    """Latency of the longest of the shortest paths between ranks of which one needs something of the other [s].

    Args:
        collective: what is computed.
        fabric: on which machine.
        law: latency of its paths.
    """
    root = 0 if collective.name == "send_recv" else collective.root
    from_root, to_root = _shortest_paths(fabric, root, law)
    if collective.name == "send_recv":
        return float(from_root[collective.shift % collective.num_ranks])
    spreads, gathers = collective.name in SPREADING, collective.name in GATHERING
    return max(float(from_root.max()) if spreads else 0.0, float(to_root.max()) if gathers else 0.0)


@lru_cache(maxsize=256)
def _slots_until_known(n: int, ports: int, late: int) -> int:
    """Slots until a rank can know of n, if in a slot each of its ports receives what its sender knew `late` slots before.

    >>> _slots_until_known(54, 54, 71)
    71

    Args:
        n: ranks [count].
        ports: of a rank [count].
        late: slots from the start of a transfer to its end [count].
    """
    known = [1] * late
    while known[-1] < n:
        known.append(known[-1] + ports * known[-late])
    return len(known) - 1


@lru_cache(maxsize=64)
def _shortest_paths(
    fabric: Fabric, rank: int, law: PathLatency
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Least latency from a rank to all, and from all to it, in any number of messages, float64 (ranks,) each [s].

    Where a node forwards for longer than it takes to send, the base is below 0: then every link may be a message of its own.
    """
    nodes = fabric.machine_nodes(np.arange(fabric.num_nodes))

    def of_hops(hops: IntArray) -> npt.NDArray[np.float64] | None:
        latency_s = law.of_hops(hops)
        return None if latency_s is None else latency_s + min(0.0, law.base_s)

    there, back = fabric.shortest_paths_s(int(nodes[rank]), of_hops)
    base_s = max(0.0, law.base_s)
    return base_s + there[nodes], base_s + back[nodes]


class RunBound(NamedTuple):
    """Lower bound on the time of a run of identical steps.

    Args:
        fixed_s: latencies, messages and changes of circuits [s].
        moving_s: in which data moves, for each byte of the message [s].
        summing_s: of sums, for each byte of the message [s].
    """

    fixed_s: float
    moving_s: float
    summing_s: float


def class_bounds(
    schedule: Schedule, fabric: Fabric, assumed: Assumptions, facts: ScheduleFacts | None = None
) -> Generator[RunBound, None, None]:
    """Lower bound of each run of identical steps, whatever circuits carry it.

    Every step takes its latency, the bytes of its busiest node, and the sums of a node with most to add. Where a node has more
    partners than ports and lasers, the step takes several rounds, each with its latency and a change of circuits; pairs that
    did not stand before must be connected. On fabrics with a distance, bytes times links cannot exceed the capacity of all
    links together, nor can the circuits of a round take more wavelengths of links than there are. No circuits are computed,
    so that a search can discard schedules cheaply.

    Args:
        schedule: of any algorithm.
        fabric: that it would run on.
        assumed: time assumptions.
        facts: of the schedule, where it is bounded under several assumptions.
    Yields: one for each run.
    """
    facts = facts or schedule_facts(schedule, fabric)
    at_once, change_s = circuits_at_once(fabric), _change_s(fabric, assumed)
    law, in_line = path_latency(fabric, assumed), in_line_on(fabric, assumed)
    chunks = schedule.collective.num_chunks
    node_rate, all_links = fabric.node_rate_bits_per_s, _rate_of_all_links(fabric)
    none_stands = True

    def least_rounds(hops: int) -> int:
        light = 0.0 if fabric.is_packet_switched else all_links / fabric.rate_bits_per_s  # wavelengths of all links
        return ceil(hops / light - ROUNDING) if light else 0

    for number, steps in enumerate(schedule.step_classes()):
        run = facts.of_run(number)
        if run is None:
            yield RunBound(0.0, 0.0, 0.0)
            continue
        rounds = max(ceil(run.most / at_once), least_rounds(run.hops))
        fixed = len(steps) * ((1 if in_line else rounds) * law.least_s + law.message_gap_s * run.ends.messages)
        if change_s:
            settings = max(ceil(run.partners / at_once), least_rounds(run.pair_hops))
            fixed += len(steps) * (settings - 1) * change_s
            # of several settings one may stand already
            if run.changes and (none_stands or (settings == 1 and not schedule.stands)):
                fixed += change_s
            none_stands = False
        moving = run.chunks / node_rate
        if run.link_chunks:
            moving = max(moving, run.link_chunks / all_links)
        traffic = run.ends.summed_chunks(assumed.compute)
        share = len(steps) / chunks
        yield RunBound(fixed, share * moving * 8, share * traffic / assumed.memory_bytes_per_s)


def least_fixed_s(facts: ScheduleFacts, fabric: Fabric, assumed: Assumptions) -> npt.NDArray[np.float64]:
    """Latency and changes of circuits of each run and all behind it at least, without a list of any step.

    Of every step that is known to have transfers, what `class_bounds` charges for one round and one message; one change of
    circuits for the first of them.

    Args:
        facts: of the schedule.
        fabric: that it would run on.
        assumed: time assumptions.
    Returns: float64 (runs + 1,), the last one 0 [s].
    """
    law, behind = path_latency(fabric, assumed), facts.steps_behind
    first = (behind == behind[0]) & (behind > 0)
    fixed_s: npt.NDArray[np.float64] = behind * (law.least_s + law.message_gap_s) + first * _change_s(fabric, assumed)
    return fixed_s


def _change_s(fabric: Fabric, assumed: Assumptions) -> float:
    """Time of a change of circuits, where one is charged at all [s]."""
    charged = assumed.initial == "cold" or assumed.reconfiguration_charge == "every_step"
    return fabric.reconfiguration_s if charged else 0.0


def schedule_facts(
    schedule: Schedule,
    fabric: Fabric,
    ends: Callable[[int], StepEnds] | None = None,
    pairs: Callable[[int], StepPairs] | None = None,
) -> ScheduleFacts:
    """What `class_bounds` needs of a schedule under any assumptions.

    Args:
        schedule: of any algorithm.
        fabric: that it would run on.
        ends, pairs: of a step, by its index, as `ScheduleFacts` takes them.
    """
    return ScheduleFacts(schedule, fabric, distances=_rate_of_all_links(fabric) > 0, ends=ends, pairs=pairs)


def _rate_of_all_links(fabric: Fabric) -> float:
    """Capacity of all links, fibres and waveguides together, each in its direction [bit/s]."""
    fibre = fabric.num_wavelengths * fabric.rate_bits_per_s
    return sum(
        r.count * r.capacity * (1.0 if r.shared else fibre)
        for r in fabric.resources
        if r.shared or r.kind in ("fibre", "waveguide")
    )
