"""From both ends: a schedule from above, a bound from below, and fixed numbers of rounds in between.

rounds = bound, bound + 1, ..., best - 1, each a question of the task to the solver
    found    the schedule is the new best
    none     the bound is one higher
    unknown  the next number of rounds; once through, all over again with twice the effort
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from opticcl.synthesis.counting import Bound
from opticcl.synthesis.draft import Draft
from opticcl.synthesis.solver import Clock
from opticcl.units import counted

__all__ = ["MOST_EFFORT", "Answer", "Gap", "Task", "Told", "Trial", "close"]

FIRST_EFFORT, MOST_EFFORT = 1.0, 256.0  # deterministic time of the solver, about seconds of a quiet core

Told = Callable[[str], None]
"""Told in words what is being tried."""


class Trial(NamedTuple):
    """One question to the solver.

    Args:
        rounds: whether there is a schedule of so many [count].
        how: the model.
        answer: found, none (there is no schedule), no light (only one without wavelengths) or unknown.
        seconds: wall-clock time [s].
    """

    rounds: int
    how: str
    answer: str
    seconds: float


class Answer(NamedTuple):
    """What the solver says to one question.

    Args:
        how: the model.
        answer: see `Trial`.
        draft: the schedule, with light, where one was found.
        why: what a "none" proves, in words.
    """

    how: str
    answer: str
    draft: Draft
    why: str = ""


@dataclass(slots=True)
class Gap:
    """What is known while the search goes on.

    Args:
        draft: the best schedule so far, with light.
        how: what made it.
        bound: what no schedule can beat.
        trials: questions so far.
    """

    draft: Draft
    how: str
    bound: Bound
    trials: list[Trial] = field(default_factory=list)

    @property
    def closed(self) -> bool:
        """Whether the schedule is as good as any can be."""
        return len(self.draft) <= self.bound.rounds

    def __str__(self) -> str:
        best = f", best {len(self.draft)} ({self.how})" if self.draft else ""
        return f"bound {self.bound.rounds}{best}"


class Task(Protocol):
    """What the solver can be asked."""

    def start(self, clock: Clock, told: Told) -> Gap:
        """The best constructed schedule, and the bound."""

    def ask(self, rounds: int, effort: float, clock: Clock, gap: Gap) -> Iterator[Answer]:
        """Is there a schedule of that many rounds? Model after model, until one knows."""


def close(task: Task, gap: Gap, clock: Clock, told: Told, most_effort: float = MOST_EFFORT) -> None:
    """Narrow the gap until it is closed, the time is over or the effort exhausted.

    Args: most_effort: deterministic time of a single question at most, about seconds of a quiet core.
    """
    effort = FIRST_EFFORT
    while not gap.closed and clock.left_s > 0 and effort <= most_effort:
        asked = False
        for rounds in range(gap.bound.rounds, len(gap.draft)):
            if clock.left_s <= 0 or not gap.bound.rounds <= rounds < len(gap.draft):
                break
            told(f"{counted(rounds, 'round')}? {gap}, effort {effort:g}")
            asked |= _ask(task, rounds, effort, clock, gap)
        if not asked:  # nothing is left that could be asked
            return
        effort *= 2


def _ask(task: Task, rounds: int, effort: float, clock: Clock, gap: Gap) -> bool:
    """One number of rounds; returns whether any model was asked."""
    asked, begun = False, time.monotonic()
    for answer in task.ask(rounds, effort, clock, gap):
        asked = True
        gap.trials.append(Trial(rounds, answer.how, answer.answer, time.monotonic() - begun))
        begun = time.monotonic()
        if answer.answer == "found":
            gap.draft, gap.how = answer.draft, answer.how
            break
        if answer.answer == "none" and rounds == gap.bound.rounds:
            gap.bound = Bound("search", rounds + 1, answer.why)
            break
        if clock.left_s <= 0:
            break
    return asked
