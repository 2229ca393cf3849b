"""A collective at many message sizes: what nccl-tests print for a real machine, for any fabric.

Every size has its own fastest algorithm; what was seen of an algorithm holds for all sizes, so a sweep costs little more than
one of its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from opticcl.collective import Request, as_request
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.evaluate.planner import Planner
from opticcl.ir import Fabric
from opticcl.plan import Plan
from opticcl.simulate import Assumptions, lower_bound_s, moved_share

__all__ = ["MOST_SIZES", "Point", "Sweep", "fastest_of", "sizes_by", "sweep"]

MOST_SIZES = 1000
"""Of one sweep [count]."""


@dataclass(frozen=True, slots=True)
class Point:
    """One message size on one fabric.

    Args:
        size_bytes: message of every rank, as `opticcl.collective` counts it [bytes].
        algorithm: the fastest for it.
        total_s: its time [s].
        lower_bound_s: no algorithm on that fabric can take less [s].
        algorithm_bytes_per_s: message over time, "algbw" of nccl-tests; 0 if it takes none [byte/s].
        bus_bytes_per_s: what a node's ports carry at least for that, "busbw" [byte/s].
        verified: whether the judge found the plan right.
    """

    size_bytes: int
    algorithm: str
    total_s: float
    lower_bound_s: float
    algorithm_bytes_per_s: float
    bus_bytes_per_s: float
    verified: bool


@dataclass(frozen=True, slots=True)
class Sweep:
    """One fabric at all sizes.

    Args:
        fabric: where.
        collective: what.
        points: one a size, in the order of the sizes.
    """

    fabric: Fabric
    collective: str
    points: tuple[Point, ...]

    def rows(self) -> list[dict[str, Any]]:
        """Plain values, a row a size."""
        about = {"fabric": self.fabric.name, "num_nodes": self.fabric.num_nodes, "collective": self.collective}
        return [about | asdict(point) for point in self.points]


def sizes_by(smallest: int, largest: int, factor: float) -> list[int]:
    """Sizes from the smallest to the largest, each so many times the one before, rounded to whole bytes.

    >>> sizes_by(8, 100, 2), sizes_by(10, 10, 2)
    ([8, 16, 32, 64], [10])

    Raises: ParameterError: the largest below the smallest, no growth, or too many of them.
    """
    if smallest < 1 or largest < smallest:
        raise ParameterError(f"sweep: sizes from {smallest:,} to {largest:,} bytes; 1 or more, and not downwards")
    if not 1 < factor < float("inf"):
        raise ParameterError(f"sweep: factor={factor:g} is not above 1; try 2")
    found, size = [smallest], smallest * factor
    while round(size) <= largest:
        found.append(round(size))
        if len(found) > MOST_SIZES:
            raise ParameterError(f"sweep: factor={factor:g} makes more than {MOST_SIZES} sizes; try 2")
        size *= factor
    return list(dict.fromkeys(found))


def sweep(
    fabric: Fabric,
    collective: str | Request,
    sizes: Iterable[int],
    *,
    algorithm: str = "auto",
    assumed: Assumptions | None = None,
    planner: Planner | None = None,
    progress: Callable[[str], None] = lambda text: None,
) -> Sweep:
    """A collective at every size on a fabric, each by its fastest algorithm; every plan is judged.

    Args:
        fabric: where.
        collective: its name, or a request with a root.
        sizes: messages of every rank [bytes].
        algorithm: the one for all sizes; auto: the fastest for each.
        assumed: what times rest on; None: the defaults.
        planner: that remembers plans between calls; it brings `algorithm` and `assumed` along.
        progress: told what is being done.
    Raises: UnsupportedError: the fabric or the named algorithm cannot do it. ParameterError: a barrier, which has no size.
    """
    wanted = as_request(collective)
    if wanted.name == "barrier":
        raise ParameterError("sweep: a barrier has no message; try opticcl simulate -c barrier")
    planner = planner or Planner(algorithm, assumed, progress=progress)
    choice = planner.choice(fabric, wanted)
    if choice.declined:
        raise UnsupportedError(f"{planner.name} cannot do {wanted.name} on {fabric.name}: {choice.declined}")
    points = []
    for size in sizes:
        total_s, plan = choice.best(size)
        verdict, c = choice.verdict(plan), plan.schedule.collective
        rate = size / total_s if total_s else 0.0
        bound, bus = lower_bound_s(c, fabric, size), rate * moved_share(c)
        points.append(Point(size, Plan(plan, size).algorithm, total_s, bound, rate, bus, verdict.ok))
    return Sweep(fabric, wanted.name, tuple(points))


def fastest_of(sweeps: Sequence[Sweep]) -> list[int]:
    """Which sweep is the fastest at each size; of equals the first.

    Args: sweeps: of the same sizes.
    """
    columns = zip(*([point.total_s for point in one.points] for one in sweeps), strict=True)
    return [times.index(min(times)) for times in map(list, columns)]
