"""Settings of devices over time: every use finds its setting, complete, and keeps it.

Uses and changes are columns. A device is the one member of a pool, or one of several that replace each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from opticcl.ir import Circuits, Fabric, IntArray
from opticcl.ir.device import Device
from opticcl.ir.programme import DeviceTable
from opticcl.kernels import njit
from opticcl.verify.sweep import runs_of, slack
from opticcl.verify.time._rows import TimeRows

__all__ = [
    "BEFORE_S",
    "Changes",
    "DeviceFinding",
    "Numbering",
    "Uses",
    "changes_of",
    "collect_uses",
    "find_settings",
    "set_from_s",
    "short_changes",
]

FloatArray = npt.NDArray[Any]  # float64
BoolArray = npt.NDArray[np.bool_]

BEFORE_S = -1.0
"""When a setting that stands from the start was made [s]."""


@dataclass(frozen=True, slots=True)
class Uses:
    """Uses of devices by circuits, as columns of equal length.

    Args:
        group: number of the group of members over all kinds, int64 (n,).
        start_s, end_s: light passes, float64 (n,) [s].
        setting: int64 (n,).
        circuit: among all unrolled ones, int64 (n,).
    """

    group: IntArray
    start_s: FloatArray
    end_s: FloatArray
    setting: IntArray
    circuit: IntArray

    def __len__(self) -> int:
        return len(self.group)


@dataclass(frozen=True, slots=True)
class Changes:
    """Changes of members, sorted by (member, begin).

    Args:
        member: number of the member over all kinds, int64 (n,).
        begin_s, done_s: float64 (n,) [s]; `BEFORE_S` where the setting stands from the start.
        setting: int64 (n,).
        kind: position in the fabric's devices, int64 (n,).
    """

    member: IntArray
    begin_s: FloatArray
    done_s: FloatArray
    setting: IntArray
    kind: IntArray

    def take(self, rows: Any) -> Changes:
        """The given rows (indices or mask)."""
        return Changes(*(getattr(self, f.name)[rows] for f in fields(self)))


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
    unset: BoolArray


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
    parts: list[list[IntArray | FloatArray]] = []
    first = 0
    for stored in rows.steps:
        turns = np.array(rows.turns(stored), np.int64)
        circuits = sum(len(one.circuits) for one in stored.rounds)
        first_of_turn = first + circuits * np.arange(len(turns))[:, None]
        first += circuits * len(turns)
        later_s = turns[:, None] * stored.period_s
        for one in stored.rounds:
            for group, row, setting, offset_s in _uses_of(fabric, one.circuits, numbering):
                start = np.where(one.carries[row], one.start_s[row] + offset_s, one.start_s[row])
                end = np.where(one.carries[row], one.left_s[row] + offset_s, start)
                columns = (group, start + later_s, end + later_s, setting, first_of_turn + row)
                parts.append([np.broadcast_to(column, (len(turns), len(row))).ravel() for column in columns])
            first_of_turn = first_of_turn + len(one.circuits)
    if not parts:
        return Uses(*(np.zeros(0, kind) for kind in (np.int64, np.float64, np.float64, np.int64, np.int64)))
    return Uses(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _uses_of(
    fabric: Fabric, circuits: Circuits, numbering: Numbering
) -> Iterator[tuple[IntArray, IntArray, IntArray, FloatArray]]:
    """Group, circuit, setting and offset of the uses of a round, a kind at a time."""
    for use in fabric.settings(circuits):
        index = np.asarray(use.index, np.int64)
        row = np.arange(len(circuits)) if use.circuit is None else np.asarray(use.circuit, np.int64)
        group = numbering.first_group[numbering.kind_of[use.kind]] + index
        yield group, row, np.asarray(use.setting, np.int64), np.broadcast_to(use.offset_s, row.shape).astype(np.float64)


def changes_of(table: DeviceTable, standing: DeviceTable, numbering: Numbering) -> Changes:
    """Changes of devices, sorted.

    Args:
        table: of the changes.
        standing: settings that stand from the start, whose times are ignored.
        numbering: of the members.
    """
    before = np.full(len(standing), BEFORE_S)
    tables = (replace(standing, begin_s=before, done_s=before), table)
    every = DeviceTable.joined([tuple(getattr(one, name) for name in one.KINDS) for one in tables])
    member = numbering.first_member[every.kind] + every.device
    order = np.lexsort((every.done_s, every.begin_s, member))
    columns = (member, every.begin_s, every.done_s, every.setting, every.kind)
    return Changes(*(column[order] for column in columns))


def short_changes(changes: Changes, setting_time_s: FloatArray) -> tuple[BoolArray, FloatArray]:
    """Whether each change is the first of its member, and the time by which it is too short, or begins before the last is done.

    Args:
        changes: sorted.
        setting_time_s: of each kind, float64 (kinds,) [s].
    Returns: bool (n,); float64 (n,) [s], 0 where the change is right.
    """
    made = changes.begin_s > BEFORE_S
    first = np.ones(len(made), bool)
    first[1:] = (changes.member[1:] != changes.member[:-1]) | ~made[:-1]
    short = np.where(made, setting_time_s[changes.kind] - (changes.done_s - changes.begin_s), 0.0)
    short = np.where(short > slack(changes.done_s), short, 0.0)
    early = np.zeros(len(short))
    early[1:] = np.where(first[1:], 0.0, changes.done_s[:-1] - changes.begin_s[1:])
    return first, np.maximum(short, np.where(early > slack(changes.begin_s), early, 0.0))


def find_settings(
    uses: Uses,
    changes: Changes,
    numbering: Numbering,
    rows: TimeRows,
    warm: BoolArray,
    ready_s: FloatArray | None = None,
) -> DeviceFinding:
    """Find the change that gave each use its setting.

    Args:
        uses: of groups.
        changes: of members, sorted.
        numbering: of both.
        rows: with the circuits of the uses.
        warm: of each kind, whether the first setting of every member stands from the start, bool (kinds,).
        ready_s: when the data of each unrolled circuit is ready: of a pool a use takes a member that was changed since then
            and not used yet, if there is one, and no other that was changed but not used if it can; None: it takes any,
            float64 (circuits,) [s].
    """
    carries = rows.carries[uses.circuit]
    # of equal starts what stands idle, then the longest
    order = np.lexsort((-uses.end_s, carries, uses.start_s, uses.group))
    group, circuit = uses.group[order], uses.circuit[order]
    kind = numbering.kind_of_group(group)
    pool = numbering.pools[kind]
    first_member = numbering.first_member[kind] + (group - numbering.first_group[kind]) * pool
    columns = _assign_members(
        group, rows.round_of[circuit], uses.start_s[order], uses.end_s[order], uses.setting[order], pool, warm[kind],
        np.searchsorted(changes.member, first_member), np.searchsorted(changes.member, first_member + pool),
        changes.member, changes.begin_s, changes.done_s, changes.setting,
        np.zeros(0) if ready_s is None else ready_s[circuit],
    )  # fmt: skip
    finding = DeviceFinding(*(np.empty_like(column) for column in columns))
    for column, of_sorted in zip(finding, columns, strict=True):
        column[order] = of_sorted
    return finding


def set_from_s(uses: Uses, finding: DeviceFinding, changes: Changes, round_of: IntArray) -> FloatArray:
    """Start of the change that was made for each use, float64 (uses,) [s]; inf where the setting was used or stood before.

    The change is made for the circuit that uses it first, and for those of the same round that start with that one.

    Args:
        uses: of devices.
        finding: the setting that each of them has.
        changes: sorted.
        round_of: number of the round of each unrolled circuit.
    """
    made = np.full(len(uses), np.inf)
    changed = np.flatnonzero(finding.change >= 0)
    changed = changed[changes.begin_s[finding.change[changed]] > BEFORE_S]
    by_change, new = runs_of((finding.change[changed],), (uses.start_s[changed],))
    order = changed[by_change]
    first = order[np.flatnonzero(new)[np.cumsum(new) - 1]]
    start, number = uses.start_s[order], round_of[uses.circuit[order]]
    own = (number == round_of[uses.circuit[first]]) & (start - uses.start_s[first] <= slack(start))
    made[order[own]] = changes.begin_s[finding.change[order[own]]]
    return made


@njit
def _assign_members(  # type: ignore[no-untyped-def]
    group, number, start, end, setting, pool, warm, changes_at, changes_end, member, begin, done, value, ready
):
    """Members for uses that are sorted by (group, start); see `DeviceFinding` for what is returned.

    A device without a pool is passed by all light that needs its setting; a member of a pool by that of one use at a time. Of
    the free members with the setting, a use takes the one whose next change comes first, of equal ones the one that was set
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
        used, fresh, together = 0, (stop - use if warm[use] else 0), pool[use] == 1
        for k in range(changes_at[use], changes_end[use]):
            used += k == changes_at[use] or member[k] != member[k - 1]
        size = min(pool[use], used + fresh)  # of members without changes, one for each use suffices
        free_at, begun = np.full((2, size), -np.inf)  # end and start of the last use
        # its round: circuits of one round that start together take different members
        taken_in = np.full(size, -1, np.int64)
        used_by = np.full(size, -1, np.int64)  # last change that a use has taken, or -1
        current = np.full(size, -1, np.int64)  # last change that is done, or -1
        upcoming = np.full(size, -1, np.int64)  # next change, or -1
        initial = np.full(size, setting[use] if together else -1)  # setting of a warm member before its first change
        which = -1
        for k in range(changes_at[use], changes_end[use]):
            if k == changes_at[use] or member[k] != member[k - 1]:
                which += 1
                upcoming[which] = k
        for i in range(use, stop):
            best, best_until, best_since, wait = -1, np.inf, -np.inf, np.inf
            best_turn = 3
            known, until = False, np.inf
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
                    stands = warm[use] and (initial[m] == setting[i] or initial[m] == -1)
                if not stands:
                    continue
                busy = free_at[m] > start[i] + 1e-9 * abs(start[i]) + 1e-15
                if not together and (busy or (taken_in[m] == number[i] and begun[m] == start[i])):
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
                unset[i] = not known and not warm[use]
                missing[i] = wait if wait < np.inf else max(end[i] - start[i], 2e-9 * abs(end[i]) + 2e-15)
                if together and size > 0:
                    change[i], next_begin[i], missing[i] = current[0], until, max(missing[i], end[i] - until)
                continue
            if current[best] < 0:
                initial[best] = setting[i]
            change[i], next_begin[i], free_at[best] = current[best], best_until, max(free_at[best], end[i])
            taken_in[best], begun[best], used_by[best] = number[i], start[i], current[best]
        use = stop
    return change, next_begin, missing, unset
