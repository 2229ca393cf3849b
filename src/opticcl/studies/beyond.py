"""The algorithms of a system's paper against the fastest of all, and against a bound."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from opticcl.errors import ParameterError, UnsupportedError
from opticcl.fabrics import as_fabric
from opticcl.files import read_toml
from opticcl.ir import ProgressCallback
from opticcl.plans.search import Searches
from opticcl.plans.sweep import Point, sweep
from opticcl.studies import STUDIES, Chart, Study

__all__ = ["beyond"]

PAPERS = read_toml("opticcl.studies", "beyond.toml")
SIZES = tuple(10**k for k in range(3, 11))  # 1 KB to 10 GB


@STUDIES.register("beyond")
def beyond(
    progress: ProgressCallback,
    *,
    system: str = "lightpath",
    nodes: int = 256,
    collective: str = "all_reduce",
    assumptions: str = "published",
) -> Study:
    """How much faster than its paper's algorithms can a system be?

    Every plan is verified. The fastest is what `auto` selects among all algorithms, under each of the two sets of assumptions.

    Args:
        progress: called with (what, done, total).
        system: lightpath, oddl, ramp, sipac or terarack.
        nodes: of the machine [count].
        collective: one that the paper has an algorithm for.
        assumptions: named set of time assumptions.
    Raises: ParameterError: a system or a collective that no paper of the five has.
    """
    if system not in PAPERS:
        raise ParameterError(f"beyond: system={system} is not one of {', '.join(PAPERS)}")
    known = [name for name in PAPERS[system] if name != "source"]
    if collective not in known:
        raise ParameterError(f"beyond: the paper of {system} has no {collective}; try {', '.join(known)}")
    where = as_fabric(system, nodes)
    lines, own = [], PAPERS[system][collective]
    for done, algorithm in enumerate(own):
        progress("search and verify", done, len(own) + 1)
        with suppress(UnsupportedError):  # such as for numbers of nodes that are no power of two
            lines.append(sweep(where, collective, SIZES, searches=Searches(algorithm, assumptions)).points)
    if not lines:
        reason = (
            f"no algorithm of the paper does {collective} on {where.num_nodes} nodes of {system}; try a power of two"
        )
        raise ParameterError(f"beyond: {reason}")
    lines.append(sweep(where, collective, SIZES, searches=Searches("auto", assumptions)).points)
    rows = [_row(points[:-1], points[-1]) for points in zip(*lines, strict=True)]
    return Study(
        f"beyond:system={system},nodes={nodes},collective={collective},assumptions={assumptions}",
        f"{collective} on {where.num_nodes:,} nodes of {system}: the paper's algorithms and the fastest of all",
        str(PAPERS[system]["source"]),
        rows,
        Chart("size_bytes", "speedup", (), "message of each node", "time of the paper over ours", "x"),
    )


def _beside(whose: str, points: Sequence[Point]) -> dict[str, float]:
    """Time of the fastest under the other set of assumptions."""
    known = [point.beside for point in points if point.beside]
    return {f"{whose}_{known[0][0]}_s": min(seconds for _, seconds in known)} if known else {}


def _row(by_paper: Sequence[Point], ours: Point) -> dict[str, str | float]:
    """One message size: the fastest of the paper's algorithms, and the fastest of all."""
    paper = min(by_paper, key=lambda point: point.total_s)
    return {
        "size_bytes": ours.size_bytes,
        "paper": paper.algorithm,
        "paper_s": paper.total_s,
        **_beside("paper", by_paper),
        "fastest": ours.algorithm,
        "fastest_s": ours.total_s,
        **_beside("fastest", [ours]),
        "speedup": round(paper.total_s / ours.total_s, 2) if ours.total_s else 1.0,
        "bound_s": ours.lower_bound_s,
        "time_over_bound": round(ours.total_s / ours.lower_bound_s, 2) if ours.lower_bound_s else 1.0,
    }
