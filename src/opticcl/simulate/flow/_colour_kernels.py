"""Kernels of colour refinement: a colour is a 64-bit hash of what a flow or a link meets."""

from __future__ import annotations

import numpy as np

from opticcl.kernels import njit

__all__ = ["first_colours", "refine"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1, _M2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


@njit
def _mix(word):  # type: ignore[no-untyped-def]
    """A hash of a word (splitmix64)."""
    word = np.uint64(word) + _GOLDEN
    word = (word ^ (word >> _S30)) * _M1
    word = (word ^ (word >> _S27)) * _M2
    return word ^ (word >> _S31)


@njit
def first_colours(amount, delay):  # type: ignore[no-untyped-def]
    """Colours of flows by their bytes and delays alone, uint64 (flows,).

    Args: amount, delay: of each flow, as words of 64 bits.
    """
    colour = np.empty(len(amount), np.uint64)
    for flow in range(len(amount)):
        colour[flow] = _mix(_mix(amount[flow]) ^ delay[flow])
    return colour


@njit
def refine(offsets, hops, flow_colour, link_colour):  # type: ignore[no-untyped-def]
    """One round of colour refinement, in place: links by their flows, then flows by their links.

    Args:
        offsets, hops: links of each flow.
        flow_colour: of each flow, changed.
        link_colour: of each link, changed.
    """
    crossing = np.zeros(len(link_colour), np.uint64)
    for flow in range(len(flow_colour)):
        mixed = _mix(flow_colour[flow])
        for k in range(offsets[flow], offsets[flow + 1]):
            crossing[hops[k]] += mixed
    for link in range(len(link_colour)):
        link_colour[link] = _mix(link_colour[link] ^ _mix(crossing[link]))
    for flow in range(len(flow_colour)):
        crossed = np.uint64(0)
        for k in range(offsets[flow], offsets[flow + 1]):
            crossed += _mix(link_colour[hops[k]])
        flow_colour[flow] = _mix(flow_colour[flow] ^ _mix(crossed))
