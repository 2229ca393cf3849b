"""What is left where parts have failed: rates of nodes, a lower bound, and sets of ranks that no data leave.

    T >= max( total / sum of the rates, what a node must send / its rate, what must leave a set S / rate of its links )

for M bytes on p ranks; all_reduce moves 2 M (p - 1) in all, M out of every set and M into it. All sets of 16 ranks are tried.

Source: Chan et al. 2007 for the totals; a set of nodes sends at least what any of its nodes alone would have to.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.assumptions import Assumptions
from opticcl.collective import Request
from opticcl.fabrics.lightpath import Lightpath
from opticcl.ir import Fabric, IntArray
from opticcl.simulate.bounds import Starts, lower_bound

__all__ = ["Residual", "closed_set", "residual", "residual_bound_s"]

MOST_RANKS_OF_SETS = 16
PAIRS_AT_ONCE = 1 << 12
Floats = npt.NDArray[np.float64]


class Residual(NamedTuple):
    """Wavelengths of ports that still work: one row each.

    Args:
        sender: rank, int64 (m,).
        reaches: ranks that its light can reach, bool (m, ranks).
        number: equal wavelengths, weak ones by their share of the rate [count], float64 (m,).
        received: wavelengths that each rank can receive, likewise, float64 (ranks,).
        rate_bits_per_s: of one.
    """

    sender: IntArray
    reaches: npt.NDArray[np.bool_]
    number: Floats
    received: Floats
    rate_bits_per_s: float

    @property
    def sent(self) -> Floats:
        """Wavelengths that each rank can send, float64 (ranks,)."""
        return np.bincount(self.sender, self.number, len(self.received)).astype(np.float64)


def residual(fabric: Fabric) -> Residual:
    """What is left of the ports of every rank."""
    n = fabric.num_nodes
    if isinstance(fabric.machine, Lightpath):
        return _of_tiles(fabric, fabric.machine)
    ports, w = fabric.ports_per_node, fabric.num_wavelengths
    nodes = fabric.machine_nodes(np.arange(n))
    rank_of = np.full(fabric.num_machine_nodes, -1)
    rank_of[nodes] = np.arange(n)
    pairs = np.arange(n * n)
    pairs = pairs[pairs // n != pairs % n]
    sending: list[IntArray] = []
    receiving: list[IntArray] = []
    shares: list[Floats] = []
    for first in range(0, len(pairs), PAIRS_AT_ONCE):
        src, dst = (nodes[side] for side in np.divmod(pairs[first : first + PAIRS_AT_ONCE], n))
        ways = fabric.options(src, dst).circuits
        works = np.ones(len(ways), bool)
        for fault in fabric.part_faults(ways):
            works[fault.circuits] = False
        ways = ways.take(works)
        many = ways.wavelength_n.astype(np.int64)
        row = np.repeat(np.arange(len(ways)), many)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
        wavelength = ways.wavelength_lo[row] + nth * ways.wavelength_step
        sender, receiver, port = rank_of[ways.src[row]], rank_of[ways.dst[row]], ways.port[row]
        cell = ((sender * ports + port) * w + wavelength) * n + receiver
        found, which = np.unique(cell, return_inverse=True)
        sending.append(found)
        shares.append(_largest(which, (fabric.wavelengths_carried(ways) / ways.wavelength_n)[row], len(found)))
        one = np.zeros(len(found), np.int64)
        one[which] = (receiver * ports + port) * w + wavelength
        receiving.append(one)
    every = np.concatenate(sending) if sending else np.zeros(0, np.int64)
    share = np.concatenate(shares) if shares else np.zeros(0)
    cell, receiver = np.divmod(every, n)
    cells, which = np.unique(cell, return_inverse=True)
    reaches, of_cell = np.zeros((len(cells), n), bool), _largest(which, share, len(cells))
    reaches[which, receiver] = True
    per_cell = 1 if all(r.per_wavelength for r in fabric.resources[:2]) or fabric.lasers_per_port > 1 else w
    sender = cells // (ports * w)
    if per_cell > 1:  # one wavelength at a time: a port counts once, whatever it reaches
        ports_used, of_port = np.unique(cells // w, return_inverse=True)
        merged = np.zeros((len(ports_used), n), bool)
        np.logical_or.at(merged, of_port, reaches)
        sender, reaches = ports_used // ports, merged
        of_cell = _largest(of_port, of_cell, len(ports_used))
    place = np.concatenate(receiving) if receiving else np.zeros(0, np.int64)
    places, which = np.unique(place // w if per_cell > 1 else place, return_inverse=True)
    at = places // (ports if per_cell > 1 else ports * w)
    received = np.bincount(at, _largest(which, share, len(places)), minlength=n).astype(np.float64)
    kinds, of_kind = np.unique(np.column_stack([sender, np.packbits(reaches, axis=1)]), axis=0, return_inverse=True)
    of_kind = np.ravel(of_kind)
    one = np.zeros(len(kinds), np.int64)
    one[of_kind] = np.arange(len(of_kind))
    number = np.bincount(of_kind, of_cell, minlength=len(kinds)).astype(np.float64)
    return Residual(sender[one], reaches[one], number, received, fabric.rate_bits_per_s)


def _largest(group: IntArray, share: Floats, groups: int) -> Floats:
    """The largest share of each group, float64 (groups,).

    Args:
        group: of each row, int64 (n,).
        share: of each row, float64 (n,).
        groups: number of them [count].
    """
    found = np.zeros(groups)
    np.maximum.at(found, np.ravel(group), share)
    return found


def _of_tiles(fabric: Fabric, machine: Lightpath) -> Residual:
    """Lasers and photodiodes that work; light may take any path, so every tile counts as within reach."""
    n = fabric.num_nodes
    tile = machine.tile[fabric.machine_nodes(np.arange(n))]
    damage, tiles = machine.damage, len(machine.tile)
    of_node = np.ones(n)
    for each in machine.conditions:
        if each.mode == "weak" and each.kind == "node":
            of_node[fabric.ranks_at(np.array([each.index]))] = each.value
    rates = []
    for kind, dead in (("laser", damage.laser_tile), ("photodiode", damage.photodiode_tile)):
        left = (machine.lasers - np.bincount(dead, minlength=tiles)).astype(float)
        for each in machine.conditions:
            if each.mode == "weak" and each.kind == kind:
                left[each.index // machine.lasers] -= 1 - each.value
        rates.append(left[tile] * of_node)
    return Residual(np.arange(n), ~np.eye(n, dtype=bool), rates[0], rates[1], machine.rate_bits_per_s)


class _Needs(NamedTuple):
    """Least bytes that a collective moves, in messages: in all, out of a set of s of p ranks, and into it."""

    total: float
    out: npt.NDArray[Any]
    into: npt.NDArray[Any]


def _needs(name: str, p: int, s: IntArray, has_root: npt.NDArray[np.bool_]) -> _Needs:
    """What sets of ranks must send and receive.

    Args:
        name: of the collective.
        p: ranks [count].
        s: ranks of each set.
        has_root: whether each set has the root.
    """
    others, one = p - 1.0, np.ones(len(s))
    share = s / p
    if name == "all_reduce":
        return _Needs(2 * others, one, one)
    if name == "reduce_scatter":
        return _Needs(others, 1 - share, share)
    if name == "all_gather":
        return _Needs(others, share, 1 - share)
    if name == "all_to_all":
        return _Needs(others, share * (p - s), share * (p - s))
    if name == "broadcast":
        return _Needs(others, has_root * 1.0, ~has_root * 1.0)
    return _Needs(0.0, 0 * one, 0 * one)


def residual_bound_s(
    fabric: Fabric,
    wanted: Request,
    size_bytes: int,
    assumed: Assumptions,
    left: Residual | None = None,
    *,
    streamed: bool = False,
) -> float:
    """Lower bound on the time of a collective on what is left, infinite where it does not join all ranks [s].

    Args:
        fabric: with failed parts.
        wanted: collective and root.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
        left: what is left, if it is known.
        streamed: whether pieces go on as they arrive; else a step waits for the one before.
    """
    p = fabric.num_nodes
    starts: Starts = "devices" if streamed else "steps"
    whole = lower_bound(wanted.on(p, p), fabric, size_bytes, assumed, starts=starts).seconds
    if p < 2:
        return whole
    known = residual(fabric) if left is None else left
    byte_rate = known.rate_bits_per_s / 8
    root = np.arange(p) == wanted.root
    needs = _needs(wanted.name, p, np.ones(p, np.int64), root)
    found = [0.0]
    splits = any(resource.splits for resource in fabric.resources)  # one signal to many receivers
    for rate in (known.received,) if splits else (known.sent, known.received):
        found.append(needs.total / float(rate.sum()) if rate.any() else float("inf"))
    found += [*_over(needs.out, known.sent), *_over(needs.into, known.received)]
    if p <= MOST_RANKS_OF_SETS and not isinstance(fabric.machine, Lightpath):
        found.append(_largest_of_sets(wanted, p, known))
    return max(whole, max(found) * size_bytes / byte_rate)


def _over(needed: npt.NDArray[Any], rate: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Needed over rate, 0 where nothing is needed, infinite where something is and there is no rate."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(needed > 0, np.where(rate > 0, needed / rate, np.inf), 0.0)


def _largest_of_sets(wanted: Request, p: int, left: Residual) -> float:
    """The largest of what must leave a set of ranks, over what its links carry, over all sets."""
    sets = np.arange(1, (1 << p) - 1)
    members = np.zeros(len(sets), np.int64)
    for rank in range(p):
        members += sets >> rank & 1
    needs = _needs(wanted.name, p, members, (sets >> wanted.root & 1) == 1)
    rate = np.zeros(len(sets))
    for sender, reaches, count in zip(left.sender, left.reaches, left.number, strict=True):
        mask = int(sum(1 << int(rank) for rank in np.flatnonzero(reaches)))
        rate += count * ((sets >> int(sender) & 1) & ((mask & ~sets) != 0))
    into = needs.into[
        ::-1
    ]  # what must enter the ranks outside the set: sets are numbered so that the last is the others'
    return float(_over(np.maximum(needs.out, into), rate).max(initial=0.0))


def closed_set(fabric: Fabric) -> IntArray | None:
    """Ranks from which no link leads to the others, the fewest; None if the links that are left join all ranks both ways."""
    n = fabric.num_nodes
    ranks = np.arange(n)
    reach = fabric.linked(ranks[:, None], ranks[None, :])
    if isinstance(fabric, Lightpath):
        reach = reach & fabric.wavelength_in_common(ranks[:, None], ranks[None, :])
    reach = reach | np.eye(n, dtype=bool)
    while not np.array_equal(further := reach @ reach, reach):
        reach = further
    sizes = reach.sum(axis=1)
    if sizes.min() == n:
        return None
    return np.flatnonzero(reach[int(sizes.argmin())])
