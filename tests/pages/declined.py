"""What the conformance matrix declines, and why."""

import re
from collections import defaultdict
from collections.abc import Container

from opticcl.collective import COLLECTIVES, Request
from opticcl.fabrics import FABRICS
from opticcl.schedule import ALGORITHMS
from tests.matrix import at_scale, compiled, sizes

HEAD = """# What is declined, and why

Every algorithm is tried with every collective on every fabric at odd and even sizes by the conformance suite. Cells that do
not exist are listed here by their reason.

"""


def reasons(numbers: Container[int] = range(65)) -> dict[tuple[str, str], dict[str, set[str]]]:
    """Algorithm and reason -> the fabrics of each collective that it concerns, on machines of these numbers of nodes."""
    declined: dict[tuple[str, str], dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for algorithm in ALGORITHMS.names():
        for name in FABRICS.names():
            for collective in COLLECTIVES:
                for size in sizes(name, collective):
                    if size not in numbers or isinstance(at_scale(name, size), str):
                        continue
                    plan = compiled(name, algorithm, size, Request(collective))
                    if isinstance(plan, str):
                        declined[algorithm, general(plan)][collective].add(name)
    return declined


def declined_lines(numbers: Container[int] = range(65)) -> list[str]:
    """One line a reason: algorithm, collectives and fabrics that it concerns."""
    lines = []
    for (algorithm, reason), where in sorted(reasons(numbers).items()):
        fabrics = sorted(set.union(*where.values()))
        collectives = [c for c in COLLECTIVES if c in where]
        on = "every fabric" if len(fabrics) == len(FABRICS.names()) else ", ".join(fabrics)
        what = "every collective" if len(collectives) == len(COLLECTIVES) else ", ".join(collectives)
        lines.append(f"{algorithm}: {reason} ({what}; {on})")
    for name in FABRICS.names():
        missing = [size for size in sizes(name, "all_reduce") if isinstance(at_scale(name, size), str)]
        if missing:
            lines.append(
                f"{name}: no such machine at {', '.join(map(str, missing))} nodes: {at_scale(name, missing[0])}"
            )
    return lines


def general(reason: str) -> str:
    """A reason without the names and numbers of one case."""
    reason = re.sub(r"^\w+ cannot do \w+ on \w+: ", "", reason)
    return re.sub(r"\(?\b\d[\d,x.]*\b\)?", "n", reason)


def page() -> str:
    """All reasons."""
    return HEAD + "".join(f"- {line}\n" for line in declined_lines())
