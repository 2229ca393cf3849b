"""CP-SAT, which the extra `synth` brings: one thread, seeded, by deterministic time, and Ctrl-C ends it with what it has."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from opticcl.errors import UnsupportedError

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

__all__ = ["INSTALL", "Clock", "has_solver", "require_solver", "run"]

INSTALL = "pip install 'opticcl[synth]'"


def has_solver() -> bool:
    """Whether OR-Tools is installed."""
    return importlib.util.find_spec("ortools") is not None


def require_solver() -> None:
    """Go on where OR-Tools is installed.

    Raises: UnsupportedError: it is not.
    """
    if not has_solver():
        raise UnsupportedError(f"synthesize: method=solver needs OR-Tools; {INSTALL}, or take method=constructed")


class Clock:
    """The time that a search has, and whether the user has ended it.

    Args:
        limit_s: wall-clock time [s].
        told: told what is going on, again and again while the solver is at work.
    """

    def __init__(self, limit_s: float, told: Callable[[str], None] = lambda text: None) -> None:
        self._started = time.monotonic()
        self._ends = self._started + limit_s
        self._told, self._text = told, ""
        self.interrupted = False

    def tell(self, text: str) -> None:
        """Tell what is going on."""
        self._text = text
        self.tell_again()

    def tell_again(self) -> None:
        """It is still going on."""
        self._told(f"{self._text}, {self.spent_s:.0f} s")

    @property
    def spent_s(self) -> float:
        """Since the start [s]."""
        return time.monotonic() - self._started

    @property
    def left_s(self) -> float:
        """Until the end [s]; 0 once the user has ended it."""
        return 0.0 if self.interrupted else max(0.0, self._ends - time.monotonic())


def run(model: cp_model.CpModel, clock: Clock, *, effort: float, seed: int) -> tuple[bool | None, cp_model.CpSolver]:
    """Look for one solution.

    Args:
        model: without an objective.
        effort: deterministic time of the solver, about seconds of a quiet core; the clock ends it before, if it must.
        seed: of the solver's choices.
    Returns: (whether there is one, or None if that is not known; the solver, which has its values).

    The search is the same on every run as long as the clock does not end it. It runs in a thread of its own, so that this one
    hears Ctrl-C.
    """
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    known = solver.parameters
    known.num_workers, known.random_seed, known.catch_sigint_signal = 1, seed, False
    known.max_deterministic_time, known.max_time_in_seconds = effort, clock.left_s
    if clock.left_s <= 0:
        return None, solver
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(solver.solve, model)
        while not answer.done():
            try:
                wait([answer], timeout=0.05)
            except KeyboardInterrupt:
                clock.interrupted = True
            clock.tell_again()
            if clock.interrupted:
                solver.stop_search()
    status = answer.result()
    if status == cp_model.MODEL_INVALID:
        raise ValueError(model.validate())  # an error of ours
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return True, solver
    return (False if status == cp_model.INFEASIBLE else None), solver
