"""Follows chunks through the steps of a schedule by the labels of what each rank holds, as `data` describes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from opticcl.ir import Collective, IntArray, ProgressCallback, Schedule, Transfers, Violation, concatenate_transfers
from opticcl.ir.step_blocks import StepBlock, step_blocks
from opticcl.ir.symmetry import Run
from opticcl.verify.cells import Cells
from opticcl.verify.chunk_rows import indexed_by_chunk, with_followed_alone, with_neighbours_alone
from opticcl.verify.explain import explain
from opticcl.verify.malformed import NO_PARTS, cut_ranges, first_malformed, first_malformed_step, parts_of
from opticcl.verify.symmetry import CheckedClaims, runs_of

__all__ = ["follow_block"]

_RULES = (
    ("chunk_overwritten", "dst", "one copy, or sums alone", "several writes"),
    ("sent_before_held", "src", "data to send", "none yet"),
    ("size_wrong", "src", "as many contributions as it has", ""),
)
"""Rule, the end of a transfer where it is broken, what is due and what is found instead; "": a number of contributions."""


def follow_block(
    schedule: Schedule,
    chunks: IntArray,
    labels: npt.NDArray[np.uint64],
    checked: CheckedClaims | None,
    progress: ProgressCallback,
) -> tuple[list[Violation], int]:
    """Follow some chunks through all steps.

    Args:
        schedule: to be checked.
        chunks: to be followed, ascending.
        labels: of each rank, uint64 (num_ranks, 2).
        checked: claims, whose steps are evaluated on the way; None for none.
        progress: called after every run of steps.
    Returns: violations, and the number of transfers of all steps.
    """
    c = schedule.collective
    blocks = step_blocks(schedule) if checked is None else None
    if blocks is not None:
        return _follow_steps_in_blocks(schedule, blocks, chunks, labels, progress)
    runs = runs_of(schedule)
    cells = Cells.at_start(c, chunks, labels, chunk_first=bool(runs) and runs[0].count > 1)
    followed_below = np.searchsorted(chunks, np.arange(c.num_chunks + 1)).astype(np.int32)
    violations: list[Violation] = []
    transfers, i = 0, 0
    for run in runs:
        bases = [member.base() for member in run.members]
        step = bases[0] if len(bases) == 1 else concatenate_transfers(bases)
        malformed = first_malformed(step, i, c)
        for member, base in zip(run.members, bases, strict=True):
            malformed = malformed or cut_ranges(member, base, i, c)
        if malformed:
            return [malformed], transfers
        listed = len(step)
        for base in bases if checked is not None else ():
            checked.check(i, base)  # type: ignore[union-attr]
        if step.chunk_step is not None:
            bases = [with_followed_alone(base, chunks) for base in bases]
            step = concatenate_transfers(bases)
        transfers += listed * run.count
        if run.count == 1:
            violations += _violations_of(cells.play_step(_columns(step, c), followed_below, i), i, step, chunks)
        else:
            violations += _violations_of(_play_run(run, bases, step, chunks, cells, c), i, step, chunks)
        i += run.count
        progress("follow the data", i, schedule.num_steps)

    return [*violations, *_wrong_results(schedule, chunks, cells)], transfers


def _follow_steps_in_blocks(
    schedule: Schedule,
    blocks: Iterator[StepBlock],
    chunks: IntArray,
    labels: npt.NDArray[np.uint64],
    progress: ProgressCallback,
) -> tuple[list[Violation], int]:
    """As `follow_block`, of a schedule whose steps are evaluated many at a time.

    Args:
        schedule: to be checked.
        blocks: all of its steps.
        chunks: to be followed, ascending.
        labels: of each rank.
        progress: called after every block.
    """
    c = schedule.collective
    cells = Cells.at_start(c, chunks, labels, chunk_first=False)
    followed_below = np.searchsorted(chunks, np.arange(c.num_chunks + 1)).astype(np.int32)
    violations: list[Violation] = []
    transfers = 0
    for block in blocks:
        number = block.first
        if first_malformed(block.transfers, number, c):
            return first_malformed_step(block, transfers, c)
        transfers += len(block.transfers)
        whole, row = with_neighbours_alone(block.transfers)
        starts = np.searchsorted(row, block.starts)
        at = 0
        while at < len(block):
            rest = whole.take(slice(starts[at], None))
            played, counters = cells.play_block(
                _columns(rest, c), starts[at:] - starts[at], followed_below, number + at
            )
            at += played
            violations += _violations_of(counters, number + at - 1, rest, chunks)
        progress("follow the data", number + len(block), schedule.num_steps)
    return [*violations, *_wrong_results(schedule, chunks, cells)], transfers


def _columns(step: Transfers, c: Collective) -> tuple[IntArray, ...]:
    """Columns of transfers, with the parts of each where contributions are kept apart."""
    parts = parts_of(step) if c.keeps_apart else NO_PARTS
    return step.src, step.dst, step.chunk_lo, step.chunk_n, step.op, parts


def _play_run(
    run: Run, bases: Sequence[Transfers], step: Transfers, chunks: IntArray, cells: Cells, c: Collective
) -> tuple[IntArray, ...]:
    """Follow chunks through all steps of a run: what step k carries of a chunk, the base carries of an earlier one.

    Args:
        run: with those beside it, each of which has an earlier chunk of its own.
        bases: first steps of the members of the run.
        step: all of them.
        chunks: followed, ascending.
        cells: what ranks hold, changed.
        c: collective.
    Returns: counters, as `_violations_of` reads them.
    """
    rows, starts, inverse, source = indexed_by_chunk(run, bases, chunks, c)
    src, dst, _, _, op, parts = _columns(step, c)
    more = np.repeat([member.parts_step for member in run.members], [len(base) for base in bases]).astype(np.int64)
    return tuple(cells.play_run((src, dst, op, parts, rows, starts, inverse), source, run.count, more))


def _violations_of(counters: Sequence[IntArray], i: int, step: Transfers, chunks: IntArray) -> list[Violation]:
    """Violations of a step, or of a run of steps.

    Args:
        counters: of each of `_RULES`: how often it is broken, the first row that breaks it, the place of the chunk among
            those followed, contributions held there, and of a run the number of steps before, int64.
        i: number of the step, or of the first of the run.
        step: transfers of it.
        chunks: followed, ascending.
    """
    out = []
    for (rule, end, expected, found), counter in zip(_RULES, counters, strict=True):
        count, row, k, there, *before = counter.tolist()
        if count:
            where = f"chunk {chunks[k]} of rank {getattr(step, end)[row]}"
            found = found or (f"{there} held" if before else f"{parts_of(step)[row]} sent of {there}")
            out.append(Violation(rule, i + sum(before), -1, where, expected, found, count))
    return out


def _wrong_results(schedule: Schedule, chunks: IntArray, cells: Cells) -> list[Violation]:
    """Violations of ranks that end with a wrong result, with their number.

    Args:
        schedule: that was followed.
        chunks: that were followed, ascending.
        cells: at the end.
    """
    c = schedule.collective
    wrong = cells.wrong(c, chunks)
    violations = explain(schedule, chunks, wrong)
    if wrong.any():
        nodes = int(wrong.any(axis=1).sum())
        what = "sum" if c.reduces else "result"
        total = f"{nodes} of {c.num_ranks} nodes end with a wrong {what}"
        violations.append(Violation("_total", -1, -1, "", "", total))
    return violations
