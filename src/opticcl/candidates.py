"""The fastest of all algorithms that do a collective on a fabric, found with as little looking as possible.

Best first: of every candidate it is known what it takes at least. The one that promises most is looked at a little closer:
first the bound of its next run of equal steps, then, once all its steps have bounds, its next run with circuits. When the
one that promises most has been looked at as a whole, no other can be faster. What was seen holds for every message size.

Source: Hart, Nilsson and Raphael 1968.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from heapq import heapify, heappop, heappush
from math import inf

import numpy as np

from opticcl.circuits import lower
from opticcl.collective import Request
from opticcl.errors import UnsupportedError
from opticcl.ir import CircuitPlan, Fabric, Schedule
from opticcl.memory import Memory
from opticcl.schedule import generate
from opticcl.simulate import Assumptions, Cost, Profile, class_bounds, costs

__all__ = ["Candidate", "Candidates"]


class Candidate:
    """A schedule on a fabric, looked at as far as somebody asked."""

    def __init__(self, fabric: Fabric, schedule: Schedule, assumed: Assumptions, memory: Memory) -> None:
        self.fabric, self.assumed, self._memory = fabric, assumed, memory
        self._forgetful, self.schedule = schedule, memory.of_schedule(schedule)
        changes_cost = assumed.initial == "cold" or assumed.reconfiguration_charge == "every_step"
        self._num_classes = len(schedule.step_classes())
        self._to_bound = class_bounds(self.schedule, fabric, changes_cost=changes_cost)
        self._bounds: list[tuple[float, float]] = []
        self._to_look = self._looks()
        self._costs: list[Cost] = []
        self._plan: CircuitPlan | None = None

    def __repr__(self) -> str:
        looked = "complete" if self.complete else f"{len(self._costs)} of {self._num_classes} runs of steps seen"
        return f"<Candidate {self.schedule.name} on {self.fabric.name}: {looked}>"

    @property
    def complete(self) -> bool:
        """Whether its time is known."""
        return self._plan is not None and len(self._costs) == self._num_classes

    def plan(self) -> CircuitPlan:
        """Its circuits, for those who keep a plan longer than what was seen on the way to it."""
        return lower(self.fabric, self._forgetful)

    @property
    def profile(self) -> Profile:
        """What its time is made of, for any message size, once it is complete."""
        assert self._plan is not None
        return Profile(self._plan, self.assumed, tuple(self._costs))

    def least_s(self, sizes: Sequence[int]) -> float:
        """What messages one after the other take at least, from what is known; if it is complete, exactly that [s]."""
        rest = self._bounds[len(self._costs) :]
        least = len(sizes) * sum(fixed for fixed, _ in rest) + sum(sizes) * sum(of_byte for _, of_byte in rest)
        return least + sum(self._took_s(cost, sizes) for cost in self._costs)

    def look_closer(self, sizes: Sequence[int]) -> float:
        """Look at the next run of steps: by how much the messages take longer than `least_s` knew [s].

        Raises: UnsupportedError: the fabric cannot carry it.
        """
        if len(self._bounds) < self._num_classes:
            self._bounds.append(next(self._to_bound))
            if len(self._bounds) == self._num_classes:
                self._to_bound.close()  # and let go of the step that it saw last
            return self._bounded_s(len(self._bounds) - 1, sizes)
        cost = next(self._to_look, None)
        if cost is None:  # there are no steps at all
            return 0.0
        self._costs.append(cost)
        if self.complete:
            self._to_look.close()
        return self._took_s(cost, sizes) - self._bounded_s(len(self._costs) - 1, sizes)

    def _looks(self) -> Generator[Cost, None, None]:
        self._plan = self._memory.of_plan(lower(self.fabric, self.schedule))
        yield from costs(self._plan, self.assumed)

    def _bounded_s(self, i: int, sizes: Sequence[int]) -> float:
        fixed_s, s_per_byte = self._bounds[i]
        return len(sizes) * fixed_s + sum(sizes) * s_per_byte

    def _took_s(self, cost: Cost, sizes: Sequence[int]) -> float:
        chunks = self.schedule.collective.num_chunks
        return sum(cost.total_s(self.fabric, self.assumed, size / chunks) for size in sizes)


class Candidates:
    """All algorithms that do a collective on a fabric.

    Args:
        fabric: where.
        wanted: what.
        algorithms: as `generate` takes them; those that decline are left out.
        assumed: what times rest on.
        only: schedules that are worth a look; all of them by default.
        memory: that those who look on share; None: one of its own.
    """

    def __init__(
        self,
        fabric: Fabric,
        wanted: Request,
        algorithms: Iterable[str],
        assumed: Assumptions,
        only: Callable[[list[Schedule]], list[Schedule]] = lambda schedules: schedules,
        memory: Memory | None = None,
    ) -> None:
        memory = memory or Memory()
        schedules = []
        for algorithm in algorithms:
            with suppress(UnsupportedError):
                schedules.append(generate(algorithm, wanted, fabric))
        self.fabric = fabric
        self._candidates = [Candidate(fabric, schedule, assumed, memory) for schedule in only(schedules)]
        self._refusals: dict[int, str] = {}

    def fastest(
        self, sizes: Sequence[int], *, resolution_s: float = 0.0, algorithm: str | None = None
    ) -> Candidate | None:
        """The one that takes least for these messages one after the other, or None if the fabric can carry none.

        Args:
            resolution_s: what they may take longer than they must: nothing faster is looked for that could save less [s].
            algorithm: name of the only one that may answer.
        """
        rivals = [
            (candidate.least_s(sizes), i)
            for i, candidate in enumerate(self._candidates)
            if i not in self._refusals and algorithm in (None, candidate.schedule.name)
        ]
        heapify(rivals)
        best = min((rival for rival in rivals if self._candidates[rival[1]].complete), default=(inf, -1))
        while rivals and rivals[0][0] < best[0] - resolution_s:
            least_s, i = heappop(rivals)
            candidate = self._candidates[i]
            try:
                least_s += candidate.look_closer(sizes)
            except UnsupportedError as error:
                self._refusals[i] = str(error)
                continue
            if candidate.complete:
                least_s = candidate.least_s(sizes)
                best = min(best, (least_s, i))
            heappush(rivals, (least_s, i))
        return self._candidates[best[1]] if best[1] >= 0 else None

    def why_none(self) -> str:
        """Why `fastest` has no answer: "; " and what stops the first algorithm that has a schedule but no light, or which
        nodes lie apart; "" where neither is the reason."""
        for i in sorted(self._refusals):
            return f"; {self._refusals[i]}"
        fabric = self.fabric
        ranks = np.arange(1, fabric.num_nodes)
        first = np.zeros_like(ranks)
        for src, dst in ((first, ranks), (ranks, first)):
            apart = np.flatnonzero(~fabric.linked(src, dst))
            if len(apart):
                ends = fabric.machine_nodes(np.array([src[apart[0]], dst[apart[0]]]))
                sender, receiver = (fabric.coordinates(int(node)) for node in ends)
                return f"; no circuit leads from node {sender} to node {receiver}; give a job of nodes that are joined"
        return ""
