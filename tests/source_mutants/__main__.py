"""`python -m tests.source_mutants verify`: run the mutants of a package, and say which survive.

    python -m tests.source_mutants verify circuits --minutes 30     go on for half an hour
    python -m tests.source_mutants verify/light/circuits.py                  one file
    python -m tests.source_mutants traces --share 20                a fifth of the mutants, always the same ones
    python -m tests.source_mutants traces --share 40 --above 20     another fifth
    python -m tests.source_mutants                                  what has been found so far
    python -m tests.source_mutants --record                         write it to results.toml and docs/extending/tests.md

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
PACKAGES = ("verify", "circuits", "fabrics", "simulate", "formats", "traces")
TESTS = {
    "verify": (
        "verify",
        "mutants",
        "circuits/test_routes.py",
        "circuits/test_by_senders.py",
        "fabrics/test_weak_parts.py",
        "operations/test_jobs_over_time.py",
    ),
    "circuits": ("circuits", "schedule", "plans/test_held_shifts.py"),
    "fabrics": ("fabrics", "optics", "verify/test_tables.py", "verify/test_table_rules.py", "verify/test_emulated.py"),
    "simulate": ("simulate", "circuits/test_routes.py"),
    "formats": ("formats", "traces"),
    "traces": ("traces",),
}
"""Folders and files of the tests that may kill the mutants of a package."""
HEAD = "| package | files | mutants | killed | explained | open | not run |"


def explained() -> dict[str, str]:
    """Reason for each survivor that is explained."""
    return tomllib.loads((HERE / "explained.toml").read_text("utf-8"))


def files_of(target: str) -> list[Path]:
    """Source files of a package, or the one file."""
    path = REPOSITORY / "src/opticcl" / target
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def run(targets: list[str], given: argparse.Namespace) -> None:
    """Run mutants, first those of plain functions, then those of functions that numba compiles."""
    until = time.time() + 60 * given.minutes
    of_package: dict[str, list[str]] = {}
    for target in targets:
        of_package.setdefault(target.split("/")[0], []).append(target)
    for mine in of_package.values():
        for kernels in (False,) if given.plain else (False, True):
            environment = {**os.environ, "NUMBA_DISABLE_JIT": str(int(kernels))}
            command = [sys.executable, "-m", "tests.source_mutants", "--in-process", str(until)]
            command += [
                "--limit",
                str(given.limit),
                "--share",
                str(given.share),
                "--above",
                str(given.above),
                *(f"--tests={tests}" for tests in given.tests),
                *mine,
            ]
            subprocess.run(
                [*command, *["--kernels"] * kernels, *["--again"] * given.again],
                env=environment,
                cwd=REPOSITORY,
                check=False,
            )


def run_in_process(targets: list[str], given: argparse.Namespace) -> None:
    """The mutants of targets of one package, in this process and its children."""
    from tests.source_mutants.plugin import MutantRun

    RESULTS.mkdir(exist_ok=True)
    package = targets[0].split("/")[0]
    files = [file for target in targets for file in files_of(target)]
    folders = [str(REPOSITORY / "tests" / folder) for folder in given.tests or TESTS[package]]
    log = RESULTS / f"{package}.jsonl"
    until, limit_s = given.in_process, given.limit
    drawn = given.above, given.share
    plugin = MutantRun(files, log, given.kernels, until, limit_s, drawn, set(explained()), given.again)
    options = ["-q", "--timeout", "0", "-m", "not deep", "--assert=plain"]
    for left_out in ("cacheprovider", "xdist", "benchmark"):
        options += ["-p", f"no:{left_out}"]
    fixed = ["-o", "addopts=--import-mode=importlib --strict-markers"]
    pytest.main([*options, *fixed, *folders], plugins=[plugin])


def results() -> dict[str, dict[str, object]]:
    """Of every file that was run: mutants, killed, explained, not run, and the names of those that no test kills."""
    reasons, found = explained(), {}
    for package in PACKAGES:
        log = RESULTS / f"{package}.jsonl"
        rows = map(json.loads, log.read_text("utf-8").splitlines()) if log.exists() else ()
        of_name = {row["name"]: row["result"] for row in rows}
        for file in files_of(package):
            words = {m.name: of_name.get(m.name) for m in mutants_of(file, REPOSITORY / "src/opticcl")}
            if any(words.values()):
                known = [name for name in words if name in reasons]
                left = [
                    name for name, word in words.items() if word in ("survived", "undecided") and name not in reasons
                ]
                killed = sum(
                    word in ("killed", "no such program") and name not in reasons for name, word in words.items()
                )
                found[file.relative_to(REPOSITORY / "src/opticcl").as_posix()] = {
                    "mutants": len(words), "killed": killed, "explained": len(known),
                    "not_run": len(words) - killed - len(known) - len(left), "open": left,
                }  # fmt: skip
    return found


def recorded() -> dict[str, dict[str, object]]:
    """What `--record` has written."""
    return tomllib.loads((HERE / "results.toml").read_text("utf-8"))


def record() -> None:
    """Write the results to `results.toml` and docs/extending/tests.md; those of files that were not run here stay."""
    lines = ["# What `make mutants` found, file by file; `python -m tests.source_mutants --record` writes it."]
    for file, one in sorted({**recorded(), **results()}.items()):
        lines += ["", f'["{file}"]', *(f"{key} = {json.dumps(value)}" for key, value in one.items() if key != "open")]
        lines += (
            ["open = [", *(f"    {json.dumps(name)}," for name in one["open"]), "]"] if one["open"] else ["open = []"]
        )
    (HERE / "results.toml").write_text("\n".join(lines) + "\n", "utf-8")
    page = REPOSITORY / "docs/extending/tests.md"
    before, _, after = page.read_text("utf-8").partition(HEAD)
    rows = after.split("\n")
    behind = next(i for i, row in enumerate(rows) if i and not row.startswith("|"))
    page.write_text("\n".join([before + table(), *rows[behind:]]), "utf-8")


def table() -> str:
    """The record as the table of docs/extending/tests.md, a row for each package."""
    rows = [HEAD, "|---|---|---|---|---|---|---|"]
    for package in PACKAGES:
        mine = [one for file, one in recorded().items() if file.startswith(f"{package}/")]
        sums = [sum(one[key] for one in mine) for key in ("mutants", "killed", "explained")]
        columns = [len(mine), *sums, sum(len(one["open"]) for one in mine), sum(one["not_run"] for one in mine)]
        rows.append(f"| `{package}` | {' | '.join(f'{n:,}' for n in columns)} |")
    return "\n".join(rows)


def report() -> int:
    """Print what was found; 1 if a survivor is not explained."""
    found = results()
    for file, one in found.items():
        print(f"{file}: " + ", ".join(f"{value:,} {key}" for key, value in one.items() if key != "open"))
        for name in one["open"]:
            print(f"  {name}")
    return int(any(one["open"] for one in found.values()))


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.source_mutants")
    parser.add_argument("targets", nargs="*", help="packages or files; none: report only")
    parser.add_argument("--minutes", type=float, default=1e6, help="when to stop")
    parser.add_argument("--limit", type=float, default=4, help="seconds of tests for one mutant")
    parser.add_argument(
        "--share", type=float, default=100, help="percent of the mutants of each file, drawn by their names"
    )
    parser.add_argument("--above", type=float, default=0, help="of that share without those of this smaller one")
    parser.add_argument(
        "--tests", action="append", default=[], help="file or folder of tests, in place of all of the package"
    )
    parser.add_argument(
        "--plain", action="store_true", help="leave out functions that numba compiles, which take longest"
    )
    parser.add_argument("--again", action="store_true", help="run those that survived once more")
    parser.add_argument("--record", action="store_true", help="write results.toml and its table")
    parser.add_argument("--kernels", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--in-process", type=float, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.in_process is not None:
        run_in_process(given.targets, given)
        return 0
    if given.targets:
        run(given.targets, given)
    if given.record:
        record()
        return 0
    return report()


if __name__ == "__main__":
    sys.exit(main())
