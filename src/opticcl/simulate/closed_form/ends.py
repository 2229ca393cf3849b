"""What senders and receivers of steps have to do on any fabric: from rows of many steps at once, without a list of any."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from opticcl.ir import IntArray, Op, Transfers, row_keys
from opticcl.ir.limits import limit
from opticcl.ir.phases import PhaseRows, Steps, chunks_of_rows, join
from opticcl.pairs import first_of_equal
from opticcl.simulate.latency import first_transfers
from opticcl.simulate.parts import memory_traffic, summed_chunks

__all__ = ["StepEnds", "StepPairs", "ends_of_steps", "pairs_of_steps"]

ROWS_TOGETHER = limit("ends.ROWS_TOGETHER")


@dataclass(frozen=True, slots=True, eq=False)
class StepPairs:
    """Transfers of a step, one of each orbit of translations, that whose sender is 0 in the digits that move.

    Args:
        moves: whether translations move each digit.
        src, dst: places, int64 (n,).
        transfers: of each pair, in ranges of chunks of their own, int64 (n,) [count].
        chunks: of all of these, int64 (n,) [chunks].
    """

    moves: tuple[bool, ...]
    src: IntArray
    dst: IntArray
    transfers: IntArray
    chunks: IntArray

    @property
    def num_bytes(self) -> int:
        """Of the columns [bytes]."""
        return self.src.nbytes + self.dst.nbytes + self.transfers.nbytes + self.chunks.nbytes


@dataclass(frozen=True, slots=True)
class StepEnds:
    """What senders and receivers of a step have to do on any fabric.

    Args:
        sent, received: transfers of the rank that sends, and receives, most of them; 0 where there are none [count].
        chunks_sent, chunks_received: the most that a rank sends, and receives [chunks].
        chain, fused: memory traffic of the sums of the rank with the most of it, under either value of `compute` [chunks].
        messages: of the rank that sends most of them [count].
    """

    sent: int = 0
    received: int = 0
    chunks_sent: int = 0
    chunks_received: int = 0
    chain: int = 0
    fused: int = 0
    messages: int = 0

    def summed_chunks(self, compute: str) -> int:
        """Memory traffic of the sums of the rank with the most of it [chunks].

        Args: compute: as in `Assumptions`.
        """
        return {"none": 0, "chain": self.chain, "fused": self.fused}[compute]


def ends_of_steps(steps: Steps, numbers: Iterable[int]) -> list[StepEnds]:
    """Of some steps, from what one rank of each orbit sends and receives; all 0 where a step has no transfers.

    Args:
        steps: of a schedule.
        numbers: of the steps; the first of them are evaluated, as many as suit each other.
    Returns: of the first step, and of some behind it.
    """
    first = next(behind := iter(numbers))
    several = _SeveralSteps.of(steps, chain([first], behind))
    if several is None:
        return [_ends_of_list(steps, first)]
    return [
        one if one.fused >= 0 else replace(one, fused=_fused(steps, i))
        for i, one in zip(several.numbers, _ends_of_rows(several), strict=True)
    ]


def pairs_of_steps(steps: Steps, numbers: Iterable[int]) -> list[StepPairs]:
    """Of some steps, their pairs of ranks.

    Args: steps, numbers: as of `ends_of_steps`.
    Returns: of the first step, and of some behind it.
    """
    first = next(behind := iter(numbers))
    several = _SeveralSteps.of(steps, chain([first], behind))
    if several is None:
        sent, places = steps.representatives(first), steps.space.places
        src, dst = (np.asarray(end if places is None else places[end], np.int64) for end in (sent.src, sent.dst))
        once, chunks = np.ones(len(sent), np.int64), sent.size_chunks().astype(np.int64)
        return [StepPairs(steps.group(first), src, dst, once, chunks)]
    edges = np.searchsorted(several.step, np.arange(len(several.numbers) + 1)).tolist()
    columns = several.src, several.dst, several.transfers, several.chunks * several.rows.parts
    return [
        StepPairs(moved, *(column[lo:hi] for column in columns))
        for moved, lo, hi in zip(several.moves, edges, edges[1:], strict=False)
    ]


class _SeveralSteps(NamedTuple):
    """Rows of several steps that send something, with their places and sizes.

    Args:
        steps: of a schedule.
        numbers: of the steps.
        moves: whether translations move each digit in each of them.
        step: which of the steps each row is of, ascending, int64 (rows,).
        rows: of all.
        src, dst: places, int64 (rows,).
        transfers, chunks: of each row, int64 (rows,) [count].
    """

    steps: Steps
    numbers: list[int]
    moves: list[tuple[bool, ...]]
    step: IntArray
    rows: PhaseRows
    src: IntArray
    dst: IntArray
    transfers: IntArray
    chunks: IntArray

    @classmethod
    def of(cls, steps: Steps, numbers: Iterable[int]) -> _SeveralSteps | None:
        """The first of some steps, as many as suit each other; None where rows do not say what the first one sends.

        Args: steps, numbers: as of `ends_of_steps`.
        """
        space, left, of_steps = steps.space, ROWS_TOGETHER, dict[int, PhaseRows]()
        for i in numbers:
            mine = steps.rows_of(i)
            if mine is None or (of_steps and len(mine) > left):
                break
            of_steps[i] = mine
            left -= len(mine)
        if not of_steps:
            return None
        rows = join([*of_steps.values()])
        step = np.repeat(np.arange(len(of_steps)), [*map(len, of_steps.values())])
        src, dst = map(space.numbers, (rows.src, rows.dst))
        transfers, chunks = chunks_of_rows(space, steps.parts, rows)
        if len(sends := np.flatnonzero(src != dst)) < len(rows):
            rows = rows.take(sends)
            step, src, dst, transfers, chunks = (column[sends] for column in (step, src, dst, transfers, chunks))
        return cls(steps, [*of_steps], [*map(steps.moves, of_steps)], step, rows, src, dst, transfers, chunks)


def _ends_of_list(steps: Steps, i: int) -> StepEnds:
    """Of a step whose rows do not say it."""
    sent, space = steps.representatives(i), steps.space
    if not len(sent):
        return StepEnds()
    places = sent.dst if space.places is None else space.places[sent.dst]
    received = replace(sent, dst=space.ranks(space.without(places, steps.group(i))))
    (most_sent, chunks_sent), (most_received, chunks_received) = (
        (int(np.bincount(end).max()), int(np.bincount(end, sent.size_chunks()).max()))
        for end in (sent.src, received.dst)
    )
    chain, messages = int(summed_chunks(received, "chain")), _most_messages(sent, most_sent)
    return StepEnds(most_sent, most_received, chunks_sent, chunks_received, chain, _fused(steps, i), messages)


def _fused(steps: Steps, i: int) -> int:
    """Memory traffic of the fused sums of a step from what ranks receive [chunks]."""
    return int(summed_chunks(steps.representatives(i, received=True), "fused"))


def _most_messages(transfers: Transfers, sent: int) -> int:
    """Messages of the rank that sends most of them [count].

    Args:
        transfers: of the step, one or more.
        sent: transfers of the rank that sends most of them [count].
    """
    first = first_transfers(transfers)
    return sent if first is None else int(np.bincount(transfers.src[first]).max())


def _ends_of_rows(several: _SeveralSteps) -> list[StepEnds]:
    """Of steps that rows define; `fused` is -1 where rows do not say it."""
    steps, numbers, moves, step, rows, src, dst, transfers, chunks = several
    if not len(rows):
        return [StepEnds()] * len(numbers)
    space, num_steps = steps.space, len(numbers)
    stays = ~np.array(moves)
    carried, of_orbit = chunks * rows.parts, dst if stays.all() else space.numbers(rows.dst * stays[step])
    senders, receivers = (_Ends.of_ranks(step, end, space.num_ranks, num_steps) for end in (src, space.ranks(of_orbit)))
    adds = rows.op & Op.REDUCE > 0
    arrived, again = receivers.sums(chunks * adds), receivers.sums(transfers * adds) > 1
    covered = _distinct(several, receivers.of, np.flatnonzero(adds & again[receivers.of]), arrived)
    chain, fused = (receivers.most(memory_traffic(how, arrived, covered)) for how in ("chain", "fused"))
    fused[receivers.step[covered < 0]] = -1
    sent = senders.sums(transfers)
    messages = sent if sent.max() == 1 else senders.sums(first_of_equal(row_keys([step, src, dst, rows.op])))
    columns = (
        senders.most(sent),
        receivers.most(receivers.sums(transfers)),
        senders.most(senders.sums(carried)),
        receivers.most(receivers.sums(carried)),
        chain,
        fused,
        senders.most(messages),
    )
    return [StepEnds(*values) for values in zip(*(column.tolist() for column in columns), strict=True)]


def _distinct(several: _SeveralSteps, end: IntArray, at: IntArray, arrived: IntArray) -> IntArray:
    """Different chunks that arrive at each end, from boxes of one shape or without a value in common; else -1, int64 (ends,).

    Args:
        several: steps.
        end: that each row arrives at.
        at: rows that arrive at ends where several do.
        arrived: chunks that arrive at each end, which differ where one row does.
    """
    covered = arrived.copy()
    if not len(at):
        return covered
    at = at[np.argsort(end[at], kind="stable")]
    end, step, chunks, rows = end[at], several.step[at], several.chunks[at], several.rows.take(at)
    radices, first = np.array(several.steps.space.radices), np.searchsorted(end, end)
    inside = np.array([[d in one.digits for d in range(len(radices))] for one in several.steps.parts])[rows.part]
    among = inside & (rows.count > 1)
    ahead = (rows.lo - rows.dst * np.array(several.moves)[step]) % radices * inside
    count, apart = np.where(among, rows.count, 1), np.where(among, rows.step, radices)
    shape = np.column_stack([count, apart, rows.unit_count, rows.unit_step, chunks])
    units_apart = (rows.unit_count > 1) & (rows.unit_lo != rows.unit_lo[first])
    cut_apart = (among & (count * apart != radices) & (ahead != ahead[first])).any(axis=1)
    differs = (shape != shape[first]).any(axis=1) | units_apart | cut_apart
    boxes = ahead % apart  # a box has all values that leave this remainder
    every = end[first_of_equal(row_keys([end, rows.part, rows.unit_lo, *boxes.T]))]
    covered[end] = chunks * np.bincount(every, minlength=len(covered))[end]
    covered[end[differs]] = -1
    if len(odd := np.flatnonzero(covered[end] < 0)):
        begin = np.column_stack([ahead * inside, rows.unit_lo])[odd]
        size = np.column_stack([np.where(inside, count, radices), rows.unit_count])[odd]
        scattered = (size > 1) & np.column_stack([inside & (apart > 1), rows.unit_step > 1])[odd]
        sides = np.array([*radices, max(one.units for one in several.steps.parts)])
        disjoint = end[odd][_ranges_apart(end[odd], begin, size, scattered, sides)]
        covered[disjoint] = arrived[disjoint]
    return covered


def _ranges_apart(end: IntArray, begin: IntArray, size: IntArray, scattered: IntArray, radices: IntArray) -> IntArray:
    """Whether boxes of each row's end have no value in common in some digit, in which they are ranges, bool (rows,).

    Args:
        end: of each row, int64 (rows,), ascending.
        begin, size: of its range in each digit, int64 (rows, digits).
        scattered: whether it is none, bool (rows, digits).
        radices: of the digits, int64 (digits,).
    """
    some = np.zeros(len(end), bool)
    for first, many, no_range, radix in zip(begin.T, size.T, scattered.T, radices, strict=True):
        order = np.lexsort((first, end))
        meets = no_range | (first + many > radix)
        meets[order[1:]] |= (end[order[1:]] == end[order[:-1]]) & (first[order[1:]] < (first + many)[order[:-1]])
        some |= ~np.isin(end, end[meets])
    return some


@dataclass(frozen=True, slots=True, eq=False)
class _Ends:
    """Ranks at one end of the transfers of several steps, in the order of steps and ranks.

    Args:
        of: which of them each transfer has, int64 (transfers,).
        step: of each, ascending, int64 (ends,).
        num_steps: of all [count].
    """

    of: IntArray
    step: IntArray
    num_steps: int

    @classmethod
    def of_ranks(cls, step: IntArray, rank: IntArray, num_ranks: int, num_steps: int) -> _Ends:
        """The ends of transfers.

        Args:
            step, rank: of each transfer, int64 (transfers,).
            num_ranks: of the schedule [count].
            num_steps: of all [count].
        """
        keys = step * num_ranks + rank
        if num_steps * num_ranks <= len(keys):
            return cls(keys, np.repeat(np.arange(num_steps), num_ranks), num_steps)
        every, of = np.unique(keys, return_inverse=True)
        return cls(of, every // num_ranks, num_steps)

    def sums(self, amounts: IntArray) -> IntArray:
        """Sum of the amounts of transfers of each end, int64 (ends,)."""
        if len(amounts) and (amounts == amounts[0]).all():
            return np.bincount(self.of, minlength=len(self.step)) * int(amounts[0])
        sums: IntArray = np.bincount(self.of, amounts, len(self.step)).astype(np.int64)
        return sums

    def most(self, amounts: IntArray) -> IntArray:
        """The largest amount of an end in each step, 0 where a step has none, int64 (steps,)."""
        most = np.zeros(self.num_steps, np.int64)
        np.maximum.at(most, self.step, amounts)
        return most
