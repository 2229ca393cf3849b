"""Light on SiP-Ring: direction, round and wavelength of every transfer.

    direction     clockwise; with two fibres the shorter way, opposite nodes turn about by the sender's number
    round         a transmitter has one partner at a time: an edge colouring of senders and receivers, port by port
    wavelength    the first that is free on all segments, in the order of the lower node of each pair

Two nodes that exchange close the circle of a one-way ring between them, so in that order halving-doubling takes one
wavelength a pair: N/2, and N/4 with two fibres, which is the load of the busiest segment. Nothing takes fewer. What finds
no wavelength goes to a later round; where that has pairs of the round before alone, it has their wavelengths.

Source: ODDL section 5.A, which counts N/2 - 1.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from opticcl.circuits import Rounds, register_rule
from opticcl.circuits._order import farthest_first, recalled
from opticcl.circuits.terarack import BYTES_A_SEGMENT, MAX_SEGMENTS
from opticcl.errors import TooLargeError
from opticcl.ir import Circuits, Fabric, IntArray, Schedule, Transfers, numbered
from opticcl.ir.limits import ROUTES_AT_ONCE
from opticcl.ir.phases import TransferEnds
from opticcl.routing.assign import edge_colouring, first_fit
from opticcl.units import format_bytes

__all__ = ["sip_ring"]


@register_rule("sip_ring")
def sip_ring(fabric: Fabric, schedule: Schedule) -> Rounds:
    """First fit for any schedule.

    Raises: UnsupportedError: a step uses too many fibre segments.
    """
    ranks = np.arange(schedule.steps.space.num_ranks)
    for steps in schedule.step_classes():
        ends = schedule.steps.ends(steps.start, ROUTES_AT_ONCE, ranks)
        segments = sum(int(_distance(fabric, some, _direction(fabric, some)).sum()) for some in ends)
        if segments > MAX_SEGMENTS:
            raise TooLargeError(
                f"{schedule.name} on sip_ring: step {steps.start} uses {segments:,} fibre segments, "
                f"{format_bytes(BYTES_A_SEGMENT * segments)}; first fit is for "
                f"{format_bytes(BYTES_A_SEGMENT * MAX_SEGMENTS)} at most"
            )

    def fit(transfers: Transfers) -> tuple[Circuits, ...]:
        direction = _direction(fabric, transfers)
        sender, receiver = (
            node * np.int64(fabric.ports_per_node) + direction for node in (transfers.src, transfers.dst)
        )
        busiest = max(int(np.bincount(end).max()) for end in (sender, receiver))
        turn = np.zeros(len(transfers), np.int32)
        if busiest > 1:
            turn = edge_colouring(sender, receiver, fabric.num_machine_nodes * fabric.ports_per_node, busiest)
        parts = (np.flatnonzero(turn == t) for t in range(busiest))
        fitted = [circuits for rows in parts for circuits in _at_once(fabric, transfers, rows, direction[rows])]
        return _kept(fitted, fabric.num_machine_nodes)

    return recalled(farthest_first(fabric.num_machine_nodes, fit))


def _at_once(fabric: Fabric, transfers: Transfers, rows: IntArray, direction: IntArray) -> list[Circuits]:
    """Circuits of transfers no two of which share a transmitter or a receiver, in as few rounds as first fit finds."""
    src, dst = transfers.src[rows], transfers.dst[rows]
    by_pair = np.lexsort((np.maximum(src, dst), np.minimum(src, dst)))
    rows, direction = rows[by_pair], direction[by_pair]
    chosen = transfers.take(rows)
    hops, offsets = _walk(fabric, chosen, direction)
    wavelength, number = first_fit(hops, offsets, fabric.resources[0].count, fabric.num_wavelengths)
    circuits = Circuits.of(rows, chosen.src, chosen.dst, direction, wavelength, 1, (hops, offsets))
    return [circuits.take(number == r) for r in range(int(number.max()) + 1)]


def _kept(rounds: list[Circuits], nodes: int) -> tuple[Circuits, ...]:
    """A round all of whose pairs stand from the round before has the light of that one: nothing is set for it.

    Args:
        rounds: of a step.
        nodes: of the machine [count].
    """
    kept = rounds[:1]
    for circuits in rounds[1:]:
        wanted, known = (
            one.src * np.int64(nodes) + one.dst for one in (circuits, kept[-1])
        )  # which names the port too
        order = np.argsort(known)
        rows = order[np.minimum(np.searchsorted(known[order], wanted), len(known) - 1)]
        stands = np.array_equal(known[rows], wanted)
        kept.append(replace(circuits, wavelength_lo=kept[-1].wavelength_lo[rows]) if stands else circuits)
    return tuple(kept)


def _direction(fabric: Fabric, transfers: Transfers | TransferEnds) -> IntArray:
    """Port of each transfer: 0 clockwise, 1 counter-clockwise."""
    n = fabric.num_machine_nodes
    if fabric.ports_per_node == 1:
        return np.zeros(len(transfers), np.int64)
    twice = 2 * ((transfers.dst.astype(np.int64) - transfers.src) % n)
    return np.where(twice == n, transfers.src % 2 == 1, twice > n).astype(np.int64)


def _distance(fabric: Fabric, transfers: Transfers | TransferEnds, direction: IntArray) -> IntArray:
    """Segments of each transfer in its direction, int64 (n,)."""
    ahead = transfers.dst.astype(np.int64) - transfers.src
    return np.asarray(np.where(direction == 0, ahead, -ahead) % fabric.num_machine_nodes)


def _walk(fabric: Fabric, transfers: Transfers, direction: IntArray) -> tuple[IntArray, IntArray]:
    """Segments of all transfers end to end and where each transfer's begin, int64."""
    n = fabric.num_machine_nodes
    lengths = _distance(fabric, transfers, direction)
    row, along = numbered(lengths)
    src = transfers.src[row].astype(np.int64)
    hops = np.where(direction[row] == 0, (src + along) % n, n + (src - 1 - along) % n)
    return hops, np.concatenate([[0], np.cumsum(lengths)])
