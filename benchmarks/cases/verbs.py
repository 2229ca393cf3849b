"""Commands as a user gives them: whole processes, with compiled kernels on the disk."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

from measure import NotRunError, Run, case, command, register


@case("verbs.help", "opticcl --help", whole=True)
def help_text() -> Run:
    """Without any verb."""
    return command("--help")


for _name, _nodes, _further in (
    ("compare_64", 64, ()),
    ("compare_1024", 1024, ()),
    ("compare_16384", 16384, ()),
    ("compare_4096_all_to_all", 4096, ("-c", "all_to_all")),
):
    _words = ("compare", "--nodes", str(_nodes), *_further, "--as-built")
    register(f"verbs.{_name}", f"opticcl {' '.join(_words)}", lambda words=_words: command(*words), whole=True)

for _name in ("ideal", "torus", "sipac"):
    for _verb in ("compare", "verify"):
        _words = (_verb, "-f", _name, "--nodes", "262144", *(("--as-built",) if _verb == "compare" else ()))
        _text = f"opticcl {' '.join(_words)}"
        register(f"verbs.{_verb}_262144_{_name}", _text, lambda words=_words: command(*words), whole=True)


@case("verbs.two_jobs", "opticcl compare --nodes 4096 --as-built with two jobs, against one")
def two_jobs() -> Run:
    """Wall time of both, one after the other."""

    def run() -> dict[str, float]:
        took = []
        for jobs in "12":
            begun = time.monotonic()
            words = ["-m", "opticcl", "compare", "--nodes", "4096", "--as-built", "--jobs", jobs]
            subprocess.run([sys.executable, *words], capture_output=True, check=True)
            took.append(time.monotonic() - begun)
        return {"times_one_job": took[1] / took[0]}

    return run


@case("verbs.compare_64_first", "opticcl compare --nodes 64 --as-built, no kernel compiled yet")
def compare_first() -> Run:
    """With an empty directory of compiled kernels."""
    return _with_empty_cache("compare", "--nodes", "64", "--as-built")


def _with_empty_cache(*words: str) -> Run:
    folder = tempfile.TemporaryDirectory()

    def run() -> None:
        done = subprocess.run(
            [sys.executable, "-m", "opticcl", *words], capture_output=True, text=True, check=False,
            env={**os.environ, "NUMBA_CACHE_DIR": folder.name},
        )  # fmt: skip
        folder.cleanup()
        if done.returncode:
            raise NotRunError(f"exit code {done.returncode}: {done.stderr.strip()}")

    return run
