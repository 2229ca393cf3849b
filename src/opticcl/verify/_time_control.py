"""Control over time: circuits are agreed on after their data is ready and before their devices are set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.ir import Fabric, IntArray, Transfers
from opticcl.ir.programme import ControlTimes
from opticcl.verify._time_data import DataTiming
from opticcl.verify._time_devices import Changes, DeviceFinding, Uses
from opticcl.verify._time_rows import Copy, StoredRound
from opticcl.verify.sweep import runs_of, slack

__all__ = ["control_late", "rows_by_round", "set_from_s"]

FloatArray = npt.NDArray[Any]  # float64


def rows_by_round(uses: Uses, num_rounds: int) -> Iterator[tuple[int, IntArray]]:
    """Number and uses of every unrolled round that has uses."""
    order = np.argsort(uses.round, kind="stable")
    bounds = np.searchsorted(uses.round[order], np.arange(num_rounds + 1))
    for number in np.flatnonzero(np.diff(bounds)):
        yield int(number), order[bounds[number] : bounds[number + 1]]


def set_from_s(uses: Uses, found: DeviceFinding, changes: Changes) -> FloatArray:
    """Start of the change that was made for each use, float64 (uses,) [s]; inf where the setting was used or stood before.

    The change is made for the circuit that uses it first, and for those of the same round that start with that one.

    Args:
        uses: of devices.
        found: the setting that each of them has.
        changes: sorted.
    """
    made = np.full(len(uses), np.inf)
    changed = np.flatnonzero(found.change >= 0)
    if not len(changed):
        return made
    by_change, new = runs_of((found.change[changed],), (uses.start_s[changed],))
    order = changed[by_change]
    change = found.change[order]
    first = np.flatnonzero(new)[np.cumsum(new) - 1]
    start = uses.start_s[order]
    own = (uses.round[order] == uses.round[order[first]]) & (start - start[first] <= slack(start))
    begin_s = changes.begin_s[change[own]]
    made[order[own]] = np.where(np.isfinite(begin_s), begin_s, np.inf)  # -inf: it stood from the start
    return made


def control_late(
    rounds: Sequence[tuple[Copy, StoredRound]],
    fabric: Fabric,
    control: ControlTimes,
    timing: DataTiming,
    uses: Uses,
    made_s: FloatArray,
    *,
    on_change: bool,
    before_setting: bool,
) -> Iterator[tuple[Copy, StoredRound, IntArray, FloatArray]]:
    """Circuits that start, or whose devices change, before their control exchange can be over.

    Args:
        rounds: unrolled rounds.
        fabric: with a control plane.
        control: exchanges of the programme.
        timing: when data is ready.
        uses: of devices.
        made_s: start of the change that was made for each use, as of `set_from_s` [s].
        on_change: whether only circuits that do not stand need the exchange.
        before_setting: whether their devices change after it.
    Returns: unrolled step, round, circuits and missing times [s].
    """
    row_of = {
        (int(step), int(number)): row
        for row, (step, number) in enumerate(zip(control.step, control.round, strict=True))
    }
    used = dict(rows_by_round(uses, len(rounds)))
    none = np.zeros(0, np.int64)
    for number, (copy, one) in enumerate(rounds):
        t, transfer = copy.stored.transfers, one.circuits.transfer
        rows = np.arange(len(transfer))
        needed_s = fabric.control_s(*_ranks(fabric, t, one)) if len(rows) else 0.0
        new = used.get(number, none)
        new = new[np.isfinite(made_s[new])]
        if on_change:
            rows = rows[np.isin(rows, uses.row[new])]
        if not needed_s or not len(rows):
            continue
        agreed = np.zeros(len(transfer))  # earliest end of an exchange after the data is ready
        carries = rows[transfer[rows] >= 0]
        agreed[rows] = needed_s
        agreed[carries] += np.maximum(timing.ready_s[copy.step][transfer[carries]], 0.0)
        start = one.start_s[rows] + copy.shift_s
        missing = agreed[rows] - start
        row = row_of.get((copy.stored.step, one.number))
        if row is None:
            missing = np.maximum(missing, needed_s)
        else:
            begin, end = control.begin_s[row], control.end_s[row]
            missing = np.maximum(missing, needed_s - (end - begin))
            missing = np.maximum(missing, begin + copy.shift_s + needed_s - start)
        if before_setting:
            late = np.full(len(transfer), -np.inf)
            np.maximum.at(late, uses.row[new], agreed[uses.row[new]] - made_s[new])
            missing = np.maximum(missing, late[rows])
        bad = missing > slack(start)
        yield copy, one, rows[bad], missing[bad]


def _ranks(fabric: Fabric, transfers: Transfers, one: StoredRound) -> tuple[IntArray, IntArray]:
    """Sending and receiving rank of every circuit of a round; an idle one has those at its ends."""
    transfer = one.circuits.transfer
    if one.carries.all():
        return transfers.src[transfer], transfers.dst[transfer]
    return fabric.ranks_at(one.circuits.src), fabric.ranks_at(one.circuits.dst)
