"""What each part of a machine carries during a plan, and which part is the fullest.

A part is a link of a packet fabric, or anything that a circuit occupies: transmitters, receivers, fibres, waveguides,
star couplers. It is busy for as long as its bytes take at its full rate:

    packets   the rate of the link
    light     circuits that it may carry x wavelengths (those of the grid where they pass side by side, else those that one
              transmitter lights at once) x rate of a wavelength; with slots, what a slot carries over what it takes

so a fibre on which half of the wavelengths are dark all the time is half busy. Light that is split and heard by many is
counted once where it is one signal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from opticcl.ir import CircuitPlan, Circuits, Fabric, IntArray, Op, Resource, Transfers
from opticcl.simulate.links import Links
from opticcl.simulate.places import Place, place_name
from opticcl.simulate.traffic import Traffic

__all__ = ["Bottleneck", "Load", "bottleneck", "full_rate", "loads", "loads_of_traffic", "uses"]

_ALIKE = 1e-9  # relative; sums in another order may differ by so much


@dataclass(frozen=True, slots=True)
class Load:
    """What the parts of one kind carry during a plan; those that carry nothing are left out.

    Args:
        resource: which of the fabric's `resources` they are.
        index: number of each among those of its kind, ascending, int64 (m,).
        carried_bytes: float64 (m,).
        busy_s: what that takes at the full rate, float64 (m,) [s].
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
        name: in words.
        carried_bytes: during the plan [bytes].
        busy_s: what that takes at its full rate [s].
        utilisation: busy over the time of the plan, 0 to 1.
        alike: parts of its kind that are as busy, itself included [count].
    """

    place: Place
    name: str
    carried_bytes: float
    busy_s: float
    utilisation: float
    alike: int


def loads(plan: CircuitPlan, size_bytes: float) -> tuple[Load, ...]:
    """What every part carries, from the circuits alone: the same for every engine that loses nothing.

    A transfer on several routes puts an equal share on each; light puts a share on each circuit in proportion to its
    wavelengths. Steps of a class are looked at once.

    Args: size_bytes: message of every rank [bytes].
    Returns: one load a kind of resource that carries something, in the order of the fabric's.
    """
    schedule, fabric = plan.schedule, plan.fabric
    chunks = [np.zeros(resource.count) for resource in fabric.resources]
    seen: tuple[tuple[Circuits, ...], IntArray] | None = None
    found: list[tuple[int, np.ndarray]] = []
    for steps in schedule.step_classes():
        transfers, rounds = schedule.step(steps.start), plan.rounds(steps.start)
        amount = transfers.size_chunks()
        if not (seen and _same(seen[0], rounds) and np.array_equal(seen[1], amount)):
            seen = (rounds, amount)
            found = [
                (i, np.bincount(index, carried))
                for circuits in rounds
                for i, index, _, carried in uses(fabric, transfers, circuits, amount)
            ]
        for i, carried in found:
            chunks[i][: len(carried)] += carried * len(steps)
    chunk_bytes = size_bytes / schedule.collective.num_chunks
    return tuple(
        Load(i, index, carried, carried / full_rate(fabric, fabric.resources[i]), *np.zeros((2, len(index))))
        for i, total in enumerate(chunks)
        if len(index := np.flatnonzero(total)) and (carried := total[index] * chunk_bytes).any()
    )


def loads_of_traffic(fabric: Fabric, traffic: Traffic) -> tuple[Load, ...]:
    """What an engine saw on the shared links, what was lost and sent again included."""
    base = Links(fabric).base
    shared = [(i, base[id(r)], r.count) for i, r in enumerate(fabric.resources) if r.shared]
    found = []
    for i, first, count in shared:
        rows = slice(*np.searchsorted(traffic.link, [first, first + count]))
        columns = (traffic.carried_bytes, traffic.busy_s, traffic.largest_queue_bytes, traffic.dropped_bytes)
        if len(traffic.link[rows]):
            found.append(Load(i, traffic.link[rows] - first, *(column[rows] for column in columns)))
    return tuple(found)


def bottleneck(fabric: Fabric, found: Iterable[Load], total_s: float) -> Bottleneck | None:
    """The part that is busy longest, of equals the first; None where nothing carries anything.

    Args: total_s: time of the plan [s].
    """
    found = tuple(found)
    if not found:
        return None
    enough = max(float(load.busy_s.max()) for load in found) * (1 - _ALIKE)
    fullest = next(load for load in found if load.busy_s.max() >= enough)
    alike = np.flatnonzero(fullest.busy_s >= enough)
    row = int(alike[0])
    place = Place(fullest.resource, int(fullest.index[row]))
    busy_s = float(fullest.busy_s[row])
    return Bottleneck(
        place,
        place_name(fabric, place),
        float(fullest.carried_bytes[row]),
        busy_s,
        busy_s / total_s if total_s else 0.0,
        len(alike),
    )


def full_rate(fabric: Fabric, resource: Resource) -> float:
    """What one resource can carry at most [byte/s]."""
    if resource.shared:
        return resource.capacity / 8
    wavelength = fabric.slot_payload_bytes / fabric.slot_s if fabric.slot_s else fabric.rate_bits_per_s / 8
    at_once = fabric.num_wavelengths if resource.per_wavelength else fabric.lasers_per_port
    return resource.capacity * at_once * wavelength


def _same(rounds: tuple[Circuits, ...], others: tuple[Circuits, ...]) -> bool:
    """Whether these are the very same circuits, which rules that remember their last answer give again."""
    return len(rounds) == len(others) and all(one is other for one, other in zip(rounds, others, strict=True))


def uses(
    fabric: Fabric, transfers: Transfers, circuits: Circuits, amount: np.ndarray
) -> Iterator[tuple[int, IntArray, IntArray | None, np.ndarray]]:
    """Which parts the circuits of a round use.

    Args: amount: of each transfer, float64 (transfers,).
    Returns: for every usage: which of the fabric's `resources`; which ones of its count, (m,); the circuit that uses each,
        (m,), or None if row i is circuit i's; how much of the amount goes there, (m,).
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
            again = _heard_again(transfers, circuits, usage.index, usage.circuit)
            carried = carried if again is None else np.where(again, 0.0, carried)
        yield number[id(usage.resource)], usage.index, usage.circuit, carried


def _heard_again(
    transfers: Transfers, circuits: Circuits, index: IntArray, circuit: IntArray | None
) -> np.ndarray | None:
    """Rows of a usage whose signal another row has on the same resource already, bool (m,), or None if there are none.

    One signal leaves one port of one sender on the same wavelengths with the same chunks, to be stored.
    """
    leaves = circuits.src.astype(np.int64) * (int(circuits.port.max(initial=0)) + 1) + circuits.port
    if np.bincount(leaves).max(initial=0) <= 1:
        return None  # no port has two circuits
    owner = np.arange(len(circuits)) if circuit is None else circuit
    carried = circuits.transfer[owner]
    columns = (
        index, leaves[owner], circuits.wavelength_lo[owner], circuits.wavelength_n[owner], transfers.chunk_lo[carried],
        transfers.chunk_n[carried], np.where(transfers.op[carried] == Op.COPY, -1, owner),
    )  # fmt: skip
    order = np.lexsort(columns)
    again = np.zeros(len(order), bool)
    again[order[1:]] = np.all([column[order[1:]] == column[order[:-1]] for column in columns], axis=0)
    return again
