"""Reductions as a problem of the search: pieces whose sum one or several ranks need.

hubs                         up, exchange, down; the gap of each part is closed by itself
reduction, symmetry of q     the reduction model with a symmetry group of order q, largest first; infeasibility is no proof
reduction                    the whole reduction model; infeasibility is a proof
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from opticcl.ir import ProgressCallback, no_progress
from opticcl.synthesis.bounds import reduction_bounds, tightest
from opticcl.synthesis.hub_reduction import HubAssignment, exchange_rounds, hub_candidates
from opticcl.synthesis.light import assign_wavelengths
from opticcl.synthesis.multicast import Multicast
from opticcl.synthesis.optimality_gap import OptimalityGap, SolverAnswer, close_gap, exhausted
from opticcl.synthesis.partial_schedule import SendRounds, concatenated, reversed_as_reduction
from opticcl.synthesis.reduction import MOST_PRODUCTS, num_products, solve_reduction
from opticcl.synthesis.solver import Clock
from opticcl.synthesis.symmetric import translation_orbits
from opticcl.synthesis.wafer import Wafer

__all__ = ["Reduction"]


@dataclass(slots=True, eq=False)
class _Parts:
    """A reduction by hubs and the state of each of its parts.

    Args:
        name: name of the hub assignment.
        up: the multicast from the hubs that becomes the reduction with time reversed, and its gap.
        middle: exchange among the hubs.
        down: the multicast from the hubs, and its gap.
    """

    name: str
    up: tuple[Multicast, OptimalityGap]
    middle: SendRounds
    down: tuple[Multicast, OptimalityGap]

    @property
    def rounds(self) -> int:
        return len(self.middle) + sum(len(gap.schedule) for _, gap in (self.up, self.down))

    @property
    def least(self) -> int:
        return len(self.middle) + sum(gap.bound.rounds for _, gap in (self.up, self.down))

    def schedule(self) -> SendRounds:
        """All rounds."""
        problem, up = self.up
        return concatenated(reversed_as_reduction(up.schedule, problem.wafer), self.middle, self.down[1].schedule)


@dataclass(frozen=True, slots=True, eq=False)
class Reduction:
    """Sums that one or several ranks need.

    Args:
        wafer: optical resources of the job.
        before, after: which rank holds a part of each piece, and which needs the sum, bool (pieces, ranks).
        seed: seed of everything random.
    """

    wafer: Wafer
    before: npt.NDArray[np.bool_]
    after: npt.NDArray[np.bool_]
    seed: int
    _parts: list[_Parts] = field(default_factory=list)
    _ruled_out: set[tuple[int, int]] = field(default_factory=set)  # (rounds, order of the symmetry group)

    def start(self, clock: Clock, report: ProgressCallback) -> OptimalityGap:
        """The best reduction by hubs, each part constructed."""
        bound = tightest(list(reduction_bounds(self.wafer, self.before, self.after)))
        best, how = None, "nothing to do"
        others = (self.before.sum(axis=1)[:, None] - self.before) > 0
        if not (self.after & others).any():
            return OptimalityGap([], how, bound)
        reversed_wafer = self.wafer.time_reversed()
        for hubs in hub_candidates(self.wafer, self.before, self.after):
            if best is not None and (hubs.least >= len(best) or len(best) <= bound.rounds or clock.remaining_s <= 0):
                break
            report(f"{hubs.name}: bound {bound.rounds}" + (f", best {len(best)} ({how})" if best is not None else ""))
            parts = self._try_once(hubs, reversed_wafer, clock)
            if parts is None:
                continue
            self._parts.append(parts)
            if best is None or parts.rounds < len(best):
                best, how = parts.schedule(), hubs.name
        return OptimalityGap(best or [], how, bound)

    def _try_once(self, hubs: HubAssignment, reversed_wafer: Wafer, clock: Clock) -> _Parts | None:
        """Construct each part; None if one cannot be constructed."""
        middle = exchange_rounds(self.wafer, hubs, 1 << 30)
        holds = hubs.flags(self.wafer.num_ranks)
        up = Multicast(reversed_wafer, holds, holds | self.before, self.seed)
        down = Multicast(self.wafer, holds, holds | self.after, self.seed)
        gaps = [problem.start(clock, no_progress) for problem in (up, down)]
        if middle is None or any(gap.bound.rounds and not gap.schedule for gap in gaps):
            return None
        return _Parts(hubs.name, (up, gaps[0]), middle, (down, gaps[1]))

    def attempt(self, rounds: int, effort: float, clock: Clock, gap: OptimalityGap) -> Iterator[SolverAnswer]:
        """By hubs, symmetric, whole.

        Args:
            rounds: of the schedule [count].
            effort: share of the remaining time to spend.
            clock: time limit and interruption.
            gap: best schedule and bound so far.
        """
        for parts in self._parts:
            if parts.least <= rounds < parts.rounds:
                for problem, open_gap in (parts.up, parts.down):
                    close_gap(problem, open_gap, clock, no_progress, effort)
                found = parts.rounds <= rounds
                yield SolverAnswer(parts.name, "found" if found else "unknown", parts.schedule() if found else [])
        pieces, ranks = self.before.shape
        all_ranks = bool(self.before.all() and self.after.all())
        for order in range(ranks if all_ranks else 1, 0, -1):
            if ranks % order or (rounds, order) in self._ruled_out:
                continue
            orbits = translation_orbits(pieces, ranks, order)
            if num_products(rounds, orbits) > MOST_PRODUCTS:
                continue
            answer, schedule = solve_reduction(
                rounds, self.wafer, self.before, self.after, clock, orbits, effort=effort, seed=self.seed
            )
            light = assign_wavelengths(self.wafer, schedule, clock, self.seed, effort) if answer else None
            result = {None: "unknown", False: "none", True: "found" if light else "no wavelengths"}[answer]
            if order > 1 and answer is False:
                self._ruled_out.add((rounds, order))
                result = "none that is symmetric"
            how = f"reduction, symmetry of {order}" if order > 1 else "reduction"
            every = self.wafer.all_routes and (rounds == 1 or all_ranks)
            yield SolverAnswer(how, result, light or [], exhausted(rounds, every), every)
