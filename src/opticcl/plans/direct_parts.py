"""Where an all_to_all on a RAMP is cut: parts of what a node has for another go directly, the others in two steps.

A block of m bytes that goes directly takes ceil(m / s) slots of N / x rounds each, s bytes a slot. Cut so that k = floor(m / s)
slots are full, the rest of m - k s bytes goes over A and B of `skewed_exchange`. Since parts are equal, d of P of them are the
largest share that does not exceed k s bytes, with the least P whose slots are at most 0.2 % more than those of the exact
cut, or else with the P of fewest slots.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.assumptions import Assumptions
from opticcl.collective import Request
from opticcl.fabrics.ramp import Ramp
from opticcl.ir import Fabric
from opticcl.ir.limits import limit
from opticcl.schedule import reason_declined
from opticcl.schedule.skewed_exchange import MOST_CHUNKS
from opticcl.simulate.latency import in_line_on, path_latency

__all__ = ["MOST_PARTS", "algorithm_in_parts", "cut_of", "in_short"]

MOST_PARTS = limit("direct_parts.MOST_PARTS")
NEAR = 0.002
"""More slots than the exact cut takes, as a share of these."""
_ROUNDING = 1e-9  # of a slot; data of whole slots is not rounded up by what a float lacks

FloatArray = npt.NDArray[np.float64]


class _Cut(NamedTuple):
    """A cut of each block.

    Args:
        block: racks of a block, for the parts that go over A and B [count].
        parts: of what a node has for another [count].
        direct: of these that go directly [count].
        slots: of all rounds [count].
        exact_slots: of the exact cut [count].
    """

    block: int
    parts: int
    direct: int
    slots: int
    exact_slots: int


def cut_of(machine: Ramp, size_bytes: float, most: int = MOST_PARTS) -> _Cut | None:
    """The cut of an all_to_all; None where no slot is filled, or all are.

    Args:
        machine: that runs it.
        size_bytes: message of every rank [bytes].
        most: parts of a block [count].
    """
    n, payload = machine.num_nodes, machine.slot_payload_bytes
    most = min(most, MOST_CHUNKS // n)
    whole = int(size_bytes / n / payload + _ROUNDING) if machine.slot_s else 0
    rest = size_bytes - whole * payload * n
    if not whole or rest <= _ROUNDING * size_bytes or most < 2:
        return None
    blocks, every = _blocks(machine), machine.racks * machine.wavelengths
    exact = every * whole + min(int(_relayed_slots(machine, p, np.array([rest]))[0]) for p in blocks)
    parts = np.arange(2, most + 1)
    direct = np.floor(parts * (whole * payload * n / size_bytes)).astype(np.int64)
    direct -= np.ceil(direct * (size_bytes / (parts * n)) / payload) > whole  # as a cost counts the slots of a round
    relayed = np.stack([_relayed_slots(machine, p, size_bytes * (parts - direct) / parts) for p in blocks])
    slots = relayed + every * np.ceil(direct * (size_bytes / (parts * n)) / payload)
    slots = np.where(direct > 0, slots, np.inf)
    near = np.flatnonzero(slots.min(axis=0) <= exact * (1 + NEAR))
    at = int(near[0]) if len(near) else int(slots.min(axis=0).argmin())
    which = int(slots[:, at].argmin())
    if not np.isfinite(slots[which, at]):
        return None
    return _Cut(blocks[which], int(parts[at]), int(direct[at]), int(slots[which, at]), exact)


def _relayed_slots(machine: Ramp, block: int, size_bytes: FloatArray) -> FloatArray:
    """Slots of all rounds of A and B, float64 (n,) [count].

    Args:
        machine: that runs them.
        block: racks of a block [count].
        size_bytes: messages of every rank that go this way [bytes].
    """
    n, payload = machine.num_nodes, machine.slot_payload_bytes
    peers = machine.groups * block
    slots: FloatArray = block * np.ceil(size_bytes / peers / payload - _ROUNDING)
    return slots + _rounds_of_b(machine, block) * np.ceil(size_bytes * peers / n / payload - _ROUNDING)


def _rounds_of_b(machine: Ramp, block: int) -> int:
    return machine.racks // block * machine.wavelengths // machine.groups


def algorithm_in_parts(fabric: Fabric, wanted: Request, size_bytes: float, assumed: Assumptions) -> str | None:
    """`skewed_exchange` with the cut of an all_to_all, where it is faster than one way alone; else None.

    Args:
        fabric: that would run it.
        wanted: collective and root.
        size_bytes: message of every rank, or the mean of several [bytes].
        assumed: time assumptions.
    """
    if not isinstance(fabric, Ramp) or wanted.name != "all_to_all":
        return None
    machine, cut = fabric, cut_of(fabric, size_bytes)
    if cut is None:
        return None
    name = f"skewed_exchange:block={cut.block},parts={cut.parts},direct={cut.direct}"
    if reason_declined(name, wanted, fabric) is not None:
        return None
    every = machine.racks * machine.wavelengths
    in_parts_s = _time_s(fabric, assumed, (every + cut.block, _rounds_of_b(machine, cut.block)), cut.slots)
    at_once = every * float(np.ceil(size_bytes / fabric.num_nodes / machine.slot_payload_bytes))
    others: list[tuple[tuple[int, ...], float]] = [((every,), at_once)]
    for block in _blocks(machine):
        rounds = block, _rounds_of_b(machine, block)
        others.append((rounds, float(_relayed_slots(machine, block, np.array([size_bytes]))[0])))
    return name if in_parts_s < min(_time_s(fabric, assumed, *other) for other in others) else None


def _blocks(machine: Ramp) -> list[int]:
    """Racks that a block may have [count]."""
    return [p for p in range(1, machine.racks + 1) if machine.racks % p == 0]


def _time_s(fabric: Fabric, assumed: Assumptions, rounds: tuple[int, ...], slots: float) -> float:
    """Time of steps without sums [s].

    Args:
        fabric: that runs them.
        assumed: time assumptions.
        rounds: of each step [count].
        slots: of all rounds [count].
    """
    law = path_latency(fabric, assumed)
    waits = len(rounds) if in_line_on(fabric, assumed) else sum(rounds)
    gaps_s = sum(rounds) * fabric.machine_as(Ramp).groups * law.message_gap_s
    return waits * law.base_s + gaps_s + slots * fabric.slot_s


def in_short(algorithm: str) -> str:
    """The name of an algorithm without the cut, which changes with every size.

    >>> in_short("skewed_exchange:block=8,parts=64,direct=63"), in_short("skewed_exchange:block=8")
    ('skewed_exchange:parts=...', 'skewed_exchange:block=8')
    """
    return (
        "skewed_exchange:parts=..." if algorithm.startswith("skewed_exchange:") and "parts=" in algorithm else algorithm
    )
