"""Load of each part of a machine during a plan, and the bottleneck: the part with the largest busy time.

A part is a link of a packet fabric, or any resource that a circuit occupies: transmitters, receivers, fibres, waveguides,
star couplers. Its busy time is that of its bytes at its full rate:

    packets   the rate of the link
    circuits  capacity in circuits x wavelengths (those of the grid where different wavelengths pass side by side, else those
              that one transmitter sends concurrently; 1 where the capacity counts wavelengths already) x rate of a
              wavelength; with slots, payload over duration of a slot

so a fibre of which half of the wavelengths are unused all the time is half busy. A signal that is split and received by
several nodes counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from opticcl.errors import UnsupportedError
from opticcl.ir import CircuitPlan, Circuits, Fabric, IntArray, Resource, Transfers, concatenate_circuits
from opticcl.ir.circuit_plan import same_light
from opticcl.ir.orbits import orbits_of_units
from opticcl.ir.representatives import SymmetricRounds
from opticcl.ir.signals import signals_of
from opticcl.simulate.closed_form.routes import over_orbits, routes_of_step
from opticcl.simulate.links import Links
from opticcl.simulate.traffic import Traffic
from opticcl.units import format_bytes, format_seconds

__all__ = ["Bottleneck", "Load", "bottleneck", "full_rate", "loads", "loads_of_traffic", "uses"]

_ROUNDING = 1e-9  # relative; sums in another order may differ by this much


@dataclass(frozen=True, slots=True)
class Place:
    """One resource of a fabric.

    Args:
        resource: position in the fabric's `resources`.
        index: instance, below its count.
    """

    resource: int
    index: int


@dataclass(frozen=True, slots=True)
class Load:
    """Load of the parts of one kind during a plan; parts that carry nothing are left out.

    Args:
        resource: index of their kind in the fabric's `resources`.
        index: number of each part among those of its kind, ascending, int64 (m,).
        carried_bytes: float64 (m,).
        busy_s: duration of these bytes at the full rate, float64 (m,) [s].
        largest_queue_bytes, dropped_bytes: as in `Traffic`, float64 (m,); 0 where nothing queues.
    """

    resource: int
    index: IntArray
    carried_bytes: np.ndarray
    busy_s: np.ndarray
    largest_queue_bytes: np.ndarray
    dropped_bytes: np.ndarray


@dataclass(frozen=True, slots=True)
class Bottleneck:
    """The part of a machine that is busy longest.

    Args:
        place: which part.
        name: readable name of the part.
        carried_bytes: during the plan [bytes].
        busy_s: duration of these bytes at its full rate [s].
        utilisation: busy time over the time of the plan, 0 to 1.
        num_equal: parts of its kind that are equally busy, itself included [count].
    """

    place: Place
    name: str
    carried_bytes: float
    busy_s: float
    utilisation: float
    num_equal: int

    def __str__(self) -> str:
        """Name, number of equally busy parts, bytes and busy time, in a line."""
        others = f", one of {self.num_equal:,} equally busy ones" if self.num_equal > 1 else ""
        busy = f"busy for {format_seconds(self.busy_s)}, {self.utilisation:.1%} of the time"
        return f"bottleneck: {self.name}{others}, {format_bytes(self.carried_bytes)}, {busy}"


def loads(plan: CircuitPlan, size_bytes: float) -> tuple[Load, ...]:
    """Load of every part, from the circuits alone: the same for every engine that loses nothing.

    Routes of a transfer carry equal shares, circuits of a transfer shares in proportion to their wavelengths. Identical
    steps are evaluated once.

    Args:
        plan: schedule, fabric and circuits.
        size_bytes: message of every rank [bytes].
    Returns: one load for each kind of resource that carries data, in the order of the fabric's `resources`.
    """
    schedule, fabric = plan.schedule, plan.fabric
    chunks = [np.zeros(resource.count) for resource in fabric.resources]
    # of steps one after the other with the same light: transfers of the first, circuits, and what all of them carry
    together: tuple[tuple[Transfers, tuple[Circuits, ...]], IntArray] | None = None

    def add(step: tuple[Transfers, tuple[Circuits, ...]], amount: IntArray) -> None:
        transfers, rounds = step
        for circuits in rounds:
            for i, index, _circuit, carried in uses(fabric, transfers, circuits.carrying(), amount):
                of_parts = np.bincount(index, carried)
                chunks[i][: len(of_parts)] += of_parts

    for steps in schedule.step_classes():
        routes = routes_of_step(plan, steps.start)
        if routes is not None:
            firsts = np.cumsum([resource.count for resource in fabric.resources])
            for i, carried in enumerate(np.split(routes.link_chunks(), firsts[:-1])):
                chunks[i] += carried * len(steps)
            continue
        sets = plan.by_senders(steps.start)
        if not sets and plan.images(steps.start) is not None:
            raise UnsupportedError(f"step {steps.start} on {fabric.name} is not listed, so no load is known")
        for some in sets:
            for i, carried in _loads_of_images(plan, some, steps.start):
                chunks[i] += carried * len(steps)
        if sets:
            continue
        step = schedule.step(steps.start), plan.rounds(steps.start)
        amount = step[0].size_chunks() * len(steps)
        if together is not None and same_light(fabric, together[0], step):
            together = together[0], together[1] + amount
            continue
        if together is not None:
            add(*together)
        together = step, amount
    if together is not None:
        add(*together)
    chunk_bytes = size_bytes / schedule.collective.num_chunks
    return tuple(
        Load(i, index, carried, carried / full_rate(fabric, fabric.resources[i]), *np.zeros((2, len(index))))
        for i, total in enumerate(chunks)
        if len(index := np.flatnonzero(total)) and (carried := total[index] * chunk_bytes).any()
    )


def loads_of_traffic(fabric: Fabric, traffic: Traffic) -> tuple[Load, ...]:
    """Load of the shared links as an engine recorded it, retransmissions included."""
    base = Links(fabric).base
    shared = [(i, base[id(r)], r.count) for i, r in enumerate(fabric.resources) if r.shared]
    per_resource = []
    for i, first, count in shared:
        rows = slice(*np.searchsorted(traffic.link, [first, first + count]))
        columns = (traffic.carried_bytes, traffic.busy_s, traffic.largest_queue_bytes, traffic.dropped_bytes)
        if len(traffic.link[rows]):
            per_resource.append(Load(i, traffic.link[rows] - first, *(column[rows] for column in columns)))
    return tuple(per_resource)


def bottleneck(fabric: Fabric, of_parts: Iterable[Load], total_s: float) -> Bottleneck | None:
    """The part that is busy longest, of equally busy ones the first; None where no part carries data.

    Args:
        fabric: with its resources.
        of_parts: loads of its parts.
        total_s: time of the plan [s].
    """
    of_parts = tuple(of_parts)
    if not of_parts:
        return None
    enough = max(float(load.busy_s.max()) for load in of_parts) * (1 - _ROUNDING)
    busiest = next(load for load in of_parts if load.busy_s.max() >= enough)
    equal = np.flatnonzero(busiest.busy_s >= enough)
    row = int(equal[0])
    place = Place(busiest.resource, int(busiest.index[row]))
    busy_s = float(busiest.busy_s[row])
    return Bottleneck(
        place,
        fabric.place_names(place.resource, [place.index])[0],
        float(busiest.carried_bytes[row]),
        busy_s,
        busy_s / total_s if total_s else 0.0,
        len(equal),
    )


def full_rate(fabric: Fabric, resource: Resource) -> float:
    """Largest rate of one part of a kind [byte/s]."""
    if resource.shared:
        return resource.capacity / 8
    wavelength = fabric.slot_payload_bytes / fabric.slot_s if fabric.slot_s else fabric.rate_bits_per_s / 8
    at_once = 1 if resource.in_wavelengths else fabric.lasers_per_port
    if resource.per_wavelength:
        at_once = fabric.num_wavelengths
    return resource.capacity * at_once * wavelength


def uses(
    fabric: Fabric, transfers: Transfers, circuits: Circuits, amount: np.ndarray
) -> Iterator[tuple[int, IntArray, IntArray | None, np.ndarray]]:
    """Parts that the circuits of a round use.

    Args:
        fabric: with its resources.
        transfers: of the step.
        circuits: of the round, without idle ones.
        amount: of each transfer, float64 (transfers,).
    Returns: for every usage the index of its kind in the fabric's `resources`; the parts of that kind, (m,); the circuit
        that uses each, (m,), or None if row i is that of circuit i; the share of the amount on each, (m,).
    """
    number = {id(resource): i for i, resource in enumerate(fabric.resources)}
    mine = amount[circuits.transfer]
    weight = None if fabric.is_packet_switched else circuits.wavelength_n
    whole = np.bincount(circuits.transfer, weight, minlength=len(transfers))
    if (whole > 1).any():
        mine = mine / whole[circuits.transfer] * (1 if weight is None else weight)
    for usage in fabric.usage(circuits):
        carried = mine if usage.circuit is None else mine[usage.circuit]
        if usage.resource.splits:
            repeated = _repeated_signals(fabric, transfers, circuits, usage.index, usage.circuit)
            carried = carried if repeated is None else np.where(repeated, 0.0, carried)
        yield number[id(usage.resource)], usage.index, usage.circuit, carried


def _loads_of_images(plan: CircuitPlan, rounds: SymmetricRounds, i: int) -> Iterator[tuple[int, np.ndarray]]:
    """Kinds of resources, and what each part carries in a step, float64 (parts,) [chunks].

    The images of a part carry equal shares of what listed circuits carry on any of them, times the number of images of a
    circuit. No signal is split.

    Args:
        plan: with the step.
        rounds: circuits of some senders of the step.
        i: its index.
    Raises: UnsupportedError: the moves do not keep the machine.
    """
    fabric = plan.fabric
    orbits = orbits_of_units(fabric, rounds.moves)
    if orbits is None:
        raise UnsupportedError(f"step {i} on {fabric.name}: its moves do not keep the machine, so no load is known")
    transfers, circuits = plan.schedule.steps.sent_by(i, rounds.senders), concatenate_circuits(rounds.rounds)
    whole = np.bincount(circuits.transfer, circuits.wavelength_n, len(transfers))
    share = (transfers.size_chunks() / whole)[circuits.transfer] * circuits.wavelength_n
    for number, usage in enumerate(fabric.usage(circuits)):
        mine = share if usage.circuit is None else share[usage.circuit]
        carried = np.bincount(usage.index, mine, minlength=usage.resource.count)
        yield number, over_orbits(carried, orbits[number], rounds.images)


def _repeated_signals(
    fabric: Fabric, transfers: Transfers, circuits: Circuits, index: IntArray, circuit: IntArray | None
) -> np.ndarray | None:
    """Rows of a usage whose signal another row puts on the same resource already, bool (m,), or None if there are none.

    Args:
        fabric: that the circuits are on.
        transfers: of the step.
        circuits: of the round.
        index, circuit: of the usage.
    """
    leaves = circuits.src.astype(np.int64) * (int(circuits.port.max(initial=0)) + 1) + circuits.port
    if np.bincount(leaves).max(initial=0) <= 1:
        return None  # no port has two circuits
    signal = signals_of(fabric, circuits, transfers).of_circuits()
    columns = (index, signal if circuit is None else signal[circuit])
    order = np.lexsort(columns)
    repeated = np.zeros(len(order), bool)
    repeated[order[1:]] = np.all([column[order[1:]] == column[order[:-1]] for column in columns], axis=0)
    return repeated
