"""What is left where parts have failed: rates of nodes, a lower bound, and sets of ranks that no data leave.

    T >= max( total / sum of the rates, what a node must send / its rate, what must leave a set S / rate of its links )

for M bytes on p ranks; all_reduce moves 2 M (p - 1) in all, M out of every set and M into it. Of up to 128 ranks the worst set
is found by maximum flow, of an all_to_all among all sets of up to 16; of more ranks each node alone is a set.

Source: Chan et al. 2007 for the totals; a set of nodes sends at least what any of its nodes alone would have to.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.assumptions import Assumptions
from opticcl.collective import Request
from opticcl.fabrics.lightpath import Lightpath
from opticcl.fabrics.spanning_trees import has_network, ranks_closed
from opticcl.ir import Fabric, IntArray
from opticcl.operations.faults.least_cuts import (
    MOST_RANKS,
    MOST_RANKS_OF_ALL_SETS,
    LinksOfRanks,
    largest_linear,
    largest_of_all_sets,
)
from opticcl.simulate.bounds import Starts, lower_bound

__all__ = ["Residual", "closed_set", "residual", "residual_bound_s"]

PAIRS_AT_ONCE = 1 << 14
Floats = npt.NDArray[np.float64]


class Residual(NamedTuple):
    """Wavelengths of ports that still work, weak ones by their share of the rate.

    Args:
        sent: wavelengths that each rank can send [count], float64 (ranks,).
        received: wavelengths that each rank can receive, likewise.
        rate_bits_per_s: of one.
        links: which ranks the light of each reaches; None: any, or more than `MOST_RANKS` ranks.
    """

    sent: Floats
    received: Floats
    rate_bits_per_s: float
    links: LinksOfRanks | None


def residual(fabric: Fabric) -> Residual:
    """What is left of the ports of every rank."""
    n = fabric.num_nodes
    if isinstance(fabric.machine, Lightpath):
        return _of_tiles(fabric, fabric.machine)
    if fabric.is_packet_switched:  # `lower_bound` has the cuts of its links
        return Residual(np.ones(n), np.ones(n), fabric.node_rate_bits_per_s, None)
    ports, w = fabric.ports_per_node, fabric.num_wavelengths
    nodes = fabric.machine_nodes(np.arange(n))
    rank_of = np.full(fabric.num_machine_nodes, -1)
    rank_of[nodes] = np.arange(n)
    # one wavelength at a time: a port counts once, whatever it reaches
    depth = w if all(r.per_wavelength for r in fabric.resources[:2]) or fabric.lasers_per_port > 1 else 1
    sent, received = np.zeros(n), np.zeros(n * ports * depth)
    links: list[LinksOfRanks] = []
    at_once = max(1, PAIRS_AT_ONCE // n)
    for first in range(0, n, at_once):  # cells of a sender are complete within a batch
        pairs = np.arange(first * n, min(n, first + at_once) * n)
        src, dst = (nodes[side] for side in np.divmod(pairs[pairs // n != pairs % n], n))
        ways = fabric.options(src, dst).circuits
        works = np.ones(len(ways), bool)
        for fault in fabric.part_faults(ways):
            works[fault.circuits] = False
        ways = ways.take(works)
        row, wavelength = ways.each_wavelength()
        wavelength *= depth > 1
        share = (fabric.wavelengths_carried(ways) / ways.wavelength_n)[row]
        sender, receiver = rank_of[ways.src[row]], rank_of[ways.dst[row]]
        ends = ((rank * ports + ways.port[row]) * depth + wavelength for rank in (sender, receiver))
        cell, place = (np.asarray(end, np.int64) for end in ends)
        np.maximum.at(received, place, share)
        base = first * ports * depth
        of_cell = np.zeros(len(pairs) // n * ports * depth)
        np.maximum.at(of_cell, cell - base, share)
        sent += np.bincount(np.arange(base, base + len(of_cell)) // (ports * depth), of_cell, minlength=n)
        if n <= MOST_RANKS:
            reaches = np.zeros((len(of_cell), n), bool)
            reaches[cell - base, receiver] = True
            links.append(_links(reaches, of_cell, first, ports * depth))
    of_ranks = LinksOfRanks(*map(np.concatenate, zip(*links, strict=True))) if links else None
    return Residual(sent, received.reshape(n, -1).sum(axis=1), fabric.rate_bits_per_s, of_ranks)


def _links(reaches: npt.NDArray[np.bool_], of_cell: Floats, first: int, of_rank: int) -> LinksOfRanks:
    """What the light of each sender of a batch reaches, a row for cells that reach the same ranks.

    Args:
        reaches: ranks that each cell reaches, a port and wavelength of a sender, bool (cells, ranks).
        of_cell: share of its rate, float64 (cells,).
        of_rank: cells of a rank [count].
    """
    works = np.flatnonzero(of_cell)
    n = reaches.shape[1]
    padded = np.zeros((len(works), -(-n // 64) * 64), bool)
    padded[:, :n] = reaches[works]
    words = np.packbits(padded, axis=1).view(np.uint64).T  # ranks, 64 at a time
    sender = first + works // of_rank
    order = np.lexsort((*words, sender))
    sender, words, of_kind = sender[order], words[:, order], of_cell[works[order]]
    new = np.flatnonzero(np.append(True, (np.diff(sender) != 0) | (words[:, 1:] != words[:, :-1]).any(axis=0)))
    number = np.add.reduceat(of_kind, new) if len(works) else np.zeros(0)
    return LinksOfRanks(sender[new[: len(works)]], reaches[works[order[new[: len(works)]]]], number)


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
    return Residual(rates[0], rates[1], machine.rate_bits_per_s, None)


class _Needs(NamedTuple):
    """Least bytes that a collective moves, in messages: in all, out of a set of s of p ranks, and into it."""

    total: float
    out: npt.NDArray[Any]
    into: npt.NDArray[Any]


def _needs(name: str, p: int, s: IntArray, has_root: npt.NDArray[np.bool_]) -> _Needs:
    """What sets of ranks must send and receive.

    Args:
        p: ranks [count].
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
    bounds = [0.0]
    splits = any(resource.splits for resource in fabric.resources)  # one signal to many receivers
    for rate in (known.received,) if splits else (known.sent, known.received):
        bounds.append(needs.total / float(rate.sum()) if rate.any() else float("inf"))
    bounds += [*_over(needs.out, known.sent), *_over(needs.into, known.received)]
    if known.links is not None:
        bounds.append(_of_worst_set(wanted, known.links))
    return max(whole, max(bounds) * size_bytes / byte_rate)


def _over(needed: npt.NDArray[Any], rate: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Needed over rate, 0 where nothing is needed, infinite where something is and there is no rate."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(needed > 0, np.where(rate > 0, needed / rate, np.inf), 0.0)


def _of_worst_set(wanted: Request, links: LinksOfRanks) -> float:
    """The largest of what must leave a set of ranks, in messages, over the wavelengths that its links carry.

    A set needs as much to leave it as the ranks outside need to enter them; `least_cuts` names what each collective needs.
    """
    name, p = wanted.name, links.reaches.shape[1]
    if name == "all_reduce":
        return max(largest_linear(links, 0, inside=inside) for inside in (True, False))
    if name == "broadcast":
        return largest_linear(links, wanted.root, inside=True)
    if name in ("reduce_scatter", "all_gather"):
        return largest_linear(links, inside=name == "all_gather") / p
    if name == "all_to_all" and p <= MOST_RANKS_OF_ALL_SETS:
        return largest_of_all_sets(links)
    return 0.0


def closed_set(fabric: Fabric) -> IntArray | None:
    """Ranks from which no link leads to the others, the fewest; None if the links that are left join all ranks both ways."""
    n = fabric.num_nodes
    ranks = np.arange(n)
    if has_network(fabric):
        return ranks_closed(fabric)
    reach = fabric.linked(ranks[:, None], ranks[None, :])
    if isinstance(fabric, Lightpath):
        reach = reach & fabric.wavelength_in_common(ranks[:, None], ranks[None, :])
    reach = reach | np.eye(n, dtype=bool)
    if reach.all():
        return None
    while not np.array_equal(further := reach @ reach, reach):
        reach = further
    sizes = reach.sum(axis=1)
    if sizes.min() == n:
        return None
    return np.flatnonzero(reach[int(sizes.argmin())])
