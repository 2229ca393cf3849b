"""What a collective still costs without each part of small machines."""

from __future__ import annotations

from functools import cache

from opticcl.assumptions import assumptions
from opticcl.collective import Request
from opticcl.fabrics import fabric
from opticcl.ir import no_progress
from opticcl.operations.faults.answers import ANSWERS, FaultReport, Healthy, recovery_parameters
from opticcl.operations.faults.sweep import sweep

HEAD = """# Every part of five machines

An all_reduce of 100 MB, assumptions `common`; slow-down and ratio are the largest of each kind, work is the least.

"""
MACHINES = (
    "ramp:groups=3,racks=2,wavelengths=3",
    "sipac:radix=3,levels=2",
    "terarack:nodes=8,wavelengths=4",
    "oddl:shape=4x4",
    "lightpath:shape=3x3,waveguides=4",
)
ONE_PORT = (
    "ramp:groups=1,racks=1,wavelengths=4",
    "sipac:radix=4,levels=1",
    "terarack:nodes=2,wavelengths=1",
    "oddl:shape=4",
    "lightpath:shape=1x4,waveguides=1,lasers=1",
)


@cache
def reports(spec: str) -> list[FaultReport]:
    """The answer to every class of parts, for an all_reduce of 100 MB."""
    healthy = Healthy(
        fabric(spec), Request("all_reduce"), 100_000_000, "auto", assumptions("common"), recovery_parameters()
    )
    return list(sweep(healthy, no_progress))


def rows(spec: str) -> list[str]:
    """A row for each kind of part of a machine."""
    of_kind: dict[str, list[FaultReport]] = {}
    for report in reports(spec):
        of_kind.setdefault(report.conditions[0].kind, []).append(report)
    lines = []
    for kind, mine in of_kind.items():
        counts = {answer: sum(r.equal_parts for r in mine if r.answer == answer) for answer in ANSWERS}
        answers = ", ".join(f"{answer} {count:,}" for answer, count in counts.items() if count)
        slow = max((r.slow_down for r in mine if r.slow_down is not None), default=None)
        ratio = max((r.ratio for r in mine if r.ratio is not None), default=None)
        work = min(r.work for r in mine)
        cells = [kind, answers, *("-" if v is None else f"{v:.2f}" for v in (slow, ratio)), f"{work:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def single_points(spec: str) -> str:
    """Kinds of parts of which one alone cuts ranks off, in words."""
    kinds = list(dict.fromkeys(r.conditions[0].kind for r in reports(spec) if r.answer == "cut"))
    return ", ".join(kinds) or "none"


def tables() -> str:
    """Both tables."""
    lines = []
    for spec in MACHINES:
        lines += [
            f"`{spec}`:",
            "",
            "| part | answers, parts | slow-down | over bound | work |",
            "|---|---|---|---|---|",
        ]
        lines += [*rows(spec), ""]
    lines += ["| machine | parts of which one alone cuts ranks off |", "|---|---|"]
    lines += [f"| `{spec}` | {single_points(spec)} |" for spec in (*MACHINES, *ONE_PORT)]
    return "\n".join(lines)


def page() -> str:
    """Both tables."""
    return f"{HEAD}{tables()}\n"
