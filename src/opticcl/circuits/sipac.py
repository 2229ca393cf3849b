"""SiPAC: the wavelengths of every transfer follow from its two ends.

Sender and receiver differ in the digit of one level; the port is that of the level, and the wavelengths are the whole
group that the switch drops there, interleaved with the other groups. Two pairs never share a wavelength of a port, so
a round takes one transfer of every pair; further transfers on the same channel take the next rounds.

Where levels differ in radix, so do the distances between the wavelengths of a group, but all circuits of a round have
one such distance. A channel then is several circuits that interleave:

    4x8 CUs                 line  0 1 2 3 4 5 6 7 8 9 ...
    level 0, group 1, 4 apart       a       b       a       two circuits, a and b
    level 1, group 1, 8 apart       c               c       one circuit

With channels=ring the next node of a switch receives two groups. One transfer to it takes both; of several, each takes one.

A translation of a node's digits changes no wavelength and no level, so circuits of some senders define those of all.

Source: SiPAC section III-B.
"""

from __future__ import annotations

import numpy as np

from opticcl.circuits import Rounds, register_rule
from opticcl.circuits._around import around
from opticcl.circuits._by_senders import BySenders
from opticcl.fabrics.sipac import Sipac
from opticcl.ir import Circuits, Fabric, IntArray, Schedule, Transfers, numbered


@register_rule("sipac")
def sipac(fabric: Fabric, schedule: Schedule) -> Rounds:
    """The whole channel of its pair for each transfer, in closed form: one circuit, or several with mixed radices.

    Where parts have failed, the lines of the channel that work, shared among the transfers of a pair.
    """
    rounds = _whole_channels(fabric)
    if fabric.conditions:
        return around(fabric, rounds, widens=True)
    return BySenders(fabric, schedule.steps, rounds)


def _whole_channels(fabric: Fabric) -> Rounds:
    machine = fabric.machine_as(Sipac)
    lines, strides = machine.num_wavelengths, machine.strides
    unused = 1 if machine.channels == "retuned" else 0
    ports, groups = np.array(machine.sides, np.int64), np.array(machine.groups_of_levels, np.int64)
    apart, first_port = machine.lines_apart, np.cumsum(ports) - ports

    def rounds(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        distance = transfers.dst - transfers.src  # (j - i) r_0 ... r_{l-1}
        level = _levels(strides, np.abs(distance))
        stride, side = (int(values[level[0]]) if _equal(level) else values[level] for values in (strides, ports))
        group = (distance // stride - unused) % side
        number = np.zeros(len(group), np.int64)
        if _repeats(transfers.src * ports.sum() + first_port[level] + group):  # else no two pairs are equal
            number = _occurrence(transfers.src * np.int64(fabric.num_machine_nodes) + transfers.dst)
        carried = np.arange(len(group))
        if machine.channels == "ring":
            carried, group, number = _with_loop_back(transfers, group, number)
            level = level[carried]
        lowest, src, dst = group, transfers.src, transfers.dst
        alone = int(group.max(initial=0)) < apart <= int(group.min(initial=apart)) + int(groups.min())
        if machine.channels == "ring" or not alone:  # else every channel is one circuit
            row, nth = numbered(-(-(apart - group) // groups[level]))
            level, lowest = level[row], group[row] + nth * groups[level[row]]
            number, carried = number[row], carried[row]
            src, dst = src[carried], dst[carried]
        circuits = Circuits.of(
            carried,
            src,
            dst,
            port=level,
            wavelength_lo=lowest,
            wavelength_n=(lines - 1 - lowest) // apart + 1,
            path=level[:, None],
            wavelength_step=apart,
        )
        last = int(number.max(initial=0))
        return tuple(circuits.take(number == n) for n in range(last + 1)) if last else (circuits,)

    return rounds


def _levels(strides: IntArray, apart: IntArray) -> IntArray:
    """Level of each distance, int64 (n,).

    Args:
        strides: of the levels, ascending.
        apart: distances, 1 or more.
    """
    ends = np.searchsorted(strides, [apart.min(initial=1), apart.max(initial=1)], side="right") - 1
    if len(apart) and ends[0] == ends[1]:  # as in most steps
        return np.full(len(apart), ends[0])
    return np.searchsorted(strides, apart, side="right") - 1


def _equal(level: IntArray) -> bool:
    """Whether all are one level, by which numbers are divided in less time."""
    return bool(len(level) and (level == level[0]).all())


def _with_loop_back(transfers: Transfers, group: IntArray, number: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Transfer, group of lines and round of each circuit, where group 0 leads to the next node, as group 1 does.

    Args:
        transfers: of the step.
        group: of each transfer, int64 (n,).
        number: how many transfers of the same pair stand before each, int64 (n,).
    """
    beside = group == 1
    pair = transfers.src.astype(np.int64) << 32 | transfers.dst
    _, of, count = np.unique(pair, return_inverse=True, return_counts=True)
    alone = beside & (number % 2 == 0) & (number == count[of.reshape(-1)] - 1)
    own = np.where(beside & (number % 2 == 1), 0, group)
    rounds = np.where(beside, number // 2, number)
    carried = np.concatenate([np.arange(len(group)), np.flatnonzero(alone)])
    order = np.argsort(carried, kind="stable")
    groups = np.concatenate([own, np.zeros(int(alone.sum()), own.dtype)])
    return carried[order], groups[order], rounds[carried[order]]


def _occurrence(key: IntArray) -> IntArray:
    """How many equal keys stand before each, int64 (n,).

    >>> _occurrence(np.array([5, 7, 5, 5])).tolist()
    [0, 0, 1, 2]
    """
    if not _repeats(key):  # mostly no two are equal, and that is quicker to see than how many are
        return np.zeros(len(key), np.int64)
    order = np.argsort(key, kind="stable")
    place = np.arange(len(key))
    starts = np.diff(key[order], prepend=-1) != 0
    before = np.empty(len(key), np.int64)
    before[order] = place - np.maximum.accumulate(np.where(starts, place, 0))
    return before


def _repeats(key: IntArray) -> bool:
    """Whether two keys, which are not negative, are equal: by a table where it has few more entries than there are keys."""
    if int(key.max(initial=0)) < 4 * len(key):
        return bool(np.bincount(key).max(initial=0) > 1)
    in_order = np.sort(key)
    return bool((in_order[1:] == in_order[:-1]).any())
