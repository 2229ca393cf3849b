"""Commands as a user gives them: whole processes, with compiled kernels on the disk."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

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
    _words = ("compare", "--nodes", str(_nodes), *_further)
    register(f"verbs.{_name}", f"opticcl {' '.join(_words)}", lambda words=_words: command(*words), whole=True)


@case("verbs.compare_64_first", "opticcl compare --nodes 64, no kernel compiled yet")
def compare_first() -> Run:
    """With an empty directory of compiled kernels."""
    return _with_empty_cache("compare", "--nodes", "64")


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
