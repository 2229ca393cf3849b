"""Links of a machine of optical circuit switches.

Any schedule   an edge colouring of the pairs of a step; colour c in round c // k on plane c % k. Fewer colours than planes:
               every pair has as many planes as fit. Where a step consists of whole shifts, i to i + D for all i, the colours
               are the shifts in order, so that equal steps get equal links.
digit_shifts   the links that the schedule holds: shifts by S on every plane; a pair at distance D is joined by h links of
               them, h S = D modulo N

Circuits that share links take shares of them in proportion to their bytes, so that all of them end at the same time.
"""

from __future__ import annotations

import numpy as np

from opticcl.circuits import Rounds, register_rule
from opticcl.circuits._size import decline_too_many
from opticcl.errors import TooLargeError, UnsupportedError
from opticcl.fabrics.ocs import SHARES, Ocs
from opticcl.ir import Circuits, Fabric, IntArray, Schedule, Transfers
from opticcl.ir.limits import limit
from opticcl.routing.assign import edge_colouring
from opticcl.schedule.digit_shifts import held_shifts

__all__ = ["MOST_HOPS", "links_of_shift", "ocs"]

MOST_HOPS = limit("ocs.MOST_HOPS")

BYTES_A_TRANSFER = 104
"""Pairs and their colours, 64 bytes, and a circuit of one hop."""

SPARSE = 4
"""Entries that a table of all values may have for each value that is given [count]."""


@register_rule("ocs")
def ocs(fabric: Fabric, schedule: Schedule) -> Rounds:
    """Links and shares for any schedule.

    Raises: UnsupportedError: the circuits of a step are too many, or pass too many links.
    """
    machine = fabric.machine_as(Ocs)
    decline_too_many(fabric, schedule, BYTES_A_TRANSFER)
    held = _held(schedule)

    def rounds(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        shift = held[step] if held else 0
        return _over_held(fabric, transfers, shift) if shift else _direct(machine, transfers)

    return rounds


def _held(schedule: Schedule) -> tuple[int, ...]:
    """The shift that stands in each step, 0 for the step's own; empty where the schedule holds none."""
    return held_shifts(schedule) if schedule.name == "digit_shifts" else ()


def links_of_shift(distance: int, shift: int, num_nodes: int) -> int:
    """Links of a shift that lead a distance ahead, 0 where they do not.

    >>> links_of_shift(6, 2, 8), links_of_shift(2, 6, 8), links_of_shift(3, 2, 8)
    (3, 3, 0)

    Args:
        distance: from the sender to the receiver, modulo `num_nodes`.
        shift: from a node to the next on the standing links.
        num_nodes: nodes N [count].
    """
    common = int(np.gcd(shift, num_nodes))
    if distance % common:
        return 0
    rest = num_nodes // common
    return distance // common * pow(shift // common, -1, rest) % rest if rest > 1 else 0


def _over_held(fabric: Fabric, transfers: Transfers, shift: int) -> tuple[Circuits, ...]:
    """Circuits of a step over the links of a shift, on all planes at the same time.

    Args:
        fabric: a machine with its planes, or a job on it; shifts are those of ranks within a group.
        transfers: of the step.
        shift: from a node to the next.
    Raises: UnsupportedError: a pair that they do not join, or too many links.
    """
    machine, n = fabric.machine_as(Ocs), fabric.num_nodes // fabric.num_members
    ranks, k = fabric.ranks_at(transfers.src).astype(np.int64), machine.planes
    distances, which = np.unique((fabric.ranks_at(transfers.dst) - ranks) % n, return_inverse=True)
    found = [links_of_shift(int(distance), shift, n) for distance in distances]
    if not all(found):
        far = int(distances[found.index(0)])
        raise UnsupportedError(f"ocs: links of shift {shift} do not lead {far} nodes ahead; try another hold")
    length = np.array(found, np.int64)[which]
    total = int(length.sum())
    if total * k > MOST_HOPS:
        raise TooLargeError(
            f"ocs: the circuits of a step pass {total * k:,} links, at most {MOST_HOPS:,} are supported; hold fewer steps"
        )
    offsets = np.concatenate([[0], np.cumsum(length)])
    along = np.arange(total) - np.repeat(offsets[:-1], length)
    begin = np.repeat(ranks, length)
    node = fabric.machine_nodes(begin // n * n + (begin + along * shift) % n).astype(np.int64)
    size = transfers.size_chunks()
    load = np.bincount(node, np.repeat(size, length)).max()
    shares = np.maximum(1, np.floor(SHARES * (size / load))).astype(np.int64)
    planes = np.arange(k)[:, None]
    hops = (planes + np.where(along > 0, k, 0)) * machine.nodes + node
    row = np.arange(len(transfers))
    path = (hops.ravel(), np.concatenate([[0], np.cumsum(np.tile(length, k))]))
    row, src, dst = (np.tile(column, k) for column in (row, transfers.src, transfers.dst))
    port = np.repeat(np.arange(k), len(transfers))
    return (Circuits.of(row, src, dst, port, 0, np.tile(shares, k), path),)


def _direct(machine: Ocs, transfers: Transfers) -> tuple[Circuits, ...]:
    """Circuits of a step over a link each, in as few rounds as the planes allow.

    Args:
        machine: with its planes.
        transfers: of the step.
    """
    n, k = machine.nodes, machine.planes
    pairs, of_pair = _distinct(transfers.src.astype(np.int64) * n + transfers.dst, n * n)
    src, dst = np.divmod(pairs, n)
    colour, number = _colours(src, dst, n)
    size = transfers.size_chunks()
    load = np.bincount(of_pair, size)
    times = max(1, k // number)
    round_of = (colour[of_pair] // k).astype(np.min_scalar_type(number))  # few are sorted by radix
    of_round = np.split(np.argsort(round_of, kind="stable"), np.cumsum(np.bincount(round_of))[:-1])
    rounds = []
    for first, rows in zip(range(0, number, k), of_round, strict=True):
        busiest = float(load[of_pair[rows]].max())
        shares = np.maximum(1, np.floor(SHARES * (size[rows] / busiest))).astype(np.int64)
        again = np.tile(rows, times)
        plane = np.tile(colour[of_pair[rows]] - first, times) + number * np.repeat(np.arange(times), len(rows))
        ends = src[of_pair[again]], dst[of_pair[again]]
        path = (plane * n + ends[0])[:, None]
        rounds.append(Circuits.of(again, *ends, plane, 0, np.tile(shares, times), path))
    return tuple(rounds)


def _distinct(values: IntArray, below: int) -> tuple[IntArray, IntArray]:
    """Distinct values, ascending, and the position of each value among them.

    Args:
        values: 0 or more, int64.
        below: a limit of all of them.
    """
    if below > SPARSE * len(values):
        found, position = np.unique(values, return_inverse=True)
        return found, position
    there = np.zeros(below, bool)
    there[values] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[values]


def _colours(src: IntArray, dst: IntArray, num_nodes: int) -> tuple[IntArray, int]:
    """Colour of each pair, and their number: the fewest, by the distance where the step consists of whole shifts.

    Args:
        src, dst: distinct pairs, in order.
        num_nodes: nodes N [count].
    """
    busiest = max(int(np.bincount(end).max()) for end in (src, dst))
    distances, colour = _distinct((dst - src) % num_nodes, num_nodes)
    if len(distances) == busiest:
        return colour, busiest
    return edge_colouring(src, dst, num_nodes, busiest), busiest
