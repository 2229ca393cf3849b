"""A schedule and the light that carries it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from opticcl.ir.circuits import Circuits
from opticcl.ir.fabric import Fabric
from opticcl.ir.schedule import Schedule

__all__ = ["CircuitPlan"]


@dataclass(frozen=True, slots=True)
class CircuitPlan:
    """A schedule and the light that carries it.

    Args:
        fabric: where it runs.
        schedule: what it carries.
        rounds: step index -> circuits of each round; the circuits of a round stand at the same time, a step that does not
            fit takes several rounds. On packet fabrics a circuit is a route.
    """

    fabric: Fabric
    schedule: Schedule
    rounds: Callable[[int], tuple[Circuits, ...]]

    def __repr__(self) -> str:
        return f"<CircuitPlan of {self.schedule!r} on {self.fabric!r}>"
