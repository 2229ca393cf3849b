"""A schedule and the light that carries it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from opticcl.ir._common import is_value, same_columns
from opticcl.ir.circuits import Circuits
from opticcl.ir.fabric import Fabric
from opticcl.ir.representatives import Represented, RoutedStep, StepImages, SymmetricRounds, together
from opticcl.ir.schedule import Schedule
from opticcl.ir.transfers import Transfers

__all__ = [
    "CircuitPlan",
    "ClassRounds",
    "LoweredBy",
    "RoundsOfRule",
    "StoredRounds",
    "listed_plan",
    "same_circuits",
    "same_light",
]


class LoweredBy(NamedTuple):
    """What circuits were made of.

    Args:
        fabric: that the rule is for.
        schedule: that the rule is for.
        rule: of circuits.
    """

    fabric: Fabric
    schedule: Schedule
    rule: Represented


class RoundsOfRule(ABC):
    """A function step index -> circuits of each round that knows the rule which makes them."""

    @property
    @abstractmethod
    def lowered_by(self) -> LoweredBy | None:
        """The rule; None where it gives circuits of all senders alone."""


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
class ClassRounds(RoundsOfRule):
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

    @property
    def lowered_by(self) -> LoweredBy | None:
        """The rule of the first steps; None where it gives circuits of all senders alone."""
        return self.rounds.lowered_by if isinstance(self.rounds, RoundsOfRule) else None

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
    """

    fabric: Fabric
    schedule: Schedule
    rounds: Callable[[int], tuple[Circuits, ...]]

    def __repr__(self) -> str:
        return f"<CircuitPlan of {self.schedule!r} on {self.fabric!r}>"

    def routed(self, i: int) -> RoutedStep | None:
        """The routes of step i of packets, where it is too large to list; else None."""
        rule = self._rule
        return None if rule is None else rule.routed(i)

    @property
    def on_routes(self) -> bool:
        """Whether circuits are the routes of a fabric of packets, on links that they share, unless a step states paths."""
        return self._rule is not None and self._rule.on_routes

    @property
    def _rule(self) -> Represented | None:
        """The rule that gives circuits of some senders, where it made the circuits of this schedule on this fabric."""
        made = self.rounds.lowered_by if isinstance(self.rounds, RoundsOfRule) else None
        mine = made is not None and made.fabric is self.fabric and made.schedule is self.schedule
        return made.rule if made is not None and mine else None

    def images(self, i: int) -> StepImages | None:
        """Step i by the transfers of some senders, where it is too large to list; else None."""
        rule = self._rule
        return StepImages(self.schedule.steps, i) if rule is not None and rule.represents(i) else None

    def by_senders(self, i: int) -> tuple[SymmetricRounds, ...]:
        """Circuits of step i by those of some senders, of each set of them; none where the rule has none."""
        rule = self._rule
        return () if rule is None else rule.symmetric(i)

    def symmetric(self, i: int) -> tuple[SymmetricRounds, ...]:
        """The same where step i is too large to list; else none."""
        return () if self.images(i) is None else self.by_senders(i)

    def num_circuits(self, i: int) -> tuple[int, ...]:
        """Circuits of each round of step i, listed or not [count]."""
        sets = self.symmetric(i)
        if not sets:
            return tuple(map(len, self.rounds(i)))
        each = [[len(circuits) * one.images for circuits in one.rounds] for one in sets]
        return tuple(map(sum, zip(*each, strict=True)))

    @property
    def has_images(self) -> bool:
        """Whether some step is not listed."""
        rule = self._rule
        return rule is not None and any(rule.represents(steps.start) for steps in self.schedule.step_classes())

    def __eq__(self, other: object) -> bool:
        """Equal fabrics and schedules, and rounds equal by their own equality, else the circuits of every round."""
        if not isinstance(other, CircuitPlan):
            return NotImplemented
        if self.fabric != other.fabric or self.schedule != other.schedule:
            return False
        return self.rounds == other.rounds or all(
            same_circuits(self.rounds(i), other.rounds(i)) for i in range(self.schedule.num_steps)
        )

    def __hash__(self) -> int:
        return hash((self.fabric, self.schedule))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles with its function of rounds if that can be pickled, else with the circuits of every step."""
        rounds = self.rounds
        if not is_value(rounds.rounds if isinstance(rounds, ClassRounds) else rounds):
            rounds = StoredRounds(tuple(self.rounds(i) for i in range(self.schedule.num_steps)))
        return CircuitPlan, (self.fabric, self.schedule, rounds)


def same_circuits(rounds: tuple[Circuits, ...], others: tuple[Circuits, ...]) -> bool:
    """Whether both are equal circuits for equal transfers, round by round."""
    pairs = zip(rounds, others, strict=False)
    return len(rounds) == len(others) and all(one is other or same_columns(one, other) for one, other in pairs)


def same_light(
    fabric: Fabric, one: tuple[Transfers, tuple[Circuits, ...]], other: tuple[Transfers, tuple[Circuits, ...]]
) -> bool:
    """Whether two steps have equal circuits for the same pairs and, where a signal may be split, the same chunks on them.

    Args:
        fabric: that the circuits are on.
        one, other: transfers, and circuits of each round.
    """
    (transfers, rounds), (others, other_rounds) = one, other
    if not same_circuits(rounds, other_rounds):
        return False
    if any(resource.splits for resource in fabric.resources):
        return same_columns(transfers, others)
    return np.array_equal(transfers.src, others.src) and np.array_equal(transfers.dst, others.dst)


def listed_plan(plan: CircuitPlan, *, all_steps: bool = False) -> CircuitPlan:
    """The plan with the transfers and circuits alone of senders that define those of all, where the rule gives these.

    The last step is kept.

    Args:
        plan: any.
        all_steps: whether also of steps that are not too large to list, if images of circuits take as long.
    """
    last: list[tuple[int, tuple[Transfers, tuple[Circuits, ...]] | None]] = []

    def defined(i: int) -> tuple[Transfers, tuple[Circuits, ...]] | None:
        if not last or last[0][0] != i:
            sets = plan.by_senders(i) if all_steps else ()
            if not sets or (plan.fabric.hops_have_length and not all(one.keep_hops for one in sets)):
                sets = plan.symmetric(i)
            last[:] = [(i, together(StepImages(plan.schedule.steps, i), sets) if sets else None)]
        return last[0][1]

    def step(i: int) -> Transfers:
        known = defined(i)
        return plan.schedule.step(i) if known is None else known[0]

    def rounds(i: int) -> tuple[Circuits, ...]:
        known = defined(i)
        return plan.rounds(i) if known is None else known[1]

    return replace(plan, schedule=replace(plan.schedule, step=step), rounds=rounds)
