"""CP-SAT of the extra `synth`: one thread, seeded, limited by deterministic time; Ctrl-C ends it with its best result."""

from __future__ import annotations

import importlib.util
import time
from concurrent.futures import ThreadPoolExecutor, wait
from typing import TYPE_CHECKING

from opticcl.errors import UnsupportedError
from opticcl.ir import ProgressCallback, no_progress

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

__all__ = ["INSTALL", "Clock", "has_solver", "require_solver", "run"]

INSTALL = "pip install 'opticcl[synth]'"


def has_solver() -> bool:
    """Whether OR-Tools is installed."""
    return importlib.util.find_spec("ortools") is not None


def require_solver() -> None:
    """Check that OR-Tools is installed.

    Raises: UnsupportedError: it is not.
    """
    if not has_solver():
        raise UnsupportedError(f"synthesize: method=solver needs OR-Tools; {INSTALL}, or use method=constructed")


class Clock:
    """The time limit of a search, and whether the user has interrupted it.

    Args:
        limit_s: wall-clock time [s].
        progress: called with the state of the search, repeatedly while the solver runs.
    """

    def __init__(self, limit_s: float, progress: ProgressCallback = no_progress) -> None:
        self._started = time.monotonic()
        self._ends = self._started + limit_s
        self._progress, self._text = progress, ""
        self.interrupted = False

    def report(self, text: str, done: int = 0, total: int = 0, /) -> None:
        """Report the state of the search.

        Args:
            text: what is being searched.
            done: units done [count].
            total: units in all [count].
        """
        self._text = text
        self.report_again()

    def report_again(self) -> None:
        """Report the last state again, with the elapsed time."""
        self._progress(f"{self._text}, {self.elapsed_s:.0f} s")

    @property
    def elapsed_s(self) -> float:
        """Since the start [s]."""
        return time.monotonic() - self._started

    @property
    def remaining_s(self) -> float:
        """Until the end [s]; 0 once the user has interrupted the search."""
        return 0.0 if self.interrupted else max(0.0, self._ends - time.monotonic())


def run(model: cp_model.CpModel, clock: Clock, *, effort: float, seed: int) -> tuple[bool | None, cp_model.CpSolver]:
    """Search for one solution.

    Args:
        model: without an objective.
        clock: time limit, which may end the solver before its effort is exhausted.
        effort: deterministic time of the solver, about seconds of an idle core.
        seed: seed of the solver.
    Returns: (whether a solution exists, None if not known; the solver, which holds the values).

    The search is the same in every run as long as the time limit does not end it. It runs in a thread of its own, so that the
    main thread handles Ctrl-C.
    """
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    parameters = solver.parameters
    parameters.num_workers, parameters.random_seed, parameters.catch_sigint_signal = 1, seed, False
    parameters.max_deterministic_time, parameters.max_time_in_seconds = effort, clock.remaining_s
    if clock.remaining_s <= 0:
        return None, solver
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(solver.solve, model)
        while not answer.done():
            try:
                wait([answer], timeout=0.05)
            except KeyboardInterrupt:
                clock.interrupted = True
            clock.report_again()
            if clock.interrupted:
                solver.stop_search()
    status = answer.result()
    if status == cp_model.MODEL_INVALID:
        raise ValueError(model.validate())  # a bug in the model
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return True, solver
    return (False if status == cp_model.INFEASIBLE else None), solver
