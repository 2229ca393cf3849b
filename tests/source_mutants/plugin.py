"""Plugin of pytest that runs mutants instead of tests.

The tests are collected once. A child process runs them as they are and records which test runs which lines and how long it
takes, which is kept for the next run. Then the tests are run as they are in this process, so that its children need not import
modules and load kernels, and what the package keeps of them is forgotten. A child process for each mutant changes the code of
one function and runs the tests that run its lines, those first that killed others of the function and take little time, until
one fails.
"""

import ast
import gc
import hashlib
import importlib
import json
import mmap
import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import _lru_cache_wrapper
from pathlib import Path
from types import CodeType, FunctionType

import pytest

import opticcl
from tests.source_mutants.coverage import Coverage, Covered
from tests.source_mutants.operators import Mutant, functions_of, mutants_of

ROOT = Path(opticcl.__file__).parent
KILLED, SURVIVED, INVALID, LATE = 1, 0, 3, 4
NO_FAILURES = (pytest.skip.Exception, pytest.xfail.Exception)
LONGEST_S = 60.0
"""Of a test without mutants, such as one that is slow where nothing is compiled; a longer one kills none [s]."""
WORDS = {KILLED: "killed", SURVIVED: "survived", INVALID: "no such program", LATE: "undecided"}


class MutantRun:
    """What a run decides.

    Args:
        files: source files to mutate.
        log: file of results, one JSON object a line; mutants in it are not run again.
        kernels: whether to run the mutants of functions that numba compiles (they run without it), or all others.
        until: when to stop, as `time.time` counts [s].
        limit_s: time of the processor for the tests of one mutant; tests that take more are not run at all [s].
        share: of the mutants, those whose names are drawn, from one number to another [percent].
        explained: names of mutants that are known to survive, which are not run.
        again: whether those that survived, or were undecided, are run once more.
    """

    def __init__(
        self,
        files: list[Path],
        log: Path,
        kernels: bool,
        until: float,
        limit_s: float,
        share: tuple[float, float],
        explained: set[str],
        again: bool,
    ) -> None:
        self.files, self.log, self.kernels, self.until, self.limit_s = files, log, kernels, until, limit_s
        self.failed, self.explained, self.again = False, explained, again
        self.share = share
        self.testing = -1
        """Number of the test that is run for a mutant."""
        self.killer = mmap.mmap(-1, 4)
        """Number of the test that killed the last mutant, written by its process."""
        self.kills: Counter[tuple[str, int]] = Counter()
        self.tries: Counter[tuple[str, int]] = Counter()
        """How often each test killed a mutant of each function, and how often it was run for one."""
        self.functions: dict[tuple[str, str], list[FunctionType]] = {}

    def pytest_collection(self) -> None:
        """A failing example is not made smaller: that one fails is enough."""
        from hypothesis import Phase, settings  # after pytest has begun, which rewrites its assertions

        phases = (Phase.explicit, Phase.generate)
        settings.register_profile("mutants", settings(), phases=phases, report_multiple_bugs=False)
        settings.load_profile("mutants")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that fails kills the mutant."""
        self.failed |= report.failed

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo) -> None:
        """Within the process of a mutant: the first failure is its end, before a report is written, which takes longer."""
        if self.testing >= 0 and call.excinfo is not None and not call.excinfo.errisinstance(NO_FAILURES):
            self.killer[:] = self.testing.to_bytes(4, "big")
            os._exit(KILLED)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """All mutants that have no result yet."""
        lines = self.log.read_text("utf-8").splitlines() if self.log.exists() else []
        last = {row["name"]: row["result"] for row in map(json.loads, lines)}
        open_words = (WORDS[SURVIVED], WORDS[LATE]) if self.again else ()
        done = {name for name, word in last.items() if word not in open_words} | self.explained
        todo = [
            m
            for file in self.files
            for m in mutants_of(file, ROOT)
            if m.kernel == self.kernels and m.name not in done and self.share[0] <= _drawn(m.name) < self.share[1]
        ]
        print(f"{len(todo):,} mutants to run, {len(done):,} done")
        if not todo:
            return True
        covered = self._covered(session)
        self._warm(session, covered, todo)
        self.functions = _functions(self.files)
        gc.freeze()  # so that the children share the memory of this process
        with self.log.open("a", encoding="utf-8") as out:
            for number, mutant in enumerate(todo, 1):
                if time.time() > self.until:
                    print(f"stopped; {len(todo) - number + 1:,} left")
                    break
                tests = self._ordered(mutant, covered)
                begun = time.time()
                elapsed_s = 60 + round(20 * self.limit_s)
                code = _in_child(lambda m=mutant, t=tests: self._run(session, m, t), elapsed_s) if tests else SURVIVED
                found = {
                    "name": mutant.name, "line": mutant.line, "result": WORDS.get(code, "killed"),
                    "tests": len(tests), "seconds": round(time.time() - begun, 2),
                }  # fmt: skip
                out.write(json.dumps(found) + "\n")
                out.flush()
                killer = int.from_bytes(self.killer[:], "big") if code == KILLED else -1
                for _, number_of_test in tests:
                    self.tries[mutant.function, number_of_test] += 1
                    if number_of_test == killer:
                        self.kills[mutant.function, killer] += 1
                        break
                if code != KILLED:
                    print(f"{number}/{len(todo)} {found['result']}: line {mutant.line} {mutant.name}", flush=True)
        return True

    def _ordered(self, mutant: Mutant, covered: Covered) -> list[tuple[float, int]]:
        """Tests that may kill a mutant, by the time that each takes for a mutant of the function that it kills."""

        def cost(test: tuple[float, int]) -> tuple[float, int]:
            seconds, number = test
            key = mutant.function, number
            return (0.01 + seconds) * (1 + self.tries[key]) / (0.1 + self.kills[key]), number

        return sorted((test for test in covered.tests(mutant) if test[0] <= self.limit_s), key=cost)

    def _warm(self, session: pytest.Session, covered: Covered, todo: list[Mutant]) -> None:
        """Run the tests of the mutants as they are, and forget what functions of the package have kept of them."""
        wanted = {number for mutant in todo for seconds, number in covered.tests(mutant) if seconds <= self.limit_s}
        _run_as_they_are([session.items[number] for number in sorted(wanted)])
        for kept in self._kept():
            kept.cache_clear()
        print(f"{len(wanted):,} tests may kill them", flush=True)

    def _kept(self) -> list[_lru_cache_wrapper]:
        """What keeps results of functions of the packages."""
        gc.unfreeze()  # the suite freezes what it has collected, which `get_objects` then leaves out
        packages = tuple(
            {f"opticcl.{file.parent.relative_to(ROOT).as_posix().replace('/', '.')}" for file in self.files}
        )
        found = [one for one in gc.get_objects() if isinstance(one, _lru_cache_wrapper)]
        return [one for one in found if str(one.__module__).startswith(packages)]

    def _covered(self, session: pytest.Session) -> Covered:
        """Which test runs which lines; a child process runs those that are not known from an earlier run."""
        coverage = Coverage(self.log.with_suffix(f".{'kernels' if self.kernels else 'plain'}.json"), ROOT, self.files)
        new = [item for item in session.items if not coverage.knows(item)]

        def run() -> int:
            kept = self._kept()
            for number, item in enumerate(new, 1):
                self.failed = False
                for one in kept:  # else only the first test that calls a function is seen to call it
                    one.cache_clear()
                with coverage.of(item) as found, _at_most(LONGEST_S):
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                    found.ok = not self.failed
                if number % 50 == 0:  # of a run that is ended most is kept
                    coverage.write()
            coverage.write()
            return SURVIVED

        if new:
            print(f"{len(new):,} of {len(session.items):,} tests are run as they are", flush=True)
            _run_as_they_are(new)
            _in_child(run)
        return coverage.read(session.items)

    def _run(self, session: pytest.Session, mutant: Mutant, tests: list[tuple[float, int]]) -> int:
        """Exit code of one mutant."""
        if not self._put_in_place(mutant):
            return INVALID
        begun = time.process_time()
        for seconds, number in tests:
            signal.setitimer(signal.ITIMER_PROF, 3 + 10 * seconds)  # one that does not end is killed
            item, self.testing = session.items[number], number
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            if time.process_time() - begun > self.limit_s:
                return LATE
        return SURVIVED

    def _put_in_place(self, mutant: Mutant) -> bool:
        """Give the function its changed code; whether that is possible."""
        file = str(ROOT / mutant.path)
        functions = self.functions.get((file, mutant.function), [])
        tree = mutant.tree
        try:
            new = next(_codes(compile(tree, file, "exec"), mutant.function))
        except SyntaxError:
            return False
        defaults = [node.args for name, node in functions_of(tree) if name == mutant.function][-1]
        if any(function.__code__.co_freevars != new.co_freevars for function in functions):
            return False
        for function in functions:
            function.__code__ = new
            _put_defaults(function, defaults)
        return bool(functions)


def _drawn(name: str) -> float:
    """A number from 0 to 100 for the name of a mutant, the same in every run."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") / 2**32 * 100


def _put_defaults(function: FunctionType, arguments: ast.arguments) -> None:
    """Give the function the defaults of its arguments that are constants, which its code does not have."""
    if function.__defaults__:
        pairs = zip(arguments.defaults, function.__defaults__, strict=True)
        function.__defaults__ = tuple(n.value if isinstance(n, ast.Constant) else old for n, old in pairs)
    for argument, node in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if isinstance(node, ast.Constant):
            function.__kwdefaults__[argument.arg] = node.value


def _run_as_they_are(items: list[pytest.Item]) -> None:
    """Run tests in this process, without polars: its threads would not be there in a child, which would wait for them."""
    import polars

    sys.modules["polars"] = None  # type: ignore[assignment]  # importing it raises
    try:
        for item in items:
            with _at_most(LONGEST_S):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    finally:
        sys.modules["polars"] = polars


@contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """Within this a test fails that takes longer.

    Args: seconds: of the processor [s].
    """

    def end(number: int, frame: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _in_child(work, elapsed_s: int = 3600) -> int:
    """Exit code of a function in a child process. A child that dies is a killed mutant; one that waits for longer than
    `elapsed_s`, as a test does that starts threads or processes of its own, decides nothing.
    """
    sys.stdout.flush()
    child = os.fork()
    if not child:
        code = KILLED
        try:
            signal.alarm(elapsed_s)
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            code = work()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        return LATE
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else KILLED


def _functions(files: list[Path]) -> dict[tuple[str, str], list[FunctionType]]:
    """Functions of source files by file and qualified name, wherever they are referred to."""
    names = {str(file) for file in files}
    for file in files:
        importlib.import_module(".".join(("opticcl", *file.relative_to(ROOT).with_suffix("").parts)))
    found: dict[tuple[str, str], list[FunctionType]] = {}
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename in names:
            found.setdefault((one.__code__.co_filename, one.__code__.co_qualname), []).append(one)
    return found


def _codes(code: CodeType, function: str):
    """Code objects of that qualified name; the last of several is the one that counts."""
    for constant in reversed(code.co_consts):
        if isinstance(constant, CodeType):
            if constant.co_qualname == function:
                yield constant
            yield from _codes(constant, function)
