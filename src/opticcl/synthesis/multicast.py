"""Multicasts as a problem of the search: pieces are copied from the ranks that hold them to the ranks that need them.

direct      every piece directly from an initial holder. R rounds of L wavelengths are then one round of R L wavelengths,
            and the remaining problem is a colouring of circuits, which the solver decides in about a second
relayed     the whole of Algorithm 1, where ranks relay what they have received. Infeasibility is a proof for schedules on the
            given routes in which ranks relay only what they need, and for all in one round on all routes
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from opticcl.ir import ProgressCallback
from opticcl.synthesis.bounds import multicast_bounds, tightest
from opticcl.synthesis.hints import candidates, direct_demands
from opticcl.synthesis.light import assign_by_solver, assign_wavelengths
from opticcl.synthesis.model import MOST_VARIABLES, num_variables, solve_multicast
from opticcl.synthesis.optimality_gap import OptimalityGap, SolverAnswer, exhausted
from opticcl.synthesis.packing import Demand, pack
from opticcl.synthesis.partial_schedule import PieceSend, SendRounds
from opticcl.synthesis.product import product_rounds
from opticcl.synthesis.solver import Clock
from opticcl.synthesis.symmetry import symmetric_rounds
from opticcl.synthesis.wafer import Wafer

__all__ = ["Multicast"]


@dataclass(frozen=True, slots=True, eq=False)
class Multicast:
    """Copies and moves.

    Args:
        wafer: optical resources of the job.
        before, after: which rank holds which piece at the start and at the end, bool (pieces, ranks).
        seed: seed of everything random.
    """

    wafer: Wafer
    before: npt.NDArray[np.bool_]
    after: npt.NDArray[np.bool_]
    seed: int

    def start(self, clock: Clock, report: ProgressCallback) -> OptimalityGap:
        """The best constructed schedule."""
        bound = tightest(list(multicast_bounds(self.wafer, self.before, self.after)))
        gap = OptimalityGap([], "nothing to do", bound)
        if not (self.after & ~self.before).any():
            return gap
        for name, make in self._constructions(bound.rounds):
            if gap.schedule and (gap.closed or clock.remaining_s <= 0):
                break
            report(f"{name}: {gap}")
            schedule = make(len(gap.schedule) - 1 if gap.schedule else 1 << 30)
            if schedule is not None:
                gap.schedule, gap.how = schedule, name
        return gap

    def _constructions(self, bound: int) -> Iterator[tuple[str, Callable[[int], SendRounds | None]]]:
        """Names, and functions that construct a schedule, or None if it takes more than the given number of rounds."""
        held, wanted = self.before, self.after
        yield "rows and columns", lambda most: product_rounds(self.wafer, held, wanted)
        for name, demands in candidates(self.wafer, held, wanted, self.seed, bound):
            yield name, partial(_packed, self.wafer, held, demands)
        yield "symmetric", lambda most: symmetric_rounds(self.wafer, held, wanted, self.seed, bound, most)

    def attempt(self, rounds: int, effort: float, clock: Clock, gap: OptimalityGap) -> Iterator[SolverAnswer]:
        """Direct, then relayed.

        Args:
            rounds: of the schedule [count].
            effort: share of the remaining time to spend.
            clock: time limit and interruption.
            gap: best schedule and bound so far.
        """
        sends = [self._on_first_route(demand) for demand in direct_demands(self.wafer, self.before, self.after)]
        busiest = np.bincount([send.src for send in sends], minlength=self.wafer.num_ranks)
        if (busiest <= rounds * self.wafer.lasers.sum(axis=1)).all():
            schedule = self._direct_rounds(sends, rounds, effort, clock)
            yield SolverAnswer("direct", "found" if schedule else "unknown", schedule or [])
        relays = rounds > 1 and bool(((self.after & ~self.before).sum(axis=1) > 1).any())
        if num_variables(self.before, self.after, rounds, not relays) > MOST_VARIABLES:
            return
        answer, schedule = solve_multicast(
            rounds, self.wafer, self.before, self.after, clock,
            effort=effort, seed=self.seed, direct=not relays, hint=gap.schedule,
        )  # fmt: skip
        light = assign_wavelengths(self.wafer, schedule, clock, self.seed, effort) if answer else None
        result = {None: "unknown", False: "none", True: "found" if light else "no wavelengths"}[answer]
        every = self._whole(rounds)
        how = "relayed" if relays else "direct"
        yield SolverAnswer(how, result, light or [], exhausted(rounds, every), every)

    def _whole(self, rounds: int) -> bool:
        """Whether the model has all routes, and all relays: those of ranks that need every piece."""
        return self.wafer.all_routes and (rounds == 1 or bool((self.before | self.after).all()))

    def _direct_rounds(self, sends: list[PieceSend], rounds: int, effort: float, clock: Clock) -> SendRounds | None:
        """All sends in one round with `rounds` times the wavelengths, cut into rounds afterwards."""
        stretched = replace(
            self.wafer, lasers=np.tile(self.wafer.lasers, rounds), photodiodes=np.tile(self.wafer.photodiodes, rounds)
        )
        light = assign_by_solver(stretched, sends, clock, self.seed, effort)
        if light is None:
            return None
        schedule: SendRounds = [[] for _ in range(rounds)]
        for send in light:
            number, wavelength = divmod(send.wavelength, self.wafer.num_wavelengths)
            schedule[number].append(send._replace(wavelength=wavelength))
        return schedule

    def _on_first_route(self, demand: Demand) -> PieceSend:
        src = demand.senders[0]
        return PieceSend(demand.piece, src, demand.dst, path=self.wafer.routes[src, demand.dst][0])


def _packed(wafer: Wafer, holds: npt.NDArray[np.bool_], demands: list[Demand], most: int) -> SendRounds | None:
    return pack(wafer, holds, demands, most=most)
