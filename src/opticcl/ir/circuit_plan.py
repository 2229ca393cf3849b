"""A schedule and the light that carries it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opticcl.ir._common import is_value, same_columns
from opticcl.ir.circuits import Circuits
from opticcl.ir.fabric import Fabric
from opticcl.ir.limits import ROUTES_AT_ONCE, ROUTES_IN_PIECES, ROUTES_LISTED
from opticcl.ir.representatives import Represented, StepImages, SymmetricRounds
from opticcl.ir.schedule import Schedule
from opticcl.ir.transfers import Transfers

__all__ = ["CircuitPlan", "ClassRounds", "StoredRounds", "listed_plan"]


@dataclass(frozen=True, slots=True)
class StoredRounds:
    """A function that looks the rounds of a step up.

    Args:
        steps: circuits of each round, by step.
    """

    steps: tuple[tuple[Circuits, ...], ...]

    def __call__(self, i: int) -> tuple[Circuits, ...]:
        """Circuits of each round of step i."""
        return self.steps[i]


@dataclass(frozen=True, slots=True)
class ClassRounds:
    """Circuits of a step, which by definition are those of the first step of its class.

    Args:
        classes: the steps in order, cut into runs of equal steps.
        rounds: step index -> circuits of each round; called for first steps only.
    """

    classes: tuple[range, ...]
    rounds: Callable[[int], tuple[Circuits, ...]]

    def __call__(self, i: int) -> tuple[Circuits, ...]:
        """Circuits of step i."""
        return self.rounds(self.first_of(i))

    def first_of(self, i: int) -> int:
        """First step of the class of step i."""
        return self.classes[bisect_right(self.classes, i, key=lambda steps: steps.start) - 1].start


@dataclass(frozen=True, slots=True, eq=False)
class CircuitPlan:
    """A schedule and the light that carries it.

    Args:
        fabric: where it runs.
        schedule: what it carries.
        rounds: step index -> circuits of each round; the circuits of a round stand at the same time, a step that does not
            fit takes several rounds. On packet fabrics a circuit is a route.
        light: gives the circuits of some senders for those of all; None: all are listed.
        routed: whether circuits are the fabric's own routes, one for each transfer.
    """

    fabric: Fabric
    schedule: Schedule
    rounds: Callable[[int], tuple[Circuits, ...]]
    light: Represented | None = None
    routed: bool = False

    def __repr__(self) -> str:
        return f"<CircuitPlan of {self.schedule!r} on {self.fabric!r}>"

    def stream(self, i: int) -> Iterator[Circuits] | None:
        """Circuits of the only round of step i, some at a time, or None where `rounds(i)` is small enough, or no routes.

        Each transfer has one circuit, a route, and they come in the order of the transfers, so that a step of all pairs of
        thousands of nodes needs no memory for its routes.
        """
        if not self.routed:
            return None
        transfers = self.schedule.step(i)
        most = min(ROUTES_LISTED, ROUTES_IN_PIECES) if len(self.fabric.lines) else ROUTES_LISTED
        if len(transfers) <= most:
            return None
        return self.routes(transfers)

    def routes(self, transfers: Transfers) -> Iterator[Circuits]:
        """Routes of the fabric, some at a time.

        Args: transfers: of a step.
        """
        nodes = self.fabric.machine_nodes
        for first in range(0, len(transfers), ROUTES_AT_ONCE):
            src, dst = (nodes(column[first : first + ROUTES_AT_ONCE]) for column in (transfers.src, transfers.dst))
            yield Circuits.of(np.arange(first, first + len(src)), src, dst, path=self.fabric.route(src, dst))

    def images(self, i: int) -> StepImages | None:
        """Step i by the transfers of some senders, where the circuits of these are given for those of all; else None."""
        represented = self.light is not None and self.light.represents(i)
        return StepImages(self.schedule.steps, i) if represented else None

    def symmetric(self, i: int) -> SymmetricRounds | None:
        """Circuits of step i by those of some senders, where the step is too large to list; None where the rule has none."""
        return self.light.symmetric(i) if self.light is not None and self.light.represents(i) else None

    @property
    def has_images(self) -> bool:
        """Whether some step is not listed."""
        light = self.light
        return light is not None and any(light.represents(steps.start) for steps in self.schedule.step_classes())

    def __eq__(self, other: object) -> bool:
        """Equal fabrics and schedules, and rounds equal by their own equality, else the circuits of every round."""
        if not isinstance(other, CircuitPlan):
            return NotImplemented
        if self.fabric != other.fabric or self.schedule != other.schedule:
            return False
        return self.rounds == other.rounds or all(
            len(mine) == len(its) and all(map(same_columns, mine, its))
            for mine, its in ((self.rounds(i), other.rounds(i)) for i in range(self.schedule.num_steps))
        )

    def __hash__(self) -> int:
        return hash((self.fabric, self.schedule))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles with its function of rounds if that can be pickled, else with the circuits of every step."""
        rounds = self.rounds
        if not is_value(rounds.rounds if isinstance(rounds, ClassRounds) else rounds):
            rounds = StoredRounds(tuple(self.rounds(i) for i in range(self.schedule.num_steps)))
        return CircuitPlan, (self.fabric, self.schedule, rounds, self.light, self.routed)


def listed_plan(plan: CircuitPlan) -> CircuitPlan:
    """The plan with the listed rows alone of steps that images define: transfers and circuits of some senders.

    The last step is kept.
    """
    last: list[tuple[int, tuple[StepImages, SymmetricRounds] | None]] = []

    def defined(i: int) -> tuple[StepImages, SymmetricRounds] | None:
        if not last or last[0][0] != i:
            step, rounds = plan.images(i), plan.symmetric(i)
            last[:] = [(i, None if step is None or rounds is None else (step, rounds))]
        return last[0][1]

    def step(i: int) -> Transfers:
        found = defined(i)
        return plan.schedule.step(i) if found is None else found[0].sent_by(found[1].senders)

    def rounds(i: int) -> tuple[Circuits, ...]:
        found = defined(i)
        return plan.rounds(i) if found is None else found[1].rounds

    return replace(plan, schedule=replace(plan.schedule, step=step), rounds=rounds, light=None)
