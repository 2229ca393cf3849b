"""Flows that are alike: max-min fairness cannot tell them apart, so they may be played as one.

Two flows are alike if they carry as much, start together and cross links that are alike; two links, if they have the
same capacity and are crossed by flows that are alike. Colour refinement finds the kinds. Kinds are 64-bit colours: that
two kinds of a million flows get one colour has a chance of 1e-7.
"""

from __future__ import annotations

import numpy as np

from opticcl.ir import IntArray
from opticcl.simulate import _flow_kernels as kernels

__all__ = ["kind_of_flow", "quotient"]


def _colours(
    hops: IntArray, offsets: IntArray, amount: np.ndarray, delay: np.ndarray, capacity: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Colours of flows and of links: those of one colour are alike. None if few are."""
    used = np.unique(hops)
    link_colour = capacity.view(np.uint64).copy()
    flow_colour = amount.view(np.uint64) ^ (delay.view(np.uint64) << np.uint64(1))
    kinds = 0
    while True:
        kernels.refine(offsets, hops, flow_colour, link_colour)
        found = len(np.unique(link_colour[used]))
        if found == kinds:
            return flow_colour, link_colour
        if 2 * found > len(used):
            return None
        kinds = found


def kind_of_flow(
    hops: IntArray, offsets: IntArray, amount: np.ndarray, delay: np.ndarray, capacity: np.ndarray
) -> IntArray | None:
    """Row of the quotient that each flow became, int64 (flows,), or None if few are alike."""
    colours = _colours(hops.astype(np.int64), offsets.astype(np.int64), amount, delay, capacity)
    return None if colours is None else np.unique(colours[0], return_inverse=True)[1]


def quotient(
    hops: IntArray, offsets: IntArray, amount: np.ndarray, delay: np.ndarray, capacity: np.ndarray
) -> tuple[IntArray, IntArray, IntArray, np.ndarray, np.ndarray, np.ndarray] | None:
    """One flow for all that are alike and one link for all that are alike, or None if few are.

    Args:
        hops, offsets: links of flow i are hops[offsets[i]:offsets[i + 1]].
        amount, delay: bytes of each flow, and when it starts [s].
        capacity: of each link [byte/s].
    Returns: hops, offsets, weights of the hops, amounts, delays and capacities. Each hop has the number of flows of its
        kind on one such link.
    """
    hops, offsets = hops.astype(np.int64), offsets.astype(np.int64)
    found = _colours(hops, offsets, amount, delay, capacity)
    if found is None:
        return None
    flow_colour, link_colour = found
    colours, example, flows = np.unique(flow_colour, return_index=True, return_counts=True)
    if 2 * len(colours) > len(amount):
        return None
    used = np.unique(hops)
    _, link_example, of_link, links = np.unique(
        link_colour[used], return_index=True, return_inverse=True, return_counts=True
    )
    kind_of_link = np.zeros(len(capacity), np.int64)
    kind_of_link[used] = of_link
    lengths = np.diff(offsets)[example]
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    crossed = kind_of_link[hops[np.repeat(offsets[example], lengths) + within]]
    flow_kind = np.repeat(np.arange(len(example)), lengths)
    pair, times = np.unique(flow_kind * len(links) + crossed, return_counts=True)
    kind, link = np.divmod(pair, len(links))
    weight = flows[kind] * times // links[link]  # counted from both ends
    new_offsets = np.concatenate([[0], np.cumsum(np.bincount(kind, minlength=len(example)))])
    return link, new_offsets, weight, amount[example], delay[example], capacity[used][link_example]
