"""Calls of NCCL within ncclGroupStart and ncclGroupEnd: of which device of its thread each of them is.

::

    ncclGroupStart                        a thread that drives several devices issues the calls of all of them in one group:
    ncclAllReduce ... ncclAllReduce       device by device, or call by call for all devices
    ncclGroupEnd                          launches the kernels of all

The calls of a communicator in a group are dealt to its devices in both ways. A way fits if all devices have the same
collectives in the same order, and every transfer between two of them is a send of the one and a receive of the other. Where
both ways fit and differ, or none does, the devices of the calls are not known.

Source: NVIDIA, NCCL user guide, group calls: management of multiple GPUs from one thread.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from opticcl.traces._kineto_events import KERNEL, NCCL, Events, Record
from opticcl.traces._kineto_forms import BATCH
from opticcl.traces.recording import GroupPlace, RankCall

__all__ = ["Group", "GroupRange", "batch_of", "groups_of", "take_grouped"]


class GroupRange(NamedTuple):
    """A range ncclGroupStart or ncclGroupEnd.

    Args:
        thread: index of the host thread.
        start_us, end_us: of the range [us].
        ends: whether it is ncclGroupEnd.
    """

    thread: int
    start_us: float
    end_us: float
    ends: bool


class Group(NamedTuple):
    """An outermost group.

    Args:
        thread: index of the host thread.
        start_us: start of its ncclGroupStart [us].
        launch_us, end_us: start and end of its ncclGroupEnd [us].
    """

    thread: int
    start_us: float
    launch_us: float
    end_us: float


def groups_of(ranges: Sequence[GroupRange]) -> list[Group]:
    """The outermost groups, by thread and time; one whose start is not recorded begins with its end."""
    groups: list[Group] = []
    open_: dict[int, list[GroupRange]] = defaultdict(list)
    for one in sorted(ranges, key=lambda one: one.start_us):
        if not one.ends:
            open_[one.thread].append(one)
        else:
            begun = open_[one.thread].pop() if open_[one.thread] else one
            if not open_[one.thread]:
                groups.append(Group(one.thread, begun.start_us, one.start_us, one.end_us))
    return sorted(groups)


def batch_of(group: Group) -> Record:
    """The range in which the kernels of a group are launched."""
    return Record(NCCL, group.thread, group.launch_us, group.end_us, None, None, -1, BATCH)


def take_grouped(
    groups: Sequence[Group],
    host: Events,
    devices: Mapping[object, Events],
    made: Sequence[tuple[str, int, GroupPlace | None]],
) -> tuple[dict[object, list[Record]], list[Record]]:
    """Take the calls of groups from the records of the host.

    Args:
        groups: of the process.
        host: records and launches; loses the records that are returned.
        devices: kernels of each device.
        made: communicators, with device and place in each of a rank that makes it.
    Returns: calls of each device, and those whose device is not known.
    """
    launches = _launches(host, devices)
    called: dict[tuple[int, str], list[Record]] = defaultdict(list)  # by group and communicator
    for row in sorted(host.records[NCCL], key=lambda row: row.start_us):
        at = bisect_right(groups, (row.thread, row.start_us, math.inf)) - 1
        if row.call is not None and at >= 0 and groups[at].thread == row.thread and row.end_us <= groups[at].launch_us:
            called[at, row.call.group].append(row)
    by_device: dict[object, list[Record]] = defaultdict(list)
    unknown: list[Record] = []
    for (at, name), rows in called.items():
        issued = launches[groups[at].thread]
        first = bisect_left(issued, groups[at].launch_us, key=lambda one: one[0])
        upto = bisect_right(issued, groups[at].end_us, key=lambda one: one[0])
        numbers = _numbers(name, {device for _, device in issued[first:upto]}, made)
        if numbers:
            owners = _dealt([row.call for row in rows if row.call is not None], list(numbers.values()))
            unknown += [] if owners else rows
            for row, owner in zip(rows, owners, strict=bool(owners)):
                by_device[list(numbers)[owner]].append(row)
    taken = {id(row) for rows in [*by_device.values(), unknown] for row in rows}
    host.records[NCCL] = [row for row in host.records[NCCL] if id(row) not in taken]
    return by_device, unknown


def _launches(host: Events, devices: Mapping[object, Events]) -> dict[int, list[tuple[float, object]]]:
    """Time and device of the launches of kernels that communicate, by thread, in order."""
    device_of = {row.correlation: name for name, one in devices.items() for row in one.records[KERNEL]}
    launches: dict[int, list[tuple[float, object]]] = defaultdict(list)
    for correlation, thread, us in zip(host.launch_correlation, host.launch_thread, host.launch_us, strict=True):
        if correlation in device_of:
            launches[thread].append((us, device_of[correlation]))
    for issued in launches.values():
        issued.sort(key=lambda one: one[0])
    return launches


def _numbers(name: str, launched: set[object], made: Sequence[tuple[str, int, GroupPlace | None]]) -> dict[object, int]:
    """Devices of a communicator on which a group launches, with the number of each in it, in order; else by their order.

    Args:
        name: of the communicator.
        launched: devices on which the group launches.
        made: as of `take_grouped`.
    """
    known = {device: place.number for group, device, place in made if group == name and place and device in launched}
    if known:
        return dict(sorted(known.items(), key=lambda one: one[1]))
    return {device: number for number, device in enumerate(sorted(launched, key=lambda one: str(one).zfill(9)))}


def _dealt(calls: Sequence[RankCall], numbers: Sequence[int]) -> list[int]:
    """The device of each call; none if that cannot be known.

    Args:
        calls: of a communicator in a group.
        numbers: of the devices in the communicator.
    """
    many, each = len(numbers), len(calls) // len(numbers)
    if many * each != len(calls):
        return []
    by_calls: dict[object, list[int]] = {}
    for owners in ([i // each for i in range(len(calls))], [i % many for i in range(len(calls))]):
        mine: list[list[RankCall]] = [[] for _ in numbers]
        for call, owner in zip(calls, owners, strict=True):
            mine[owner].append(call)
        if _agree(mine, numbers):
            by_calls[str([[(call.collective, call.size_bytes, call.ends) for call in rows] for rows in mine])] = owners
    return next(iter(by_calls.values())) if len(by_calls) == 1 else []


def _agree(mine: Sequence[Sequence[RankCall]], numbers: Sequence[int]) -> bool:
    """Whether the calls of devices fit together.

    Args:
        mine: calls of each device.
        numbers: of the devices in the communicator.
    """
    collectives = {tuple((one.collective, one.size_bytes) for one in rows if not one.is_transfer) for rows in mine}
    sends: Counter[tuple[int, int, int]] = Counter()
    receives: Counter[tuple[int, int, int]] = Counter()
    for number, rows in zip(numbers, mine, strict=True):
        for one in rows:
            if one.ends is not None and one.ends.receiver in numbers:
                sends[number, one.ends.receiver, one.size_bytes] += 1
            elif one.ends is not None and one.ends.sender in numbers:
                receives[one.ends.sender, number, one.size_bytes] += 1
    return len(collectives) == 1 and sends == receives
