"""Loads and latencies of the routes of steps, without lists of the steps.

Of a step that is too large to list, some routes are evaluated at a time. Of a pipeline, stages are: what the routes of a stage
carry is the same in every step in which it is active, and in every schedule that cuts the message into other pieces.

Routes of some senders define those of all (`opticcl.ir.representatives`): the images of a link carry equal shares of what
listed routes carry on any of them, times the number of images of a route. The longest latency is looked for among all images,
since latency by a floor plan differs from image to image.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import inf
from typing import NamedTuple

import numpy as np

from opticcl.ir import CircuitPlan, Circuits, Fabric, IntArray
from opticcl.ir.limits import ROUTES_AT_ONCE, limit
from opticcl.ir.orbits import first_of_orbit
from opticcl.ir.path_kernels import add_loads, sums_of_paths
from opticcl.ir.paths import paths_of_rows
from opticcl.ir.phases import Steps
from opticcl.ir.recent import RECENT
from opticcl.ir.representatives import LightMove, RoutedStep
from opticcl.simulate.latency import FloatArray, PathLatency

__all__ = ["RoutesOfStep", "RoutesOfWaves", "longest_of_images_s", "over_orbits", "routes_of_step"]

MOST_HOPS = limit("routes.MOST_HOPS")


def over_orbits(carried: FloatArray, first: IntArray, products: int) -> FloatArray:
    """What each part carries, where listed circuits and all their images do; nothing without images, float64 (parts,).

    Args:
        carried: by listed circuits, (parts,).
        first: least part of the orbit of each, -1 without images, int (parts,).
        products: of powers of the moves [count].
    """
    known = first >= 0
    total = np.bincount(first[known], carried[known], minlength=len(carried)) * products
    shares = total / np.maximum(1, np.bincount(first[known], minlength=len(carried)))
    each: FloatArray = np.append(shares, 0.0)[first]
    return each


class RoutesOfStep:
    """Of the routes of a step, evaluated once for all that is asked at once.

    Args:
        plan: with the step.
        i: its number.
        routed: its routes.
    """

    def __init__(self, plan: CircuitPlan, i: int, routed: RoutedStep) -> None:
        self._plan, self._step, self._routed = plan, i, routed
        equal = plan.schedule.steps.joins_all(i)
        self._known = _of_exchange(plan.fabric) if equal else _Known()
        self._each = int(plan.schedule.steps.sent_by(i, routed.senders[:1]).size_chunks()[0]) if equal else 1

    def link_chunks(self, laws: Sequence[PathLatency] = ()) -> FloatArray:
        """What each link carries, float64 (links,) [chunks].

        Args: laws: of latencies, which are evaluated along with it.
        """
        if self._known.carried is None:
            self._evaluate(laws)
        assert self._known.carried is not None
        return self._known.carried * self._each

    def slowest(self, laws: Sequence[PathLatency] = ()) -> float:
        """Time of the busiest link [s for each byte of a chunk].

        Args: laws: of latencies, which are evaluated along with it.
        """
        return _slowest(self._plan.fabric, self.link_chunks(laws))

    def longest_s(self, law: PathLatency, also: Sequence[PathLatency] = ()) -> float:
        """Latency of the longest route [s].

        Args:
            law: of latencies.
            also: other laws, which are evaluated along with it.
        """
        if law.constant:
            return law.base_s
        if law not in self._known.longest_s:
            self._evaluate([law, *also])
        return self._known.longest_s[law]

    def _evaluate(self, laws: Sequence[PathLatency]) -> None:
        """Loads, unless they are known, and latencies by laws."""
        plan, routed, known = self._plan, self._routed, self._known
        new = dict.fromkeys((law for law in laws if not law.constant and law not in known.longest_s), -inf)
        links = sum(resource.count for resource in plan.fabric.resources)
        carried = np.zeros(links, np.int64) if known.carried is None else None
        for ends in plan.schedule.steps.ends(self._step, ROUTES_AT_ONCE, routed.senders):
            circuits, amount = routed.circuits(ends), ends.chunks // self._each
            if carried is not None:
                add_loads(circuits.hops, circuits.hop_offsets, amount, carried)
            for law, longest_s in new.items():
                new[law] = longest_of_images_s(law, circuits, routed.moves, longest_s)
        known.longest_s.update(new)
        if carried is not None:
            products = plan.fabric.num_nodes // max(1, len(routed.senders))
            known.carried = over_orbits(carried, _orbits_of_hops(tuple(routed.moves), links), products)


class RoutesOfWaves:
    """Of the routes of a step that is several waves of a pipeline, of which each is evaluated once for all steps that it is in.

    Args:
        fabric: with the routes.
        waves: of the step, see `Steps.waves`.
    """

    def __init__(self, fabric: Fabric, waves: Sequence[Steps]) -> None:
        number = RECENT.number_of(fabric)
        self._fabric = fabric
        self._waves = [(RECENT.number((number, wave.digest, "routes")), wave) for wave in waves]

    def _each(self, laws: Sequence[PathLatency]) -> Iterator[_Wave]:
        """Every wave, with its latencies by laws."""
        laws = [law for law in laws if not law.constant]
        for number, step in self._waves:
            wave = RECENT.value(number, 0, lambda _, step=step: _Wave(self._fabric, step, laws))  # type: ignore[misc]
            wave.evaluate(laws)
            yield wave

    @property
    def num_hops(self) -> int:
        """Links on the routes of the step, each as often as it is on one [count]."""
        return sum(wave.num_hops for wave in self._each(()))

    def link_chunks(self, laws: Sequence[PathLatency] = ()) -> FloatArray:
        """What each link carries, float64 (links,) [chunks].

        Args: laws: of latencies, which are evaluated along with it.
        """
        carried = np.zeros(sum(resource.count for resource in self._fabric.resources))
        for wave in self._each(laws):
            carried += wave.carried
        return carried

    def slowest(self, laws: Sequence[PathLatency] = ()) -> float:
        """Time of the busiest link [s for each byte of a chunk].

        Args: laws: of latencies, which are evaluated along with it.
        """
        return _slowest(self._fabric, self.link_chunks(laws))

    def longest_s(self, law: PathLatency, also: Sequence[PathLatency] = ()) -> float:
        """Latency of the longest route [s].

        Args:
            law: of latencies.
            also: other laws, which are evaluated along with it.
        """
        if law.constant:
            return law.base_s
        return max((wave.longest_s[law] for wave in self._each([law, *also])), default=law.base_s)


class _Wave:
    """What is known of the routes of a wave.

    Args:
        fabric: with the routes.
        step: of the wave.
        laws: of latencies that are not constant, which are evaluated along with the loads.

    Attributes:
        carried: by each link, int64 (links,) [chunks].
        num_hops: links on its routes, each as often as it is on one [count].
        longest_s: latency of the longest route, by the law [s].
    """

    def __init__(self, fabric: Fabric, step: Steps, laws: Sequence[PathLatency]) -> None:
        self._fabric, self._step = fabric, step
        self.carried = np.zeros(sum(resource.count for resource in fabric.resources), np.int64)
        self.num_hops = 0
        self.longest_s = dict.fromkeys(laws, -inf)
        for circuits, chunks in self._routes():
            add_loads(circuits.hops, circuits.hop_offsets, chunks, self.carried)
            self.num_hops += len(circuits.hops)
            self._lengthen(laws, circuits)

    @property
    def num_bytes(self) -> int:
        """Of its columns [bytes]."""
        return self.carried.nbytes

    def evaluate(self, laws: Sequence[PathLatency]) -> None:
        """Latencies by laws that are not constant, unless they are known."""
        new = [law for law in laws if law not in self.longest_s]
        if not new:
            return
        self.longest_s.update(dict.fromkeys(new, -inf))
        for circuits, _ in self._routes():
            self._lengthen(new, circuits)

    def _lengthen(self, laws: Sequence[PathLatency], circuits: Circuits) -> None:
        for law in laws:
            self.longest_s[law] = max(self.longest_s[law], law.longest_s(circuits))

    def _routes(self) -> Iterator[tuple[Circuits, IntArray]]:
        """Some routes at a time, and what each carries [chunks]."""
        fabric, step = self._fabric, self._step
        for ends in step.ends(0, ROUTES_AT_ONCE, np.arange(step.space.num_ranks)):
            src, dst = fabric.machine_nodes(ends.src), fabric.machine_nodes(ends.dst)
            yield Circuits.of(np.arange(len(src)), src, dst, path=fabric.route(src, dst)), ends.chunks


def _slowest(fabric: Fabric, carried: FloatArray) -> float:
    """Time of the busiest link [s for each byte of a chunk].

    Args:
        fabric: with the links.
        carried: by each of them, float64 (links,) [chunks].
    """
    of_link = np.repeat([r.capacity for r in fabric.resources], [r.count for r in fabric.resources])
    return float((carried / of_link).max(initial=0)) * 8


def routes_of_step(plan: CircuitPlan, i: int) -> RoutesOfStep | RoutesOfWaves | None:
    """Of the routes of a step that is too large to list or consists of waves; None for others, or where circuits are no routes.

    Args:
        plan: with the step.
        i: its number.
    """
    routed, fabric, steps = plan.routed(i), plan.fabric, plan.schedule.steps
    if routed is not None and routed.moves:
        return RoutesOfStep(plan, i, routed)
    if plan.on_routes and (waves := steps.waves(i)):
        made = RoutesOfWaves(fabric, waves)
        if routed is not None or made.num_hops <= MOST_HOPS:
            return made
    return None if routed is None else RoutesOfStep(plan, i, routed)


class _Known:
    """What is known of the routes of a step.

    Attributes:
        carried: by each link, float64 (links,) [chunks]; None before it is evaluated.
        longest_s: latency of the longest route, by the law [s].
    """

    def __init__(self) -> None:
        self.carried: FloatArray | None = None
        self.longest_s: dict[PathLatency, float] = {}


@lru_cache(maxsize=4)
def _of_exchange(fabric: Fabric) -> _Known:
    """Of an exchange of a chunk between all pairs, which is one step whatever algorithm has it.

    Args: fabric: with the routes.
    """
    return _Known()


def longest_of_images_s(
    law: PathLatency, circuits: Circuits, moves: Sequence[LightMove], at_least_s: float = -inf
) -> float:
    """Latency of the longest path among circuits and all their images [s].

    A bound of a path is the sum of the largest latencies that its hops have after any move. Moves are tried one after the
    other, and a path is given up as soon as the bound under those that are left is no more than the longest found.

    Args:
        law: of the latency of hops.
        circuits: some.
        moves: of the machine; they commute.
        at_least_s: the result is no less [s].
    """
    if law.constant or not len(circuits):
        return max(at_least_s, law.base_s)
    tables = _largest_of_images(law, tuple(moves))
    paths, longest_s = _Paths(circuits.hops, circuits.hop_offsets), at_least_s - law.base_s
    if moves:
        highest = paths.sums(tables[-1]).argmax()
        longest_s = _longest(paths.take(np.array([highest])), moves, tables, longest_s)
    return law.base_s + _longest(paths, moves, tables, longest_s)


@lru_cache(4)
def _largest_of_images(law: PathLatency, moves: tuple[LightMove, ...]) -> list[FloatArray]:
    """The largest latency of each hop after any product of the first moves, the fewest first, float64 (hops,) each [s].

    Args:
        law: of the latency of hops.
        moves: of the machine.
    """
    seconds = law.of_hops(np.arange(law.num_hops))
    assert seconds is not None  # the law is not constant
    tables = [seconds]
    for number in range(len(moves)):
        first = _orbits_of_hops(moves[: number + 1], len(seconds))
        largest = np.full(len(seconds), -inf)
        np.maximum.at(largest, first, seconds)
        tables.append(largest[first])
    return tables


@lru_cache(8)
def _orbits_of_hops(moves: tuple[LightMove, ...], count: int) -> IntArray:
    """`first_of_orbit` of hops; those of the last steps are kept, as most steps have the same moves.

    Args:
        moves: of the machine.
        count: of hops.
    """
    return first_of_orbit([move.hops for move in moves], count)


class _Paths(NamedTuple):
    """Paths, end to end.

    Args:
        hops: of all paths, int (hops,).
        offsets: where each path begins, int64 (paths + 1,).
    """

    hops: IntArray
    offsets: IntArray

    def sums(self, table: FloatArray) -> FloatArray:
        """Sum of a value of each hop along each path, float64 (paths,)."""
        return sums_of_paths(self.hops, self.offsets, table)

    def take(self, rows: IntArray) -> _Paths:
        """The given paths."""
        return _Paths(*paths_of_rows(self.hops, self.offsets, rows))


def _longest(paths: _Paths, moves: Sequence[LightMove], tables: Sequence[FloatArray], longest_s: float) -> float:
    """The longest of some paths and of their images under moves, or what is found where it is no less.

    Args:
        paths: as far as they are moved.
        moves: that are not tried yet.
        tables: largest value of each hop after any product of the first moves, by their number.
        longest_s: so far.
    """
    sums = paths.sums(tables[len(moves)])
    if not moves:
        return max(longest_s, float(sums.max(initial=-inf)))
    start = image = paths.take(np.flatnonzero(sums > longest_s))
    while len(start.hops):
        longest_s = _longest(image, moves[:-1], tables, longest_s)
        image = image._replace(hops=moves[-1].hops[image.hops].astype(image.hops.dtype, copy=False))
        if np.array_equal(image.hops, start.hops):
            break
    return longest_s
