"""Transfers to circuits: which port, wavelength and path carry each transfer, one file for each system's own rule.

Packet fabrics bring their routes along and need no file here. Elsewhere a rule is a function (fabric, schedule) ->
(step index, transfers) -> rounds, registered under the fabric's name. It may know the schedule (RAMP's transcoder does)
or treat all transfers equally (`routing.assign.first_fit` helps). The verifier never calls it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache as once
from typing import Any, TypeVar

import numpy as np

from opticcl.errors import FabricError, UnsupportedError
from opticcl.ir import CircuitPlan, Circuits, Fabric, Schedule, Transfers
from opticcl.ir.circuit_plan import ClassRounds
from opticcl.ir.step_blocks import ArcBlock, StepBlock
from opticcl.ir.step_cache import RECENT
from opticcl.ir.symmetric_steps import SymmetricRounds, SymmetricStep, symmetric_step
from opticcl.registry import Registry, canonical

__all__ = ["RULES", "Rounds", "lower", "register_rule"]

MOST_ROUTES = 1 << 21  # of a step that are evaluated as a whole: some 200 MB
MOST_IN_PIECES = 1 << 16  # the same, where loads and latencies follow from straight pieces without a list of links
AT_ONCE = 1 << 18  # routes of a larger step that are evaluated at once

Rounds = Callable[[int, Transfers], tuple[Circuits, ...]]
"""(step index, its transfers) -> circuits of each round."""

RULES: Registry[Callable[[Fabric, Schedule], Rounds]] = Registry("circuit rule", __name__)

Rule = TypeVar("Rule", bound=Callable[[Fabric, Schedule], Rounds])


def register_rule(fabric_name: str) -> Callable[[Rule], Rule]:
    """Decorator that registers a fabric's rule."""

    def add(rule: Rule) -> Rule:
        RULES.register(fabric_name)(rule)
        return rule

    return add


def lower(fabric: Fabric, schedule: Schedule) -> CircuitPlan:
    """Circuits for a schedule, generated on demand, step by step.

    Rules see the nodes of the machine as senders and receivers, also where a job has a part of it.

    Raises: UnsupportedError: two nodes that must communicate cannot be connected by one circuit of this fabric.
        FabricError: circuits have no rule.
    """
    on_machine = replace(schedule, step=lambda i: _on_machine(fabric, schedule.step(i)))
    assign = _routed(fabric) if fabric.is_packet_switched else _rule_of(fabric)(fabric, on_machine)
    for steps in () if fabric.links_all else schedule.step_classes():
        transfers = schedule.step(steps.start)
        apart = np.flatnonzero(~fabric.linked(transfers.src, transfers.dst))
        if len(apart):
            ranks = (int(column[apart[0]]) for column in (transfers.src, transfers.dst))
            where = " and ".join(fabric.coordinates(int(fabric.machine_nodes(np.array(rank)))) for rank in ranks)
            raise UnsupportedError(
                f"{schedule.name} on {fabric.name}: no single circuit joins nodes {where} in step {steps.start}"
            )
    rounds = LoweredRounds(fabric, schedule, on_machine.step, assign)
    return CircuitPlan(fabric, schedule, ClassRounds(schedule.step_classes(), rounds) if schedule.classes else rounds)


@dataclass(frozen=True, slots=True)
class LoweredRounds:
    """Circuits of each step by the fabric's rule; pickles as the fabric and the schedule.

    Args:
        fabric: where the schedule runs.
        schedule: between ranks.
        step: step index -> transfers between nodes of the machine.
        assign: the rule for this schedule.
        number: of the function in the cache of recent circuits.
    """

    fabric: Fabric
    schedule: Schedule
    step: Callable[[int], Transfers] = field(compare=False, repr=False)
    assign: Rounds = field(compare=False, repr=False)
    number: int = field(default_factory=RECENT.number, compare=False, repr=False)

    def __call__(self, i: int) -> tuple[Circuits, ...]:
        """Circuits of each round of step i."""
        return RECENT.value(self.number, i, self._assigned)

    def _assigned(self, i: int) -> tuple[Circuits, ...]:
        transfers = self.step(i)
        return self.assign(i, transfers) if len(transfers) else ()

    def stream(self, i: int) -> Iterator[Circuits] | None:
        """As `CircuitPlan.stream`: routes of packets, if there are more than `MOST_ROUTES`, or of `MOST_IN_PIECES`."""
        if not self.fabric.is_packet_switched:
            return None
        transfers = self.step(i)
        most = min(MOST_ROUTES, MOST_IN_PIECES) if len(self.fabric.lines) else MOST_ROUTES
        return _routes(self.fabric, transfers) if len(transfers) > most else None

    def block(self, steps: StepBlock) -> ArcBlock | None:
        """As `CircuitPlan.block`: what the rule says of several steps, by its method `block`."""
        assign: Callable[[StepBlock], ArcBlock | None] | None = getattr(self.assign, "block", None)
        return None if assign is None or self.fabric.node_of_rank is not None else assign(steps)

    def symmetric(self, i: int) -> SymmetricRounds | None:
        """As `CircuitPlan.symmetric`: what the rule says of a step that is too large to list, by its method `symmetric`."""
        step = symmetric_step(self.schedule, i)
        assign: Callable[[int, SymmetricStep], SymmetricRounds] | None = getattr(self.assign, "symmetric", None)
        return None if step is None or assign is None else assign(i, step)

    def __reduce__(self) -> tuple[Any, ...]:
        return _lowered_rounds, (self.fabric, self.schedule)


def _lowered_rounds(fabric: Fabric, schedule: Schedule) -> LoweredRounds:
    """Rounds as `lower` makes them; the rule begins when the first of them is wanted, since most readers want none."""

    @once
    def lowered() -> LoweredRounds:
        rounds = lower(fabric, schedule).rounds
        found: LoweredRounds = rounds.rounds if isinstance(rounds, ClassRounds) else rounds  # type: ignore[assignment]
        return found

    return LoweredRounds(fabric, schedule, lambda i: lowered().step(i), lambda i, rows: lowered().assign(i, rows))


def _rule_of(fabric: Fabric) -> Callable[[Fabric, Schedule], Rounds]:
    name = canonical(fabric.name)
    if name not in RULES.names():
        raise FabricError(
            f'{name}: nothing says which light its transfers get; decorate a rule with @register_rule("{name}"), '
            f"in circuits/{name}.py or in a file of your own, or share its resources and give it a `route` (packets)"
        )
    return RULES.get(name)


def _on_machine(fabric: Fabric, transfers: Transfers) -> Transfers:
    if fabric.node_of_rank is None:
        return transfers
    return replace(transfers, src=fabric.machine_nodes(transfers.src), dst=fabric.machine_nodes(transfers.dst))


def _routes(fabric: Fabric, transfers: Transfers) -> Iterator[Circuits]:
    """Every transfer on its route, `AT_ONCE` at a time."""
    for first in range(0, len(transfers), AT_ONCE):
        src, dst = (column[first : first + AT_ONCE] for column in (transfers.src, transfers.dst))
        yield Circuits.of(np.arange(first, first + len(src)), src, dst, path=fabric.route(src, dst))


def _routed(fabric: Fabric) -> Rounds:
    """Packet fabrics: every transfer on its route, all in one round. The last routes are cached: steps may share pairs."""
    last: list[Circuits] = []

    def rounds(step: int, transfers: Transfers) -> tuple[Circuits, ...]:
        same = last and all(np.array_equal(getattr(last[0], end), getattr(transfers, end)) for end in ("src", "dst"))
        if not same:
            paths = fabric.route(transfers.src, transfers.dst)
            last[:] = [Circuits.of(np.arange(len(transfers)), transfers.src, transfers.dst, path=paths)]
        return (last[0],)

    return rounds
