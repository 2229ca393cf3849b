"""A collective at many message sizes, as nccl-tests measure it on a real machine, for any fabric.

Every size has its own fastest algorithm; the cost of an algorithm is evaluated once for all sizes, so a sweep takes little
longer than one of its rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from opticcl.assumptions import DEFAULT_SET, Assumptions
from opticcl.collective import Request, as_request
from opticcl.errors import ParameterError, UnsupportedError
from opticcl.ir import Fabric, ProgressCallback, no_progress
from opticcl.ir.verdict import VERIFIED, Judgement
from opticcl.plans.light import Light
from opticcl.plans.machines import ExcludedFabric, reason_left_out
from opticcl.plans.plan import Plan
from opticcl.plans.ranks import beside, is_tie
from opticcl.plans.search import Searches
from opticcl.plans.sizes import MOST_SIZES, sizes_by
from opticcl.processes import each
from opticcl.simulate import moved_share

__all__ = ["MOST_SIZES", "Point", "Sweep", "Sweeps", "fastest_of", "sizes_by", "sweep", "sweep_fabrics"]


@dataclass(frozen=True, slots=True)
class Point:
    """One message size on one fabric.

    Args:
        size_bytes: message of every rank, as `opticcl.collective` counts it [bytes].
        algorithm: the fastest for this size.
        total_s: its time [s].
        lower_bound_s: lower bound on the time of any algorithm on that fabric [s].
        bound_by: what binds it, in words.
        algorithm_bytes_per_s: message over time, "algbw" of nccl-tests; 0 if it takes no time [byte/s].
        bus_bytes_per_s: least rate through a node's ports for that, "busbw" [byte/s].
        verdict: on the plan.
        light: of its circuits.
        ranked: whether it may be the fastest: the plan is right, and its light closes or is ignored.
        beside: name of another set of assumptions, and the time of the fastest under it [s].
    """

    size_bytes: int
    algorithm: str
    total_s: float
    lower_bound_s: float
    bound_by: str
    algorithm_bytes_per_s: float
    bus_bytes_per_s: float
    verdict: Judgement
    light: Light
    ranked: bool
    beside: tuple[str, float] | None = None

    def record(self) -> dict[str, Any]:
        """Plain values."""
        values = {
            field.name: getattr(self, field.name) for field in fields(self) if field.name not in ("beside", "light")
        }
        values |= {"verified": VERIFIED[self.verdict], **self.light.record()}
        return values | ({f"{self.beside[0]}_s": self.beside[1]} if self.beside else {})


@dataclass(frozen=True, slots=True)
class Sweep:
    """One fabric at all sizes.

    Args:
        fabric: that carries the collective.
        collective: name.
        points: one for each size, in the order of the sizes.
        failures: errors of algorithms that raised an exception.
        not_tried: what the search left out, a line each.
    """

    fabric: Fabric
    collective: str
    points: tuple[Point, ...]
    failures: tuple[str, ...] = ()
    not_tried: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every plan is right."""
        return all(point.verdict == "right" for point in self.points)

    def rows(self) -> list[dict[str, Any]]:
        """Plain values, a row a size."""
        about = {"fabric": self.fabric.name, "num_nodes": self.fabric.num_nodes, "collective": self.collective}
        return [about | point.record() for point in self.points]


@dataclass(frozen=True, slots=True)
class Sweeps:
    """Several fabrics at the same sizes.

    Args:
        names: of the fabrics, as the user wrote them.
        sweeps: one a name.
        left_out: fabrics without a sweep and algorithms that raised an exception, with reasons.
    """

    names: tuple[str, ...]
    sweeps: tuple[Sweep, ...]
    left_out: tuple[ExcludedFabric, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every plan is right."""
        return all(one.ok for one in self.sweeps)

    @property
    def not_tried(self) -> dict[str, tuple[str, ...]]:
        """Fabric, as the user wrote it -> what the search on it left out, a line each."""
        return {name: one.not_tried for name, one in zip(self.names, self.sweeps, strict=True) if one.not_tried}

    def rows(self) -> list[dict[str, Any]]:
        """Plain values, a row a fabric and size."""
        return [row for one in self.sweeps for row in one.rows()]

    def record(self) -> dict[str, Any]:
        """Plain values, as `opticcl compare --sizes ... --json` prints them."""
        return {
            "rows": self.rows(),
            "left_out": [one.record() for one in self.left_out],
            "not_tried": self.not_tried,
        }


def sweep(
    fabric: Fabric,
    collective: str | Request,
    sizes: Iterable[int],
    *,
    algorithm: str = "auto",
    assumptions: str | Assumptions = DEFAULT_SET,
    engine: str = "closed_form",
    searches: Searches | None = None,
    progress: ProgressCallback = no_progress,
) -> Sweep:
    """Time a collective at every size on a fabric, each by its fastest algorithm; every plan is verified.

    Args:
        fabric: that carries the collective.
        collective: its name, or a request with a root.
        sizes: messages of every rank [bytes].
        algorithm: one for all sizes; "auto": the fastest for each.
        assumptions: named set of time assumptions, or a custom set; it chooses and charges.
        engine: that times are computed with; the fastest algorithm is found by the closed form in any case.
        searches: whose results are reused between calls, in place of `algorithm`, `assumptions` and `engine`.
        progress: called with a line of text before each search.
    Raises: UnsupportedError: the fabric or the named algorithm cannot do it. ParameterError: a barrier, which has no size.
    """
    wanted = as_request(collective)
    if wanted.name == "barrier":
        raise ParameterError("--sizes: a barrier has no message; try opticcl simulate -c barrier")
    searches = searches or Searches(algorithm, assumptions, engine=engine, progress=progress)
    search = searches.of(fabric, wanted)
    if search.declined:
        raise UnsupportedError(f"{searches.name} cannot do {wanted.name} on {fabric.name}: {search.declined}")
    points = []
    other = beside(searches.assumed)
    also = search.under(other.assumed)
    for size in sizes:
        timeline, candidate = search.timed(size)
        total_s, plan = timeline.total_s, candidate.profile.plan
        verdict, light = search.verdict(candidate), search.light(candidate)
        rate = size / total_s if total_s else 0.0
        points.append(
            Point(
                size,
                Plan(plan, size).algorithm,
                total_s,
                timeline.lower_bound_s,
                timeline.bound_by,
                rate,
                rate * moved_share(plan.schedule.collective),
                verdict.verdict,
                light,
                verdict.ok and searches.rule.allows(light),
                (other.name, also.timed(size)[0].total_s),
            )
        )
    return Sweep(fabric, wanted.name, tuple(points), tuple(search.failures.values()), search.not_tried)


def sweep_fabrics(
    fabrics: Iterable[tuple[str, Fabric]],
    collective: str | Request,
    sizes: Sequence[int],
    searches: Searches,
    excluded: Iterable[ExcludedFabric] = (),
    jobs: int = 1,
) -> Sweeps:
    """Sweep several fabrics; those that cannot carry the collective are left out.

    Args:
        fabrics: name and fabric of each.
        collective: its name, or a request with a root.
        sizes: messages of every rank [bytes].
        searches: for the fastest plans.
        excluded: fabrics that were left out before.
        jobs: processes; the result is the same with any number of them [count].
    Raises: UnsupportedError: no fabric can carry it. ParameterError: a barrier, which has no size.
    """
    given = list(fabrics)

    def of_fabric(i: int, progress: ProgressCallback) -> Sweep | str:
        searches.progress = progress
        try:
            return sweep(given[i][1], collective, sizes, searches=searches)
        except Exception as error:
            return reason_left_out(given[i][1], error)

    named: list[tuple[str, Sweep]] = []
    left_out = list(excluded)
    for (name, _), one in zip(given, each(of_fabric, len(given), jobs=jobs, progress=searches.progress), strict=True):
        if isinstance(one, str):
            left_out.append(ExcludedFabric(name, one))
        else:
            named.append((name, one))
            left_out += [ExcludedFabric(name, error) for error in one.failures]
    if not named:
        raise UnsupportedError(left_out[0].reason)
    return Sweeps(tuple(name for name, _ in named), tuple(one for _, one in named), tuple(left_out))


def fastest_of(sweeps: Sequence[Sweep]) -> list[list[int]]:
    """Indices of the sweeps that are the fastest at each size, fastest first: the best and those that tie with it.

    Of those that are ranked where there are any, without references.

    Args: sweeps: of the same sizes.
    """
    fastest = []
    for points in zip(*(one.points for one in sweeps), strict=True):
        ranked = [i for i, point in enumerate(points) if point.ranked and not sweeps[i].fabric.is_reference]
        by_time = sorted(ranked or range(len(points)), key=lambda i: points[i].total_s)
        fastest.append([i for i in by_time if is_tie(points[i].total_s, points[by_time[0]].total_s)])
    return fastest
