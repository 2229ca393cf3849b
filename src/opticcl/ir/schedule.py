"""Schedules: which rank sends which chunks to which rank in which step."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from opticcl.ir._common import NO_PARAMETERS, is_value, same_columns
from opticcl.ir.collective import Collective
from opticcl.ir.phases import Steps, StoredSteps
from opticcl.ir.transfers import Transfers

__all__ = ["Schedule"]


@dataclass(frozen=True, eq=False)
class Schedule:
    """Steps of transfers.

    Args:
        name: algorithm that made it.
        collective: what it claims to do.
        num_steps: number of steps [count].
        step: pure function of the step's index; or phases, `opticcl.ir.phases.Steps`, which are one.
        classes: of a function, the steps in order, cut into ranges whose steps differ in the numbers of chunks alone. By
            default no two steps are known to do so; phases say it themselves.
        parameters: parameters of the algorithm.
        stands: whether a rule may set circuits before a step uses them, so that pairs may change where circuits do not.
        member: what each of several groups of ranks does at the same time, of which the steps consist; None: there is one
            group. The collective is that of one group.
        cut: first phase in front of which the owner of each chunk has its sum, and from where on no other rank's is used: what
            comes before and behind can be judged apart. None: nowhere.
    """

    name: str
    collective: Collective
    num_steps: int
    step: Callable[[int], Transfers]
    classes: tuple[range, ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=lambda: NO_PARAMETERS)
    stands: bool = False
    cut: int | None = None
    member: Schedule | None = None

    @classmethod
    def of(
        cls,
        name: str,
        collective: Collective,
        steps: Steps,
        *,
        parameters: Mapping[str, Any] = NO_PARAMETERS,
        stands: bool = False,
        cut: int | None = None,
    ) -> Schedule:
        """A schedule of phases.

        Args:
            name: algorithm that made it.
            collective: what it claims to do.
            steps: phases.
            parameters, stands, cut: as of the class.
        """
        return cls(name, collective, steps.num_steps, steps, (), parameters, stands, cut)

    def in_groups(self, count: int) -> Schedule:
        """The schedule in several groups of ranks at the same time: ranks of the first, then of the second, and so on.

        Args: count: of the groups.
        """
        if count == 1:
            return self
        return replace(self, step=self.steps.in_groups(count), classes=(), member=self)

    @property
    def num_ranks(self) -> int:
        """Ranks of all groups [count]."""
        return self.collective.num_ranks if self.member is None else self.steps.space.num_ranks

    @cached_property
    def steps(self) -> Steps:
        """The steps as phases; those of a function are listed."""
        if isinstance(self.step, Steps):
            return self.step
        c = self.collective
        return Steps.listed(c.num_ranks, c.num_chunks, self.num_steps, self.step, self.classes)

    def __repr__(self) -> str:
        from opticcl.units import counted

        c = self.collective
        return (
            f"<Schedule {self.name}: {c.name} among {counted(c.num_ranks, 'rank')}, {counted(self.num_steps, 'step')}>"
        )

    def step_classes(self) -> tuple[range, ...]:
        """The steps in order, cut into ranges of steps that differ in the numbers of chunks alone."""
        return self.classes or self.steps.classes

    def __eq__(self, other: object) -> bool:
        """Equal in all fields; step functions by their own equality, else by the transfers of every step."""
        if not isinstance(other, Schedule):
            return NotImplemented
        mine, its = ((s.name, s.num_steps, s.step_classes(), dict(s.parameters), s.collective) for s in (self, other))
        if mine != its:
            return False
        return self.step == other.step or all(same_columns(self.step(i), other.step(i)) for i in range(self.num_steps))

    def __hash__(self) -> int:
        return hash((self.name, self.num_steps, self.collective))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles with its step function if that can be pickled, else with the transfers of every step."""
        step = self.step
        if not is_value(step) and not isinstance(step, Steps):
            step = StoredSteps(tuple(self.step(i) for i in range(self.num_steps)))
        fields = (
            self.name,
            self.collective,
            self.num_steps,
            step,
            self.classes,
            dict(self.parameters),
            self.stands,
            self.cut,
            self.member,
        )
        return _schedule_of, fields


def _schedule_of(
    name: str,
    collective: Collective,
    num_steps: int,
    step: Callable[[int], Transfers],
    classes: tuple[range, ...],
    parameters: dict[str, Any],
    stands: bool,
    cut: int | None,
    member: Schedule | None,
) -> Schedule:
    return Schedule(name, collective, num_steps, step, classes, MappingProxyType(parameters), stands, cut, member)
