"""A cache of steps and circuits, bounded in bytes: the least recently used entry is evicted first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np

from opticcl.ir.circuit_plan import CircuitPlan, ClassRounds
from opticcl.ir.circuits import Circuits
from opticcl.ir.schedule import Schedule, Transfers

__all__ = ["RECENT", "StepCache"]

T = TypeVar("T")
U = TypeVar("U")

MOST_BYTES = 360_000_000
"""Of all cached arrays, unless another limit is given: a step of all pairs of 4,096 ranks, 352 MB with its parts, is kept
[bytes]."""

OVERHEAD_BYTES = 2048
"""Of an entry, beside its arrays."""


class StepCache:
    """Steps of schedules and rounds of plans, least recently used evicted first.

    Args: max_bytes: of all cached arrays together [bytes].
    """

    def __init__(self, max_bytes: int = MOST_BYTES) -> None:
        self._max_bytes, self._num_bytes, self._functions = max_bytes, 0, 0
        self._numbers: dict[Hashable, int] = {}
        self._entries: OrderedDict[tuple[int, int], tuple[Any, int]] = OrderedDict()
        self._lock = Lock()

    def of_schedule(self, schedule: Schedule) -> Schedule:
        """The same schedule with cached steps; runs that define its steps still do. Step functions of one `key` share them."""
        return replace(schedule, step=_Cached(self, self.number(getattr(schedule.step, "key", None)), schedule.step))

    def each(self, schedule: Schedule, function: Callable[[Transfers], U]) -> Callable[[int], U]:
        """A function of each step of a schedule, cached as the steps are.

        Args:
            schedule: any, with cached steps or not.
            function: one of a module, which takes the transfers of a step.
        """
        step, key = schedule.step, getattr(schedule.step, "key", None)
        return _Cached(self, self.number(None if key is None else (key, function)), lambda i: function(step(i)))

    def of_plan(self, plan: CircuitPlan) -> CircuitPlan:
        """The same plan with cached circuits; classes whose steps have the same circuits by definition remain."""
        rounds = plan.rounds
        if isinstance(rounds, ClassRounds):
            return replace(plan, rounds=ClassRounds(rounds.classes, self._cached(rounds.rounds)))
        return replace(plan, rounds=self._cached(rounds))

    def _cached(self, generate: Callable[[int], T]) -> Callable[[int], T]:
        return _Cached(self, self.number(), generate)

    def clear(self) -> None:
        """Forget all values; functions that were cached compute them again."""
        with self._lock:
            self._entries.clear()
            self._num_bytes = 0

    def clear_unshared(self) -> None:
        """Forget the values of functions that have no equal."""
        with self._lock:
            shared = set(self._numbers.values())
            for entry in [entry for entry in self._entries if entry[0] not in shared]:
                self._num_bytes -= self._entries.pop(entry)[1]

    def number(self, key: Hashable = None) -> int:
        """A number of a function.

        Args: key: that functions with equal values have in common; None: the number is a new one.
        """
        with self._lock:
            known = None if key is None else self._numbers.get(key)
            if known is not None:
                return known
            self._functions += 1
            if key is not None:
                self._numbers[key] = self._functions
            return self._functions

    def value(self, number: int, i: int, generate: Callable[[int], T]) -> T:
        """Value of a function at i, from the cache if it is there.

        Args:
            number: of the function.
            i: its argument.
            generate: the function.
        """
        with self._lock:
            found = self._entries.get((number, i))
            if found is not None:
                self._entries.move_to_end((number, i))
                hit: T = found[0]
                return hit
        columns = generate(i)
        self._insert((number, i), columns)
        return columns

    def _insert(self, key: tuple[int, int], columns: Any) -> None:
        arrays = sum(map(_num_bytes, columns)) if isinstance(columns, tuple) else _num_bytes(columns)
        size = arrays + OVERHEAD_BYTES
        if size > self._max_bytes:
            return
        with self._lock:
            _, before = self._entries.pop(key, (None, 0))  # another thread was faster
            self._entries[key] = columns, size
            self._num_bytes += size - before
            while self._num_bytes > self._max_bytes:
                _, (_, freed) = self._entries.popitem(last=False)
                self._num_bytes -= freed


@dataclass(frozen=True, slots=True, eq=False)
class _Cached(Generic[T]):
    """A function with a cache; `function` is what it caches, without wrappers. It pickles without the cache."""

    cache: StepCache
    number: int
    generate: Callable[[int], T]

    def __call__(self, i: int) -> T:
        return self.cache.value(self.number, i, self.generate)

    @property
    def function(self) -> Callable[[int], T]:
        return getattr(self.generate, "function", self.generate)

    @property
    def key(self) -> Hashable:
        return getattr(self.generate, "key", None)

    @property
    def runs(self) -> tuple[Any, ...]:
        return getattr(self.generate, "runs", ())

    def __reduce__(self) -> tuple[Any, ...]:
        return _itself, (self.generate,)


def _itself(generate: Callable[[int], T]) -> Callable[[int], T]:
    return generate


def _num_bytes(columns: Any) -> int:
    """Size of the arrays of `Transfers` or `Circuits` [bytes]."""
    if isinstance(columns, Circuits):
        return columns.num_bytes
    values = [getattr(columns, name) for name in getattr(columns, "__slots__", ())]
    return sum([value.nbytes for value in values if isinstance(value, np.ndarray)])


RECENT = StepCache(1 << 26)
"""Steps and circuits that were generated last in this process: a plan that is verified and simulated generates them once."""
