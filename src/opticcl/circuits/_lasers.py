"""Which lasers carry which transfer on LIGHTPATH, and in which turn.

by offset   LUMORPH and the direct exchange: the peer whose digit (whose number) is higher by o has the o-th set.
            A node sends to each offset once and receives from each once: no laser or photodiode is used twice.
by number   graphs of de Bruijn: the schedule numbers the circuits of a node.
coloured    any other schedule: an edge colouring of the communicating pairs. A pair with several transfers (a range
            of chunks that goes round the end) shares its lasers out so that the slowest is as fast as can be. Pairs of
            the step before keep their lasers, if all pairs of a step are among them, or if the others find lasers, too.
dead        the rules above give places; lasers that are dead on the fewest tiles stand at the first ones, so identical lasers
            cost the same whichever is dead. A sender leaves its dead lasers dark, and its circuits are narrower. What would
            have no laser at all takes an extra turn with all that its sender has. Photodiodes likewise.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.errors import UnsupportedError
from opticcl.fabrics.damage import Damage
from opticcl.ir import Circuits, Fabric, IntArray, Transfers, numbered
from opticcl.ir.limits import limit
from opticcl.kernels import njit
from opticcl.routing.assign import edge_colouring, first_fit

__all__ = ["Lasers", "lasers_by_colour", "lasers_by_number", "lasers_by_offset", "only_alive", "relit", "usable_first"]

MOST_COLOURS = limit("lasers.MOST_COLOURS")


class Lasers(NamedTuple):
    """First laser, number of lasers and turn of every transfer, int (n,) each; with the sets of their pairs, if known."""

    lo: IntArray
    width: IntArray
    turn: IntArray
    sets: PairSets | None = None


class PairSets(NamedTuple):
    """Sets of lasers that stand, all at once.

    Args:
        pair: source x nodes + destination, int64 (pairs,), ascending, at least one.
        place: set of each pair; its first laser is place x width, int64 (pairs,).
        width: lasers of a set [count].
    """

    pair: IntArray
    place: IntArray
    width: int

    def known(self, pair: IntArray) -> IntArray:
        """Set of each of other pairs, int64 (n,); -1 where it has none."""
        at = np.minimum(np.searchsorted(self.pair, pair), len(self.pair) - 1)
        return np.where(self.pair[at] == pair, self.place[at], -1)


def lasers_by_offset(fabric: Fabric, k: int, stride: int, transfers: Transfers) -> Lasers:
    """First laser, number of lasers and turn of every transfer of an exchange of digits.

    Args:
        fabric: a LIGHTPATH.
        k: radix of the digit.
        stride: distance of nodes that differ by one in it.
        transfers: of the step, between nodes of the machine.
    """
    lasers = fabric.lasers_per_port
    before = (transfers.dst // stride - transfers.src // stride) % k - 1  # offsets that come before mine
    width = max(1, lasers // (k - 1))
    turn, lo = np.divmod(before * width, lasers)
    return Lasers(lo, np.full_like(lo, width), turn)


def lasers_by_number(fabric: Fabric, count: int, numbers: IntArray) -> Lasers:
    """The same for circuits that have numbers, distinct ones at every node.

    Args:
        fabric: a LIGHTPATH.
        count: numbers are below it.
        numbers: of each transfer.
    """
    lasers = fabric.lasers_per_port
    width = max(1, lasers // count)
    turn, place = np.divmod(numbers.astype(np.int64), lasers)  # those of several lasers all have turn 0
    return Lasers(place * width, np.full_like(place, width), turn)


def lasers_by_colour(fabric: Fabric, transfers: Transfers, before: PairSets | None = None) -> Lasers:
    """The same for any transfers: a colour for each communicating pair, a set of lasers and a round for each colour.

    Args:
        fabric: a LIGHTPATH.
        transfers: of the step, between nodes of the machine, in canonical order.
        before: sets of the step before, if they are known.
    """
    n, lasers = fabric.num_machine_nodes, fabric.lasers_per_port
    first, pair = _pairs(transfers.src * np.int64(n) + transfers.dst)
    shared = max(1, lasers // _most(transfers, first))
    many = int(np.bincount(pair).max())
    distinct = many <= shared
    if not distinct:  # too few lasers for all transfers of a pair, so each is one of its own
        first = pair = np.arange(len(transfers))
    most = _most(transfers, first)
    width = max(1, lasers // most)
    src, dst = transfers.src[first], transfers.dst[first]
    keys = src * np.int64(n) + dst
    place = np.full(len(keys), -1)
    if before is not None and distinct:
        known = before.known(keys)
        if (known >= 0).all() and many <= before.width:
            place, width = known, before.width
        elif before.width == width:
            place = known
            _fit_others(src, dst, n, lasers // width, place)
    at_once = lasers // width
    turn = np.zeros(len(keys), np.int64)
    if (place < 0).any():
        turn, place = np.divmod(_colours(src, dst, n, most, at_once), at_once)
    lo, own = _shares(pair, transfers.size_chunks(), len(first), width)
    sets = PairSets(keys, place, width) if distinct and not turn.any() else None
    return Lasers(place[pair] * width + lo, own, turn[pair], sets)


@njit
def _fit_others(src, dst, num_nodes, num_sets, place):  # type: ignore[no-untyped-def]
    """Give pairs without a set the first one that is free at both ends, in place; it stays -1 where there is none.

    Args:
        src, dst: of each pair.
        num_nodes: of the machine.
        num_sets: sets of lasers.
        place: set of each pair, -1 for none.
    """
    sent, received = np.zeros((num_nodes, num_sets), np.bool_), np.zeros((num_nodes, num_sets), np.bool_)
    for p in range(len(place)):
        if place[p] >= 0:
            sent[src[p], place[p]], received[dst[p], place[p]] = True, True
    for p in range(len(place)):
        if place[p] >= 0:
            continue
        for k in range(num_sets):
            if not sent[src[p], k] and not received[dst[p], k]:
                sent[src[p], k], received[dst[p], k], place[p] = True, True, k
                break


def _most(transfers: Transfers, rows: IntArray) -> int:
    """The most transfers of the given rows that one node sends or receives."""
    return max(int(np.bincount(ends[rows]).max()) for ends in (transfers.src, transfers.dst))


def _pairs(key: IntArray) -> tuple[IntArray, IntArray]:
    """First row of each different key, in ascending order of the keys, and which of these each row is like."""
    _, first, same = np.unique(key, return_index=True, return_inverse=True)
    return first, same


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
    sizes = size[order]
    first = np.repeat(sizes[starts[:-1]], np.diff(starts))  # of the pair
    if np.array_equal(sizes, first):  # in turn
        many = np.repeat(np.diff(starts), np.diff(starts))
        _, turn = numbered(np.diff(starts))
        own = width // many + (turn < width % many)
    else:
        own, left = np.ones(len(pair), np.int64), width - np.diff(starts)
        for given in range(
            int(left.max())
        ):  # each to the transfer of its pair that would take longest: the best there is
            time = sizes / own
            slowest = np.flatnonzero(time == np.repeat(np.maximum.reduceat(time, starts[:-1]), np.diff(starts)))
            its_pair, nth = np.unique(pair[order][slowest], return_index=True)
            first_of_pair = slowest[nth]
            own[first_of_pair[left[its_pair] > given]] += 1
    lo = np.cumsum(own) - own - width * pair[order]
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return lo[back], own[back]


def usable_first(damage: Damage, num_lasers: int) -> IntArray:
    """Laser at each place: those that are dead on the fewest tiles come first, so that a rule leaves the others unused.

    Args:
        damage: of the tiles.
        num_lasers: of a tile, dead ones included [count].
    """
    dead = np.bincount(np.concatenate([damage.laser, damage.photodiode]), minlength=num_lasers)
    return np.argsort(dead, kind="stable")


def relit(damage: Damage, transfers: Transfers, tile: IntArray, real: IntArray, given: Lasers) -> Lasers:
    """The same, with an extra round for transfers that would have only dead lasers.

    Args:
        damage: of the tiles.
        transfers: of the step.
        tile: of each node.
        real: laser at each place of `given`.
        given: places of the lasers of each transfer.
    """
    lo, width, turn = (np.array(column, np.int64) for column in (given.lo, given.width, given.turn))
    row, laser = _each_laser(lo, width, real)
    works = _works(damage, tile[transfers.src[row]], tile[transfers.dst[row]], laser, len(real))
    dark = np.flatnonzero(np.bincount(row[works], minlength=len(lo)) == 0)
    if not len(dark):
        return given
    swapped = _swapped(damage, transfers, tile, real, given)
    if swapped is not None:
        return swapped
    src, dst = transfers.src[dark], transfers.dst[dark]
    most = max(int(np.bincount(ends).max()) for ends in (src, dst))
    lo[dark], width[dark] = 0, len(real)
    turn[dark] = turn.max() + 1 + np.asarray(edge_colouring(src, dst, int(max(src.max(), dst.max())) + 1, most))
    return Lasers(lo, width, turn)


def _swapped(damage: Damage, transfers: Transfers, tile: IntArray, real: IntArray, given: Lasers) -> Lasers | None:
    """The same with two places exchanged, so that all transfers have lasers that work; None if no two do that.

    Args:
        damage: of the tiles.
        transfers: of the step.
        tile: of each node.
        real: laser at each place of `given`.
        given: places of the lasers of each transfer; only those of one laser each are tried.
    """
    lo = np.asarray(given.lo, np.int64)
    if (np.asarray(given.width) != 1).any():
        return None
    ends = tile[transfers.src], tile[transfers.dst]
    hurt = np.unique(lo[~_works(damage, *ends, real[lo], len(real))])
    for other in range(len(real)) if len(hurt) == 1 else ():
        places = np.arange(len(real))
        places[[hurt[0], other]] = places[[other, hurt[0]]]
        if _works(damage, *ends, real[places[lo]], len(real)).all():
            return Lasers(places[lo], given.width, given.turn)
    return None


def _each_laser(lo: IntArray, width: IntArray, real: IntArray) -> tuple[IntArray, IntArray]:
    """Row and laser of every place lo .. lo + width - 1, int64 (sum,) each."""
    row, nth = numbered(width)
    return row, real[lo[row] + nth]


def _works(
    damage: Damage, sender: IntArray, receiver: IntArray, laser: IntArray, num_lasers: int
) -> npt.NDArray[np.bool_]:
    """Whether the laser of one tile and the photodiode of the other work.

    Args:
        damage: of the tiles.
        sender, receiver: tiles.
        laser: number of the laser, and of the photodiode.
        num_lasers: of a tile [count].
    """
    dead_lasers = damage.laser_tile * num_lasers + damage.laser
    dead_photodiodes = damage.photodiode_tile * num_lasers + damage.photodiode
    dead = np.isin(sender * num_lasers + laser, dead_lasers)
    works: npt.NDArray[np.bool_] = ~(dead | np.isin(receiver * num_lasers + laser, dead_photodiodes))
    return works


def only_alive(damage: Damage, circuits: Circuits, tile: IntArray, real: IntArray) -> Circuits:
    """Circuits on lasers that work in place of those at the given places: one for each run of neighbours.

    Args:
        damage: of the tiles.
        circuits: whose wavelengths are places in `real`.
        tile: of each node.
        real: laser at each place.
    Raises: UnsupportedError: a circuit has no laser whose light its receiver can take.
    """
    row, laser = _each_laser(circuits.wavelength_lo.astype(np.int64), circuits.wavelength_n.astype(np.int64), real)
    works = _works(damage, tile[circuits.src[row]], tile[circuits.dst[row]], laser, len(real))
    row, laser = row[works], laser[works]
    if len(dark := np.setdiff1d(np.arange(len(circuits)), row)):
        ends = f"{circuits.src[dark[0]]} to node {circuits.dst[dark[0]]}"
        raise UnsupportedError(f"lightpath: no laser that works leads from node {ends} to a photodiode that works")
    order = np.lexsort((laser, row))
    row, laser = row[order], laser[order]
    first = np.flatnonzero(np.r_[True, (np.diff(row) != 0) | (np.diff(laser) != 1)])
    length = np.diff(np.r_[first, len(row)])
    kept = circuits.take(row[first])
    return replace(kept, wavelength_lo=laser[first].astype(np.int32), wavelength_n=length.astype(np.int32))
