"""Columns that the kernels of the schedulers read and write, and what is done to one row of them.

A word holds the cells (slot, plane) of an epoch that are free: bit slot * planes + plane, in 64-bit parts, lowest first. A
circuit has a cell if the words of its sender, its receiver and its channel have the bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.ir import IntArray
from opticcl.kernels import njit

__all__ = [
    "Ended",
    "FreeWords",
    "Granted",
    "Waiting",
    "Words",
    "common_words",
    "take_words",
    "write_end",
    "write_grant",
]

Words = npt.NDArray[np.uint64]


class Waiting(NamedTuple):
    """Requests that wait, oldest first, int32 (n,) each.

    Args:
        arrival: slot in which they arrived.
        src, dst: nodes.
        cells: that are left of them.
        size: that they had.
    """

    arrival: IntArray
    src: IntArray
    dst: IntArray
    cells: IntArray
    size: IntArray


class FreeWords(NamedTuple):
    """Cells of an epoch that are free, and where the word of a channel is.

    Args:
        send, receive: of the nodes, uint64 (nodes, parts) each.
        channel: of the channels, uint64 (channels, parts).
        send_part, receive_part: of the number of the channel between two nodes, which is their sum, int64 (nodes,) each.
    """

    send: Words
    receive: Words
    channel: Words
    send_part: IntArray
    receive_part: IntArray


class Granted(NamedTuple):
    """Grants of an epoch, int32 (n,) each, as `opticcl.ir.epochs.EpochGrants` describes them."""

    src: IntArray
    dst: IntArray
    bit: IntArray
    cells: IntArray
    arrival: IntArray


class Ended(NamedTuple):
    """Flows that end in an epoch, int32 (n,) each: slot of arrival, size [cells], slot after the last."""

    arrival: IntArray
    size: IntArray
    slot: IntArray


@njit(cache=False)
def common_words(free, source, target, part):  # type: ignore[no-untyped-def]
    """Cells that a circuit can have.

    Args:
        free: words.
        source, target: nodes.
        part: of the words.
    """
    channel = free.send_part[source] + free.receive_part[target]
    return free.send[source, part] & free.receive[target, part] & free.channel[channel, part]


@njit(cache=False)
def take_words(free, source, target, part, cells):  # type: ignore[no-untyped-def]
    """Cells are no longer free for circuits that have an end or the channel in common.

    Args:
        free: words, changed.
        source, target: nodes.
        part: of the words.
        cells: of that part.
    """
    channel = free.send_part[source] + free.receive_part[target]
    free.send[source, part] &= ~cells
    free.receive[target, part] &= ~cells
    free.channel[channel, part] &= ~cells


@njit(cache=False)
def write_grant(granted, row, source, target, bit, cells, arrival):  # type: ignore[no-untyped-def]
    """Write a row of the grants.

    Args:
        granted: changed.
        row: number.
        source, target, bit, cells, arrival: its values.
    """
    granted.src[row], granted.dst[row], granted.bit[row] = source, target, bit
    granted.cells[row], granted.arrival[row] = cells, arrival


@njit(cache=False)
def write_end(ended, row, arrival, size, slot):  # type: ignore[no-untyped-def]
    """Write a row of the flows that end.

    Args:
        ended: changed.
        row: number.
        arrival, size, slot: its values.
    """
    ended.arrival[row], ended.size[row], ended.slot[row] = arrival, size, slot
