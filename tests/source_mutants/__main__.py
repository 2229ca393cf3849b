"""`python -m tests.source_mutants verify`: run the mutants of a package, and say which survive.

    python -m tests.source_mutants verify circuits --minutes 30     go on for half an hour
    python -m tests.source_mutants verify/light.py                  one file
    python -m tests.source_mutants                                  what has been found so far

Results are kept in `.mutants/`, so that a run goes on where the last one ended; delete a file there to begin anew. A survivor
is explained in `explained.toml`, or a test is missing.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from tests.source_mutants.operators import mutants_of

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[1]
RESULTS = REPOSITORY / ".mutants"
PACKAGES = ("verify", "circuits", "fabrics", "simulate")
TESTS = {
    "verify": ("verify", "mutants"),
    "circuits": ("circuits",),
    "fabrics": ("fabrics",),
    "simulate": ("simulate",),
}
"""Folders of the tests that may kill the mutants of a package."""
LEFT_OUT = ("test_commands.py",)


def explained() -> dict[str, str]:
    """Reason for each survivor that is explained."""
    return tomllib.loads((HERE / "explained.toml").read_text("utf-8"))


def files_of(target: str) -> list[Path]:
    """Source files of a package, or the one file."""
    path = REPOSITORY / "src/opticcl" / target
    return sorted(path.glob("*.py")) if path.is_dir() else [path]


def run(targets: list[str], given: argparse.Namespace) -> None:
    """Run mutants, first those of plain functions, then those of functions that numba compiles."""
    until = time.time() + 60 * given.minutes
    for target in targets:
        for kernels in (False,) if given.plain else (False, True):
            environment = {**os.environ, "NUMBA_DISABLE_JIT": str(int(kernels))}
            command = [sys.executable, "-m", "tests.source_mutants", "--in-process", str(until)]
            command += ["--limit", str(given.limit), *(f"--tests={tests}" for tests in given.tests), target]
            subprocess.run([*command, *["--kernels"] * kernels], env=environment, cwd=REPOSITORY, check=False)


def run_in_process(target: str, given: argparse.Namespace) -> None:
    """The mutants of one target, in this process and its children."""
    from tests.source_mutants.plugin import MutantRun

    RESULTS.mkdir(exist_ok=True)
    package = target.split("/")[0]
    folders = [str(REPOSITORY / "tests" / folder) for folder in given.tests or TESTS[package]]
    plugin = MutantRun(files_of(target), RESULTS / f"{package}.jsonl", given.kernels, given.in_process, given.limit)
    options = ["-q", "--timeout", "0", "-m", "not deep"]
    for left_out in ("cacheprovider", "xdist", "benchmark"):
        options += ["-p", f"no:{left_out}"]
    fixed = ["-o", "addopts=--import-mode=importlib --strict-markers"]
    pytest.main([*options, *fixed, *folders], plugins=[plugin])


def report() -> int:
    """Print what the results say; 1 if a survivor is not explained."""
    reasons, open_survivors = explained(), 0
    for package in PACKAGES:
        log = RESULTS / f"{package}.jsonl"
        if not log.exists():
            print(f"{package}: not run")
            continue
        there = {mutant.name for file in files_of(package) for mutant in mutants_of(file, REPOSITORY / "src/opticcl")}
        rows = {
            row["name"]: row for row in map(json.loads, log.read_text("utf-8").splitlines()) if row["name"] in there
        }
        counts = {
            word: sum(row["result"] == word for row in rows.values()) for word in ("killed", "survived", "undecided")
        }
        left = [row for name, row in rows.items() if row["result"] == "survived" and name not in reasons]
        open_survivors += len(left)
        print(f"{package}: {', '.join(f'{n:,} {word}' for word, n in counts.items())}, {len(left):,} not explained")
        for row in left:
            print(f"  line {row['line']:>4}  {row['name']}")
    return int(open_survivors > 0)


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.source_mutants")
    parser.add_argument("targets", nargs="*", help="packages or files; none: report only")
    parser.add_argument("--minutes", type=float, default=1e6, help="when to stop")
    parser.add_argument("--limit", type=float, default=4, help="seconds of tests for one mutant")
    parser.add_argument(
        "--tests", action="append", default=[], help="file or folder of tests, in place of all of the package"
    )
    parser.add_argument(
        "--plain", action="store_true", help="leave out functions that numba compiles, which take longest"
    )
    parser.add_argument("--kernels", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--in-process", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.in_process is not None:
        run_in_process(given.targets[0], given)
        return 0
    if given.targets:
        run(given.targets, given)
    return report()


if __name__ == "__main__":
    sys.exit(main())
