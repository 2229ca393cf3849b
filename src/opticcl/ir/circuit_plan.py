"""A schedule and the light that carries it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from opticcl.errors import UnsupportedError
from opticcl.ir._common import is_value, same_columns
from opticcl.ir.circuits import Circuits
from opticcl.ir.fabric import Fabric
from opticcl.ir.schedule import Schedule, Transfers
from opticcl.ir.step_blocks import ArcBlock, StepBlock
from opticcl.ir.symmetric_steps import SymmetricRounds, SymmetricStep, symmetric_step

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
    """

    fabric: Fabric
    schedule: Schedule
    rounds: Callable[[int], tuple[Circuits, ...]]

    def __repr__(self) -> str:
        return f"<CircuitPlan of {self.schedule!r} on {self.fabric!r}>"

    def stream(self, i: int) -> Iterator[Circuits] | None:
        """Circuits of the only round of step i, some at a time, or None where `rounds(i)` is small enough, or no packets.

        Each transfer has one circuit, a route, and they come in the order of the transfers, so that a step of all pairs of
        thousands of nodes needs no memory for its routes.
        """
        rounds = self.rounds
        if isinstance(rounds, ClassRounds):
            i, rounds = rounds.first_of(i), rounds.rounds
        function = getattr(rounds, "function", rounds)  # without the cache of a search
        streamed: Iterator[Circuits] | None = function.stream(i) if hasattr(function, "stream") else None
        return streamed

    def block(self, steps: StepBlock) -> ArcBlock | None:
        """Circuits of several steps, where their paths are straight; None where they are evaluated step by step.

        Args: steps: of the schedule.
        """
        function = getattr(self.rounds, "function", self.rounds)  # without the cache of a search
        found: ArcBlock | None = function.block(steps) if hasattr(function, "block") else None
        return found

    def symmetric(self, i: int) -> SymmetricRounds | None:
        """Circuits of step i by those of some senders, where the step is too large to list; None where the rule has none."""
        rounds = self.rounds
        if isinstance(rounds, ClassRounds):
            i, rounds = rounds.first_of(i), rounds.rounds
        function = getattr(rounds, "function", rounds)  # without the cache of a search
        found: SymmetricRounds | None = function.symmetric(i) if hasattr(function, "symmetric") else None
        return found

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
        return CircuitPlan, (self.fabric, self.schedule, rounds)


def listed_plan(plan: CircuitPlan) -> CircuitPlan:
    """The plan with the listed rows alone of steps that symmetries define: transfers and circuits of the senders.

    Its steps raise an UnsupportedError where the circuits of some senders do not define the others. The last step is kept.
    """
    last: list[tuple[int, tuple[SymmetricStep, SymmetricRounds] | None]] = []

    def defined(i: int) -> tuple[SymmetricStep, SymmetricRounds] | None:
        if not last or last[0][0] != i:
            last[:] = []
            last[:] = [(i, evaluated(i))]
        return last[0][1]

    def evaluated(i: int) -> tuple[SymmetricStep, SymmetricRounds] | None:
        step, rounds = symmetric_step(plan.schedule, i), plan.symmetric(i)
        if step is not None and rounds is None:
            raise UnsupportedError(
                f"step {i}: {len(step):,} transfers are not listed, and {plan.fabric.name} has no symmetric circuits for them; "
                f"try an algorithm of more steps"
            )
        return None if step is None or rounds is None else (step, rounds)

    def step(i: int) -> Transfers:
        found = defined(i)
        return plan.schedule.step(i) if found is None else found[0].sent_by(found[1].senders)

    def rounds(i: int) -> tuple[Circuits, ...]:
        found = defined(i)
        return plan.rounds(i) if found is None else found[1].rounds

    return replace(plan, schedule=replace(plan.schedule, step=step, symmetries=()), rounds=rounds)
