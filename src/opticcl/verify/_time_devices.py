"""Settings of devices over time: every use finds its setting, complete, and keeps it.

Uses and changes are columns. Consecutive uses of one setting of a device are first checked as a block; blocks that a change
interrupts are checked use by use, since a device may change between two uses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.ir import Circuits, Fabric, IntArray
from opticcl.ir.device import Device
from opticcl.ir.programme import DeviceTable
from opticcl.kernels import njit
from opticcl.verify._time_rows import TimeRows
from opticcl.verify.sweep import runs_of, slack

__all__ = [
    "Changes",
    "DeviceFinding",
    "Numbering",
    "Uses",
    "changes_of",
    "check_changes",
    "collect_uses",
    "find_settings",
    "with_standing",
]

FloatArray = npt.NDArray[Any]  # float64


@dataclass(frozen=True, slots=True)
class Uses:
    """Uses of devices by circuits, as columns of equal length.

    Args:
        group: number of the group of members over all kinds, int64 (n,).
        start_s, end_s: light passes, float64 (n,) [s].
        setting: int64 (n,).
        round: number of the unrolled round, int64 (n,).
        row: circuit of that round, int64 (n,).
        idle: whether the circuit carries nothing, bool (n,).
    """

    group: IntArray
    start_s: FloatArray
    end_s: FloatArray
    setting: IntArray
    round: IntArray
    row: IntArray
    idle: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.group)

    @classmethod
    def none(cls) -> Uses:
        """No uses."""
        no_times, no_numbers = np.zeros(0), np.zeros(0, np.int64)
        return cls(no_numbers, no_times, no_times, no_numbers, no_numbers, no_numbers, np.zeros(0, bool))

    def take(self, rows: npt.NDArray[np.bool_]) -> Uses:
        """The uses where a mask is true."""
        if rows.all():
            return self
        return Uses(*(getattr(self, f.name)[rows] for f in fields(self)))


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of members, sorted by (member, begin).

    Args:
        member: number of the member over all kinds, int64 (n,).
        begin_s, done_s: float64 (n,) [s].
        setting: int64 (n,).
        kind: position in the fabric's devices, int64 (n,).
    """

    member: IntArray
    begin_s: FloatArray
    done_s: FloatArray
    setting: IntArray
    kind: IntArray


class DeviceFinding(NamedTuple):
    """The setting that each use found.

    Args:
        change: row of the `Changes` that made it, int64 (n,); -1: it stood from the start.
        next_begin_s: start of the next change of that member, float64 (n,) [s]; inf if there is none.
        missing_s: time by which the use misses its setting, float64 (n,) [s]; 0 if it has it.
        unset: whether the member was never set before, bool (n,).
    """

    change: IntArray
    next_begin_s: FloatArray
    missing_s: FloatArray
    unset: npt.NDArray[np.bool_]


class Numbering:
    """Numbers of groups and members over all kinds of devices.

    Args: devices: of a fabric.
    """

    def __init__(self, devices: tuple[Device, ...]) -> None:
        self.devices = devices
        self.kind_of = {device.kind: i for i, device in enumerate(devices)}
        self.first_group = np.cumsum([0, *(device.count for device in devices)])
        self.first_member = np.cumsum([0, *(device.count * device.pool for device in devices)])
        self.pools = np.array([device.pool for device in devices], np.int64)

    def kind_of_group(self, group: IntArray) -> IntArray:
        """Position of the kind of each group."""
        return np.searchsorted(self.first_group, group, side="right") - 1

    def first_of_group(self, group: IntArray) -> IntArray:
        """Number of the first member of each group."""
        kind = self.kind_of_group(group)
        return self.first_member[kind] + (group - self.first_group[kind]) * self.pools[kind]

    def group_name(self, group: int) -> str:
        """A group in words."""
        kind = int(self.kind_of_group(np.array([group]))[0])
        return f"{self.devices[kind].kind} {group - self.first_group[kind]}"

    def member_name(self, member: int) -> str:
        """A member in words."""
        kind = int(np.searchsorted(self.first_member, member, side="right")) - 1
        index, which = divmod(int(member - self.first_member[kind]), self.devices[kind].pool)
        pool = f" member {which}" if self.devices[kind].pool > 1 else ""
        return f"{self.devices[kind].kind} {index}{pool}"


def collect_uses(rows: TimeRows, fabric: Fabric, numbering: Numbering) -> Uses:
    """Uses of all unrolled circuits, in the order of the rounds.

    Args:
        rows: of the programme.
        fabric: with devices.
        numbering: of its groups.
    """
    parts: list[tuple[IntArray | FloatArray, ...]] = []
    number = 0
    for stored in rows.steps:
        turns = np.array(rows.turns(stored), np.int64)
        begin_s = turns[:, None] * stored.period_s
        for at, one in enumerate(stored.rounds):
            rounds = (number + np.arange(len(turns)) * len(stored.rounds) + at)[:, None]
            for group, row, setting, offset in _uses_of(fabric, one.circuits, numbering):
                idle = ~one.carries[row]
                start = np.where(idle, one.start_s[row], one.start_s[row] + offset)
                end = np.where(idle, start, one.left_s[row] + offset)
                of_turns = (group, start + begin_s, end + begin_s, setting, rounds, row, idle)
                shape = (len(turns), len(row))
                parts.append(tuple(np.broadcast_to(column, shape).reshape(-1) for column in of_turns))
        number += len(turns) * len(stored.rounds)
    if not parts:
        return Uses.none()
    return Uses(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _uses_of(
    fabric: Fabric, circuits: Circuits, numbering: Numbering
) -> Iterator[tuple[IntArray, IntArray, IntArray, FloatArray]]:
    """Group, circuit, setting and offset of the uses of a round, a kind at a time."""
    for use in fabric.settings(circuits):
        index = np.asarray(use.index, np.int64)
        row = np.arange(len(circuits)) if use.circuit is None else np.asarray(use.circuit, np.int64)
        group = numbering.first_group[numbering.kind_of[use.kind]] + index
        yield group, row, np.asarray(use.setting, np.int64), np.broadcast_to(use.offset_s, row.shape).astype(np.float64)


def changes_of(table: DeviceTable, numbering: Numbering) -> Changes:
    """The changes of a device table, sorted."""
    member = numbering.first_member[table.kind] + table.device.astype(np.int64)
    order = np.lexsort((table.done_s, table.begin_s, member))
    return Changes(
        member[order],
        table.begin_s[order],
        table.done_s[order],
        table.setting[order],
        table.kind[order].astype(np.int64),
    )


def with_standing(changes: Changes, standing: Changes) -> Changes:
    """The changes, behind others whose settings stand from the start."""
    before = np.full(len(standing.member), -np.inf)
    columns = (
        (changes.member, standing.member), (changes.begin_s, before), (changes.done_s, before),
        (changes.setting, standing.setting), (changes.kind, standing.kind),
    )  # fmt: skip
    joined = [np.concatenate(pair) for pair in columns]
    order = np.lexsort((joined[1], joined[0]))
    return Changes(*(column[order] for column in joined))


def check_changes(changes: Changes, setting_time_s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Time by which each change is too short, and by which it begins before the one before is done.

    Args:
        changes: sorted.
        setting_time_s: of each kind, float64 (kinds,) [s].
    Returns: both float64 (n,) [s]; 0 where the change is right.
    """
    short = setting_time_s[changes.kind] - (changes.done_s - changes.begin_s)
    short = np.where(short > slack(changes.done_s), short, 0.0)
    early = np.zeros(len(short))
    same = changes.member[1:] == changes.member[:-1]
    early[1:] = np.where(same, changes.done_s[:-1] - changes.begin_s[1:], 0.0)
    return short, np.where(early > slack(changes.begin_s), early, 0.0)


def find_settings(
    uses: Uses, changes: Changes, numbering: Numbering, *, warm: bool, ready_s: FloatArray | None = None
) -> DeviceFinding:
    """Find the change that gave each use its setting.

    Args:
        uses: of groups.
        changes: of members, sorted.
        numbering: of both.
        warm: whether the first setting of every member stands from the start.
        ready_s: when the data of each use is ready: of a pool a use takes a member that was changed since then and not used
            yet, if there is one, and no other that was changed but not used if it can; None: it takes any, float64
            (uses,) [s].
    """
    n = len(uses)
    found = DeviceFinding(np.full(n, -1), np.full(n, np.inf), np.zeros(n), np.zeros(n, bool))
    pooled = numbering.pools[numbering.kind_of_group(uses.group)] > 1
    if not pooled.any():
        _of_single(uses, slice(None), changes, numbering, warm, found)
        return found
    single = np.flatnonzero(~pooled)
    if len(single):
        _of_single(uses, single, changes, numbering, warm, found)
    _of_pools(uses, np.flatnonzero(pooled), changes, numbering, warm, ready_s, found)
    return found


def _of_single(
    uses: Uses,
    rows: IntArray | slice,
    changes: Changes,
    numbering: Numbering,
    warm: bool,
    found: DeviceFinding,
) -> None:
    """Devices without a pool: write what the given uses find."""
    member = uses.group[rows]
    if (numbering.pools != 1).any():
        member = numbering.first_of_group(member)
    order, new_member = runs_of((member,), (uses.start_s[rows],))
    rows = np.arange(len(uses))[rows][order]
    member, setting, start, end = member[order], uses.setting[rows], uses.start_s[rows], uses.end_s[rows]
    first_of_block = new_member.copy()
    first_of_block[1:] |= setting[1:] != setting[:-1]
    first, block = np.flatnonzero(first_of_block), np.cumsum(first_of_block) - 1
    latest = np.maximum.reduceat(end, first) if len(first) else end
    # where devices are warm, the first use decides what stands at the start
    initial = setting[np.flatnonzero(new_member)][np.cumsum(new_member) - 1] if warm else None
    of_first = None if initial is None else initial[first]
    found_blocks = _search(member[first], start[first], latest, setting[first], changes, of_first)
    for column, of_block in zip(found, found_blocks, strict=True):
        column[rows] = of_block[block]
    broken = np.flatnonzero((found_blocks.missing_s > 0)[block])
    if len(broken):  # a change between two uses of one setting is lawful
        initial = None if initial is None else initial[broken]
        alone = _search(member[broken], start[broken], end[broken], setting[broken], changes, initial)
        for column, of_use in zip(found, alone, strict=True):
            column[rows[broken]] = of_use


def _search(
    member: IntArray,
    start: FloatArray,
    end: FloatArray,
    setting: IntArray,
    changes: Changes,
    initial: IntArray | None,
) -> DeviceFinding:
    """The last change of each member that is done when its light comes; rows sorted by (member, start).

    Args:
        member, start, end, setting: of each use.
        changes: sorted.
        initial: setting of the member of each use before its first change, or None: it has none.
    """
    num_changes, n = len(changes.member), len(member)
    done = changes.done_s - slack(changes.done_s)
    if np.array_equal(changes.member, member) and (done <= start).all():
        last = np.arange(n)  # one change for each use, in order
        following = np.append(changes.begin_s[1:], np.inf)
        following[:-1][member[1:] != member[:-1]] = np.inf
        if n and (changes.setting == setting).all() and (following >= end - slack(end)).all():
            return DeviceFinding(last, following, np.zeros(n), np.zeros(n, bool))
    rank = np.empty(num_changes + n, np.int64)
    rank[np.argsort(np.concatenate([done, start]), kind="stable")] = np.arange(num_changes + n)
    width = np.int64(num_changes + n)
    keys = changes.member * width + rank[:num_changes]
    keys = np.maximum.accumulate(keys)  # a change that ends before the one before it counts as ending with it
    place = np.searchsorted(keys, member * width + rank[num_changes:], side="right")
    last = place - 1
    padded_member = np.append(changes.member, -1)
    has = (last >= 0) & (padded_member[last] == member)
    follows = padded_member[place] == member
    next_begin = np.where(follows, np.append(changes.begin_s, np.inf)[place], np.inf)
    next_done = np.where(follows, np.append(changes.done_s, np.inf)[place], np.inf)
    next_right = follows & (np.append(changes.setting, 0)[place] == setting)
    right = has & (np.append(changes.setting, 0)[last] == setting)
    unset = ~has
    if initial is not None:
        right |= unset & (setting == initial)
        unset[:] = False
    missing = np.where(right, 0.0, np.where(next_right, next_done - start, np.maximum(end - start, 0.0)))
    missing = np.where(~right & (missing <= 0), slack(end) * 2, missing)
    interrupted = end - next_begin
    missing = np.maximum(missing, np.where(interrupted > slack(end), interrupted, 0.0))
    return DeviceFinding(np.where(has, last, -1), next_begin, missing, unset)


def _of_pools(
    uses: Uses,
    rows: IntArray,
    changes: Changes,
    numbering: Numbering,
    warm: bool,
    ready_s: FloatArray | None,
    found: DeviceFinding,
) -> None:
    """Groups with several members: each use takes a free member with its setting, of several the one that changes next."""
    keys = (-uses.end_s[rows], ~uses.idle[rows], uses.start_s[rows], uses.group[rows])
    order = np.lexsort(keys)  # of equal starts what stands idle first, then the longest
    rows = rows[order]
    group = uses.group[rows]
    first_member = numbering.first_of_group(group)
    pool = numbering.pools[numbering.kind_of_group(group)]
    changes_at = np.searchsorted(changes.member, first_member)
    changes_end = np.searchsorted(changes.member, first_member + pool)
    change, next_begin, missing, unset = _assign_members(
        group, uses.round[rows], uses.start_s[rows], uses.end_s[rows], uses.setting[rows], pool, changes_at, changes_end,
        changes.member, changes.begin_s, changes.done_s, changes.setting, warm,
        np.zeros(0) if ready_s is None else ready_s[rows],
    )  # fmt: skip
    for column, value in zip(found, (change, next_begin, missing, unset), strict=True):
        column[rows] = value


@njit
def _assign_members(  # type: ignore[no-untyped-def]
    group, number, start, end, setting, pool, changes_at, changes_end, member, begin, done, value, warm, ready
):
    """Members for uses that are sorted by (group, start); see `DeviceFinding` for what is returned.

    Of the free members with the setting, a use takes the one whose next change comes first, of equal ones the one that was set
    last. A member without changes stands from the start where `warm`, with the setting of its first use. With times at which
    data is ready, members that were changed since and not used come first, and those that were changed before and not used
    last.
    """
    by_data = len(ready) > 0
    n = len(group)
    change, next_begin = np.full(n, -1, np.int64), np.full(n, np.inf)
    missing, unset = np.zeros(n), np.zeros(n, np.bool_)
    use = 0
    while use < n:
        stop = use
        while stop < n and group[stop] == group[use]:
            stop += 1
        used, fresh = 0, (stop - use if warm else 0)
        for k in range(changes_at[use], changes_end[use]):
            used += k == changes_at[use] or member[k] != member[k - 1]
        size = min(pool[use], used + fresh)  # of members without changes, one for each use suffices
        free_at, begun = np.full((2, size), -np.inf)  # end and start of the last use
        taken_in = np.full(
            size, -1, np.int64
        )  # its round: circuits of one round that start together take different members
        used_by = np.full(size, -1, np.int64)  # last change that a use has taken, or -1
        current = np.full(size, -1, np.int64)  # last change that is done, or -1
        upcoming = np.full(size, -1, np.int64)  # next change, or -1
        initial = np.full(size, -1, np.int64)  # setting of a warm member before its first change
        which = -1
        for k in range(changes_at[use], changes_end[use]):
            if k == changes_at[use] or member[k] != member[k - 1]:
                which += 1
                upcoming[which] = k
        for i in range(use, stop):
            best, best_until, best_since, wait = -1, np.inf, -np.inf, np.inf
            best_turn = 3
            known = False
            for m in range(size):
                while upcoming[m] >= 0 and done[upcoming[m]] <= start[i] + 1e-9 * abs(start[i]) + 1e-15:
                    current[m] = upcoming[m]
                    k = upcoming[m] + 1
                    upcoming[m] = k if k < changes_end[use] and member[k] == member[current[m]] else -1
                until = begin[upcoming[m]] if upcoming[m] >= 0 else np.inf
                if upcoming[m] >= 0 and value[upcoming[m]] == setting[i]:
                    wait = min(wait, done[upcoming[m]] - start[i])
                if current[m] >= 0:
                    known = True
                    stands = value[current[m]] == setting[i]
                else:
                    stands = warm and (initial[m] == setting[i] or initial[m] == -1)
                if not stands:
                    continue
                if free_at[m] > start[i] + 1e-9 * abs(start[i]) + 1e-15 or (
                    taken_in[m] == number[i] and begun[m] == start[i]
                ):
                    wait = min(wait, max(free_at[m] - start[i], 2e-15))
                elif until < end[i] - 1e-9 * abs(end[i]) - 1e-15:
                    wait = min(wait, end[i] - until)
                else:
                    since = done[current[m]] if current[m] >= 0 else -np.inf
                    newer = since > best_since or (since == best_since and initial[m] == setting[i])
                    turn = 1
                    if by_data and used_by[m] != current[m]:
                        turn = 0 if begin[current[m]] >= ready[i] - 1e-9 * abs(ready[i]) - 1e-15 else 2
                    sooner = until < best_until or (until == best_until and newer)
                    if turn == 0:
                        sooner = newer
                    if turn < best_turn or (turn == best_turn and sooner):
                        best, best_until, best_since, best_turn = m, until, since, turn
            if best < 0:
                unset[i] = not known and not warm
                missing[i] = wait if wait < np.inf else max(end[i] - start[i], 2e-15)
                continue
            if current[best] < 0:
                initial[best] = setting[i]
            change[i], next_begin[i], free_at[best] = current[best], best_until, max(free_at[best], end[i])
            taken_in[best], begun[best], used_by[best] = number[i], start[i], current[best]
        use = stop
    return change, next_begin, missing, unset
