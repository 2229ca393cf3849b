"""A cache of steps and circuits, bounded in bytes: the least recently used entry is evicted first."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Generic, TypeVar

from opticcl.ir.circuit_plan import CircuitPlan, ClassRounds, LoweredBy, RoundsOfRule
from opticcl.ir.circuits import Circuits
from opticcl.ir.phases import Steps
from opticcl.ir.recent import RECENT, Recent
from opticcl.ir.schedule import Schedule

__all__ = ["RECENT", "StepCache"]

MOST_BYTES_OF_VALUES = 1 << 26
"""Of all values of steps that a function has: some 30,000 small ones [bytes]."""

T = TypeVar("T")
U = TypeVar("U")

MOST_BYTES = 360_000_000
"""Of all cached arrays, unless another limit is given: a step of all pairs of 4,096 ranks, 352 MB with its parts, is kept
[bytes]."""


class StepCache(Recent):
    """Steps of schedules and rounds of plans; and values of their steps, which large ones do not displace.

    Args: max_bytes: of all cached arrays together [bytes].
    """

    def __init__(self, max_bytes: int = MOST_BYTES) -> None:
        super().__init__(max_bytes)
        self._values: dict[
            Any, Recent
        ] = {}  # of each function: the large ones of one displace no small ones of another

    def clear_unshared(self) -> None:
        """Forget the steps and rounds of functions that have no equal, and their values."""
        super().clear_unshared()
        for values in self._values.values():
            values.clear_unshared()

    def of_schedule(self, schedule: Schedule) -> Schedule:
        """The same schedule with cached steps; phases keep their own."""
        if isinstance(schedule.step, Steps):
            return schedule
        return replace(schedule, step=_Cached(self, self.number(), schedule.step))

    def each(self, schedule: Schedule, function: Callable[[Steps, Iterable[int]], Sequence[U]]) -> Callable[[int], U]:
        """A function of each step of a schedule, cached for all schedules with an equal phase.

        Args:
            schedule: any, with cached steps or not.
            function: one of a module, which takes the steps and numbers of some, and gives the values of one or more of them,
                from the first on.
        """
        steps, values = schedule.steps, self._values.setdefault(function, Recent(MOST_BYTES_OF_VALUES))
        own = values.number()
        starts = [run.start for run in schedule.step_classes()]

        def place(i: int) -> tuple[int, int]:
            number, k = steps.phase_of(i)
            key = steps.key(number)
            return (own, i) if key is None else (values.number(key), k)

        def wanted(i: int) -> Iterator[int]:
            yield i
            yield from (at for at in islice(starts, bisect_right(starts, i), None) if values.known(*place(at)) is None)

        def value(i: int) -> U:
            known: U | None = values.known(*place(i))
            if known is not None:
                return known
            several = function(steps, wanted(i))
            for at, one in list(zip(wanted(i), several, strict=False)):
                values.keep(*place(at), one)
            return several[0]

        return value

    def of_plan(self, plan: CircuitPlan) -> CircuitPlan:
        """The same plan with cached circuits; classes whose steps have the same circuits by definition remain."""
        rounds = plan.rounds
        if isinstance(rounds, ClassRounds):
            return replace(plan, rounds=ClassRounds(rounds.classes, self._cached(rounds.rounds)))
        return replace(plan, rounds=self._cached(rounds))

    def _cached(self, generate: Callable[[int], tuple[Circuits, ...]]) -> _CachedRounds:
        return _CachedRounds(self, self.number(), generate)


@dataclass(frozen=True, slots=True, eq=False)
class _Cached(Generic[T]):
    """A function with a cache. It pickles without the cache."""

    cache: StepCache
    number: int
    generate: Callable[[int], T]

    def __call__(self, i: int) -> T:
        return self.cache.value(self.number, i, self.generate)

    def __reduce__(self) -> tuple[Any, ...]:
        return _itself, (self.generate,)


class _CachedRounds(_Cached[tuple[Circuits, ...]], RoundsOfRule):
    """Rounds with a cache."""

    __slots__ = ()

    @property
    def lowered_by(self) -> LoweredBy | None:
        """The rule of the rounds; None where it gives circuits of all senders alone."""
        return self.generate.lowered_by if isinstance(self.generate, RoundsOfRule) else None


def _itself(generate: Callable[[int], T]) -> Callable[[int], T]:
    return generate
