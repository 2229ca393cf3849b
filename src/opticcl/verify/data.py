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

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import lcm
from typing import Any

import numpy as np
import numpy.typing as npt

from opticcl.errors import ParameterError
from opticcl.ir import IntArray, ProgressCallback, Schedule, Violation, no_progress
from opticcl.ir.step_blocks import step_blocks
from opticcl.ir.symmetric_steps import SymmetricSteps, symmetric_steps
from opticcl.verify.direct import sent_directly
from opticcl.verify.exact import check_sets
from opticcl.verify.few_ranks import FewRanks, few_ranks
from opticcl.verify.follow import follow_block
from opticcl.verify.found import found_claims, worth_searching
from opticcl.verify.malformed import MALFORMED, first_malformed
from opticcl.verify.symmetric_steps import first_wrong, moves_wrong, orbits_of_chunks, with_chunks_alone
from opticcl.verify.symmetry import CheckedClaims, claims_of, orbits, runs_of
from opticcl.verify.two_parts import two_parts

__all__ = ["DataReport", "check_data", "never_too_large"]

SYMMETRY_FROM = 1 << 16  # (rank, chunk) pairs from which claimed symmetries are used
BLOCK = 1 << 18  # (rank, chunk) pairs that are followed together: 6 MB, which caches hold
LARGE_BLOCK = 1 << 23  # the same, of schedules with narrow transfers or many steps, which are read once a block: 300 MB
RANGE = 16  # chunks of a transfer, on average, from which it is a range
FEW_STEPS = 1024
MOST_DISTANCE = 8  # of chunks of a transfer that are followed by classes
CHUNKS_ALONE = 16  # chunks of steps that are not listed which are followed together
MOST_CHUNK_ROWS = 1 << 32  # chunks carried by all transfers that are followed one by one


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

    @property
    def judged(self) -> bool:
        """Whether the schedule was found right or wrong."""
        return all(violation.rule != "not_judged" for violation in self.violations)


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
        malformed = malformed or first_wrong(steps.of(i)) or first_malformed(steps.of(i).first, i, c)
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


def never_too_large(schedule: Schedule) -> bool:
    """Whether so few chunks are carried that all can be followed, whichever symmetries hold."""
    symmetric = symmetric_steps(schedule)
    if symmetric is None:
        return _chunk_rows(schedule) <= MOST_CHUNK_ROWS
    steps = (symmetric.of(i).first for i in range(schedule.num_steps))
    return (
        schedule.collective.num_ranks * sum(int(step.chunk_n.sum(dtype=np.int64)) for step in steps) <= MOST_CHUNK_ROWS
    )


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
        found, transfers = follow_block(schedule, block, labels, checked if number == 0 else None, progress)
        for violation in found:
            if violation.rule not in {v.rule for v in violations} or violation.step >= 0:
                violations.append(violation)
        if any(violation.rule in MALFORMED for violation in found):
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
        if follow_block(part, some, labels[ranks], None, no_progress)[0]:
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
