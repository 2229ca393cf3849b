"""Transfers to circuits: which port, wavelength and path carry each transfer, one file for each system's own rule.

Packet fabrics bring their routes along and need no file here. Elsewhere a rule is a function (fabric, schedule) ->
(step index, transfers) -> rounds, registered under the fabric's name. It may know the schedule (RAMP's transcoder does)
or treat all transfers equally (`routing.assign.first_fit` helps). The verifier never calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache as once
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from opticcl.circuits._by_senders import Rounds
from opticcl.circuits._routes import OnRoutes
from opticcl.errors import AlgorithmError, FabricError, OpticclError, UnsupportedError
from opticcl.ir import CircuitPlan, Circuits, Fabric, IntArray, Schedule, Transfers
from opticcl.ir.circuit_plan import ClassRounds, LoweredBy, RoundsOfRule
from opticcl.ir.limits import ROUTES_AT_ONCE
from opticcl.ir.recent import RECENT
from opticcl.ir.representatives import Represented
from opticcl.registry import Registry, canonical, failure_of, is_of_library

__all__ = ["RULES", "Rounds", "lower", "register_rule"]

RULES: Registry[Callable[[Fabric, Schedule], Rounds]] = Registry("circuit rule", __name__)


Rule = TypeVar("Rule", bound=Callable[[Fabric, Schedule], Rounds])


def register_rule(fabric_name: str) -> Callable[[Rule], Rule]:
    """Decorator that registers a fabric's rule; exceptions of one from outside the library name it, the step and the line."""

    def add(rule: Rule) -> Rule:
        RULES.register(fabric_name)(rule if is_of_library(rule) else _named(fabric_name, rule))
        return rule

    return add


def _named(fabric_name: str, rule: Callable[[Fabric, Schedule], Rounds]) -> Callable[[Fabric, Schedule], Rounds]:
    """A rule whose exceptions are errors of the plan that is made: a search and a comparison go on with others."""

    def checked(where: str, call: Callable[..., Any], *given: Any) -> Any:
        try:
            return call(*given)
        except (OpticclError, MemoryError):
            raise
        except Exception as error:
            raise AlgorithmError(failure_of(rule, f"circuit rule {fabric_name}: {where}", error)) from error

    @wraps(rule)
    def named(fabric: Fabric, schedule: Schedule) -> Rounds:
        rounds: Rounds = checked(schedule.name, rule, fabric, schedule)
        if isinstance(rounds, Represented):
            return rounds

        def of_step(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
            made = checked(f"{schedule.name}, step {step},", rounds, step, transfers)
            if isinstance(made, tuple) and all(isinstance(one, Circuits) for one in made):
                return made
            raise AlgorithmError(
                f"circuit rule {fabric_name}: {schedule.name}, step {step}: returned {type(made).__name__}, not a tuple of "
                "Circuits, one a round"
            )

        return of_step

    return named


def lower(fabric: Fabric, schedule: Schedule) -> CircuitPlan:
    """Circuits for a schedule, generated on demand, step by step.

    Rules see the nodes of the machine as senders and receivers, also where a job has a part of it.

    Raises: UnsupportedError: two nodes that must communicate cannot be connected by one circuit of this fabric.
        FabricError: circuits have no rule.
    """
    on_machine = schedule
    if fabric.node_of_rank is not None:
        on_machine = replace(schedule, step=lambda i: _on_machine(fabric, schedule.step(i)))
    assign: Rounds = (
        OnRoutes(fabric, schedule.steps) if fabric.is_packet_switched else _rule_of(fabric)(fabric, on_machine)
    )
    for steps in () if fabric.links_all else schedule.step_classes():
        if all(fabric.linked(src, dst).all() for src, dst in _pairs(schedule, assign, steps.start)):
            continue
        transfers = schedule.step(steps.start)
        apart = np.flatnonzero(~fabric.linked(transfers.src, transfers.dst))
        if len(apart):
            ranks = (int(column[apart[0]]) for column in (transfers.src, transfers.dst))
            where = " and ".join(fabric.coordinates(int(fabric.machine_nodes(np.array(rank)))) for rank in ranks)
            raise UnsupportedError(
                f"{schedule.name} on {fabric.name}: no single circuit joins nodes {where} in step {steps.start}"
            )
    represented = assign if isinstance(assign, Represented) else None
    rounds = LoweredRounds(fabric, schedule, on_machine.step, assign, lambda: represented)
    return CircuitPlan(
        fabric,
        schedule,
        ClassRounds(classes, rounds) if len(classes := schedule.step_classes()) < schedule.num_steps else rounds,
    )


def _pairs(schedule: Schedule, rule: Rounds, step: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Senders and receivers of a step, or of those whose images all others are under moves of the machine.

    Args:
        schedule: with the step.
        rule: of circuits.
        step: its number.
    """
    senders = rule.senders(step) if isinstance(rule, Represented) else None
    if senders is None:
        every = np.arange(schedule.steps.space.num_ranks)
        yield from ((some.src, some.dst) for some in schedule.steps.ends(step, ROUTES_AT_ONCE, every))
    else:
        some = schedule.steps.sent_by(step, senders)
        yield some.src, some.dst


@dataclass(frozen=True, slots=True)
class LoweredRounds(RoundsOfRule):
    """Circuits of each step by the fabric's rule; pickles as the fabric and the schedule.

    Args:
        fabric: where the schedule runs.
        schedule: between ranks.
        step: step index -> transfers between nodes of the machine.
        assign: the rule for this schedule.
        number: of the function in the cache of recent circuits.
        rule: gives the rule, where it gives circuits of some senders.
    """

    fabric: Fabric
    schedule: Schedule
    step: Callable[[int], Transfers] = field(compare=False, repr=False)
    assign: Rounds = field(compare=False, repr=False)
    rule: Callable[[], Represented | None] = field(compare=False, repr=False)
    number: int = field(default_factory=RECENT.number, compare=False, repr=False)

    @property
    def lowered_by(self) -> LoweredBy | None:
        """The rule; None where it gives circuits of all senders alone."""
        rule = self.rule()
        return None if rule is None else LoweredBy(self.fabric, self.schedule, rule)

    def __call__(self, i: int) -> tuple[Circuits, ...]:
        """Circuits of each round of step i."""
        return RECENT.value(self.number, i, self._assigned)

    def _assigned(self, i: int) -> tuple[Circuits, ...]:
        transfers = self.step(i)
        if transfers.path is not None and not self.fabric.is_packet_switched:
            raise UnsupportedError(
                f"{self.schedule.name} on {self.fabric.name}: step {i} states paths of packets; circuits have none to state"
            )
        return self.assign(i, transfers) if len(transfers) else ()

    def __reduce__(self) -> tuple[Any, ...]:
        return _lowered_rounds, (self.fabric, self.schedule)


def _lowered_rounds(fabric: Fabric, schedule: Schedule) -> LoweredRounds:
    """Rounds as `lower` makes them; the rule begins when the first of them is wanted, since most readers want none."""

    @once
    def lowered() -> LoweredRounds:
        rounds = lower(fabric, schedule).rounds
        lowered_rounds: LoweredRounds = rounds.rounds if isinstance(rounds, ClassRounds) else rounds  # type: ignore[assignment]
        return lowered_rounds

    return LoweredRounds(
        fabric,
        schedule,
        lambda i: lowered().step(i),
        lambda i, rows: lowered().assign(i, rows),
        lambda: lowered().rule(),
    )


def _rule_of(fabric: Fabric) -> Callable[[Fabric, Schedule], Rounds]:
    name = canonical(fabric.name)
    if name not in RULES.names():
        raise FabricError(
            f'{name}: nothing says which light its transfers get; decorate a rule with @register_rule("{name}"), '
            f"in circuits/{name}.py or in a file of your own, or share its resources and give it a `route` (packets)"
        )
    return RULES.get(name)


def _on_machine(fabric: Fabric, transfers: Transfers) -> Transfers:
    return replace(transfers, src=fabric.machine_nodes(transfers.src), dst=fabric.machine_nodes(transfers.dst))
