"""Lower bounds of times: a result below its bound is an error, never a good result."""

from __future__ import annotations

from collections.abc import Generator
from math import ceil, log

import numpy as np

from opticcl.assumptions import Assumptions
from opticcl.ir import Collective, Fabric, Schedule
from opticcl.simulate.latency import in_line_on, path_latency
from opticcl.simulate.parts import all_within

__all__ = ["class_bounds", "lower_bound_s", "moved_share"]


def moved_share(collective: Collective) -> float:
    """Share of the message that some rank must send or receive, whatever the schedule.

    An all-reduce is a reduce-scatter and an all-gather; in these, and in an all-to-all, a scatter and a gather, all but one
    block of N moves over one rank's ports; a broadcast or a reduce brings the whole message to or from every other rank.
    In a collective of the user's own, a rank must receive each chunk that it needs and does not hold, or not alone.
    """
    n = collective.num_ranks
    known = _shares(n).get(collective.name)
    if known is not None:
        return known if n > 1 else 0.0
    ranks, chunks = np.arange(n), np.arange(collective.num_chunks)[:, None]
    before, after = (
        np.broadcast_to(held(ranks, chunks), (len(chunks), n)) for held in (collective.before, collective.after)
    )
    lacks = before.sum(axis=1)[:, None] > before if collective.reduces else ~before
    return float((after & lacks).sum(axis=0).max()) / collective.num_chunks


def _shares(num_ranks: int) -> dict[str, float]:
    """`moved_share` of the registered collectives, by name."""
    others = (num_ranks - 1) / num_ranks
    blocks = dict.fromkeys(("all_gather", "reduce_scatter", "all_to_all", "scatter", "gather"), others)
    whole = {"all_reduce": 2 * others, "broadcast": 1.0, "reduce": 1.0}
    return {**blocks, **whole, "barrier": 0.0, "send_recv": 1 / num_ranks}


def lower_bound_s(collective: Collective, fabric: Fabric, size_bytes: int, assumed: Assumptions) -> float:
    """Alpha-beta lower bound of a collective on a fabric [s].

    Latency: with p partners in a step the number of ranks that a contribution has reached grows at most by a factor of p + 1
    (where signals are split, or rounds follow each other in line, one may reach all). Bandwidth: `moved_share` over the rate of
    one node.

    Args:
        collective: what is computed.
        fabric: on which machine.
        size_bytes: message of every rank [bytes].
        assumed: time assumptions.
    Source: Chan et al. 2007; LUMORPH section 4 for p partners at the same time.
    """
    n = collective.num_ranks
    if n == 1 or (collective.name == "send_recv" and collective.shift % n == 0):
        return 0.0
    own = collective.name not in _shares(n)
    if own and not moved_share(collective):
        return 0.0
    reaches_all = not own and collective.name != "send_recv"
    alone = fabric.is_packet_switched or any(r.splits for r in fabric.resources) or in_line_on(fabric, assumed)
    partners = n - 1 if alone else min(n - 1, fabric.ports_per_node * fabric.lasers_per_port)
    steps = max(1, ceil(log(n) / log(partners + 1) - 1e-9)) if reaches_all else 1
    moving_s = moved_share(collective) * size_bytes * 8 / fabric.node_rate_bits_per_s
    return steps * path_latency(fabric, assumed).least_s + moving_s


def class_bounds(
    schedule: Schedule, fabric: Fabric, assumed: Assumptions
) -> Generator[tuple[float, float], None, None]:
    """Lower bound of each run of identical steps, whatever circuits carry it.

    Every step takes its latency and the bytes of its busiest node. Where a node has more partners than ports and lasers, the
    step takes several rounds, each with its latency and a change of circuits; pairs that did not stand before must be
    connected. On fabrics with a distance, bytes times links cannot exceed the capacity of all links together. No circuits
    are computed, so that a search can discard schedules cheaply.

    Args:
        schedule: of any algorithm.
        fabric: that it would run on.
        assumed: time assumptions.
    Yields: for each run a fixed time [s] and a time for each byte of the message [s].
    """
    splits = any(r.splits for r in fabric.resources)
    at_once = fabric.num_nodes if fabric.is_packet_switched else fabric.ports_per_node * fabric.lasers_per_port
    charged = assumed.initial == "cold" or assumed.reconfiguration_charge == "every_step"
    change_s = fabric.reconfiguration_s if charged else 0.0
    law, in_line = path_latency(fabric, assumed), in_line_on(fabric, assumed)
    bits_of_chunk = 8 / schedule.collective.num_chunks
    all_links = _rate_of_all_links(fabric)
    standing = np.zeros(0, np.int64)
    for steps in schedule.step_classes():
        transfers = schedule.step(steps.start)
        if not len(transfers):
            yield 0.0, 0.0
            continue
        amount = transfers.size_chunks()
        ends = [transfers.dst] if splits else [transfers.src, transfers.dst]  # one signal may reach many, not come from
        most = max(int(np.bincount(end).max()) for end in ends)
        sent = int(np.bincount(transfers.src).max()) if law.message_gap_s else 0
        uniform = amount[0] == amount.max() == amount.min()
        busiest = float(most * amount[0]) if uniform else max(float(np.bincount(end, amount).max()) for end in ends)
        rounds = ceil(most / at_once)
        fixed = len(steps) * ((1 if in_line else rounds) * law.least_s + law.message_gap_s * sent)
        if change_s:
            pairs = np.sort(transfers.src.astype(np.int64) * fabric.num_nodes + transfers.dst)
            pairs = pairs[np.append(True, pairs[1:] != pairs[:-1])]
            both = (pairs % fabric.num_nodes, pairs // fabric.num_nodes)
            settings = max(ceil(int(np.bincount(end).max()) / at_once) for end in both[: len(ends)])
            changes = not all_within(pairs, standing)
            fixed += len(steps) * (settings - 1) * change_s
            if changes and (settings == 1 or not len(standing)):  # of several settings one may stand already
                fixed += change_s
            if changes or settings > 1:
                standing = pairs
        moving = busiest / fabric.node_rate_bits_per_s
        apart = fabric.distance(transfers.src, transfers.dst) if all_links else None
        if apart is not None:
            moving = max(moving, float(amount @ apart) / all_links)
        yield fixed, len(steps) * moving * bits_of_chunk


def _rate_of_all_links(fabric: Fabric) -> float:
    """Capacity of all links, fibres and waveguides together, each in its direction [bit/s]."""
    fibre = fabric.num_wavelengths * fabric.rate_bits_per_s
    return sum(
        r.count * r.capacity * (1.0 if r.shared else fibre)
        for r in fabric.resources
        if r.shared or r.kind in ("fibre", "waveguide")
    )
