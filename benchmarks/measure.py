"""One benchmark case: how it is registered, and how it is measured in a process of its own."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["CASES", "Case", "NotRunError", "case", "command", "cpu_seconds", "loop_ms", "measured", "register"]

Figures = dict[str, float]
Run = Callable[[], Figures | None]


class NotRunError(Exception):
    """What a case needs is not there; the text says what."""


@dataclass(frozen=True, slots=True)
class Case:
    """One benchmark.

    Args:
        name: "topic.case".
        title: what is measured, in a line.
        prepare: makes what is needed, compiles kernels with a small case of the same kind, and returns what is measured. That
            may return further figures by name: ratios, rates, numbers of rounds.
        whole: count from the start of the process, imports included.
    """

    name: str
    title: str
    prepare: Callable[[], Run]
    whole: bool = False


CASES: dict[str, Case] = {}
"""Name -> case, in the order of the table."""


def register(name: str, title: str, prepare: Callable[[], Run], *, whole: bool = False) -> None:
    """Add a case; its parameters are those of `Case`.

    Args:
        name: "topic.case".
        title: what is measured.
        prepare: see `Case`.
        whole: see `Case`.
    """
    assert name not in CASES, name
    CASES[name] = Case(name, title, prepare, whole)


def case(name: str, title: str, *, whole: bool = False) -> Callable[[Callable[[], Run]], Callable[[], Run]]:
    """Decorator that registers the function that prepares a case.

    Args:
        name, title, whole: see `Case`.
    """

    def keep(prepare: Callable[[], Run]) -> Callable[[], Run]:
        register(name, title, prepare, whole=whole)
        return prepare

    return keep


def command(*words: str) -> Run:
    """A verb of the command line within this process; wrong plans and refusals fail the case."""

    def run() -> None:
        from opticcl.cli import main

        sys.argv = ["opticcl", *words]
        try:
            main()
        except SystemExit as leave:
            if leave.code:
                raise RuntimeError(f"opticcl {' '.join(words)}: exit code {leave.code}") from None

    return run


def cpu_seconds() -> float:
    """Processor time of this process and of the processes that it has waited for [s]."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def loop_ms() -> float:
    """Time of a fixed loop, the least of ten: how fast the machine is at the moment, beside its other work [ms]."""

    def once() -> float:
        begin = time.perf_counter()
        sum(i * i for i in range(20_000))
        return 1000 * (time.perf_counter() - begin)

    return min(once() for _ in range(10))


def measured(one: Case) -> Figures:
    """Run a case in this process: `cpu_s`, `wall_s`, `peak_mb`, `loop_ms`, and the figures that it returns.

    Peak memory is that of the whole process, or of its largest child process if that is more.
    """
    run = one.prepare()
    cpu_s, wall_s = (0.0, _process_start_s()) if one.whole else (cpu_seconds(), time.monotonic())
    further = run() or {}
    cpu_s, wall_s = cpu_seconds() - cpu_s, time.monotonic() - wall_s
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {
        "cpu_s": cpu_s,
        "wall_s": wall_s,
        "peak_mb": peak / (1024 if sys.platform == "linux" else 1 << 20),
        "loop_ms": loop_ms(),
        **further,
    }


_IMPORTED_S = time.monotonic()


def _process_start_s() -> float:
    """When this module was imported, the first of the process [s]."""
    return _IMPORTED_S
