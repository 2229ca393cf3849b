"""LIGHTPATH's circuits: lasers by offset or by edge colouring, routes along the row and then along the column.

    lasers      D peers of a node share L lasers: floor(L / D) neighbouring ones each. More than L peers take a round
                for every L of them: ceil(D / L) rounds, which no rule can undercut.
      by offset   LUMORPH and the direct exchange: the peer whose digit (whose number) is higher by o has the o-th set.
                  A node sends to each offset once and hears each once: no laser, no photodiode is wanted twice.
      coloured    any other schedule: an edge colouring of the pairs that talk. A pair with several transfers (a range
                  of chunks that goes round the end) shares its lasers out so that the slowest is as fast as can be.
    routes      row first, then column. For digit exchanges on grids whose sides are powers of two no routes load the
                edges less, as the middle cut shows (16 circuits for LUMORPH-4 on 16 x 16, 8 for LUMORPH-2).
    waveguides  where an edge is overloaded, the circuits go to rounds by first fit, those with the most company first.

Source: LUMORPH equations 4 to 6, section 5, appendix C.
Reading: appendix C splits an overfull round into two and repeats, which makes a power of two of rounds; first fit makes
about as many as load / waveguides, rounded up. A circuit has whole lasers: three peers of 16 leave one dark. To share
it out, the three would have to take turns on one wavelength, and a turn is a round of its own: there is no such mode.
"""

from __future__ import annotations

import numba
import numpy as np

from opticcl.circuits import Rounds, register_rule
from opticcl.circuits.assign import edge_colouring, first_fit
from opticcl.errors import UnsupportedError
from opticcl.fabric.lightpath import EAST, NORTH, SOUTH, WEST, tile_of_node
from opticcl.ir import Circuits, Fabric, IntArray, Schedule, Transfers
from opticcl.schedule.lumorph import digit_of_step, digits

__all__ = ["row_column_routes"]

MOST_HOPS = 1 << 27  # of a step: about 0.5 GB
MOST_COLOURS = 1 << 25  # (node, colour) pairs of an edge colouring: 0.25 GB


@register_rule("lightpath")
def lightpath(fabric: Fabric, schedule: Schedule) -> Rounds:
    """Lasers by offset for LUMORPH and the direct exchange, by edge colouring for any other schedule."""
    p = fabric.parameters
    columns = p["shape"][1]
    tile = tile_of_node(p["shape"], p["numbering"], p["seed"])
    whole = fabric.nodes is None
    ks = digits(fabric.num_nodes, **schedule.parameters) if schedule.name == "lumorph" and whole else ()
    _refuse_too_many_hops(fabric, schedule)

    def rounds(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        if ks:
            k, stride = digit_of_step(ks, schedule.collective.name, step)
            lo, width, turn = _lasers_by_offset(fabric, k, stride, transfers)
        elif schedule.name == "mesh" and whole:
            lo, width, turn = _lasers_by_offset(fabric, fabric.num_nodes, 1, transfers)
        else:
            lo, width, turn = _lasers_by_colour(fabric, transfers)
        found: list[Circuits] = []
        for row in _by_turn(turn):
            src, dst = transfers.src[row], transfers.dst[row]
            routes = row_column_routes(tile[src], tile[dst], columns)
            found += _split_by_waveguides(fabric, Circuits.of(row, src, dst, 0, lo[row], width[row], routes))
        return tuple(found)

    return rounds


def _refuse_too_many_hops(fabric: Fabric, schedule: Schedule) -> None:
    """A path crosses a third of each side on average.

    Raises: UnsupportedError: the paths of a step cannot be listed.
    """
    n, length = fabric.num_machine_nodes, sum(fabric.parameters["shape"]) // 3
    if n * (n - 1) * length <= MOST_HOPS:  # all pairs could
        return
    for steps in schedule.step_classes():
        transfers = len(schedule.step(steps.start))
        if transfers * length > MOST_HOPS:
            raise UnsupportedError(
                f"{schedule.name} on lightpath: {transfers:,} transfers cross about {transfers * length:,} edges; more "
                f"than {MOST_HOPS:,} are too many; try algorithm=ring, or a number of nodes with smaller prime factors"
            )


def _by_turn(turn: IntArray) -> list[IntArray]:
    """Rows of each turn, in order."""
    rows = np.argsort(turn, kind="stable")
    return np.split(rows, np.cumsum(np.bincount(turn))[:-1])


def _lasers_by_offset(fabric: Fabric, k: int, stride: int, transfers: Transfers) -> tuple[IntArray, IntArray, IntArray]:
    """First laser, number of lasers and turn of every transfer of an exchange of digits."""
    lasers = fabric.lasers_per_port
    before = (transfers.dst // stride - transfers.src // stride) % k - 1  # offsets that come before mine
    width = max(1, lasers // (k - 1))
    turn, lo = np.divmod(before * width, lasers)
    return lo, np.full_like(lo, width), turn


def _lasers_by_colour(fabric: Fabric, transfers: Transfers) -> tuple[IntArray, IntArray, IntArray]:
    """The same for any transfers: a colour for each pair that talks, a set of lasers and a turn for each colour."""
    n, lasers = fabric.num_machine_nodes, fabric.lasers_per_port
    first, pair = _pairs(transfers.src * np.int64(n) + transfers.dst)
    shared = max(1, lasers // _most(transfers, first))
    if np.bincount(pair).max() > shared:  # too few for all transfers of a pair, so each is one of its own
        first = pair = np.arange(len(transfers))
    most = _most(transfers, first)
    width = max(1, lasers // most)
    at_once = lasers // width
    turn, place = np.divmod(_colours(transfers.src[first], transfers.dst[first], n, most, at_once), at_once)
    lo, own = _shares(pair, transfers.size_chunks(), len(first), width)
    return place[pair] * width + lo, own, turn[pair]


def _most(transfers: Transfers, rows: IntArray) -> int:
    """The most transfers of the given rows that one node sends or receives."""
    return max(int(np.bincount(ends[rows]).max()) for ends in (transfers.src, transfers.dst))


def _pairs(key: IntArray) -> tuple[IntArray, IntArray]:
    """First row of each different key, in the order of the rows, and which of these each row is like."""
    _, first, same = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[same]


def _colours(src: IntArray, dst: IntArray, num_nodes: int, most: int, at_once: int) -> IntArray:
    """Colours 0 .. most - 1; by first fit, which is as good for stars, where the tables would be too large.

    Args: at_once: colours that have light in one round.
    """
    if num_nodes * most <= MOST_COLOURS:
        return np.asarray(edge_colouring(src, dst, num_nodes, most))
    occupied = np.stack([src, num_nodes + dst], axis=1).astype(np.int64).ravel()
    colour, turn = first_fit(occupied, np.arange(len(src) + 1, dtype=np.int64) * 2, 2 * num_nodes, at_once)
    return np.asarray(colour + turn * at_once)


def _shares(pair: IntArray, size: IntArray, num_pairs: int, width: int) -> tuple[IntArray, IntArray]:
    """First laser of each transfer within those of its pair, and how many it has.

    Args:
        pair: of each transfer.
        size: of each transfer [chunks].
        num_pairs: pairs [count].
        width: lasers of a pair, at least its transfers [count].
    """
    if num_pairs == len(pair):
        return np.zeros(len(pair), np.int64), np.full(len(pair), width)
    order = np.argsort(pair, kind="stable")
    starts = np.searchsorted(pair[order], np.arange(num_pairs + 1))
    own = np.ones(len(pair), np.int64)
    _share_out(size[order], starts, width, own)
    lo = np.cumsum(own) - own - width * pair[order]
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return lo[back], own[back]


@numba.njit(cache=True, nogil=True)
def _share_out(size, starts, width, own):  # type: ignore[no-untyped-def]
    """Every laser that is left goes to the transfer that would take longest, which is the best there is."""
    for p in range(len(starts) - 1):
        for _ in range(width - (starts[p + 1] - starts[p])):
            slowest = starts[p]
            for t in range(starts[p] + 1, starts[p + 1]):
                if size[t] * own[slowest] > size[slowest] * own[t]:
                    slowest = t
            own[slowest] += 1


def row_column_routes(src: IntArray, dst: IntArray, columns: int) -> tuple[IntArray, IntArray]:
    """Paths along the row to the receiver's column, then along that column.

    Args:
        src, dst: tiles, int64 (n,).
        columns: of the grid [count].
    Returns: (hops, hop_offsets) as in `Circuits`.

    >>> row_column_routes(np.array([0]), np.array([5]), 3)  # 2 east, 1 south
    (array([ 0,  4, 10], dtype=int32), array([0, 3]))
    """
    (r0, c0), (r1, c1) = np.divmod(src, columns), np.divmod(dst, columns)
    east, south = c1 - c0, r1 - r0
    offsets = np.concatenate([[0], np.cumsum(np.abs(east) + np.abs(south))])
    hops = np.empty(offsets[-1], np.int32)
    _walk(src, east, south, columns, offsets, hops)
    return hops, offsets


@numba.njit(cache=True, nogil=True)
def _walk(start, east, south, columns, offsets, hops):  # type: ignore[no-untyped-def]
    """Write the edges of each path: so many tiles east (west if negative), then so many south (north)."""
    for i in range(len(start)):
        tile, at = start[i], offsets[i]
        for _ in range(abs(east[i])):
            hops[at] = 4 * tile + (EAST if east[i] > 0 else WEST)
            tile += 1 if east[i] > 0 else -1
            at += 1
        for _ in range(abs(south[i])):
            hops[at] = 4 * tile + (SOUTH if south[i] > 0 else NORTH)
            tile += columns if south[i] > 0 else -columns
            at += 1


def _split_by_waveguides(fabric: Fabric, circuits: Circuits) -> list[Circuits]:
    """As few rounds as first fit finds, at least the ceiling of load / waveguides."""
    capacity = fabric.parameters["waveguides"]
    if len(circuits) <= capacity:
        return [circuits]
    load = _load(fabric, circuits)
    if load.max() <= capacity:
        return [circuits]
    wanted, offsets = _waveguides_wanted(fabric, circuits)
    company = np.add.reduceat(load[wanted], offsets[:-1])  # a path has at least one edge
    circuits = circuits.take(np.argsort(-company, kind="stable"))
    wanted, offsets = _waveguides_wanted(fabric, circuits)
    _, number = first_fit(wanted, offsets, len(load), num_colours=1, capacity=capacity)
    return [circuits.take(number == r) for r in range(int(number.max()) + 1)]


def _depth(fabric: Fabric) -> int:
    """Wavelengths that an edge counts one by one."""
    return 1 if fabric.parameters["waveguide_sharing"] == "circuit" else fabric.num_wavelengths


def _load(fabric: Fabric, circuits: Circuits) -> IntArray:
    """Circuits on each (edge, wavelength), or on each edge, int32 (edges * depth,)."""
    depth = _depth(fabric)
    load = np.zeros(4 * fabric.num_machine_nodes * depth, np.int32)
    width = np.minimum(circuits.wavelength_n, depth)
    lo = circuits.wavelength_lo if depth > 1 else np.zeros_like(circuits.wavelength_lo)
    _add_up(circuits.hops, circuits.hop_offsets, lo, width, depth, load)
    return load


@numba.njit(cache=True, nogil=True)
def _add_up(hops, offsets, lo, width, depth, load):  # type: ignore[no-untyped-def]
    for c in range(len(lo)):
        for h in range(offsets[c], offsets[c + 1]):
            at = np.int64(hops[h]) * depth + lo[c]
            for w in range(width[c]):
                load[at + w] += 1


def _waveguides_wanted(fabric: Fabric, circuits: Circuits) -> tuple[IntArray, IntArray]:
    """What each circuit takes of the waveguides: (edge, wavelength) pairs, or edges alone; end to end, and offsets."""
    if _depth(fabric) == 1:
        return circuits.hops.astype(np.int64), circuits.hop_offsets
    owner = circuits.hop_owner()
    width = circuits.wavelength_n[owner].astype(np.int64)
    first = circuits.hops * np.int64(fabric.num_wavelengths) + circuits.wavelength_lo[owner]
    within = np.arange(width.sum()) - np.repeat(np.cumsum(width) - width, width)
    taken = circuits.num_hops() * circuits.wavelength_n
    return np.repeat(first, width) + within, np.concatenate([[0], np.cumsum(taken)])
