"""Lists of the transfers of a phase: the order in which images stand, and boxes of labels as ranges of numbers of chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from opticcl.ir._common import IntArray
from opticcl.ir.phase_rows import UNIT, MessagePart, PhaseRows, Space

__all__ = ["Counted", "chunks_of_rows", "groups_of_equal", "in_order", "kept_bundles", "of_digits", "ranges_of_boxes"]


def groups_of_equal(kinds: IntArray) -> list[IntArray]:
    """Numbers of rows that are equal, group by group, int64 (of a group,) each.

    Args: kinds: int (rows, columns), of one row at least.
    """
    if (kinds == kinds[0]).all():
        return [np.arange(len(kinds))]
    _, group = np.unique(kinds, axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    return np.split(order, np.flatnonzero(np.diff(group.ravel()[order])) + 1)


def kept_bundles(bundles: tuple[int, ...], rows: IntArray | slice) -> tuple[int, ...]:
    """First row of each bundle among some rows, without bundles that have none of them."""
    if len(bundles) == 1:
        return bundles
    rows = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
    of_bundle = np.searchsorted(bundles, rows, side="right")
    return (0, *(int(at) for at in np.flatnonzero(np.diff(of_bundle)) + 1))


@dataclass(frozen=True, slots=True)
class Counted:
    """What a digit of translations counts in the numbers of the images of rows.

    Args:
        of_value: of each value of the digit, or of each translation, for each row, int (values, rows) or (values, 1).
        value: of the digit in each translation, int (n,); None: `of_value` is of each translation.
    """

    of_value: IntArray
    value: IntArray | None

    @classmethod
    def of(cls, values: IntArray, radix: int, by: IntArray, count: Callable[[IntArray, IntArray], IntArray]) -> Counted:
        """Of a digit to which each row adds something: by a table, where it has fewer values than there are translations.

        Args:
            values: of the digit in each translation, int (n,).
            radix: of the digit.
            by: added for each row, int (rows,) or (1,).
            count: of values before and after, int (values, 1) and (values, rows).
        """
        table = 2 * radix <= len(values)
        before = np.arange(radix)[:, None] if table else values[:, None]
        by = by[:1] if len(by) and (by == by[0]).all() else by
        return cls(count(before, (before + by) % radix).astype(np.int32), values if table else None)

    def rows(self, rows: IntArray | slice) -> IntArray:
        """Of each translation, for some rows, int32 (n, rows)."""
        some = self.of_value[:, rows]
        return some if self.value is None else some[self.value]


def of_digits(base: IntArray, digits: Sequence[Counted], of_rows: IntArray) -> IntArray:
    """Numbers of images: what each translation counts, each digit of it for each row, and each row by itself.

    Args:
        base: of each translation, int32 (n,).
        digits: what they count.
        of_rows: of each row, int (rows,).
    Returns: int32 (n, rows), or (n, 1) where all rows are equal.
    """
    apart: list[Counted] = []
    for one in digits:
        if one.of_value.shape[1] == 1:
            base = base + one.rows(slice(None))[:, 0]
        else:
            apart.append(one)
    if not apart and (not len(of_rows) or (of_rows == of_rows[0]).all()):
        return (base + np.int32(of_rows[0] if len(of_rows) else 0))[:, None]
    numbers = base[:, None] + of_rows.astype(np.int32)
    for one in apart:
        rows = np.flatnonzero(one.of_value.any(axis=0))
        if 2 * len(rows) < len(of_rows):
            numbers[:, rows] += one.rows(rows)
        else:
            numbers += one.rows(slice(None))
    return numbers


def in_order(
    columns: list[tuple[IntArray, int, tuple[IntArray, ...]]], starts: Sequence[int], num_images: int
) -> list[IntArray]:
    """Images of rows in the order of the list; ranges that go on from the first value of a digit stand behind all others.

    Args:
        columns: row numbers, ascending, and columns, as of `Steps._columns`.
        starts: first row of each bundle.
        num_images: of each row [count].
    """
    blocks: list[list[IntArray]] = []

    def flat(column: IntArray, edges: Sequence[int], width: int) -> IntArray:
        if len(edges) == 2:
            return column.ravel()
        if width:
            return column.reshape(len(column), -1, width).swapaxes(0, 1).ravel()
        return np.concatenate([column[:, a:b].ravel() for a, b in pairwise(edges)])

    for nth in sorted({number for _, number, _ in columns}):
        some = [(rows, values) for rows, number, values in columns if number == nth]
        rows = some[0][0] if len(some) == 1 else np.sort(np.concatenate([mine for mine, _ in some]))
        shape = num_images, len(rows)
        edges = sorted({*np.searchsorted(rows, starts).tolist(), len(rows)})
        widths = {b - a for a, b in pairwise(edges)}
        width = widths.pop() if len(widths) == 1 else 0
        if len(some) == 1:
            whole = [np.broadcast_to(value, shape) for value in some[0][1]]
        else:
            whole = [np.empty(shape, np.int32) for _ in some[0][1]]
            for mine, values in some:
                place = np.searchsorted(rows, mine)
                for column, value in zip(whole, values, strict=True):
                    column[:, place] = value
        blocks.append([flat(column, edges, width) for column in whole])
    return blocks[0] if len(blocks) == 1 else [np.concatenate(column) for column in zip(*blocks, strict=True)]


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


def chunks_of_rows(space: Space, parts: Sequence[MessagePart], rows: PhaseRows) -> tuple[IntArray, IntArray]:
    """How many ranges the box of each row is, and its chunks, int64 (rows,) each [count]; no digit that moves is cut.

    Args:
        space: digits of the places.
        parts: of the message.
        rows: of phases.
    """
    ranges, chunks = np.ones((2, len(rows)), np.int64)
    for one in dict.fromkeys(parts):  # parts of one kind together
        kind = np.array([of == one for of in parts])
        of_part = np.flatnonzero(kind[rows.part])
        mine = rows if len(of_part) == len(rows) else rows.take(of_part)
        # chunks with the same values of the other fields stand at equal distances; those that begin where others end
        # are one range with these
        total, first, run, inner, begin, end = np.array(
            [[1], [1], [1], [1], [0], [0]]
        )  # of all rows, until some differ
        joins, wraps = np.ones(1, bool), np.zeros(1, bool)
        for (digit, stride, radix), weight in reversed(list(zip(one.fields, one.weights, strict=True))):
            if digit == UNIT:
                many, distance = mine.unit_count, mine.unit_step * weight
            else:
                count, apart, whole = mine.count[:, digit], mine.step[:, digit], space.radices[digit]
                if (count == 1).all():
                    continue
                cut = (count > 1) & (count * apart != whole)
                run, inner = np.where(cut, count, run), np.where(cut, weight, inner)
                wraps = wraps | cut & (mine.lo[:, digit] + count > whole)
                per = np.where(stride >= apart, 1, np.minimum(radix, apart // stride))
                per = np.where((count == 1) | cut, radix, per)
                many, distance = radix // per, per * weight
            some = many > 1
            if not some.any():
                continue
            begin = np.where(some & (end == 0), distance, begin)
            joins = joins & (~some | (end == 0) | (end == distance))
            total, first = total * many, first * np.where(joins, many, 1)
            end = np.where(some, many * distance, end)
        together = np.where((run == 1) | ((first == inner) & (begin == 1)), first, 1)
        ranges[of_part], chunks[of_part] = total // together * (1 + wraps), total * run
    return ranges, chunks


def _one_unit(rows: PhaseRows) -> PhaseRows:
    """Rows with the first of their units alone."""
    return replace(rows, unit_count=np.ones(len(rows), np.int64), unit_step=np.ones(len(rows), np.int64))


def _ranges_of_kind(
    space: Space, one: MessagePart, moves: tuple[bool, ...], rows: PhaseRows, elements: IntArray, k: int
) -> Iterator[tuple[IntArray, IntArray, int]]:
    """As `ranges_of_boxes`, of rows whose boxes are equally large: first chunk, number of chunks and their distance.

    Args: space, one, moves, rows, elements, k: as of `ranges_of_boxes`.
    """
    counted: list[Counted] = []  # in the number of the first chunk
    of_rows = np.zeros(len(rows), np.int64)
    missing: npt.NDArray[np.bool_] | None = None
    # of chunks with the same values of the other fields: how many, how far apart
    progressions: list[tuple[int, int]] = []
    run: tuple[int, int, IntArray, int] | None = (
        None  # of a digit, without all of its values: how many, where they begin
    )
    for (digit, stride, radix), weight in zip(one.fields, one.weights, strict=True):
        if digit == UNIT:
            unit = rows.unit_lo + k * rows.unit_shift
            of_rows = of_rows + unit * weight
            progressions.append((int(rows.unit_count[0]), int(rows.unit_step[0]) * weight))
            if rows.unit_shift.any():
                missing = (unit < 0) | (unit >= one.units)
            continue
        whole, n, step = space.radices[digit], int(rows.count[0, digit]), int(rows.step[0, digit])
        lo = rows.lo[:, digit] + k * rows.shift[:, digit]
        per = radix
        if n > 1 and n * step != whole:
            run = n, digit, lo, weight
        else:
            per = 1 if n > 1 and stride >= step else min(radix, step // stride) if n > 1 else radix
            progressions.append((radix // per, per * weight))
        if per == 1:
            continue

        part_of_it = (stride, per) if stride > 1 or per < whole else None

        def count(
            _: IntArray, value: IntArray, of_it: tuple[int, int] | None = part_of_it, weight: int = weight
        ) -> IntArray:
            return (value if of_it is None else value // of_it[0] % of_it[1]) * weight

        if moves and moves[digit]:
            counted.append(Counted.of(elements[:, digit], whole, lo, count))
        else:
            of_rows = of_rows + count(lo, lo % whole)
    first = of_digits(np.zeros(len(elements), np.int32), counted, of_rows)
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
        length, digit, lo, weight = run
        whole, values = (
            space.radices[digit],
            elements[:, digit, None] if moves and moves[digit] else np.zeros((1, 1), int),
        )
        value = (values + lo) % whole
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
