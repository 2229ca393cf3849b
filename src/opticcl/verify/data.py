"""Does every rank end with every contribution exactly once?

Each rank that holds a chunk at the start gets a random 128-bit label for it (two words, sums modulo 2**64). Replaying the
transfers adds, copies and moves labels like the data of the machine; at the end a rank must hold the sum of all labels.
A missing or doubled contribution goes undetected with a probability of about 2**-128. Sets would not be enough: a set does
not distinguish a contribution that was added once from one that was added twice. Where a sum is wrong, the plan is replayed
backwards from that rank and chunk, which gives the exact multiplicity of each contribution, and so the name of the error.

Chunks do not interact, and all of them are verified. Where the symmetries that the schedule claims hold (see `symmetry`), one
chunk of each orbit represents all; otherwise every chunk is followed, in blocks of bounded memory, unless each goes straight
to its rank (see `direct`). Only a sample that the caller requests is smaller, and it is not called a verdict. All sends of a
step see the data as before the step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import lcm
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.ir import (
    Collective,
    IntArray,
    Op,
    ProgressCallback,
    Schedule,
    Transfers,
    Violation,
    concatenate_transfers,
    no_progress,
)
from opticcl.ir.step_blocks import StepBlock, step_blocks
from opticcl.ir.symmetric_steps import SymmetricSteps, symmetric_steps
from opticcl.ir.symmetry import Run
from opticcl.kernels import njit, worth_compiling
from opticcl.verify.cells import Cells, first_holders
from opticcl.verify.chunk_rows import chunks_unknown, indexed_by_chunk, with_followed_alone, with_neighbours_alone
from opticcl.verify.direct import sent_directly
from opticcl.verify.exact import check_sets
from opticcl.verify.few_ranks import FewRanks, few_ranks
from opticcl.verify.found import found_claims, worth_searching
from opticcl.verify.symmetric_steps import first_wrong, moves_wrong, orbits_of_chunks, with_chunks_alone
from opticcl.verify.symmetry import CheckedClaims, claims_of, orbits, runs_of
from opticcl.verify.two_parts import two_parts

__all__ = ["DataReport", "check_data"]

SYMMETRY_FROM = 1 << 16  # (rank, chunk) pairs from which claimed symmetries are used
BLOCK = 1 << 21  # (rank, chunk) pairs that are followed together: 50 MB, which caches hold in part
LARGE_BLOCK = 1 << 23  # the same, of schedules with narrow transfers or many steps, which are read once a block: 300 MB
RANGE = 16  # chunks of a transfer, on average, from which it is a range
FEW_STEPS = 1024
MOST_DISTANCE = 8  # of chunks of a transfer that are followed by classes
CHUNKS_ALONE = 16  # chunks of steps that are not listed which are followed together
MOST_CHUNK_ROWS = 1 << 32  # chunks carried by all transfers that are followed one by one
SHOWN = 8  # wrong chunks that are explained one by one
_MANY = 1 << 40  # multiplicities above it are not distinguished; sums of those of all ranks fit in 64 bits
_NO_PARTS = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class DataReport:
    """Result of the check.

    Args:
        violations: broken rules.
        transfers: transfers replayed [count].
        chunks: chunks judged [count].
        exhaustive: whether these were all chunks.
        how: how they were judged, in words.
        notes: totals, a line each.
    """

    violations: tuple[Violation, ...]
    transfers: int
    chunks: int
    exhaustive: bool
    how: str
    notes: tuple[str, ...]


def check_data(
    schedule: Schedule,
    *,
    num_chunks: int | None = None,
    seed: int = 0,
    every_chunk: bool = False,
    exact: bool = False,
    progress: ProgressCallback = no_progress,
) -> DataReport:
    """Replay the schedule on labels.

    Args:
        schedule: to be checked.
        num_chunks: follow a seeded sample of that many chunks; None: judge all.
        seed: seed of the sample; labels are drawn from the entropy of the operating system, so that no plan can know them.
        every_chunk: follow every chunk, whatever symmetry is claimed and however many transfers there are.
        exact: compare sets of contributors too, chunk by chunk, so that no label has to be trusted.
        progress: called after every step.
    Raises: ParameterError: a sample of no chunks, or a claim that is no pair of permutations.
    """
    if num_chunks is not None and num_chunks < 1:
        raise ParameterError(f"verify: num_chunks={num_chunks} is below 1; try 1, or omit it")
    if seed < 0:
        raise ParameterError(f"verify: seed={seed} is negative; try 0")
    c = schedule.collective
    symmetric = symmetric_steps(schedule)
    if symmetric is not None:
        return _by_definition(schedule, symmetric, num_chunks, seed, every_chunk, exact, progress)
    if num_chunks is not None and num_chunks < c.num_chunks:
        chunks = np.sort(np.random.default_rng(seed).choice(c.num_chunks, size=num_chunks, replace=False))
        return _followed(schedule, chunks, None, progress, "sample", (f"sample of seed {seed}",), exact)
    large = c.num_chunks > 1 and c.num_ranks * c.num_chunks >= SYMMETRY_FROM
    if large and schedule.symmetries and not (every_chunk or exact) and (parts := two_parts(schedule)):
        found = _in_two_parts(*parts, progress)
        if found is not None:
            return found
    claims: list[Any] = []
    notes: list[str] = []
    source = "checked"
    if large and not every_chunk:
        claims, notes = claims_of(schedule)
        if not schedule.symmetries and worth_searching(schedule):
            claims, source = found_claims(schedule), "found and checked"
    while claims:
        checked = CheckedClaims(claims, c)
        chunks, order = orbits(claims, c.num_chunks)
        how = f"symmetry of order {order:,}, {source}"
        report = _followed(schedule, chunks, checked, progress, how, notes, exact)
        if not checked.refuted:
            return report
        for number, step in checked.refuted.items():
            notes.append(f"claim refused: step {step} is not invariant under symmetry {number}")
        claims = [claim for claim in claims if claim.number not in checked.refuted]
    if not every_chunk and (carried := _chunk_rows(schedule)) > MOST_CHUNK_ROWS:
        text = f"{carried:,} chunks carried by transfers, and no symmetry holds; --all-chunks follows them"
        return DataReport((Violation("not_judged", -1, -1, text, "a proof", "none"),), 0, 0, False, "", tuple(notes))
    how = "every chunk followed"
    if large and not exact and (transfers := sent_directly(schedule, progress)) is not None:
        return DataReport((), transfers, c.num_chunks, True, how, tuple(notes))
    return _followed(schedule, np.arange(c.num_chunks), None, progress, how, notes, exact)


def _in_two_parts(first: Schedule, second: Schedule, progress: ProgressCallback) -> DataReport | None:
    """The report on a reduce whose parts are right, each for itself; None where one is not, or no claim on the first holds.

    Args:
        first: adds up each chunk at one rank.
        second: copies the sums to the root.
        progress: called after every step.
    """
    claims, notes = claims_of(first)
    if not claims or notes:
        return None
    chunks, order = orbits(claims, first.collective.num_chunks)
    checked = CheckedClaims(claims, first.collective)
    how = f"symmetry of order {order:,}, checked, of the sums; every copy of these followed"
    sums = _followed(first, chunks, checked, progress, how, (), False)
    if sums.violations or checked.refuted:
        return None
    copied = _followed(second, np.arange(second.collective.num_chunks), None, progress, how, (), False)
    return None if copied.violations else replace(copied, transfers=sums.transfers + copied.transfers)


def _by_definition(
    schedule: Schedule,
    steps: SymmetricSteps,
    num_chunks: int | None,
    seed: int,
    every_chunk: bool,
    exact: bool,
    progress: ProgressCallback,
) -> DataReport:
    """As `check_data`, of steps that are not listed: rows that carry the followed chunks are images of those of rank 0.

    Args:
        schedule: to be checked.
        steps: its definition.
        num_chunks, seed, every_chunk, exact, progress: as of `check_data`.
    """
    c, transfers = schedule.collective, 0
    malformed = moves_wrong(steps.moves)
    for i in range(schedule.num_steps):
        malformed = malformed or first_wrong(steps.of(i)) or _first_malformed(steps.of(i).first, i, c)
        transfers += len(steps.of(i))
    if malformed:
        return DataReport((malformed,), 0, 0, False, "", ())
    chunks, order, notes = orbits_of_chunks(schedule, steps.moves)
    how = f"symmetry of order {order:,}, by definition"
    if every_chunk:
        chunks, how = np.arange(c.num_chunks), "every chunk followed"
    if num_chunks is not None and num_chunks < c.num_chunks:
        chunks = np.sort(np.random.default_rng(seed).choice(c.num_chunks, size=num_chunks, replace=False))
        how, notes = "sample", [f"sample of seed {seed}"]
    carried = len(chunks) * sum(
        c.num_ranks * int(steps.of(i).first.chunk_n.sum(dtype=np.int64)) for i in range(schedule.num_steps)
    )
    if carried // c.num_chunks > MOST_CHUNK_ROWS and not every_chunk:
        text = f"{carried // c.num_chunks:,} chunks carried by transfers, and too few symmetries hold"
        return DataReport((Violation("not_judged", -1, -1, text, "a proof", "none"),), 0, 0, False, "", tuple(notes))
    found: list[DataReport] = []
    for at in range(0, len(chunks), CHUNKS_ALONE):
        some = chunks[at : at + CHUNKS_ALONE]
        found.append(_followed(with_chunks_alone(schedule, steps, some), some, None, progress, how, notes, exact))
        if found[-1].violations:
            break
    return replace(found[-1], transfers=transfers, chunks=len(chunks) if how == "sample" else c.num_chunks)


def _chunk_rows(schedule: Schedule) -> int:
    """Chunks that all transfers carry together; steps of a class carry as many as its first."""
    if (
        schedule.collective.num_chunks == 1
        or schedule.collective.num_ranks * schedule.collective.num_chunks <= LARGE_BLOCK
    ):
        return 0  # never too many
    blocks = step_blocks(schedule)
    if blocks is not None:
        return sum(int(block.transfers.chunk_n.sum(dtype=np.int64)) for block in blocks)
    return sum(
        len(steps) * int(schedule.step(steps.start).chunk_n.sum(dtype=np.int64)) for steps in schedule.step_classes()
    )


def _followed(
    schedule: Schedule,
    chunks: IntArray,
    checked: CheckedClaims | None,
    progress: ProgressCallback,
    how: str,
    notes: Sequence[str],
    exact: bool,
) -> DataReport:
    """Follow some chunks, in blocks, and check the claims on the way.

    Args:
        schedule: to be checked.
        chunks: to be followed, ascending.
        checked: claims, whose steps are evaluated during the first block; None for none.
        progress: called after every step.
        how: for the report.
        notes: for the report.
        exact: whether sets of contributors are compared too.
    """
    c = schedule.collective
    labels = np.random.default_rng().integers(0, 2**64, size=(c.num_ranks, 2), dtype=np.uint64)
    size = max(1, len(chunks)) if c.num_ranks * len(chunks) <= BLOCK else _chunks_together(schedule)
    distance = _distance(schedule) if checked is None and len(chunks) > size else 1
    of_class = [chunks[chunks % distance == rest] for rest in range(distance)]
    blocks = [some[at : at + size] for some in of_class for at in range(0, len(some), size)] or [chunks]
    violations: list[Violation] = []
    notes, transfers = list(notes), 0
    few = few_ranks(schedule) if checked is None and len(blocks) > 1 else None
    if few is not None and _right_at_few(few, chunks, labels, progress):
        blocks, transfers = [], few.transfers  # otherwise followed again at all ranks, whose numbers violations name
    for number, block in enumerate(blocks):
        found, transfers = _follow_block(schedule, block, labels, checked if number == 0 else None, progress)
        for violation in found:
            if violation.rule not in {v.rule for v in violations} or violation.step >= 0:
                violations.append(violation)
        if any(violation.rule in _MALFORMED for violation in found):
            break
    if exact and not violations and not (checked is not None and checked.refuted):
        violations += check_sets(schedule, chunks)
        how = f"{how}, exact"
    totals = [v.found for v in violations if v.rule == "_total"]
    violations = [v for v in violations if v.rule != "_total"]
    everything = not how.startswith("sample")
    judged = c.num_chunks if everything else len(chunks)
    return DataReport(tuple(violations), transfers, judged, everything, how, (*notes, *totals))


def _distance(schedule: Schedule) -> int:
    """A multiple of the distances of the chunks of all transfers: of chunks so far apart, a transfer carries a range, or none.

    1 where there is none up to `MOST_DISTANCE`.
    """
    multiple = 1
    if step_blocks(schedule) is not None:
        return multiple
    for run in (member for one in runs_of(schedule) for member in one.members):
        step = run.base()
        if step.chunk_step is not None:
            multiple = lcm(multiple, *np.unique(step.chunk_step[(step.chunk_n > 1) & (step.chunk_step > 0)]).tolist())
        if multiple > MOST_DISTANCE:
            return 1
    return multiple


def _right_at_few(few: FewRanks, chunks: IntArray, labels: npt.NDArray[np.uint64], progress: ProgressCallback) -> bool:
    """Whether all chunks are right, each followed at the ranks that may hold it.

    Args:
        few: the schedule.
        chunks: to be followed, ascending.
        labels: of each rank.
        progress: called after every part.
    """
    done = 0
    for some, ranks, part in few.parts(chunks, LARGE_BLOCK):
        if _follow_block(part, some, labels[ranks], None, no_progress)[0]:
            return False
        done += len(some)
        progress("follow the data", done, len(chunks))
    return True


def _chunks_together(schedule: Schedule) -> int:
    """Chunks of a block."""
    n = schedule.collective.num_ranks
    if step_blocks(schedule) is not None:
        return max(1, 2 * LARGE_BLOCK // n)
    runs = runs_of(schedule)
    first = runs[0].base() if runs else None
    if len(runs) > FEW_STEPS:  # making them takes longer than following chunks: 600 MB, but fewer blocks
        return max(1, 2 * LARGE_BLOCK // n)
    if first is None or not len(first):
        return max(1, LARGE_BLOCK // n)
    width = first.chunk_n.mean()
    if runs[0].count == 1 and width < RANGE:
        return max(1, LARGE_BLOCK // n)
    return max(1, BLOCK // n, min(8 * RANGE, LARGE_BLOCK // n))


_MALFORMED = ("rank_unknown", "chunk_unknown", "operation_unknown", "operation_wrong", "run_cuts_ranges")


def _follow_block(
    schedule: Schedule,
    chunks: IntArray,
    labels: npt.NDArray[np.uint64],
    checked: CheckedClaims | None,
    progress: ProgressCallback,
) -> tuple[list[Violation], int]:
    """Violations of some chunks, and the number of transfers of all steps."""
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
        malformed = _first_malformed(step, i, c)
        for member, base in zip(run.members, bases, strict=True):
            malformed = malformed or _cut_ranges(member, base, i, c)
        if malformed:
            return [malformed], transfers
        listed = len(step)
        for base in bases if checked is not None else ():
            checked.check(i, base)  # type: ignore[union-attr]
        if step.chunk_step is not None:
            bases = [with_followed_alone(base, chunks) for base in bases]
            step = concatenate_transfers(bases)
        transfers += listed * run.count
        parts = _parts(step) if c.keeps_apart else _NO_PARTS
        if run.count == 1:
            rows = (step.src, step.dst, step.chunk_lo, step.chunk_n, step.op, parts)
            violations += _step_violations(i, *cells.play_step(rows, followed_below, i), step, chunks)
        else:
            violations += _play_run_of(run, bases, step, parts, i, chunks, cells, c)
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
    """As `_follow_block`, of a schedule whose steps are evaluated many at a time.

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
        if _first_malformed(block.transfers, number, c):
            return _first_malformed_step(block, transfers, c)
        transfers += len(block.transfers)
        whole, row = with_neighbours_alone(block.transfers)
        starts = np.searchsorted(row, block.starts)
        at = 0
        while at < len(block):
            rest = whole.take(slice(starts[at], None))
            columns = (
                rest.src,
                rest.dst,
                rest.chunk_lo,
                rest.chunk_n,
                rest.op,
                _parts(rest) if c.keeps_apart else _NO_PARTS,
            )
            played, counters = cells.play_block(columns, starts[at:] - starts[at], followed_below, number + at)
            at += played
            violations += _step_violations(number + at - 1, *counters, rest, chunks)
        progress("follow the data", number + len(block), schedule.num_steps)
    return [*violations, *_wrong_results(schedule, chunks, cells)], transfers


def _first_malformed_step(block: StepBlock, transfers: int, c: Collective) -> tuple[list[Violation], int]:
    """The first row of a block whose rank, chunk or operation does not exist, and the transfers before its step.

    Args:
        block: with such a row.
        transfers: before the block [count].
        c: collective.
    """
    for at in range(len(block)):
        step = block.transfers.take(slice(block.starts[at], block.starts[at + 1]))
        if malformed := _first_malformed(step, block.first + at, c):
            return [malformed], transfers + int(block.starts[at])
    raise AssertionError("a block without such a row")


def _wrong_results(schedule: Schedule, chunks: IntArray, cells: Cells) -> list[Violation]:
    """Violations of ranks that end with a wrong result, with their number.

    Args:
        schedule: that was followed.
        chunks: that were followed, ascending.
        cells: at the end.
    """
    c = schedule.collective
    wrong = cells.wrong(c, chunks)
    violations = _explain(schedule, chunks, wrong)
    if wrong.any():
        nodes = int(wrong.any(axis=1).sum())
        what = "sum" if c.reduces else "result"
        total = f"{nodes} of {c.num_ranks} nodes end with a wrong {what}"
        violations.append(Violation("_total", -1, -1, "", "", total))
    return violations


def _cut_ranges(run: Run, step: Transfers, i: int, c: Collective) -> Violation | None:
    """A run whose shift does not map the ranges of chunks of its steps onto ranges.

    Args:
        run: one member.
        step: its base.
        i: number of its first step.
        c: collective.
    """
    if run.shift is None or not len(step) or int(step.chunk_n.max()) == 1:
        return None
    if step.chunk_step is not None:
        return Violation(
            "run_cuts_ranges", i, -1, f"run from step {i}", "neighbouring chunks", "chunks apart", len(step)
        )
    shift = run.shift.images(c.num_chunks)
    breaks = np.concatenate([[0], np.cumsum(shift[1:] != shift[:-1] + 1)])
    known = ranges = np.unique(step.chunk_lo.astype(np.int64) * (c.num_chunks + 1) + step.chunk_n)
    for turn in range(1, run.count):
        lo, n = np.divmod(ranges, c.num_chunks + 1)
        bad = np.flatnonzero(breaks[lo + n - 1] != breaks[lo])
        if len(bad):
            first, last = int(lo[bad[0]]), int(lo[bad[0]] + n[bad[0]] - 1)
            found = f"chunks {first}..{last} become {shift[first]} to {shift[last]}"
            return Violation("run_cuts_ranges", i + turn, -1, f"run from step {i}", "a range", found, len(bad))
        images = shift[lo] * (c.num_chunks + 1) + n
        ranges = np.setdiff1d(images, known, assume_unique=True)
        if not len(ranges):
            break
        known = np.union1d(known, ranges)
    return None


def _play_run_of(
    run: Run,
    bases: Sequence[Transfers],
    step: Transfers,
    parts: IntArray,
    i: int,
    chunks: IntArray,
    cells: Cells,
    c: Collective,
) -> list[Violation]:
    """Follow chunks through all steps of a run: what step k carries of a chunk, the base carries of an earlier one.

    Args:
        run: with those beside it, each of which has an earlier chunk of its own.
        bases: first steps of the members of the run.
        step: all of them.
        parts: of the rows of `step`; empty where contributions are added.
        i: number of the first step.
        chunks: followed, ascending.
        cells: what ranks hold, changed.
        c: collective.
    """
    rows, starts, inverse, source = indexed_by_chunk(run, bases, chunks, c)
    columns = (step.src, step.dst, step.op, parts, rows, starts, inverse)
    more = np.repeat([member.parts_step for member in run.members], [len(base) for base in bases]).astype(np.int64)
    found = cells.play_run(columns, source, run.count, more)
    out = []
    for counters, rule, ends, expected in (
        (found[0], "chunk_overwritten", step.dst, "one copy, or sums alone"),
        (found[1], "sent_before_held", step.src, "data to send"),
        (found[2], "size_wrong", step.src, "as many contributions as it has"),
    ):
        count, at, k, there, when = counters.tolist()
        if count:
            text = {"chunk_overwritten": "several writes", "sent_before_held": "none yet"}.get(rule, f"{there} held")
            out.append(Violation(rule, i + when, -1, f"chunk {chunks[k]} of rank {ends[at]}", expected, text, count))
    return out


def _first_malformed(step: Transfers, i: int, c: Collective) -> Violation | None:
    """The first row whose rank, chunk or operation does not exist."""
    parts = _NO_PARTS if step.parts is None else step.parts
    columns = (step.src, step.dst, step.chunk_lo, step.chunk_n, step.op, parts)
    quick = step.chunk_step is None and worth_compiling(len(step), _well_formed)
    if quick and _well_formed(*columns, c.num_ranks, c.num_chunks, c.keeps_apart):  # nearly every step is
        return None
    num_ranks, num_chunks, lone = c.num_ranks, c.num_chunks, np.array(not c.keeps_apart)
    bad_rank = (np.minimum(step.src, step.dst) < 0) | (np.maximum(step.src, step.dst) >= num_ranks)
    bad_chunk = chunks_unknown(step, num_chunks)
    for rule, bad, expected in (
        ("rank_unknown", bad_rank, f"ranks 0..{num_ranks - 1}"),
        ("chunk_unknown", bad_chunk, f"chunks 0..{num_chunks - 1}"),
        ("operation_unknown", step.op > Op.REDUCE_MOVE, "copy (0), reduce (1), move (2) or reduce_move (3)"),
        ("operation_wrong", ~lone & (step.op & 1 > 0), "move (2): contributions are kept apart"),
        (
            "operation_wrong",
            lone & (step.op == Op.MOVE),
            "copy (0), reduce (1) or reduce_move (3): contributions are not kept apart",
        ),
        ("size_wrong", lone & (_parts(step) != 1), "one part: contributions are not kept apart"),
    ):
        rows = np.flatnonzero(bad)
        if len(rows):
            return Violation(rule, i, -1, f"transfer {rows[0]}", expected, _row(step, int(rows[0])), len(rows))
    return None


def _parts(step: Transfers) -> IntArray:
    return np.ones(len(step), np.int32) if step.parts is None else step.parts


def _row(step: Transfers, row: int) -> str:
    lo, n = int(step.chunk_lo[row]), int(step.chunk_n[row])
    apart = 1 if step.chunk_step is None else int(step.chunk_step[row])
    every = "" if apart == 1 else f" every {apart}"
    return f"{step.src[row]} -> {step.dst[row]} chunks {lo}..{lo + (n - 1) * apart}{every} op {step.op[row]}"


def _step_violations(
    i: int, clashes: IntArray, not_held: IntArray, wrong_size: IntArray, step: Transfers, chunks: IntArray
) -> list[Violation]:
    """Violations of one step, from the counters (count, first row, its chunk, contributions held)."""
    out = []
    for rule, (count, row, k, there), who, expected in (
        ("chunk_overwritten", clashes, step.dst, "one copy, or sums alone"),
        ("sent_before_held", not_held, step.src, "data to send"),
        ("size_wrong", wrong_size, step.src, "as many contributions as it has"),
    ):
        if count:
            found = {"chunk_overwritten": "several writes", "sent_before_held": "none yet"}.get(rule)
            found = found or f"{_parts(step)[row]} sent of {there}"
            out.append(Violation(rule, i, -1, f"chunk {chunks[k]} of rank {who[row]}", expected, found, int(count)))
    return out


def _explain(schedule: Schedule, chunks: IntArray, wrong: np.ndarray) -> list[Violation]:
    """Name the error of one wrong sum of each of the first few wrong chunks, and count the others with them."""
    pairs = np.argwhere(wrong)
    found: dict[str, Violation] = {}
    c = schedule.collective
    for k in np.flatnonzero(wrong.any(axis=0))[:SHOWN]:
        rank = np.flatnonzero(wrong[:, k])[0]
        counts = contributions(schedule, int(rank), int(chunks[k]))
        due = c.before(np.arange(c.num_ranks), np.full(c.num_ranks, chunks[k])).astype(np.int64)
        first = first_holders(c, due[:, None])
        if first is not None:  # any holder may be the source
            counts, due = (np.where(np.arange(c.num_ranks) == first[0], x, 0) for x in (counts.sum(), 1))
        where = f"chunk {chunks[k]} at rank {rank}"
        for rule, who in (("contribution_missing", counts < due), ("contribution_doubled", counts > due)):
            if who.any() and rule not in found:
                origins = np.flatnonzero(who)
                text = ", ".join(f"rank {o} x{counts[o]}" for o in origins[:4]) + (", ..." if len(origins) > 4 else "")
                found[rule] = Violation(rule, -1, -1, where, "each contribution once", text, len(pairs))
    if len(pairs) and not found:  # a wrong result is never accepted, whatever its explanation
        where = f"chunk {chunks[pairs[0, 1]]} at rank {pairs[0, 0]}"
        found["other"] = Violation(
            "contribution_missing", -1, -1, where, "each contribution once", "others", len(pairs)
        )
    return list(found.values())


def contributions(schedule: Schedule, rank: int, chunk: int) -> IntArray:
    """Multiplicity of each rank's contribution in a chunk at a rank at the end, up to 2**40, int64 (num_ranks,).

    The result is linear in the contributions; replaying the steps backwards carries the coefficients to the start.

    Args:
        schedule: to be checked.
        rank, chunk: whose result.
    """
    weight = np.zeros(schedule.collective.num_ranks, np.int64)
    weight[rank] = 1
    for i in range(schedule.num_steps - 1, -1, -1):
        step = with_followed_alone(schedule.step(i), np.array([chunk]))
        rows = np.flatnonzero((step.chunk_lo <= chunk) & (chunk < step.chunk_lo.astype(np.int64) + step.chunk_n))
        src, dst, op = step.src[rows], step.dst[rows], step.op[rows]
        before = weight.copy()
        before[dst[op == Op.COPY]] = 0
        before[src[op & Op.MOVE > 0]] = 0
        np.add.at(before, src, weight[dst])
        weight = np.minimum(before, _MANY)
    c = schedule.collective
    return weight * c.before(np.arange(c.num_ranks), np.full(c.num_ranks, chunk))


@njit
def _well_formed(src, dst, chunk_lo, chunk_n, op, parts, num_ranks, num_chunks, keeps_apart):  # type: ignore[no-untyped-def]
    """Whether every row names ranks, chunks and an operation that exist, and parts only where contributions are kept apart.

    The loop has no early exit, so that it is vectorised.
    """
    forbidden, other = (Op.REDUCE, Op.REDUCE_MOVE) if keeps_apart else (Op.MOVE, Op.MOVE)
    bad = False
    for t in range(len(src)):
        bad |= (src[t] < 0) | (dst[t] < 0) | (src[t] >= num_ranks) | (dst[t] >= num_ranks)
        bad |= (chunk_lo[t] < 0) | (chunk_n[t] < 1) | (np.int64(chunk_lo[t]) + chunk_n[t] > num_chunks)
        bad |= (op[t] > Op.REDUCE_MOVE) | (op[t] == forbidden) | (op[t] == other)
    if not keeps_apart:
        for t in range(len(parts)):
            bad |= parts[t] != 1
    return not bad
