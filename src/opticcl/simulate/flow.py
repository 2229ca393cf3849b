"""Flow level: packets share links fairly, circuits have their light to themselves; every start and end at its exact
    time.

    packets    a flow waits for its path's latency, then gets its max-min fair share of every link on the way; shares
               change when a flow starts or ends, and only then
    circuits   a transfer has wavelengths x rate from the moment its circuits stand

Two modes say when a transfer may start:

    barrier         when the whole step before has ended, as in the closed form
    asynchronous    when the chunks that it sends have arrived (and been added up) and the ports are free: on packet
                    fabrics a rank has one step's sends under way at a time; on circuits everything that light occupies
                    is handed on in the order of the plan, and a circuit that stands already is not set again

Asynchronously, what arrives early has room to wait: a receiver never keeps a sender waiting.

Shares are those of SimGrid's exact model (no correction factors, no cross traffic, no window). Steps of a class are
played once with a barrier; in a large step flows that are alike (same bytes and latency, on links that are alike all
the way) are found by colour refinement and played as one, which is exact because max-min fairness cannot tell them
apart.

Source: Bertsekas and Gallager 1992, section 6.5.2 (max-min by progressive filling); Velho et al. 2013 (SimGrid's flow
    model).
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Literal

import numpy as np

from opticcl.errors import BoundError, ParameterError, UnsupportedError
from opticcl.ir import CircuitPlan, Circuits, Fabric, IntArray, Op, Timeline, Transfers
from opticcl.simulate import _flow_kernels as kernels
from opticcl.simulate.assumptions import Assumptions, as_dict
from opticcl.simulate.bounds import lower_bound_s
from opticcl.simulate.parts import Standing, control_s, newly_covered, summed_chunks

__all__ = ["MAX_EVENTS", "Mode", "flow", "max_min_rates"]

Mode = Literal["barrier", "asynchronous"]

MAX_EVENTS = 20_000_000
QUOTIENT_FLOWS = 4096  # steps with fewer flows are played one by one
_ROUNDING = 1e-9  # relative; sums of many steps may end that far below the bound
_NO_EDGES = np.zeros(0, np.int64)
_OF_TRANSFER = ("step", "src", "dst", "lo", "n", "adds")
_OF_CIRCUITS = ("amount", "setting", "latency", "control", "compute", "path_at", "path_n")

Progress = Callable[[str, int, int], None]


def flow(
    plan: CircuitPlan,
    size_bytes: int,
    assumed: Assumptions,
    *,
    mode: Mode = "barrier",
    max_events: int = MAX_EVENTS,
    progress: Progress = lambda what, done, total: None,
) -> Timeline:
    """Time of a plan for a message of `size_bytes`, at flow level.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
        assumed: what the time rests on.
        mode: barrier or asynchronous; see the module.
        max_events: starts, ends and changes of rate that may be played [count].
        progress: told (what, done, total) after every class of steps.
    Returns: rows are the classes of steps. Asynchronously a row tells what its steps put on the critical path, the
        chain of transfers that ends last; the rows add up to the whole.
    Raises: ParameterError: unknown mode, or more events than allowed; UnsupportedError: asynchronously, a transfer on
        several routes; BoundError: the time is below the lower bound.
    """
    if mode not in ("barrier", "asynchronous"):
        raise ParameterError(f"flow: mode={mode!r} is neither barrier nor asynchronous")
    limit = _Limit(max_events)
    play = _with_barriers if mode == "barrier" else _asynchronously
    timeline = play(plan, size_bytes, assumed, limit, progress)
    if timeline.total_s < timeline.lower_bound_s * (1 - _ROUNDING):
        raise BoundError(
            f"{plan.schedule.name} on {plan.fabric.name}: {timeline.total_s:.6g} s at flow level is below the lower "
            f"bound of {timeline.lower_bound_s:.6g} s; please report this with the command that you ran"
        )
    return timeline


def max_min_rates(hops: IntArray, hop_offsets: IntArray, capacity: np.ndarray) -> np.ndarray:
    """Max-min fair rates of flows that share links, float64 (flows,), in the unit of `capacity`.

    Args:
        hops, hop_offsets: links of flow i are hops[hop_offsets[i]:hop_offsets[i + 1]], one or more.
        capacity: of each link, float64 (links,).

    >>> max_min_rates(np.array([0, 0, 1, 1]), np.array([0, 1, 3, 4]), np.array([2.0, 10.0]))
    array([1., 1., 9.])
    """
    at, n = hop_offsets[:-1].astype(np.int64), np.diff(hop_offsets).astype(np.int64)
    rates: np.ndarray = kernels.fair_rates(at, n, hops.astype(np.int64), np.ones(len(hops), np.int64), capacity)
    return rates


class _Limit:
    """Counts events down to none left."""

    def __init__(self, max_events: int) -> None:
        self.max_events = max_events
        self.left = max_events

    def expect(self, events: int) -> None:
        """Refuse what is known to take more.

        Raises: ParameterError.
        """
        if events > self.left:
            raise ParameterError(
                f"flow: about {events + self.max_events - self.left:,} events or more, and {self.max_events:,} are "
                "allowed; lift that with max_events=..., or let the closed form tell"
            )

    def spend(self, events: int) -> None:
        """Count what was played."""
        self.expect(events)
        self.left -= events


# --- a barrier after every step ---------------------------------------------------------------------------------------


def _with_barriers(
    plan: CircuitPlan, size_bytes: int, assumed: Assumptions, limit: _Limit, progress: Progress
) -> Timeline:
    schedule, fabric = plan.schedule, plan.fabric
    classes = schedule.step_classes()
    chunk_bytes = size_bytes / schedule.collective.num_chunks
    num_rounds = np.zeros(len(classes), np.int64)
    reconfiguration, latency, transfer, compute, control = np.zeros((5, len(classes)))
    standing = Standing(assumed, fabric.reconfiguration_s)
    links = _Links(fabric) if fabric.is_packet_switched else None
    for c, steps in enumerate(classes):
        transfers, rounds, repeats = schedule.step(steps.start), plan.rounds(steps.start), len(steps)
        num_rounds[c] = len(rounds) * repeats
        reconfiguration[c] = standing.charge(rounds, repeats)
        for circuits in rounds:
            slowest = (
                _packet_round(links, transfers, circuits, chunk_bytes, limit)
                if links
                else (_circuit_round(fabric, transfers, circuits, chunk_bytes))
            )
            latency[c] += slowest[0] * repeats
            transfer[c] += slowest[1] * repeats
            control[c] += _control_s(fabric, transfers, circuits, assumed) * repeats
        compute[c] = summed_chunks(transfers, assumed) * chunk_bytes / assumed.memory_bytes_per_s * repeats
        progress("play flows", steps.stop, schedule.num_steps)
    bound = lower_bound_s(schedule.collective, fabric, size_bytes)
    return Timeline(
        classes,
        num_rounds,
        reconfiguration,
        latency,
        transfer,
        compute,
        control,
        bound,
        {**as_dict(assumed), "mode": "barrier"},
    )


def _control_s(fabric: Fabric, transfers: Transfers, circuits: Circuits, assumed: Assumptions) -> float:
    """Control messages of a round [s]."""
    return control_s(fabric, transfers, circuits) if assumed.control == "charged" else 0.0


def _latencies(fabric: Fabric, circuits: Circuits) -> np.ndarray:
    """Of each circuit's path, float64 (circuits,) [s]."""
    if fabric.hop_latency_s is None or not len(circuits.hops):
        return np.full(len(circuits), fabric.latency_s)
    hops_s = np.bincount(circuits.hop_owner(), fabric.hop_latency_s(circuits.hops), minlength=len(circuits))
    return fabric.latency_s + hops_s


def _circuit_round(fabric: Fabric, transfers: Transfers, circuits: Circuits, chunk_bytes: float) -> tuple[float, float]:
    """Latency and transfer time of the transfer that ends last [s]."""
    rows, latency, duration = _lit(fabric, transfers, circuits, chunk_bytes)
    if not len(rows):
        return 0.0, 0.0
    last = int((latency + duration).argmax())
    return float(latency[last]), float(duration[last])


def _lit(
    fabric: Fabric, transfers: Transfers, circuits: Circuits, chunk_bytes: float
) -> tuple[IntArray, np.ndarray, np.ndarray]:
    """Transfers that have light in a round, their latencies and durations [s]."""
    wavelengths = np.bincount(circuits.transfer, circuits.wavelength_n, minlength=len(transfers))
    latency = np.zeros(len(transfers))
    np.maximum.at(latency, circuits.transfer, _latencies(fabric, circuits))
    rows = np.flatnonzero(wavelengths)
    share_bytes = transfers.size_chunks()[rows] * chunk_bytes / wavelengths[rows]
    if fabric.slot_s:
        return rows, latency[rows], np.ceil(share_bytes / fabric.slot_payload_bytes) * fabric.slot_s
    return rows, latency[rows], share_bytes * 8 / fabric.rate_bits_per_s


class _Links:
    """The shared resources of a fabric, numbered as one list."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.base: dict[int, int] = {}
        capacities = [np.zeros(0)]
        for resource in fabric.resources:
            if resource.shared:
                self.base[id(resource)] = sum(map(len, capacities))
                capacities.append(np.full(resource.count, resource.capacity / 8))
        self.capacity = np.concatenate(capacities)
        self.known: dict[bytes, tuple[float, float]] = {}  # rounds that were played already

    def paths(self, circuits: Circuits) -> tuple[IntArray, IntArray]:
        """(links, offsets) of every circuit, from what the fabric says that it uses."""
        used = [u for u in self.fabric.usage(circuits) if u.resource.shared]
        links = [u.index + self.base[id(u.resource)] for u in used]
        owners = [np.arange(len(circuits)) if u.circuit is None else u.circuit for u in used]
        owner = np.concatenate(owners)
        offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(circuits)))])
        if (owner[1:] < owner[:-1]).any():
            return np.concatenate(links)[np.argsort(owner, kind="stable")], offsets
        return np.concatenate(links), offsets


def _packet_round(
    links: _Links, transfers: Transfers, circuits: Circuits, chunk_bytes: float, limit: _Limit
) -> tuple[float, float]:
    """Latency and transfer time of the flow that ends last [s]."""
    if not len(circuits):
        return 0.0, 0.0
    # how the bytes of a transfer are shared among its circuits
    shares = np.bincount(circuits.transfer, minlength=len(transfers))
    amount = (transfers.size_chunks() * chunk_bytes / np.maximum(shares, 1))[circuits.transfer]
    hops, offsets = links.paths(circuits)
    delay = _latencies(links.fabric, circuits)
    if np.bincount(hops).max() == 1:  # nobody shares
        seconds = amount / np.minimum.reduceat(links.capacity[hops], offsets[:-1])
        last = int((delay + seconds).argmax())
        return float(delay[last]), float(seconds[last])
    seen = blake2b(hops.tobytes())
    for column in (offsets, amount, delay):
        seen.update(column.tobytes())
    key = seen.digest()
    if key not in links.known:
        links.known[key] = _play_at_once(hops, offsets, amount, delay, links.capacity, limit)
    return links.known[key]


def _play_at_once(
    hops: IntArray, offsets: IntArray, amount: np.ndarray, delay: np.ndarray, capacity: np.ndarray, limit: _Limit
) -> tuple[float, float]:
    """Play flows that are all released at once; latency and transfer time of the one that ends last [s]."""
    weight = np.ones(len(hops), np.int64)
    if len(amount) >= QUOTIENT_FLOWS:
        quotient = _quotient(hops, offsets, amount, delay, capacity)
        if quotient is not None:
            hops, offsets, weight, amount, delay, capacity = quotient
    limit.expect(2 * len(amount))
    n = len(amount)
    _, events, finished, _, _ = kernels.play(
        amount, delay, np.zeros(n), offsets[:-1].astype(np.int64), np.diff(offsets).astype(np.int32),
        hops.astype(np.int32), weight, capacity, np.array([0, n]), np.zeros(1, np.int64), np.array([0, 1]),
        np.zeros(n, np.int64), np.full(1, -1), np.zeros(n + 1, np.int64), _NO_EDGES, np.zeros(n + 1, np.int64),
        _NO_EDGES, n, limit.left,
    )  # fmt: skip
    limit.spend(events)
    last = int(finished.argmax())
    return float(delay[last]), float(finished[last] - delay[last])


def _quotient(
    hops: IntArray, offsets: IntArray, amount: np.ndarray, delay: np.ndarray, capacity: np.ndarray
) -> tuple[IntArray, IntArray, IntArray, np.ndarray, np.ndarray, np.ndarray] | None:
    """One flow for all that are alike and one link for all that are alike, or None if few are.

    Two flows are alike if they carry as much, start together and cross links that are alike; two links, if they have
    the same capacity and are crossed by flows that are alike. Each hop of the quotient has the number of flows of its
    kind on one such link. Kinds are 64-bit colours: that two kinds of a million flows get one colour has a chance of
    1e-7.
    """
    used = np.unique(hops)
    link_colour = capacity.view(np.uint64).copy()
    flow_colour = amount.view(np.uint64) ^ (delay.view(np.uint64) << np.uint64(1))
    hops, offsets = hops.astype(np.int64), offsets.astype(np.int64)
    kinds = 0
    while True:
        kernels.refine(offsets, hops, flow_colour, link_colour)
        found = len(np.unique(link_colour[used]))
        if found == kinds:
            break
        if 2 * found > len(used):
            return None
        kinds = found
    colours, example, flows = np.unique(flow_colour, return_index=True, return_counts=True)
    if 2 * len(colours) > len(amount):
        return None
    _, link_example, of_link, links = np.unique(
        link_colour[used], return_index=True, return_inverse=True, return_counts=True
    )
    kind_of_link = np.zeros(len(capacity), np.int64)
    kind_of_link[used] = of_link
    lengths = np.diff(offsets)[example]
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    crossed = kind_of_link[hops[np.repeat(offsets[example], lengths) + within]]
    flow_kind = np.repeat(np.arange(len(example)), lengths)
    pair, times = np.unique(flow_kind * len(links) + crossed, return_counts=True)
    kind, link = np.divmod(pair, len(links))
    weight = flows[kind] * times // links[link]  # counted from both ends
    new_offsets = np.concatenate([[0], np.cumsum(np.bincount(kind, minlength=len(example)))])
    return link, new_offsets, weight, amount[example], delay[example], capacity[used][link_example]


# --- as soon as possible ----------------------------------------------------------------------------------------------


def _asynchronously(
    plan: CircuitPlan, size_bytes: int, assumed: Assumptions, limit: _Limit, progress: Progress
) -> Timeline:
    schedule, fabric = plan.schedule, plan.fabric
    classes = schedule.step_classes()
    gathered = _Gathered(plan, size_bytes / schedule.collective.num_chunks, assumed)
    num_rounds = np.zeros(len(classes), np.int64)
    for c, steps in enumerate(classes):
        num_rounds[c] = gathered.add(steps, limit) * len(steps)
        progress("gather flows", steps.stop, schedule.num_steps)
    reconfiguration, latency, transfer, compute, control = np.zeros((5, len(classes)))
    if gathered.count:
        reconfiguration, latency, transfer, compute, control = gathered.play(limit, progress)
    bound = lower_bound_s(schedule.collective, fabric, size_bytes)
    told = {**as_dict(assumed), "mode": "asynchronous"}
    return Timeline(classes, num_rounds, reconfiguration, latency, transfer, compute, control, bound, told)


class _Gathered:
    """The flows of a plan, sorted by step and sender, and what they wait for."""

    def __init__(self, plan: CircuitPlan, chunk_bytes: float, assumed: Assumptions) -> None:
        self.plan, self.chunk_bytes, self.assumed = plan, chunk_bytes, assumed
        self.columns: dict[str, list[np.ndarray]] = {name: [] for name in (*_OF_TRANSFER, *_OF_CIRCUITS)}
        self.count = 0
        self.packets = plan.fabric.is_packet_switched
        self.links = _Links(plan.fabric)
        self.hops: list[IntArray] = [np.zeros(0, np.int32)]
        self.num_hops = 0
        self.settings = _Settings(plan.fabric, assumed)
        self.units = _Units(plan.fabric)

    def add(self, steps: range, limit: _Limit) -> int:
        """Take up the flows of a class of steps; returns the rounds of one step."""
        schedule, fabric = self.plan.schedule, self.plan.fabric
        first, rounds = schedule.step(steps.start), self.plan.rounds(steps.start)
        m = len(first)
        limit.expect(2 * (self.count + m * len(steps)))
        by_sender = np.argsort(first.src, kind="stable")
        place = np.empty(m, np.int64)
        place[by_sender] = np.arange(m)
        path_at, path_n = np.zeros(m, np.int64), np.zeros(m, np.int32)
        amount, latency, control = np.zeros((3, m))
        for circuits in rounds:
            control[circuits.transfer] = _control_s(fabric, first, circuits, self.assumed)
            if self.packets:
                if (np.bincount(circuits.transfer, minlength=m) > 1).any():
                    raise UnsupportedError(
                        f"flow: {schedule.name} on {fabric.name} sends a transfer on several routes; "
                        "play it with mode=barrier"
                    )
                hops, offsets = self.links.paths(circuits)
                amount[circuits.transfer] = first.size_chunks()[circuits.transfer] * self.chunk_bytes
                latency[circuits.transfer] = _latencies(fabric, circuits)
                path_at[circuits.transfer] = self.num_hops + offsets[:-1]
                path_n[circuits.transfer] = np.diff(offsets)
                self.hops.append(hops.astype(np.int32))
                self.num_hops += len(hops)
            else:
                rows, late, duration = _lit(fabric, first, circuits, self.chunk_bytes)
                amount[rows], latency[rows] = duration, late
        settings = [self._set(rounds, m, self.count + k * m + place) for k in range(len(steps))]
        others = [first, *(schedule.step(i) for i in steps[1:])]
        alike = {
            "src": first.src, "dst": first.dst, "n": first.chunk_n, "adds": first.op != Op.COPY, "amount": amount,
            "latency": latency, "control": control,
            "compute": _sums_s(first, self.chunk_bytes, self.assumed), "path_at": path_at, "path_n": path_n,
        }  # fmt: skip
        for name, column in alike.items():
            column = column[by_sender]
            self.columns[name].append(np.tile(column, len(steps)) if len(steps) > 1 else column)
        self.columns["step"].append(np.repeat(np.arange(steps.start, steps.stop), m))
        self.columns["lo"] += [t.chunk_lo[by_sender] for t in others]
        self.columns["setting"] += [seconds[by_sender] for seconds in settings]
        self.count += m * len(steps)
        return len(rounds)

    def _set(self, rounds: tuple[Circuits, ...], num_transfers: int, flow: IntArray) -> np.ndarray:
        """Time to set the circuits of each transfer of the next step [s]; `flow` is the number of each transfer."""
        seconds = np.zeros(num_transfers)
        for circuits in () if self.packets else rounds:
            np.maximum.at(seconds, circuits.transfer, self.settings.charge(circuits))
            self.units.add(circuits, flow)
        return seconds

    def play(self, limit: _Limit, progress: Progress) -> np.ndarray:
        """Play them; what each class of steps puts on the critical path, float64 (parts of a timeline, classes) [s]."""
        flows = {name: np.concatenate(parts) for name, parts in self.columns.items()}
        src, dst, step, lo, n = (flows[name] for name in ("src", "dst", "step", "lo", "n"))
        num_flows = len(src)
        collective = self.plan.schedule.collective
        ranks, chunks = collective.num_ranks, collective.num_chunks

        new_block = _starts(src, step)
        block_of = np.cumsum(new_block) - 1
        new_group = new_block | _starts(lo, n) if self.packets else np.ones(num_flows, bool)
        group_of = np.cumsum(new_group) - 1
        group_at = np.append(np.flatnonzero(new_group), num_flows)
        block_at = np.append(group_of[new_block], group_of[-1] + 1)
        sender = src[new_block]
        next_block = kernels.next_of_same(sender, ranks) if self.packets else np.full(len(sender), -1)

        needs = kernels.data_needs(ranks, chunks, src, dst, step, lo, n, flows["adds"], group_of)
        turns = self.units.order()
        feeds_at, feeds = kernels.rows_of(needs[0], needs[1], num_flows)
        frees_at, frees = kernels.rows_of(turns[0], turns[1], num_flows)
        waits = np.bincount(feeds, minlength=len(group_at) - 1) + np.bincount(frees, minlength=len(group_at) - 1)
        chained = np.zeros(len(sender), np.int64)
        chained[next_block[next_block >= 0]] = 1
        waits += chained[block_of[group_at[:-1]]]

        most_at_once = np.zeros(ranks, np.int64)
        np.maximum.at(most_at_once, sender, np.bincount(block_of))
        hops = np.concatenate(self.hops)
        delay = flows["setting"] + flows["latency"] + flows["control"]
        progress("play flows", 0, num_flows)
        _, events, finished, released, caused_by = kernels.play(
            flows["amount"], delay, flows["compute"], flows["path_at"], flows["path_n"], hops,
            np.ones(len(hops), np.int64), self.links.capacity, group_at, waits, block_at, block_of, next_block,
            feeds_at, feeds, frees_at, frees, int(most_at_once.sum()) if self.packets else 1, limit.left,
        )  # fmt: skip
        limit.spend(events)
        progress("play flows", num_flows, num_flows)
        if np.isnan(finished).any():
            waiting = int(np.isnan(finished).sum())
            raise ParameterError(f"flow: {waiting} transfers of {self.plan.schedule.name} wait for each other")
        return self._critical(flows, finished, released, caused_by, group_of)

    def _critical(
        self,
        flows: dict[str, np.ndarray],
        finished: np.ndarray,
        released: np.ndarray,
        caused_by: IntArray,
        group_of: IntArray,
    ) -> np.ndarray:
        """Walk back from the transfer that ends last."""
        classes = self.plan.schedule.step_classes()
        starts = np.array([steps.start for steps in classes])
        parts = np.zeros((5, len(classes)))
        usable = finished + flows["compute"]
        last = int(usable.argmax())
        end, added_up = float(usable[last]), True
        while True:
            row = int(np.searchsorted(starts, flows["step"][last], side="right")) - 1
            begin = float(released[group_of[last]])
            setting, latency, control = (float(flows[name][last]) for name in ("setting", "latency", "control"))
            compute = float(flows["compute"][last]) if added_up else 0.0
            parts[:, row] += setting, latency, end - begin - setting - latency - control - compute, compute, control
            cause = int(caused_by[group_of[last]])
            if cause < 0:
                return parts
            end, last, added_up = begin, cause // 2, bool(cause % 2)


def _starts(*columns: IntArray) -> np.ndarray:
    """Rows that differ from the row before, bool (n,)."""
    differs = np.zeros(len(columns[0]), bool)
    differs[0] = True
    for column in columns:
        differs[1:] |= column[1:] != column[:-1]
    return differs


def _sums_s(transfers: Transfers, chunk_bytes: float, assumed: Assumptions) -> np.ndarray:
    """Time from the arrival of each transfer until its receiver has added up what this step brings it [s]."""
    seconds = np.zeros(len(transfers))
    adds = np.flatnonzero(transfers.op == Op.REDUCE)
    if assumed.compute == "none" or not len(adds):
        return seconds
    dst, lo, n = (column[adds].astype(np.int64) for column in (transfers.dst, transfers.chunk_lo, transfers.chunk_n))
    moved = np.bincount(dst, n)
    if assumed.compute == "chain":
        moved = 3 * moved
    else:
        order = np.argsort(dst * (int(lo.max()) + 1) + lo, kind="stable")
        new = newly_covered(dst[order], lo[order], (lo + n)[order])
        moved = moved + 2 * np.bincount(dst[order], new, minlength=len(moved))
    seconds[adds] = moved[dst] * chunk_bytes / assumed.memory_bytes_per_s
    return seconds


class _Settings:
    """Which circuits must be set anew; as in the closed form, but circuit by circuit."""

    def __init__(self, fabric: Fabric, assumed: Assumptions) -> None:
        self._cost = fabric.reconfiguration_s
        self._every = assumed.reconfiguration_charge == "every_step"
        self._free = assumed.initial == "warm"
        self._standing: np.ndarray | None = None

    def charge(self, circuits: Circuits) -> np.ndarray:
        """Time to set each circuit of the next round, float64 (circuits,) [s]."""
        if not self._cost or self._every:
            return np.full(len(circuits), self._cost)
        columns = (circuits.src, circuits.dst, circuits.port, circuits.wavelength_lo, circuits.wavelength_n)
        table = np.ascontiguousarray(np.stack([np.asarray(c, np.int32) for c in columns], axis=1))
        records = table.view(np.dtype((np.void, table.dtype.itemsize * table.shape[1]))).ravel()
        if self._standing is None:
            changed = np.full(len(circuits), not self._free)
            self._standing = records
        else:
            changed = ~np.isin(records, self._standing)
            if changed.any():
                self._standing = records
        return changed * self._cost


class _Units:
    """Who has what light occupies, in turn: circuits of later rounds wait for those before them on the same thing."""

    def __init__(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self.turn = 0
        self.rows: list[tuple[IntArray, IntArray, IntArray]] = []
        self.base: dict[int, int] = {}
        total = 0
        for resource in fabric.resources:
            self.base[id(resource)] = total
            total += resource.count * (fabric.num_wavelengths if resource.per_wavelength else 1)

    def add(self, circuits: Circuits, flow_of: IntArray) -> None:
        """The circuits of the next round; `flow_of` is the number of each transfer."""
        for usage in self.fabric.usage(circuits):
            resource = usage.resource
            if resource.shared or resource.once_per_job:
                continue
            owner = np.arange(len(circuits)) if usage.circuit is None else usage.circuit
            index = usage.index.astype(np.int64)
            if resource.per_wavelength:
                n = circuits.wavelength_n[owner].astype(np.int64)
                within = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
                owner = np.repeat(owner, n)
                colour = circuits.wavelength_lo[owner] + within * circuits.wavelength_step
                index = np.repeat(index, n) * self.fabric.num_wavelengths + colour
            flow = flow_of[circuits.transfer[owner]]
            self.rows.append((index + self.base[id(resource)], np.full(len(flow), self.turn), flow))
        self.turn += 1

    def order(self) -> tuple[IntArray, IntArray]:
        """Pairs (flow, flow that waits for it)."""
        if not self.rows:
            return _NO_EDGES, _NO_EDGES
        unit, turn, flow = (np.concatenate(column) for column in zip(*self.rows, strict=True))
        by_unit = np.argsort(unit, kind="stable")  # turns rise already
        firsts, laters = kernels.order_needs(unit[by_unit], turn[by_unit], flow[by_unit])
        top = int(flow.max()) + 1
        pairs = np.unique(firsts * top + laters)
        return pairs // top, pairs % top
