"""Which lasers carry which transfer on LIGHTPATH, and in which turn.

by offset   LUMORPH and the direct exchange: the peer whose digit (whose number) is higher by o has the o-th set.
            A node sends to each offset once and receives from each once: no laser or photodiode is used twice.
coloured    any other schedule: an edge colouring of the communicating pairs. A pair with several transfers (a range
            of chunks that goes round the end) shares its lasers out so that the slowest is as fast as can be. Pairs of
            the step before keep their lasers, if all pairs of a step are among them, or if the others find lasers, too.
dead        a sender leaves its dead lasers dark, and its circuits are narrower. What would have no laser at all takes
            an extra turn with all that its sender has.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numba
import numpy as np

from opticcl.fabrics.damage import Damage
from opticcl.ir import Circuits, Fabric, IntArray, Transfers
from opticcl.routing.assign import edge_colouring, first_fit

__all__ = ["Lasers", "lasers_by_colour", "lasers_by_offset", "only_alive", "relit"]

MOST_COLOURS = 1 << 25  # (node, colour) pairs of an edge colouring: 0.25 GB


class Lasers(NamedTuple):
    """First laser, number of lasers and turn of every transfer, int (n,) each; with the sets of their pairs, if known."""

    lo: IntArray
    width: IntArray
    turn: IntArray
    sets: PairSets | None = None


class PairSets(NamedTuple):
    """Sets of lasers that stand, all at once.

    Args:
        pair: source x nodes + destination, int64 (pairs,), ascending.
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
    if np.bincount(pair).max() > shared:  # too few for all transfers of a pair, so each is one of its own
        first = pair = np.arange(len(transfers))
    most = _most(transfers, first)
    width = max(1, lasers // most)
    src, dst = transfers.src[first], transfers.dst[first]
    keys = src * np.int64(n) + dst
    distinct = len(keys) < 2 or bool((keys[1:] > keys[:-1]).all())
    place = np.full(len(keys), -1)
    if before is not None and distinct and len(before.pair):
        known = before.known(keys)
        if (known >= 0).all() and np.bincount(pair).max() <= before.width:
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


@numba.njit(cache=True)
def _fit_others(src, dst, num_nodes, num_sets, place):  # type: ignore[no-untyped-def]
    """Give pairs without a set the first one that is free at both ends, in place; all are -1 if one finds none.

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
        if place[p] < 0:
            place[:] = -1
            return


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
    own = np.ones(len(pair), np.int64)
    sizes = size[order]
    first = np.repeat(sizes[starts[:-1]], np.diff(starts))  # of the pair
    if np.array_equal(sizes, first):  # in turn
        many = np.repeat(np.diff(starts), np.diff(starts))
        turn = np.arange(len(pair)) - np.repeat(starts[:-1], np.diff(starts))
        own += (width - many) // many + (turn < (width - many) % many)
    else:
        _share_out(sizes, starts, width, own)
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


def relit(damage: Damage, transfers: Transfers, tile: IntArray, num_lasers: int, given: Lasers) -> Lasers:
    """The same, with an extra round for transfers that would have only dead lasers.

    Args:
        tile: of each node.
        num_lasers: of a tile, dead ones included [count].
    """
    lo, width, turn = (np.array(column, np.int64) for column in (given.lo, given.width, given.turn))
    dark = np.flatnonzero(_dead_before(damage, tile[transfers.src], lo, lo + width) == width)
    if not len(dark):
        return given
    src, dst = transfers.src[dark], transfers.dst[dark]
    most = max(int(np.bincount(ends).max()) for ends in (src, dst))
    lo[dark], width[dark] = 0, num_lasers
    turn[dark] = turn.max() + 1 + np.asarray(edge_colouring(src, dst, int(max(src.max(), dst.max())) + 1, most))
    return Lasers(lo, width, turn)


def _dead_before(damage: Damage, tile: IntArray, lo: IntArray, hi: IntArray) -> IntArray:
    """Dead lasers lo .. hi - 1 of a tile each, int64 (n,)."""
    count = np.zeros(len(tile), np.int64)
    for sender, laser in zip(damage.laser_tile, damage.laser, strict=True):
        count += (tile == sender) & (lo <= laser) & (laser < hi)
    return count


def only_alive(damage: Damage, circuits: Circuits, tile: IntArray, side_by_side: bool) -> Circuits:
    """The same circuits without dead lasers: one for each run of neighbouring lasers that work.

    Args:
        tile: of each node.
        side_by_side: whether these share a waveguide; else each circuit keeps its longest run alone.
    """
    lo, n = circuits.wavelength_lo, circuits.wavelength_n
    hurt = _dead_before(damage, tile[circuits.src], lo, lo + n) > 0
    if not hurt.any():
        return circuits
    rows, runs = [np.flatnonzero(~hurt)], [np.stack([lo, n], axis=1)[~hurt]]
    for row in np.flatnonzero(hurt):
        dead = damage.laser[damage.laser_tile == tile[circuits.src[row]]]
        alive = np.setdiff1d(np.arange(lo[row], lo[row] + n[row]), dead)
        pieces = np.split(alive, np.flatnonzero(np.diff(alive) > 1) + 1)
        pieces = pieces if side_by_side else [max(pieces, key=len)]
        rows.append(np.full(len(pieces), row))
        runs.append(np.array([(piece[0], len(piece)) for piece in pieces]))
    chosen = np.concatenate(rows)
    order = np.argsort(chosen, kind="stable")
    first, count = np.concatenate(runs)[order].astype(np.int32).T
    return replace(circuits.take(chosen[order]), wavelength_lo=np.array(first), wavelength_n=np.array(count))
