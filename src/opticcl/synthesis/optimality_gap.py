"""The optimality gap between the best schedule and the lower bound, and the loop that narrows it.

For rounds = bound, bound + 1, ..., best - 1 the search problem is decided by the solver:
    found    the schedule is the new best
    none     the bound is raised by one
    unknown  the next number of rounds; after the last one, all again with twice the effort
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from opticcl.ir import ProgressCallback
from opticcl.synthesis.counting import Bound
from opticcl.synthesis.partial_schedule import SendRounds
from opticcl.synthesis.solver import Clock
from opticcl.units import counted

__all__ = ["MOST_EFFORT", "OptimalityGap", "SearchProblem", "SolverAnswer", "Trial", "close_gap", "exhausted"]

FIRST_EFFORT, MOST_EFFORT = 1.0, 256.0  # deterministic time of the solver, about seconds of an idle core
PROOF_EFFORT = 16.0  # the same, for a proof on all routes


class Trial(NamedTuple):
    """One call of the solver.

    Args:
        rounds: number of rounds that was decided [count].
        how: the model.
        answer: found, none (no schedule exists), no wavelengths (only a schedule without wavelengths) or unknown.
        seconds: wall-clock time [s].
    """

    rounds: int
    how: str
    answer: str
    seconds: float


class SolverAnswer(NamedTuple):
    """Result of one model.

    Args:
        how: the model.
        answer: see `Trial`.
        schedule: the schedule with wavelengths, where one was found.
        why: what a "none" proves, in words.
        of_every_schedule: whether it proves that for every schedule, on any routes and with any relays.
    """

    how: str
    answer: str
    schedule: SendRounds
    why: str = ""
    of_every_schedule: bool = False


@dataclass(slots=True)
class OptimalityGap:
    """State of the search.

    Args:
        schedule: the best schedule so far, with wavelengths.
        how: what made it.
        bound: best lower bound so far for schedules on the given routes.
        trials: calls of the solver so far.
        proven: best lower bound so far for every schedule.
        fewer: rounds of a schedule on other routes; 0: none has fewer, as far as is known [count].
    """

    schedule: SendRounds
    how: str
    bound: Bound
    trials: list[Trial] = field(default_factory=list)
    proven: Bound = field(init=False)
    fewer: int = 0

    def __post_init__(self) -> None:
        self.proven = self.bound

    @property
    def closed(self) -> bool:
        """Whether the schedule is proven optimal on the given routes."""
        return len(self.schedule) <= self.bound.rounds

    def prove_for_all(self, problem: SearchProblem, clock: Clock, report: ProgressCallback) -> None:
        """Raise the bound of every schedule to that of the given routes, as far as all routes have no schedule either.

        A schedule that is found on other routes is not taken; its rounds are kept in `fewer`.

        Args:
            problem: the same on all routes.
            clock: time limit.
            report: called with the state before each call of the solver.
        """
        again, effort = OptimalityGap(self.schedule, self.how, self.proven), FIRST_EFFORT
        while not again.closed and clock.remaining_s > 0 and effort <= PROOF_EFFORT:
            before, rounds = len(again.schedule), again.proven.rounds
            report(f"{counted(rounds, 'round')} on all routes? {again}, effort {effort:g}")
            if not _attempt(problem, rounds, effort, clock, again):
                break  # no model is left
            if len(again.schedule) < before or again.proven.rounds < again.bound.rounds:
                break  # there is a schedule, or there may be one with relays
            effort *= 2 if again.proven.rounds == rounds else 1
        self.trials += [trial._replace(how=f"{trial.how}, all routes") for trial in again.trials]
        self.proven = again.proven
        self.fewer = len(again.schedule) if len(again.schedule) < len(self.schedule) else 0

    def __str__(self) -> str:
        best = f", best {len(self.schedule)} ({self.how})" if self.schedule else ""
        return f"bound {self.bound.rounds}{best}"


class SearchProblem(Protocol):
    """A problem that the search can construct schedules for and decide by the solver."""

    def start(self, clock: Clock, report: ProgressCallback) -> OptimalityGap:
        """The best constructed schedule, and the bound."""

    def attempt(self, rounds: int, effort: float, clock: Clock, gap: OptimalityGap) -> Iterator[SolverAnswer]:
        """Decide whether there is a schedule of `rounds` rounds, model after model.

        Args:
            rounds: number of rounds [count].
            effort: deterministic time of the solver.
            clock: time limit.
            gap: state of the search, for hints.
        """


def exhausted(rounds: int, every: bool) -> str:
    """What a search that finds nothing proves, in words.

    Args:
        rounds: that were searched [count].
        every: whether among all schedules.
    """
    of = "any routes" if every else "the given routes in which ranks relay only what they need"
    return f"search exhausted: no schedule of {counted(rounds, 'round')} on {of}"


def close_gap(
    problem: SearchProblem,
    gap: OptimalityGap,
    clock: Clock,
    report: ProgressCallback,
    most_effort: float = MOST_EFFORT,
) -> None:
    """Narrow the gap until it is closed, the time limit is reached or the effort is exhausted.

    Args:
        problem: the problem.
        gap: state of the search, which is updated.
        clock: time limit.
        report: called with the state before each call of the solver.
        most_effort: largest deterministic time of one call, about seconds of an idle core.
    """
    effort = FIRST_EFFORT
    while not gap.closed and clock.remaining_s > 0 and effort <= most_effort:
        attempted = False
        for rounds in range(gap.bound.rounds, len(gap.schedule)):
            if clock.remaining_s <= 0 or not gap.bound.rounds <= rounds < len(gap.schedule):
                break
            report(f"{counted(rounds, 'round')}? {gap}, effort {effort:g}")
            attempted |= _attempt(problem, rounds, effort, clock, gap)
        if not attempted:  # no model is left
            return
        effort *= 2


def _attempt(problem: SearchProblem, rounds: int, effort: float, clock: Clock, gap: OptimalityGap) -> bool:
    """Decide one number of rounds; returns whether any model was solved."""
    attempted, begun = False, time.monotonic()
    for answer in problem.attempt(rounds, effort, clock, gap):
        attempted = True
        gap.trials.append(Trial(rounds, answer.how, answer.answer, time.monotonic() - begun))
        begun = time.monotonic()
        if answer.answer == "found":
            gap.schedule, gap.how = answer.schedule, answer.how
            break
        if answer.answer == "none" and rounds == gap.bound.rounds:
            gap.bound = Bound("search", rounds + 1, answer.why)
            if answer.of_every_schedule:
                gap.proven = gap.bound
            break
        if clock.remaining_s <= 0:
            break
    return attempted
