"""All benchmarks: `python benchmarks/run.py [--only PATTERN]... [--list] [--out FILE]`.

Each case runs in a process of its own, with compiled kernels. Measured, mark and verdict stand side by side, beside the last
run on a machine of the same kind (`benchmarks/results/`), which is replaced. `loop` is the change of the time of a fixed loop
since then: a machine that does other work is slower by that much. Exit code 1 if a mark is missed or a case fails.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import cases
import measure  # first, since a case that counts its whole process is counted from here
from marks import Mark, load_marks

HERE = Path(__file__).parent
LIMIT_S = 900.0
"""A case that takes longer has missed its mark [s]."""
SHORT_S = 5.0
"""A case that takes no longer is run three times, and the least CPU time counts [s]."""
VERDICTS = ("met", "MISSED", "FAILED", "no mark", "not run")
RED, GREEN, PLAIN = "\033[31m", "\033[32m", "\033[0m"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case.

    Args:
        name: of the case.
        figures: by name; empty if it did not run to its end.
        verdict: one of `VERDICTS`.
        why: of a failure, or why it was not run.
    """

    name: str
    figures: Mapping[str, float]
    verdict: str
    why: str = ""


def machine_kind() -> str:
    """Name of the kind of this machine: architecture, processor and cores, as a file name.

    >>> machine_kind() == machine_kind().lower()
    True
    """
    model = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists() and (found := re.search(r"^model name\s*:\s*(.*)$", info.read_text("utf-8"), re.MULTILINE)):
        model = found[1]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return re.sub(r"[^a-z0-9]+", "-", f"{platform.machine()} {model} {cores} cores".lower()).strip("-")


def run_case(name: str, mark: Mark | None) -> Outcome:
    """The best of up to three processes.

    Args:
        name: of the case.
        mark: of the case; None if it has none.
    """
    best: dict[str, float] = {}
    for _ in range(3):
        try:
            done = subprocess.run(
                [sys.executable, str(HERE / "run.py"), "--case", name],
                capture_output=True, text=True, check=False, timeout=LIMIT_S,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return Outcome(name, {}, "FAILED", f"more than {LIMIT_S:g} s")
        last = (done.stdout.strip().splitlines() or [""])[-1]
        if done.returncode == 0 and last.startswith("not run: "):
            return Outcome(name, {}, "not run", last.removeprefix("not run: "))
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
            return Outcome(name, {}, "FAILED", said)
        figures = json.loads(last)
        if not best or figures["cpu_s"] < best["cpu_s"]:
            best = figures
        if figures["wall_s"] > SHORT_S:
            break
    if mark is None:
        return Outcome(name, best, "no mark")
    return Outcome(name, best, "MISSED" if mark.missed(best) else "met")


def row(outcome: Outcome, title: str, mark: Mark | None, last: Mapping[str, float], colours: bool) -> str:
    """A line of the table.

    Args:
        outcome: of the case.
        title: of the case.
        mark: of the case.
        last: figures of the last run on such a machine; empty if there are none.
        colours: whether the terminal shows colours.
    """

    def painted(text: str, colour: str) -> str:
        return f"{colour}{text}{PLAIN}" if colours else text

    figures, missed = outcome.figures, set(mark.missed(outcome.figures) if mark else ())
    good = {"met": GREEN, "MISSED": RED, "FAILED": RED}.get(outcome.verdict, "")
    head = f"{painted(f'{outcome.verdict:<8}', good)} {outcome.name:<34}"
    if not figures:
        return f"{head} {outcome.why}"
    before = (
        f"{last['cpu_s']:>9.3f}{change('cpu_s', figures, last):>7}{change('loop_ms', figures, last):>7}"
        if last
        else f"{'':>23}"
    )
    texts = [painted(text, RED) if name in missed else text for name, text in (mark.texts(figures) if mark else ())]
    known = {"cpu_s", "wall_s", "peak_mb", "loop_ms", *(mark.at_most if mark else ()), *(mark.at_least if mark else ())}
    texts += [f"{name} {value:.4g}" for name, value in figures.items() if name not in known]
    said = "; ".join(texts)
    measured = f"{figures['cpu_s']:>9.3f}{before}{figures['wall_s']:>9.2f}{figures['peak_mb']:>7.0f}"
    return f"{head}{measured}  {title}" + (f": {said}" if said else "")


def change(name: str, figures: Mapping[str, float], last: Mapping[str, float]) -> str:
    """Change of a figure since the last run; "" where one of them lacks it.

    >>> change("cpu_s", {"cpu_s": 1.5}, {"cpu_s": 1.0})
    '+50%'

    Args:
        name: of the figure.
        figures, last: of this run and of the last one.
    """
    return f"{figures[name] / max(last[name], 1e-6) - 1:+.0%}" if name in figures and name in last else ""


def chosen(patterns: Iterable[str], names: Iterable[str]) -> list[str]:
    """Names that a pattern matches, as a shell matches files or as a part of the name.

    >>> chosen(["flow"], ["flow.ring", "packet.ring"]), chosen(["*.ring"], ["flow.ring", "packet.ring"])
    (['flow.ring'], ['flow.ring', 'packet.ring'])
    """
    wanted = list(patterns)
    return [name for name in names if not wanted or any(one in name or fnmatch(name, one) for one in wanted)]


def main(words: list[str]) -> int:
    """Print the table and write the results; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="PATTERN", help="cases with that in their names")
    parser.add_argument("--list", action="store_true", help="list cases and marks, run nothing")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the outcomes of this run as JSON too")
    parser.add_argument("--results", type=Path, default=HERE / "results", metavar="FOLDER", help="of the last runs")
    parser.add_argument("--marks", type=Path, default=HERE / "marks.toml", metavar="FILE", help="other marks")
    parser.add_argument("--case", metavar="NAME", help="measure one case in this process and print its figures")
    given = parser.parse_args(words)
    cases.load(given.case and given.case.partition(".")[0])
    if given.case:
        try:
            print("\n" + json.dumps(measure.measured(measure.CASES[given.case])))
        except measure.NotRunError as error:
            print(f"\nnot run: {error}")
        return 0
    names = chosen(given.only, measure.CASES)
    marks = load_marks(given.marks, measure.CASES)
    if not names:
        parser.error(f"--only {' '.join(given.only)}: no case has such a name; --list shows all")
    if given.list:
        for name in names:
            mark = marks.get(name)
            said = (
                "; ".join(text.removeprefix("- ") for _, text in mark.texts({})) + f" ({mark.source})"
                if mark
                else "no mark"
            )
            print(f"{name:<34} {measure.CASES[name].title}: {said}")
        return 0
    path = given.results / f"{machine_kind()}.json"
    last = json.loads(path.read_text("utf-8")) if path.exists() else {}
    colours = sys.stdout.isatty()
    print(
        f"{'verdict':<8} {'case':<34}{'CPU s':>9}{'last':>9}{'':>7}{'loop':>7}{'wall s':>9}{'MB':>7}  measured against mark"
    )
    outcomes = []
    for name in names:
        found = run_case(name, marks.get(name))
        outcomes.append(found)
        print(row(found, measure.CASES[name].title, marks.get(name), last.get(name, {}), colours), flush=True)
        if found.figures:  # kept one by one, so that an interrupted run loses nothing
            last[name] = {figure: float(f"{value:.4g}") for figure, value in found.figures.items()}
            write(path, {one: last[one] for one in measure.CASES if one in last})
    if given.out:
        write(given.out, [
            {"name": one.name, "verdict": one.verdict, "why": one.why, "figures": dict(one.figures)} for one in outcomes
        ])  # fmt: skip
    count = {one: sum(found.verdict == one for found in outcomes) for one in VERDICTS}
    print(", ".join(f"{many} {verdict}" for verdict, many in count.items() if many) + f"; kept in {path}")
    return 1 if count["MISSED"] or count["FAILED"] else 0


def write(path: Path, value: object) -> None:
    """Write JSON whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_suffix(".part")
    draft.write_text(json.dumps(value, indent=1) + "\n", "utf-8")
    draft.replace(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
