"""Does every rank end with every contribution exactly once?

Chunks do not interact, so each is judged by the transfers that carry it, in the order of the steps: `player`. What is right is
defined in forty lines in `reference`. All counting is in whole numbers, so nothing rests on chance.

Where translations of digits define the steps, one chunk of each orbit is played, and its transfers follow from the phases
without a list of any step: `proof`. Else the transfers are listed and sorted by chunk, and every chunk is played. Which of the
two is done depends on what is less work; both give the same verdict. Only a sample that the caller requests is smaller, and it
is not called a verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from opticcl.errors import ParameterError
from opticcl.ir import (
    Collective,
    IntArray,
    ProgressCallback,
    Schedule,
    Transfers,
    Violation,
    concatenate_transfers,
    no_progress,
)
from opticcl.ir.collective import Holders
from opticcl.ir.limits import CHUNKS_CARRIED, EVENTS_TOGETHER, limit
from opticcl.ir.phases import ChunkEvents, PhaseRows, Steps
from opticcl.verify.data.explain import explained
from opticcl.verify.data.malformed import first_malformed, first_malformed_row, parts_of
from opticcl.verify.data.player import (
    ALL,
    NO_RANKS,
    NO_TABLE,
    NOT_HELD,
    OTHER_SIZE,
    OVERWRITTEN,
    TABLE,
    columns_of,
    play_events,
    rows_by_chunk,
)
from opticcl.verify.data.proof import Orbit, contributors, copied_from, free_digits, holders_move, num_orbits, orbits

__all__ = ["DataReport", "check_data", "never_too_large"]

SHOWN = 8
"""Wrong chunks that are explained one by one."""

CHUNKS_AS_A_PHASE = limit("contributions.CHUNKS_AS_A_PHASE")


@dataclass(frozen=True, slots=True)
class DataReport:
    """Result of the check.

    Args:
        violations: broken rules.
        transfers: transfers of all steps [count].
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


@dataclass(frozen=True, eq=False)
class _Half:
    """Phases that are judged together: all of a schedule, or those before or behind a cut.

    Args:
        phases: numbers of them.
        before, after: holders of each chunk.
        sums: whether all holders contribute; else they hold the same data.
        stale: whether ranks that are no holders have partial sums at the start.
    """

    phases: range
    before: Any
    after: Any
    sums: bool
    stale: bool = False


def check_data(
    schedule: Schedule,
    *,
    num_chunks: int | None = None,
    seed: int = 0,
    progress: ProgressCallback = no_progress,
) -> DataReport:
    """Judge the data of a schedule.

    Args:
        schedule: to be judged.
        num_chunks: play a seeded sample of that many chunks; None: judge all.
        seed: seed of the sample.
        progress: called after every part of the work.
    Raises: ParameterError: a sample of no chunks.
    """
    if num_chunks is not None and num_chunks < 1:
        raise ParameterError(f"verify: num_chunks={num_chunks} is below 1; try 1, or omit it")
    if seed < 0:
        raise ParameterError(f"verify: seed={seed} is negative; try 0")
    schedule = schedule.member or schedule  # all groups do the same
    c, steps = schedule.collective, schedule.steps
    if (malformed := _malformed(steps, c)) is not None:
        return DataReport((malformed,), 0, 0, False, "", ())
    whole = _Half(range(len(steps.phases)), c.before, c.after, c.reduces or c.keeps_apart)
    if num_chunks is not None and num_chunks < c.num_chunks:
        chunks = np.sort(np.random.default_rng(seed).choice(c.num_chunks, size=num_chunks, replace=False))
        report = _listed(schedule, whole, chunks, progress)
        return replace(report, exhaustive=False, how="sample", notes=(f"sample of seed {seed}", *report.notes))
    halves = _halves(schedule)
    reports = [_judged(schedule, half, progress) for half in halves]
    if len(halves) > 1 and any(report.violations for report in reports):  # wrong, or not cut as it says
        return _judged(schedule, whole, progress)
    how = "; ".join(dict.fromkeys(report.how for report in reports))
    return replace(reports[0], transfers=sum(report.transfers for report in reports), how=how)


def never_too_large(schedule: Schedule) -> bool:
    """Whether data are judged, however many transfers there are: by orbits, or since few chunks are carried."""
    schedule = schedule.member or schedule
    return all(
        _chunks_carried(schedule, half.phases) <= CHUNKS_CARRIED or _by_orbits(schedule, half)
        for half in _halves(schedule)
    )


def _halves(schedule: Schedule) -> list[_Half]:
    """Phases that can be judged apart: where a schedule says that owners of chunks have the sums of all contributions."""
    c, steps, sums = schedule.collective, schedule.steps, schedule.collective.reduces or schedule.collective.keeps_apart
    every = range(len(steps.phases))
    if schedule.cut is None or not c.reduces or not 0 < schedule.cut < len(every):
        return [_Half(every, c.before, c.after, sums)]
    owners = Holders("owner", owners=steps.owners)
    first, second = every[: schedule.cut], every[schedule.cut :]
    return [_Half(first, c.before, owners, sums), _Half(second, owners, c.after, False, stale=True)]


def _malformed(steps: Steps, c: Collective) -> Violation | None:
    """The first row of a phase that the collective does not allow; listed transfers are checked as they are played."""
    if (steps.space.num_ranks, steps.num_chunks) != (c.num_ranks, c.num_chunks):
        found = f"{steps.space.num_ranks} ranks, {steps.num_chunks} chunks"
        return Violation("rank_unknown", -1, -1, "phases", f"{c.num_ranks} ranks, {c.num_chunks} chunks", found)
    for phase, start in zip(steps.phases, steps.starts, strict=False):
        if isinstance(phase.rows, PhaseRows):
            largest = np.maximum(phase.rows.parts, phase.rows.parts + (phase.count - 1) * phase.rows.parts_step)
            if (found_row := first_malformed_row(phase.rows.op, largest, start, c)) is not None:
                return found_row
    return None


def _by_orbits(schedule: Schedule, half: _Half) -> bool:
    """Whether one chunk of each orbit is played, from phases: where that is less work than listing the transfers."""
    steps = schedule.steps
    rows = [one for at in half.phases if isinstance(one := steps.phases[at].rows, PhaseRows)]
    if len(rows) < len(half.phases) or not (isinstance(half.before, Holders) and isinstance(half.after, Holders)):
        return False
    of_an_orbit = sum(map(len, rows)) + schedule.collective.num_ranks + len(rows) * CHUNKS_AS_A_PHASE
    carried = _chunks_carried(schedule, half.phases)
    fewer = carried + schedule.collective.num_chunks < num_orbits(steps, half.phases) * of_an_orbit
    if fewer and carried <= CHUNKS_CARRIED:
        return False
    return holders_move(steps, half.phases, half.before) and holders_move(steps, half.phases, half.after)


def _chunks_carried(schedule: Schedule, phases: Sequence[int]) -> int:
    """Chunks that all transfers of some phases carry together [count]."""
    steps, total = schedule.steps, 0
    for number in phases:
        phase = steps.phases[number]
        if not isinstance(phase.rows, PhaseRows):
            first = steps.starts[number]
            listed = range(first, first + (1 if phase.same_but_chunks else phase.count))
            of_listed = sum(int(steps(i).chunk_n.sum(dtype=np.int64)) for i in listed)
            total += of_listed * (phase.count // max(1, len(listed)))
            continue
        rows = phase.rows
        each = rows.unit_count.astype(np.int64).copy()
        for at, part in enumerate(steps.parts):
            for d in part.digits:
                each[rows.part == at] *= rows.count[rows.part == at, d]
        total += phase.count * steps.images(phase) * int(each.sum())
    return total


def _judged(schedule: Schedule, half: _Half, progress: ProgressCallback) -> DataReport:
    """The report on some phases, by orbits or by lists."""
    if _by_orbits(schedule, half):
        return _proven(schedule, half, progress)
    return _listed(schedule, half, None, progress)


def _proven(schedule: Schedule, half: _Half, progress: ProgressCallback) -> DataReport:
    """Play one chunk of each orbit."""
    c, steps = schedule.collective, schedule.steps
    many, findings = num_orbits(steps, half.phases), _Findings(schedule, half)
    for number, orbit in enumerate(orbits(steps, half.phases)):
        free = free_digits(steps, half.phases, steps.parts[orbit.part])
        events = steps.events(orbit.part, orbit.unit, orbit.label, half.phases, free if any(free) else None)
        if any(free):
            _check_images(schedule, half, orbit, free, events, findings)
        else:
            before, after = (_of_one_chunk(who, orbit.chunk, steps) for who in (half.before, half.after))
            findings.add_played(_play_events(events, before, after, half, c), events, None, np.array([orbit.chunk]))
        progress("follow the data", number + 1, many)
    transfers = sum(map(steps.transfers_of, half.phases))
    some = "one" if many == 1 else f"{many:,}"
    how = f"{some} of {c.num_chunks:,} chunks played, which stand for all by translation"
    return DataReport(findings.violations(), transfers, c.num_chunks, True, how, findings.notes())


def _play_events(events: ChunkEvents, before: Any, after: Any, half: _Half, c: Collective) -> Any:
    """What `play` returns for one chunk.

    Args:
        events: of the chunk.
        before, after: its holders, places, as of `play`.
        half: of the phases.
        c: collective.
    """
    starts, rows = np.array([0, len(events)]), np.arange(len(events), dtype=np.int32)
    apart = c.keeps_apart and half.sums
    return play_events(
        events, starts, rows, before, after, sums=half.sums, num_ranks=c.num_ranks, apart=apart, stale=half.stale
    )


def _of_one_chunk(holders: Any, chunk: int, steps: Steps) -> tuple[int, IntArray, np.ndarray]:
    """Holders of one chunk as `play` takes them, by their places."""
    kind, one, table = columns_of(holders, np.array([chunk]), steps.space.num_ranks)
    return kind, one if steps.space.places is None else steps.space.places[one], table


def _check_images(
    schedule: Schedule, half: _Half, orbit: Orbit, free: Sequence[bool], events: ChunkEvents, findings: _Findings
) -> None:
    """Judge a chunk that the translations of some digits leave as it is: ranks that differ in these hold images of one value.

    Args:
        schedule: to be judged.
        half: its phases; all ranks hold the chunk before and after.
        orbit: of the chunk.
        free: digits whose translations leave the chunk as it is.
        events: of the chunk, with 0 in these digits.
        findings: filled.
    """
    c, space = schedule.collective, schedule.steps.space
    no_rank = TABLE, NO_RANKS, np.zeros((1, c.num_ranks), bool)
    played = _play_events(events, (ALL, NO_RANKS, NO_TABLE), no_rank, half, c)
    findings.add_played(played, events, None, np.array([orbit.chunk]))
    due = c.num_ranks if half.sums else 1
    places = np.arange(c.num_ranks)
    targets = np.flatnonzero((space.digits(places)[:, np.array(free)] == 0).all(axis=1))
    until, origin = copied_from(events, c.num_ranks)
    for source in np.unique(origin[targets]).tolist():
        holders = contributors(schedule.steps, orbit, until, source, due)
        if holders is None or len(holders) != due:
            for place in targets[origin[targets] == source].tolist():
                findings.add_wrong(orbit.chunk, int(space.ranks(np.array([place]))[0]), c.num_ranks // len(targets))


def _listed(schedule: Schedule, half: _Half, chunks: IntArray | None, progress: ProgressCallback) -> DataReport:
    """Play every chunk, or some, from lists of all transfers.

    Args:
        schedule: to be judged.
        half: its phases.
        chunks: to be played, ascending; None: all.
        progress: called after every part of the work.
    """
    c, findings = schedule.collective, _Findings(schedule, half)
    carried = _chunks_carried(schedule, half.phases)
    if chunks is None and carried > CHUNKS_CARRIED:
        text = f"{carried:,} chunks carried by transfers, which no translations make of few; at most {CHUNKS_CARRIED:,}"
        return DataReport((Violation("not_judged", -1, -1, text, "a proof", "none"),), 0, 0, False, "", ())
    lists = list[tuple[int, Transfers]]()
    for i, transfers in _steps_of(schedule, half.phases):
        if (broken := first_malformed(transfers, i, c)) is not None:
            return DataReport((broken,), sum([len(one) for _, one in lists]), 0, False, "", ())
        lists.append((i, transfers))
    every = concatenate_transfers(one for _, one in lists) if lists else Transfers.of([], [], [], [], [])
    step = np.repeat(np.array([i for i, _ in lists], np.int32), [len(one) for _, one in lists])
    distance = np.ones(len(every), np.int32) if every.chunk_step is None else every.chunk_step
    events = ChunkEvents(step, every.src, every.dst, every.op, parts_of(every))
    wanted = np.arange(c.num_chunks) if chunks is None else chunks
    together = max(1, len(wanted) * EVENTS_TOGETHER // max(1, carried))
    for first, last in _ranges_of(wanted, together):
        starts, rows = rows_by_chunk.for_turns(carried)(every.chunk_lo, every.chunk_n, distance, first, last)
        block = np.arange(first, last)
        before, after = (columns_of(who, block, c.num_ranks) for who in (half.before, half.after))
        apart = c.keeps_apart and half.sums
        result = play_events(
            events, starts, rows, before, after, sums=half.sums, num_ranks=c.num_ranks, apart=apart, stale=half.stale
        )
        findings.add_played(result, events, rows, block)
        progress("follow the data", last, c.num_chunks)
    return DataReport(findings.violations(), len(every), len(wanted), True, "every chunk played", findings.notes())


def _ranges_of(chunks: IntArray, together: int) -> Iterator[tuple[int, int]]:
    """First and last chunk of blocks of neighbours, that many at most."""
    for run in np.split(chunks, np.flatnonzero(np.diff(chunks) != 1) + 1):
        for at in range(0, len(run), together):
            yield int(run[at]), int(run[min(at + together, len(run)) - 1]) + 1


def _steps_of(schedule: Schedule, phases: range) -> Iterator[tuple[int, Transfers]]:
    """Number and transfers of every step of some phases."""
    starts = schedule.steps.starts
    for i in range(starts[phases.start], starts[phases.stop]):
        yield i, schedule.step(i)


class _Findings:
    """What is wrong with the chunks that were played.

    Args:
        schedule: that is judged.
        half: its phases; what is wrong with some of them is counted, and explained where all are judged.
    """

    RULES: ClassVar = {
        OVERWRITTEN: ("chunk_overwritten", "dst", "one copy, or sums alone", "several writes"),
        NOT_HELD: ("sent_before_held", "src", "data to send", "none yet"),
        OTHER_SIZE: ("size_wrong", "src", "as many contributions as it has", ""),
    }
    """Rule, the end of a transfer where it is broken, what is due, what is found; "": a number of contributions."""

    def __init__(self, schedule: Schedule, half: _Half) -> None:
        self._schedule = schedule
        self._explains = len(half.phases) == len(schedule.steps.phases)
        self._broken: dict[int, Violation] = {}
        self._wrong: list[tuple[int, int]] = []
        self._results, self._ranks = 0, set[int]()

    def add_played(self, result: Any, events: ChunkEvents, rows: IntArray | None, chunks: IntArray) -> None:
        """Add what `play` found.

        Args:
            result: of `play`.
            events: transfers, as it took them.
            rows: of each entry; None: the same number, and senders and receivers are places.
            chunks: that were played.
        """
        broken, wrong, results, wrong_rank = result
        ranks = self._schedule.steps.space.ranks if rows is None else np.asarray
        for number, (rule, end, expected, said) in self.RULES.items():
            count, entry, chunk, there = broken[number].tolist()
            if not count:
                continue
            row = entry if rows is None else int(rows[entry])
            rank = int(ranks(getattr(events, end)[[row]])[0])
            text = said or f"{events.parts[row]} sent of {there}"
            where = f"chunk {chunks[chunk]} of rank {rank}"
            one = Violation(rule, int(events.step[row]), -1, where, expected, text, count)
            known = self._broken.get(number)
            if known is not None:
                one = replace(one if one.step < known.step else known, count=count + known.count)
            self._broken[number] = one
        for at in np.flatnonzero(wrong >= 0).tolist():
            self._wrong.append((int(chunks[at]), int(ranks(wrong[[at]])[0])))
        self._results += int(results)
        self._ranks |= set(np.asarray(ranks(np.flatnonzero(wrong_rank))).tolist())

    def add_wrong(self, chunk: int, rank: int, results: int) -> None:
        """Add a wrong result, of one rank and of as many as have images of it.

        Args:
            chunk: wrong.
            rank: one that ends with it.
            results: that are wrong with it [count].
        """
        self._wrong.append((chunk, rank))
        self._results += results
        self._ranks |= set(range(len(self._ranks), len(self._ranks) + results))

    def violations(self) -> tuple[Violation, ...]:
        """All broken rules, each once with how often it is broken."""
        named: Sequence[Violation] = ()
        if self._results and self._explains:
            named = explained(self._schedule, self._wrong[:SHOWN], self._results)
        elif self._results:
            chunk, rank = self._wrong[0]
            where = f"chunk {chunk} at rank {rank}"
            named = [
                Violation("contribution_missing", -1, -1, where, "each contribution once", "others", self._results)
            ]
        return (*(self._broken[number] for number in sorted(self._broken)), *named)

    def notes(self) -> tuple[str, ...]:
        """How many ranks end with a wrong result."""
        if not self._results:
            return ()
        c = self._schedule.collective
        return (f"{len(self._ranks)} of {c.num_ranks} nodes end with a wrong {'sum' if c.reduces else 'result'}",)
