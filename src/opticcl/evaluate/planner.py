"""The fastest plan for every message size, each algorithm compiled and judged at most once.

A plan's time for any size follows from one look at its steps, and a bound tells which algorithms need no look; so every
message size has its own fastest algorithm. Plans are judged when somebody asks for the verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from math import inf

import numpy as np

from opticcl.circuits import lower
from opticcl.collective import Request
from opticcl.errors import UnsupportedError
from opticcl.fabric import FABRICS
from opticcl.ir import CircuitPlan, Fabric, Schedule, Verdict
from opticcl.registry import canonical, parse_call, write_call
from opticcl.schedule import ALGORITHMS, all_variants, generate, reason_declined
from opticcl.simulate import Assumptions, Profile, assumptions, profile, schedule_bound_line, schedule_bound_s
from opticcl.verify.optics import check_optics
from opticcl.verify.semantics import SemanticsReport, check_semantics

__all__ = ["Choice", "Planner"]

FOLLOWED, FOLLOWED_ALL = 64, 1 << 18  # chunks that are followed where (rank, chunk) pairs are more than that
REMEMBERED_RANKS, REMEMBERED_STEPS = 2048, 80  # what fits in memory many times
MANY_NODES, FEW_CLASSES = 8192, 10  # above so many nodes auto looks only at schedules of so few unlike steps
CHEAP_CLASSES = 5  # unlike steps of a schedule that are looked at before any bound is


class Choice:
    """All algorithms that do a collective on a fabric; the fastest for each size."""

    def __init__(
        self, where: Fabric, wanted: Request, algorithm: str, assumed: Assumptions, resolution_s: float, judge: _Judge
    ) -> None:
        self.fabric, self._assumed, self._resolution_s, self._judge = where, assumed, resolution_s, judge
        self.collective, self.declined = wanted.name, ""
        named = canonical(algorithm) != "auto"
        if named and (reason := reason_declined(algorithm, wanted, where)) is not None:
            self.declined, named = reason, False
        schedules = []
        for name in (algorithm,) if named else all_variants(wanted, where):
            with suppress(UnsupportedError):
                schedules.append(generate(name, wanted, where))
        if where.num_nodes > MANY_NODES and not named:
            schedules = _few_unlike_steps(schedules, FABRICS.get(where.name).own)
        self._candidates = [_Candidate(schedule, where, assumed) for schedule in schedules]
        self._alone = len(schedules) == 1
        self._best: dict[int, tuple[float, int]] = {}
        self._verdicts: dict[int, Verdict] = {}

    def best(self, size_bytes: int) -> tuple[float, int]:
        """Time of the fastest [s], and which it is.

        Raises: UnsupportedError: the fabric can carry no algorithm.
        """
        if size_bytes not in self._best:
            self._best[size_bytes] = self._find(size_bytes)
        return self._best[size_bytes]

    def plan(self, which: int) -> CircuitPlan:
        """The plan that `best` names."""
        times = self._candidates[which].profile
        assert times is not None
        return times.plan

    def verdict(self, which: int) -> Verdict:
        """What the judge says of it."""
        if which not in self._verdicts:
            self._verdicts[which] = self._judge(self.plan(which))
        return self._verdicts[which]

    def _find(self, size_bytes: int) -> tuple[float, int]:
        """Every candidate is looked at as long as it may be the fastest; those of few unlike steps come first."""
        best, which = inf, -1
        for i in sorted(range(len(self._candidates)), key=lambda i: self._candidates[i].num_classes):
            candidate = self._candidates[i]
            wanted = best - self._resolution_s
            if not self._alone and candidate.least_s(size_bytes, wanted) >= wanted:
                continue
            if candidate.profile is not None and (took := candidate.profile.timeline(size_bytes).total_s) < best:
                best, which = took, i
        if which < 0:
            what, where = self.collective, self.fabric
            raise UnsupportedError(f"no algorithm does {what} on {where.name} with {where.num_nodes} nodes")
        return best, which


def _few_unlike_steps(schedules: list[Schedule], own: str) -> list[Schedule]:
    """What is looked at on very many nodes, where a step is a hundred thousand transfers: the algorithm of the fabric's
    paper, and those of few unlike steps; all of them if there are none such."""
    kept = [s for s in schedules if s.name == own or len(s.step_classes()) <= FEW_CLASSES]
    return kept or schedules


class _Candidate:
    """An algorithm that may be the fastest: what it takes at least, and, once somebody asks, what it takes."""

    def __init__(self, schedule: Schedule, where: Fabric, assumed: Assumptions) -> None:
        self._schedule, self._fabric, self._assumed = _remembering(schedule), where, assumed
        self.num_classes = len(schedule.step_classes())
        self._changes_cost = assumed.initial == "cold" or assumed.reconfiguration_charge == "every_step"
        self._line: tuple[float, float] | None = None

    def least_s(self, size_bytes: int, enough_s: float) -> float:
        """What it takes at least; any time above `enough_s` is enough to know [s].

        A bound on its steps comes first, then, with the circuits of its first steps looked at, a sharper one.
        """
        if "profile" in self.__dict__ or self.num_classes <= CHEAP_CLASSES:
            return 0.0
        if self._line is None:
            bound = schedule_bound_s(
                self._schedule, self._fabric, [size_bytes], changes_cost=self._changes_cost, stop_above_s=enough_s
            )
            if bound >= enough_s:
                return bound
            self._line = self._bound_line(self._schedule)
        bound = self._line[0] + self._line[1] * size_bytes
        if bound >= enough_s:
            return bound
        if self._probe is None:
            return inf
        first, (fixed, a_byte) = self._probe
        return bound - fixed - a_byte * size_bytes + first.timeline(size_bytes).total_s

    @cached_property
    def profile(self) -> Profile | None:
        """What its time is made of; None if the fabric cannot carry it."""
        with suppress(UnsupportedError):
            return profile(lower(self._fabric, self._schedule), self._assumed)
        return None

    def _bound_line(self, schedule: Schedule) -> tuple[float, float]:
        """What a schedule takes at least: so long [s], and so long for each byte [s]."""
        return schedule_bound_line(schedule, self._fabric, changes_cost=self._changes_cost)

    @cached_property
    def _probe(self) -> tuple[Profile, tuple[float, float]] | None:
        """Times of the first run of equal steps, and what the bound says of it; None if the fabric cannot carry it."""
        steps = self._schedule.step_classes()[0]
        first = replace(self._schedule, num_steps=len(steps), classes=(steps,))
        try:
            times = profile(lower(self._fabric, first), self._assumed)
        except UnsupportedError:
            return None
        nothing = replace(first.collective, name="send_recv", shift=0)  # a part is not held to the bound of the whole
        part = replace(times, plan=replace(times.plan, schedule=replace(first, collective=nothing)))
        return part, self._bound_line(first)


def _silent(what: str, done: int, total: int) -> None:
    """Nobody wants to know step by step."""


def _remembering(schedule: Schedule) -> Schedule:
    """The same schedule; of a small one the steps that are looked at several times are made once."""
    if schedule.collective.num_ranks > REMEMBERED_RANKS or len(schedule.step_classes()) > REMEMBERED_STEPS:
        return schedule
    return replace(schedule, step=lru_cache(REMEMBERED_STEPS)(schedule.step))


class _Judge:
    """Verdicts; the data of a schedule that several fabrics carry are followed once."""

    def __init__(self) -> None:
        self._followed: dict[bytes, SemanticsReport] = {}

    def __call__(self, plan: CircuitPlan) -> Verdict:
        """What `verify` says of the plan."""
        key = _fingerprint(plan.schedule)
        if key not in self._followed:
            c = plan.schedule.collective
            chunks = FOLLOWED if c.num_chunks > FOLLOWED and c.num_ranks * c.num_chunks > FOLLOWED_ALL else None
            self._followed[key] = check_semantics(plan.schedule, num_chunks=chunks, seed=0, progress=_silent)
        data, light = self._followed[key], check_optics(plan, progress=_silent)
        return Verdict(
            data.violations + light.violations,
            data.transfers,
            light.circuits,
            data.chunks,
            data.exhaustive,
            data.notes + light.notes,
        )


def _fingerprint(schedule: Schedule) -> bytes:
    """The same for two schedules only if what they promise and every transfer of every step are; of a long one its own."""
    c = schedule.collective
    if schedule.num_steps > REMEMBERED_STEPS:
        return id(schedule).to_bytes(8, "little")
    digest = blake2b(repr((c.name, c.num_ranks, c.num_chunks, c.root, c.shift, schedule.num_steps)).encode())
    if c.owner is not None:
        digest.update(c.owner.tobytes())
    for i in range(schedule.num_steps):
        step = schedule.step(i)
        for column in (step.src, step.dst, step.chunk_lo, step.chunk_n, step.op, step.parts):
            digest.update(b"-" if column is None else np.ascontiguousarray(column).data)
        digest.update(b"|")
    return digest.digest()


class Planner:
    """Plans for any fabric, collective and size, kept for the next who asks.

    Args:
        algorithm: a name for whatever it can do, and the fastest for the rest; auto: the fastest for everything.
        assumed: what times rest on.
        resolution_s: what a message may take longer than it must: no faster plan is looked for that could save less; with 0
            every message has the very fastest [s].
        progress: told what is being done.
    """

    def __init__(
        self,
        algorithm: str = "auto",
        assumed: Assumptions | None = None,
        *,
        resolution_s: float = 0.0,
        progress: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._resolution_s = resolution_s
        self.algorithm, self.assumed, self.progress = algorithm, assumed or assumptions(), progress
        self.name = parse_call(algorithm)[0]
        if self.name != "auto":
            ALGORITHMS.get(self.name)  # an unknown name is refused here, and not by each fabric
        self._judge = _Judge()
        self._choices: dict[tuple[str, tuple[int, ...], Request], Choice] = {}

    def choice(self, where: Fabric, wanted: Request) -> Choice:
        """What there is to choose from."""
        parameters = {k: v for k, v in where.parameters.items() if v is not None}
        ranks = () if where.nodes is None else tuple(where.nodes.tolist())
        key = write_call(where.name, parameters), ranks, wanted
        if key not in self._choices:
            self.progress(f"look for the fastest {wanted.name} of {where.num_nodes:,} nodes on {where.name}")
            self._choices[key] = Choice(where, wanted, self.algorithm, self.assumed, self._resolution_s, self._judge)
        return self._choices[key]
