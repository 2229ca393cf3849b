"""Equivalence classes of flows: max-min fairness gives equivalent flows equal rates, so they are simulated as one.

Two flows are equivalent if they carry the same bytes, start together and cross equivalent links; two links, if they have
the same capacity and are crossed by equivalent flows. Colour refinement finds the classes. A class is a 64-bit colour: the
probability that two classes of a million flows get the same colour is 1e-7.
"""

from __future__ import annotations

import numpy as np

from opticcl.ir import IntArray, numbered
from opticcl.simulate.flow._colour_kernels import first_colours, refine

__all__ = ["quotient"]


def _used(hops: IntArray) -> IntArray:
    """Links that some flow crosses, ascending."""
    return np.flatnonzero(np.bincount(hops))


def _colours(
    hops: IntArray, offsets: IntArray, amount: np.ndarray, delay: np.ndarray, capacity: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """Colours of flows and of links, one for each class; None if most links are in a class of their own."""
    used = _used(hops)
    link_colour = capacity.view(np.uint64).copy()
    flow_colour = first_colours(amount.view(np.uint64), delay.view(np.uint64))
    classes = 0
    while True:
        refine(offsets, hops, flow_colour, link_colour)
        num_colours = len(np.unique(link_colour[used]))
        if num_colours == classes:
            return flow_colour, link_colour
        if 2 * num_colours > len(used):
            return None
        classes = num_colours


def quotient(
    hops: IntArray, offsets: IntArray, amount: np.ndarray, delay: np.ndarray, capacity: np.ndarray
) -> tuple[IntArray, IntArray, IntArray, np.ndarray, np.ndarray, np.ndarray, IntArray] | None:
    """One flow for each class of flows and one link for each class of links, or None if there are too many classes.

    Args:
        hops, offsets: links of flow i are hops[offsets[i]:offsets[i + 1]].
        amount, delay: bytes of each flow, and when it starts [s].
        capacity: of each link [byte/s].
    Returns: hops, offsets, weights of the hops, amounts, delays and capacities, and the class of each flow, int64 (flows,).
        The weight of a hop is the number of flows of its class on one such link.
    """
    hops, offsets = hops.astype(np.int64), offsets.astype(np.int64)
    refined = _colours(hops, offsets, amount, delay, capacity)
    if refined is None:
        return None
    flow_colour, link_colour = refined
    colours, example, of_flow, flows = np.unique(
        flow_colour, return_index=True, return_inverse=True, return_counts=True
    )
    if 2 * len(colours) > len(amount):
        return None
    used = _used(hops)
    _, link_example, of_link, links = np.unique(
        link_colour[used], return_index=True, return_inverse=True, return_counts=True
    )
    class_of_link = np.zeros(len(capacity), np.int64)
    class_of_link[used] = of_link
    lengths = np.diff(offsets)[example]
    class_of_hop, within = numbered(lengths)
    crossed = class_of_link[hops[offsets[example][class_of_hop] + within]]
    pair, times = np.unique(class_of_hop * len(links) + crossed, return_counts=True)
    flow, link = np.divmod(pair, len(links))
    weight = flows[flow] * times // links[link]  # counted from both ends
    new_offsets = np.concatenate([[0], np.cumsum(np.bincount(flow, minlength=len(example)))])
    return link, new_offsets, weight, amount[example], delay[example], capacity[used][link_example], of_flow
