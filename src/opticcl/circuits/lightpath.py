"""LIGHTPATH's circuits: lasers by the offset of the digits, routes along the row and then along the column.

    lasers      k - 1 peers of a node share L lasers: floor(L / (k - 1)) neighbouring ones each, the peer whose digit is
                higher by o (mod k) the o-th set. A node sends to each offset once and hears each offset once, so no
                laser and no photodiode is wanted twice. More than L peers take a round for every L offsets.
    routes      row first, then column. For digit exchanges on grids whose sides are powers of two no routes load the
                edges less, as the middle cut shows (16 circuits for LUMORPH-4 on 16 x 16, 8 for LUMORPH-2).
    waveguides  where an edge is overloaded, the circuits go to rounds by first fit, those with the most company first.

Any other schedule takes its lasers by first fit.

Source: LUMORPH equations 4 to 6, section 5, appendix C.
Reading: appendix C splits an overfull round into two and repeats, which makes a power of two of rounds; first fit makes
about as many as load / waveguides, rounded up.
"""

from __future__ import annotations

import numpy as np

from opticcl.circuits import Rounds, register_rule
from opticcl.circuits.assign import first_fit, width_that_fits
from opticcl.errors import UnsupportedError
from opticcl.fabric.lightpath import EAST, NORTH, SOUTH, WEST, tile_of_node
from opticcl.ir import Circuits, Fabric, IntArray, Schedule, Transfers
from opticcl.schedule.lumorph import digit_of_step, digits

__all__ = ["row_column_routes"]

MOST_HOPS = 1 << 27  # of a step: about 0.5 GB


@register_rule("lightpath")
def lightpath(fabric: Fabric, schedule: Schedule) -> Rounds:
    """Lasers by offset for LUMORPH, first fit for any other schedule."""
    p = fabric.parameters
    rows, columns = p["shape"]
    tile = tile_of_node((rows, columns), p["numbering"], p["seed"])
    ks = digits(fabric.num_nodes, **schedule.parameters) if schedule.name == "lumorph" else ()
    hops = fabric.num_nodes * (max(ks, default=1) - 1) * (rows + columns) // 3  # a third of each side on average
    if hops > MOST_HOPS:
        raise UnsupportedError(
            f"lumorph on lightpath: an exchange among {max(ks)} nodes crosses about {hops:,} edges, more than "
            f"{MOST_HOPS:,} can be listed; try algorithm=ring, or a number of nodes with smaller prime factors"
        )

    def rounds(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        if ks:
            lo, width, turn = _lasers_by_offset(fabric, *digit_of_step(ks, step), transfers)
        else:
            lo, width, turn = _lasers_first_fit(fabric, transfers)
        found: list[Circuits] = []
        for t in range(int(turn.max()) + 1):
            row = np.flatnonzero(turn == t)
            src, dst = transfers.src[row], transfers.dst[row]
            routes = row_column_routes(tile[src], tile[dst], columns)
            found += _split_by_waveguides(fabric, Circuits.of(row, src, dst, 0, lo[row], width, routes))
        return tuple(found)

    return rounds


def _lasers_by_offset(fabric: Fabric, k: int, stride: int, transfers: Transfers) -> tuple[IntArray, int, IntArray]:
    """First laser, number of lasers and turn of every transfer of a digit exchange."""
    lasers = fabric.lasers_per_port
    before = (transfers.dst // stride - transfers.src // stride) % k - 1  # offsets that come before mine
    width = max(1, lasers // (k - 1))
    turn, lo = np.divmod(before * width, lasers)
    return lo, width, turn


def _lasers_first_fit(fabric: Fabric, transfers: Transfers) -> tuple[IntArray, int, IntArray]:
    """The same for any transfers: the first lasers that are free at the sender and photodiodes at the receiver."""
    n, lasers = fabric.num_nodes, fabric.lasers_per_port
    occupied = np.stack([transfers.src, n + transfers.dst], axis=1).astype(np.int64).ravel()
    offsets = np.arange(len(transfers) + 1, dtype=np.int64) * 2
    width = width_that_fits(occupied, offsets, 2 * n, lasers)
    lo, turn = first_fit(occupied, offsets, 2 * n, lasers, width)
    return lo, width, turn


def row_column_routes(src: IntArray, dst: IntArray, columns: int) -> tuple[IntArray, IntArray]:
    """Paths along the row to the receiver's column, then along that column.

    Args:
        src, dst: tiles, int64 (n,).
        columns: of the grid [count].
    Returns: (hops, hop_offsets) as in `Circuits`.

    >>> row_column_routes(np.array([0]), np.array([5]), 3)  # 2 east, 1 south
    (array([ 0,  4, 10]), array([0, 3]))
    """
    (r0, c0), (r1, c1) = np.divmod(src, columns), np.divmod(dst, columns)

    def legs(in_row: IntArray, in_column: IntArray) -> IntArray:
        return np.stack([in_row, in_column], axis=1).ravel()

    start = legs(src, r0 * columns + c1)
    direction = legs(np.where(c1 > c0, EAST, WEST), np.where(r1 > r0, SOUTH, NORTH))
    onward = legs(np.sign(c1 - c0), np.sign(r1 - r0) * columns)
    length = legs(np.abs(c1 - c0), np.abs(r1 - r0))
    end = np.cumsum(length)
    walked = np.arange(end[-1] if len(end) else 0) - np.repeat(end - length, length)
    hops = np.repeat(4 * start + direction, length) + 4 * walked * np.repeat(onward, length)
    return hops, np.concatenate([[0], end[1::2]])


def _waveguides_wanted(fabric: Fabric, circuits: Circuits) -> tuple[IntArray, IntArray]:
    """What each circuit takes of the waveguides: (edge, wavelength) pairs, or edges alone; end to end, and offsets."""
    if fabric.parameters["waveguide_sharing"] == "circuit" or not len(circuits):
        return circuits.hops.astype(np.int64), circuits.hop_offsets
    width = int(circuits.wavelength_n[0])  # the same for all circuits of a step
    first = circuits.hops * np.int64(fabric.num_wavelengths) + circuits.wavelength_lo[circuits.hop_owner()]
    return (first[:, None] + np.arange(width)).ravel(), circuits.hop_offsets * width


def _split_by_waveguides(fabric: Fabric, circuits: Circuits) -> list[Circuits]:
    """As few rounds as first fit finds, at least the ceiling of load / waveguides."""
    capacity = fabric.parameters["waveguides"]
    wanted, offsets = _waveguides_wanted(fabric, circuits)
    load = np.bincount(wanted)
    if load.max(initial=0) <= capacity:
        return [circuits]
    company = np.add.reduceat(load[wanted], offsets[:-1])  # a path has at least one edge
    circuits = circuits.take(np.argsort(-company, kind="stable"))
    wanted, offsets = _waveguides_wanted(fabric, circuits)
    _, number = first_fit(wanted, offsets, len(load), num_colours=1, capacity=capacity)
    return [circuits.take(number == r) for r in range(int(number.max()) + 1)]
