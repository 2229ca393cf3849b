"""Lists of the transfers of a phase: the order in which images stand, and boxes of labels as ranges of numbers of chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from opticcl.ir._common import IntArray
from opticcl.ir.phase_rows import UNIT, MessagePart, PhaseRows, Space

__all__ = ["by_bundle", "groups_of_equal", "in_order", "kept_bundles", "ranges_of_boxes"]


def groups_of_equal(kinds: IntArray) -> list[IntArray]:
    """Numbers of rows that are equal, group by group, int64 (of a group,) each.

    Args: kinds: int (rows, columns), of one row at least.
    """
    if (kinds == kinds[0]).all():
        return [np.arange(len(kinds))]
    _, group = np.unique(kinds, axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    return np.split(order, np.flatnonzero(np.diff(group.ravel()[order])) + 1)


def kept_bundles(bundles: tuple[int, ...], rows: IntArray) -> tuple[int, ...]:
    """First row of each bundle among some rows, without bundles that have none of them."""
    of_bundle = np.searchsorted(bundles, rows, side="right")
    return (0, *(int(at) for at in np.flatnonzero(np.diff(of_bundle)) + 1))


def by_bundle(column: IntArray, width: int) -> IntArray:
    """Images (n, rows) in the order of the list: bundles of that many rows, in a bundle the images, of an image the rows."""
    if width == column.shape[1]:
        return column.ravel()
    n = len(column)
    return column.reshape(n, -1, width).transpose(1, 0, 2).ravel()


def in_order(
    columns: list[tuple[IntArray, int, tuple[IntArray, ...]]], bundles: Sequence[slice], num_rows: int
) -> list[IntArray]:
    """Images of rows in the order of the list, where boxes are of several kinds or bundles of several widths; ranges that go on
    from the first value of a digit stand behind all others.

    Args:
        columns: row numbers and columns, as of `Steps._columns`.
        bundles: rows of each bundle.
        num_rows: of the phase [count].
    """
    bundle = np.zeros(num_rows, np.int64)
    for number, rows in enumerate(bundles):
        bundle[rows] = number
    keys, flat = [], []
    for of_kind, number, some in columns:
        shape = np.broadcast_shapes(*(column.shape for column in some))
        image = np.arange(shape[0])[:, None]
        sort = (np.asarray(number), bundle[of_kind], image, of_kind)
        keys.append([np.broadcast_to(key, shape).ravel() for key in sort])
        flat.append([np.broadcast_to(column, shape).ravel() for column in some])
    joined = [np.concatenate(column) for column in zip(*flat, strict=True)]
    around, of_bundle, image, row = (np.concatenate(key) for key in zip(*keys, strict=True))
    order = np.lexsort((row, image, of_bundle, around))
    return [column[order] for column in joined]


def ranges_of_boxes(
    space: Space, one: MessagePart, moves: tuple[bool, ...], rows: PhaseRows, elements: IntArray, k: int
) -> Iterator[tuple[IntArray, int, IntArray, IntArray, IntArray]]:
    """Chunks of the images of rows of a part, as ranges of numbers at equal distances.

    Args:
        space: digits of the places.
        one: the part.
        moves: digits that translations move.
        rows: of the part.
        elements: translations, int (n, digits).
        k: step of the phase.
    Yields: rows (some,), which of the ranges of a box it is, first chunk (n, some), number of chunks and their distance, which
        broadcast to that.
    """
    inside = list(one.digits)
    alone = (rows.count[:, inside] == 1).all(axis=1)  # one value of every digit: units are all that there is to list
    many = np.flatnonzero(~alone)
    if len(many) < len(rows):
        some = np.flatnonzero(alone)
        mine = rows if not len(many) else rows.take(some)
        weight = next((w for (digit, _, _), w in zip(one.fields, one.weights, strict=True) if digit == UNIT), 1)
        for lo, n, _ in _ranges_of_kind(space, one, moves, _one_unit(mine), elements, k):
            there = mine.unit_count if np.ndim(n) == 0 else np.where(n > 0, mine.unit_count, 0)
            yield (
                some,
                0,
                lo,
                there,
                mine.unit_step * weight if weight > 1 or (mine.unit_step > 1).any() else np.asarray(1),
            )
    if not len(many):
        return
    if len(many) < len(rows):
        for some, nth, lo, n, distance in ranges_of_boxes(space, one, moves, rows.take(many), elements, k):
            yield many[some], nth, lo, n, distance
        return
    kinds = np.column_stack([rows.count[:, inside], rows.step[:, inside], rows.unit_count, rows.unit_step])
    for some in groups_of_equal(kinds):
        mine = rows if len(some) == len(rows) else rows.take(some)
        for nth, (lo, n, apart) in enumerate(_ranges_of_kind(space, one, moves, mine, elements, k)):
            yield some, nth, lo, n, np.asarray(apart)


def _one_unit(rows: PhaseRows) -> PhaseRows:
    """Rows with the first of their units alone."""
    return replace(rows, unit_count=np.ones(len(rows), np.int64), unit_step=np.ones(len(rows), np.int64))


def _ranges_of_kind(
    space: Space, one: MessagePart, moves: tuple[bool, ...], rows: PhaseRows, elements: IntArray, k: int
) -> Iterator[tuple[IntArray, IntArray, int]]:
    """As `ranges_of_boxes`, of rows whose boxes are equally large: first chunk, number of chunks and their distance.

    Args: space, one, moves, rows, elements, k: as of `ranges_of_boxes`.
    """
    first = np.zeros((1, 1), np.int64)
    missing: npt.NDArray[np.bool_] | None = None
    progressions: list[
        tuple[int, int]
    ] = []  # of chunks with the same values of the other fields: how many, how far apart
    run: tuple[IntArray, int, int, int] | None = None
    for (digit, stride, radix), weight in zip(one.fields, one.weights, strict=True):
        if digit == UNIT:
            unit = rows.unit_lo + k * rows.unit_shift
            first = first + unit * weight
            progressions.append((int(rows.unit_count[0]), int(rows.unit_step[0]) * weight))
            if rows.unit_shift.any():
                missing = (unit < 0) | (unit >= one.units)
            continue
        whole, n, step = space.radices[digit], int(rows.count[0, digit]), int(rows.step[0, digit])
        lo = rows.lo[:, digit] + k * rows.shift[:, digit]
        if (lo == lo[0]).all():
            lo = lo[:1]
        value = (elements[:, digit, None] + lo if moves and moves[digit] else lo[None, :]) % whole
        if n > 1 and n * step != whole:
            first, run = first + value * weight, (value, n, whole, weight)
            continue
        per = 1 if n > 1 and stride >= step else min(radix, step // stride) if n > 1 else radix
        first = first + value // stride % per * weight
        progressions.append((radix // per, per * weight))
    merged: list[tuple[int, int]] = []
    for n, distance in sorted((one for one in progressions if one[0] > 1), key=lambda one: one[1]):
        if merged and merged[-1][0] * merged[-1][1] == distance:
            merged[-1] = merged[-1][0] * n, merged[-1][1]
        else:
            merged.append((n, distance))
    if run is None:
        many, distance = merged.pop(0) if merged else (1, 1)
        sizes: list[tuple[IntArray, IntArray]] = [(first, np.asarray(many))]
    else:
        value, length, whole, weight = run
        inner = merged.pop(0)[0] if merged and merged[0] == (weight, 1) else 1
        distance = 1 if inner == weight else weight
        before = np.minimum(length, whole - value)  # those that do not wrap around
        sizes = [(first, before * inner)]
        if (before < length).any():
            sizes.append((first - value * weight, (length - before) * inner))
    for many, apart in merged:
        sizes = [(lo + at * apart, n) for at in range(many) for lo, n in sizes]
    for lo, many_chunks in sizes:
        yield lo, many_chunks if missing is None else np.where(missing, 0, many_chunks), distance
