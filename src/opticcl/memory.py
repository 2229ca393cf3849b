"""What was made lately, so that those who ask again need not wait: steps and circuits, up to so many bytes in all."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from opticcl.ir import CircuitPlan, Schedule

__all__ = ["Memory"]

T = TypeVar("T")


class Memory:
    """Steps of schedules and rounds of plans; what nobody asked for longest is forgotten first.

    Args: max_bytes: of all arrays together [bytes].
    """

    def __init__(self, max_bytes: int = 1 << 28) -> None:
        self._max_bytes, self._num_bytes, self._functions = max_bytes, 0, 0
        self._made: OrderedDict[tuple[int, int], tuple[Any, int]] = OrderedDict()

    def of_schedule(self, schedule: Schedule) -> Schedule:
        """The same schedule, whose steps are remembered."""
        return replace(schedule, step=self._remembering(schedule.step))

    def of_plan(self, plan: CircuitPlan) -> CircuitPlan:
        """The same plan, whose circuits are remembered."""
        return replace(plan, rounds=self._remembering(plan.rounds))

    def _remembering(self, make: Callable[[int], T]) -> Callable[[int], T]:
        self._functions += 1
        function = self._functions

        def remembered(i: int) -> T:
            found = self._made.get((function, i))
            if found is None:
                made = make(i)
                self._keep((function, i), made)
                return made
            self._made.move_to_end((function, i))
            kept: T = found[0]
            return kept

        return remembered

    def _keep(self, key: tuple[int, int], made: Any) -> None:
        size = sum(map(_num_bytes, made)) if isinstance(made, tuple) else _num_bytes(made)
        if size > self._max_bytes:
            return
        self._made[key] = made, size
        self._num_bytes += size
        while self._num_bytes > self._max_bytes:
            _, (_, freed) = self._made.popitem(last=False)
            self._num_bytes -= freed


def _num_bytes(columns: Any) -> int:
    """Of the arrays of `Transfers` or `Circuits`."""
    values = [getattr(columns, name) for name in columns.__slots__]
    return sum([value.nbytes for value in values if isinstance(value, np.ndarray)])
