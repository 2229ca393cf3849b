"""Plugin of pytest that runs mutants instead of tests.

The tests are collected once. A child process runs them as they are and tells which test calls which function and how long it
takes; then a child process for each mutant changes the code of one function and runs the tests that call it, those
first that killed others and take little time, until one fails.
"""

import gc
import json
import mmap
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import CodeType, FunctionType

import pytest

import opticcl
from tests.source_mutants.operators import Mutant, mutants_of

ROOT = Path(opticcl.__file__).parent
KILLED, SURVIVED, INVALID, LATE = 1, 0, 3, 4
WORDS = {KILLED: "killed", SURVIVED: "survived", INVALID: "no such program", LATE: "undecided"}
LIMIT_S = 60.0  # of one mutant


class MutantRun:
    """What a run decides.

    Args:
        files: source files to mutate.
        log: file of results, one JSON object a line; mutants in it are not run again.
        kernels: whether to run the mutants of functions that numba compiles (they run without it), or all others.
        until: when to stop, as `time.time` counts [s].
    """

    def __init__(self, files: list[Path], log: Path, kernels: bool, until: float) -> None:
        self.files, self.log, self.kernels, self.until = files, log, kernels, until
        self.failed = False
        self.killer = mmap.mmap(-1, 4)
        """Number of the test that killed the last mutant, written by its process."""
        self.kills: Counter[int] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that fails kills the mutant."""
        self.failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """All mutants that have no result yet."""
        done = (
            {json.loads(line)["name"] for line in self.log.read_text("utf-8").splitlines()}
            if self.log.exists()
            else set()
        )
        todo = [
            m for file in self.files for m in mutants_of(file, ROOT) if m.kernel == self.kernels and m.name not in done
        ]
        print(f"{len(todo):,} mutants to run, {len(done):,} done")
        if not todo:
            return True
        calls = self._baseline(session)
        with self.log.open("a", encoding="utf-8") as out:
            for number, mutant in enumerate(todo, 1):
                if time.time() > self.until:
                    print(f"stopped; {len(todo) - number + 1:,} left")
                    break
                known = calls.get(f"{mutant.path}:{mutant.function}", [])
                tests = sorted(known, key=lambda test: (test[0] - 2 * self.kills[test[1]], test))
                begun = time.time()
                code = _in_child(lambda m=mutant, t=tests: self._run(session, m, t), LIMIT_S * 2) if tests else SURVIVED
                found = {
                    "name": mutant.name, "line": mutant.line, "result": WORDS.get(code, "killed"),
                    "tests": len(tests), "seconds": round(time.time() - begun, 2),
                }  # fmt: skip
                out.write(json.dumps(found) + "\n")
                out.flush()
                if code == KILLED:
                    self.kills[int.from_bytes(self.killer[:], "big")] += 1
                else:
                    print(f"{number}/{len(todo)} {found['result']}: line {mutant.line} {mutant.name}", flush=True)
        return True

    def _baseline(self, session: pytest.Session) -> dict[str, list[tuple[float, int]]]:
        """For each function of the files the tests that call it: (seconds, number of the test)."""
        names = {str(file): file.relative_to(ROOT).as_posix() for file in self.files}
        with tempfile.TemporaryDirectory() as folder:
            record = Path(folder, "calls.json")

            def run() -> int:
                found: dict[str, list[tuple[float, int]]] = {}
                for number, item in enumerate(session.items):
                    called: set[CodeType] = set()

                    def trace(frame, event, argument, called=called):
                        called.add(frame.f_code)

                    self.failed = False
                    sys.settrace(trace)
                    begun = time.perf_counter()
                    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                    seconds = time.perf_counter() - begun
                    sys.settrace(None)
                    if self.failed:
                        continue  # fails without any change
                    for key in {_key(names, code) for code in called if code.co_filename in names}:
                        found.setdefault(key, []).append((round(seconds, 3), number))
                record.write_text(json.dumps(found), "utf-8")
                return SURVIVED

            _in_child(run, 36_000)
            return {
                key: [tuple(pair) for pair in pairs] for key, pairs in json.loads(record.read_text("utf-8")).items()
            }

    def _run(self, session: pytest.Session, mutant: Mutant, tests: list[tuple[float, int]]) -> int:
        """Exit code of one mutant."""
        if not _put_in_place(mutant):
            return INVALID
        begun = time.time()
        for _, number in tests:
            item = session.items[number]
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            if self.failed:
                self.killer[:] = number.to_bytes(4, "big")
                return KILLED
            if time.time() - begun > LIMIT_S:
                return LATE
        return SURVIVED


def _key(names: dict[str, str], code: CodeType) -> str:
    """Path and outermost function of a code object."""
    function = code.co_qualname.split(".<locals>")[0]
    return f"{names[code.co_filename]}:{function}"


def _in_child(work, limit_s: float) -> int:
    """Exit code of a function in a child process; a child that takes too long or dies is a killed mutant."""
    sys.stdout.flush()
    child = os.fork()
    if not child:
        code = KILLED
        try:
            signal.alarm(int(limit_s))
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            code = work()
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else KILLED


def _put_in_place(mutant: Mutant) -> bool:
    """Give the function its changed code, wherever it is referred to; whether that is possible."""
    file = str(ROOT / mutant.path)
    try:
        new = next(_codes(compile(mutant.tree, file, "exec"), mutant.function))
    except SyntaxError:
        return False
    found = False
    for function in [o for o in gc.get_objects() if isinstance(o, FunctionType) and o.__code__.co_filename == file]:
        if function.__code__.co_qualname == mutant.function:
            if function.__code__.co_freevars != new.co_freevars:
                return False
            function.__code__ = new
            found = True
    return found


def _codes(code: CodeType, function: str):
    """Code objects of that qualified name; the last of several is the one that counts."""
    for constant in reversed(code.co_consts):
        if isinstance(constant, CodeType):
            if constant.co_qualname == function:
                yield constant
            yield from _codes(constant, function)
