"""Control over time: circuits are agreed on after their data is ready and before their devices are set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.ir import Fabric, IntArray
from opticcl.verify.sweep import slack
from opticcl.verify.time._rows import Round, TimeRows

__all__ = ["control_late"]

FloatArray = npt.NDArray[Any]  # float64


def control_late(
    rows: TimeRows,
    fabric: Fabric,
    ready_s: FloatArray,
    set_from_s: FloatArray,
    *,
    on_change: bool,
    before_setting: bool,
) -> Iterator[tuple[Round, IntArray, FloatArray]]:
    """Circuits that start, or whose devices change, before their control exchange can be over.

    Args:
        rows: of the programme.
        fabric: with a control plane.
        ready_s: when the data of each unrolled circuit is ready; -inf for idle ones, float64 (circuits,) [s].
        set_from_s: start of the first change that was made for each, inf where it stands, float64 (circuits,) [s].
        on_change: whether only circuits that do not stand need the exchange.
        before_setting: whether their devices change after it.
    Returns: unrolled round, its circuits and missing times [s].
    """
    control = rows.programme.control
    places = zip(control.step.tolist(), control.round.tolist(), strict=True)
    row_of = {place: row for row, place in enumerate(places)}
    for one in rows.rounds:
        start_s, set_s = rows.start_s[one.circuits], set_from_s[one.circuits]
        ends = one.stored.circuits.src, one.stored.circuits.dst
        needed_s = fabric.control_s(*map(fabric.ranks_at, ends)) if len(start_s) else 0.0
        if not needed_s:
            continue
        # the earliest end of an exchange after the data is ready
        agreed_s = needed_s + np.maximum(ready_s[one.circuits], 0.0)
        missing = agreed_s - start_s
        row = row_of.get((one.step.step, one.stored.number))
        if row is None:
            missing = np.maximum(missing, needed_s)
        else:
            begin_s, end_s = control.begin_s[row], control.end_s[row]
            missing = np.maximum(missing, needed_s - (end_s - begin_s))
            missing = np.maximum(missing, begin_s + one.later_s + needed_s - start_s)
        if before_setting:
            missing = np.maximum(missing, agreed_s - set_s)
        asked = np.isfinite(set_s) | (not on_change)
        bad = np.flatnonzero(asked & (missing > slack(start_s)))
        yield one, bad, missing[bad]
