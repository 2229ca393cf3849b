"""Transfers of a phase that carry one chunk, without a list of the others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opticcl.ir._common import IntArray
from opticcl.ir._phase_lists import groups_of_equal
from opticcl.ir.phase_rows import MessagePart, Phase, PhaseRows, Space

__all__ = ["events_of_phase"]


def events_of_phase(
    space: Space, one: MessagePart, phase: Phase, number: int, unit: int, label: IntArray, folded: Sequence[bool] | None
) -> tuple[IntArray, ...] | None:
    """Transfers of a phase that carry a chunk: step of the phase, places of sender and receiver, operation, contributions.

    The image under the translation g of a row with the box lo, lo + step, ... carries the label c in step k from
    g = c - lo - k shift - t step, t = 0, 1, ... below count, in each moved digit that labels have; under every g in those that
    they lack.

    Args:
        space: digits of the places.
        one: part of the chunk.
        phase: with rows.
        number: of the part.
        unit: of the chunk.
        label: digits of the chunk, int (digits,).
        folded: digits in which all ranks count as one; None: none.
    Returns: columns in the order of the steps; None where there are no rows.
    """
    rows = phase.rows
    assert isinstance(rows, PhaseRows), "events of a function of the step"
    num_digits = len(space.radices)
    moves = phase.moves or (False,) * num_digits
    carries = (rows.part == number) & rows.apart
    still = rows.unit_shift == 0
    place = unit - rows.unit_lo
    within = (place >= 0) & (place % rows.unit_step == 0) & (place // rows.unit_step < rows.unit_count)
    moment = place // np.where(still, 1, rows.unit_shift)
    comes = (moment >= 0) & (moment < phase.count) & (moment * rows.unit_shift == place)
    carries &= np.where(still, within, comes)
    for d in one.digits:
        if not moves[d]:
            ahead = (label[d] - rows.lo[:, d]) % space.radices[d]
            carries &= (ahead % rows.step[:, d] == 0) & (ahead // rows.step[:, d] < rows.count[:, d])
    chosen = np.flatnonzero(carries)
    if not len(chosen):
        return None
    mine = rows.take(chosen)
    moving = [d for d in range(num_digits) if moves[d]]
    inside = [d for d in moving if d in one.digits]
    kinds = np.column_stack([mine.count[:, inside], mine.step[:, inside], mine.unit_shift != 0])
    columns_of = []
    for some in groups_of_equal(kinds):
        some_rows = mine.take(some)
        at_once = some_rows.unit_shift[0] != 0
        steps = (
            ((unit - some_rows.unit_lo) // some_rows.unit_shift)[:, None]
            if at_once
            else np.arange(phase.count, dtype=np.int64)[None, :]
        )
        src = dst = np.zeros((1, 1, 1), np.int64)
        for d, (radix, stride) in enumerate(zip(space.radices, space.strides, strict=True)):
            counts = 0 if folded is not None and folded[d] else stride
            if not moves[d]:
                src = src + some_rows.src[:, d, None, None] * counts
                dst = dst + some_rows.dst[:, d, None, None] * counts
                continue
            if d in inside:
                nth = np.arange(int(some_rows.count[0, d])) * int(some_rows.step[0, d])
                shift = some_rows.shift[:, d, None]
                moved = label[d] - some_rows.lo[:, d, None] - (steps * shift if shift.any() else 0)
                moved = (moved[:, :, None] - nth) % radix
            else:
                moved = np.arange(1 if folded is not None and folded[d] else radix)[None, None, :]
            src = _with_digit(src, moved * counts)
            dst = _with_digit(dst, (moved + some_rows.dst[:, d, None, None]) % radix * counts)
        shape = len(some), steps.shape[1], max(src.shape[2], dst.shape[2])
        held = some_rows.parts[:, None] + steps * some_rows.parts_step[:, None]
        columns = (steps[:, :, None], src, dst, some_rows.op[:, None, None], held[:, :, None])
        columns_of.append([np.broadcast_to(column, shape).transpose(1, 0, 2).ravel() for column in columns])
    joined = (
        [np.concatenate(column) for column in zip(*columns_of, strict=True)] if len(columns_of) > 1 else columns_of[0]
    )
    if phase.count > 1 and (np.diff(joined[0]) < 0).any():
        order = np.argsort(joined[0], kind="stable")
        joined = [column[order] for column in joined]
    return tuple(joined)


def _with_digit(places: IntArray, values: IntArray) -> IntArray:
    """Every place with every value of one more digit, (rows, steps, places x values).

    Args:
        places: so far, (rows or 1, steps or 1, places).
        values: of the digit, times its stride, (rows or 1, steps or 1, values).
    """
    both = places[:, :, :, None] + values[:, :, None, :]
    return both.reshape(*both.shape[:2], -1)
